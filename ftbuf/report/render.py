"""A whole report in trace-cmd's style: which clock, which records, in which order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..clock import Correction
from ..recording import Recording
from . import calls, tracecmd
from .bodies import EventTexts, say_unprinted, trace_cmd_texts
from .columns import trace_cmd_columns
from .lineplan import LinePlan
from .lines import Names, lines
from .symbols import Spelling
from .wakeups import Wakeups
from .writer import can_write, line_writer

if TYPE_CHECKING:
    from ..trace import Trace


@dataclass(frozen=True, slots=True)
class TraceCmdRequest:
    """What a report in trace-cmd's style shows."""

    options: tracecmd.Options = field(default_factory=tracecmd.Options)
    plugins: bool = True  # -N
    ts2secs: int = 0
    raw_ts: bool = False
    ts_offset: int = 0
    align_ts: bool = False
    wakeups: bool = False  # -w


def with_clock(trace: Trace, request: TraceCmdRequest) -> tuple[Trace, tracecmd.Options]:
    """The trace on the report's clock, and the options with the unit that this gives."""
    from ..trace import Trace

    recording = trace.recording
    correction = recording.correction
    if request.raw_ts:
        correction = Correction()
    elif request.ts2secs:
        correction = replace(correction, mult=0, shift=0, hz=request.ts2secs)
    if request.ts_offset and not request.raw_ts:
        correction = replace(correction, offset=correction.offset + request.ts_offset)
    seconds = not request.raw_ts and counts_seconds(recording, correction)
    if request.align_ts:
        first = Trace(recording.variant(correction=correction), trace.selection, errors="skip").start
        correction = replace(correction, offset=correction.offset - (first or 0))
    corrected = recording.variant(correction=correction)
    return Trace(corrected, trace.selection, errors=trace.errors), replace(request.options, seconds=seconds)


def counts_seconds(recording: Recording, correction: Correction) -> bool:
    """Whether times of a recording are seconds under a correction; else they are numbers."""
    clock = recording.buffers[0].clock if recording.buffers else "local"
    return clock in tracecmd.SECONDS_CLOCKS or correction.mult != 0 or correction.hz != 0


def trace_cmd_report(trace: Trace, request: TraceCmdRequest) -> Iterator[bytes]:
    """What ``trace-cmd report`` would print."""
    recording = trace.recording
    yield b"cpus=%d\n" % cpu_count(recording)
    if recording.container.text is not None:
        yield recording.container.text + b"\n"
        return
    trace, options = with_clock(trace, request)
    recording = trace.recording
    names = Names(recording.comms, recording.tgids, kernel=False)
    texts = trace_cmd_texts(recording, plugins=request.plugins, is_raw=options.is_raw)
    graphs = graph_bodies(recording, options) if request.plugins and not options.raw else None
    plan = tracecmd.line_plan(options, trace_cmd_columns(), buffers=[b.name for b in recording.buffers] or [""])
    waits = Wakeups(options.seconds) if request.wakeups else None
    printer = tracecmd.Lines(options, plan, waits.noting(texts) if waits else texts, graphs)
    if can_write(trace) and not any(printer.draws("ftrace", name) for name in options.raw_events):
        yield from _written(trace, names, plan, texts, printer, options, waits)
    else:
        yield from printer.print(lines(trace, names))
    if waits:
        yield from waits.summary()
    say_unprinted([texts], trace.errors)


def _written(
    trace: Trace, names: Names, plan: LinePlan, texts: EventTexts, printer: tracecmd.Lines, options: tracecmd.Options,
    waits: Wakeups | None,
) -> Iterator[bytes]:
    """Lines by the core, those of calls and returns, too."""
    from .drawn import DrawnFallBack, call_of, programs

    recording = trace.recording
    fall_back = DrawnFallBack(printer)

    def program(pair: tuple[str, str]) -> Any:
        if waits and waits.watches(*pair):
            return None
        fmt = recording.format_or_common(pair)
        return programs(texts, fmt, options) if printer.draws(*pair) else texts.program(fmt)

    writer, judge = line_writer(trace, names, plan, program, texts.renderer, fall_back,
                                calls=lambda pair: call_of(recording, pair, printer))
    yield from writer
    yield fall_back.rest()
    judge.finish()


def graph_bodies(recording: Recording, options: tracecmd.Options) -> tracecmd.GraphBodies:
    """What draws calls."""
    spell = Spelling(recording.symbols, recording.abi.long_size, trace_cmd=True)
    return tracecmd.GraphBodies(options, spell, calls.CallReader(big_endian=recording.container.big_endian))


def cpu_count(recording: Recording) -> int:
    """The number of CPUs of the recording machine."""
    declared = next(
        (o.value for o in recording.container.options if o.name == "CPUCOUNT" and isinstance(o.value, int)), 0
    )
    cpus = {s.cpu for b in recording.container.buffers for s in b.streams}
    return max(declared, recording.container.cpu_count, max(cpus, default=-1) + 1)
