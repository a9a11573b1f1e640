"""Reading ahead changes nothing but the time: the same segments, the same damage, and no thread that outlives its reader."""

from __future__ import annotations

import gc
import threading
import time

import pytest
from corpus_data import ROOT

import ftbuf
from ftbuf.ahead import Ahead, Direct, segments_of
from ftbuf.container.model import Segment
from ftbuf.errors import CompressionError, DamageError


class Chunks:
    """A stream of chunks of 40,000 bytes; some cannot be read."""

    compressed = True

    def __init__(self, n: int, bad: frozenset[int] = frozenset()) -> None:
        self.segments = [Segment(i, 40_000) for i in range(n)]
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
    ahead, direct = Ahead(streams, [41, 3]), Direct([Chunks(41, bad), Chunks(3)])
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
    assert threading.active_count() == before
