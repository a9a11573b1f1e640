"""What each CPU of a recording has: the kernel's own counters, and what was read of its sub-buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .clock import counts_ns
from .engine import Judge, Run, Window
from .recording import Recording
from .requests import slots_request
from .survey import COUNTERS, TIMES, first_time, parse_stats


@dataclass(slots=True)
class CpuCounts:
    """One CPU of one buffer. None: not known."""

    buffer: str
    cpu: int
    kernel: dict[str, int | float]  # per_cpu/cpuN/stats: entries, overrun, commit overrun, bytes, ...
    events: int = 0  # records of the recording
    lost: int = 0  # that the kernel counted in the sub-buffers
    gaps: int = 0  # places where it lost any
    unknown_gaps: int = 0  # of these, without a count
    pages: int = 0
    bytes: int = 0  # of all sub-buffers
    start: int | None = None
    end: int | None = None
    events_per_second: float | None = None

    def to_dict(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "kernel"}
        return {**own, "kernel": {name: self.kernel.get(name) for name in (*COUNTERS, *TIMES)}}


def cpu_counts(recording: Recording) -> list[CpuCounts]:
    """One row for each buffer and CPU that has sub-buffers or counters, in one pass over the record headers."""
    sources = recording.sources()
    request, _ = slots_request(recording)
    run = Run(sources, Window(), request, Judge("skip"), at_once=False).to_end()
    result = run.result()
    rows = {(b.name, cpu): CpuCounts(b.name, cpu, parse_stats(text))
            for b in recording.buffers for cpu, text in b.stats.items()}
    in_ns = {b.name: counts_ns(b.clock, recording.correction) for b in recording.buffers}
    for i, (source, stats) in enumerate(zip(sources, result.stream_stats, strict=True)):
        key = source.buffer_name, source.stream.cpu
        row = rows.setdefault(key, CpuCounts(*key, {}))
        row.pages, row.events = stats[0], stats[1]
        row.bytes = sum(source.stream.sizes)
        counts = result.losses["count"][result.losses["stream"] == i]
        row.gaps, row.unknown_gaps = len(counts), int(np.count_nonzero(counts < 0))
        row.lost = int(counts[counts > 0].sum())
        if row.events:
            row.start, row.end = first_time(recording, source, Window()), stats[7]
            if in_ns[source.buffer_name] and row.start is not None and row.end > row.start:
                row.events_per_second = row.events * 1e9 / (row.end - row.start)
    return [rows[key] for key in sorted(rows)]
