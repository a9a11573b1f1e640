"""Clocks that stand still for many sub-buffers (jiffies, emulated machines): no view leaves a record out."""

from __future__ import annotations

import numpy as np
import pytest
from filebuilder import BufferSpec, TraceDat
from hypothesis import given
from hypothesis import strategies as st
from pagebuilder import ABIS, event, format_text, make_format, pages_of

import ftbuf

ABI = ABIS["le64"]
FORMAT = make_format("probe", 42, ["int number"])
PER_PAGE = 3


def page(number: int, ts: int) -> bytes:
    return bytes(pages_of(ABI, *(event(FORMAT, ABI, number=number + k) for k in range(PER_PAGE)), ts=ts, step=0))


def recording(stamps: list[int], **how: object) -> bytes:
    """Two CPUs, each with a sub-buffer of PER_PAGE records of one time for every stamp."""
    pages = b"".join(page(PER_PAGE * i, ts) for i, ts in enumerate(stamps))
    formats = {"test": [format_text(FORMAT)]}
    return TraceDat(ABI, formats=formats, buffers=[BufferSpec(pages={0: pages, 1: pages})], **how).build().data


def times(trace: ftbuf.Trace, **how: object) -> list[int]:
    return trace["probe"].table(**how)["common_ts"].tolist()


STAMPS = st.lists(st.sampled_from([0, 0, 0, 1, 5]), min_size=1, max_size=40).map(lambda steps: (1000 + np.cumsum(steps)).tolist())


@given(STAMPS, st.integers(-2, 42), st.sampled_from([{}, {"compression": "zlib", "chunk_pages": 2}]))
def test_windows_have_all_their_records(stamps, at, how):
    with ftbuf.open(recording(stamps, **how)) as trace:
        start = stamps[at % len(stamps)] + (at < 0)
        every = sorted(stamps * 2 * PER_PAGE)
        assert times(trace.window(start=start)) == [t for t in every if t >= start]
        assert times(trace.window(end=start)) == [t for t in every if t < start]
        assert times(trace.window(start, start + 6)) == [t for t in every if start <= t < start + 6]
        assert sum(trace.window(start=start).events.values()) == sum(t >= start for t in every)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_the_result_does_not_depend_on_threads(threads):
    stamps = np.repeat(np.arange(1000, 1012), 37).tolist()
    with ftbuf.open(recording(stamps)) as trace:
        assert times(trace, threads=threads) == sorted(stamps * 2 * PER_PAGE)
        assert times(trace.window(1003, 1009), threads=threads) == sorted([t for t in stamps if 1003 <= t < 1009] * 2 * PER_PAGE)


def test_partitions_have_every_record_once(tmp_path):
    path = tmp_path / "trace.dat"
    stamps = np.repeat([1000, 1000, 1007, 1020], 25).tolist()
    path.write_bytes(recording(stamps))
    with ftbuf.open(path) as trace:
        for size in ("4 KB", "20 KB", "100 KB", "1 GB"):
            found = [time for part in trace.partitions(size) for time in times(part.open())]
            assert found == sorted(stamps * 2 * PER_PAGE)
