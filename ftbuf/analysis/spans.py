"""States that last until the next row of their key, matched step by step; and what analyses over time share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Layout:
    """Rows of a step by key, each key's in order of time."""

    order: np.ndarray  # place -> row
    group: np.ndarray  # of each place: the number of its key
    first: np.ndarray  # of each place: whether it is its key's first in the step


@dataclass(frozen=True, slots=True)
class Ended:
    """Spans that a row of the step ended."""

    place: np.ndarray  # of the row that ended it, in the layout
    group: np.ndarray
    start: np.ndarray
    end: np.ndarray
    began: dict[str, np.ndarray]  # values of the row that began it

    @property
    def duration(self) -> np.ndarray:
        found: np.ndarray = np.maximum(self.end - self.start, 0)
        return found


class Spans:
    """Ends spans by rows of one step after another.

    Parameters
    ----------
    **kinds : int
        Names of the values that rows have, and what they are for a key of which nothing is known.
    """

    def __init__(self, **kinds: int) -> None:
        self.keys = Keys()
        self._unknown = kinds
        self._since = np.zeros(0, np.int64)
        self._known = np.zeros(0, bool)
        self._values = {name: np.zeros(0, np.int64) for name in kinds}

    def layout(self, keys: np.ndarray) -> Layout:
        groups = self.keys.groups(keys)
        self._grow()
        count = len(self.keys)
        order = np.argsort(groups.astype(np.uint16) if count <= 1 << 16 else groups, kind="stable")  # radix, or not
        group = groups[order]
        return Layout(order, group, np.concatenate([[True], group[1:] != group[:-1]])[: len(group)])

    def _grow(self) -> None:
        more = len(self.keys) - len(self._since)
        if more > 0:
            more = max(more, len(self._since))
            self._since = np.concatenate([self._since, np.zeros(more, np.int64)])
            self._known = np.concatenate([self._known, np.zeros(more, bool)])
            for name, value in self._unknown.items():
                self._values[name] = np.concatenate([self._values[name], np.full(more, value)])

    def begin(self, keys: np.ndarray, since: np.ndarray, **values: np.ndarray | int) -> None:
        """What keys of which nothing is known are doing, and since when."""
        groups = self.keys.groups(np.asarray(keys))
        self._grow()
        new = ~self._known[groups]
        groups = groups[new]
        self._known[groups] = True
        self._since[groups] = np.asarray(since)[new]
        for name, value in values.items():
            self._values[name][groups] = value[new] if isinstance(value, np.ndarray) else value

    def end(self, layout: Layout, ts: np.ndarray, **values: np.ndarray) -> Ended:
        """Spans that end in this step; times and values are by place of the layout."""
        group, first = layout.group, layout.first
        if not len(group):
            nothing = np.zeros(0, np.int64)
            return Ended(nothing, nothing, nothing, nothing, dict.fromkeys(values, nothing))
        start = self._shifted(ts, self._since, group, first)
        began = {name: self._shifted(value, self._values[name], group, first) for name, value in values.items()}
        known = ~first
        known[first] = self._known[group[first]]
        self._carry(layout, ts, values)
        if known.all():
            return Ended(np.arange(len(group)), group, start, ts, began)
        place = np.flatnonzero(known)
        return Ended(place, group[place], start[place], ts[place], {name: v[place] for name, v in began.items()})

    @staticmethod
    def _shifted(values: np.ndarray, carried: np.ndarray, group: np.ndarray, first: np.ndarray) -> np.ndarray:
        """Of each place the value of the row before it."""
        out = np.empty_like(values)
        out[1:] = values[:-1]
        out[first] = carried[group[first]]
        return out

    def _carry(self, layout: Layout, ts: np.ndarray, values: dict[str, np.ndarray]) -> None:
        last = np.concatenate([layout.first[1:], [True]])
        groups = layout.group[last]
        self._known[groups] = True
        self._since[groups] = ts[last]
        for name, value in values.items():
            self._values[name][groups] = value[last]

    def step(self, keys: np.ndarray, ts: np.ndarray, **values: np.ndarray) -> tuple[Layout, Ended]:
        """``layout`` and ``end`` of rows in order of time."""
        layout = self.layout(keys)
        by_place = {name: value[layout.order] for name, value in values.items()}
        return layout, self.end(layout, ts[layout.order], **by_place)

    def open(self, end: int) -> Ended:
        """Spans that no row has ended, up to a time."""
        groups = np.flatnonzero(self._known[: len(self.keys)])
        values = {name: value[groups] for name, value in self._values.items()}
        return Ended(groups, groups, self._since[groups], np.full(len(groups), end, np.int64), values)


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
