"""A tracefs-shaped directory: a plain copy of tracefs, or what of the real one can be read without consuming it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from ..errors import FormatError
from ..formats import Abi
from ..source import MemorySource, Source, open_source
from .byteorder import PAGES_JUDGED, guess_byte_order
from .formattext import format_head
from .mmapimage import MmapImage, MmapStream
from .model import METADATA, Buffer, Container, Problem, Stream
from .options import MAX_CPUS, decode_text, selected_clock
from .pages import page_layout, with_subbuf_size
from .streams import PlainStream

_CPU = re.compile(r"cpu(\d{1,6})")
_MMAP_META = re.compile(r"cpu(\d{1,6})\.mmap_meta")
_HEAD_LENGTH = 512
_PAGE_FILES = {"main": "trace_pipe_raw", "snapshot": "snapshot_raw"}


class TracefsDirectory(Container):
    """A directory that looks like /sys/kernel/tracing.

    Parameters
    ----------
    root : Path
        The directory; ``events/`` and ``per_cpu/cpuN/trace_pipe_raw`` (or ``snapshot_raw``) are what matters, the rest
        is optional. ``kallsyms`` and ``uname`` stand beside them.
    header_page : bytes, optional
        Where the directory has no ``events/header_page``.
    big_endian : bool, optional
        Instead of judging by the pages.
    """

    kind = "tracefs directory"

    def __init__(self, root: Path, *, header_page: bytes | None = None, big_endian: bool | None = None) -> None:
        self.root = root
        self.path = str(root)
        self.options = ()
        self.problems: list[Problem] = []
        self._sources: list[Source] = []
        if not (root / "events").is_dir() and not (root / "per_cpu").is_dir():
            raise FormatError(f"{root}: not a recording: the directory has neither events/ nor per_cpu/")
        self.header_page = header_page if header_page is not None else _read(root / "events/header_page") or b""
        self.header_event = _read(root / "events/header_event") or b""
        layout = page_layout(self.header_page)
        if layout is None:
            raise FormatError(f"{root}: events/header_page is missing, so the layout of the pages is not known")
        self.long_size = layout.long_size
        try:
            tops = [(root, "")] + [(root / "instances" / name, name) for name in _names(root / "instances")]
            self.buffers = [b for top, name in tops for b in [self._buffer(top, name, "main")] if b.streams or not name]
            self._snapshots = [b for top, name in tops for b in [self._buffer(top, name, "snapshot")] if b.streams]
            self.big_endian = self._judge(layout) if big_endian is None else big_endian
        except BaseException:
            self.close()
            raise

    @property
    def snapshot_buffers(self) -> list[Buffer]:
        return self._snapshots

    def _buffer(self, top: Path, name: str, which: str) -> Buffer:
        own = _read(top / "events/header_page") if name else None  # an instance may have another sub-buffer size
        header_page = own if own and own.strip() else self.header_page
        layout = page_layout(header_page)
        assert layout is not None
        streams: list[Stream] = []
        stats: dict[int, bytes] = {}
        for cpu, folder in _cpus(top / "per_cpu"):
            text = _read(folder / "stats")
            if text is not None:
                stats[cpu] = text
            source = self._pages(folder / _PAGE_FILES[which], cpu, name)
            if source is not None:
                streams.append(PlainStream(source, cpu, 0, source.size, layout.subbuf_size,
                                           data_offset=layout.data_offset, buffer=name))
        if which == "main" and not name:
            images = self._images({s.cpu for s in streams}, layout.long_size)
            if images and not streams:
                header_page = with_subbuf_size(header_page, images[0].image.meta.subbuf_size)
            streams += images
        clock = selected_clock(_read(top / "trace_clock") or _read(self.root / "trace_clock") or b"") or "local"
        layout = page_layout(header_page) or layout
        return Buffer(name, clock, header_page, layout.subbuf_size, streams, stats)

    def _images(self, known: set[int], long_size: int) -> list[MmapStream]:
        """CPUs whose pages are there as copies of the mapped buffer: cpuN.mmap_meta and cpuN.mmap_subbufs."""
        found = []
        for cpu, name in sorted(_matches(self.root, _MMAP_META)):
            if cpu in known:
                continue
            meta = _read(self.root / name)
            source = self._pages(self.root / f"cpu{cpu}.mmap_subbufs", cpu)
            if meta is None or source is None:
                continue
            image = MmapImage(meta, source.borrow(0, source.size), long_size=long_size)
            found.append(MmapStream(image, cpu))
        return found

    def _pages(self, path: Path, cpu: int, buffer: str = "") -> Source | None:
        """Pages of one CPU; None where there is none. The files of a real tracefs show size 0: they are read live."""
        try:
            found = path.stat()
            if not stat.S_ISREG(found.st_mode):  # a pipe or a device, which need not have an end
                self.problems.append(Problem(cpu, 0, METADATA, 0, buffer, f"{path}: not a regular file"))
                return None
            source = open_source(path) if found.st_size else MemorySource(memoryview(b""), str(path))
        except FileNotFoundError:
            return None
        self._sources.append(source)
        return source

    def _judge(self, layout: Abi) -> bool:
        return guess_byte_order(self._some_pages(), long_size=layout.long_size, data_offset=layout.data_offset,
                                uname=self.uname)

    def _some_pages(self) -> Iterator[memoryview]:
        """The first pages of all CPUs' streams."""
        for index in range(PAGES_JUDGED):
            for buffer in (*self.buffers, *self._snapshots):
                for stream in buffer.streams:
                    at = index * buffer.subbuf_size
                    if stream.segments and at < stream.segments[0].size:
                        yield stream.load(0)[at:at + buffer.subbuf_size]

    # -- formats -----------------------------------------------------------------------------------------------------

    @cached_property
    def _formats(self) -> list[tuple[str, str, Path]]:
        """(system, event, path of its format) in the order of names; nothing is opened."""
        events = self.root / "events"
        return [(system, event, events / system / event / "format")
                for system in _names(events) for event in _names(events / system)]

    def format_index(self) -> Mapping[tuple[str, str], int]:
        return {(system, event): key for key, (system, event, _) in enumerate(self._formats)}

    def format_text(self, key: int) -> bytes:
        system, event, path = self._formats[key]
        text = _read(path)
        if text is None:
            raise FormatError(f"{path}: the format of {system}:{event} is missing")
        return text

    def id_index(self) -> Mapping[int, tuple[str, str]]:
        index: dict[int, tuple[str, str]] = {}
        for system, event, path in self._formats:
            head = format_head(_read(path, _HEAD_LENGTH) or b"")
            if head is not None:
                index.setdefault(head[1], (system, event))
        return index

    # -- texts -------------------------------------------------------------------------------------------------------

    def kallsyms(self) -> bytes:
        return _read(self.root / "kallsyms") or b""

    def printk_formats(self) -> bytes:
        return _read(self.root / "printk_formats") or b""

    def saved_cmdlines(self) -> bytes:
        return _read(self.root / "saved_cmdlines") or b""

    def saved_tgids(self) -> bytes:
        return _read(self.root / "saved_tgids") or b""

    def tracing_file(self, name: str) -> bytes | None:
        """A file of the directory; "NAME/FILE" is that of instance NAME."""
        instance, _, file = name.rpartition("/")
        if file in ("", ".", "..") or instance in (".", "..") or "/" in instance or "\0" in name:
            return None
        return _read(self.root / "instances" / instance / file if instance else self.root / file)

    @cached_property
    def uname(self) -> str:
        return decode_text(_read(self.root / "uname") or b"").strip()

    def close(self) -> None:
        for source in self._sources:
            source.close()


def _read(path: Path, limit: int = -1) -> bytes | None:
    """The bytes of a file; None where there is none, or where it may not be read."""
    try:
        if not path.is_file():  # a pipe, or a device, which need not have an end
            return None
        with open(path, "rb") as file:
            return file.read(limit)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError):
        return None


def _names(folder: Path) -> list[str]:
    """Names of the sub-directories."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def _matches(folder: Path, pattern: re.Pattern[str]) -> list[tuple[int, str]]:
    """(number, name) of files with such names."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    return [(int(m[1]), n) for n in names if (m := pattern.fullmatch(n)) and int(m[1]) < MAX_CPUS]


def _cpus(folder: Path) -> list[tuple[int, Path]]:
    found = [(int(match[1]), folder / name) for name in _names(folder) if (match := _CPU.fullmatch(name))]
    return sorted((cpu, path) for cpu, path in found if cpu < MAX_CPUS)
