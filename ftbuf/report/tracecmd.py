"""The layout of trace-cmd 3.4's report (layouts: TC:trace-read.c, TC:trace-ftrace.c)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from .columns import LatencyColumns
from .graph import ENTRIES, EXIT, indentation, returns_from
from .lineplan import Column, LinePlan, Op, line_printer, literal
from .record import LineRecord, number
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
    width = max(len(name.encode()) for name in names)
    return tuple(b"%*s: " % (width, name.encode()) if name else b" " * (width + 2) for name in names)


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


def with_returns(records: Iterable[LineRecord]) -> Iterator[tuple[LineRecord, LineRecord | None]]:
    """Every record; a call whose return is the very next record of its buffer together with it, and that not again."""
    waiting: LineRecord | None = None
    for record in records:
        if waiting is not None:
            if returns_from(waiting, record):
                yield waiting, record
                waiting = None
                continue
            yield waiting, None
        waiting = record
    if waiting is not None:
        yield waiting, None


@dataclass(frozen=True, slots=True)
class GraphBodies:
    """Text of function_graph records after their name."""

    options: Options
    spell: Spelling

    def entry(self, record: LineRecord, leaf: LineRecord | None) -> bytes:
        depth = number(record, "depth")
        call = indentation(depth) + self.spell.name(number(record, "func")) + b"()"
        if leaf is None:
            return b" " * 13 + b"|  " + call + b" {"
        ns = number(leaf, "rettime") - number(leaf, "calltime")
        return _duration(ns) + call + b";" + self._value(leaf)

    def exit(self, record: LineRecord) -> bytes:
        ns = number(record, "rettime") - number(record, "calltime")
        text = _duration(ns) + indentation(number(record, "depth")) + b"}"
        if self.options.tail:
            text += b" /* " + self.spell.name(number(record, "func")) + b" */"
        return text + self._value(record)

    def _value(self, record: LineRecord) -> bytes:
        if self.options.retval_skip or not any(f.name == "retval" for f in record.format.fields):
            return b""
        value = number(record, "retval")
        if self.options.retval_dec:
            return b" (ret=%d)" % value
        return b" (ret=0x%x)" % value


# -- lines ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Lines:
    """Prints records in time order. ``body`` gives an event's text."""

    options: Options
    plan: LinePlan
    body: Callable[[LineRecord], bytes]
    graph: GraphBodies | None = None
    leaves: dict[int, LineRecord] = field(default_factory=dict)

    def printer(self) -> Callable[[LineRecord, int, int], bytes]:
        """One record's lines: (record, time of the line before, number of the line) -> text."""
        line = line_printer(self.plan, self._body)
        return lambda record, previous, index: lost_line(record) + line(record, previous, index)

    def print(self, records: Iterable[LineRecord]) -> Iterator[bytes]:
        line = self.printer()
        previous = -1
        for index, (record, leaf) in enumerate(self._paired(records)):
            if leaf is not None:
                self.leaves[id(record)] = leaf
            yield line(record, previous, index)
            previous = record.ts
            self.leaves.clear()

    def _paired(self, records: Iterable[LineRecord]) -> Iterator[tuple[LineRecord, LineRecord | None]]:
        if self.graph is None:
            return ((record, None) for record in records)
        return with_returns(records)

    def _body(self, record: LineRecord) -> bytes:
        name = record.format.name
        if self.graph and record.format.system == "ftrace" and not self.options.is_raw(name):
            if name in ENTRIES:
                return self.graph.entry(record, self.leaves.get(id(record)))
            if name == EXIT:
                return self.graph.exit(record)
        return self.body(record).removesuffix(b"\n")
