"""Tracefs-shaped directories, the byte order of their pages, and images of memory-mapped buffers."""

from __future__ import annotations

import re
import shutil
import struct
from pathlib import Path

import pytest
from corpus_data import Recording, raw_cases, streams
from filebuilder import write_tracefs
from pagebuilder import Page, header_page_text, make_abi, make_format, pages_of
from reference import split_pages, walk_page

from ftbuf.container import open_container
from ftbuf.container.byteorder import guess_byte_order
from ftbuf.container.mmapimage import MmapImage, parse_mmap_meta
from ftbuf.container.tracefs import TracefsDirectory
from ftbuf.errors import FormatError, FtbufError, TruncatedError
from ftbuf.formats import Abi

ABIS = [make_abi(big=big, long_size=size) for big in (False, True) for size in (4, 8)]
LITTLE = ABIS[1]


def loaded(stream):
    return b"".join(stream.load(i) for i in range(len(stream.segments)))


def some_pages(abi, n=3):
    return pages_of(abi, *[b"\1\0\0\0" * 5] * 700, ts=5_000_000_000)[: n * abi.subbuf_size]


def test_real_directories(recording: Recording):
    if recording.path.is_file():
        pytest.skip("a trace.dat")
    container = open_container(recording.path)
    abi = recording.abi
    assert container.kind == "tracefs directory"
    assert (container.big_endian, container.long_size) == (abi.big_endian, abi.long_size)
    top = container.buffers[0]
    assert (top.name, top.clock, top.subbuf_size) == ("", recording.info["clock"], abi.subbuf_size)
    assert {s.cpu: loaded(s) for s in top.streams} == recording.streams()
    snapshots = [{s.cpu: loaded(s) for s in b.streams} for b in container.snapshot_buffers]
    assert snapshots == ([recording.streams(snapshot=True)] if recording.streams(snapshot=True) else [])
    assert set(top.stats) >= {s.cpu for s in top.streams}
    index = container.format_index()
    assert len(index) == len(list(recording.path.glob("events/*/*/format")))
    for (system, event), key in index.items():
        assert container.format_text(key) == (recording.path / "events" / system / event / "format").read_bytes()
    assert len(container.id_index()) == len(index)
    for name in ("kallsyms", "saved_cmdlines", "saved_tgids", "printk_formats"):
        path = recording.path / name
        assert getattr(container, name)() == (path.read_bytes() if path.exists() else b"")
    assert recording.info["kernel"] in container.uname
    assert container.tracing_file("current_tracer") == (recording.path / "current_tracer").read_bytes()
    assert container.text is None
    assert container.ts_offset == 0


@pytest.fixture
def root(tmp_path):
    fmt = make_format("one", 17, ["int x"], system="sys")
    files = {
        "trace_clock": b"local [mono] x86-tsc\n", "uname": b"Linux n 6 x86_64\n",
        "per_cpu/cpu0/stats": b"entries: 1\n", "per_cpu/cpu3/stats": b"entries: 2\n", "events/sys/filter": b"none\n",
        "instances/a/per_cpu/cpu1/trace_pipe_raw": some_pages(make_abi(subbuf_size=8192), 2),
        "instances/a/events/header_page": header_page_text(make_abi(subbuf_size=8192)),
        "instances/a/trace_clock": b"[boot]", "instances/a/current_tracer": b"function\n",
        "instances/b/per_cpu/cpu0/trace_pipe_raw": some_pages(LITTLE, 1),
        "instances/b/per_cpu/cpu0/snapshot_raw": some_pages(LITTLE, 2),
        "instances/empty/trace_clock": b"[boot]",
    }
    pages = {0: some_pages(LITTLE), 10: some_pages(LITTLE, 1), 2: b""}
    return write_tracefs(tmp_path / "root", LITTLE, [fmt], pages, files=files)


def test_everything_of_a_directory(root):
    container = open_container(root)
    top, a, b = container
    assert [s.cpu for s in top.streams] == [0, 2, 10]
    assert [len(loaded(s)) for s in top.streams] == [3 * 4096, 0, 4096]
    assert (top.clock, a.clock, b.clock) == ("mono", "boot", "mono")
    assert (top.subbuf_size, a.subbuf_size, b.subbuf_size) == (4096, 8192, 4096)
    assert a.header_page != top.header_page == b.header_page
    assert (a.name, [s.cpu for s in a.streams]) == ("a", [1])
    (snapshot,) = container.snapshot_buffers
    assert (snapshot.name, len(loaded(snapshot.streams[0]))) == ("b", 8192)
    assert top.stats == {0: b"entries: 1\n", 3: b"entries: 2\n"}
    assert container.format_index() == {("sys", "one"): 0}
    assert container.id_index() == {17: ("sys", "one")}
    assert container.tracing_file("a/current_tracer") == b"function\n"
    for name in ("missing", "events", "../root/uname", "..", "a/../../uname", "", "a/", "/etc/passwd", "x\0y"):
        assert container.tracing_file(name) is None
    container.close()


def test_what_may_be_missing(root):
    for name in ("uname", "trace_clock", "instances", "events/header_event", "events/sys"):
        path = root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    container = open_container(str(root))
    assert container.buffers[0].clock == "local"
    assert (container.uname, container.header_event, container.saved_cmdlines()) == ("", b"", b"")
    assert container.format_index() == {}
    shutil.rmtree(root / "per_cpu")
    assert open_container(root).buffers[0].streams == []


def test_header_page_is_needed_or_given(root):
    text = (root / "events/header_page").read_bytes()
    (root / "events/header_page").unlink()
    with pytest.raises(FormatError, match="header_page is missing"):
        open_container(root)
    assert TracefsDirectory(root, header_page=text, big_endian=True).big_endian
    (root / "events/header_page").write_bytes(b"nonsense")
    with pytest.raises(FormatError, match="header_page"):
        open_container(root)


def test_other_directories_are_refused(tmp_path):
    with pytest.raises(FormatError, match="neither events/ nor per_cpu/"):
        open_container(tmp_path)


def test_a_format_that_went_away(root):
    container = open_container(root)
    key = container.format_index()["sys", "one"]
    (root / "events/sys/one/format").unlink()
    with pytest.raises(FormatError, match="sys:one"):
        container.format_text(key)
    assert container.id_index() == {}


def test_pages_cut_short(root):
    path = root / "per_cpu/cpu0/trace_pipe_raw"
    path.write_bytes(path.read_bytes()[:4096 + 500])
    stream = open_container(root).buffers[0].streams[0]
    assert [s.size for s in stream.segments] == [4096, 500]
    path.write_bytes(path.read_bytes()[:4096 + 9])
    stream = open_container(root).buffers[0].streams[0]
    assert [s.size for s in stream.segments] == [4096]
    assert [(p.cpu, p.offset, p.bytes, p.status) for p in stream.problems] == [(0, 4096, 9, "truncated")]


# -- byte order --------------------------------------------------------------------------------------------------------


def guess(pages, abi, uname=""):
    views = [memoryview(pages)[i:i + abi.subbuf_size] for i in range(0, len(pages), abi.subbuf_size)]
    return guess_byte_order(views, long_size=abi.long_size, data_offset=abi.data_offset, uname=uname)


@pytest.mark.parametrize("abi", ABIS, ids=lambda abi: f"{'big' if abi.big_endian else 'little'}{abi.long_size * 8}")
def test_byte_order_of_pages(abi):
    assert guess(some_pages(abi), abi) is abi.big_endian
    # sizes that look like flags in the other byte order
    for size in (0x40, 0x80, 0xC0, 0x100, 0x4000):
        page = Page(make_abi(big=abi.big_endian, long_size=abi.long_size, subbuf_size=65536), 77)
        while page.here < size:
            left = size - page.here
            page.data(1, bytes(min(left, 64) - 4))
        data = page.finish()
        assert guess(data, Abi(abi.big_endian, abi.long_size, 65536, abi.data_offset)) is abi.big_endian
    empty = Page(abi, 5).finish()
    assert guess(empty + some_pages(abi, 1), abi, "x86_64" if abi.big_endian else "s390x") is abi.big_endian


@pytest.mark.parametrize(("uname", "big"), [
    ("Linux h 6.1 #1 SMP s390x GNU/Linux", True), ("Linux h 6.1 ppc64 GNU/Linux", True), ("", False),
    ("Linux h 6.1 ppc64le GNU/Linux", False), ("Linux h 6.1 x86_64", False), ("Linux h 6.1 mips GNU/Linux", True),
    ("Linux h 6.1 armv7l", False), ("Linux h 6.1 armv7b", True), ("Linux h 6.1 aarch64_be", True),
    ("Linux h 6.1 aarch64", False), ("Linux h 6.1 sparc64", True), ("Linux h 6.1 riscv64", False),
])
def test_byte_order_of_machines_without_pages(uname, big):
    assert guess(b"", LITTLE, uname) is big
    assert guess(b"\xff" * 4096, LITTLE, uname) is big


@pytest.mark.corpus
def test_byte_order_of_the_corpus():
    judged = 0
    for case in raw_cases():
        info = case.info
        abi = Abi(info["endian"] == "big", info["long_size"], info["subbuf_size"], 8 + info["long_size"])
        for snapshot in (False, True):
            data = b"".join(streams(case, snapshot=snapshot).values())
            if data:
                assert guess(data, abi) is abi.big_endian, case.name
                judged += 1
    assert judged > 200


# -- memory-mapped buffers ---------------------------------------------------------------------------------------------


def meta_page(order, subbuf, count, *, reader=0, read=0):
    meta = struct.pack(order + "4IQ2I6Q", subbuf, 80, subbuf, count, 0, reader, read, 0, 9, 0, 0, 0, 0)
    return meta.ljust(subbuf, b"\0")


@pytest.mark.parametrize("abi", ABIS, ids=lambda abi: f"{'big' if abi.big_endian else 'little'}{abi.long_size * 8}")
def test_images_are_put_in_order(abi):
    pages = [Page(abi, ts).data(1, b"\0" * 8).finish() for ts in (300, 100, 200)]
    empty = Page(abi, 50).finish()
    order = ">" if abi.big_endian else "<"
    subbufs = b"".join([pages[0], empty, pages[1], pages[2]])
    meta = meta_page(order, 4096, 4, reader=1)
    for parts in ((meta, subbufs), (meta + subbufs,)):
        image = MmapImage(*parts, long_size=abi.long_size)
        assert image.meta.big_endian is abi.big_endian
        assert image.meta.entries == 9
        assert [bytes(page) for page in image.pages()] == [pages[1], pages[2], pages[0]]
        assert image.missing == 0
    consumed = MmapImage(meta_page(order, 4096, 4, reader=0, read=4000), subbufs, long_size=abi.long_size)
    assert [bytes(page) for page in consumed.pages()] == [pages[1], pages[2]]
    cut = MmapImage(meta + subbufs[:-4000], long_size=abi.long_size)
    assert [bytes(page) for page in cut.pages()] == [pages[1], pages[0]]
    assert cut.missing == 4000


def test_what_is_no_image():
    with pytest.raises(TruncatedError):
        parse_mmap_meta(b"short")
    for data in (bytes(80), b"\xff" * 80, b"x" * 80):
        with pytest.raises(FormatError):
            parse_mmap_meta(data)
    meta = meta_page("<", 4096, 1)
    for at in range(80):
        for value in (0, 0xFF):
            damaged = meta[:at] + bytes([value]) + meta[at + 1:]
            try:
                MmapImage(damaged, bytes(8192)).pages()
            except FtbufError:
                continue


@pytest.mark.corpus
def test_images_of_the_corpus():
    """The mapped image and what trace_pipe_raw gave afterwards hold the same events."""
    found = 0
    for case in raw_cases():
        info = case.info
        abi = Abi(info["endian"] == "big", info["long_size"], info["subbuf_size"], 8 + info["long_size"])
        for name in case.names():
            if match := re.fullmatch(r"cpu(\d+)\.mmap_meta", name):
                subbufs = case.read(f"cpu{match[1]}.mmap_subbufs")
                image = MmapImage(case.read(name), subbufs, long_size=abi.long_size)
                raw = [bytes(page) for _, page in split_pages(streams(case)[int(match[1])], abi)]
                events = [[(r.ts, bytes(page[r.offset:r.offset + r.length])) for page in pages
                           for r in walk_page(bytes(page), abi).records] for pages in (image.pages(), raw)]
                assert events[0] == events[1]
                assert len(events[0]) == image.meta.entries
                found += 1
    assert found >= 4


def test_paths_may_be_strings(root: Path):
    assert open_container(str(root)).path == str(root) == open_container(root).path
