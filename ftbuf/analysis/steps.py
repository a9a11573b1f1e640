"""What analyses that go step by step share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..survey import first_time
from ..table import Encoded, Table
from ..trace import Trace
from .stats import Keys

STEP = "1 MB"


def merged(parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The rows of several events in the order in which a step has them: ``order`` is their column ``plan.ORDER``."""
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(joined["order"], kind="stable")
    return {name: column[order] for name, column in joined.items()}


class Counters:
    """Numbers of each group, of several kinds, that grow with the groups."""

    def __init__(self) -> None:
        self._counts: dict[str, np.ndarray] = {}

    def add(self, name: str, groups: np.ndarray, values: np.ndarray | int = 1) -> None:
        counts = self._counts.get(name, np.zeros(0, np.int64))
        need = int(groups.max(initial=-1)) + 1
        if need > len(counts):
            counts = np.concatenate([counts, np.zeros(max(need - len(counts), len(counts)), np.int64)])
        np.add.at(counts, groups, values)
        self._counts[name] = counts

    def of(self, name: str, groups: int) -> np.ndarray:
        """Of the first so many groups."""
        out = np.zeros(groups, np.int64)
        counts = self._counts.get(name, out)[:groups]
        out[: len(counts)] = counts
        return out


class TaskNames:
    """The last name that was seen of each task."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._keys = Keys()

    def note(self, pids: np.ndarray, names: Any) -> None:
        if not isinstance(names, Encoded) or not len(pids):
            return
        groups = self._keys.groups(pids)
        last = np.full(len(self._keys), -1)
        last[groups] = np.arange(len(pids))  # of several rows of one task the last one stays
        rows = last[last >= 0]
        strings = (names.strings[code] for code in names.codes[rows].tolist())
        self._names.update(zip(pids[rows].tolist(), strings, strict=True))

    def of(self, trace: Trace, pids: list[int]) -> list[str]:
        return [self._names[pid] if pid in self._names else trace.comms[pid] for pid in pids]


def cpu_starts(trace: Trace) -> dict[int, int]:
    """CPU -> time of its first record: since when its records tell what it did."""
    found: dict[int, int] = {}
    for source in trace._sources():
        start = first_time(trace.recording, source, trace.selection.window)
        if start is not None:
            found[source.stream.cpu] = min(start, found.get(source.stream.cpu, start))
    return found


def gap_rows(lost: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the core wants to know of the losses of a step (``Trace.steps``): times before and after, and CPUs."""
    return lost["before"], lost["after"], lost["common_cpu"]
