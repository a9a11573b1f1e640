"""Intervals that one event begins and another ends, by key: an interrupt's handler on a CPU, a task's system call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..trace import Trace
from .gaps import Gaps
from .spans import Counters, CpuGaps, Spans
from .stats import PERCENTILES, Samples

GroupOf = Callable[[np.ndarray, np.ndarray], np.ndarray]
Edges = dict[str, np.ndarray]  # key, ts, code
BEGINS, FLAG, KIND = 1, 2, 2  # a code: bits 0 and 1, and the shift of the rest
OVER = 0  # of a key of which nothing is known: an end


def edges(key: np.ndarray, ts: np.ndarray, kind: np.ndarray, begins: bool, flag: np.ndarray | bool = False) -> Edges:
    """Rows of ``Intervals.step``, all beginnings or all ends."""
    code = kind.astype(np.int32) << KIND | np.int32(BEGINS if begins else 0)
    if flag is not False:
        code |= np.where(flag, np.int32(FLAG), np.int32(0))
    return {"key": key.astype(np.int32), "ts": ts, "code": code}


class Intervals:
    """Measures intervals, step by step.

    Rows are beginnings and ends; of each key they alternate. A beginning has a ``kind``, a number from 0 on, that its end
    has, too. ``group_of(kind, key)`` tells where an interval is counted.
    """

    def __init__(self, trace: Trace, group_of: GroupOf, *, of_cpus: bool) -> None:
        self.group_of = group_of
        self.spans = Spans(code=OVER)
        self.samples, self.counters = Samples(), Counters()
        self._gaps = CpuGaps(trace) if of_cpus else Gaps(trace)

    def step(self, rows: Edges) -> None:
        """Rows in order of time."""
        layout, ended = self.spans.step(rows["key"], rows["ts"], code=rows["code"])
        began = ended.began["code"]
        opened = np.flatnonzero(began & BEGINS)
        began, group = began[opened], ended.group[opened]
        code = rows["code"][layout.order[ended.place[opened]]]
        key = self.spans.keys.values.astype(np.int64)[group]
        whole = (began ^ code) & ~np.int32(FLAG) == BEGINS  # alike but for the bit of beginnings
        start, end = ended.start[opened], ended.end[opened]
        if not whole.all():
            self.counters.add("lost", self.group_of(began[~whole] >> KIND, key[~whole]))
            began, code, key, start, end = (column[whole] for column in (began, code, key, start, end))
        self.measure(key, began >> KIND, start, end, code & FLAG != 0)

    def measure(self, key: np.ndarray, kind: np.ndarray, start: np.ndarray, end: np.ndarray, flag: np.ndarray) -> None:
        groups = self.group_of(kind, key)
        touched = self._touched(key, start, end)
        if touched.any():
            self.counters.add("lost", groups[touched])
            groups, start, end, flag = (column[~touched] for column in (groups, start, end, flag))
        self.samples.add(groups, end - start)
        self.counters.add("flagged", groups[flag])

    def _touched(self, key: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        if isinstance(self._gaps, CpuGaps):
            return self._gaps.touch(key, start, end)
        return self._gaps.touch(start, end)

    def finish(self) -> None:
        """Count what no row has ended."""
        last = self.spans.open(0)
        code = last.began["code"]
        is_open = code & BEGINS != 0
        key = self.spans.keys.values.astype(np.int64)[last.group]
        self.counters.add("open", self.group_of(code[is_open] >> KIND, key[is_open]))

    def columns(self, groups: int, percentiles: Sequence[float] = PERCENTILES) -> dict[str, np.ndarray]:
        """Of each group: count, time, mean, min, max, percentiles; lost, open."""
        samples = self.samples
        samples.grow(groups)
        return {"count": samples.count, "time": samples.total, "mean": samples.mean, "min": samples.least,
                "max": samples.max, **samples.percentiles(percentiles), "lost": self.counters.of("lost", groups),
                "open": self.counters.of("open", groups)}
