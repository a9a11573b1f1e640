"""A plain line layout as data: a tuple of columns, each an opcode with a width or a text, and what runs them.

A plan knows no options and no events: layouts choose the columns once, and the loop that runs them has no decisions left.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ..durations import seconds_text
from .columns import LatencyColumns, mark, microseconds
from .record import LineRecord, encoded


class Op(enum.IntEnum):
    """What one column prints. ``width`` is a minimum, as in printf."""

    TEXT = 0  # the column's own text
    COMM = 1  # right-aligned task name
    COMM_CUT = 2  # right-aligned task name, cut to the width
    PID = 3  # left-aligned
    PID_RIGHT = 4  # right-aligned
    PID_PLAIN = 5  # as %d
    PID_HEX = 6  # 8 hexadecimal digits
    TGID = 7  # right-aligned in 7, dashes where it is not known
    CPU = 8  # zero-padded to the width
    CPU_RIGHT = 9  # right-aligned
    CPU_HEX = 10  # 8 hexadecimal digits
    LATENCY = 11  # the latency characters
    FLAGS = 12  # common_flags as %d
    PREEMPT_HEX = 13  # preemption depth as 8 hexadecimal digits
    INDEX_HEX = 14  # number of the line, 8 hexadecimal digits
    TIME_US = 15  # seconds right-aligned, 6 decimals, rounded
    TIME_NS = 16  # seconds right-aligned, 9 decimals
    TIME_RAW = 17  # the number, right-aligned
    TIME_HEX = 18  # 16 hexadecimal digits
    TIME_US_HEX = 19  # rounded microseconds, 8 hexadecimal digits
    REL_US = 20  # microseconds since the start, right-aligned
    REL_MS = 21  # milliseconds since the start, 3 decimals
    NEXT_MS = 22  # milliseconds until the next record, 3 decimals
    NEXT_MARK = 23  # the mark of the time until the next record
    NEXT_RAW = 24  # the time until the next record as a number
    BODY = 25
    BUFFER = 26  # which buffer the record is from
    FLAGS_HEX = 27
    EVENT_NAME = 28  # name and colon, padded to the width of the name and two more
    DIFF = 29  # time since the line before, in brackets, left-aligned; empty for the first
    DIFF_US = 30  # likewise, from rounded microseconds
    TIME_US_CUT = 31  # seconds right-aligned, 6 decimals, cut
    INDENT = 32  # blanks for the calls that the record is inside of, of the kernel's graph: graphlines.py
    PROC = 33  # task and pid of a graph: graph.proc_text


@dataclass(frozen=True, slots=True)
class Column:
    op: Op
    width: int = 0
    text: bytes = b""


@dataclass(frozen=True, slots=True)
class LinePlan:
    """Columns in order, and the constants that they need. ``start`` is where relative times count from."""

    columns: tuple[Column, ...]
    latency: LatencyColumns
    start: int = 0
    labels: tuple[bytes, ...] = ()  # what BUFFER prints, by position of the buffer

    @property
    def needs_next(self) -> bool:
        """Whether a line cannot be printed before the record after it is known."""
        return any(c.op in (Op.NEXT_MS, Op.NEXT_MARK, Op.NEXT_RAW) for c in self.columns)


Body = Callable[[LineRecord], bytes]
Piece = Callable[[LineRecord, int, int], bytes]  # record, time of its neighbour (next, or before), number of the line


def literal(text: bytes) -> Column:
    return Column(Op.TEXT, 0, text)


def event_name(name: bytes, width: int) -> bytes:
    return (name + b": ").ljust(width + 2)


def _milliseconds(us: int) -> bytes:
    return b"%d.%03d" % divmod(us, 1000)


def _tgid(tgid: int | None) -> bytes:
    return b"-------" if tgid is None else b"%7d" % tgid


def _difference(difference: int | None, width: int) -> bytes:
    return (b"" if difference is None else b"(+%d)" % difference).ljust(width)


def _piece(column: Column, plan: LinePlan, body: Body) -> Piece:
    """The function that prints one column."""
    width, start, latency = column.width, plan.start, plan.latency
    match column.op:
        case Op.TEXT:
            return lambda r, n, i: column.text
        case Op.COMM:
            return lambda r, n, i: r.comm.rjust(width)
        case Op.COMM_CUT:
            return lambda r, n, i: r.comm[:width].rjust(width)
        case Op.PID:
            return lambda r, n, i: b"%-*d" % (width, r.pid)
        case Op.PID_RIGHT | Op.PID_PLAIN:
            return lambda r, n, i: b"%*d" % (width, r.pid)
        case Op.PID_HEX:
            return lambda r, n, i: b"%08x" % (r.pid & 0xFFFFFFFF)
        case Op.TGID:
            return lambda r, n, i: _tgid(r.tgid)
        case Op.CPU:
            return lambda r, n, i: b"%0*d" % (width, r.cpu)
        case Op.CPU_RIGHT:
            return lambda r, n, i: b"%*d" % (width, r.cpu)
        case Op.CPU_HEX:
            return lambda r, n, i: b"%08x" % r.cpu
        case Op.LATENCY:
            return lambda r, n, i: latency.flags[r.flags] + latency.preempt[r.preempt_count]
        case Op.FLAGS:
            return lambda r, n, i: b"%d" % r.flags
        case Op.PREEMPT_HEX:
            return lambda r, n, i: b"%08x" % r.preempt_count
        case Op.INDEX_HEX:
            return lambda r, n, i: b"%08x" % i
        case Op.FLAGS_HEX:
            return lambda r, n, i: b"%x" % r.flags
        case Op.EVENT_NAME:
            return lambda r, n, i: event_name(encoded(r.format.name), width)
        case Op.BUFFER:
            return lambda r, n, i: plan.labels[r.buffer]
        case Op.BODY:
            return lambda r, n, i: body(r)
        case _:
            return _time_piece(column.op, width, start)


def _time_piece(op: Op, width: int, start: int) -> Piece:
    match op:
        case Op.TIME_US:
            return lambda r, n, i: seconds_text(microseconds(r.ts), 6, width).encode()
        case Op.TIME_US_CUT:
            return lambda r, n, i: seconds_text(r.ts // 1000, 6, width).encode()
        case Op.TIME_NS:
            return lambda r, n, i: seconds_text(r.ts, 9, width).encode()
        case Op.TIME_RAW:
            return lambda r, n, i: b"%*d" % (width, r.ts)
        case Op.TIME_HEX:
            return lambda r, n, i: b"%016x" % (r.ts & 0xFFFFFFFFFFFFFFFF)
        case Op.TIME_US_HEX:
            return lambda r, n, i: b"%0*x" % (width, microseconds(r.ts))
        case Op.REL_US:
            return lambda r, n, i: b"%*d" % (width, microseconds(r.ts - start))
        case Op.REL_MS:
            return lambda r, n, i: _milliseconds(microseconds(r.ts - start))
        case Op.NEXT_MS:
            return lambda r, n, i: _milliseconds(microseconds(n - r.ts))
        case Op.NEXT_MARK:
            return lambda r, n, i: mark(microseconds(n - r.ts) * 1000)
        case Op.NEXT_RAW:
            return lambda r, n, i: b"%d" % (n - r.ts)
        case Op.DIFF:
            return lambda r, n, i: _difference(r.ts - n if i else None, width)
        case Op.DIFF_US:
            return lambda r, n, i: _difference(microseconds(r.ts) - microseconds(n) if i else None, width)
        case _:
            raise ValueError(f"no column {op!r}")


def with_next(records: Iterable[LineRecord]) -> Iterator[tuple[LineRecord, int]]:
    """Every record with the time of the one after it (its own time for the last)."""
    previous: LineRecord | None = None
    for record in records:
        if previous is not None:
            yield previous, record.ts
        previous = record
    if previous is not None:
        yield previous, previous.ts


def line_printer(plan: LinePlan, body: Body) -> Callable[[LineRecord, int, int], bytes]:
    """A function (record, time of the next record, number of the line) -> text."""
    pieces = tuple(_piece(column, plan, body) for column in plan.columns)
    return lambda record, following, index: b"".join([piece(record, following, index) for piece in pieces])
