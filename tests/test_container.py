"""trace.dat: real files against what trace-cmd dump says of them, every option, and damage of every kind."""

from __future__ import annotations

import contextlib
import io
import lzma
import struct
import threading
import time
from pathlib import Path

import pytest
from corpus_data import file_cases
from filebuilder import BufferSpec, TraceDat, u64s
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pagebuilder import Page, header_page_text, make_abi, make_format
from pagebuilder import format_text as text_of
from tracedat_dump import check_options, check_summary

from ftbuf.container import open_container
from ftbuf.container import streams as streams_module
from ftbuf.container.compress import MAX_CHUNK, compressor, decompressor
from ftbuf.container.options import (
    CpuShift,
    CpuStat,
    Guest,
    Hook,
    LastBootInfo,
    Mapping,
    Process,
    TimeShift,
    TscToNsec,
    c_integer,
    selected_clock,
)
from ftbuf.container.pages import page_layout, with_subbuf_size
from ftbuf.container.write import write_tracedat
from ftbuf.errors import (
    ClosedError,
    CompressionError,
    DamageError,
    FormatError,
    FtbufError,
    TruncatedError,
    UnsupportedError,
)

DATA = Path(__file__).parent / "data" / "tracedat"
FILES = sorted(p.name.removesuffix(".dat.xz") for p in DATA.glob("*.dat.xz"))
LITTLE, BIG = make_abi(), make_abi(big=True, long_size=4)
KINDS = [(6, "none"), (7, "none"), (7, "zlib"), (7, "zstd")]


def formats(*names):
    return {"sys": [text_of(make_format(name, 100 + i, ["int x"], system="sys")) for i, name in enumerate(names)]}


def pages(abi, n, seed=0, size=4096):
    """`n` sub-buffers with a few events each, different for each seed."""
    abi = make_abi(big=abi.big_endian, long_size=abi.long_size, subbuf_size=size)
    payload = struct.pack(">I" if abi.big_endian else "<I", 100 + seed)
    return b"".join(Page(abi, 1000 * i + seed).data(1, payload * 2).data(2, payload * 3).finish() for i in range(n))


def build(version=7, compression="none", abi=LITTLE, **more):
    arguments = {
        "formats": formats("one", "two"), "ftrace_formats": [text_of(make_format("function", 1, ["long ip"]))],
        "kallsyms": b"ffffffff81000000 T start\n", "printk": b'0xffff : "hello"\n', "cmdlines": b"1 init\n2 a b\n",
        "buffers": [BufferSpec("", {0: pages(abi, 23), 1: pages(abi, 1, 1)}),
                    BufferSpec("inst", {1: pages(abi, 12, 2)}, clock="mono")],
    }
    return TraceDat(abi, version, compression, **{**arguments, **more}).build()


def loaded(stream):
    return b"".join(stream.load(i) for i in range(len(stream.segments)))


def everything(container):
    """Touch all that a container offers; the bytes of each stream, None where they cannot be had."""
    container.format_index(), container.id_index()
    for key in container.format_index().values():
        container.format_text(key)
    container.kallsyms(), container.printk_formats(), container.saved_cmdlines(), container.saved_tgids()
    assert container.tracing_file("nothing") is None
    container.tracing_file("trace_clock"), container.text, container.uname, container.ts_offset
    for buffer in (*container.buffers, *container.snapshot_buffers):
        for stream in buffer.streams:
            for problem in stream.problems:
                assert problem.bytes >= 0
            for index in range(len(stream.segments)):
                try:
                    stream.load(index)
                except DamageError as error:
                    assert error.cpu == stream.cpu


# -- real files --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tracedat")
    for name in FILES:
        (folder / f"{name}.dat").write_bytes(lzma.decompress((DATA / f"{name}.dat.xz").read_bytes()))
    return {name: folder / f"{name}.dat" for name in FILES}


@pytest.mark.parametrize("name", FILES)
def test_real_files_agree_with_trace_cmd(real, name):
    container = open_container(real[name])
    assert not container.problems
    check_options(container, (DATA / f"{name}.options.txt").read_text())
    check_summary(container, (DATA / f"{name}.summary.txt").read_text())
    for buffer in container:
        assert set(buffer.stats) == {0, 1}
        assert all(text.startswith(b"entries:") for text in buffer.stats.values())
        for stream in buffer.streams:
            assert not stream.problems
            assert len(loaded(stream)) % buffer.subbuf_size == 0
    everything(container)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["bytes", "file", "pread"])
def test_other_sources_give_the_same(real, name, kind):
    mapped = open_container(real[name])
    source = real[name] if kind == "pread" else real[name].read_bytes()
    other = open_container(io.BytesIO(source) if kind == "file" else source, mmap=kind != "pread")
    assert other.format_index() == mapped.format_index()
    assert other.kallsyms() == mapped.kallsyms()
    for one, two in zip(mapped, other, strict=True):
        assert [loaded(s) for s in one.streams] == [loaded(s) for s in two.streams]


@pytest.mark.parametrize("name", FILES)
def test_formats_are_found_by_name_and_id(real, name):
    container = open_container(real[name])
    index = container.format_index()
    assert ("ftrace", "function") in index
    assert ("sched", "sched_switch") in index
    for event in [("sched", "sched_switch"), ("ftrace", "print")]:
        text = container.format_text(index[event])
        assert text.startswith(b"name: " + event[1].encode() + b"\nID: ")
        number = int(text.split(b"\n")[1][4:])
        assert container.id_index()[number] == event


def test_uncompressed_pages_are_borrowed(real):
    path = real["k612-tc316-instances-v6"]
    container = open_container(path)
    stream = container.buffers[0].streams[0]
    assert len(stream.segments) == 1
    view = stream.load(0)
    assert view.obj is stream.load(0).obj
    container.close()
    assert bytes(view) == path.read_bytes()[stream.segments[0].offset:][:len(view)]
    with pytest.raises(ClosedError):
        stream.load(0)


CORPUS_FILES = [(case, name) for case in file_cases() for name in case.names()
                if name.startswith("dump.") and name.endswith(".summary.txt")]


@pytest.mark.corpus
@pytest.mark.parametrize(("case", "name"), CORPUS_FILES, ids=lambda v: getattr(v, "name", v))
def test_corpus_agrees_with_trace_cmd(case, name):
    file = name.removeprefix("dump.").removesuffix(".summary.txt")
    container = open_container(case.read(file))
    assert not container.problems
    check_options(container, case.read(f"dump.{file}.options.txt").decode())
    check_summary(container, case.read(name).decode())
    everything(container)
    assert not [p for buffer in container for stream in buffer.streams for p in stream.problems]


# -- synthetic files: what is written is found -------------------------------------------------------------------------


@pytest.mark.parametrize("abi", [LITTLE, BIG], ids=["little", "big"])
@pytest.mark.parametrize(("version", "compression"), KINDS)
def test_everything_is_found(version, compression, abi):
    container = open_container(build(version, compression, abi, long_size=8).data)
    assert container.kind == f"trace.dat v{version}"
    assert (container.big_endian, container.long_size) == (abi.big_endian, 8)
    assert container.text is None
    assert container.kallsyms() == b"ffffffff81000000 T start\n"
    assert container.printk_formats() == b'0xffff : "hello"\n'
    assert container.saved_cmdlines() == b"1 init\n2 a b\n"
    assert container.tracing_file("saved_cmdlines") == container.saved_cmdlines()
    assert container.saved_tgids() == b""
    assert list(container.format_index()) == [("ftrace", "function"), ("sys", "one"), ("sys", "two")]
    assert container.id_index() == {1: ("ftrace", "function"), 100: ("sys", "one"), 101: ("sys", "two")}
    assert container.format_text(2) == formats("one", "two")["sys"][1]
    assert selected_clock(container.tracing_file("trace_clock")) == "local"
    top, instance = container
    assert (top.name, top.clock, instance.name, instance.clock) == ("", "local", "inst", "mono")
    assert [loaded(s) for s in top.streams] == [pages(abi, 23), pages(abi, 1, 1)]
    assert [s.cpu for s in top.streams] == [0, 1]
    with_data = [s for s in instance.streams if s.segments]  # version 6 has an entry for CPU 0
    assert [(s.cpu, loaded(s)) for s in with_data] == [(1, pages(abi, 12, 2))]
    assert top.streams[0].compressed == (compression != "none")
    assert [s.size // 4096 for s in top.streams[0].segments] == ([10, 10, 3] if compression != "none" else [23])


def test_sparse_cpus_and_page_sizes_of_their_own():
    specs = [BufferSpec("", {5: pages(LITTLE, 2), 300: pages(LITTLE, 1)}),
             BufferSpec("big", {7: pages(LITTLE, 3, size=16384)}, subbuf_size=16384)]
    container = open_container(build(compression="zstd", buffers=specs).data)
    assert [s.cpu for b in container for s in b.streams] == [5, 300, 7]
    top, big = container
    assert (top.subbuf_size, big.subbuf_size) == (4096, 16384)
    assert top.header_page == container.header_page
    assert page_layout(big.header_page).subbuf_size == 16384
    assert page_layout(big.header_page).data_offset == page_layout(top.header_page).data_offset
    assert loaded(big.streams[0]) == pages(LITTLE, 3, size=16384)


def test_the_size_of_compressed_data_may_be_four_bytes_short():
    built = build(compression="zstd")
    container = open_container(built.data)
    (option,) = [o for o in container.options if o.name == "BUFFER" and o.value.name == ""]
    data = option.value.cpus[0]
    table = struct.pack("<QQ", data.offset, data.size)
    assert built.data.count(table) == 1
    short = built.data.replace(table, struct.pack("<QQ", data.offset, data.size - 4))
    stream = open_container(short).buffers[0].streams[0]
    assert loaded(stream) == pages(LITTLE, 23)
    assert not stream.problems


@pytest.mark.parametrize("version", [6, 7])
def test_latency_texts(version):
    text = b"# tracer: irqsoff\n#\n"
    if version == 6:
        data = build(6, latency_text=text).data
    else:
        body = compressor("zstd")(text)
        section = struct.pack("<HHiQ", 22, 1, -1, 12 + len(body)) + struct.pack("<III", 1, len(body), len(text)) + body
        plain = build(compression="zstd", buffers=[], options=[(22, u64s(LITTLE, 0) + b"\0mono\0")])
        data = plain.data + section
        offset, _ = plain.marks["option22"]
        data = data[:offset] + struct.pack("<Q", len(plain.data)) + data[offset + 8:]
    container = open_container(data)
    assert container.text == text
    assert container.buffers == []
    everything(container)


def test_uncompressed_text_section():
    text = b"# tracer: wakeup\n"
    plain = build(buffers=[], options=[(22, u64s(LITTLE, 0) + b"\0local\0")])
    offset, _ = plain.marks["option22"]
    data = plain.data[:offset] + struct.pack("<Q", len(plain.data)) + plain.data[offset + 8:]
    assert open_container(data + struct.pack("<HHiQ", 22, 0, -1, len(text)) + text).text == text


def test_old_files():
    built = build(6, header_page=b"", header_event=b"")
    offset, size = built.marks["version"]
    ancient = built.data[:offset] + b"\0" + built.data[offset + size:]
    for data in (built.data, ancient):
        container = open_container(data)
        assert (container.header_page, container.header_event) == (b"", b"")
        top = container.buffers[0]
        assert (top.subbuf_size, top.header_page) == (4096, b"")
        # the data moved by one byte in the ancient file, its table did not: only the sizes are the same
        assert [s.size for s in top.streams[0].segments] == [23 * 4096]


def test_cpucount_of_version_6_is_not_about_the_top_buffer():
    for count in (1, 2, 7):
        container = open_container(build(6, options=[(8, struct.pack("<I", count))]).data)
        assert [loaded(s) for s in container.buffers[0].streams] == [pages(LITTLE, 23), pages(LITTLE, 1, 1)]


def test_the_offset_of_an_instance_in_the_other_byte_order():
    built = build(6)
    offset, size = built.marks["inst.offset"]
    swapped = built.data[:offset] + built.data[offset:offset + size][::-1] + built.data[offset + size:]
    container = open_container(swapped)
    assert not container.problems
    assert loaded(container.buffers[1].streams[1]) == pages(LITTLE, 12, 2)


def test_version_6_without_a_clock():
    built = build(6)
    no_clock = built.patched("option4.size", 0)
    offset, _ = built.marks["option4.size"]
    no_clock = no_clock[:offset - 2] + struct.pack("<H", 5) + no_clock[offset:]  # UNAME instead of TRACECLOCK
    container = open_container(no_clock)
    assert container.buffers[0].clock == "local"
    assert container.tracing_file("trace_clock") is None


# -- options -----------------------------------------------------------------------------------------------------------


def option(number, payload, abi=LITTLE, version=7):
    container = open_container(build(version, abi=abi, options=[(number, payload)]).data)
    (found,) = [o for o in container.options if o.id == number and o.payload == payload]
    return container, found


SHIFT = TimeShift(9, True, (CpuShift((1, 2), (-10, -20), (5, 6), (7, 8)), CpuShift((3,), (30,), (1,), (9,))))


def shift_payload(abi, fractions):
    order = ">" if abi.big_endian else "<"
    body = struct.pack(order + "QIII6qI3q", 9, 1, 2, 2, 1, 2, -10, -20, 5, 6, 1, 3, 30, 1)
    return body + struct.pack(f"{order}{len(fractions)}q", *fractions)


@pytest.mark.parametrize("abi", [LITTLE, BIG], ids=["little", "big"])
@pytest.mark.parametrize("version", [6, 7])
def test_options_are_decoded(version, abi):
    order = ">" if abi.big_endian else "<"
    cases = [
        (1, b"0x10\0", "DATE", 16),
        (7, b"-12\0", "OFFSET", -12),
        (5, b"Linux host 6.1 s390x\0", "UNAME", "Linux host 6.1 s390x"),
        (9, b"3.4.0\0", "VERSION", "3.4.0"),
        (11, u64s(abi, 0xfedcba9876543210), "TRACEID", 0xfedcba9876543210),
        (2, b"CPU: 3\nentries: 1\n\0", "CPUSTAT", CpuStat(3, "entries: 1\n")),
        (2, b"\nBuffer: a b\n\n\0", "CPUSTAT", CpuStat(None, "", "a b")),
        (6, b"sched:wake,pid,common_pid/sched:switch,next_pid,pg\0", "HOOK",
         Hook("sched", "wake", "pid", "common_pid", "sched", "switch", "next_pid", True, True, False)),
        (13, b"vm\0" + struct.pack(order + "QIIIII", 77, 2, 0, 100, 1, 101), "GUEST",
         Guest("vm", 77, {0: 100, 1: 101})),
        (14, struct.pack(order + "IIQ", 10, 20, 1 << 40), "TSC2NSEC", TscToNsec(10, 20, 1 << 40)),
        (24, b"boot:ffff\t[kernel]\n\0", "LAST_BOOT_INFO", LastBootInfo("boot", "ffff\t[kernel]\n")),
        (12, shift_payload(abi, [7, 8, 9]), "TIME_SHIFT", SHIFT),
        (999, b"whatever", "UNKNOWN", None),
        (999, b"", "UNKNOWN", None),
    ]
    for number, payload, name, value in cases:
        container, found = option(number, payload, abi, version)
        assert (found.name, found.value) == (name, value)
        assert not container.problems


def test_values_that_containers_offer():
    container, _ = option(1, b"0x10\0")
    assert container.ts_offset == 16000
    options = [(1, b"5"), (7, b"7"), (7, b"-1"), (14, struct.pack("<IIQ", 1, 2, 3)), (11, u64s(LITTLE, 5)),
               (5, b"Linux"), (24, b"i:info\n")]
    container = open_container(build(options=options).data)
    assert container.ts_offset == 5000 + 6
    assert container.tsc2nsec == TscToNsec(1, 2, 3)
    assert (container.trace_id, container.uname) == (5, "Linux")
    assert container.tracing_file("last_boot_info") == b"info\n"
    container = open_container(build().data)
    assert (container.tsc2nsec, container.trace_id, container.uname, container.ts_offset) == (None, None, "", 0)


def test_process_maps():
    text = "1f 2 /bin/a b\n400000 401000 /bin/a b\n7f00 7f10 [heap]\n20 0 /bin/c\n21 9 /bin/cut\n1 2 /x\n"
    _, found = option(10, text.encode() + b"\0")
    assert found.value.processes == (
        Process(0x1f, "/bin/a b", (Mapping(0x400000, 0x401000, "/bin/a b"), Mapping(0x7f00, 0x7f10, "[heap]"))),
        Process(0x20, "/bin/c", ()), Process(0x21, "/bin/cut", (Mapping(1, 2, "/x"),)))


@pytest.mark.parametrize(("fractions", "expected"), [
    ([], [(0, 0), (0,)]), ([7, 8, 9], [(7, 8), (9,)]), ([7], [(7, 0), (0,)]), ([7, 9], [(7, 0), (9,)]),
    ([1, 2, 3, 4], [(1, 2), (3,)]),
])
def test_fractions_of_time_shifts(fractions, expected):
    _, found = option(12, shift_payload(LITTLE, fractions))
    assert [c.fractions for c in found.value.cpus] == expected


def test_sections_of_modules_and_btf():
    built = build(options=[(25, u64s(LITTLE, 0)), (23, u64s(LITTLE, 1))])
    data = bytearray(built.data)
    modules, btf = b"ext4 1 0 - Live 0xffff\n", b"\x9f\xeb\x01\x00"
    for mark, body, number in (("option25", modules, 25), ("option23", btf, 23)):
        struct.pack_into("<Q", data, built.marks[mark][0], len(data))
        data += struct.pack("<HHiQ", number, 0, -1, len(body)) + body
    container = open_container(bytes(data))
    assert (container.modules(), container.btf()) == (modules, btf)
    assert open_container(build().data).modules() == b""


def test_options_that_cannot_be_decoded_are_kept_and_reported():
    for number, payload in [(1, b"tomorrow"), (6, b"nothing"), (11, b"abc"), (14, b""), (13, b"vm"),
                            (13, b"vm\0" + struct.pack("<QI", 1, 1 << 31)), (12, struct.pack("<QII", 1, 0, 0xFFFFFFFF)),
                            (12, struct.pack("<QIII", 1, 0, 1, 0xFFFFFFFF)), (3, b"\0" * 8), (22, b"\0")]:
        container, found = option(number, payload)
        assert found.value is None
        (problem,) = container.problems
        assert problem.status == "bad_metadata"
        assert found.name in problem.detail


def test_numbers_as_in_c():
    cases = {"0x1F": 31, " 12abc": 12, "010": 8, "-3\n": -3, "+4": 4, "0": 0, "08": 0, "0x" + "f" * 40: (1 << 63) - 1}
    assert {text: c_integer(text) for text in cases} == cases
    with pytest.raises(FormatError):
        c_integer("x")


def test_clock_texts():
    assert selected_clock(b"[local] global x86-tsc\n\0") == "local"
    assert selected_clock(b"local [x86-tsc]\n") == "x86-tsc"
    assert selected_clock("mono\n") == "mono"
    begin = time.monotonic()
    selected_clock(b"[" * (1 << 20))
    assert time.monotonic() - begin < 1


def test_statistics_are_given_to_their_buffer():
    texts = [b"CPU: 0\nentries: 1\n", b"CPU: 1\nentries: 2\n", b"\nBuffer: inst\n\n", b"CPU: 1\nentries: 3\n",
             b"\nBuffer: other\n\n", b"CPU: 1\nentries: 4\n"]
    for version in (6, 7):
        top, instance = open_container(build(version, options=[(2, text + b"\0") for text in texts]).data)
        assert top.stats == {0: b"entries: 1\n", 1: b"entries: 2\n"}
        assert instance.stats == {1: b"entries: 3\n"}


# -- header_page -------------------------------------------------------------------------------------------------------


def test_header_page_texts():
    text = header_page_text(make_abi(long_size=4, subbuf_size=8192))
    layout = page_layout(text)
    assert (layout.long_size, layout.data_offset, layout.subbuf_size) == (4, 12, 8192)
    assert page_layout(with_subbuf_size(text, 65536)).subbuf_size == 65536
    assert with_subbuf_size(text, 8192) is text
    assert with_subbuf_size(b"", 8192) == b""
    assert page_layout(b" \n\0") is None


# -- not a trace -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("data", "words"), [
    (b"", "an empty file"), (b"\x1f\x8b\x08\0", "gzip"), (b"\x7fELF\2\1", "ELF"), (b"PERFILE2...", "perf.data"),
    (b"hello world\nagain", "text.*hello world"), (b"\xfd7zXZ\0\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x17\x08\x44trac", "first 7 bytes of a trace.dat"), (b"\0\1\2\3\xff", "unknown kind"), (b"PK\3\4", "zip"),
    (b"# tracer: nop\n#\n", "trace file"), (b"cpus=2\n", "trace-cmd report"), ("\u00e9".encode() * 40, "text"),
])
def test_other_files_are_named(tmp_path, data, words):
    path = tmp_path / "file"
    path.write_bytes(data)
    for source in (data, path):
        with pytest.raises(FormatError, match=words):
            open_container(source)


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_container(tmp_path / "trace.dat")


# -- damage ------------------------------------------------------------------------------------------------------------


def small(version, compression, abi=LITTLE):
    spec = [BufferSpec("", {0: pages(abi, 2, size=256)}, subbuf_size=256),
            BufferSpec("i", {1: pages(abi, 1, size=256)}, subbuf_size=256)]
    abi = make_abi(big=abi.big_endian, long_size=abi.long_size, subbuf_size=256)
    options = [(12, shift_payload(abi, [7, 8, 9])), (13, b"vm\0" + struct.pack("<QIII", 1, 1, 2, 3)), (1, b"0x10"),
               (10, b"1 1 /a\n1 2 /b\n"), (2, b"CPU: 0\nentries: 1\n"), (8, struct.pack("<I", 2)), (24, b"i:x"),
               (6, b"a:b,c/d,e"), (14, struct.pack("<IIQ", 1, 2, 3))]
    return build(version, compression, abi, buffers=spec, options=options)


@pytest.mark.parametrize(("version", "compression"), KINDS)
def test_cut_at_every_byte(version, compression):
    data = small(version, compression).data
    opened = 0
    for end in range(len(data)):
        try:
            container = open_container(data[:end])
        except FtbufError:
            continue
        opened += 1
        try:
            everything(container)
        except FtbufError:
            continue
    assert opened > 256


@pytest.mark.parametrize(("version", "compression"), KINDS)
def test_a_bit_of_every_byte_flipped(version, compression):
    data = bytearray(small(version, compression).data)
    for at in range(len(data)):
        bit = 1 << at % 8  # every bit of every byte takes too long
        data[at] ^= bit
        with contextlib.suppress(FtbufError):
            everything(open_container(bytes(data)))
        data[at] ^= bit


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_overwritten_numbers(data):
    version, compression = data.draw(st.sampled_from(KINDS))
    built = small(version, compression, data.draw(st.sampled_from([LITTLE, BIG])))
    damaged = bytearray(built.data)
    for _ in range(data.draw(st.integers(1, 3))):
        offset, size = built.marks[data.draw(st.sampled_from(sorted(built.marks)))]
        at = offset + data.draw(st.integers(0, max(0, size - 1)))
        damaged[at:at + 8] = data.draw(st.sampled_from([b"\xff" * 8, b"\0" * 8, b"\xff\xff\xff\x7f" * 2]) |
                                       st.binary(min_size=1, max_size=8))
    with contextlib.suppress(FtbufError):
        everything(open_container(bytes(damaged)))


def test_missing_pages_of_version_6():
    built = build(6)
    cut = built.cut("inst.cpu1", 2 * 4096 + 100)
    container = open_container(cut)
    assert [loaded(s) for s in container.buffers[0].streams] == [pages(LITTLE, 23), pages(LITTLE, 1, 1)]
    stream = container.buffers[1].streams[1]
    assert [s.size for s in stream.segments] == [8192, 100]
    assert loaded(stream) == pages(LITTLE, 12, 2)[:8292]
    (problem,) = stream.problems
    assert (problem.cpu, problem.offset, problem.status, problem.bytes, problem.buffer) == (
        1, len(cut), "truncated", 12 * 4096 - 8292, "inst")
    # a piece that is not even the header of a sub-buffer is not passed on
    stream = open_container(built.cut("inst.cpu1", 4096 + 10)).buffers[1].streams[1]
    assert [s.size for s in stream.segments] == [4096]
    assert stream.problems[0].bytes == 11 * 4096
    # all of them
    stream = open_container(built.cut("inst.cpu1", 0)).buffers[1].streams[1]
    assert not stream.segments
    assert stream.problems[0].bytes == 12 * 4096


def test_missing_instance_of_version_6():
    container = open_container(build(6).cut("inst.flyrecord", 5))
    assert [b.name for b in container] == [""]
    (problem,) = container.problems
    assert (problem.status, problem.buffer) == ("truncated", "inst")


def test_missing_options_of_version_7():
    built = build()
    container = open_container(built.cut(".flyrecord.section_size", 3))
    assert container.buffers == []
    (problem,) = container.problems
    assert (problem.status, problem.cpu) == ("truncated", -1)
    assert "options" in problem.detail
    offset, size = built.marks["options0.next"]
    assert problem.bytes == built.marks[".flyrecord.section_size"][0] + 3 - offset - size
    assert container.kallsyms()
    with pytest.raises(TruncatedError, match="header info cannot be found"):
        open_container(built.cut("kallsyms", 3))


STATS = [(2, b"CPU: 0\nentries: 5\nread events: 0\n"), (2, b"CPU: 1\nentries: 0\nread events: 0\n"),
         (2, b"CPU: 2\nentries: 0\nread events: 50\n"), (2, b"\nBuffer: inst\n\n"), (2, b"CPU: 7\nentries: 10\n")]


@pytest.mark.parametrize("abi", [LITTLE, BIG], ids=["little", "big"])
@pytest.mark.parametrize("compression", ["none", "zlib", "zstd"])
def test_missing_pages_of_version_7(compression, abi):
    """The table of a buffer stands behind its pages: what is left of them is found without it."""
    specs = [BufferSpec("", {0: pages(abi, 23, 5), 2: pages(abi, 12)}), BufferSpec("inst", {7: pages(abi, 12)})]
    built = build(7, compression, abi, buffers=specs, options=STATS)
    cut = built.cut(".cpu2" if compression == "none" else ".cpu2.chunk1", 4096 + 50 if compression == "none" else 20)
    container = open_container(cut)
    (buffer,) = container
    assert (buffer.name, buffer.clock, buffer.subbuf_size) == ("", "local", 4096)
    assert [s.cpu for s in buffer.streams] == [0, 2]
    assert loaded(buffer.streams[0]) == pages(abi, 23, 5)
    left = 4096 + 50 if compression == "none" else 40960
    assert loaded(buffer.streams[1]) == pages(abi, 12)[:left]
    (problem,) = container.problems
    assert "CPU numbers are a guess" in problem.detail
    if compression != "none":
        assert [p.status for p in buffer.streams[1].problems] == ["truncated"]


def test_missing_pages_of_an_instance_of_version_7():
    source = open_container(build(options=STATS).data)
    file = io.BytesIO()
    write_tracedat(file, source, compression="zstd")  # with a table after each buffer, as trace-cmd writes them
    container = open_container(file.getvalue()[:-20])
    assert [b.name for b in container] == ["", "inst"]
    assert [s.cpu for s in container.buffers[1].streams] == [7]
    assert loaded(container.buffers[1].streams[0]) == pages(LITTLE, 12, 2)
    assert container.buffers[1].stats == {7: b"entries: 10\n"}


def test_loops_of_options_sections():
    built = build()
    offset, size = built.marks["first_options"]
    first = int.from_bytes(built.data[offset:offset + size], "little")
    for target in ("options0.next", "options1.next"):
        container = open_container(built.patched(target, first))
        assert any("loop" in p.detail for p in container.problems)


def test_damaged_chunks_cost_themselves_only():
    built = build(compression="zlib")
    good = pages(LITTLE, 23)
    data = built.patched(".cpu0.chunk1", b"\xff" * 20)
    stream = open_container(data).buffers[0].streams[0]
    assert stream.load(0) == good[:40960]
    with pytest.raises(CompressionError, match="chunk at offset") as failure:
        stream.load(1)
    assert (failure.value.cpu, failure.value.offset) == (0, built.marks[".cpu0.chunk1"][0])
    assert failure.value.status == "bad_compression"
    assert stream.load(2) == good[81920:]


@pytest.mark.parametrize("compression", ["zlib", "zstd"])
@pytest.mark.parametrize("usize", [0, 1, 4095, 40960 + 4096, 36864, MAX_CHUNK + 4096, 0xFFFFF000])
def test_chunks_that_lie_about_their_size(compression, usize):
    stream = open_container(build(compression=compression).patched(".cpu0.chunk0.usize", usize)).buffers[0].streams[0]
    if usize in (45056, 36864):
        assert len(stream.segments) == 3
        with pytest.raises(CompressionError):
            stream.load(0)
    else:
        assert len(stream.segments) == 2
        assert stream.problems[0].status == "bad_compression"
        assert loaded(stream) == pages(LITTLE, 23)[40960:]


@pytest.mark.parametrize("csize", [0, 5, 0xFFFFFFFF, 1 << 20])
def test_chunks_that_lie_about_their_compressed_size(csize):
    stream = open_container(build(compression="zstd").patched(".cpu0.chunk1.csize", csize)).buffers[0].streams[0]
    assert loaded(stream) == pages(LITTLE, 23)[:40960]
    assert stream.problems


def test_chunk_counts_of_four_billion():
    begin = time.monotonic()
    stream = open_container(build(compression="zstd").patched(".cpu0.chunks", 0xFFFFFFFF)).buffers[0].streams[0]
    assert len(stream.segments) >= 3
    assert stream.problems
    assert time.monotonic() - begin < 1


def test_truncated_chunks():
    built = build(compression="zstd", buffers=[BufferSpec("", {0: pages(LITTLE, 30)})])
    whole = open_container(built.data)
    stream = whole.buffers[0].streams[0]
    source = whole.source
    source.size = built.marks[".cpu0.chunk2"][0] + 5  # as if the file became shorter
    assert loaded(stream) == pages(LITTLE, 30)[:81920]
    assert [p.status for p in stream.problems] == ["truncated"]


@pytest.mark.parametrize(("version", "mark", "value", "error"), [
    (7, "version", b"8", UnsupportedError), (7, "version", b"x", FormatError), (7, "endian", 2, FormatError),
    (7, "long_size", 3, FormatError), (6, "cpus", 0xFFFFFFFF, FormatError), (6, "cpus", 60000, TruncatedError),
    (6, "options", b"nonsense \0", FormatError), (6, "header_info", b"header_pag\0\0", FormatError),
    (6, "kallsyms", 0xFFFFFFFF, TruncatedError), (6, "ftrace", 0xFFFFFFFF, FormatError),
    (6, "formats", 0xFFFFFFFF, FormatError), (7, "first_options", 1 << 60, TruncatedError),
    (7, "first_options", 5, FtbufError), (7, "header_info.section_size", 1 << 63, TruncatedError),
    (7, "header_info.id", 4, FormatError), (7, "page_size", 0, None), (6, "page_size", 0, None),
    (7, "compression", b"lzma\0", None),
])
def test_damaged_headers(version, mark, value, error):
    built = build(version)
    if mark in ("kallsyms", "ftrace", "formats"):
        offset, _ = built.marks[mark]
        data = built.data[:offset] + struct.pack("<I", value) + built.data[offset + 4:]
    else:
        data = built.patched(mark, value)
    begin = time.monotonic()
    if error is None:
        everything(open_container(data))
    else:
        with pytest.raises(error):
            open_container(data)
    assert time.monotonic() - begin < 1


def test_cpu_numbers_and_counts_that_cannot_be():
    payload = u64s(LITTLE, 0) + b"huge\0local\0" + struct.pack("<II", 4096, 0xFFFFFFFF)
    container = open_container(build(options=[(3, payload)]).data)
    assert "claims 4294967295 CPUs" in container.problems[0].detail
    payload = u64s(LITTLE, 0) + b"odd\0local\0" + struct.pack("<IIIQQ", 4096, 1, 0xFFFFFFFF, 0, 4096)
    container = open_container(build(options=[(3, payload)]).data)
    assert any("4294967295" in p.detail for p in container.problems)
    for size in (8, 1 << 31):
        payload = u64s(LITTLE, 0) + b"x\0local\0" + struct.pack("<II", size, 0)
        with pytest.raises(FormatError, match="page size"):
            open_container(build(options=[(3, payload)]).data)


def test_unknown_compressions():
    built = build(compression="zstd")
    with pytest.raises(UnsupportedError, match="lzma"):
        open_container(built.patched("compression", b"lzma"))


def test_compressed_metadata_that_lies():
    built = build(compression="zstd")
    for mark, value in (("kallsyms.usize", 1 << 31), ("kallsyms.usize", 3), ("kallsyms.csize", 1 << 31),
                        ("kallsyms.csize", 3)):
        container = open_container(built.patched(mark, value))
        with pytest.raises(DamageError):
            container.kallsyms()
        assert container.printk_formats()


@pytest.mark.parametrize("name", ["zlib", "zstd"])
def test_decompressors_are_exact(name):
    data = bytes(range(256)) * 1000
    packed = compressor(name)(data)
    unpack = decompressor(name)
    assert unpack(packed, len(data)) == data
    assert unpack(memoryview(packed), len(data)) == data
    for damaged, size in [(packed, len(data) - 1), (packed, len(data) + 1), (packed, 0), (packed[:-1], len(data)),
                          (packed[:10], len(data)), (b"", 1), (b"nonsense!", 5)]:
        with pytest.raises(CompressionError):
            unpack(damaged, size)


def test_a_bomb_is_not_unpacked():
    bomb = compressor("zstd")(bytes(256 << 20))
    begin = time.monotonic()
    with pytest.raises(CompressionError, match="more than"):
        decompressor("zstd")(bomb, 4096)
    assert time.monotonic() - begin < 0.5


# -- cost --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "compression"), [(6, "none"), (7, "zstd")])
def test_opening_reads_no_texts(tmp_path, version, compression):
    names = [f"event_{i}" for i in range(2300)]
    path = tmp_path / "trace.dat"
    kallsyms = b"ffffffff81000000 T x\n" * 120_000
    path.write_bytes(build(version, compression, formats=formats(*names), kallsyms=kallsyms).data)
    best = 1.0
    for _ in range(5):
        begin = time.perf_counter()
        open_container(path)
        best = min(best, time.perf_counter() - begin)
    assert best < 0.02  # a few milliseconds on an idle machine
    container = open_container(path)
    assert len(container.format_index()) == 2301
    assert len(container.id_index()) == 2301


def test_chunks_are_cached_and_loaded_in_threads(monkeypatch):
    container = open_container(build(compression="zstd").data)
    stream = container.buffers[0].streams[0]
    assert stream.load(1).obj is stream.load(1).obj
    good = pages(LITTLE, 23)
    failures = []

    def reader():
        for i in range(60):
            if stream.load(i % 3) != good[i % 3 * 40960:(i % 3 + 1) * 40960]:
                failures.append(i)

    monkeypatch.setattr(streams_module, "CACHED_CHUNKS", 1)
    threads = [threading.Thread(target=reader) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(stream._cache) <= 2


def test_sources_that_cannot_be_borrowed_are_read_in_pieces(monkeypatch):
    monkeypatch.setattr(streams_module, "PIECE", 10_000)
    container = open_container(io.BytesIO(build(6).data))
    stream = container.buffers[0].streams[0]
    assert [s.size for s in stream.segments] == [8192] * 11 + [4096]
    assert loaded(stream) == pages(LITTLE, 23)
