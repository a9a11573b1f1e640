"""Reading ahead changes nothing but the time: the same segments, the same damage, and no thread that outlives its reader."""

from __future__ import annotations

import gc
import threading
import time

import pytest
from corpus_data import ROOT
from filebuilder import BufferSpec, TraceDat
from pagebuilder import ABIS, Page, event, format_text, make_format, pack, pages_of

import ftbuf
from ftbuf.ahead import Ahead, Direct, segments_of
from ftbuf.container.model import Segment
from ftbuf.errors import CompressionError, DamageError

ABI = ABIS["le64"]
FORMAT = make_format("probe", 42, ["int number"])


class Chunks:
    """A stream of chunks of 40,000 bytes; some cannot be read."""

    compressed = True

    def __init__(self, n: int, bad: frozenset[int] = frozenset()) -> None:
        self.segments = [Segment(i, 40_000) for i in range(n)]
        self.sizes = [40_000] * n
        self.bad = bad
        self.loads: list[int] = []

    def load(self, index: int) -> memoryview:
        self.loads.append(index)
        if index in self.bad:
            raise CompressionError(f"chunk {index}", status="bad_compression")
        return memoryview(b"%d" % index)


def read(segments: Direct, i: int, indexes: range) -> list[bytes | str]:
    out: list[bytes | str] = []
    for index in indexes:
        try:
            out.append(bytes(segments.load(i, index)))
        except DamageError as error:
            out.append(str(error))
    return out


@pytest.mark.parametrize("first", [0, 7])
def test_segments_come_as_without(first):
    bad = frozenset({3, 13, 14, 40})
    streams = [Chunks(41, bad), Chunks(3)]
    ahead, direct = Ahead(streams, [41, 3]), Direct([Chunks(41, bad), Chunks(3)], [41, 3])
    assert read(ahead, 0, range(first, 41)) == read(direct, 0, range(first, 41))
    assert read(ahead, 1, range(3)) == read(direct, 1, range(3))
    assert sorted(streams[0].loads) == list(range(first, 41)), "each once"


def test_no_more_is_read_than_the_piece_has():
    stream = Chunks(100)
    assert len(read(Ahead([stream], [20]), 0, range(20))) == 20
    assert max(stream.loads) == 19


def test_memory_is_bounded():
    stream = Chunks(100)
    ahead = Ahead([stream], [100])
    ahead.load(0, 0)
    ahead.pool.shutdown(wait=True)
    assert len(stream.loads) <= 2 * (512 << 10) // 40_000


def test_a_thread_only_where_it_has_work(monkeypatch):
    plain = Chunks(5)
    plain.compressed = False
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert type(segments_of([Chunks(5)], [5], True)) is Ahead
    assert type(segments_of([Chunks(5)], [5], False)) is Direct
    assert type(segments_of([plain], [5], True)) is Direct
    assert type(segments_of([Chunks(5)], [1], True)) is Direct
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert type(segments_of([Chunks(5)], [5], True)) is Direct


def test_threads_end_with_their_readers():
    before = threading.active_count()
    with ftbuf.open(ROOT / "examples" / "sched.dat") as trace:
        steps = trace["sched_switch"].iterate(step_size=4096)
        next(steps)
        next(trace.records())
        del steps
    gc.collect()
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_damage_in_a_block_costs_its_chunk_alone():
    """Chunks are fed many at once; one in the middle cannot be read, and one holds a record too short for its event."""
    short = Page(ABI, 5000).data(0, event(FORMAT, ABI, number=1)).data(0, pack(ABI, 42, 2) + bytes(6)).finish()
    pages = [bytes(pages_of(ABI, event(FORMAT, ABI, number=i), ts=1000 * i)) for i in range(30)]
    pages[20] = short
    built = TraceDat(ABI, formats={"test": [format_text(FORMAT)]}, compression="zlib", chunk_pages=1,
                     buffers=[BufferSpec(pages={0: b"".join(pages)})]).build()
    whole = rows(built.data)
    data = bytearray(built.data)
    with ftbuf.open(built.data) as trace:
        segments = list(trace.recording.sources()[0].stream.segments)
    data[segments[7].offset + 5] ^= 0xFF
    with ftbuf.open(bytes(data), errors="skip") as trace:
        assert trace["probe"].table()["number"].tolist() == [n for n in whole if n != 7]
        found = {(s, o) for s, o in zip(trace.problems["status"], trace.problems["offset"].tolist(), strict=True)}
    first = segments[20].offset + ABI.data_offset + 4 + len(event(FORMAT, ABI, number=1)) + 4
    assert found == {("bad_compression", segments[7].offset), ("record_short", first)}


def rows(data: bytes) -> list[int]:
    with ftbuf.open(data, errors="skip") as trace:
        return trace["probe"].table()["number"].tolist()
