"""The compressions of trace.dat v7: whole sections, and chunks of sub-buffers. All of them release the GIL."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from typing import Any

from ..errors import CompressionError, MissingDependencyError, UnsupportedError

MAX_CHUNK = 64 << 20  # of decompressed pages; writers put ten sub-buffers in a chunk
MAX_SECTION = 256 << 20  # of decompressed metadata
# What zstd and zlib (Z_MEM_ERROR) say when they get no memory. Of a frame that asks for too much, zstd says something else.
OUT_OF_MEMORY = ("not enough memory", "Unable to create", "Error -4 ")

Data = bytes | memoryview
Decompress = Callable[[Data, int], bytes]
Compress = Callable[[Data], bytes]


def decompressor(name: str) -> Decompress:
    """The function (data, exact size) -> bytes of a compression that a file names; several threads may call it."""
    if name == "zlib":
        return _unzlib
    if name == "zstd":
        return _unzstd
    raise UnsupportedError(f"the file is compressed with {name!r}; ftbuf reads zlib and zstd")


def compressor(name: str) -> Compress:
    """The function data -> bytes that writes what ``decompressor(name)`` reads."""
    if name == "zlib":
        return lambda data: zlib.compress(data, 9)
    if name == "zstd":
        zstd = _zstd()
        # without content size, as trace-cmd writes its frames (TC:trace-compress-zstd.c)
        options = {zstd.CompressionParameter.content_size_flag: 0}
        return lambda data: bytes(zstd.compress(data, options=options))
    raise UnsupportedError(f"cannot compress with {name!r}; ftbuf writes zlib and zstd")


def _zstd() -> Any:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError as error:
        raise MissingDependencyError("zstd-compressed recordings need the package backports.zstd") from error
    return zstd


def _raise_out_of_memory(name: str, error: Exception) -> None:
    """Want of memory is told as damage is, but is no fault of the data, which nobody may skip for that."""
    if any(sign in str(error) for sign in OUT_OF_MEMORY):
        raise MemoryError(f"{name}: {error}") from None


def _unzlib(data: Data, size: int) -> bytes:
    stream = zlib.decompressobj()
    try:
        return _exactly(stream.decompress(data, size + 1), stream.eof, size)
    except zlib.error as error:
        _raise_out_of_memory("zlib", error)
        raise CompressionError(f"zlib: {error}", status="bad_compression") from None


def _unzstd(data: Data, size: int) -> bytes:
    zstd = _zstd()
    try:
        stream = zstd.ZstdDecompressor()
        return _exactly(stream.decompress(data, size + 1), stream.eof, size)
    except zstd.ZstdError as error:
        _raise_out_of_memory("zstd", error)
        raise CompressionError(f"zstd: {error}", status="bad_compression") from None


def _exactly(result: bytes, finished: bool, size: int) -> bytes:
    # one byte more than promised was allowed for, so that the stream could reach its end
    if len(result) > size:
        raise CompressionError(f"decompresses to more than the {size} bytes that its header promises",
                               status="bad_compression")
    if len(result) < size:
        raise CompressionError(f"decompresses to {len(result)} bytes, not to the {size} that its header promises",
                               status="bad_compression")
    if not finished:
        raise CompressionError("the compressed data end too early", status="bad_compression")
    return result
