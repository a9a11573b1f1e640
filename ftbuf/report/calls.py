"""Calls and returns of the function graph: their fields, and which return belongs to which call."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from ..formats import EventFormat, Kind, Where
from .record import LineRecord

ENTRIES = frozenset(("funcgraph_entry", "fgraph_retaddr_entry"))
EXIT = "funcgraph_exit"
MAX_DEPTH = 50  # K:include/linux/ftrace.h FTRACE_RETFUNC_DEPTH
MAX_INDENT = 2048  # blanks before a call: no kernel nests calls so deep, but a damaged record may say so
PENDING = 100_000  # records that wait for the next one of another CPU

_CODES = {(1, False): "B", (2, False): "H", (4, False): "I", (8, False): "Q",
          (1, True): "b", (2, True): "h", (4, True): "i", (8, True): "q"}  # fmt: skip


_INDENTS = tuple(b"  " * depth for depth in range(MAX_DEPTH + 1))


def indentation(depth: int) -> bytes:
    """The blanks before a call of this depth."""
    return _INDENTS[depth] if 0 <= depth <= MAX_DEPTH else b" " * min(2 * depth, MAX_INDENT)


class Call(NamedTuple):
    """The fields of a call or a return; 0 where the kernel's version has none of that name (retval: None)."""

    is_entry: bool
    func: int
    depth: int
    calltime: int
    rettime: int
    retval: int | None
    overrun: int
    retaddr: int


_FIELDS = frozenset(Call._fields[1:])


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the fields of one format are read in one go."""

    reader: struct.Struct
    pick: Callable[[tuple[Any, ...]], tuple[Any, ...]]  # the members of Call, out of the values and what follows them
    rest: tuple[Any, ...]

    def read(self, payload: bytes) -> Call:
        if len(payload) < self.reader.size:
            payload = payload.ljust(self.reader.size, b"\0")  # a damaged record
        return Call._make(self.pick(self.reader.unpack_from(payload) + self.rest))


def _layout(fmt: EventFormat, big_endian: bool) -> _Layout | None:
    if fmt.system != "ftrace" or (fmt.name not in ENTRIES and fmt.name != EXIT):
        return None
    found = [f for f in fmt.fields if f.name in _FIELDS and f.kind is Kind.SCALAR and f.where is Where.INLINE]
    found.sort(key=lambda f: f.offset)
    code, end, names = ">" if big_endian else "<", 0, []
    for field in found:
        if field.offset < end or (field.size, field.signed) not in _CODES:
            continue
        code += f"{field.offset - end}x{_CODES[field.size, field.signed]}"
        end = field.offset + field.size
        names.append(field.name)
    rest = (fmt.name != EXIT, None, 0)
    at = {name: i for i, name in enumerate([*names, "is_entry", "retval"])} | {n: i for i, n in enumerate(names)}
    return _Layout(struct.Struct(code), itemgetter(*[at.get(n, len(names) + 2) for n in Call._fields]), rest)


class CallReader:
    """Record -> Call, or None for other records."""

    def __init__(self, *, big_endian: bool = False) -> None:
        self._big_endian = big_endian
        self._layouts: dict[int, tuple[EventFormat, _Layout | None]] = {}  # by id() of the format, which is kept here

    def __call__(self, record: LineRecord) -> Call | None:
        fmt = record.format
        known = self._layouts.get(id(fmt))
        if known is None:
            known = self._layouts[id(fmt)] = fmt, _layout(fmt, self._big_endian)
        layout = known[1]
        return None if layout is None else layout.read(record.payload)


Paired = tuple[
    LineRecord, Call | None, Call | None
]  # record, its fields, and those of the return that is drawn with it


@dataclass(slots=True)
class _Waiting:
    record: LineRecord
    call: Call | None
    leaf: Call | None = None
    done: bool = False


class Pairing:
    """Pairs a call that is directly followed on its CPU by its own return with that return, which is then not seen again.

    One CPU's last call waits for that CPU's next record, so records of other CPUs are held back behind it: what is kept is
    bounded by the time until that next record, and cut at PENDING records.
    """

    def __init__(self, read: CallReader) -> None:
        self._read = read
        self._waiting: deque[_Waiting] = deque()
        self._open: dict[int, _Waiting] = {}

    @property
    def waits(self) -> bool:
        return bool(self._waiting)

    def push(self, record: LineRecord, known: bool = False, back: LineRecord | None = None) -> list[Paired]:
        """The records that need not wait any more, this one among them or not.

        ``known``: that ``back`` is the return of a call; None: that it is drawn alone. Such a return is not pushed, too.
        """
        call, cpu, waiting = self._read(record), record.cpu, self._waiting
        opened = self._open.pop(cpu, None)
        if opened is not None:
            opened.done = True
            if opened.call is not None and is_return(opened.record, opened.call, record, call):
                opened.leaf = call
                return self._done()
        leaf = self._read(back) if back is not None else None
        is_open = not known and call is not None and call.is_entry
        if not waiting and not is_open:
            return [(record, call, leaf)]
        item = _Waiting(record, call, leaf, not is_open)
        waiting.append(item)
        if is_open:
            self._open[cpu] = item
        if len(waiting) > PENDING:
            waiting[0].done = True
            self._open.pop(waiting[0].record.cpu, None)
        return self._done()

    def _done(self) -> list[Paired]:
        waiting, done = self._waiting, []
        while waiting and waiting[0].done:
            item = waiting.popleft()
            done.append((item.record, item.call, item.leaf))
        return done

    def rest(self) -> list[Paired]:
        """All that still wait, at the end."""
        return [(item.record, item.call, item.leaf) for item in self._waiting]


def with_leaves(records: Iterable[LineRecord], read: CallReader) -> Iterator[Paired]:
    """Every record, calls together with their returns."""
    pairing = Pairing(read)
    for record in records:
        yield from pairing.push(record)
    yield from pairing.rest()


def with_returns(records: Iterable[LineRecord], read: CallReader) -> Iterator[Paired]:
    """Every record; a call whose return is the very next record, of whatever CPU, together with it, and that not again."""
    opened: _Waiting | None = None
    for record in records:
        call = read(record)
        if opened is not None:
            if opened.call is not None and is_return(opened.record, opened.call, record, call):
                yield opened.record, opened.call, call
                opened = None
                continue
            yield opened.record, opened.call, None
            opened = None
        if call is not None and call.is_entry:
            opened = _Waiting(record, call)
        else:
            yield record, call, None
    if opened is not None:
        yield opened.record, opened.call, None


def is_return(entry_record: LineRecord, entry: Call, record: LineRecord, call: Call | None) -> bool:
    """Whether a record is the return of a call."""
    return call is not None and not call.is_entry and call.func == entry.func and entry_record.pid == record.pid
