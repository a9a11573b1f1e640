"""The specification: a slow, obvious decoder of ring-buffer pages in pure Python.

Nothing here is fast or clever, and nothing is shared with the package: a rule that the package and this file understand
differently is a fault of one of them. Rules cite the kernel file they come from (``K:ring_buffer.c``).

A page is decoded alone: it begins with its own full time stamp. What a page can suffer from, and what that costs:

===================  ==========================================================================  =====================
status               meaning                                                                     cost
===================  ==========================================================================  =====================
page_short           fewer bytes than a sub-buffer header                                        the page
commit_too_large     more data promised than a sub-buffer holds                                  the page
page_cut             the bytes end before the data that commit promises                          what is not there
header_cut           less than 4 bytes left where a record is due                                the rest of the page
record_cut           a data record runs past the commit                                          the rest of the page
length_too_small     a stored length does not even cover itself                                  the rest of the page
extend_cut           TIME_EXTEND runs past the commit                                            the rest of the page
stamp_cut            TIME_STAMP runs past the commit                                             the rest of the page
padding_cut          sized padding runs past the commit                                          the rest of the page
bad_record_type      a record type that was never written (old header only)                      the rest of the page
type_missing         a data record too short to hold its event id                                the rest of the page
lost_count_cut       the number of lost events is said to be stored, without room for it         the count
unknown_event        no format has this event id                                                 the record
record_short         the record is shorter than the fixed part of its format                     the record
field_outside        a field's bytes are said to lie outside its record                          the field (empty)
===================  ==========================================================================  =====================
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ftbuf.formats import Abi, EventFormat, Field, Kind, Where

U32 = (1 << 32) - 1
U64 = (1 << 64) - 1

MISSED_EVENTS = 1 << 31  # K:ring_buffer.c RB_MISSED_EVENTS: events were lost before this page
MISSED_STORED = 1 << 30  # K:ring_buffer.c RB_MISSED_STORED: their number is stored after the last record

TYPE_PADDING, TYPE_EXTEND, TYPE_STAMP = 29, 30, 31  # K:include/linux/ring_buffer.h enum ring_buffer_type
OLD_PADDING, OLD_EXTEND, OLD_STAMP, OLD_DATA = 0, 1, 2, 3  # the same enum in 2.6.28 to 2.6.30

DELTA_BITS = 27
STAMP_BITS = 59
STAMP_TOP = 0xF8 << 56  # K:ring_buffer.c TS_MSB: what a TIME_STAMP record has no room for

UNKNOWN = -1  # as a number of lost events


@dataclass(frozen=True)
class Problem:
    status: str
    offset: int  # in the page: of the record that cannot be used; 0 where the page itself is at fault
    bytes: int  # that are there but cannot be used


@dataclass(frozen=True)
class Record:
    """A data record."""

    offset: int  # of the payload, in the page
    length: int  # of the payload
    ts: int
    event_id: int


@dataclass
class PageResult:
    ts: int = 0  # the page's own time stamp
    records: list[Record] = field(default_factory=list)
    lost: int | None = None  # events lost before the first record: None, a number, or UNKNOWN
    problems: list[Problem] = field(default_factory=list)
    extends: int = 0
    stamps: int = 0
    paddings: int = 0  # sized ones
    long_records: int = 0

    @property
    def problem(self) -> Problem | None:
        """What ended the page early."""
        return next((p for p in self.problems if p.status != "lost_count_cut"), None)

    @property
    def statuses(self) -> list[str]:
        return [p.status for p in self.problems]


class _Stop(Exception):
    """The rest of the page cannot be used."""


# ------------------------------------------------------------------------------------------------------- numbers


def number(data: bytes, offset: int, size: int, abi: Abi, *, signed: bool = False) -> int:
    piece = data[offset : offset + size]
    assert len(piece) == size, "the caller checks the bounds"
    return int.from_bytes(piece, "big" if abi.big_endian else "little", signed=signed)


def round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def split_header(word: int, abi: Abi) -> tuple[int, int]:
    """(type_len, time_delta): bit-fields start at the low end on little-endian kernels, else at the high end."""
    if abi.big_endian:
        return word >> 27, word & 0x07FFFFFF
    return word & 31, word >> 5


def split_old_header(word: int, abi: Abi) -> tuple[int, int, int]:
    """(type, len, time_delta) of the 2/3/27-bit header."""
    if abi.big_endian:
        return word >> 30, word >> 27 & 7, word & 0x07FFFFFF
    return word & 3, word >> 2 & 7, word >> 5


def absolute_stamp(stored: int, running: int) -> int:
    """The full time behind a TIME_STAMP's 59 bits, K:ring_buffer.c rb_fix_abs_ts."""
    top = running & STAMP_TOP
    if top:
        stored |= top
        if stored < running:  # the 59 bits overflowed since
            stored += 1 << STAMP_BITS
    return stored & U64


# --------------------------------------------------------------------------------------------------------- pages


def walk_page(page: bytes, abi: Abi, *, type_offset: int = 0, type_size: int = 2) -> PageResult:
    """Decode one sub-buffer."""
    page = page[: abi.subbuf_size]
    result = PageResult()
    if len(page) < abi.data_offset:
        result.problems.append(Problem("page_short", 0, len(page)))
        return result
    commit = number(page, 8, abi.long_size, abi) & U32  # bit 31 may have been sign-extended into the upper half
    size = commit & ~(MISSED_EVENTS | MISSED_STORED)
    if size > abi.subbuf_size - abi.data_offset:
        result.problems.append(Problem("commit_too_large", 0, len(page)))
        return result
    result.ts = number(page, 0, 8, abi)
    end = abi.data_offset + size
    if commit & MISSED_EVENTS:
        result.lost = UNKNOWN
        if commit & MISSED_STORED:
            _read_lost_count(page, end, abi, result)
    with contextlib.suppress(_Stop):
        _Walk(page, abi, end, result, type_offset, type_size).walk()
    return result


def _read_lost_count(page: bytes, end: int, abi: Abi, result: PageResult) -> None:
    """A kernel long right after the data."""
    if end + abi.long_size <= len(page):
        count = number(page, end, abi.long_size, abi)
        result.lost = UNKNOWN if count >> 63 else count  # no kernel counts that far
    else:
        result.problems.append(Problem("lost_count_cut", 0, 0))


class _Walk:
    """One pass over the records of one page; ``end`` is where the committed data ends."""

    def __init__(self, page: bytes, abi: Abi, end: int, result: PageResult, type_offset: int, type_size: int) -> None:
        self.page, self.abi, self.result = page, abi, result
        self.cut = end > len(page)
        self.end = min(end, len(page))
        self.type_offset, self.type_size = type_offset, type_size
        self.here = abi.data_offset
        self.ts = result.ts
        self.empty = False  # nothing but emptiness follows

    def stop(self, status: str) -> None:
        """Give up the rest. On a page that is cut, that is the reason, whatever the cut went through."""
        status = "page_cut" if self.cut else status
        self.result.problems.append(Problem(status, self.here, self.end - self.here))
        raise _Stop

    def need(self, size: int, status: str) -> None:
        """The record at ``here`` takes ``size`` bytes."""
        if size > self.end - self.here:
            self.stop(status)

    def word(self, index: int) -> int:
        return number(self.page, self.here + 4 * index, 4, self.abi)

    def walk(self) -> None:
        step = self.old_record if self.abi.old_header else self.record
        while self.here < self.end and not self.empty:
            self.need(4, "header_cut")
            step()
        if self.cut:
            self.stop("page_cut")

    def record(self) -> None:
        type_len, delta = split_header(self.word(0), self.abi)
        if type_len == 0:
            self.long_data(delta)
        elif type_len < TYPE_PADDING:
            self.data(delta, header=4, length=4 * type_len)
        elif type_len == TYPE_PADDING:
            self.padding(delta)
        elif type_len == TYPE_EXTEND:
            self.extend(delta)
        else:
            self.stamp(delta)

    def old_record(self) -> None:
        kind, length, delta = split_old_header(self.word(0), self.abi)
        if kind == OLD_PADDING:
            self.empty = True
        elif kind == OLD_EXTEND:
            self.extend(delta)
        elif kind == OLD_STAMP:
            self.stop("bad_record_type")
        elif length:
            self.data(delta, header=4, length=4 * length)
        else:
            self.long_data(delta)

    def stored_length(self, status: str) -> int:
        """array[0]: bytes from array[0] on, itself included."""
        self.need(8, status)
        length = self.word(1)
        if length < 4:
            self.stop("length_too_small")
        return length

    def long_data(self, delta: int) -> None:
        length = self.stored_length("record_cut")
        self.data(delta, header=8, length=length - 4)
        self.result.long_records += 1

    def data(self, delta: int, *, header: int, length: int) -> None:
        total = header + round_up(length, 4)  # records begin at multiples of 4
        self.need(total, "record_cut")
        payload = self.here + header
        if self.type_offset + self.type_size > length:
            self.stop("type_missing")
        event_id = number(self.page, payload + self.type_offset, self.type_size, self.abi)
        self.advance(delta)
        self.result.records.append(Record(payload, length, self.ts, event_id))
        self.here += total

    def padding(self, delta: int) -> None:
        if delta == 0:  # nothing after it, and array[0] is not valid
            self.empty = True
            return
        total = 4 + round_up(self.stored_length("padding_cut"), 4)
        self.need(total, "padding_cut")
        if delta != 1:  # 1 is what the kernel writes where there is no time to keep, K:ring_buffer.c rb_event_discard
            self.advance(delta)
        self.result.paddings += 1
        self.here += total

    def extend(self, delta: int) -> None:
        self.need(8, "extend_cut")
        self.advance(delta + (self.word(1) << DELTA_BITS))
        self.result.extends += 1
        self.here += 8

    def stamp(self, delta: int) -> None:
        self.need(8, "stamp_cut")
        self.ts = absolute_stamp(delta + (self.word(1) << DELTA_BITS), self.ts)
        self.result.stamps += 1
        self.here += 8

    def advance(self, delta: int) -> None:
        self.ts = (self.ts + delta) & U64


def split_pages(stream: bytes, abi: Abi) -> Iterator[tuple[int, bytes]]:
    """(offset, bytes) of the sub-buffers of a CPU's stream; the last may be cut."""
    for offset in range(0, len(stream), abi.subbuf_size):
        yield offset, stream[offset : offset + abi.subbuf_size]


# -------------------------------------------------------------------------------------------------------- fields


def fixed_size(fmt: EventFormat) -> int:
    """How long a record must be to hold every field that has a fixed place."""
    location = {Where.DATA_LOC: 4, Where.REL_LOC: 4, Where.SHORT_LOC: 2}  # which may be declared larger
    return max((f.offset + location.get(f.where, f.size) for f in fmt.fields if f.where is not Where.TAIL), default=0)


def field_bytes(payload: bytes, f: Field, abi: Abi) -> tuple[bytes, bool]:
    """The bytes of a field, and whether its location reaches outside the record (then there are none)."""
    if f.where is Where.INLINE:
        return payload[f.offset : f.offset + f.size], False
    if f.where is Where.TAIL:
        return tail_bytes(payload, f, abi), f.offset > len(payload)
    if f.where is Where.SHORT_LOC:
        start, length = number(payload, f.offset, 2, abi), 0
    else:
        location = number(payload, f.offset, 4, abi)
        start, length = location & 0xFFFF, location >> 16
    if f.where is Where.REL_LOC:
        start += f.offset + 4
    if start + length > len(payload):
        return b"", True
    return (payload[start:] if f.where is Where.SHORT_LOC else payload[start : start + length]), False


def tail_bytes(payload: bytes, f: Field, abi: Abi) -> bytes:
    """To the end of the record, or as many elements as a field says; an old stack ends at a long of ones."""
    data = payload[f.offset :]
    if f.count is None:
        return data
    data = data[: number(payload, *f.count, abi) * f.element_size]
    for at in range(0, len(data) - f.element_size + 1, f.element_size):
        if f.element_size >= 4 and data[at : at + f.element_size] == b"\xff" * f.element_size:
            return data[:at]
    return data


def decode_field(payload: bytes, f: Field, abi: Abi) -> Any:
    """The value of a field: int, bytes (STRING up to its NUL, OPAQUE whole), or a list of ints (ARRAY, MASK)."""
    data, _ = field_bytes(payload, f, abi)
    signed = f.signed and not f.is_pointer
    if f.kind is Kind.SCALAR:
        return number(data, 0, f.size, abi, signed=signed)
    if f.kind is Kind.STRING:
        return data.split(b"\0", 1)[0]
    if f.kind is Kind.OPAQUE:
        return data
    size = f.element_size  # of a mask: the kernel's long
    usable = len(data) // size * size  # a last element that is cut is not an element
    return [number(data, i, size, abi, signed=signed and f.kind is Kind.ARRAY) for i in range(0, usable, size)]


# -------------------------------------------------------------------------------------------------------- events


@dataclass(frozen=True)
class Row:
    """An event with its fields."""

    ts: int
    event: EventFormat
    values: dict[str, Any]
    payload: bytes
    lost: int | None = None  # events lost before it


@dataclass(frozen=True)
class StreamProblem:
    status: str
    offset: int  # in the stream
    bytes: int


@dataclass(frozen=True)
class Lost:
    """Events that the kernel lost before ``ts``."""

    ts: int
    count: int  # or UNKNOWN


@dataclass
class StreamResult:
    rows: list[Row] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    problems: list[StreamProblem] = field(default_factory=list)
    data_records: int = 0  # known or not


def common_type(formats: Iterable[EventFormat]) -> tuple[int, int]:
    """(offset, size) of the event id in every payload."""
    for fmt in formats:
        for f in fmt.fields:
            if f.name == "common_type":
                return f.offset, f.size
    return 0, 2


def decode_stream(stream: bytes, abi: Abi, events: Mapping[int, EventFormat]) -> StreamResult:
    """Decode the sub-buffers of one CPU, oldest first."""
    result = StreamResult()
    type_offset, type_size = common_type(events.values())
    for start, page in split_pages(stream, abi):
        walked = walk_page(page, abi, type_offset=type_offset, type_size=type_size)
        result.problems += [StreamProblem(p.status, start + p.offset, p.bytes) for p in walked.problems]
        result.data_records += len(walked.records)
        if walked.lost is not None:
            result.lost.append(Lost(walked.records[0].ts if walked.records else walked.ts, walked.lost))
        for index, record in enumerate(walked.records):
            _decode_record(result, page, start, record, abi, events, walked.lost if index == 0 else None)
    return result


def _decode_record(
    result: StreamResult,
    page: bytes,
    start: int,
    record: Record,
    abi: Abi,
    events: Mapping[int, EventFormat],
    lost: int | None,
) -> None:
    def problem(status: str) -> None:
        result.problems.append(StreamProblem(status, start + record.offset, record.length))

    payload = page[record.offset : record.offset + record.length]
    fmt = events.get(record.event_id)
    if fmt is None:
        problem("unknown_event")
        return
    if len(payload) < fixed_size(fmt):
        problem("record_short")
        return
    for f in fmt.fields:
        if field_bytes(payload, f, abi)[1]:
            problem("field_outside")
    values = {f.name: decode_field(payload, f, abi) for f in fmt.fields}
    result.rows.append(Row(record.ts, fmt, values, payload, lost))


def merge(streams: Mapping[tuple[int, int], Sequence[Row]]) -> list[tuple[tuple[int, int], Row]]:
    """Rows of many (buffer, cpu) streams in time order.

    The stream whose next row is the oldest goes first, ties go to the lower (buffer, cpu). A stream's own order is kept
    even where its clock steps back: rows are not sorted.
    """
    heads = {key: 0 for key in sorted(streams) if streams[key]}
    merged = []
    while heads:
        key = min(heads, key=lambda k: (streams[k][heads[k]].ts, k))
        merged.append((key, streams[key][heads[key]]))
        heads[key] += 1
        if heads[key] == len(streams[key]):
            del heads[key]
    return merged
