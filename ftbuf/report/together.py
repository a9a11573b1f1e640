"""A report over several files, as ``trace-cmd report -i A -i B`` or as their kernels print it: each with its own formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import UnsupportedError
from ..merged import file_labels
from ..opening import clock_change
from ..recording import Recording
from ..sections import LATENCY_TRACERS
from . import tracecmd
from .bodies import say_unprinted, trace_cmd_texts
from .columns import trace_cmd_columns
from .kernelreport import Kernel, KernelRequest, options_of
from .lineplan import with_next
from .lines import Line, Names
from .options import Options
from .record import LineRecord, encoded
from .render import TraceCmdRequest, counts_seconds, cpu_count, graph_bodies
from .wakeups import Wakeups

if TYPE_CHECKING:
    from ..trace import Trace

def kernel_report_together(trace: Trace, request: KernelRequest) -> Iterator[bytes]:
    """The lines that the kernels' ``trace`` files would show, in time order, each with the name of its file.

    Each file has its own heading, and its own options; of instances only the top one is shown, as in its own report.

    Raises
    ------
    UnsupportedError
        One of the files draws a graph, shows a tracer's longest section, or is a text.
    """
    recording = trace.recording
    if request.buffer == "snapshot":
        raise UnsupportedError("snapshots are shown one by one")
    options = [options_of(file, request) for file in recording.files]
    for file, own in zip(recording.files, options, strict=True):
        if own.draws_graph or own.tracer in (*LATENCY_TRACERS, "blk") or file.container.text is not None:
            raise UnsupportedError(f"{file.container.path}: what {own.tracer} shows cannot be merged with other files")
    return _kernel_lines(trace, options)


def _kernel_lines(trace: Trace, options: Sequence[Options]) -> Iterator[bytes]:
    from ..trace import Trace

    recording = trace.recording
    kernels = [Kernel(Trace(file, trace.selection, errors="skip"), own)
               for file, own in zip(recording.files, options, strict=True)]
    labels = file_names(recording)
    for label, own in zip(labels, kernels, strict=True):
        yield b"# file: %s\n" % label
        yield from own.heading()
    width = max(map(len, labels))
    printers = [own.printer(b"%*s: " % (width, label)) for own, label in zip(kernels, labels, strict=True)]
    of_buffer = [printer if i == 0 else None
                 for printer, file in zip(printers, recording.files, strict=True) for i in range(len(file.buffers))]
    names = {id(file): own.names for file, own in zip(recording.files, kernels, strict=True)}
    shown = (r for r in trace.objects(Line, lambda file: names[id(file)]) if of_buffer[r.buffer] is not None)
    for index, (record, following) in enumerate(with_next(shown)):
        printer = of_buffer[record.buffer]
        assert printer is not None
        yield printer(record, following, index)
    say_unprinted([own.texts for own in kernels], trace.errors)


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
    say_unprinted(printers, trace.errors)


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
    names = file_names(recording)
    for name, file in zip(names, recording.files, strict=True):
        yield name.rjust(max(map(len, names))) + b": cpus=%d\n" % cpu_count(file)


def file_names(recording: Recording) -> list[bytes]:
    """What lines and headings call the files."""
    return [encoded(label) for label in file_labels([file.container.path for file in recording.files])]


def per_file(recording: Recording, printers: Sequence[Print]) -> Print:
    """Prints a record with what was made for its file."""
    of_buffer = [p for p, file in zip(printers, recording.files, strict=True) for _ in file.buffers]
    return lambda record: of_buffer[record.buffer](record)
