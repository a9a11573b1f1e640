"""Intervals that one event begins and another ends, by key: an interrupt's handler on a CPU, a task's system call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .. import _core
from ..table import Table
from .spans import Counters, gap_rows
from .stats import PERCENTILES, Samples

GroupOf = Callable[[np.ndarray, np.ndarray], np.ndarray]
Edges = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]  # order, ts, key, kind, flag
INTERVAL = np.dtype([("duration", np.int64), ("kind", np.int64), ("key", np.int32), ("flag", np.uint32)])  # ftb_interval
UNDER_WAY = np.dtype([("since", np.int64), ("kind", np.int64), ("key", np.int32), ("is_open", np.uint32)])


def edges(order: np.ndarray, ts: np.ndarray, key: np.ndarray, kind: np.ndarray, flag: np.ndarray | None = None) -> Edges:
    """Rows of ``Intervals.step``: beginnings or ends, in order."""
    return (order, ts, np.ascontiguousarray(key, np.int32), np.ascontiguousarray(kind, np.int64),
            None if flag is None else np.ascontiguousarray(flag, np.uint8))


class Intervals:
    """Measures intervals, step by step.

    Rows are beginnings and ends; of each key they alternate. A beginning has a ``kind``, a number that its end has, too.
    ``group_of(kind, key)`` tells where an interval is counted.
    """

    def __init__(self, group_of: GroupOf, *, of_cpus: bool) -> None:
        self.group_of = group_of
        self.samples, self.counters = Samples(), Counters()
        self._core = _core.Intervals(of_cpus)

    def step(self, begins: Edges, ends: Edges, lost: Table) -> None:
        """Rows of one step; ``lost`` as of ``Trace.steps``."""
        whole, broken = (np.frombuffer(rows, INTERVAL)  # type: ignore[call-overload]
                         for rows in self._core.step(begins, ends, gap_rows(lost)))
        groups = self.group_of(whole["kind"], whole["key"])
        self.samples.add(groups, whole["duration"])
        self.counters.add("flagged", groups[whole["flag"] != 0])
        if len(broken):
            self.counters.add("lost", self.group_of(broken["kind"], broken["key"]))

    def finish(self) -> None:
        """Count what no row has ended."""
        rows = np.frombuffer(self._core.finish(), UNDER_WAY)  # type: ignore[call-overload]
        rows = rows[rows["is_open"] != 0]
        self.counters.add("open", self.group_of(rows["kind"], rows["key"]))

    def columns(self, groups: int, percentiles: Sequence[float] = PERCENTILES) -> dict[str, np.ndarray]:
        """Of each group: count, time, mean, min, max, percentiles; lost, open."""
        samples = self.samples
        samples.grow(groups)
        return {"count": samples.count, "time": samples.total, "mean": samples.mean, "min": samples.least,
                "max": samples.max, **samples.percentiles(percentiles), "lost": self.counters.of("lost", groups),
                "open": self.counters.of("open", groups)}
