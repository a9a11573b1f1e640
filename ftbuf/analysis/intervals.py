"""Intervals that one event begins and another ends, by key: an interrupt's handler on a CPU, a task's system call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .. import _core
from ..table import Table
from .stats import PERCENTILES, Samples
from .steps import Counters, gap_rows

GroupOf = Callable[[np.ndarray, np.ndarray], np.ndarray]
Edges = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]  # order, ts, key, kind, flag
# csrc/ftb_intervals.h ftb_interval, ftb_under_way
INTERVAL = np.dtype([("duration", np.int64), ("inside", np.int64), ("kind", np.int64), ("key", np.int32), ("flag", np.uint32)])
UNDER_WAY = np.dtype([("since", np.int64), ("kind", np.int64), ("inside", np.int64), ("key", np.int32), ("is_open", np.uint32),
                      ("below", np.uint32), ("above", np.uint32), ("lane", np.uint16), ("is_moved", np.uint16),
                      ("", np.uint32)])


def edges(order: np.ndarray, ts: np.ndarray, key: np.ndarray, kind: np.ndarray, flag: np.ndarray | None = None) -> Edges:
    """Rows of ``Intervals.step``: beginnings or ends, in order."""
    return (order, ts, np.ascontiguousarray(key, np.int32), np.ascontiguousarray(kind, np.int64),
            None if flag is None else np.ascontiguousarray(flag, np.uint8))


NO_EDGES = edges(*(np.zeros(0, np.int64) for _ in range(4)))


class Lane:
    """Intervals of one kind of beginnings and ends, added up in groups: ``group_of(kind, key)`` tells in which."""

    def __init__(self, group_of: GroupOf) -> None:
        self.group_of = group_of
        self.samples, self.counters = Samples(), Counters()

    def add(self, whole: np.ndarray) -> None:
        groups = self.group_of(whole["kind"], whole["key"])
        self.samples.add(groups, whole["duration"])
        self.counters.add("flagged", groups[whole["flag"] != 0])
        inside = np.flatnonzero(whole["inside"])
        self.counters.add("inside", groups[inside], whole["inside"][inside])

    def count(self, name: str, rows: np.ndarray) -> None:
        self.counters.add(name, self.group_of(rows["kind"], rows["key"]))

    def columns(self, groups: int, percentiles: Sequence[float] = PERCENTILES) -> dict[str, np.ndarray]:
        """Of each group: count, time, mean, min, max, percentiles; lost, open."""
        samples = self.samples
        samples.grow(groups)
        return {"count": samples.count, "time": samples.total, "mean": samples.mean, "min": samples.least,
                "max": samples.max, **samples.percentiles(percentiles), "lost": self.counters.of("lost", groups),
                "open": self.counters.of("open", groups)}

    def own(self, groups: int) -> np.ndarray:
        """Of each group the time without that of intervals of other lanes inside."""
        found: np.ndarray = np.maximum(self.samples.total - self.counters.of("inside", groups), 0)
        return found


class Intervals:
    """Measures intervals, step by step.

    Rows are beginnings and ends; of each lane and key they alternate. A beginning has a ``kind``, a number that its end
    has, too.
    """

    def __init__(self, lanes: Sequence[Lane], *, of_cpus: bool) -> None:
        self.lanes = lanes
        self._core = _core.Intervals(of_cpus)

    def step(self, rows: Sequence[tuple[Edges, Edges]], lost: Table) -> None:
        """Beginnings and ends of each lane in one step; ``lost`` as of ``Trace.steps``."""
        for lane, found in zip(self.lanes, self._core.step(rows, gap_rows(lost)), strict=True):
            whole, broken = (np.frombuffer(part, INTERVAL) for part in found)  # type: ignore[call-overload]
            if len(whole):
                lane.add(whole)
            if len(broken):
                lane.count("lost", broken)

    def finish(self) -> None:
        """Count what no row has ended."""
        rows = np.frombuffer(self._core.finish(), UNDER_WAY)  # type: ignore[call-overload]
        rows = rows[rows["is_open"] != 0]
        for number, lane in enumerate(self.lanes):
            lane.count("open", rows[rows["lane"] == number])
