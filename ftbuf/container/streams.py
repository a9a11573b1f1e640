"""Streams over a Source: the sub-buffers of one CPU, as they stand in the file or as compressed chunks."""

from __future__ import annotations

import functools
import struct
import threading
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import overload

from ..errors import CompressionError, DamageError, TruncatedError
from ..source import Source
from .compress import MAX_CHUNK, Decompress
from .model import COMPRESSION, METADATA, TRUNCATED, Problem, Segment, Stream

PIECE = 4 << 20  # bytes of a segment where memory cannot be borrowed
MAPPED_PIECE = 16 << 20  # where it can: small enough that a stream's past can be forgotten
MAX_CHUNKS = 1 << 22
MAX_BAD_CHUNKS = 1000
MIN_CHUNK = 8  # no zlib or zstd stream is shorter
CACHED_CHUNKS = 4
CACHED_BYTES = 8 << 20


class PlainStream(Stream):
    """Sub-buffers one after the other in a source, up to `size` bytes."""

    def __init__(self, source: Source, cpu: int, offset: int, size: int, subbuf_size: int, *, data_offset: int = 16,
                 buffer: str = "") -> None:
        self.cpu = cpu
        self._source = source
        there = max(0, min(size, source.size - offset))
        tail = there % subbuf_size
        whole = there - tail
        piece = MAPPED_PIECE if source.borrowed else PIECE
        piece = max(piece - piece % subbuf_size, subbuf_size)
        segments = [Segment(offset + at, min(piece, whole - at)) for at in range(0, whole, piece)]
        if tail > data_offset:  # a part of a sub-buffer: its first records may be whole
            segments.append(Segment(offset + whole, tail))
        self.segments = segments
        missing = size - there
        unusable = missing + (tail if tail <= data_offset else 0)
        detail = f"{missing} of {size} bytes are missing" if missing else f"{tail} bytes are no sub-buffer"
        first = offset + (whole if tail <= data_offset else there)  # byte that cannot be used
        self.problems = (Problem(cpu, first, TRUNCATED, unusable, buffer, detail),) if unusable else ()

    def load(self, index: int) -> memoryview:
        segment = self.segments[index]
        try:
            return self._source.borrow(segment.offset, segment.size, f"CPU {self.cpu}")
        except TruncatedError as error:
            raise TruncatedError(str(error), status=error.status, cpu=self.cpu, offset=error.offset) from None

    def forget(self, index: int) -> None:
        segment = self.segments[index]
        self._source.forget(segment.offset, segment.size)


class _Chunks(Sequence[Segment]):
    """The chunk table of a CPU, in three arrays: a hostile file may claim millions of chunks."""

    def __init__(self) -> None:
        self.offsets = array("Q")
        self.sizes = array("L")
        self.compressed_sizes = array("L")

    def add(self, offset: int, compressed_size: int, size: int) -> None:
        self.offsets.append(offset)
        self.compressed_sizes.append(compressed_size)
        self.sizes.append(size)

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, index: int) -> Segment: ...
    @overload
    def __getitem__(self, index: slice) -> list[Segment]: ...
    def __getitem__(self, index: int | slice) -> Segment | list[Segment]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return Segment(self.offsets[index], self.sizes[index])


class ChunkStream(Stream):
    """Sub-buffers in independently compressed chunks: u32 count, then of each u32 compressed size, u32 size, data.

    The chunk table is scanned once, when it is first asked for. The size that the file states for the CPU does not
    end it: some writers state it four bytes short (TC: before 3.2).
    """

    def __init__(self, source: Source, cpu: int, offset: int, size: int, subbuf_size: int, decompress: Decompress, *,
                 big_endian: bool, buffer: str = "") -> None:
        self.cpu = cpu
        self._source = source
        self._offset = offset
        self._size = size
        self._subbuf_size = subbuf_size
        self._decompress = decompress
        self._head = struct.Struct(">II" if big_endian else "<II")
        self._count = struct.Struct(">I" if big_endian else "<I")
        self._buffer = buffer
        self._lock = threading.Lock()
        self._cache: OrderedDict[int, bytes] = OrderedDict()

    @property
    def compressed(self) -> bool:
        return True

    @property
    def segments(self) -> Sequence[Segment]:  # type: ignore[override]
        return self._table[0]

    @property
    def sizes(self) -> Sequence[int]:
        return self._table[0].sizes

    @property
    def problems(self) -> Sequence[Problem]:  # type: ignore[override]
        return self._table[1]

    @functools.cached_property
    def _table(self) -> tuple[_Chunks, list[Problem]]:
        chunks, problems = _Chunks(), []
        for status, offset, n, detail in self._scan(chunks) if self._size else ():
            problems.append(Problem(self.cpu, offset, status, max(0, n), self._buffer, detail))
            if len(problems) >= MAX_BAD_CHUNKS:
                break
        return chunks, problems

    def _scan(self, chunks: _Chunks) -> Iterator[tuple[str, int, int, str]]:
        """Fill the chunk table; yields what is wrong with it: status, offset, lost bytes, detail."""
        source, pos, end = self._source, self._offset, self._offset + self._size
        if source.size - pos < 4:
            yield TRUNCATED, pos, self._size, "the chunks of this CPU are missing"
            return
        count = self._count.unpack(source.read(pos, 4))[0]
        pos += 4
        for index in range(min(count, MAX_CHUNKS)):
            left = source.size - pos - 8
            if left < 0:
                yield TRUNCATED, pos, end - pos, f"{count - index} of {count} chunks are missing"
                return
            csize, usize = self._head.unpack(source.read(pos, 8))
            if csize < MIN_CHUNK:
                yield COMPRESSION, pos, end - pos, f"chunk {index} claims {csize} compressed bytes"
                return
            if csize > left:
                yield TRUNCATED, pos, end - pos, (f"chunk {index} of {count} claims {csize} compressed bytes, "
                                                  f"but only {left} are left")
                return
            if 0 < usize <= MAX_CHUNK and usize % self._subbuf_size == 0:
                chunks.add(pos + 8, csize, usize)
            else:
                yield COMPRESSION, pos, csize, f"chunk {index} claims to hold {usize} bytes"
            pos += 8 + csize
        if count > MAX_CHUNKS:
            yield COMPRESSION, pos, end - pos, f"claims {count} chunks"
        elif pos < end:
            yield METADATA, pos, end - pos, f"{end - pos} bytes are left over after the {count} chunks that are claimed"

    def load(self, index: int) -> memoryview:
        with self._lock:
            data = self._cache.get(index)
            if data is not None:
                self._cache.move_to_end(index)
        if data is None:
            data = self._read(index)  # not under the lock: chunks decompress in parallel
            with self._lock:
                self._cache[index] = data
                while len(self._cache) > CACHED_CHUNKS or (
                        len(self._cache) > 1 and sum(map(len, self._cache.values())) > CACHED_BYTES):
                    self._cache.popitem(last=False)
        return memoryview(data)

    def _read(self, index: int) -> bytes:
        chunks, _ = self._table
        offset = chunks.offsets[index]
        where = f"{self._source.path}: CPU {self.cpu}, chunk at offset {offset}"
        try:
            return self._decompress(self._source.borrow(offset, chunks.compressed_sizes[index]), chunks.sizes[index])
        except CompressionError as error:
            failure: DamageError = CompressionError(f"{where}: {error}", status=COMPRESSION)
        except DamageError as error:
            failure = TruncatedError(f"{where}: {error}", status=error.status)
        failure.cpu, failure.offset = self.cpu, offset
        raise failure
