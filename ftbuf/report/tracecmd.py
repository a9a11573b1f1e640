"""The layout of trace-cmd 3.4's report (layouts: TC:trace-read.c, TC:trace-ftrace.c)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from .calls import ENTRIES, EXIT, Call, CallReader, indentation, with_returns
from .columns import LatencyColumns
from .lineplan import Column, LinePlan, Op, line_printer, literal
from .record import LineRecord, encoded
from .symbols import Spelling

# trace-cmd takes "uptime" for nanoseconds too, and does not know "boot" (TC:extract_trace_clock)
SECONDS_CLOCKS = frozenset(("local", "global", "uptime", "perf", "mono", "mono_raw", "tai", "tsc2nsec"))
NAME_WIDTH = 20
DIFF_WIDTH = 8


@dataclass(frozen=True, slots=True)
class Options:
    """What the report's options ask for."""

    latency: bool = False  # -l
    nanoseconds: bool = False  # -t
    ts_diff: bool = False
    raw: bool = False  # -R: every event's fields instead of its text
    raw_events: tuple[str, ...] = ()  # -r
    seconds: bool = True  # whether the clock counts seconds
    tail: bool = False  # -O fgraph:tailprint
    retval_skip: bool = False
    retval_dec: bool = False
    retval_hex: bool = False

    def is_raw(self, name: str) -> bool:
        """Whether an event is printed field by field."""
        return self.raw or name in self.raw_events


def line_plan(options: Options, latency: LatencyColumns, *, buffers: Sequence[str] = ("",)) -> LinePlan:
    """The columns of a line. ``buffers``: names of all buffers; where one has a name, lines tell which they are from."""
    labels = buffer_labels(buffers) if any(buffers) else ()
    columns = [Column(Op.BUFFER)] if labels else []
    if options.latency:
        columns += [Column(Op.COMM_CUT, 8), literal(b"-"), Column(Op.PID, 5), literal(b" "), Column(Op.CPU_RIGHT, 3)]
    else:
        columns += [
            Column(Op.COMM, 16),
            literal(b"-"),
            Column(Op.PID, 5),
            literal(b" ["),
            Column(Op.CPU, 3),
            literal(b"]"),
        ]
    if options.raw:
        columns += [literal(b"-0x"), Column(Op.FLAGS_HEX)]
    else:
        columns += [Column(Op.LATENCY)] if options.latency else [literal(b" "), Column(Op.LATENCY)]
    if not options.seconds:
        columns.append(Column(Op.TIME_RAW, 12))
    else:
        columns += [literal(b" "), Column(Op.TIME_NS if options.nanoseconds else Op.TIME_US, 5)]
    columns.append(literal(b":"))
    if options.ts_diff:
        exact = options.nanoseconds or not options.seconds
        columns += [literal(b" "), Column(Op.DIFF if exact else Op.DIFF_US, DIFF_WIDTH)]
    columns += [literal(b" "), Column(Op.EVENT_NAME, NAME_WIDTH), Column(Op.BODY), literal(b"\n")]
    return LinePlan(tuple(columns), latency, labels=labels)


def buffer_labels(names: Sequence[str]) -> tuple[bytes, ...]:
    """What stands before the lines of each buffer: blank for the top one."""
    width = max(len(encoded(name)) for name in names)
    return tuple(b"%*s: " % (width, encoded(name)) if name else b" " * (width + 2) for name in names)


def lost_line(record: LineRecord) -> bytes:
    """What the report says where events were lost."""
    if record.lost is None:
        return b""
    if record.lost < 0:
        return b"CPU:%d [EVENTS DROPPED]\n" % record.cpu
    return b"CPU:%d [%d EVENTS DROPPED]\n" % (record.cpu, record.lost)


# -- function graph ---------------------------------------------------------------------------------------------------

_MARKS = ((1_000_000_000, b"$"), (1_000_000, b"#"), (100_000, b"!"), (10_000, b"+"))  # fewer than the kernel's


def _overhead(ns: int) -> bytes:
    for limit, character in _MARKS:
        if ns > limit:
            return character + b" "
    return b"  "


def _duration(ns: int) -> bytes:
    """Seven or more characters of microseconds, the unit, and the rule."""
    digits = b"%d.%03d" % divmod(ns, 1000)
    return _overhead(ns) + digits + b" us " + b" " * (7 - len(digits)) + b"|  "


@dataclass(frozen=True, slots=True)
class GraphBodies:
    """Text of function_graph records after their name."""

    options: Options
    spell: Spelling
    read: CallReader

    def entry(self, call: Call, leaf: Call | None) -> bytes:
        text = indentation(call.depth) + self.spell.name(call.func) + b"()"
        if leaf is None:
            return b" " * 13 + b"|  " + text + b" {"
        return _duration(leaf.rettime - leaf.calltime) + text + b";" + self._value(leaf)

    def exit(self, call: Call) -> bytes:
        text = _duration(call.rettime - call.calltime) + indentation(call.depth) + b"}"
        if self.options.tail:
            text += b" /* " + self.spell.name(call.func) + b" */"
        return text + self._value(call)

    def _value(self, call: Call) -> bytes:
        if self.options.retval_skip or call.retval is None:
            return b""
        return (b" (ret=%d)" if self.options.retval_dec else b" (ret=0x%x)") % call.retval


# -- lines ------------------------------------------------------------------------------------------------------------


class Lines:
    """Prints records in time order. ``body`` gives an event's text, ``graph`` that of calls where they are drawn."""

    def __init__(
        self, options: Options, plan: LinePlan, body: Callable[[LineRecord], bytes], graph: GraphBodies | None = None
    ) -> None:
        self._options, self._event, self._graph = options, body, graph
        self._line = line_printer(plan, self._body)
        self._drawn: bytes | None = None  # instead of the current record's own text

    def printer(self) -> Callable[[LineRecord, int, int], bytes]:
        """One record's lines: (record, time of the line before, number of the line) -> text."""
        return lambda record, previous, index: lost_line(record) + self._line(record, previous, index)

    def draws(self, system: str, name: str) -> bool:
        """Whether records of an event are calls or returns that are drawn."""
        return self._graph is not None and system == "ftrace" and (name in ENTRIES or name == EXIT)

    def print(self, records: Iterable[LineRecord], previous: int = -1, first: int = 0) -> Iterator[bytes]:
        """Their lines; ``previous`` is the time of the line before, ``first`` the number of the first."""
        line = self.printer()
        for index, record in enumerate(records if self._graph is None else self._draw(records, self._graph), first):
            yield line(record, previous, index)
            previous = record.ts

    def alone(self, record: LineRecord) -> bytes:
        """The line of a record whose neighbours are not known."""
        self._show(record, self.call(record), None)
        return self._line(record, record.ts, 0)

    def call(self, record: LineRecord) -> Call | None:
        """The fields of a call or a return that is drawn."""
        return None if self._graph is None else self._graph.read(record)

    def drawn(self, record: LineRecord, call: Call | None, leaf: Call | None, previous: int, index: int) -> bytes:
        """One record's lines; of a call together with ``leaf``, its return."""
        self._show(record, call, leaf)
        return lost_line(record) + self._line(record, previous, index)

    def _show(self, record: LineRecord, call: Call | None, leaf: Call | None) -> None:
        """Make the text of a call that is drawn ready for the record's line."""
        self._drawn = None
        if call is not None and self._graph is not None and not self._options.is_raw(record.format.name):
            self._drawn = self._graph.entry(call, leaf) if call.is_entry else self._graph.exit(call)

    def _draw(self, records: Iterable[LineRecord], graph: GraphBodies) -> Iterator[LineRecord]:
        """The records that have a line of their own; ``_drawn`` is the text of each that is a call."""
        for record, call, leaf in with_returns(records, graph.read):
            self._show(record, call, leaf)
            yield record

    def _body(self, record: LineRecord) -> bytes:
        return self._event(record).removesuffix(b"\n") if self._drawn is None else self._drawn
