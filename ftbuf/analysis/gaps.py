"""What the kernel lost, as stretches of time: an interval across one cannot be trusted."""

from __future__ import annotations

import numpy as np

from ..table import Table
from ..trace import Trace


class Gaps:
    """The stretches in which records were lost: of a trace (of all its CPUs, or one), or as they are told, step by step.

    A CPU's stretch lies between the last record before the gap and the first one after it; it begins with time itself
    where the CPU has no record before.
    """

    def __init__(self, trace: Trace | None = None, cpu: int | None = None) -> None:
        self.starts = np.empty(0, np.int64)
        self.ends = np.empty(0, np.int64)
        if trace is not None:
            lost = trace.lost
            own = slice(None) if cpu is None else lost["common_cpu"] == cpu
            self.add(lost["before"][own], lost["after"][own])

    def __len__(self) -> int:
        return len(self.starts)

    def add(self, starts: np.ndarray, ends: np.ndarray) -> None:
        if len(starts):
            self.starts, self.ends = united(np.concatenate([self.starts, starts]), np.concatenate([self.ends, ends]))

    def touch(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Whether each interval, from a start to an end, has part of a gap inside it."""
        if not len(self):
            return np.zeros(len(starts), bool)
        at = np.searchsorted(self.ends, starts, side="right")  # the first gap that ends behind the start
        found: np.ndarray = (at < len(self)) & (self.starts[np.minimum(at, len(self) - 1)] < ends)
        return found


class CpuGaps:
    """The gaps of each CPU."""

    def __init__(self) -> None:
        self._of: dict[int, Gaps] = {}

    def add(self, lost: Table) -> None:
        """Rows of ``Trace.lost``."""
        cpus = lost["common_cpu"]
        for cpu in np.unique(cpus).tolist():
            own = cpus == cpu
            self._of.setdefault(cpu, Gaps()).add(lost["before"][own], lost["after"][own])

    def touch(self, cpus: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Whether each interval has part of a gap of its CPU inside it."""
        found = np.zeros(len(starts), bool)
        for cpu, gaps in self._of.items():
            own = cpus == cpu
            found[own] = gaps.touch(starts[own], ends[own])
        return found


def united(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Intervals that overlap as one, in order of time. Those that only meet have a record between them, and stay two."""
    order = np.argsort(starts, kind="stable")
    starts, upto = starts[order], np.maximum.accumulate(ends[order])
    first = np.concatenate([[True], starts[1:] >= upto[:-1]])
    last = np.concatenate([first[1:], [True]])
    return starts[first], upto[last]
