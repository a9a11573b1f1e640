"""Want of memory is no damage: nothing is skipped for it."""

from __future__ import annotations

import zlib

import pytest
from filebuilder import BufferSpec, TraceDat
from pagebuilder import ABIS, event, format_text, make_format, pages_of

import ftbuf
from ftbuf.container import compress

ABI = ABIS["le64"]
FORMAT = make_format("probe", 42, ["int number"])


def recording(compression: str) -> bytes:
    pages = {cpu: pages_of(ABI, *(event(FORMAT, ABI, number=i) for i in range(2000))) for cpu in range(2)}
    spec = TraceDat(ABI, compression=compression, formats={"test": [format_text(FORMAT)]}, buffers=[BufferSpec(pages=pages)])
    return spec.build().data


class Poor:
    """A zstd without memory."""

    ZstdError = compress._zstd().ZstdError
    says = "Unable to decompress Zstandard data: Allocation error : not enough memory"

    @classmethod
    def ZstdDecompressor(cls):
        raise cls.ZstdError(cls.says)


@pytest.mark.parametrize("errors", ["raise", "warn", "skip"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("says", [Poor.says, "Unable to create ZSTD_DCtx instance."])
def test_zstd_without_memory(monkeypatch, errors, threads, says):
    with ftbuf.open(recording("zstd"), errors=errors) as trace:
        assert trace["probe"].columns  # what is read besides pages
        monkeypatch.setattr(compress, "_zstd", lambda: Poor)
        monkeypatch.setattr(Poor, "says", says)
        with pytest.raises(MemoryError):
            trace.tables(["probe"], threads=threads)
        monkeypatch.undo()
        assert len(trace.tables(["probe"], threads=threads)["probe"]) == 4000
        assert trace.problems.num_rows == 0


def test_zlib_without_memory(monkeypatch):
    class Stream:
        def decompress(self, data, size):
            raise zlib.error("Error -4 while decompressing data: insufficient memory")

    monkeypatch.setattr(compress.zlib, "decompressobj", Stream)
    with pytest.raises(MemoryError):
        compress.decompressor("zlib")(b"", 10)


def test_a_frame_that_asks_for_too_much_is_damaged(monkeypatch):
    monkeypatch.setattr(compress, "_zstd", lambda: Poor)
    monkeypatch.setattr(Poor, "says", "Frame requires too much memory for decoding")
    with pytest.raises(ftbuf.DamageError):
        compress.decompressor("zstd")(b"", 10)
