"""A position in a Source, in the byte order of the recording. Every read is bounded and says what it was for."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ..errors import FormatError, TruncatedError
from ..source import MemorySource, Source

MAX_EVENTS = 1 << 17  # event ids have 16 bits (K:trace_output.c TRACE_EVENT_TYPE_MAX)
MAX_STRING = 4096


class Cursor:
    """Reads numbers, strings and texts one after the other."""

    __slots__ = ("_u16", "_u32", "_u64", "big_endian", "pos", "source")

    def __init__(self, source: Source, big_endian: bool, pos: int = 0) -> None:
        self.source = source
        self.big_endian = big_endian
        self.pos = pos
        order = ">" if big_endian else "<"
        self._u16 = struct.Struct(order + "H")
        self._u32 = struct.Struct(order + "I")
        self._u64 = struct.Struct(order + "Q")

    def at(self, pos: int) -> Cursor:
        return Cursor(self.source, self.big_endian, pos)

    @property
    def left(self) -> int:
        return self.source.size - self.pos

    def take(self, n: int, what: str) -> memoryview:
        view = self.source.read(self.pos, n, what)
        self.pos += n
        return view

    def skip(self, n: int, what: str) -> None:
        if n > self.left:
            raise TruncatedError(f"{self.source.path}: {what} claims {n} bytes at offset {self.pos}, "
                                 f"but only {self.left} are left", status="truncated", offset=self.pos)
        self.pos += n

    def u8(self, what: str) -> int:
        return self.take(1, what)[0]

    def u16(self, what: str) -> int:
        return int(self._u16.unpack(self.take(2, what))[0])

    def u32(self, what: str) -> int:
        return int(self._u32.unpack(self.take(4, what))[0])

    def u64(self, what: str) -> int:
        return int(self._u64.unpack(self.take(8, what))[0])

    def i32(self, what: str) -> int:
        value = self.u32(what)
        return value - (1 << 32) if value >> 31 else value

    def numbers(self, code: str, n: int, what: str) -> tuple[int, ...]:
        """`n` numbers of the struct type `code`; a count that cannot be true fails before anything is allocated."""
        order = ">" if self.big_endian else "<"
        size = struct.calcsize(order + code)
        if n > self.left // size:
            raise TruncatedError(f"{self.source.path}: {what} claims {n} entries at offset {self.pos}, "
                                 f"but only {self.left} bytes are left", status="truncated", offset=self.pos)
        return struct.unpack(f"{order}{n}{code}", self.take(n * size, what))

    def string(self, what: str) -> bytes:
        """A NUL-terminated string."""
        start = bytes(self.source.window(self.pos, min(MAX_STRING, self.left))[:MAX_STRING]) if self.left > 0 else b""
        end = start.find(b"\0")
        if end < 0:
            if len(start) == MAX_STRING:
                raise FormatError(f"{self.source.path}: {what} at offset {self.pos} is not a string")
            raise TruncatedError(f"{self.source.path}: {what} at offset {self.pos} has no end", status="truncated",
                                 offset=self.pos)
        self.pos += end + 1
        return start[:end]

    def texts(self, count: int, what: str) -> Iterator[tuple[int, int]]:
        """Step over `count` texts that are each preceded by a u64 size; (offset, size) of each. Reads no text."""
        if count > MAX_EVENTS:
            raise FormatError(f"{self.source.path}: {count} {what} are claimed at offset {self.pos}")
        source, end, unpack = self.source, self.source.size, self._u64.unpack_from
        pos = base = self.pos
        view = memoryview(b"")
        for _ in range(count):
            if pos - base + 8 > len(view):
                self.pos = pos
                source.read(pos, 8, what)
                view, base = source.window(pos, 8), pos
            size = unpack(view, pos - base)[0]
            pos += 8
            if size > end - pos:
                raise TruncatedError(f"{source.path}: one of the {what} claims {size} bytes at offset {pos}, but only "
                                     f"{end - pos} are left", status="truncated", offset=pos)
            yield pos, size
            pos += size
        self.pos = pos


def memory_cursor(data: bytes | memoryview, big_endian: bool, label: str) -> Cursor:
    return Cursor(MemorySource(memoryview(data), label), big_endian)
