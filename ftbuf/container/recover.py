"""A trace.dat of version 7 that was cut inside a buffer's pages: the table of that buffer came after them and is gone.

What is left is found from the pages themselves. CPUs without data have no place in the file, so whose a run of
pages is can be told only by the statistics, which stand before the pages: the CPUs that recorded anything, in order.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping

from ..formats import Abi
from ..source import Source
from .cursor import Cursor
from .options import CpuData, OptionId
from .streams import MAX_CHUNKS, MIN_CHUNK

MAX_RUNS = 1 << 13
_RECORDED = re.compile(r"^(?:entries|read events): *0*[1-9]", re.M)


def find_cpus(source: Source, offset: int, layout: Abi, big_endian: bool, align: int,
              stats: Mapping[int, str]) -> tuple[int, list[CpuData]]:
    """The section of a buffer at `offset`, whose table is missing.

    Returns the section's flags and where each CPU's data are; no CPUs where there is no such section.
    """
    head = Cursor(source, big_endian, offset)
    if head.left < 16 or head.u16("section") != OptionId.BUFFER:
        return 0, []
    flags = head.u16("flags")
    start = -(-(offset + 16) // align) * align
    runs = list(_chunked(source, start, big_endian, align) if flags & 1 else _plain(source, start, layout, big_endian))
    recorded = [cpu for cpu, text in sorted(stats.items()) if _RECORDED.search(text)]
    numbers = recorded if len(recorded) >= len(runs) else range(len(runs))
    return flags, [CpuData(cpu, at, size) for cpu, (at, size) in zip(numbers, runs, strict=False)]


def _chunked(source: Source, pos: int, big_endian: bool, align: int) -> Iterator[tuple[int, int]]:
    """Runs of chunks: each begins with their count, and the next begins at an aligned offset."""
    for _ in range(MAX_RUNS):
        start = pos
        cursor = Cursor(source, big_endian, pos)
        if cursor.left < 12:
            return
        count = cursor.u32("chunks")
        if not 0 < count <= MAX_CHUNKS:
            return
        for _ in range(count):
            if cursor.left < 8:
                break
            size, _ = cursor.u32("compressed size"), cursor.u32("size")
            if size < MIN_CHUNK:
                return
            cursor.pos += size
        yield start, min(cursor.pos, source.size) - start
        pos = -(-cursor.pos // align) * align


def _plain(source: Source, pos: int, layout: Abi, big_endian: bool) -> Iterator[tuple[int, int]]:
    """Runs of sub-buffers: a time stamp before the last one's is another CPU's first."""
    head = struct.Struct((">" if big_endian else "<") + ("QQ" if layout.long_size == 8 else "QI"))
    start, last = pos, 0
    for _ in range((source.size - pos) // layout.subbuf_size):
        stamp, commit = head.unpack(source.read(pos, head.size))
        if commit & 0x3FFFFFFF > layout.subbuf_size - layout.data_offset:
            break
        if stamp < last:
            yield start, pos - start
            start = pos
        last = stamp
        pos += layout.subbuf_size
    else:
        pos = source.size  # with what there is of the sub-buffer that was cut
    if pos > start:
        yield start, pos - start
