"""Where the format text of each event is, found by name and by id without parsing the texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from ..errors import FormatError
from ..formats import event_name_and_id
from ..source import Source
from .cursor import MAX_EVENTS, Cursor
from .options import decode_text

_HEAD_LENGTH = 512
MAX_SYSTEMS = 1 << 14


class FormatExtent(NamedTuple):
    system: str
    source: Source
    offset: int
    size: int


def ftrace_formats(cursor: Cursor) -> Iterator[FormatExtent]:
    """The formats of the tracers' own events: u32 count, then u64 size and text of each."""
    count = cursor.u32("number of ftrace formats")
    for at, size in cursor.texts(count, "ftrace formats"):
        yield FormatExtent("ftrace", cursor.source, at, size)


def event_formats(cursor: Cursor) -> Iterator[FormatExtent]:
    """u32 number of systems; of each its name, u32 count, then u64 size and text of each event."""
    found = 0
    systems = cursor.u32("number of event systems")
    if systems > MAX_SYSTEMS:
        raise FormatError(f"{cursor.source.path}: {systems} event systems are claimed at offset {cursor.pos - 4}")
    for _ in range(systems):
        system = decode_text(cursor.string("name of an event system"))
        count = cursor.u32(f"number of events of system {system}")
        for at, size in cursor.texts(count, f"{system} formats"):
            yield FormatExtent(system, cursor.source, at, size)
            found += 1
        if found > MAX_EVENTS:
            raise FormatError(f"{cursor.source.path}: more than {MAX_EVENTS} event formats")


class FormatTexts:
    """The format texts of a trace.dat; a key is an index into `extents`."""

    def __init__(self, extents: list[FormatExtent]) -> None:
        self.extents = extents

    def text(self, key: int) -> bytes:
        extent = self.extents[key]
        return bytes(extent.source.read(extent.offset, extent.size, f"a format of system {extent.system}"))

    @cached_property
    def _heads(self) -> list[tuple[str, str, int, int]]:
        """(system, event, id, key) of every text that begins as a format does."""
        heads = []
        view, base, of = memoryview(b""), 0, None  # what came for free with the last text: often all that follow
        for key, (system, source, offset, size) in enumerate(self.extents):
            length = min(size, _HEAD_LENGTH)
            at = offset - base
            if source is not of or not 0 <= at <= len(view) - length:
                source.read(offset, length)
                view, base, of, at = source.window(offset, length), offset, source, 0
            match = format_head(view[at : at + length])
            if match is not None:
                heads.append((system, *match, key))
        return heads

    @cached_property
    def by_name(self) -> Mapping[tuple[str, str], int]:
        index: dict[tuple[str, str], int] = {}
        for system, event, _, key in self._heads:
            index.setdefault((system, event), key)
        return index

    @cached_property
    def by_id(self) -> Mapping[int, tuple[str, str]]:
        index: dict[int, tuple[str, str]] = {}
        for system, event, number, _ in self._heads:
            index.setdefault(number, (system, event))
        return index


def format_head(text: bytes | memoryview) -> tuple[str, int] | None:
    """Name and id of an event, from the first two lines of its format text; None where they are not there."""
    try:
        return event_name_and_id(text)
    except FormatError:
        return None
