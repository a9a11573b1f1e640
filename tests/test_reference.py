"""The page builder and the reference decoder, held to bytes written by hand and to real recordings."""

from __future__ import annotations

import pytest
import reference as ref
from corpus_data import abi_of, raw_cases, streams
from filebuilder import BufferSpec, TraceDat
from pagebuilder import ABIS, Page, event, format_text, header_page_text, make_abi, make_format, pack, pages_of

from ftbuf.formats import Kind, parse_format, parse_header_page

LE64, BE64, LE32, BE32 = (ABIS[n] for n in ("le64", "be64", "le32", "be32"))
NEW = [pytest.param(a, id=n) for n, a in ABIS.items() if not a.old_header]
OLD = [pytest.param(a, id=n) for n, a in ABIS.items() if a.old_header]
ALL = NEW + OLD

PAYLOAD = bytes.fromhex("0b00000007000000")


def walked(page, abi, **kwargs):
    result = ref.walk_page(page, abi, **kwargs)
    return [(r.ts, r.length) for r in result.records], result.statuses


# -------------------------------------------------------------------------------------------- bytes made by hand


def test_worked_bytes():
    """The bytes of FORMAT.md 1(b), from a 6.18 kernel: 764.314555094 and then 29624 ns later."""
    first = bytes.fromhex("d692b2f4b1000000 b80f000000000000 10000000") + bytes(64)
    page = first + bytes.fromhex("10770e00") + bytes(64)
    result = ref.walk_page(page.ljust(4096, b"\0"), LE64)
    assert [(r.ts, r.offset, r.length) for r in result.records[:2]] == [(764314555094, 20, 64), (764314584718, 88, 64)]


def test_worked_bytes_are_what_the_builder_writes():
    page = Page(LE64, 764314555094).data(0, bytes(64)).data(29624, bytes(64)).finish()
    assert page[:20] == bytes.fromhex("d692b2f4b1000000 8800000000000000 10000000")
    assert page[84:88] == bytes.fromhex("10770e00")


@pytest.mark.parametrize(
    ("commit", "size", "lost"),
    [
        ("e81fffc0ffffffff", None, None),  # larger than the page
        ("b00f0080ffffffff", 0xFB0, -1),  # a full page whose count is missing: sign-extended, 0xffffffff80000fb0
        ("b00f00c0ffffffff", 0xFB0, 5788),  # with a count
        ("b00f00c000000000", 0xFB0, 5788),  # without sign extension
        ("b00f000000000000", 0xFB0, None),
    ],
)
def test_commit_flags(commit, size, lost):
    page = bytes(8) + bytes.fromhex(commit) + (b"\x1c\0\0\0" + bytes(112)) * 34
    page = page.ljust(16 + 0xFB0, b"\x1d") + (5788).to_bytes(8, "little")
    page = page.ljust(4096, b"\0")
    result = ref.walk_page(page, LE64)
    assert result.lost == lost
    assert (result.statuses == ["commit_too_large"]) is (size is None)


def test_big_endian_bytes():
    """A 32-bit big-endian page: commit at 8..12, type_len in the top five bits of a header, a TIME_EXTEND."""
    page = bytes.fromhex(
        "0000000000000064 00000018"
        "10000005 000b0000 00000001"  # type_len 2, delta 5
        "f0000003 00000001"  # TIME_EXTEND
        "08000001"
    )  # type_len 1, delta 1, its payload missing
    result = ref.walk_page(page.ljust(4096, b"\0"), BE32)
    assert [(r.ts, r.length, r.event_id) for r in result.records] == [(105, 8, 11)]
    assert result.problems == [ref.Problem("record_cut", 32, 4)]
    page = page[:8] + bytes.fromhex("0000001c") + page[12:] + bytes.fromhex("000c0000")
    result = ref.walk_page(page.ljust(4096, b"\0"), BE32)
    assert [(r.ts, r.event_id) for r in result.records] == [(105, 11), (105 + 3 + (1 << 27) + 1, 12)]
    assert result.extends == 1


def test_old_header_bytes():
    """2.6.28 to 2.6.30: type:2, len:3, time_delta:27."""
    little = bytes.fromhex(
        "0100000000000000 1c00000000000000"
        "4b000000 0500 0000 0000 0000"  # type 3, len 2, delta 2
        "61000000 01000000"  # type 1, delta 3
        "03000000 08000000 0600 0000"
    )[: 16 + 12 + 8 + 12]  # type 3, len 0: array[0] = 8
    little = little[:8] + (32).to_bytes(8, "little") + little[16:]
    result = ref.walk_page(little.ljust(4096, b"\0"), ABIS["le64-old"])
    assert [(r.ts, r.length, r.event_id) for r in result.records] == [(3, 8, 5), (6 + (1 << 27), 4, 6)]
    big = bytes.fromhex("0000000000000001 0000000c d0000002 00050000 00000000").ljust(4096, b"\0")
    assert [(r.ts, r.length, r.event_id) for r in ref.walk_page(big, ABIS["be32-old"]).records] == [(3, 8, 5)]


# ------------------------------------------------------------------------------------------ every kind of record


@pytest.mark.parametrize("abi", ALL)
def test_every_record_kind(abi):
    page = (
        Page(abi, 1000)
        .data(5, PAYLOAD)
        .time_extend(1 << 40)
        .data(7, bytes(112))
        .data(1, bytes(116))
        .data(1, PAYLOAD, long=True)
    )
    if not abi.old_header:
        page.padding(100, 16).data(1, PAYLOAD).padding(1, 8).data(0, PAYLOAD).time_stamp(1 << 50).data(2, PAYLOAD)
    page.end_padding().raw(b"\xff" * 7)
    records, statuses = walked(page.finish(), abi)
    late = 1012 + (1 << 40)
    want = [(1005, 8), (late, 112), (late + 1, 116), (late + 2, 8)]
    if not abi.old_header:
        want += [(late + 103, 8), (late + 103, 8), ((1 << 50) + 2, 8)]
    assert records == want
    assert statuses == []


@pytest.mark.parametrize("abi", NEW)
def test_forced_alignment(abi):
    """RB_FORCE_8BYTE_ALIGNMENT: payloads lie 8 bytes after their record's start, records are multiples of 8."""
    page = Page(abi, 1, align8=True).data(1, PAYLOAD).data(1, bytes(12))
    result = ref.walk_page(page.finish(), abi)
    assert [(r.offset - abi.data_offset, r.length) for r in result.records] == [(8, 8), (24, 16)]
    assert result.long_records == 2


@pytest.mark.parametrize("abi", NEW)
@pytest.mark.parametrize(
    ("base", "stored", "want"),
    [
        (5, 1 << 58, 1 << 58),  # no top bits: nothing is added
        ((1 << 60) + 9, 7, (1 << 60) + (1 << 59) + 7),  # top bits kept; 7 < running, so the 59 bits overflowed
        ((1 << 60) + 5, (1 << 60) + 9, (1 << 60) + 9),
        ((31 << 59) + 100, 5, 5),  # overflow of all 64 bits
    ],
)
def test_absolute_stamps(abi, base, stored, want):
    page = Page(abi, base).time_stamp(stored).data(0, PAYLOAD)
    assert walked(page.finish(), abi) == ([(want, 8)], [])


def test_time_wraps_at_64_bits():
    page = Page(LE64, (1 << 64) - 1).data(2, PAYLOAD)
    assert walked(page.finish(), LE64) == ([(1, 8)], [])


@pytest.mark.parametrize("abi", ALL)
@pytest.mark.parametrize("stored", [None, 0, 5788])
def test_lost(abi, stored):
    result = ref.walk_page(Page(abi, 1).data(0, PAYLOAD).finish(missed=True, stored=stored), abi)
    assert result.lost == (-1 if stored is None else stored)
    assert len(result.records) == 1


@pytest.mark.parametrize("abi", ALL)
def test_lost_count_without_room(abi):
    page = Page(abi, 1).data(0, bytes(abi.subbuf_size - abi.data_offset - 8), long=True)
    assert page.room == 0
    result = ref.walk_page(page.finish(missed=True, stored=7), abi)
    assert (result.lost, result.statuses, len(result.records)) == (-1, ["lost_count_cut"], 1)
    assert result.problem is None


# ------------------------------------------------------------------------------------------------------- defects


def ok(abi):
    return Page(abi, 1000).data(1, PAYLOAD)


DEFECTS = {
    "header_cut": lambda p: p.raw(b"\x01\x02"),
    "record_cut": lambda p: p.header(3, 1).raw(bytes(8)),
    "record_cut long": lambda p: p.data(1, bytes(8), length=16),
    "record_cut huge": lambda p: p.data(1, bytes(8), length=0xFFFFFFFF),
    "record_cut no length": lambda p: p.header(0, 1),
    "length_too_small": lambda p: p.data(1, bytes(8), length=3),
    "length_too_small padding": lambda p: p.padding(1, 8, length=0),
    "extend_cut": lambda p: p.header(30, 1),
    "stamp_cut": lambda p: p.header(31, 1),
    "padding_cut": lambda p: p.padding(1, 8, length=64),
    "padding_cut huge": lambda p: p.padding(1, 8, length=0xFFFFFFFC),
    "padding_cut no length": lambda p: p.header(29, 1),
    "type_missing": lambda p: p.header(0, 1).word(5).raw(bytes(4)),
}


@pytest.mark.parametrize("abi", NEW)
@pytest.mark.parametrize("defect", DEFECTS)
def test_defects(abi, defect):
    """Damage has a name and a place, costs the rest of its page, and leaves the records before it alone."""
    page = ok(abi)
    at = page.here
    DEFECTS[defect](page)
    result = ref.walk_page(page.finish(), abi)
    assert [(p.status, p.offset) for p in result.problems] == [(defect.split()[0], at)]
    assert [r.ts for r in result.records] == [1001]


@pytest.mark.parametrize("abi", OLD)
@pytest.mark.parametrize(
    ("status", "damage"),
    [
        ("bad_record_type", lambda p: p.old_header(2, 0, 1).word(0)),
        ("record_cut", lambda p: p.old_header(3, 7, 1)),
        ("record_cut", lambda p: p.old_header(3, 0, 1).word(64)),
        ("length_too_small", lambda p: p.old_header(3, 0, 1).word(3)),
        ("extend_cut", lambda p: p.old_header(1, 0, 1)),
    ],
)
def test_defects_of_old_headers(abi, status, damage):
    page = ok(abi)
    at = page.here
    result = ref.walk_page(damage(page).finish(), abi)
    assert [(p.status, p.offset) for p in result.problems] == [(status, at)]
    assert len(result.records) == 1


@pytest.mark.parametrize("abi", ALL)
def test_pages_that_are_not_all_there(abi):
    page = ok(abi).data(1, PAYLOAD).data(1, bytes(116)).finish()
    assert walked(b"", abi) == ([], ["page_short"])
    assert walked(page[: abi.data_offset - 1], abi) == ([], ["page_short"])
    assert walked(page[: abi.data_offset], abi) == ([], ["page_cut"])
    assert walked(page[: abi.data_offset + 12], abi) == ([(1001, 8)], ["page_cut"])
    assert walked(page[: abi.data_offset + 25], abi) == ([(1001, 8), (1002, 8)], ["page_cut"])
    whole = abi.data_offset + 24 + 8 + 116
    assert walked(page[: whole - 1], abi) == ([(1001, 8), (1002, 8)], ["page_cut"])
    assert walked(page[:whole], abi) == ([(1001, 8), (1002, 8), (1003, 116)], [])


@pytest.mark.parametrize("abi", ALL)
def test_commit_too_large(abi):
    room = abi.subbuf_size - abi.data_offset
    assert walked(ok(abi).finish(size=room + 1), abi) == ([], ["commit_too_large"])
    assert walked(ok(abi).finish(size=room)[: abi.data_offset + 12], abi) == ([(1001, 8)], ["page_cut"])
    assert walked(Page(abi, 5).finish(), abi) == ([], [])


# -------------------------------------------------------------------------------------------------------- fields

DECLARATIONS = [
    "s8 tiny",
    "u16 small",
    "int number",
    "unsigned long word",
    "s64 wide",
    "const char * address",
    "char comm[16]",
    "u32 four[4]",
    "struct thing thing",
    "__data_loc char[] text",
    "__rel_loc char[] near",
    "__data_loc u16[] halves",
    "__rel_loc cpumask_t mask",
]


@pytest.mark.parametrize("abi", NEW)
def test_fields(abi):
    fmt = make_format("all", 77, DECLARATIONS, long_size=abi.long_size, sizes={"thing": 11})
    values = {
        "tiny": -2,
        "small": 65535,
        "number": -70000,
        "word": 4000000000,
        "wide": -(1 << 62),
        "address": (1 << 32) - 16,
        "comm": b"0123456789abcdef",
        "four": [1, 2, 3, 1 << 31],
        "text": b"hello",
        "near": b"",
        "halves": [1, 2, 3],
        "mask": [5, 6],
        "thing": bytes(range(11)),
    }
    payload = event(fmt, abi, common_pid=-1, **values)
    got = {f.name: ref.decode_field(payload, f, abi) for f in fmt.fields}
    assert {n: got[n] for n in values} == values
    assert (got["common_type"], got["common_pid"]) == (77, -1)
    assert got["thing"] == bytes(range(11))
    flexible = make_format("tail", 78, ["u64 tail[]"], long_size=abi.long_size)
    payload = event(flexible, abi, tail=[1, 2]) + b"junk"
    assert ref.decode_field(payload, flexible.fields[-1], abi) == [1, 2]


def test_field_places():
    """Locations are numbers in the kernel's byte order: low half offset, high half length."""
    for abi, location in ((LE64, "10000600"), (BE64, "00060010")):
        fmt = make_format("s", 5, ["int pad", "__data_loc char[] s"], long_size=8)
        payload = bytes(12) + bytes.fromhex(location) + b"hello\0"
        assert ref.decode_field(payload, fmt.fields[-1], abi) == b"hello"
        assert ref.field_bytes(payload[:-1], fmt.fields[-1], abi) == (b"", True)


@pytest.mark.parametrize("abi", NEW)
def test_records_that_do_not_fit_their_format(abi):
    fmt = make_format("s", 5, ["int pad", "__data_loc char[] s", "__rel_loc u32[] r"], long_size=abi.long_size)
    good = event(fmt, abi, pad=1, s="abc", r=[7])
    lying = event(fmt, abi, pad=2, s=("loc", 4000, 9), r=("loc", 65000, 65535))
    stream = pages_of(abi, good, lying, good[:12], pack(abi, 9, 2) + bytes(6), good)
    result = ref.decode_stream(stream, abi, {5: fmt})
    assert [(r.values["pad"], r.values["s"], r.values["r"]) for r in result.rows] == [
        (1, b"abc", [7]),
        (2, b"", []),
        (1, b"abc", [7]),
    ]
    assert [p.status for p in result.problems] == ["field_outside", "field_outside", "record_short", "unknown_event"]
    assert result.data_records == 5


def test_merge_keeps_the_order_of_each_stream():
    fmt = make_format("e", 5, ["int n"])

    def rows(*stamps):
        return [ref.Row(ts, fmt, {}, b"") for ts in stamps]

    merged = ref.merge({(0, 1): rows(5, 3, 9), (0, 0): rows(5, 6), (1, 0): rows(4), (1, 1): []})
    assert [(key, row.ts) for key, row in merged] == [
        ((1, 0), 4),
        ((0, 0), 5),
        ((0, 1), 5),
        ((0, 1), 3),
        ((0, 0), 6),
        ((0, 1), 9),
    ]


# ------------------------------------------------------------------------------------------------------- builder


def test_declarations():
    fmt = make_format(
        "x",
        1,
        ["char a", "u64 b", "unsigned long c[2]", "char * d", "__rel_loc char[] e", "pid_t f"],
        long_size=4,
        holes={"f": 4},
    )
    own = [(f.name, f.offset, f.size, f.signed, f.kind, f.is_pointer) for f in fmt.own_fields]
    assert own == [
        ("a", 8, 1, True, Kind.SCALAR, False),
        ("b", 16, 8, False, Kind.SCALAR, False),
        ("c", 24, 8, False, Kind.ARRAY, False),
        ("d", 32, 4, False, Kind.SCALAR, True),
        ("e", 36, 4, True, Kind.STRING, False),
        ("f", 44, 4, True, Kind.SCALAR, False),
    ]
    text = format_text(fmt).decode()
    assert text.startswith(
        "name: x\nID: 1\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    )
    assert "common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\tfield:char a;" in text


@pytest.mark.parametrize("abi", NEW)
def test_texts_of_built_formats(abi):
    """The package reads the builder's texts as the builder means them."""
    fmt = make_format("x", 9, [*DECLARATIONS, "u64 last[]"], long_size=abi.long_size, sizes={"thing": 11})
    assert parse_format(format_text(fmt), "test", long_size=abi.long_size) == fmt
    assert parse_header_page(header_page_text(abi), big_endian=abi.big_endian) == abi


@pytest.mark.parametrize("version", [6, 7])
def test_trace_dat_marks(version):
    abi = make_abi(big=True)
    built = TraceDat(
        abi, version=version, buffers=[BufferSpec("", {0: Page(abi).finish(), 2: Page(abi).finish()})]
    ).build()
    offset, size = built.marks[".cpu2"]
    assert (offset % 4096, size) == (0, 4096)
    assert built.patched("page_size", 0, big=True)[offset:] == built.data[offset:]
    assert len(built.cut(".cpu2", 100)) == offset + 100


# ----------------------------------------------------------------------------------------------- real recordings


def counts(per_cpu, abi):
    pages = [ref.walk_page(page, abi) for stream in per_cpu.values() for _, page in ref.split_pages(stream, abi)]
    return {
        "pages": len(pages),
        "data_events": sum(len(p.records) for p in pages),
        "time_extend": sum(p.extends for p in pages),
        "time_stamp": sum(p.stamps for p in pages),
        "padding": sum(p.paddings for p in pages),
        "long_records": sum(p.long_records for p in pages),
        "missed_pages": sum(p.lost is not None for p in pages),
        "missed_with_count": sum(p.lost is not None and p.lost != ref.UNKNOWN for p in pages),
        "bad": sum(bool(p.problems) for p in pages),
    }


def test_small_recordings(recording):
    if recording.path.suffix == ".dat":
        pytest.skip("not bare pages")
    assert counts(recording.streams(), recording.abi) == recording.info["raw"]
    if recording.info["snapshot_raw"]:
        assert counts(recording.streams(snapshot=True), recording.abi) == recording.info["snapshot_raw"]


@pytest.mark.corpus
@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in raw_cases()])
def test_corpus(case):
    abi = abi_of(case.info)
    assert counts(streams(case), abi) == case.info["raw"]
    if case.info["snapshot_raw"]:
        assert counts(streams(case, snapshot=True), abi) == case.info["snapshot_raw"]
