"""What the osnoise, timerlat and hwlat tracers measured, summed up as rtla does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import EventNotFoundError
from ..survey import encoded
from ..table import Encoded, Table
from ..trace import Trace
from .irqs import symbols_of
from .sched import one_buffer
from .stats import PERCENTILES, Keys, Samples
from .steps import Counters
from .tables import histogram_table, integers, rows_of, stacked, table
from .wanted import check_count, check_percentiles, check_trace, has, require_readable

OSNOISE, TIMERLAT, HWLAT = "ftrace:osnoise", "ftrace:timerlat", "ftrace:hwlat"
COUNTS = ("hw", "nmi", "irq", "softirq", "thread")  # of interferences, in fields NAME_count
CONTEXTS = {0: "irq", 1: "thread", 2: "user"}  # K:trace_osnoise.c timerlat contexts
# event -> what the noise is, its number, its name
SOURCES = {"nmi_noise": ("nmi", "", ""), "irq_noise": ("irq", "vector", "desc"), "softirq_noise": ("softirq", "vector", ""),
           "thread_noise": ("thread", "pid", "comm"), "sample_threshold": ("any", "", "")}
STEP = "4 MB"
SAMPLE = "osnoise:sample_threshold"
BUCKET_SIZE, ENTRIES = 1, 256  # of a histogram of rtla: us, and how many; longer ones count as "over"
MOST_ENTRIES, LARGEST_BUCKET = 9_999_999, 999_999  # that rtla takes
FINENESS = 3  # of the whole distribution: eight buckets between a power of two and the next


@dataclass(frozen=True, slots=True)
class Noise:
    """What ``noise`` found; a table of something that was not recorded has no rows.

    Attributes
    ----------
    osnoise : Table
        A row for each CPU: periods; runtime, noise in us; available (share of the time without noise), max_noise (of a
        period), max_single in us; hw, nmi, irq, softirq, thread: interferences.
    timerlat : Table
        A row for each CPU and context ("irq", "thread", "user"): count, last, min, mean, max, percentiles, in ns; total_us:
        the sum of whole microseconds, which rtla averages.
    samples : Table
        Samples above the threshold (sample_threshold), with the columns of timerlat.
    histogram : Table
        tool ("timerlat", "osnoise": of samples), cpu, context ("" of osnoise), us (where a bucket begins; that of
        ``entries * bucket_size``: so many or more), count.
    distribution : Table
        The same up to the longest, in buckets that grow with the times, eight from a power of two to the next: tool, cpu,
        context, low, high (inclusive) in ns, count.
    hwlat : Table
        A row for each CPU: samples, max_inner, max_outer in us; count (of latencies above the threshold), nmi_count,
        nmi_time in ns.
    sources : Table
        Where noise came from: kind ("nmi", "irq", "softirq", "thread"; "any": all of a sample above the threshold), id
        (vector, pid), name, count, time, mean, min, max, percentiles in ns. The most time first.
    """

    osnoise: Table
    timerlat: Table
    samples: Table
    histogram: Table
    distribution: Table
    hwlat: Table
    sources: Table


def noise(trace: Trace, *, percentiles: Sequence[float] = PERCENTILES, bucket_size: int = BUCKET_SIZE,
          entries: int = ENTRIES) -> Noise:
    """Sum up the records of the osnoise, timerlat and hwlat tracers, and of the osnoise events.

    Parameters
    ----------
    percentiles : list of float
        Columns ``p50`` and so on: by nearest rank, less than 1 % above the real value.
    bucket_size : int
        Of the histogram, in us, up to 999999.
    entries : int
        How many buckets the histogram has before the one of all that is longer, up to 9999999.

    Returns
    -------
    Noise

    Raises
    ------
    EventNotFoundError
        The recording can hold none of these records.
    ValueError
        A number is out of its range.
    """
    check_trace(trace)
    percentiles = check_percentiles(percentiles)
    buckets = check_buckets(bucket_size, entries)
    events = [name for name in (OSNOISE, TIMERLAT, HWLAT, *(f"osnoise:{s}" for s in SOURCES)) if has(trace, name)]
    if not events:
        require_readable(trace, (OSNOISE, TIMERLAT, HWLAT))
        raise EventNotFoundError("noise is told by the records of osnoise, timerlat and hwlat, which the recording does "
                                 "not have")
    trace = one_buffer(trace, events)
    parts = OsnoisePart(), LatencyPart("timerlat", *buckets), HwlatPart()
    samples = LatencyPart("osnoise", *buckets)
    sources = [SourcePart(name, symbols_of(trace[name])) for name in events if name.startswith("osnoise:")]
    by_event: dict[str, Any] = dict(zip((OSNOISE, TIMERLAT, HWLAT), parts, strict=True))
    by_event |= {part.event: part for part in sources}
    columns = {trace[name].key: [c for c in by_event[name].wanted if c in trace[name].columns] for name in events}
    for step in trace.iterate(list(columns), columns, step_size=STEP):
        for name in events:
            rows = step[trace[name].key]
            if rows.num_rows:
                by_event[name].add(rows)
                if name == SAMPLE:
                    samples.add(rows)
    found = stacked([part.result(percentiles) for part in sources or [SourcePart("osnoise:nmi_noise", {})]])
    return Noise(parts[0].result(), parts[1].result(percentiles), samples.result(percentiles),
                 stacked([parts[1].histogram(), samples.histogram()]),
                 stacked([parts[1].distribution(), samples.distribution()]), parts[2].result(),
                 rows_of(found, np.argsort(-found["time"], kind="stable")))


def check_buckets(bucket_size: Any, entries: Any) -> tuple[int, int]:
    given = check_count("bucket_size", bucket_size), check_count("entries", entries)
    for name, value, most in zip(("bucket_size", "entries"), given, (LARGEST_BUCKET, MOST_ENTRIES), strict=True):
        if not 1 <= value <= most:
            raise ValueError(f"{name} is a number from 1 to {most}, not {value}")
    return given


def column(t: Table, name: str) -> np.ndarray:
    """A field; 0 where this kernel has none of that name."""
    return integers(t, name, np.int64, 0)


class OsnoisePart:
    """Periods of the osnoise tracer (K:trace_entries.h osnoise: times are in us)."""

    wanted = ("common_cpu", "noise", "runtime", "max_sample", *(f"{name}_count" for name in COUNTS))

    def __init__(self) -> None:
        self.cpus, self.noise, self.single, self.counters = Keys(), Samples(), Samples(), Counters()

    def add(self, t: Table) -> None:
        cpu = self.cpus.groups(column(t, "common_cpu"))
        self.noise.add(cpu, column(t, "noise"))
        self.single.add(cpu, column(t, "max_sample"))
        self.counters.add("runtime", cpu, column(t, "runtime"))
        for name in COUNTS:
            self.counters.add(name, cpu, column(t, f"{name}_count"))

    def result(self) -> Table:
        n = len(self.cpus)
        runtime = self.counters.of("runtime", n)
        with np.errstate(invalid="ignore"):
            available = (runtime - self.noise.total) / np.where(runtime > 0, runtime, np.nan)
        made = table({"cpu": self.cpus.values, "periods": self.noise.count, "runtime": runtime,
                      "noise": self.noise.total, "available": available, "max_noise": self.noise.max,
                      "max_single": self.single.max, **{name: self.counters.of(name, n) for name in COUNTS}})
        return rows_of(made, np.argsort(made["cpu"]))


class LatencyPart:
    """Latencies of the timerlat tracer, or samples of osnoise above the threshold: durations of a CPU and context."""

    wanted = ("common_cpu", "context", "timer_latency")

    def __init__(self, tool: str, bucket_size: int, entries: int) -> None:
        self.tool, self.field = tool, "timer_latency" if tool == "timerlat" else "duration"
        self.bucket_size, self.entries = bucket_size, entries
        self.keys, self.samples, self.counters = Keys(), Samples(), Counters()  # cpu << 8 | context
        self.cells = Keys()  # group * (entries + 1) + entry: of those that occur

    def add(self, t: Table) -> None:
        groups = self.keys.groups(column(t, "common_cpu") << 8 | np.clip(column(t, "context"), 0, 255))
        latency = np.maximum(column(t, self.field), 0)
        whole = latency // 1000
        self.samples.add(groups, latency)
        self.counters.add("us", groups, whole)
        entry = np.minimum(whole // self.bucket_size, self.entries)
        self.counters.add("cells", self.cells.groups(groups * np.int64(self.entries + 1) + entry))

    def headings(self) -> tuple[np.ndarray, list[str]]:
        """CPU and context of each group."""
        keys = self.keys.values
        names = [CONTEXTS.get(c, str(c)) for c in (keys & 255).tolist()]
        return keys >> 8, names if self.tool == "timerlat" else [""] * len(keys)

    def result(self, percentiles: Sequence[float]) -> Table:
        (cpu, context), samples = self.headings(), self.samples
        made = table({"cpu": cpu, "context": encoded(context), "count": samples.count, "last": samples.last,
                      "min": samples.least, "mean": samples.mean, "max": samples.max, **samples.percentiles(percentiles),
                      "total_us": self.counters.of("us", len(cpu))})
        return rows_of(made, np.argsort(self.keys.values))

    def histogram(self) -> Table:
        cpu, context = self.headings()
        groups, entry = np.divmod(self.cells.values, self.entries + 1)
        made = table({"tool": encoded([self.tool] * len(groups)), "cpu": cpu[groups],
                      "context": encoded([context[i] for i in groups.tolist()]), "us": entry * self.bucket_size,
                      "count": self.counters.of("cells", len(groups))})
        return rows_of(made, np.lexsort((entry, self.keys.values[groups])))

    def distribution(self) -> Table:
        cpu, context = self.headings()
        headings = table({"tool": encoded([self.tool] * len(cpu)), "cpu": cpu, "context": encoded(context)})
        return histogram_table(headings, self.samples, np.argsort(self.keys.values), FINENESS)


class HwlatPart:
    """Samples of the hwlat tracer (durations in us)."""

    wanted = ("common_cpu", "duration", "outer_duration", "count", "nmi_count", "nmi_total_ts")

    def __init__(self) -> None:
        self.cpus, self.inner, self.outer, self.counters = Keys(), Samples(), Samples(), Counters()

    def add(self, t: Table) -> None:
        cpu = self.cpus.groups(column(t, "common_cpu"))
        self.inner.add(cpu, column(t, "duration"))
        self.outer.add(cpu, column(t, "outer_duration"))
        for name in ("count", "nmi_count", "nmi_total_ts"):
            self.counters.add(name, cpu, column(t, name))

    def result(self) -> Table:
        n = len(self.cpus)
        made = table({"cpu": self.cpus.values, "samples": self.inner.count, "max_inner": self.inner.max,
                      "max_outer": self.outer.max, "count": self.counters.of("count", n),
                      "nmi_count": self.counters.of("nmi_count", n), "nmi_time": self.counters.of("nmi_total_ts", n)})
        return rows_of(made, np.argsort(made["cpu"]))


class SourcePart:
    """Interferences of one kind, told by an event of their own."""

    def __init__(self, event: str, symbols: dict[int, str]) -> None:
        self.event, self.symbols = event, symbols
        self.kind, self.number, self.name = SOURCES[event.removeprefix("osnoise:")]
        self.wanted = ("common_cpu", "duration", *(name for name in (self.number, self.name) if name))
        self.keys, self.samples = Keys(), Samples()
        self.names: dict[str, int] = {}  # -> their numbers

    def add(self, t: Table) -> None:
        number = column(t, self.number)
        names = t.column(self.name) if self.name in t else None
        self.samples.add(self.groups(number, names), column(t, "duration"))

    def groups(self, number: np.ndarray, names: Any) -> np.ndarray:
        """Places of pairs of number and name."""
        if not isinstance(names, Encoded):
            names = Encoded(np.zeros(len(number), np.int32), [""])
        places = np.array([self.names.setdefault(name, len(self.names)) for name in names.strings], np.int64)
        return self.keys.groups(number << 32 | places[names.codes])

    def labels(self) -> list[tuple[int, str]]:
        """Number and name of each group."""
        names = list(self.names)
        return [(key >> 32, names[key & 0xFFFFFFFF]) for key in self.keys.values.tolist()]

    def result(self, percentiles: Sequence[float]) -> Table:
        samples, labels = self.samples, self.labels()
        return table({"kind": encoded([self.kind] * len(labels)), "id": np.array([number for number, _ in labels], np.int64),
                      "name": encoded([name or self.symbols.get(number, "") for number, name in labels]),
                      "count": samples.count, "time": samples.total, "mean": samples.mean, "min": samples.least,
                      "max": samples.max, **samples.percentiles(percentiles)})
