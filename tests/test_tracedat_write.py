"""Writing trace.dat: what is written is read back, by ftbuf and by trace-cmd."""

from __future__ import annotations

import io
import lzma
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from corpus_data import Recording
from filebuilder import BufferSpec
from test_container import BIG, FILES, LITTLE, build, loaded, pages

from ftbuf.container import open_container
from ftbuf.container.options import CpuStat, OptionId
from ftbuf.container.write import write_tracedat
from ftbuf.errors import DamageError, UnsupportedError

DATA = Path(__file__).parent / "data" / "tracedat"
TARGETS = [(6, "none"), (7, "none"), (7, "zlib"), (7, "zstd")]
TRACE_CMD = shutil.which("trace-cmd")


@pytest.fixture
def real(tmp_path):
    def path(name):
        file = tmp_path / f"{name}.dat"
        file.write_bytes(lzma.decompress((DATA / f"{name}.dat.xz").read_bytes()))
        return file

    return path


def same(one, two):
    assert (one.big_endian, one.long_size) == (two.big_endian, two.long_size)
    assert (one.header_page, one.header_event) == (two.header_page, two.header_event)
    for name in ("kallsyms", "printk_formats", "saved_cmdlines"):
        assert getattr(one, name)() == getattr(two, name)()
    texts = [{event: c.format_text(key) for event, key in c.format_index().items()} for c in (one, two)]
    assert texts[0] == texts[1]
    assert one.text == two.text
    buffers = [{b.name: (b.clock, b.subbuf_size, b.stats, {s.cpu: loaded(s) for s in b.streams if s.segments})
                for b in c} for c in (one, two)]
    assert buffers[0] == buffers[1]
    assert not two.problems
    assert not [p for b in two for s in b.streams for p in s.problems]


@pytest.mark.parametrize(("version", "compression"), TARGETS)
@pytest.mark.parametrize("abi", [LITTLE, BIG], ids=["little", "big"])
def test_round_trip(version, compression, abi):
    options = [(5, b"Linux x 1 y\0"), (1, b"0x5\0"), (999, b"unknown"), (2, b"CPU: 0\nentries: 1\n\0"),
               (2, b"\nBuffer: inst\n\n\0"), (2, b"CPU: 1\nentries: 2\n\0")]
    source = open_container(build(7, "zstd", abi, options=options).data)
    file = io.BytesIO()
    write_tracedat(file, source, version=version, compression=compression)
    written = open_container(file.getvalue())
    same(source, written)
    assert written.kind == f"trace.dat v{version}"
    assert [(o.id, o.payload) for o in written.options if o.id in (5, 1, 999, 2)] == options
    assert (written.uname, written.ts_offset) == ("Linux x 1 y", 5000)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("version", "compression"), TARGETS)
def test_real_files(real, tmp_path, name, version, compression):
    path, out = real(name), tmp_path / "out.dat"
    source = open_container(path)
    write_tracedat(out, source, version=version, compression=compression)
    same(source, open_container(out))
    if TRACE_CMD and "zlib" not in (source.compression, compression):  # many are built without it
        reports = [subprocess.run([TRACE_CMD, "report", "-N", file], capture_output=True, check=True).stdout
                   for file in (path, out)]
        assert reports[0] == reports[1]
        assert len(reports[0]) > 10_000


def test_a_directory_becomes_a_file(recordings: dict[str, Recording], tmp_path):
    source = open_container(recordings["s390x-gaps"].path)
    for version, compression in TARGETS:
        out = tmp_path / "out.dat"
        write_tracedat(out, source, version=version, compression=compression)
        written = open_container(out)
        same(source, written)
        assert written.uname == "Linux (none) 6.1.0-50-s390x s390x"
        assert {o.value.cpu for o in written.options if isinstance(o.value, CpuStat)} == set(source.buffers[0].stats)
        if TRACE_CMD and compression != "zlib":
            report = subprocess.run([TRACE_CMD, "report", "-N", out], capture_output=True, check=True)
            text = (recordings["s390x-gaps"].path.parent / "expected/trace.txt").read_text()
            events = [line for line in text.splitlines() if not line.startswith("#")]
            assert report.stdout.count(b"tracing_mark_write: ") == len(events) > 10


def test_buffers_and_pages_can_be_chosen():
    source = open_container(build().data)
    file = io.BytesIO()
    write_tracedat(file, source, compression="zstd", buffers=source.buffers[1:],
                   pages=lambda buffer, stream: (loaded(stream)[i:i + 4096] for i in range(0, 11 * 4096, 4096)))
    (buffer,) = open_container(file.getvalue())
    assert buffer.name == "inst"
    assert [s.size for s in buffer.streams[0].segments] == [40960, 4096]
    assert loaded(buffer.streams[0]) == pages(LITTLE, 12, 2)[:11 * 4096]


def test_pieces_of_any_size_fill_chunks():
    source = open_container(build(buffers=[BufferSpec("", {0: pages(LITTLE, 40)})]).data)
    data = pages(LITTLE, 40)
    for sizes in ([40], [1] * 40, [3] * 13 + [1], [9, 2, 25, 4], [10, 30]):
        pieces, at = [], 0
        for size in sizes:
            pieces.append(data[at:at + size * 4096])
            at += size * 4096
        file = io.BytesIO()
        write_tracedat(file, source, compression="zlib", pages=lambda buffer, stream, pieces=pieces: pieces)
        stream = open_container(file.getvalue()).buffers[0].streams[0]
        assert [s.size for s in stream.segments] == [40960] * 4
        assert loaded(stream) == data


def test_cpus_without_pages_are_left_out_of_version_7():
    source = open_container(build(6).data)
    assert [s.cpu for s in source.buffers[1].streams] == [0, 1]
    file = io.BytesIO()
    write_tracedat(file, source)
    assert [s.cpu for s in open_container(file.getvalue()).buffers[1].streams] == [1]


@pytest.mark.parametrize(("version", "compression"), TARGETS)
def test_texts(version, compression):
    source = open_container(build(6, latency_text=b"# tracer: irqsoff\n").data)
    file = io.BytesIO()
    write_tracedat(file, source, version=version, compression=compression)
    written = open_container(file.getvalue())
    assert written.text == b"# tracer: irqsoff\n"
    assert written.cpu_count == source.cpu_count == 2


def test_sections_of_modules_and_btf_are_kept():
    built = build(options=[(25, bytes(8))])
    data = bytearray(built.data)
    struct.pack_into("<Q", data, built.marks["option25"][0], len(data))
    data += struct.pack("<HHiQ", OptionId.MODULES_FILE, 0, -1, 5) + b"ext4\n"
    for compression in ("none", "zstd"):
        file = io.BytesIO()
        write_tracedat(file, open_container(bytes(data)), compression=compression)
        assert open_container(file.getvalue()).modules() == b"ext4\n"


def test_what_version_6_cannot_express(tmp_path):
    specs = [BufferSpec("", {0: pages(LITTLE, 1)}), BufferSpec("big", {0: pages(LITTLE, 1, size=8192)}, "local", 8192)]
    source = open_container(build(buffers=specs).data)
    for arguments in ({"version": 6}, {"version": 5}, {"version": 6, "compression": "zstd"}, {"compression": "lzma"}):
        with pytest.raises(UnsupportedError):
            write_tracedat(tmp_path / "out.dat", source, **arguments)
    assert not list(tmp_path.iterdir())
    write_tracedat(tmp_path / "out.dat", source, compression="zstd")
    assert [b.subbuf_size for b in open_container(tmp_path / "out.dat")] == [4096, 8192]


def test_a_file_can_be_written_over_itself(tmp_path):
    path = tmp_path / "trace.dat"
    path.write_bytes(build().data)
    source = open_container(path)
    before = loaded(source.buffers[0].streams[0])
    write_tracedat(path, source, compression="zstd")
    assert loaded(source.buffers[0].streams[0]) == before  # the old mapping is whole
    assert loaded(open_container(path).buffers[0].streams[0]) == before


def test_failures_leave_nothing_behind(tmp_path):
    built = build(compression="zstd")
    source = open_container(built.patched(".cpu0.chunk1", b"\xff" * 20))
    with pytest.raises(DamageError):
        write_tracedat(tmp_path / "out.dat", source)
    assert not list(tmp_path.iterdir())
