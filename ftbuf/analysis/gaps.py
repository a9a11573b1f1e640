"""What the kernel lost, as stretches of time: an interval across one cannot be trusted."""

from __future__ import annotations

import numpy as np

from ..trace import Trace


class Gaps:
    """The stretches in which records of a trace were lost, of all its CPUs together or of one.

    A CPU's stretch lies between the last record before the gap and the first one after it; it begins with the trace where
    the CPU has no record before.
    """

    def __init__(self, trace: Trace, cpu: int | None = None) -> None:
        lost = trace.lost
        chosen = slice(None) if cpu is None else lost["common_cpu"] == cpu
        self.starts, self.ends = united(lost["before"][chosen], lost["after"][chosen])

    def __len__(self) -> int:
        return len(self.starts)

    def touch(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Whether each interval, from a start to an end, has part of a gap inside it."""
        if not len(self):
            return np.zeros(len(starts), bool)
        at = np.searchsorted(self.ends, starts, side="right")  # the first gap that ends behind the start
        found: np.ndarray = (at < len(self)) & (self.starts[np.minimum(at, len(self) - 1)] < ends)
        return found


def united(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Intervals that overlap or meet as one, in order of time."""
    order = np.argsort(starts, kind="stable")
    starts, upto = starts[order], np.maximum.accumulate(ends[order])
    if not len(starts):
        return starts, upto
    first = np.concatenate([[True], starts[1:] > upto[:-1]])
    last = np.concatenate([first[1:], [True]])
    return starts[first], upto[last]
