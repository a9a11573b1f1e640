"""Texts for Python: lines of a trace, the text of each event, the line of one event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, fields
from itertools import dropwhile
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bytecode import CompileError
from ..codegen import Scope
from ..formats import EventFormat
from ..recording import Recording
from ..table import as_objects, near_names, read_only
from . import tracecmd
from .bodies import EventTexts, kernel_texts, trace_cmd_texts
from .columns import kernel_release, trace_cmd_columns
from .lineplan import Column, LinePlan, Op, literal
from .lines import Line, Names
from .record import Value, encoded
from .render import TraceCmdRequest, counts_seconds, graph_bodies, trace_cmd_report
from .writer import line_writer

if TYPE_CHECKING:
    from ..event import Event
    from ..trace import Trace
    from .kernelreport import KernelRequest

STYLES = ("trace-cmd", "kernel")
SEPARATOR = "\0\1\1\1"  # between bodies: hardly in one; no end of it is its beginning, so that none overlaps with a body's
THE_CLOCKS = frozenset({"seconds"})  # not for the caller to say


def check_style(style: Any) -> None:
    if style not in STYLES:
        raise ValueError(f"style is one of {', '.join(map(repr, STYLES))}, not {style!r}")


# ---- lines of a trace ----


def report_pieces(trace: Trace, request: TraceCmdRequest | KernelRequest) -> Iterator[bytes]:
    """A whole report, in pieces of some lines."""
    several = len(trace.recording.files) > 1
    if not isinstance(request, TraceCmdRequest):
        from .kernelreport import kernel_report

        if several:
            from .together import kernel_report_together

            return kernel_report_together(trace, request)
        return kernel_report(trace, request)
    if several:
        from .together import report_together

        return report_together(trace, request)
    return trace_cmd_report(trace, request)


def lines(trace: Trace, style: str, options: dict[str, Any]) -> Iterator[str]:
    """See Trace.lines."""
    check_style(style)
    options = dict(options)
    heading = checked("heading", options.pop("heading", True), bool)
    request = trace_cmd_request(options) if style == "trace-cmd" else kernel_request(options)
    found = text_lines(report_pieces(trace, request))
    return found if heading else without_heading(found, style)


def text_lines(pieces: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        if whole:
            yield from printable(b"\n".join(whole)).split("\n")
    if rest:
        yield printable(rest)


def without_heading(found: Iterator[str], style: str) -> Iterator[str]:
    """The lines after those that tell of the recording."""
    return dropwhile((lambda line: line.startswith("#")) if style == "kernel" else is_cpus_line, found)


def is_cpus_line(line: str) -> bool:
    """Whether it says how many CPUs there were, of one of several files perhaps."""
    head, equals, count = line.rpartition("cpus=")
    return bool(equals) and count.isdigit() and (not head or head.endswith(": "))


def printable(text: bytes) -> str:
    """What is no UTF-8 becomes escapes, as in Arrow."""
    return text.decode("utf-8", "backslashreplace")


def checked(name: str, value: Any, kind: type) -> Any:
    """An option's value: a bool, an int, a str, or a tuple of str made of any collection of them."""
    if kind is tuple:
        if isinstance(value, str) or not all(isinstance(v, str) for v in value):
            raise TypeError(f"{name} is a list of str")
        return tuple(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{name} is {'an' if kind is int else 'a'} {kind.__name__}, not {type(value).__name__}")
    return value


def settable(cls: type[Any]) -> dict[str, type]:
    """What a caller may set of a dataclass: names and types of its fields that have a plain default."""
    return {f.name: type(f.default) for f in fields(cls) if f.default is not MISSING and f.name not in THE_CLOCKS}


def chosen(options: dict[str, Any], style: str, *classes: type[Any]) -> list[dict[str, Any]]:
    """The options for each of some dataclasses."""
    known = {name: kind for cls in classes for name, kind in settable(cls).items()}
    for name in options:
        if name not in known:
            raise TypeError(near_names(f"option of style {style}", name, ["heading", *known]))
    return [{n: checked(n, options[n], kind) for n, kind in settable(cls).items() if n in options} for cls in classes]


def trace_cmd_request(options: dict[str, Any]) -> TraceCmdRequest:
    layout, rest = chosen(options, "trace-cmd", tracecmd.Options, TraceCmdRequest)
    return TraceCmdRequest(tracecmd.Options(**layout), **rest)


def kernel_request(options: dict[str, Any]) -> KernelRequest:
    from .kernelreport import KernelRequest

    return KernelRequest(**chosen(options, "kernel", KernelRequest)[0])


# ---- the text of each event ----


def bodies(trace: Trace, event: str, style: str) -> np.ndarray:
    """See EventView.text."""
    check_style(style)
    files = trace.recording.files
    printers = [event_texts(file, style) for file in files]
    names = [Names(file.comms, file.tgids, kernel=style == "kernel") for file in files]
    if len(files) == 1:
        found, rows = bodies_at_once(trace, event, printers[0], names[0])
        if len(found) == rows:
            return read_only(as_objects(found))
    of_buffer = [texts for texts, file in zip(printers, files, strict=True) for _ in file.buffers]
    by_file = dict(zip(map(id, files), names, strict=True))
    records = trace.objects(Line, lambda file: by_file[id(file)], [event])
    return read_only(as_objects([printable(of_buffer[r.buffer](r).removesuffix(b"\n")) for r in records]))


def event_texts(recording: Recording, style: str) -> EventTexts:
    if style == "trace-cmd":
        return trace_cmd_texts(recording)
    clock = recording.buffers[0].clock if recording.buffers else "local"
    from .options import make_options

    options, release = make_options(None, None, clock), kernel_release(recording.container.uname)
    return kernel_texts(recording, options, release, title=False)


def bodies_at_once(trace: Trace, event: str, texts: EventTexts, names: Names) -> tuple[list[str], int]:
    """The bodies by the core's lines, and how many there have to be: one that holds the separator falls in two."""
    separator = SEPARATOR.encode()
    plan = LinePlan((Column(Op.BODY), literal(separator)), trace_cmd_columns())
    writer, judge = line_writer(trace, names, plan, lambda pair: texts.program(trace.recording.format(*pair)), texts.renderer,
                                lambda record, previous, index: texts(record) + separator, events=[event])
    out: list[str] = []
    for piece in writer:
        out += [body.removesuffix("\n") for body in printable(piece).split(SEPARATOR)[:-1]]
    judge.finish()
    return out, writer.lines


def refusal(recording: Recording, fmt: EventFormat) -> str | None:
    """Why an event's print format cannot be understood; None where it can. Such an event is printed by its fields."""
    from .kernelbodies import KernelOptions, compile_understood

    scope = Scope(fmt, recording.container.big_endian, recording.abi.long_size,
                  address=lambda name: recording.symbols.by_name(name))
    try:
        compile_understood(scope, KernelOptions(version=kernel_release(recording.container.uname)))
    except CompileError as error:
        return str(error)
    return None


# ---- the line of one event ----


class Shown:
    """An Event as layouts want it."""

    __slots__ = ("_names", "event")

    def __init__(self, event: Event, names: Names) -> None:
        self.event, self._names = event, names

    @property
    def ts(self) -> int:
        return self.event.ts

    @property
    def cpu(self) -> int:
        return self.event.cpu

    @property
    def pid(self) -> int:
        return self.event.pid or 0  # a damaged record may be too short to hold it

    @property
    def flags(self) -> int:
        return self.event.flags or 0

    @property
    def preempt_count(self) -> int:
        return self.event.preempt_count or 0

    @property
    def comm(self) -> bytes:
        return self._names.comm(self.pid)

    @property
    def tgid(self) -> int | None:
        return self._names.tgids.get(self.pid)

    @property
    def lost(self) -> int | None:
        return self.event.lost

    @property
    def buffer(self) -> int:
        return self.event.buffer

    @property
    def format(self) -> EventFormat:
        fmt: EventFormat = self.event.format
        return fmt

    @property
    def payload(self) -> bytes:
        return self.event.payload

    def value(self, name: str) -> Value:
        value = self.event[name]
        return encoded(value) if isinstance(value, str) else value


def event_lines(recording: Recording, buffers: Sequence[str]) -> Callable[[Event], str]:
    """What makes ``str(event)``: the line that ``trace.lines()`` has for it, but for calls that are drawn with their return.

    Parameters
    ----------
    recording : Recording
        Of the event's file.
    buffers : sequence of str
        Names of the buffers of all files.
    """
    options = tracecmd.Options(seconds=counts_seconds(recording, recording.correction))
    plan = tracecmd.line_plan(options, trace_cmd_columns(), buffers=buffers or [""])
    line = tracecmd.Lines(options, plan, trace_cmd_texts(recording), graph_bodies(recording, options))
    names = Names(recording.comms, recording.tgids, kernel=False)
    return lambda event: printable(line.alone(Shown(event, names))).removesuffix("\n")
