"""The kernel's function_graph by the core: its columns, its lines as print formats, and what it leaves to ``graph.Graph``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..bytecode import CompileError
from ..formats import EventFormat
from ..recording import UNKNOWN_EVENT
from .bodies import EventTexts
from .calls import ENTRIES, EXIT, MAX_DEPTH, Pairing
from .columns import MARKS, LatencyColumns
from .drawn import CALL, NAMED, RETURN, Place, find, indent, named, value
from .graph import PLAIN, PROC_WIDTH, Graph, GraphFlags
from .lineplan import Column, LinePlan, Op, literal
from .lines import Names
from .record import LineRecord
from .writer import line_writer

if TYPE_CHECKING:
    from ..trace import Trace


def can_draw(flags: GraphFlags) -> bool:
    """Whether the core knows all columns and notes of a graph."""
    others = flags.reltime, flags.overrun, flags.retval, flags.retaddr, flags.args
    return flags.context and flags.irqs and not any(others)


def written(trace: Trace, names: Names, flags: GraphFlags, latency: LatencyColumns, graph: Graph, texts: EventTexts,
            irq_entry: tuple[int, int], cpu_width: int) -> Iterator[bytes]:
    """All lines of a graph."""
    recording = trace.recording
    no_duration = " " * 14 + "|  " if flags.duration else ""
    plan = LinePlan((*_columns(flags, cpu_width), *_comment(no_duration)), latency)
    drawing = Programs(texts, flags, no_duration)
    fall_back = FallBack(graph, Pairing(graph.read))
    writer, judge = line_writer(
        trace, names, plan, lambda pair: drawing.of(recording.format_or_common(pair)), texts.renderer, fall_back,
        calls=lambda pair: _call(recording.format_or_common(pair)) or _NO_CALL, irq_entry=irq_entry)
    rows = np.frombuffer(writer.known, np.uint64).reshape(len(writer.cpus), -1)
    graph.cpus = {cpu: SharedCpu(row) for cpu, row in zip(writer.cpus, rows, strict=True)}
    yield from writer
    yield fall_back.rest()
    judge.finish()


def _columns(flags: GraphFlags, cpu_width: int) -> list[Column]:
    columns = [Column(Op.TIME_US_CUT, 5), literal(b" |  ")] if flags.abstime else []
    if flags.cpu:
        columns += [literal(b" "), Column(Op.CPU_RIGHT, cpu_width), literal(b") ")]
    if flags.proc:
        columns += [Column(Op.PROC, PROC_WIDTH), literal(b" | ")]
    if flags.latency:
        columns += [literal(b" "), Column(Op.LATENCY), literal(b" | ")]
    return [*columns, Column(Op.BODY)]


def _comment(no_duration: str) -> list[Column]:
    """What lines of other events have behind these columns."""
    return [literal(no_duration.encode()), Column(Op.INDENT, 2 * MAX_DEPTH + 2), literal(b"/* "), Column(Op.BODY),
            literal(b" */\n")]


_NO_CALL: tuple[int, Place, Place] = (0, (0, 0), (0, 0))


def _call(fmt: EventFormat) -> tuple[int, Place, Place] | None:
    """What the core has to know of calls and returns: kind, places of the function and the depth."""
    if fmt.system != "ftrace" or (fmt.name not in ENTRIES and fmt.name != EXIT):
        return None
    places = [(f.offset, f.size) if f is not None else (0, 0) for f in (find(fmt, "func"), find(fmt, "depth"))]
    return RETURN if fmt.name == EXIT else CALL, places[0], places[1]


class Programs:
    """What prints each event behind the columns; None where only the fallback can."""

    def __init__(self, texts: EventTexts, flags: GraphFlags, no_duration: str) -> None:
        self._texts, self._flags, self._no_duration = texts, flags, no_duration

    def of(self, fmt: EventFormat) -> _core.Program | tuple[_core.Program, ...] | None:
        if _call(fmt) is None:
            is_plain = fmt.name == UNKNOWN_EVENT or (fmt.system == "ftrace" and fmt.name in PLAIN)
            return None if is_plain else self._texts.program(fmt)
        func = find(fmt, "func")
        if func is None or func.signed:
            return None
        try:
            return self._exit(fmt) if fmt.name == EXIT else self._made(fmt, self._no_duration, f"{NAMED} {{", named(fmt))
        except CompileError:
            return None

    def _made(self, fmt: EventFormat, *text: str) -> _core.Program:
        *strings, arguments = text
        return self._texts.compiled(fmt, '"' + "".join(strings) + f'\\n", {arguments}')

    def _exit(self, fmt: EventFormat) -> tuple[_core.Program, ...]:
        string, argument = _duration(fmt, self._flags)
        note, function = (" /* %ps */", ", REC->func") if self._flags.tail else ("", "")
        return (self._made(fmt, string, "%*s}", note, f'{argument}{indent(fmt)}, ""{function}'),
                self._made(fmt, string, f"{NAMED};", f"{argument}{named(fmt)}"))


def _duration(fmt: EventFormat, flags: GraphFlags) -> tuple[str, str]:
    """Of a return: what stands in the format string, and its arguments; see durations.duration_text."""
    if not flags.duration:
        return "", ""
    ns = f"long long ns = (s64)({value(fmt, 'rettime')} - {value(fmt, 'calltime')})"
    marks = "".join(f'ns > {limit} ? "{character.decode()}" : ' for limit, character in MARKS)
    mark = f'({{ {ns}; {marks}" "; }})' if flags.overhead else '" "'
    return "%s %s|  ", f"{mark}, ({{ {ns}; {_DIGITS}; }}), "


# durations.duration_text: as many decimals as make seven digits with the sign.
_DIGITS = """
long long us = (ns - (ns < 0 ? 999 : 0)) / 1000; long long rest = ns - us * 1000;
us >= -999 && us <= 9999 ? __print_format("%lld.%03lld us %*s", us, rest, us < 0 ? (us < -99 ? 0 : us < -9 ? 1 : 2) :
                                          us < 10 ? 3 : us < 100 ? 2 : us < 1000 ? 1 : 0, "") :
us >= -9999 && us <= 99999 ? __print_format("%lld.%02lld us ", us, rest / 10) :
us >= -99999 && us <= 999999 ? __print_format("%lld.%lld us ", us, rest / 100) :
us >= -999999 && us <= 9999999 ? __print_format("%lld us  ", us) : __print_format("%lld us ", us)
""".strip()


class SharedCpu:
    """What the core and ``graph.Graph`` both know of a CPU: a row of csrc/ftb_line.h ftb_drawn_cpu."""

    __slots__ = ("_row", "functions")

    def __init__(self, row: np.ndarray[Any, np.dtype[np.uint64]]) -> None:
        self._row, self.functions = row[:3].view(np.int64), row[3:]

    @property
    def pid(self) -> int:
        return int(self._row[0])

    @pid.setter
    def pid(self, pid: int) -> None:
        self._row[0] = pid

    @property
    def depth(self) -> int:
        return int(self._row[1])

    @depth.setter
    def depth(self, depth: int) -> None:
        self._row[1] = depth

    @property
    def irq_depth(self) -> int:
        return int(self._row[2])

    @irq_depth.setter
    def irq_depth(self, depth: int) -> None:
        self._row[2] = depth


class FallBack:
    """Prints what the core leaves: as Graph.draw, but record by record."""

    def __init__(self, graph: Graph, pairing: Pairing) -> None:
        self._graph, self._pairing = graph, pairing

    def __call__(self, record: LineRecord, previous: int, index: int, known: bool,
                 back: LineRecord | None) -> tuple[bytes, int, int, bool]:
        """(text, lines, time of the last one, whether the next record is needed). See Pairing.push."""
        pairs = self._pairing.push(record, known, back)
        return b"".join([self._graph.lines(*pair) for pair in pairs]), len(pairs), record.ts, self._pairing.waits

    def rest(self) -> bytes:
        """The lines that still wait at the end."""
        return b"".join([self._graph.lines(*pair) for pair in self._pairing.rest()])
