"""Images of a memory-mapped ring buffer (Linux 6.10 and later): its sub-buffers, in the order they were written."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..errors import FormatError, TruncatedError
from ..source import borrow_buffer
from .model import TRUNCATED, Problem, Segment, Stream
from .pages import MAX_SUBBUF

_META = "4IQ2I6Q"  # include/uapi/linux/trace_mmap.h struct trace_buffer_meta
_META_SIZE = 80
_META_LEAST = 64  # without the two reserved numbers
MAX_SUBBUFS = 1 << 24


@dataclass(frozen=True, slots=True)
class MmapMeta:
    """The meta page at the start of a mapped ring buffer (``struct trace_buffer_meta``)."""

    meta_page_size: int
    meta_struct_len: int
    subbuf_size: int
    nr_subbufs: int  # with the reader's
    lost_events: int
    reader_id: int
    reader_read: int  # bytes of the reader's sub-buffer that were consumed
    flags: int
    entries: int
    overrun: int
    read: int
    big_endian: bool


def parse_mmap_meta(data: Any) -> MmapMeta:
    """Read a meta page; its byte order is the one in which its sizes make sense."""
    view = borrow_buffer(data)
    if len(view) < _META_SIZE:
        raise TruncatedError(f"a ring buffer's meta page has {_META_SIZE} bytes, not {len(view)}", status=TRUNCATED)
    for order in "<>":
        (page, length, subbuf, count, lost, reader, consumed, flags, entries, overrun, read,
         _, _) = struct.unpack_from(order + _META, view)
        if _META_LEAST <= length <= page <= MAX_SUBBUF and 16 < subbuf <= MAX_SUBBUF and 0 < count <= MAX_SUBBUFS:
            return MmapMeta(page, length, subbuf, count, lost, reader, consumed, flags, entries, overrun, read,
                            order == ">")
    raise FormatError("not the meta page of a ring buffer: its sizes make sense in neither byte order")


class MmapImage:
    """A copy of a memory-mapped ring buffer: the meta page and all its sub-buffers, in any order.

    The ring's order is not part of the mapping; the sub-buffers' time stamps give it back. Those that hold nothing, and
    what a reader had consumed of its own sub-buffer, are left out.

    Parameters
    ----------
    image
        The mapping from its start (meta page first); or the meta page alone, with
    subbufs
        the sub-buffers.
    long_size : int
        Of the traced kernel.
    """

    def __init__(self, image: Any, subbufs: Any = None, *, long_size: int = 8) -> None:
        self.meta = parse_mmap_meta(image)
        self._view = borrow_buffer(image)[self.meta.meta_page_size:] if subbufs is None else borrow_buffer(subbufs)
        self.long_size = long_size

    @cached_property
    def offsets(self) -> Sequence[int]:
        """Where each sub-buffer with data begins, after the meta page; oldest first."""
        meta, order = self.meta, ">" if self.meta.big_endian else "<"
        head = struct.Struct(order + ("QQ" if self.long_size == 8 else "QI"))
        found = []
        for index in range(min(meta.nr_subbufs, len(self._view) // meta.subbuf_size)):
            offset = index * meta.subbuf_size
            stamp, commit = head.unpack_from(self._view, offset)
            size = commit & 0x3FFFFFFF  # without the flags (K:ring_buffer.c RB_MISSED_EVENTS, RB_MISSED_STORED)
            if size and not (index == meta.reader_id and meta.reader_read >= size):
                found.append((stamp, offset))
        return [offset for _, offset in sorted(found)]

    @property
    def missing(self) -> int:
        """Bytes of sub-buffers that the image lacks."""
        return max(0, self.meta.nr_subbufs * self.meta.subbuf_size - len(self._view))

    def pages(self) -> list[memoryview]:
        """The sub-buffers with data, oldest first; ``b"".join(image.pages())`` is what ``ftbuf.decode_pages`` takes."""
        return [self.borrow(offset, self.meta.subbuf_size) for offset in self.offsets]

    def borrow(self, offset: int, n: int) -> memoryview:
        """Bytes of the sub-buffers: a view."""
        return self._view[offset:offset + n]


class MmapStream(Stream):
    """One CPU's image as a stream: runs of sub-buffers that stand one after another, oldest first."""

    def __init__(self, image: MmapImage, cpu: int, *, buffer: str = "") -> None:
        self.cpu = cpu
        self.image = image
        size = image.meta.subbuf_size
        runs: list[list[int]] = []  # start, end
        for offset in image.offsets:
            if runs and runs[-1][1] == offset:
                runs[-1][1] += size
            else:
                runs.append([offset, offset + size])
        self.segments: Sequence[Segment] = [Segment(start, end - start) for start, end in runs]
        lost, there = image.missing, image.meta.nr_subbufs * size - image.missing
        detail = f"{lost} bytes of the mapped sub-buffers are missing"
        self.problems: Sequence[Problem] = (Problem(cpu, there, TRUNCATED, lost, buffer, detail),) if lost else ()

    def load(self, index: int) -> memoryview:
        segment = self.segments[index]
        return self.image.borrow(segment.offset, segment.size)
