"""Containers: where recordings come from. ``open_container`` decides by what is there, never by a name's ending."""

from __future__ import annotations

import os
from typing import Any

from ..errors import FormatError
from ..source import Source, open_source
from .model import Buffer, Container, Option, Problem, Segment, Stream

__all__ = ["Buffer", "Container", "Option", "Problem", "Segment", "Stream", "open_container", "what_is"]


def open_container(source: Any, *, storage_options: dict[str, Any] | None = None, mmap: bool = True) -> Container:
    """Open a recording.

    Parameters
    ----------
    source
        A trace.dat as path, URL, bytes-like object or binary file object; or the path of a tracefs-shaped directory.
    storage_options : dict, optional
        Passed on to fsspec for URLs.
    mmap : bool
        See ``ftbuf.source.open_source``.

    Raises
    ------
    FormatError
        The source is no recording; the message says what it seems to be.
    """
    # The kinds of containers are most of what importing ftbuf would cost, and one is enough: imported when met.
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        from pathlib import Path

        from .tracefs import TracefsDirectory

        return TracefsDirectory(Path(os.fsdecode(source)))
    from .tracedat import MAGIC, TraceDat

    opened = open_source(source, storage_options=storage_options, mmap=mmap, begins=MAGIC)
    try:
        head = bytes(opened.window(0, min(64, opened.size))[:64])
        if not head.startswith(MAGIC):
            raise FormatError(f"{opened.path}: not a trace: it is {what_is(head, opened)}")
        return TraceDat(opened)
    except BaseException:
        if opened is not source:
            opened.close()
        raise


_MAGICS = (
    (b"\x1f\x8b", "gzip data"), (b"\xfd7zXZ\0", "xz data"), (b"BZh", "bzip2 data"), (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"PK\x03\x04", "a zip archive"), (b"\x7fELF", "an ELF file"), (b"PERFILE2", "a perf.data file"),
    (b"2ELIFREP", "a big-endian perf.data file"), (b"PAR1", "a Parquet file"), (b"ARROW1", "an Arrow file"),
    (b"\xc1\x1f\xfc\xc1", "a CTF trace stream"), (b"SQLite format 3", "an SQLite database"),
    (b"{", "JSON or other text"),
    (b"# tracer:", "the text of a kernel's trace file, not its binary data"),
    (b"cpus=", "the text of a trace-cmd report, not a trace.dat"),
)


def what_is(head: bytes, source: Source | None = None) -> str:
    """What a file that is no recording seems to be, from its first bytes."""
    from .tracedat import MAGIC

    if not head:
        return "an empty file"
    for magic, name in _MAGICS:
        if head.startswith(magic):
            return name
    if MAGIC.startswith(head):
        return f"the first {len(head)} bytes of a trace.dat"
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        text = head[:error.start].decode("utf-8") if error.start > len(head) - 4 else ""  # cut inside a character
    if text and all(char.isprintable() or char in "\t\r\n\f" for char in text):
        return f"text ({text.splitlines()[0][:40]!r})" if text.strip() else "text"
    return f"binary data of an unknown kind ({head[:8].hex(' ')})"
