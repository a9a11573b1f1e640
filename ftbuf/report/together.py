"""A report over several files, as ``trace-cmd report -i A -i B`` prints it: each with its own formats and names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..opening import clock_change
from ..recording import Recording
from . import tracecmd
from .bodies import trace_cmd_texts
from .columns import trace_cmd_columns
from .lines import Line, Names
from .record import LineRecord, encoded
from .render import TraceCmdRequest, counts_seconds, cpu_count, graph_bodies
from .wakeups import Wakeups

if TYPE_CHECKING:
    from ..trace import Trace

Print = Callable[[LineRecord], bytes]


def report_together(trace: Trace, request: TraceCmdRequest) -> Iterator[bytes]:
    """All lines in time order, each with the name of the file (and of the instance) that it is from."""
    yield from cpus_lines(trace.recording)
    trace, options = on_clock(trace, request)
    recording = trace.recording
    printers = [trace_cmd_texts(f, plugins=request.plugins, is_raw=options.is_raw) for f in recording.files]
    waits = Wakeups(options.seconds) if request.wakeups else None
    texts = per_file(recording, [waits.noting(p) for p in printers] if waits else printers)
    graphs = graph_bodies(recording, options) if request.plugins and not options.raw else None
    plan = tracecmd.line_plan(options, trace_cmd_columns(), buffers=[b.name for b in recording.buffers])
    records = trace.objects(Line, lambda file: Names(file.comms, file.tgids, kernel=False))
    yield from tracecmd.Lines(options, plan, texts, graphs).print(records)
    if waits:
        yield from waits.summary()


def on_clock(trace: Trace, request: TraceCmdRequest) -> tuple[Trace, tracecmd.Options]:
    """The trace on the report's clock, and the options with the unit that the first file's clock gives."""
    from ..trace import Trace

    change = clock_change(request.raw_ts, request.ts2secs or None, 0 if request.raw_ts else request.ts_offset)
    recording = trace.recording.corrected(change)
    seconds = not request.raw_ts and counts_seconds(trace.recording, change(trace.recording.correction))
    if request.align_ts:
        first = Trace(recording, trace.selection, errors="skip").start or 0
        recording = recording.corrected(lambda own: replace(own, offset=own.offset - first))
    return Trace(recording, trace.selection, errors=trace.errors), replace(request.options, seconds=seconds)


def cpus_lines(recording: Recording) -> Iterator[bytes]:
    """How many CPUs each file's machine had."""
    names = [encoded(os.path.basename(f.container.path)) for f in recording.files]
    for name, file in zip(names, recording.files, strict=True):
        yield name.rjust(max(map(len, names))) + b": cpus=%d\n" % cpu_count(file)


def per_file(recording: Recording, printers: Sequence[Print]) -> Print:
    """Prints a record with what was made for its file."""
    of_buffer = [p for p, file in zip(printers, recording.files, strict=True) for _ in file.buffers]
    return lambda record: of_buffer[record.buffer](record)
