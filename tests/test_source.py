"""Sources: every kind gives the same bytes; what was handed out outlives the source; named errors."""

from __future__ import annotations

import array
import gc
import io
import os
import sys
import threading
from pathlib import Path

import pytest

from ftbuf.container import open_container
from ftbuf.errors import ClosedError, FormatError, MissingDependencyError, TruncatedError
from ftbuf.source import BLOCK, FileObjectSource, MemorySource, PreadSource, open_source

EXAMPLE = Path(__file__).parent.parent / "examples/sched.dat"
DATA = bytes(range(256)) * 4096 + b"tail"  # over a megabyte: several blocks


class Pipe(io.RawIOBase):
    """Readable, not seekable, and giving less than asked for."""

    def __init__(self, data):
        self._file = io.BytesIO(data)

    def readable(self):
        return True

    def readinto(self, buffer):
        piece = self._file.read(min(len(buffer), 1000))
        buffer[:len(piece)] = piece
        return len(piece)


class ShortReads(io.BytesIO):
    def read(self, n=-1):
        return super().read(min(n, 700) if n > 0 else n)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "data.bin"
    path.write_bytes(DATA)
    return path


KINDS = ["path", "str", "pread", "bytes", "bytearray", "memoryview", "array", "file", "BytesIO", "short reads", "pipe",
         "fsspec"]


@pytest.fixture(params=KINDS)
def source(request, path):
    kind = request.param
    opened = []
    if kind == "fsspec":
        fsspec = pytest.importorskip("fsspec")
        fsspec.filesystem("memory").pipe_file("/ftbuf-test/data.bin", DATA)
        arguments, options = "memory://ftbuf-test/data.bin", {}
    elif kind == "file":
        opened.append(path.open("rb"))
        arguments, options = opened[0], {}
    else:
        arguments, options = {
            "path": (path, {}), "str": (str(path), {}), "pread": (path, {"mmap": False}), "bytes": (DATA, {}),
            "bytearray": (bytearray(DATA), {}), "memoryview": (memoryview(DATA), {}),
            "array": (array.array("I", DATA), {}), "BytesIO": (io.BytesIO(DATA), {}),
            "short reads": (ShortReads(DATA), {}), "pipe": (Pipe(DATA), {}),
        }[kind]
    with open_source(arguments, **options) as source:
        yield source
    for file in opened:
        file.close()


def test_ranges(source):
    assert source.size == len(DATA)
    end = len(DATA)
    ranges = [(0, 0), (0, 10), (5, 1000), (BLOCK - 3, 6), (BLOCK, BLOCK), (3, 3 * BLOCK), (end - 4, 4), (end, 0)]
    for offset, n in ranges:
        assert source.read(offset, n) == DATA[offset:offset + n]
        assert source.borrow(offset, n) == DATA[offset:offset + n]
        window = source.window(offset, n)
        assert len(window) >= n
        assert window == DATA[offset:offset + len(window)]
        assert window.readonly


@pytest.mark.parametrize("method", ["read", "borrow"])
def test_past_the_end(source, method):
    for offset, n in [(len(DATA) - 1, 2), (len(DATA) + 5, 1), (0, 1 << 60), (-1, 1), (1 << 70, 1)]:
        with pytest.raises(TruncatedError, match="kallsyms") as failure:
            getattr(source, method)(offset, n, "kallsyms")
        assert failure.value.status == "truncated"
        assert failure.value.offset == offset


def test_views_outlive_the_source(source):
    view, bulk = source.read(3, 50), source.borrow(BLOCK, 2 * BLOCK)
    source.close()
    gc.collect()
    assert view == DATA[3:53]
    assert bulk == DATA[BLOCK:3 * BLOCK]
    with pytest.raises(ClosedError):
        source.borrow(0, 1)
    with pytest.raises(ClosedError):
        source.read(0, 1)
    source.close()


def test_mapped_and_in_memory_are_borrowed(path):
    for source in (open_source(path), open_source(DATA)):
        assert source.borrowed
        first, second = source.borrow(0, 100), source.read(0, 100)
        assert first.obj is second.obj
    assert open_source(DATA).borrow(0, 3).obj is DATA
    assert not open_source(io.BytesIO(DATA)).borrowed


def test_a_borrowed_bytearray_cannot_be_resized():
    data = bytearray(DATA)
    source = open_source(data)
    view = source.read(0, 10)
    with pytest.raises(BufferError):
        data.append(0)
    source.close()
    with pytest.raises(BufferError):
        data.append(0)
    del view
    data.append(0)


def test_refused_objects(tmp_path):
    with pytest.raises(FormatError, match="not contiguous"):
        open_source(memoryview(b"abcdef")[::2])
    with pytest.raises(TypeError, match="float"):
        open_source(1.5)
    with pytest.raises(TypeError, match="binary"):
        open_source(io.StringIO("text"))
    with pytest.raises(FormatError, match="directory"):
        open_source(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_source(tmp_path / "missing")


def test_empty(tmp_path):
    path = tmp_path / "empty"
    path.write_bytes(b"")
    for source in (open_source(path), open_source(path, mmap=False), open_source(b""), open_source(io.BytesIO())):
        assert source.size == 0
        assert source.read(0, 0) == b""
        with pytest.raises(TruncatedError):
            source.read(0, 1)


def test_fifo(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(DATA,))
    writer.start()
    source = open_source(path)
    writer.join()
    assert source.read(0, len(DATA)) == DATA


class Endless(io.RawIOBase):
    """A stream without end, a few bytes at a time; counts what was taken."""

    taken = 0

    def readable(self):
        return True

    def readinto(self, buffer):
        n = min(len(buffer), 7)
        buffer[:n] = b"nothing"[:n]
        self.taken += n
        return n


def test_a_stream_that_is_no_recording_is_not_read_on():
    stream = Endless()
    with pytest.raises(FormatError, match=r"text \('nothingnothing"):
        open_container(stream)
    assert stream.taken < 100
    for device in ("/dev/zero", "/dev/urandom"):
        if os.path.exists(device):
            with pytest.raises(FormatError, match=f"{device}: not a trace: it is "):
                open_container(device)


def test_a_recording_from_a_pipe(tmp_path):
    data = EXAMPLE.read_bytes()
    reading, writing = os.pipe()

    def write():
        with open(writing, "wb") as file:
            for piece in (data[:3], data[3:40], data[40:]):
                file.write(piece)
                file.flush()

    writer = threading.Thread(target=write)
    writer.start()
    with open(reading, "rb") as file:
        container = open_container(file)
    writer.join()
    assert container.source.read(0, len(data)) == data


def test_a_mapped_file_that_shrinks(path):
    """Reading what is gone would kill the process (SIGBUS)."""
    with open_source(path) as source:
        os.truncate(path, 10)
        for read in (source.read, source.borrow):
            with pytest.raises(TruncatedError, match="open it anew"):
                read(0, 5)


def test_pread_of_a_file_that_shrinks(path):
    with open_source(path, mmap=False) as source:
        assert isinstance(source, PreadSource)
        os.truncate(path, BLOCK)
        with pytest.raises(TruncatedError, match="shorter"):
            source.borrow(BLOCK - 10, 20)
        with pytest.raises(TruncatedError, match="shorter"):
            source.read(BLOCK + 10, 20)
        assert source.read(0, 10) == DATA[:10]


def test_no_file_descriptor_is_left_open(path):
    before = len(os.listdir("/proc/self/fd"))
    for mmap in (True, False):
        source = open_source(path, mmap=mmap)
        source.read(0, 10)
        source.close()
    del source
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_file_object_in_threads():
    source = FileObjectSource(ShortReads(DATA))
    failures = []

    def reader(seed):
        for i in range(200):
            offset = (seed * 7919 + i * 104729) % (len(DATA) - 5000)
            expected = DATA[offset:offset + 5000]
            if source.borrow(offset, 5000) != expected or source.read(offset, 9) != expected[:9]:
                failures.append(offset)

    threads = [threading.Thread(target=reader, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_source_is_returned_as_it_is():
    source = MemorySource(memoryview(b"abc"))
    assert open_source(source) is source


def test_urls_need_fsspec(monkeypatch):
    for name in ("fsspec", "fsspec.core"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match=r"ftbuf\[remote\]"):
        open_source("s3://bucket/trace.dat")


def test_urls_of_unknown_protocols():
    pytest.importorskip("fsspec")
    with pytest.raises(FormatError, match="nosuch"):
        open_source("nosuch://bucket/trace.dat")


def test_storage_options_reach_fsspec(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").pipe_file("/ftbuf-test/more.bin", b"more")
    options = {"memory": {}, "simplecache": {"cache_storage": str(tmp_path)}}
    with open_source("simplecache::memory://ftbuf-test/more.bin", storage_options=options) as source:
        assert source.read(0, 4) == b"more"
