"""Bytes with range reads: a mapped file, a buffer, a file object or a remote object behind one small interface.

A mapped file and a buffer are borrowed: ``read`` and ``borrow`` hand out views of their memory and copy nothing. The
others read what is asked for; small reads (``read``, used for metadata) go through a few cached blocks, bulk reads
(``borrow``, used for ring-buffer pages) go straight to the file.

Views stay valid after ``close``: a mapping lives until the last view of it is gone. A file that another process
*shrinks* while it is mapped kills this process with SIGBUS when the missing part is touched; that cannot be turned into
an exception. Reads look whether the file is still as long as it was, so that only one that shrinks while it is decoded
does so. For files that may do even that, ``mmap=False`` reads with ``pread``: a missing part is always a TruncatedError.
"""

from __future__ import annotations

import mmap as _mmap
import os
import re
import stat
import sys
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from typing import IO, Any

from .errors import ClosedError, FormatError, MissingDependencyError, TruncatedError

BLOCK = 256 << 10  # of the cache for small reads
BLOCKS_KEPT = 8
STREAM_HEAD = 64  # bytes: enough to say what it is
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z][A-Za-z0-9+.-]*)*://")


class Source(ABC):
    """``size`` bytes that can be read by range, from several threads."""

    path: str
    size: int

    @property
    def borrowed(self) -> bool:
        """Whether views cost nothing: the bytes are in memory, or mapped."""
        return False

    @abstractmethod
    def window(self, offset: int, n: int) -> memoryview:
        """At least `n` bytes from `offset` on, as many as come for free; fewer only where the source ends."""

    @abstractmethod
    def _bulk(self, offset: int, n: int) -> memoryview: ...

    @abstractmethod
    def close(self) -> None:
        """Let go of the source. Views that were handed out stay valid."""

    def read(self, offset: int, n: int, what: str = "data") -> memoryview:
        """Exactly `n` bytes from `offset` on, for metadata; TruncatedError names `what` when they are not all there."""
        self._check(offset, n, what)
        return self.window(offset, n)[:n]

    def borrow(self, offset: int, n: int, what: str = "data") -> memoryview:
        """Exactly `n` bytes from `offset` on, for bulk data: not copied where the source is in memory, never cached."""
        self._check(offset, n, what)
        return self._bulk(offset, n)

    def forget(self, offset: int, n: int) -> None:  # noqa: B027 (what is not mapped has nothing to forget)
        """These bytes will not be looked at soon: a mapping need not keep them in memory. Views of them stay valid."""

    def _check(self, offset: int, n: int, what: str) -> None:
        if offset < 0 or n < 0 or n > self.size - offset:
            missing = n - max(0, self.size - offset)
            raise TruncatedError(f"{self.path}: {what} needs {n} bytes at offset {offset}, but {missing} of them are "
                                 f"missing (the input has {self.size} bytes)", status="truncated", offset=offset)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class MemorySource(Source):
    """A buffer, or a mapped file: everything is a view of one memoryview."""

    def __init__(self, view: memoryview, path: str = "<bytes>") -> None:
        self._view: memoryview | None = view
        self._mapping = view.obj if isinstance(view.obj, _mmap.mmap) else None
        self.path = path
        self.size = view.nbytes

    @property
    def borrowed(self) -> bool:
        return True

    def window(self, offset: int, n: int) -> memoryview:
        view, mapping = self._view, self._mapping
        if view is None:
            raise ClosedError(f"{self.path} was closed")
        if mapping is not None and (left := mapping.size()) < self.size:  # of the file, now
            raise TruncatedError(f"{self.path}: the file was {self.size} bytes long when it was opened, and is {left} now: "
                                 "open it anew", status="truncated", offset=offset)
        return view[offset:]

    def _bulk(self, offset: int, n: int) -> memoryview:
        return self.window(offset, n)[:n]

    def forget(self, offset: int, n: int) -> None:
        mapping = self._mapping
        if mapping is None:
            return
        page = _mmap.PAGESIZE
        start, end = -(-offset // page) * page, (offset + n) // page * page
        if start < end:  # a file's pages come back from the page cache when a view is read again
            mapping.madvise(_mmap.MADV_DONTNEED, start, end - start)

    def close(self) -> None:
        self._view = self._mapping = None  # slices handed out hold the exporter (and so the mapping) themselves


class BlockSource(Source):
    """Base of sources that must be read: small reads are served from a few cached blocks."""

    def __init__(self, path: str, size: int) -> None:
        self.path = path
        self.size = size
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._lock = threading.Lock()

    @abstractmethod
    def _fetch(self, offset: int, n: int) -> bytes:
        """Up to `n` bytes; fewer only at the end. Called from several threads."""

    def window(self, offset: int, n: int) -> memoryview:
        n = min(n, self.size - offset)
        start = offset - offset % BLOCK
        if n > BLOCK or offset + n > start + BLOCK:  # not inside one block
            return self._bulk(offset, n)
        with self._lock:
            block = self._blocks.get(start)
            if block is not None:
                self._blocks.move_to_end(start)
        if block is None:
            block = self._fetch(start, min(BLOCK, self.size - start))
            with self._lock:
                self._blocks[start] = block
                while len(self._blocks) > BLOCKS_KEPT:
                    self._blocks.popitem(last=False)
        self._complete(block, offset - start + n, offset)
        return memoryview(block)[offset - start:]

    def _bulk(self, offset: int, n: int) -> memoryview:
        data = self._fetch(offset, n)
        self._complete(data, n, offset)
        return memoryview(data)

    def _complete(self, data: bytes, n: int, offset: int) -> None:
        if len(data) < n:  # the file shrank since it was opened
            raise TruncatedError(f"{self.path}: {n - len(data)} bytes are missing at offset {offset}; the input became "
                                 "shorter", status="truncated", offset=offset)

    def close(self) -> None:
        with self._lock:
            self._blocks.clear()


class _Descriptor:
    """A file descriptor that is closed when the last reader is done with it, not under its feet."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.fd)


class PreadSource(BlockSource):
    """A local file read with ``pread``."""

    def __init__(self, fd: int, path: str, size: int) -> None:
        super().__init__(path, size)
        self._file: _Descriptor | None = _Descriptor(fd)

    def _fetch(self, offset: int, n: int) -> bytes:
        file = self._file
        if file is None:
            raise ClosedError(f"{self.path} was closed")
        pieces = []
        while n > 0:
            piece = os.pread(file.fd, min(n, 1 << 30), offset)
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
            n -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        super().close()
        self._file = None


class FileObjectSource(BlockSource):
    """A seekable binary file object. It is the caller's: it is not closed here, and its position moves."""

    def __init__(self, file: IO[bytes]) -> None:
        name = getattr(file, "name", None)
        super().__init__(name if isinstance(name, str) else f"<{type(file).__name__}>", file.seek(0, os.SEEK_END))
        self._file: IO[bytes] | None = file
        self._position = threading.Lock()

    def _fetch(self, offset: int, n: int) -> bytes:
        with self._position:
            file = self._file
            if file is None:
                raise ClosedError(f"{self.path} was closed")
            file.seek(offset)
            return _read_up_to(file, n)

    def close(self) -> None:
        super().close()
        self._file = None


class RemoteSource(BlockSource):
    """An object that fsspec reaches."""

    def __init__(self, url: str, storage_options: dict[str, Any] | None) -> None:
        try:
            from fsspec.core import url_to_fs  # type: ignore[import-untyped, unused-ignore]
        except ImportError as error:
            raise MissingDependencyError(f"{url}: reading URLs needs fsspec: pip install 'ftbuf[remote]'") from error
        try:
            self._fs, self._name = url_to_fs(url, **(storage_options or {}))
        except ImportError as error:  # fsspec is there, the package for this protocol is not; its message says which
            raise MissingDependencyError(f"{url}: {error} (beside the extra ftbuf[remote])") from error
        except ValueError as error:
            raise FormatError(f"{url}: {error}") from error
        super().__init__(url, int(self._fs.size(self._name) or 0))

    def _fetch(self, offset: int, n: int) -> bytes:
        if self._fs is None:
            raise ClosedError(f"{self.path} was closed")
        return bytes(self._fs.cat_file(self._name, start=offset, end=offset + n)) if n else b""

    def close(self) -> None:
        super().close()
        self._fs = None


def borrow_buffer(obj: Any) -> memoryview:
    """The one doorway for buffers: a read-only view of bytes, held as long as anything made from it lives.

    A bytearray cannot be resized meanwhile (Python raises BufferError); changing its contents changes what is decoded.
    """
    try:
        view = memoryview(obj)
    except TypeError:
        raise TypeError(f"a bytes-like object is needed, not {type(obj).__name__}") from None
    if not view.c_contiguous:
        raise FormatError("the buffer is not contiguous: copy it first, for example with bytes(buffer)")
    return view.cast("B").toreadonly() if view.nbytes else memoryview(b"")


def open_source(source: Any, *, storage_options: dict[str, Any] | None = None, mmap: bool = True,
                begins: bytes = b"") -> Source:
    """Open a path, URL, bytes-like object or binary file object as a Source.

    Parameters
    ----------
    source
        A path; a URL of fsspec (``s3://...``, ``memory://...``); bytes, bytearray, memoryview or anything else with the
        buffer protocol; a binary file object (one that cannot seek is read in); or a Source, returned as it is.
    storage_options : dict, optional
        Passed on to fsspec.
    mmap : bool
        Map local files (the default), or read them with ``pread``: for files that another process may shrink.
    begins : bytes
        Of a stream that cannot seek (a pipe, a device) that begins otherwise, no more than its first bytes are read: it
        need not have an end.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if isinstance(path, str) and _URL.match(path):
            return RemoteSource(path, storage_options)
        return _open_path(path, mmap, begins)
    if callable(getattr(source, "read", None)):
        return _open_file_object(source, begins)
    if source is None or isinstance(source, (int, float)):
        raise TypeError(f"a recording is a path, a URL, bytes or a binary file, not {type(source).__name__}")
    return MemorySource(borrow_buffer(source))


def _open_path(path: str | bytes, use_mmap: bool, begins: bytes) -> Source:
    name = os.fsdecode(path)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            raise FormatError(f"{name}: is a directory")
        if not stat.S_ISREG(status.st_mode):  # a FIFO or a device has no size: read it in
            with os.fdopen(os.dup(fd), "rb") as file:
                return MemorySource(_read_stream(file, begins), name)
        if status.st_size == 0:  # mmap refuses empty files
            return MemorySource(memoryview(b""), name)
        if use_mmap:
            return MemorySource(memoryview(_map(fd)), name)
        kept, fd = fd, -1
        return PreadSource(kept, name, status.st_size)
    finally:
        if fd >= 0:
            os.close(fd)


def _map(fd: int) -> _mmap.mmap:
    if sys.version_info >= (3, 13):
        return _mmap.mmap(fd, 0, access=_mmap.ACCESS_READ, trackfd=False)  # a mapping needs no descriptor of its own
    return _mmap.mmap(fd, 0, access=_mmap.ACCESS_READ)


def _open_file_object(file: Any, begins: bytes) -> Source:
    if not isinstance(file.read(0), (bytes, bytearray)):
        raise TypeError("the file must be opened in binary mode ('rb')")
    seekable = getattr(file, "seekable", None)
    if seekable is not None and seekable():
        return FileObjectSource(file)
    return MemorySource(_read_stream(file, begins), f"<{type(file).__name__}>")


def _read_stream(file: IO[bytes], begins: bytes) -> memoryview:
    """All of a stream that begins as it should, else its head."""
    head = _read_up_to(file, STREAM_HEAD)
    return memoryview(head + file.read() if head.startswith(begins) else head)


def _read_up_to(file: IO[bytes], n: int) -> bytes:
    """Raw files may return less than asked for."""
    data = file.read(n) or b""
    if len(data) == n or not data:
        return data
    pieces, left = [data], n - len(data)
    while left and (piece := file.read(left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
