"""Where existing decoders disagree about pages (FORMAT.md, section 5): a test a row, by its number, in public API."""

from __future__ import annotations

import pytest
from filebuilder import BufferSpec, TraceDat, write_tracefs
from pagebuilder import ABIS, Page, event, format_text, header_page_text, make_format

import ftbuf

FORMAT = make_format("probe", 7, ["u32 number"])
CURRENT = ["le64", "be64", "le32", "be32", "le64-64k"]
BASE = 1_000_000


@pytest.fixture(params=CURRENT)
def abi(request):
    return ABIS[request.param]


def probe(abi, number):
    return event(FORMAT, abi, number=number)


def file_of(abi, data):
    """The pages as CPU 0 of a trace.dat."""
    buffers = [BufferSpec(pages={0: data}, subbuf_size=abi.subbuf_size)]
    return TraceDat(abi, formats={"test": [format_text(FORMAT)]}, buffers=buffers).build().data


def decoded(abi, data):
    """([(ts, number)], [(status, offset in the CPU's pages)], [count of lost events]): the same by both ways in."""
    built = file_of(abi, data)
    base = built.find(data)
    with ftbuf.open(built, errors="skip") as trace:
        columns = trace["probe"].arrays(["common_ts", "number"])
        problems, lost = trace.problems, trace.lost["count"].tolist()
    table = ftbuf.decode_pages(data, abi=abi, events=FORMAT, errors="skip")
    rows = list(zip(columns["common_ts"].tolist(), columns["number"].tolist(), strict=True))
    assert rows == list(zip(table["common_ts"].tolist(), table["number"].tolist(), strict=True))
    places = [offset - base for offset in problems["offset"].tolist()]
    return rows, list(zip(problems["status"].tolist(), places, strict=True)), lost


def after(abi, ts=BASE + 100):
    """A good page to go on with."""
    return Page(abi, ts).data(0, probe(abi, 99)).finish()


def test_1_the_page_size_is_that_of_the_buffer(tmp_path):
    small, large = ABIS["le64"], ABIS["le64-64k"]
    page = Page(large, BASE)
    for k in range(2000):
        page.data(1, probe(large, k))
    top = Page(small, BASE).data(0, probe(small, 5)).finish()
    files = {"instances/big/per_cpu/cpu0/trace_pipe_raw": page.finish() + page.finish(),
             "instances/big/events/header_page": header_page_text(large)}
    with ftbuf.open(write_tracefs(tmp_path, small, [FORMAT], {0: top + top}, files=files)) as trace:
        assert len(trace.window(buffer="big")["probe"]) == 4000
        assert len(trace.window(buffer="")["probe"]) == 2


def test_2_a_commit_larger_than_the_page_costs_that_page(abi):
    bad = Page(abi, BASE).data(0, probe(abi, 1)).finish(size=abi.subbuf_size - abi.data_offset + 4)
    rows, problems, _ = decoded(abi, after(abi, BASE - 1) + bad + after(abi))
    assert rows == [(BASE - 1, 99), (BASE + 100, 99)]
    assert problems == [("commit_too_large", abi.subbuf_size)]
    with pytest.raises(ftbuf.DamageError) as caught, ftbuf.open(file_of(abi, bad)) as trace:
        trace["probe"].table()
    assert (caught.value.status, caught.value.cpu) == ("commit_too_large", 0)


def test_3_after_padding_without_a_delta_the_page_is_empty(abi):
    page = Page(abi, BASE).data(5, probe(abi, 1)).header(29, 0).word(16).data(5, probe(abi, 2)).finish()
    rows, problems, _ = decoded(abi, page + after(abi))
    assert rows == [(BASE + 5, 1), (BASE + 100, 99)]
    assert problems == []


def test_4_padding_longer_than_the_page(abi):
    page = Page(abi, BASE).data(5, probe(abi, 1))
    at = page.here
    data = page.header(29, 7).word(1 << 20).data(5, probe(abi, 2)).finish()
    rows, problems, _ = decoded(abi, data + after(abi))
    assert rows == [(BASE + 5, 1), (BASE + 100, 99)]
    assert problems == [("padding_cut", at)]


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_5_a_long_record_shorter_than_its_own_length_field(abi, length):
    page = Page(abi, BASE).data(5, probe(abi, 1))
    at = page.here
    data = page.data(5, probe(abi, 2), length=length).data(5, probe(abi, 3)).finish()
    rows, problems, _ = decoded(abi, data + after(abi))
    assert rows == [(BASE + 5, 1), (BASE + 100, 99)]
    assert problems == [("length_too_small", at)]


@pytest.mark.parametrize("odd", [1, 2, 3])
def test_6_the_length_of_a_long_record_is_rounded_up(abi, odd):
    payload = probe(abi, 2) + bytes(4)  # what lies behind the fields may be cut by the odd length
    page = Page(abi, BASE).data(5, payload, length=4 + len(payload) - odd).data(5, probe(abi, 3)).finish()
    rows, problems, _ = decoded(abi, page)
    assert rows == [(BASE + 5, 2), (BASE + 10, 3)]
    assert problems == []


@pytest.mark.parametrize(("base", "stamp", "expected"), [
    (BASE, 5 * BASE, 5 * BASE),  # no top bits: as it is
    (BASE, 5, 5),  # also backwards
    ((1 << 59) + 7, 100, (1 << 59) + 100),  # top bits are kept
    ((3 << 59) + 7, (1 << 58), (3 << 59) + (1 << 58)),
    ((1 << 59) + (1 << 58), 5, (2 << 59) + 5),  # the overflow step
    ((15 << 59) - 1, 3, (15 << 59) + 3),
])
def test_7_absolute_time_stamps_follow_the_kernels_rule(abi, base, stamp, expected):
    page = Page(abi, base).time_stamp(stamp).data(0, probe(abi, 1)).data(1, probe(abi, 2)).finish()
    rows, problems, _ = decoded(abi, page)
    assert rows == [(expected, 1), (expected + 1, 2)]
    assert problems == []


@pytest.mark.parametrize(("delta", "counted"), [(1, 0), (2, 2), (1000, 1000)])
def test_8_the_delta_of_padding_counts_unless_it_is_1(abi, delta, counted):
    page = Page(abi, BASE).data(5, probe(abi, 1)).padding(delta, 24).data(5, probe(abi, 2)).finish()
    rows, problems, _ = decoded(abi, page)
    assert rows == [(BASE + 5, 1), (BASE + 10 + counted, 2)]
    assert problems == []


def test_9_lost_events_have_a_flag_and_a_count_that_is_bounds_checked(abi):
    def page(ts):
        return Page(abi, ts).data(0, probe(abi, 1))

    full = page(BASE + 3)
    while full.room >= 24:
        full.data(0, probe(abi, 1))
    data = page(BASE).finish(missed=True, stored=5788) + page(BASE + 1).finish(missed=True)
    data += page(BASE + 2).finish(missed=True, stored=1, sign_extend=False)
    before = decoded(abi, data)
    assert before[1:] == ([], [5788, -1, 1])
    full.raw(bytes(full.room))  # no room for a count that is said to be there
    rows, problems, lost = decoded(abi, data + full.finish(flags=3 << 30) + after(abi))
    assert problems[0][0] == "lost_count_cut"
    assert lost == [5788, -1, 1, -1]
    assert rows[:4] == [(BASE, 1), (BASE + 1, 1), (BASE + 2, 1), (BASE + 3, 1)]
    assert rows[-1] == (BASE + 100, 99)


def test_9_the_gap_is_before_the_first_event_of_the_page(abi):
    data = Page(abi, BASE).data(0, probe(abi, 1)).finish()
    data += Page(abi, BASE + 10).data(0, probe(abi, 2)).data(1, probe(abi, 3)).finish(missed=True, stored=7)
    with ftbuf.open(file_of(abi, data)) as trace:
        assert [e.lost for e in trace.records()] == [None, 7, None]
        assert (trace.lost["before"].tolist(), trace.lost["after"].tolist()) == ([BASE], [BASE + 10])


@pytest.mark.parametrize("order", ["le64", "be64"])
def test_10_bit_fields_of_big_endian_kernels_start_at_the_top(order):
    word = {"le64": (0x73B8 << 5 | 2).to_bytes(4, "little"), "be64": (2 << 27 | 0x73B8).to_bytes(4, "big")}[order]
    abi = ABIS[order]
    fmt = make_format("short", 7, [])  # the common fields alone: 8 bytes, two words
    data = Page(abi, BASE).raw(word).raw(event(fmt, abi)).finish()
    assert ftbuf.decode_pages(data, abi=abi, events=fmt)["common_ts"].tolist() == [BASE + 0x73B8]
