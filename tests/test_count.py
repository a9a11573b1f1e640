"""Counting alone, which walks four pages at once, tells what decoding tells: counts, statistics, losses and damage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pagebuilder import Abi, Page, make_abi
from strategies import abis, pages, payloads

import ftbuf
from ftbuf import _core
from ftbuf.engine import Judge, Run, Window
from ftbuf.plan import header_op
from ftbuf.requests import slots_request, times_request

EXAMPLES = Path(__file__).parent.parent / "examples"
SLOTS = 3


def told(stream: bytes, abi: Abi, *, count: bool) -> tuple:
    """All that a decoder of one stream finds besides columns."""
    slot_of = np.arange(_core.N_IDS, dtype=np.uint16) % 4  # a quarter of the ids are of no interest
    slot_of[slot_of == SLOTS] = _core.NO_SLOT
    spec = (abi.subbuf_size, abi.data_offset, abi.long_size, 0, 2, int(abi.big_endian), int(abi.old_header))
    decoder = _core.Decoder([spec], [(0, 0, 0, 7, 0, None)], [(0, 0, 0, 0, 0)], [(slot_of, None, None)], SLOTS)
    if count:
        decoder.set_plans(np.full(SLOTS, _core.NO_PLAN, np.uint16), [])
    else:
        decoder.set_plans(np.zeros(SLOTS, np.uint16), [(0, int(abi.big_endian), [header_op(_core.OP_TS)], 0)])
    decoder.feed(0, _core.Pages(stream), 0, True)
    while decoder.step(1 << 20) != _core.DONE:
        pass
    return decoder.counts(), decoder.stream_stats(), bytes(decoder.take_problems()), bytes(decoder.take_losses())


@st.composite
def full_page(draw: st.DrawFn, abi: Abi) -> bytes:
    """Short records up to the very end of the page, as most pages are; or the last of them is cut."""
    page, left = Page(abi, draw(st.integers(0, 1 << 40))), abi.subbuf_size - abi.data_offset
    lengths = draw(st.lists(st.sampled_from([8, 12, 24, 64, 68]), min_size=1, max_size=8))
    used = 0
    for i in range(left // min(lengths)):
        length = lengths[i % len(lengths)]
        if used + length > left:
            break
        page.data(i & 3, (i * len(lengths) & 7).to_bytes(2, "little") + bytes(length - 6))
        used += length
    return page.finish(size=used - draw(st.sampled_from([0, 0, 4, 8])))


@given(st.data(), abis)
def test_counting_finds_what_decoding_finds(data, abi):
    many = data.draw(st.lists(st.one_of(pages(abi), full_page(abi)), min_size=5, max_size=14))
    stream = bytearray(b"".join(many))
    for _ in range(data.draw(st.integers(0, 3))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del stream[data.draw(st.integers(0, len(stream))):]
    assert told(bytes(stream), abi, count=True) == told(bytes(stream), abi, count=False)


@pytest.mark.parametrize("at", range(8))
@pytest.mark.parametrize("cut", [0, 4, 8, 60])
def test_a_last_record_that_does_not_fit(at, cut):
    abi = make_abi(subbuf_size=1024)
    stream = b""
    for i in range(8):
        page = Page(abi, 1000 * i)
        for length in [68, 8] * (12 if i == at else 13):
            page.data(3, bytes([length & 1, 0]) + bytes(length - 6))
        stream += page.finish(size=76 * 12 - cut if i == at else None)
    assert told(stream, abi, count=True) == told(stream, abi, count=False)


@given(st.lists(st.lists(payloads, min_size=1, max_size=6), min_size=8, max_size=20), st.integers(0, 255))
def test_one_flipped_byte_in_whole_pages(contents, seed):
    """Damage anywhere in pages that are otherwise good: what the fast walk leaves over is told as ever."""
    abi = make_abi(subbuf_size=1024)
    stream = bytearray()
    for i, records in enumerate(contents):
        page = Page(abi, 1000 * i)
        for payload in records:
            page.data(3, payload)
        stream += page.finish()
    at = seed * len(stream) // 256
    stream[at] ^= 1 << seed % 8
    assert told(bytes(stream), abi, count=True) == told(bytes(stream), abi, count=False)


@pytest.mark.parametrize("name", ["sched.dat", "function.dat"])
def test_counts_of_a_recording(name):
    with ftbuf.open(EXAMPLES / name) as trace:
        recording = trace._recording
        counted, _ = slots_request(recording)
        for source in recording.sources():
            runs = [Run([source], Window(), request, Judge("skip")).to_end() for request in (counted, times_request(recording))]
            assert len({tuple(r.decoder.counts()) for r in runs}) == 1
            assert len({tuple(r.decoder.stream_stats()) for r in runs}) == 1
            assert sum(runs[0].decoder.counts()) == runs[0].decoder.stream_stats()[0][1] > 0
