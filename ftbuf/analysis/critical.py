"""How long interrupts or preemption were off: sections between the events that say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _core
from ..plan import ORDER
from ..table import Table
from ..trace import Trace
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
    - Of several buffers the first that has such events is looked at (BufferWarning).

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
        require_events(trace, [name], f"a section of kind {kind!r}")
    trace = one_buffer(trace, names)
    found = _Sums(by, worst)
    core = _core.Sections()
    keys = [trace[name].key for name in names]
    columns = {key: [c for c in WANTED if c == ORDER or c in trace[key].columns] for key in keys}
    for step, lost in trace.steps(keys, columns, step_size=STEP):
        found.gaps.add(lost)
        found.add(np.frombuffer(core.step(*(edge_rows(step[key]) for key in keys)), SECTION))  # type: ignore[call-overload]
    return found.result(trace, kind, core, percentiles, fineness)


# ---- sections ----

# csrc/ftb_sections.h ftb_section, ftb_off
SECTION = np.dtype([("began", np.int64), ("ended", np.int64), ("caller", np.int64), ("ended_by", np.int64), ("pid", np.int32),
                    ("cpu", np.uint32)])
OFF = np.dtype([("since", np.int64), ("caller", np.int64), ("pid", np.int32), ("is_open", np.uint32)])


def edge_rows(t: Table) -> tuple[np.ndarray, ...]:
    """Rows of one event: order, ts, cpu, pid, and the caller's distance from _stext."""
    return (t[ORDER], integers(t, "common_ts", np.int64), integers(t, "common_cpu", np.uint16),
            integers(t, "common_pid", np.int32), integers(t, "caller_offs", np.int64, 0))


# ---- sums ----


@dataclass
class _Sums:
    by: str
    most: int
    gaps: CpuGaps = field(default_factory=CpuGaps)
    keys: Keys = field(default_factory=Keys)
    samples: Samples = field(default_factory=Samples)
    lost: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    least: int = 1 - (1 << 63)  # a shorter section is not among the worst
    worst: np.ndarray = field(default_factory=lambda: np.zeros(0, SECTION))

    def add(self, found: np.ndarray) -> None:
        """Sections (SECTION) that ended."""
        lost = self.gaps.touch(found["cpu"], found["began"], found["ended"])
        groups = self.keys.groups(found["caller"] if self.by == "caller" else found["cpu"])
        self.lost = np.concatenate([self.lost, np.zeros(len(self.keys) - len(self.lost), np.int64)])
        if lost.any():
            np.add.at(self.lost, groups[lost], 1)
            found, groups = found[~lost], groups[~lost]
        duration = found["ended"] - found["began"]
        self.samples.add(groups, duration)
        self.samples.grow(len(self.keys))
        both = np.concatenate([self.worst, found[among_longest(duration, self.most, self.least)]])
        order = np.lexsort((both["began"], both["began"] - both["ended"]))
        self.worst = both[order[: self.most]]
        if 0 < self.most <= len(both):
            self.least = int(self.worst["ended"][-1] - self.worst["began"][-1])

    def result(self, trace: Trace, kind: str, core: Any, percentiles: Sequence[float], fineness: int) -> CriticalSections:
        names = Callers(trace)
        samples, lost, keys = self.samples, self.lost, self.keys.values
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
                                open_table(trace, names, core.open()), core.repeated, core.unbegun)

    def worst_table(self, trace: Trace, names: Callers) -> Table:
        w = self.worst
        return table({"duration": np.maximum(w["ended"] - w["began"], 0), "began": w["began"], "ended": w["ended"],
                      "cpu": w["cpu"].astype(np.int64), "pid": w["pid"], "comm": comms_of(trace, w["pid"]),
                      "caller": names.names(w["caller"]), "ended_by": names.names(w["ended_by"])})


def open_table(trace: Trace, names: Callers, rows: bytes) -> Table:
    off, end = np.frombuffer(rows, OFF), trace.end
    cpus = np.flatnonzero(off["is_open"])
    off = off[cpus]
    return table({"cpu": cpus, "began": off["since"], "lasted": (end if end is not None else 0) - off["since"],
                  "pid": off["pid"], "comm": comms_of(trace, off["pid"]), "caller": names.names(off["caller"])})


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
