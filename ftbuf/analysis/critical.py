"""How long interrupts or preemption were off: sections between the events that say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..plan import ORDER
from ..table import Table
from ..trace import Trace
from .columns import Columns
from .gaps import CpuGaps
from .sched import one_buffer, require_events
from .stats import PERCENTILES, Keys, Samples, among_longest
from .tables import histogram_table, integers, rows_of, table, total_table
from .wanted import check_count, check_fineness, check_percentiles, check_trace

EVENTS = {"irq": ("preemptirq:irq_disable", "preemptirq:irq_enable"),
          "preempt": ("preemptirq:preempt_disable", "preemptirq:preempt_enable")}
WORST = 20
STEP = "4 MB"  # a step that fits the caches is faster than a larger one
WANTED = (ORDER, "common_ts", "common_cpu", "common_pid", "caller_offs")
OFF, ON = 0, 1


@dataclass(frozen=True, slots=True)
class CriticalSections:
    """What ``critical_sections`` found. Times in ns (ticks of the clock where it does not count ns).

    Attributes
    ----------
    kind, by : str
    table : Table
        ``caller`` (of the function that began the section) or ``cpu``; ``count``, ``min``, ``mean``, ``max``, ``total`` and
        percentiles; ``lost``: sections that are not counted, because records of that CPU were lost
        inside. Longest total first, or by CPU.
    total : Table
        One row: the same over all.
    histogram : Table
        ``caller`` or ``cpu``; ``low``, ``high`` (inclusive), ``count``: from each power of two to the next (or finer).
    worst : Table
        The longest: ``duration``, ``began``, ``ended``, ``cpu``, ``pid``, ``comm`` (at its begin), ``caller``,
        ``ended_by``.
    open : Table
        Sections that were not over at the end: ``cpu``, ``began``, ``lasted`` (until the end of the trace), ``pid``,
        ``comm``, ``caller``.
    repeated : int
        Events that began a section inside of one: left out.
    unbegun : int
        Ends of sections whose begin is not in the recording.
    """

    kind: str
    by: str
    table: Table
    total: Table
    histogram: Table
    worst: Table
    open: Table
    repeated: int
    unbegun: int


def critical_sections(trace: Trace, kind: str = "irq", *, by: str = "caller", percentiles: Sequence[float] = PERCENTILES,
                      worst: int = WORST, fineness: int = 0) -> CriticalSections:
    """How long interrupts (preemption) were off, from irq_disable to irq_enable (preempt_disable to preempt_enable).

    Rules:

    - Sections are those of a CPU: one that begins in one task may end in another.
    - The kernel records the outermost switch alone. Where another one says "off" inside a section, records are missing
      or the tracer was blind: the first one counts, and the others are counted (``repeated``).
    - An end with no begin before it is counted (``unbegun``); a begin with no end is listed (``open``).
    - Where records of the CPU were lost inside, a section is counted as ``lost`` alone.
    - A CPU that idles with preemption off is in a section all the while; the kernel's own tracers leave that time out.
    - Events at the same time count in the order of the trace's records. Times that step back count as 0.
    - Of a trace with several buffers the first that has such events is looked at.

    Parameters
    ----------
    trace : Trace
        Windows of it, by time and CPU, are fine.
    kind : {"irq", "preempt"}
    by : {"caller", "cpu"}
        Rows of the table: functions that switched off, or CPUs.
    percentiles : list of float
        Columns ``p50`` and so on: by nearest rank, less than 1 % above the real value.
    fineness : int
        Of the histograms: 2 ** fineness buckets from each power of two to the next (at most 7: below 1 % wide).
    worst : int
        How many of the longest sections to list.

    Returns
    -------
    CriticalSections

    Raises
    ------
    EventNotFoundError
        The recording cannot hold the events.
    """
    check_trace(trace)
    percentiles = check_percentiles(percentiles)
    worst, fineness = check_count("worst", worst), check_fineness(fineness)
    if kind not in EVENTS:
        raise ValueError(f"kind is one of {', '.join(map(repr, EVENTS))}, not {kind!r}")
    if by not in ("caller", "cpu"):
        raise ValueError(f"by is 'caller' or 'cpu', not {by!r}")
    names = EVENTS[kind]
    for name in names:
        require_events(trace, [name], f"sections of kind {kind!r}")
    trace = one_buffer(trace, names)
    found = _Sums(by, worst)
    pairer = Pairer()
    keys = [trace[name].key for name in names]
    columns = {key: [c for c in WANTED if c == ORDER or c in trace[key].columns] for key in keys}
    for step, lost in trace.steps(keys, columns, step_size=STEP):
        found.gaps.add(lost)
        found.add(pairer.pair(step_rows(step[keys[0]], step[keys[1]])))
    return found.result(trace, kind, pairer, percentiles, fineness)


# ---- pairs ----


@dataclass(frozen=True, slots=True)
class Rows(Columns):
    """Switches off and on."""

    order: np.ndarray  # as the trace has them
    kind: np.ndarray
    ts: np.ndarray
    cpu: np.ndarray
    pid: np.ndarray
    caller: np.ndarray  # distance from _stext


@dataclass(frozen=True, slots=True)
class Sections(Columns):
    began: np.ndarray
    ended: np.ndarray
    cpu: np.ndarray
    pid: np.ndarray
    caller: np.ndarray
    ended_by: np.ndarray

    @classmethod
    def none(cls) -> Sections:
        return cls(*([np.empty(0, np.int64)] * 6))


NO_ROWS = Rows(*(np.empty(0, dtype) for dtype in (np.int64, np.int8, np.int64, np.int32, np.int32, np.int64)))


def step_rows(off: Table, on: Table) -> Rows:
    """Both events of a step: first all "off", then all "on"."""
    return Rows.joined([_rows(kind, t) for kind, t in ((OFF, off), (ON, on))])


def _rows(kind: int, t: Table) -> Rows:
    return Rows(t[ORDER], np.full(t.num_rows, kind, np.int8), integers(t, "common_ts", np.int64),
                integers(t, "common_cpu", np.int32), integers(t, "common_pid", np.int32),
                integers(t, "caller_offs", np.int64, 0))


class Pairer:
    """Pairs the rows of one step after another; of each CPU that is in a section its first row is carried on."""

    def __init__(self) -> None:
        self.repeated = 0
        self.unbegun = 0
        self.open = NO_ROWS

    def pair(self, new: Rows) -> Sections:
        """The sections that end in this step."""
        rows = Rows.joined([self.open, new])
        if not len(rows):
            return Sections.none()
        order = by_cpu(rows)
        cpu, is_off = rows.cpu[order], rows.kind[order] == OFF
        is_inside = np.concatenate([[False], is_off[:-1] & (cpu[1:] == cpu[:-1])])  # the CPU's row before says "off"
        marks = np.flatnonzero(is_off != is_inside)  # begins and ends, of each CPU in turn
        is_end = ~is_off[marks]
        closes = np.append(is_end, False)[1:]  # the next one ends it
        begun, closed = order[marks[closes]], order[marks[is_end]]
        self.repeated += int((is_off & is_inside).sum())
        self.unbegun += int((~is_off & ~is_inside).sum())
        first, last = rows.taken(begun), rows.taken(closed)
        self.open = rows.taken(order[marks[~is_end & ~closes]])
        return Sections(first.ts, last.ts, first.cpu, first.pid, first.caller, last.caller)


def by_cpu(rows: Rows) -> np.ndarray:
    """The order that brings rows of one CPU together, in order: what was carried on is older than all of the step."""
    order = np.argsort(rows.order, kind="stable")
    together: np.ndarray = order[np.argsort(rows.cpu[order].astype(np.uint16), kind="stable")]  # a radix sort
    return together


# ---- sums ----


@dataclass
class _Sums:
    by: str
    most: int
    gaps: CpuGaps = field(default_factory=CpuGaps)
    keys: Keys = field(default_factory=Keys)
    samples: Samples = field(default_factory=Samples)
    lost: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    worst: Sections = field(default_factory=Sections.none)

    def add(self, found: Sections) -> None:
        lost = self.gaps.touch(found.cpu, found.began, found.ended)
        groups = self.keys.groups(found.caller if self.by == "caller" else found.cpu)
        self.lost = np.concatenate([self.lost, np.zeros(len(self.keys) - len(self.lost), np.int64)])
        np.add.at(self.lost, groups[lost], 1)
        whole = found.taken(~lost)
        self.samples.add(groups[~lost], whole.ended - whole.began)
        self.samples.grow(len(self.keys))
        both = Sections.joined([self.worst, whole.taken(among_longest(whole.ended - whole.began, self.most, 1 - (1 << 63)))])
        self.worst = both.taken(np.lexsort((both.began, both.began - both.ended))[: self.most])

    def result(self, trace: Trace, kind: str, pairer: Pairer, percentiles: Sequence[float], fineness: int) -> CriticalSections:
        names = Callers(trace)
        samples, lost, keys = self.samples, self.lost, self.keys.values.astype(np.int64)
        heading: dict[str, Any] = {"cpu": keys}
        if self.by == "caller":  # call sites of one function are one row
            functions, groups = np.unique(names.names(keys), return_inverse=True)
            samples = samples.merged(groups, len(functions))
            lost = np.bincount(groups, weights=lost, minlength=len(functions)).astype(np.int64)
            heading = {"caller": functions}
        order = np.argsort(keys) if self.by == "cpu" else np.argsort(-samples.total, kind="stable")
        summed = table({**heading, "count": samples.count, "min": samples.least, "mean": samples.mean, "max": samples.max,
                        "total": samples.total, **samples.percentiles(percentiles), "lost": lost})
        return CriticalSections(kind, self.by, rows_of(summed, order), total_table(samples, percentiles, lost=lost),
                                histogram_table(table(heading), samples, order, fineness), self.worst_table(trace, names),
                                open_table(trace, names, pairer.open), pairer.repeated, pairer.unbegun)

    def worst_table(self, trace: Trace, names: Callers) -> Table:
        w = self.worst
        return table({"duration": np.maximum(w.ended - w.began, 0), "began": w.began, "ended": w.ended, "cpu": w.cpu,
                      "pid": w.pid, "comm": comms_of(trace, w.pid), "caller": names.names(w.caller),
                      "ended_by": names.names(w.ended_by)})


def open_table(trace: Trace, names: Callers, rows: Rows) -> Table:
    end = trace.end
    return table({"cpu": rows.cpu, "began": rows.ts, "lasted": (end if end is not None else 0) - rows.ts,
                  "pid": rows.pid, "comm": comms_of(trace, rows.pid), "caller": names.names(rows.caller)})


def comms_of(trace: Trace, pids: np.ndarray) -> np.ndarray:
    return np.array([trace.comms[pid] for pid in pids.tolist()], object)


class Callers:
    """Names of the functions that distances from ``_stext`` lie in (K:include/trace/events/preemptirq.h)."""

    def __init__(self, trace: Trace) -> None:
        self._symbols = trace.symbols
        self._base = trace.symbols.by_name("_stext")

    def names(self, distances: np.ndarray) -> np.ndarray:
        if self._base is None:
            return np.array([f"_stext{d:+#x}" for d in distances.tolist()], object)
        addresses = [(self._base + d) % (1 << 64) for d in distances.tolist()]
        known = self._symbols.names_of(np.array(addresses, np.uint64))
        texts = zip(known.tolist(), addresses, strict=True)
        return np.array([f"{address:#x}" if name is None else name for name, address in texts], object)
