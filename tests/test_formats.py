"""Event format texts, header_page texts: every declaration form, damaged texts, and every format of the corpus."""

from __future__ import annotations

import contextlib
import json
import lzma
import re
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftbuf.errors import FormatError
from ftbuf.formats import (
    Abi,
    EventFormat,
    Field,
    Kind,
    Where,
    event_name_and_id,
    parse_format,
    parse_header_page,
)

SHARED = Path(__file__).resolve().parents[2] / "shared"

COMMON = """\
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;
"""

SCHED_SWITCH = b"""\
name: sched_switch
ID: 316
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char prev_comm[16];	offset:8;	size:16;	signed:0;
	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
	field:int prev_prio;	offset:28;	size:4;	signed:1;
	field:long prev_state;	offset:32;	size:8;	signed:1;
	field:char next_comm[16];	offset:40;	size:16;	signed:0;
	field:pid_t next_pid;	offset:56;	size:4;	signed:1;
	field:int next_prio;	offset:60;	size:4;	signed:1;

print fmt: "prev_comm=%s prev_pid=%d", REC->prev_comm, REC->prev_pid
"""


def text_of(*lines: str, common: str = COMMON, print_fmt: str = '"x"') -> bytes:
    body = "".join(f"\t{line}\n" for line in lines)
    return f"name: ev\nID: 77\nformat:\n{common}\n{body}\nprint fmt: {print_fmt}\n".encode("utf-8", "surrogateescape")


def one(
    declaration: str,
    size: int,
    signed: str = "\tsigned:0;",
    *,
    offset: int = 8,
    long_size: int = 8,
    print_fmt: str = '"x"',
) -> Field:
    line = f"field:{declaration};\toffset:{offset};\tsize:{size};{signed}"
    (field,) = parse_format(text_of(line, print_fmt=print_fmt), "sys", long_size=long_size).own_fields
    assert (field.offset, field.declaration) == (offset, declaration)
    return field


def test_a_whole_event() -> None:
    event = parse_format(SCHED_SWITCH, "sched")
    assert (event.system, event.name, event.id) == ("sched", "sched_switch", 316)
    assert event.print_fmt == '"prev_comm=%s prev_pid=%d", REC->prev_comm, REC->prev_pid'
    assert [f.name for f in event.common_fields] == [
        "common_type",
        "common_flags",
        "common_preempt_count",
        "common_pid",
    ]
    assert [f.name for f in event.own_fields] == [
        "prev_comm",
        "prev_pid",
        "prev_prio",
        "prev_state",
        "next_comm",
        "next_pid",
        "next_prio",
    ]
    assert event.own_fields[1] == Field(
        "prev_pid", "pid_t", "pid_t prev_pid", 24, 4, True, Kind.SCALAR, Where.INLINE, 4, False, False
    )
    assert event.find("prev_state") is event.own_fields[3]
    assert event.find("nosuch") is None


@pytest.mark.parametrize(
    ("declaration", "size", "kind", "where", "element_size", "name", "type_"),
    [
        ("unsigned long long x", 8, Kind.SCALAR, Where.INLINE, 8, "x", "unsigned long long"),
        ("int dfd", 8, Kind.SCALAR, Where.INLINE, 8, "dfd", "int"),  # syscall arguments: the size counts, not the type
        ("__u64 mask", 4, Kind.SCALAR, Where.INLINE, 4, "mask", "__u64"),
        ("enum dma_data_direction dir", 4, Kind.SCALAR, Where.INLINE, 4, "dir", "enum dma_data_direction"),
        ("enum netfs_failure what", 1, Kind.SCALAR, Where.INLINE, 1, "what", "enum netfs_failure"),
        ("some_new_t x", 2, Kind.SCALAR, Where.INLINE, 2, "x", "some_new_t"),
        ("uuid_t u", 16, Kind.OPAQUE, Where.INLINE, 1, "u", "uuid_t"),
        ("struct crw crw", 4, Kind.OPAQUE, Where.INLINE, 1, "crw", "struct crw"),
        ("union orb orb", 32, Kind.OPAQUE, Where.INLINE, 1, "orb", "union orb"),
        ("u32 odd", 3, Kind.OPAQUE, Where.INLINE, 1, "odd", "u32"),
        ("char comm[16]", 16, Kind.STRING, Where.INLINE, 1, "comm", "char"),
        ("char ssid[32 + 1]", 33, Kind.STRING, Where.INLINE, 1, "ssid", "char"),
        ("char comm[]", 16, Kind.STRING, Where.INLINE, 1, "comm", "char"),  # synthetic events
        ("const char name[8]", 8, Kind.STRING, Where.INLINE, 1, "name", "const char"),
        ("unsigned char addr[6]", 6, Kind.ARRAY, Where.INLINE, 1, "addr", "unsigned char"),
        ("__u8 src[16]", 16, Kind.ARRAY, Where.INLINE, 1, "src", "__u8"),
        ("u8 cap[(int)sizeof(struct ht_cap)]", 26, Kind.ARRAY, Where.INLINE, 1, "cap", "u8"),
        ("u32 rates[NUM_BANDS]", 12, Kind.ARRAY, Where.INLINE, 4, "rates", "u32"),
        ("u32 rates[NUM_BANDS]", 13, Kind.OPAQUE, Where.INLINE, 1, "rates", "u32"),
        ("new_t x[3]", 24, Kind.ARRAY, Where.INLINE, 8, "x", "new_t"),  # size / count tells
        ("new_t x[N]", 24, Kind.OPAQUE, Where.INLINE, 1, "x", "new_t"),
        ("nid_t nid[3]", 4, Kind.ARRAY, Where.INLINE, 4, "nid", "nid_t"),  # f2fs: the kernel's own size is one element
        ("int m[2][3]", 24, Kind.ARRAY, Where.INLINE, 4, "m", "int"),
        ("u16 u2[]", 8, Kind.ARRAY, Where.INLINE, 2, "u2", "u16"),  # kprobe events
        ("struct s x[2]", 16, Kind.OPAQUE, Where.INLINE, 1, "x", "struct s"),
        ("unsigned long args[6]", 48, Kind.ARRAY, Where.INLINE, 8, "args", "unsigned long"),
        ("long unsigned int y[2]", 16, Kind.ARRAY, Where.INLINE, 8, "y", "long unsigned int"),
        ("cpumask_t mask", 128, Kind.MASK, Where.INLINE, 8, "mask", "cpumask_t"),
        ("char buf[]", 0, Kind.STRING, Where.TAIL, 1, "buf", "char"),
        ("char buf", 0, Kind.STRING, Where.TAIL, 1, "buf", "char"),  # 3.x wrote no brackets
        ("u32 buf[]", 0, Kind.ARRAY, Where.TAIL, 4, "buf", "u32"),
        ("unsigned long args[]", 0, Kind.ARRAY, Where.TAIL, 8, "args", "unsigned long"),
        ("struct s tail[]", 0, Kind.OPAQUE, Where.TAIL, 1, "tail", "struct s"),
        ("__data_loc char[] name", 4, Kind.STRING, Where.DATA_LOC, 1, "name", "char"),
        ("__data_loc char[] name", 8, Kind.STRING, Where.DATA_LOC, 1, "name", "char"),  # synthetic events
        ("__data_loc u64[] addrs", 4, Kind.ARRAY, Where.DATA_LOC, 8, "addrs", "u64"),
        ("__data_loc unsigned char[] cmd", 4, Kind.ARRAY, Where.DATA_LOC, 1, "cmd", "unsigned char"),
        ("__data_loc unsigned long[] args", 4, Kind.ARRAY, Where.DATA_LOC, 8, "args", "unsigned long"),
        ("__data_loc struct s[] x", 4, Kind.OPAQUE, Where.DATA_LOC, 1, "x", "struct s"),
        ("__data_loc cpumask_t cpus", 4, Kind.MASK, Where.DATA_LOC, 8, "cpus", "cpumask_t"),
        ("__data_loc cpumask_t *[] cpus", 4, Kind.MASK, Where.DATA_LOC, 8, "cpus", "cpumask_t *"),
        ("__data_loc name", 2, Kind.STRING, Where.SHORT_LOC, 1, "name", ""),
        ("__str_loc name", 2, Kind.STRING, Where.SHORT_LOC, 1, "name", ""),
        ("__data_loc char[] name", 2, Kind.STRING, Where.SHORT_LOC, 1, "name", "char"),
        ("__data_loc char[] name", 5, Kind.OPAQUE, Where.INLINE, 1, "name", "char"),
        ("__rel_loc char foo[]", 4, Kind.STRING, Where.REL_LOC, 1, "foo", "char"),
        ("__rel_loc char[] foo", 4, Kind.STRING, Where.REL_LOC, 1, "foo", "char"),
        ("__rel_loc unsigned long bits[]", 4, Kind.ARRAY, Where.REL_LOC, 8, "bits", "unsigned long"),
        ("__rel_loc cpumask_t cpus", 4, Kind.MASK, Where.REL_LOC, 8, "cpus", "cpumask_t"),
        ("u8 a.b.c", 1, Kind.SCALAR, Where.INLINE, 1, "a.b.c", "u8"),
        ("__le32 x[2]", 8, Kind.ARRAY, Where.INLINE, 4, "x", "__le32"),
        ("bool b[3]", 3, Kind.ARRAY, Where.INLINE, 1, "b", "bool"),
        ("size_t s[]", 16, Kind.ARRAY, Where.INLINE, 8, "s", "size_t"),
        ("unsigned v[]", 16, Kind.ARRAY, Where.INLINE, 4, "v", "unsigned"),
    ],
)
def test_declarations(
    declaration: str, size: int, kind: Kind, where: Where, element_size: int, name: str, type_: str
) -> None:
    field = one(declaration, size)
    assert (field.name, field.type) == (name, type_)
    assert (field.kind, field.where, field.element_size) == (kind, where, element_size)
    assert field.size == size
    assert not field.signed and not field.is_pointer and not field.is_common


@pytest.mark.parametrize(
    ("declaration", "name", "type_"),
    [
        ("void * p", "p", "void *"),
        ("void* p", "p", "void*"),
        ("void *p", "p", "void *"),
        ("const char * name", "name", "const char *"),
        ("const char *const * argv", "argv", "const char *const *"),
        ("const struct attr *const attr", "attr", "const struct attr *const"),
        ("struct nvmap_handle ** ids", "ids", "struct nvmap_handle **"),
        ("void __seg_gs * ptr", "ptr", "void __seg_gs *"),
        ("const char __attribute__((user)) * name", "name", "const char __attribute__((user)) *"),
        ("cpumask_t * mask", "mask", "cpumask_t *"),
    ],
)
def test_pointers(declaration: str, name: str, type_: str) -> None:
    for size in (4, 8):
        field = one(declaration, size)
        assert (field.name, field.type, field.is_pointer) == (name, type_, True)
        assert (field.kind, field.where, field.element_size) == (Kind.SCALAR, Where.INLINE, size)


def test_arrays_of_pointers() -> None:
    assert one("struct s *p[4]", 32).element_size == 8
    for long_size in (4, 8):
        field = one("__data_loc struct s *[] ids", 4, long_size=long_size)
        assert (field.kind, field.element_size, field.is_pointer) == (Kind.ARRAY, long_size, True)


@pytest.mark.parametrize(
    "declaration",
    [
        "unsigned long x[]",
        "long x[]",
        "size_t x[]",
        "ulong x[]",
        "__data_loc unsigned long[] x",
        "__data_loc cpumask_t x",
    ],
)
def test_longs_are_of_the_traced_kernel(declaration: str) -> None:
    for long_size in (4, 8):
        size = 4 if "loc" in declaration else 16
        assert one(declaration, size, long_size=long_size).element_size == long_size


@pytest.mark.parametrize("helper", ["__get_bitmask(cpus)", "__get_cpumask(cpus)", "__get_rel_bitmask((cpus))"])
def test_bitmasks_are_told_by_the_print_fmt(helper: str) -> None:
    field = one("__data_loc unsigned long[] cpus", 4, print_fmt=f'"%s", {helper}')
    assert (field.kind, field.element_size) == (Kind.MASK, 8)
    assert one("__data_loc u8[] cpus", 4, print_fmt=f'"%s", {helper}').kind is Kind.ARRAY


def test_attribute_is_no_part_of_the_type_hint() -> None:
    field = one("u32 __attribute__((btf_type_tag(x))) v[]", 8)
    assert (field.name, field.kind, field.element_size) == ("v", Kind.ARRAY, 4)


@pytest.mark.parametrize(
    ("declaration", "size", "signed"),
    [
        ("int x", 4, True),
        ("long long x", 8, True),
        ("pid_t x", 4, True),
        ("s64 x", 8, True),
        ("short int x", 2, True),
        ("unsigned int x", 4, False),
        ("unsigned x", 4, False),
        ("u64 x", 8, False),
        ("char x", 1, False),
        ("signed char x", 1, True),
        ("void * x", 8, False),
        ("unknown_t x", 4, False),
        ("char x[16]", 16, False),
    ],
)
def test_without_signed_the_type_is_asked(declaration: str, size: int, signed: bool) -> None:
    assert one(declaration, size, signed="").signed is signed
    assert one(declaration, size, signed="\tsigned:1;").signed is True
    assert one(declaration, size, signed="\tsigned:0;").signed is False


@pytest.mark.parametrize(
    "line",
    [
        "field:int x;\toffset:8;\tsize:4;\tsigned:1;",
        "field: int x;\toffset:8;\tsize:4;\tsigned:1;",
        "field special:int x;\toffset:8;\tsize:4;\tsigned:1;",
        "field:int x;offset:8;size:4;signed:1;",
        "  field:int   x ; offset: 8; size: 4; signed: 1; filter_type:0;",
    ],
)
def test_spellings_of_a_line(line: str) -> None:
    (field,) = parse_format(text_of(line), "sys").own_fields
    assert (field.name, field.type, field.offset, field.size, field.signed) == ("x", "int", 8, 4, True)


def test_stacks() -> None:
    lines = (
        "field:int size;\toffset:8;\tsize:4;\tsigned:1;",
        "field:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;",
    )
    text = text_of(*lines)
    caller = parse_format(text.replace(b": ev", b": kernel_stack", 1), "ftrace").find("caller")
    assert caller is not None
    assert (caller.kind, caller.where, caller.element_size, caller.size) == (Kind.ARRAY, Where.TAIL, 8, 0)
    caller = parse_format(text.replace(b": ev", b": user_stack", 1), "ftrace").find("caller")
    assert caller is not None
    assert (caller.kind, caller.where, caller.element_size, caller.size) == (Kind.ARRAY, Where.INLINE, 8, 64)


def test_raw_marker_is_bytes() -> None:
    text = text_of(
        "field:unsigned int id;\toffset:8;\tsize:4;\tsigned:0;", "field:char buf[];\toffset:12;\tsize:0;\tsigned:0;"
    )
    buf = parse_format(text.replace(b": ev", b": raw_data", 1), "ftrace").find("buf")
    assert buf is not None
    assert (buf.kind, buf.where, buf.element_size) == (Kind.OPAQUE, Where.TAIL, 1)


def test_a_tail_is_last() -> None:
    event = parse_format(
        text_of("field:char none[];\toffset:8;\tsize:0;\tsigned:0;", "field:int x;\toffset:8;\tsize:4;\tsigned:1;"),
        "sys",
    )
    none = event.find("none")
    assert none is not None
    assert (none.kind, none.where, none.size) == (Kind.OPAQUE, Where.INLINE, 0)


def test_two_fields_of_one_name() -> None:
    event = parse_format(
        text_of(
            "field:__data_loc char[] type;\toffset:8;\tsize:4;\tsigned:0;",
            "field:int type;\toffset:12;\tsize:4;\tsigned:1;",
            "field:int twice;\toffset:16;\tsize:4;\tsigned:1;",
            "field:int twice;\toffset:20;\tsize:4;\tsigned:1;",
        ),
        "regmap",
    )
    assert [f.name for f in event.own_fields] == ["__data_loc_type", "type", "twice", "twice__2"]
    located, plain = event.find("type", located=True), event.find("type")
    assert located is not None and located.offset == 8
    assert plain is not None and plain.offset == 12
    twice = event.find("twice", located=True)
    assert twice is not None and twice.offset == 16


def test_common_fields_are_read_not_known() -> None:
    common = COMMON + "\tfield:int common_lock_depth;\toffset:8;\tsize:4;\tsigned:1;\n"
    event = parse_format(text_of("field:int x;\toffset:12;\tsize:4;\tsigned:1;", common=common), "sys")
    assert [f.name for f in event.common_fields][-1] == "common_lock_depth"
    assert [f.name for f in event.own_fields] == ["x"]
    assert parse_format(text_of("field:int x;\toffset:0;\tsize:4;\tsigned:1;", common=""), "sys").common_fields == ()
    assert parse_format(text_of(), "sys").own_fields == ()


def test_print_fmt_is_kept_whole() -> None:
    print_fmt = '"a\tb\n" "second line \udcff", REC->x,\n\n  ({ 1; })'
    assert parse_format(text_of(print_fmt=print_fmt), "sys").print_fmt == print_fmt
    assert parse_format(text_of().partition(b"\nprint fmt")[0], "sys").print_fmt == ""


def test_name_and_id() -> None:
    assert event_name_and_id(SCHED_SWITCH) == ("sched_switch", 316)
    assert event_name_and_id(b"name: \xff.x\nID: 0") == ("\udcff.x", 0)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\0" * 64,
        b"name: x",
        b"name: x\n",
        b"name: x\nID:",
        b"name: x\nID: -1\n",
        b"name: x\nID: 65536\n",
        b"name: x\nID: 1_0\n",
        b"name:\nID: 1\n",
        b"name: x\nID: 99999999999999999999999\n",
        b"x" * (2 << 20),
        b"name: x\nID: 1\n" + b" " * (2 << 20),
    ],
)
def test_texts_that_are_no_format(text: bytes) -> None:
    with pytest.raises(FormatError):
        parse_format(text, "sys")


@pytest.mark.parametrize(
    "line",
    [
        "field:int x;\toffset:-8;\tsize:4;\tsigned:1;",
        "field:int x;\toffset:8;\tsize:-4;\tsigned:1;",
        "field:int x;",
        "field:int x;\toffset:8;\tsize:99999999999;\tsigned:1;",
        "field:int x;\toffset:2000000000;\tsize:4;\tsigned:1;",
        "field:int x;\toffset:0;\tsize:1073741824;\tsigned:1;",
        "field:int x\toffset:8;\tsize:4;\tsigned:1;",
        "field:int x;\toffset:\u0663;\tsize:4;\tsigned:1;",
    ],
)
def test_fields_that_are_nowhere(line: str) -> None:
    with pytest.raises(FormatError):
        parse_format(text_of(line), "sys")


@pytest.mark.parametrize(
    "declaration", ["", "]", "[]", "[", "*", "int", "__data_loc", "int [4]", "x]]]", "((", "\udcff"]
)
def test_declarations_that_say_little(declaration: str) -> None:
    field = one(declaration, 4)
    assert field.name and field.size == 4


@pytest.mark.parametrize(
    "piece",
    [
        "field",
        "[",
        "]",
        "[]",
        "[9]",
        "[99999999]",
        "field:x[9];\toffset:8;\tsize:4;\n",
        "__attribute__((",
        "__attribute__((a(b)",
        "* ",
        "\t",
        "field:a;\toffset:",
        "__get_bitmask((",
        ";",
        "a ",
    ],
)
def test_long_junk_takes_bounded_time(piece: str) -> None:
    start = time.perf_counter()
    for text in (
        text_of(piece * 100_000),
        text_of("field:" + piece * 50_000 + "x;\toffset:8;\tsize:4;\tsigned:0;"),
        text_of(*["field:" + (piece * 1000)[:1000] + "x;\toffset:8;\tsize:4;\tsigned:0;"] * 900),
        text_of(print_fmt=piece * 100_000),
    ):
        with contextlib.suppress(FormatError):
            parse_format(text[: 1 << 20], "sys")
    assert time.perf_counter() - start < 5


@given(st.binary(max_size=400))
def test_binary_junk(junk: bytes) -> None:
    for text in (
        junk,
        b"name: x\nID: 1\n" + junk,
        SCHED_SWITCH[:60] + junk,
        b"name: x\nID: 1\nformat:\n\tfield:" + junk,
    ):
        with contextlib.suppress(FormatError):
            parse_format(text, "sys")
    with contextlib.suppress(FormatError):
        parse_header_page(junk, big_endian=False)


@given(st.data())
def test_damaged_text(data: st.DataObject) -> None:
    text = bytearray(SCHED_SWITCH)
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(FormatError):
        check(parse_format(bytes(text), "sched"))


HEADER_PAGE = b"""\
	field: u64 timestamp;	offset:0;	size:8;	signed:0;
	field: local_t commit;	offset:8;	size:8;	signed:1;
	field: int overwrite;	offset:8;	size:1;	signed:1;
	field: char data;	offset:16;	size:4080;	signed:0;
"""
NEW_HEADER = b"# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n"
OLD_HEADER = b"# compressed entry header\n\ttype        :    2 bits\n\tlen         :    3 bits\n"


def test_header_page() -> None:
    assert parse_header_page(HEADER_PAGE, big_endian=True, header_event=NEW_HEADER) == Abi(True, 8, 4096, 16, False)
    assert parse_header_page(HEADER_PAGE.replace(b":4080", b":65520"), big_endian=False).subbuf_size == 65536
    short = HEADER_PAGE.replace(b"commit;\toffset:8;\tsize:8", b"commit;\toffset:8;\tsize:4")
    short = short.replace(b"16;\tsize:4080", b"12;\tsize:4084")
    assert parse_header_page(short, big_endian=False) == Abi(False, 4, 4096, 12, False)


def test_header_page_of_old_kernels() -> None:
    lines = [line for line in HEADER_PAGE.splitlines() if b"overwrite" not in line]
    text = b"".join(line.rpartition(b"signed")[0] + b"\n" for line in lines)
    assert parse_header_page(text, big_endian=False) == Abi(False, 8, 4096, 16, False)
    assert parse_header_page(text, big_endian=False, header_event=OLD_HEADER).old_header
    assert parse_header_page(b"", big_endian=False) == Abi(False, 8, 4096, 16, True)
    fallbacks = {"fallback_subbuf_size": 8192, "fallback_long_size": 4}
    assert parse_header_page(b"", big_endian=True, **fallbacks) == Abi(True, 4, 8192, 12, True)
    assert not parse_header_page(b"", big_endian=False, header_event=NEW_HEADER).old_header


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"commit;\toffset:8;\tsize:8", b"commit;\toffset:8;\tsize:2"),
        (b"offset:16;\tsize:4080", b"offset:16;\tsize:40"),
        (b"offset:16;\tsize:4080", b"offset:16;\tsize:33554432"),
        (b"offset:16;\tsize:4080", b"offset:8;\tsize:4088"),
        (b"offset:16;\tsize:4080", b"offset:16;\tsize:4081"),
        (b"offset:16;\tsize:4080", b"offset:-16;\tsize:4080"),
        (b"char data", b"char date"),
        (b"commit;\toffset:8", b"commit;\toffset:16"),
        (b"timestamp;\toffset:0;\tsize:8", b"timestamp;\toffset:0;\tsize:4"),
    ],
)
def test_header_pages_that_no_kernel_has(old: bytes, new: bytes) -> None:
    assert old in HEADER_PAGE
    with pytest.raises(FormatError):
        parse_header_page(HEADER_PAGE.replace(old, new), big_endian=False)


@pytest.mark.parametrize(
    "kwargs", [{"fallback_subbuf_size": 0}, {"fallback_subbuf_size": 1 << 31}, {"fallback_long_size": 0}]
)
def test_fallbacks_are_checked(kwargs: dict[str, int]) -> None:
    with pytest.raises(FormatError):
        parse_header_page(b"", big_endian=False, **kwargs)


def check(event: EventFormat) -> None:
    """What every event that parses promises to the layers above."""
    names = [f.name for f in event.fields]
    assert len(set(names)) == len(names) and all(names)
    for f in event.fields:
        assert f.offset >= 0 and f.size >= 0
        match f.kind:
            case Kind.SCALAR:
                assert f.where is Where.INLINE and f.size == f.element_size and f.size in (1, 2, 4, 8)
            case Kind.ARRAY | Kind.MASK:
                assert f.element_size in (1, 2, 4, 8)
                assert f.where is not Where.INLINE or f.size % f.element_size == 0
            case _:
                assert f.element_size == 1
        assert f.where not in (Where.DATA_LOC, Where.REL_LOC) or f.size in (4, 8)
        assert f.where is not Where.TAIL or f.size == 0


def blocks(text: bytes) -> Iterator[tuple[str, bytes]]:
    for block in text.split(b"### system: ")[1:]:
        system, _, body = block.partition(b"\n")
        yield system.decode(), body


def corpus_formats() -> Iterator[tuple[str, bytes, int]]:
    for path in sorted((SHARED / "corpus").glob("*/*/*formats.txt*")):
        text = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        long_size = 4 if path.parent.name.split("-")[0] in ("armhf", "mips32be") else 8
        for system, body in blocks(text):
            yield system, body, long_size
    for path in sorted((SHARED / "formats").glob("*.tar.xz")):
        with tarfile.open(path) as archive:
            for member in archive:
                if member.name.endswith("/format") and (file := archive.extractfile(member)):
                    yield member.name.split("/")[-3], file.read(), 4 if "hammerhead" in path.name else 8


@pytest.mark.corpus
@pytest.mark.skipif(not SHARED.exists(), reason="no corpus beside the checkout")
def test_every_format_of_the_corpus() -> None:
    count = 0
    for system, text, long_size in corpus_formats():
        event = parse_format(text, system, long_size=long_size)
        check(event)
        head = text.partition(b"\nprint fmt")[0]
        lines = re.findall(rb"\tfield:(.*?);\toffset:(\d+);\tsize:(\d+);\tsigned:(\d);", head)
        assert len(lines) == head.count(b"\tfield:")
        assert [(f.declaration.encode(), f.offset, f.signed) for f in event.fields] == [
            (d, int(o), s == b"1") for d, o, _, s in lines
        ]
        assert (event.name, event.id) == event_name_and_id(text)
        assert event.common_fields[0].name == "common_type"
        assert [f for f in event.fields if f.name.startswith("common_")] == list(event.common_fields)
        for f in event.fields:
            assert re.fullmatch(r"[\w.]+", f.name)
            assert f.kind is not Kind.OPAQUE or re.match(r"struct|union|uuid_t|char$", f.type)
        count += 1
    assert count > 14_000


@pytest.mark.corpus
@pytest.mark.skipif(not SHARED.exists(), reason="no corpus beside the checkout")
def test_every_header_page_of_the_corpus() -> None:
    count = 0
    for path in (SHARED / "corpus/cases").glob("*/header_page"):
        case = json.loads(path.with_name("case.json").read_text())
        header_event = path.with_name("header_event").read_bytes()
        abi = parse_header_page(path.read_bytes(), big_endian=case["endian"] == "big", header_event=header_event)
        assert (abi.long_size, abi.data_offset, abi.old_header) == (case["long_size"], 8 + case["long_size"], False)
        assert case["subbuf_size"] % abi.subbuf_size == 0  # some cases kept the header_page of the top buffer
        count += 1
    assert count > 100
