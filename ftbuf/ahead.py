"""Compressed segments, decompressed beside the decoding: the next ones in a thread of their own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .container.model import Stream
from .errors import DamageError

if TYPE_CHECKING:
    from concurrent.futures import Future

BLOCK_BYTES = 512 << 10  # of pages that are taken together: chunk by chunk, the calls would cost as much as the work
ALL_BLOCKS = 16 << 20  # of all streams together, of which each holds up to three

Loaded = list[memoryview | DamageError]


class Direct:
    """Segments as they are asked for."""

    def __init__(self, streams: Sequence[Stream], ends: Sequence[int]) -> None:
        self.streams = streams
        self.ends = ends  # the segment that each stream ends before
        self.block_bytes = min(BLOCK_BYTES, ALL_BLOCKS // max(len(streams), 1))

    def load(self, i: int, index: int) -> memoryview:
        """Segment `index` of stream `i`.

        Raises
        ------
        DamageError
            It cannot be read.
        """
        return self.streams[i].load(index)

    def places(self, i: int, index: int) -> range:
        """The segments from `index` on that make up a block: at least one, where there is one."""
        sizes, stop, size = self.streams[i].sizes, index, 0
        while stop < self.ends[i] and (stop == index or size + sizes[stop] <= self.block_bytes):
            size += sizes[stop]
            stop += 1
        return range(index, stop)


class Ahead(Direct):
    """Segments that are read in order, block by block: while one is used, the next is decompressed.

    Holds two blocks a stream. The thread ends when nobody holds this object any more.
    """

    def __init__(self, streams: Sequence[Stream], ends: Sequence[int]) -> None:
        from concurrent.futures import ThreadPoolExecutor  # half of what ftbuf itself takes to import

        super().__init__(streams, ends)
        self.pool = ThreadPoolExecutor(1)
        self.blocks: list[tuple[range, Loaded]] = [(range(0), []) for _ in streams]
        self.coming: list[tuple[range, Future[Loaded]] | None] = [None] * len(streams)

    def load(self, i: int, index: int) -> memoryview:
        if index not in self.blocks[i][0]:
            self.next_block(i, index)
        places, loaded = self.blocks[i]
        found = loaded[index - places.start]
        if isinstance(found, DamageError):
            raise found
        return found

    def next_block(self, i: int, index: int) -> None:
        coming = self.coming[i]
        if coming is not None and index in coming[0]:
            self.blocks[i] = coming[0], coming[1].result()
        else:
            places = self.places(i, index)
            self.blocks[i] = places, load_all(self.streams[i], places)
        after = self.places(i, self.blocks[i][0].stop)
        self.coming[i] = (after, self.pool.submit(load_all, self.streams[i], after)) if len(after) else None


def load_all(stream: Stream, places: range) -> Loaded:
    loaded: Loaded = []
    for index in places:
        try:
            loaded.append(stream.load(index))
        except DamageError as error:
            loaded.append(error)
    return loaded


def segments_of(streams: Sequence[Stream], ends: Sequence[int], ahead: bool) -> Direct:
    """How segments are to be read; `ahead`: beside the decoding, where that is work and another core can do it."""
    chunks = sum(end for stream, end in zip(streams, ends, strict=True) if stream.compressed)
    return Ahead(streams, ends) if ahead and chunks > 1 and (os.cpu_count() or 1) > 1 else Direct(streams, ends)
