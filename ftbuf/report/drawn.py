"""Calls and returns of a drawn graph in trace-cmd's style, as print fmts for the core; what they print is GraphBodies' text."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _core
from ..bytecode import CompileError
from ..formats import EventFormat, Field, Kind, Where
from ..recording import Recording
from .bodies import EventTexts
from .calls import MAX_INDENT, is_return
from .record import LineRecord
from .tracecmd import Lines, Options

CALL, RETURN = 1, 2  # csrc/ftb_line.h enum ftb_line_call_kind
Place = tuple[int, int]
_MARKS = (("$ ", 1_000_000_000), ("# ", 1_000_000), ("! ", 100_000), ("+ ", 10_000))


def find(fmt: EventFormat, name: str) -> Field | None:
    """A field that is a number."""
    field = fmt.find(name)
    return field if field is not None and field.kind is Kind.SCALAR and field.where is Where.INLINE else None


def value(fmt: EventFormat, name: str) -> str:
    return "0" if find(fmt, name) is None else f"REC->{name}"


def call_of(recording: Recording, pair: tuple[str, str], printer: Lines) -> tuple[int, Place, Place] | None:
    """What the core has to know of an event that is drawn: kind, places of the function and the depth."""
    if not printer.draws(*pair):
        return None
    fmt = recording.format_or_common(pair)
    func, depth = find(fmt, "func"), find(fmt, "depth")
    places = [(f.offset, f.size) if f is not None else (0, 0) for f in (func, depth)]
    return RETURN if pair[1] == "funcgraph_exit" else CALL, places[0], places[1]


def programs(texts: EventTexts, fmt: EventFormat, options: Options) -> _core.Program | tuple[_core.Program, ...] | None:
    """Of a call; of a return, and of a call and its return in one line. None where only the fallback can print them."""
    func, retval = find(fmt, "func"), find(fmt, "retval")
    if func is None or func.signed or (retval is not None and retval.signed):
        return None
    try:
        if fmt.name != "funcgraph_exit":
            return texts.compiled(fmt, f'"             |  {NAMED} {{", {named(fmt)}')
        head, time = _duration(fmt)
        tail, function = (" /* %ps */", ", REC->func") if options.tail else ("", "")
        ret, value_of = _returned(fmt, options)
        own = f'"{head}%*s}}{tail}{ret}", {time}, {indent(fmt)}, ""{function}{value_of}'
        leaf = f'"{head}{NAMED};{ret}", {time}, {named(fmt)}{value_of}'
        return texts.compiled(fmt, own), texts.compiled(fmt, leaf)
    except CompileError:
        return None


NAMED = "%*s%ps()"


def named(fmt: EventFormat) -> str:
    return f'{indent(fmt)}, "", REC->func'


def indent(fmt: EventFormat) -> str:
    depth = value(fmt, "depth")
    return f"({depth} < 0 ? 0 : {depth} > {MAX_INDENT // 2} ? {MAX_INDENT} : 2 * (int){depth})"


def _returned(fmt: EventFormat, options: Options) -> tuple[str, str]:
    """What stands in the format string, and the argument."""
    if options.retval_skip or find(fmt, "retval") is None:
        return "", ""
    return (" (ret=%llu)" if options.retval_dec else " (ret=0x%llx)"), ", (u64)REC->retval"


def _duration(fmt: EventFormat) -> tuple[str, str]:
    """Of a return: what stands in the format string, and the arguments."""
    ns = f"((s64)({value(fmt, 'rettime')} - {value(fmt, 'calltime')}))"
    us = f"(({ns} - ({ns} < 0 ? 999 : 0)) / 1000)"
    mark = "".join(f'{ns} > {limit} ? "{text}" : ' for text, limit in _MARKS) + '"  "'
    blanks = f"({us} < -9 ? 0 : {us} < 0 ? 1 : {us} < 10 ? 2 : {us} < 100 ? 1 : 0)"
    return "%s%lld.%03lld us %*s|  ", f'({mark}), {us}, {ns} - {us} * 1000, {blanks}, ""'


@dataclass(slots=True)
class Waiting:
    """A call whose line depends on the record after, and where its line will stand."""

    record: LineRecord
    previous: int
    index: int


class DrawnFallBack:
    """Prints what the core leaves, calls with their returns: as Lines.print, but record by record."""

    def __init__(self, printer: Lines) -> None:
        self._printer = printer
        self._waiting: Waiting | None = None

    def __call__(self, record: LineRecord, previous: int, index: int) -> tuple[bytes, int, int, bool]:
        """(text, lines, time of the last one, whether the next record is needed)."""
        printer, text, lines = self._printer, b"", 0
        call, waiting = printer.call(record), self._waiting
        self._waiting = None
        if waiting is not None:
            opened = printer.call(waiting.record)
            if opened is not None and is_return(waiting.record, opened, record, call):
                return printer.drawn(waiting.record, opened, call, previous, index), 1, waiting.record.ts, False
            text, lines = printer.drawn(waiting.record, opened, None, previous, index), 1
            previous = waiting.record.ts
        if call is not None and call.is_entry:
            self._waiting = Waiting(record, previous, index + lines)
            return text, lines, previous, True
        return text + printer.drawn(record, call, None, previous, index + lines), lines + 1, record.ts, False

    def rest(self) -> bytes:
        """The line that still waits at the end."""
        last = self._waiting
        return b"" if last is None else self._printer.drawn(
            last.record, self._printer.call(last.record), None, last.previous, last.index)
