"""What a layout asks of the records it prints, and of the tables beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ftbuf.formats import EventFormat

Value = int | bytes | Sequence[int]


class LineRecord(Protocol):
    """One record of the merged stream."""

    @property
    def ts(self) -> int: ...
    @property
    def cpu(self) -> int: ...
    @property
    def pid(self) -> int: ...
    @property
    def comm(self) -> bytes: ...
    @property
    def tgid(self) -> int | None: ...
    @property
    def flags(self) -> int: ...
    @property
    def preempt_count(self) -> int: ...
    @property
    def lost(self) -> int | None:
        """Events lost just before this one: None for none, -1 where the kernel did not store how many."""

    @property
    def buffer(self) -> int:
        """Position of its buffer in the recording."""

    @property
    def format(self) -> EventFormat: ...
    @property
    def payload(self) -> bytes: ...

    def value(self, name: str) -> Value: ...


class Symbol(Protocol):
    """A kernel symbol that an address lies in."""

    @property
    def name(self) -> str: ...
    @property
    def module(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def size(self) -> int | None: ...


class SymbolTable(Protocol):
    """Kernel addresses to names; ``trace_cmd`` answers as trace-cmd does."""

    def lookup(self, address: int, *, trace_cmd: bool = False) -> Symbol | None: ...


def encoded(text: str) -> bytes:
    """As it stood in the recording: texts of a recording need not be UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def number(record: LineRecord, name: str) -> int:
    """An integer field; 0 where the record does not have it, as an old kernel's may not."""
    try:
        value = record.value(name)
    except (KeyError, IndexError):
        return 0
    return value if isinstance(value, int) else 0


def text(record: LineRecord, name: str) -> bytes:
    """A string field up to its NUL."""
    value = record.value(name)
    return value if isinstance(value, bytes) else b""
