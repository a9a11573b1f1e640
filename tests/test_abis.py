"""Kernels of all ages and machines: pages, headers and common fields as they were, through raw pages and directories."""

from __future__ import annotations

import re

import pytest
from filebuilder import BufferSpec, TraceDat, write_tracefs
from pagebuilder import (
    ABIS,
    COMMON,
    Page,
    event,
    format_text,
    header_page_text,
    make_abi,
    make_format,
    pack,
    pages_of,
)

import ftbuf
from ftbuf.formats import parse_format

FIELDS = ["u32 number", "char name[16]", "__data_loc char[] text"]
EXTRA = {
    "tgid": ("int common_tgid",),  # 2.6.28 to 2.6.31
    "lock_depth": ("int common_lock_depth",),  # 2.6.32 to 2.6.38
    "padding": ("int common_padding",),  # 2.6.39 and some 3.x
    "rt": ("unsigned short common_migrate_disable", "unsigned short common_padding"),
    "rt-lazy": ("unsigned char common_migrate_disable", "unsigned char common_preempt_lazy_count"),
}


def rows_of(source):
    """[(ts, number, name, text)] of a trace."""
    with ftbuf.open(source) as trace:
        table = trace["probe"].table(["common_ts", "number", "name", "text"])
        records = [(e.ts, e["number"], e["name"], e["text"]) for e in trace.records()]
    rows = list(zip(*(table[n].tolist() for n in table.column_names), strict=True))
    assert rows == records
    return rows


def payloads(fmt, abi, n=50):
    return [event(fmt, abi, number=k, name=f"n{k}", text=f"text {k}" * (k % 3), common_pid=k) for k in range(n)]


def expected(n=50, ts=1_000_000):
    return [(ts + 1000 * k, k, f"n{k}", f"text {k}" * (k % 3)) for k in range(n)]


@pytest.mark.parametrize("extra", [None, *EXTRA])
@pytest.mark.parametrize("name", ["le64", "be64", "le32", "be32"])
def test_common_fields_of_other_kernels(name, extra, tmp_path):
    abi = ABIS[name]
    common = (*COMMON, *EXTRA.get(extra, ()))
    fmt = make_format("probe", 300, FIELDS, long_size=abi.long_size, common=common)
    data = pages_of(abi, *payloads(fmt, abi))
    assert rows_of(write_tracefs(tmp_path, abi, [fmt], {2: data})) == expected()
    table = ftbuf.decode_pages(data, abi=abi, events=format_text(fmt))
    assert table["common_pid"].tolist() == list(range(50))
    for field in EXTRA.get(extra, ()):
        assert table[field.split()[-1]].tolist() == [0] * 50


def test_values_of_extra_common_fields():
    abi = ABIS["le64"]
    fmt = make_format("probe", 300, ["u32 number"], common=(*COMMON, *EXTRA["rt-lazy"]))
    data = Page(abi, 5).data(0, event(fmt, abi, common_migrate_disable=3, common_preempt_lazy_count=2)).finish()
    table = ftbuf.decode_pages(data, abi=abi, events=fmt)
    assert table["common_migrate_disable"].tolist() == [3]
    assert table["common_preempt_lazy_count"].tolist() == [2]


@pytest.mark.parametrize("name", ["le64-old", "be32-old"])
def test_the_record_header_of_the_first_kernels(name, tmp_path):
    """2.6.28 to 2.6.30: type 2 bits, len 3 bits; no header_event that names type_len."""
    abi = ABIS[name]
    fmt = make_format("probe", 300, FIELDS, long_size=abi.long_size, common=(*COMMON, *EXTRA["tgid"]))
    data = pages_of(abi, *payloads(fmt, abi))
    assert rows_of(write_tracefs(tmp_path, abi, [fmt], {0: data})) == expected()
    assert ftbuf.decode_pages(data, abi=abi, events=fmt)["number"].tolist() == list(range(50))


@pytest.mark.parametrize("name", ["le64-old", "be32-old"])
def test_time_extends_of_the_first_kernels(name):
    abi = ABIS[name]
    fmt = make_format("probe", 300, ["u32 number"], long_size=abi.long_size)
    page = Page(abi, 10).data(1, event(fmt, abi, number=1)).time_extend(1 << 40).data(2, event(fmt, abi, number=2))
    data = page.end_padding().finish()
    assert ftbuf.decode_pages(data, abi=abi, events=fmt)["common_ts"].tolist() == [11, 13 + (1 << 40)]


def test_a_file_without_header_texts_is_of_the_first_kernels():
    """trace-cmd wrote empty texts there; a page's layout follows from the size of long."""
    abi = make_abi(old_header=True)
    fmt = make_format("probe", 300, FIELDS)
    spec = TraceDat(abi, 6, header_page=b"", header_event=b"", formats={"test": [format_text(fmt)]},
                    buffers=[BufferSpec(pages={0: pages_of(abi, *payloads(fmt, abi))})])
    assert rows_of(spec.build().data) == expected()


@pytest.mark.parametrize("name", ["le64", "be32"])
def test_data_loc_of_two_bytes(name):
    """Before 2.6.33 a location was 16 bits of offset, and the string ended at its NUL."""
    abi = ABIS[name]
    text = (b"name: probe\nID: 300\nformat:\n"
            b"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\n"
            b"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\n"
            b"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\n"
            b"\tfield:int common_pid;\toffset:4;\tsize:4;\n\n"
            b"\tfield:__data_loc name;\toffset:8;\tsize:2;\n"
            b"\tfield:unsigned short number;\toffset:10;\tsize:2;\n\nprint fmt: \"%s\", __get_str(name)\n")
    fmt = parse_format(text, "test", long_size=abi.long_size)
    record = pack(abi, 300, 2) + bytes(2) + pack(abi, 9, 4) + pack(abi, 12, 2) + pack(abi, 77, 2) + b"eth0\0junk"
    table = ftbuf.decode_pages(Page(abi, 5).data(0, record).finish(), abi=abi, events=fmt)
    assert (table["name"].tolist(), table["number"].tolist()) == (["eth0"], [77])
    outside = record.replace(pack(abi, 12, 2) + pack(abi, 77, 2), pack(abi, 60000, 2) + pack(abi, 77, 2))
    table = ftbuf.decode_pages(Page(abi, 5).data(0, outside).finish(), abi=abi, events=fmt, errors="skip")
    assert table["name"].tolist() == [""]


def old_text(text: bytes) -> bytes:
    return re.sub(rb"\tsigned:[01];", b"", text)


@pytest.mark.parametrize("name", ["le64", "be64", "le32", "be32"])
def test_texts_without_signed_and_overwrite(name, tmp_path):
    abi = ABIS[name]
    fmt = make_format("probe", 300, FIELDS, long_size=abi.long_size)
    files = {"events/header_page": old_text(header_page_text(abi, overwrite=False)),
             "events/test/probe/format": old_text(format_text(fmt))}
    assert rows_of(write_tracefs(tmp_path, abi, [fmt], {0: pages_of(abi, *payloads(fmt, abi))}, files=files)) == expected()


@pytest.mark.parametrize("kib", [4, 8, 16, 32, 64, 128, 256])
@pytest.mark.parametrize("big", [False, True])
def test_sub_buffer_sizes(kib, big, tmp_path):
    abi = make_abi(big=big, subbuf_size=kib << 10)
    fmt = make_format("probe", 300, FIELDS)
    n = kib * 30
    data = pages_of(abi, *payloads(fmt, abi, n))
    assert len(data) > abi.subbuf_size
    assert rows_of(write_tracefs(tmp_path / "dir", abi, [fmt], {0: data})) == expected(n)
    spec = TraceDat(abi, formats={"test": [format_text(fmt)]},
                    buffers=[BufferSpec(pages={0: data}, subbuf_size=abi.subbuf_size)], compression="zlib")
    assert rows_of(spec.build().data) == expected(n)


@pytest.mark.parametrize("name", ["le64", "be64"])
def test_records_aligned_to_eight_bytes(name):
    """RB_FORCE_8BYTE_ALIGNMENT: data is always long, and records are multiples of 8 bytes."""
    abi = ABIS[name]
    fmt = make_format("probe", 300, FIELDS)
    page = Page(abi, 1_000_000, align8=True)
    for k, payload in enumerate(payloads(fmt, abi, 20)):
        page.data(1000 if k else 0, payload)
    table = ftbuf.decode_pages(page.finish(), abi=abi, events=fmt)
    assert table["text"].tolist() == [row[3] for row in expected(20)]
    assert table["common_ts"].tolist() == [row[0] for row in expected(20)]


def test_a_32_bit_user_space_on_a_64_bit_kernel():
    """The size of long of trace-cmd itself says nothing of the kernel: header_page does."""
    abi = ABIS["be64"]
    fmt = make_format("probe", 300, FIELDS)
    data = pages_of(abi, *payloads(fmt, abi))
    spec = TraceDat(abi, long_size=4, formats={"test": [format_text(fmt)]}, buffers=[BufferSpec(pages={0: data})])
    assert rows_of(spec.build().data) == expected()
