"""Writes trace.dat files, versions 6 and 7: the metadata of a container, and sub-buffers of its buffers.

Layouts: TC:Documentation/trace-cmd/trace-cmd.dat.v6.5.txt and v7.5.txt; see also ``tracedat``. trace-cmd reads what
this writes.
"""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import IO, Any

from ..errors import UnsupportedError
from .compress import Compress, compressor
from .model import Buffer, Container, Stream
from .options import OptionId
from .pages import with_subbuf_size
from .parts import Parts
from .tracedat import COMPRESSED, MAGIC, TraceDat

PAGES_IN_CHUNK = 10  # TC:lib/trace-cmd/trace-compress.c
MAX_NR_CPUS = 8192  # K:arch/x86/Kconfig NR_CPUS; a damaged file may state more
_VERSIONS = {"none": "", "zlib": "1.2.13", "zstd": "1.5.4"}
_PARTS = (OptionId.HEADER_INFO, OptionId.FTRACE_EVENTS, OptionId.EVENT_FORMATS, OptionId.KALLSYMS, OptionId.PRINTK,
          OptionId.CMDLINES)
_OWN = {OptionId.DONE, OptionId.BUFFER, OptionId.BUFFER_TEXT, OptionId.TRACECLOCK, OptionId.CPUCOUNT, OptionId.STRINGS,
        OptionId.BTF_FILE, OptionId.MODULES_FILE, *_PARTS}  # options that are made anew, not copied

Pages = Callable[[Buffer, Stream], Iterable[bytes | memoryview]]


def write_tracedat(dest: Any, container: Container, *, version: int = 7, compression: str = "none",
                   buffers: Sequence[Buffer] | None = None, pages: Pages | None = None) -> None:
    """Write a trace.dat.

    Parameters
    ----------
    dest
        A path (the file appears when it is complete, so the source itself may be named), or a seekable binary file.
    container
        Whose metadata is written: formats, symbols, names and, from another trace.dat, its options.
    version : {6, 7}
    compression : {"none", "zlib", "zstd"}
        Version 7 only.
    buffers : sequence of Buffer, optional
        Which buffers (all of them).
    pages : callable, optional
        (buffer, stream) -> pieces of whole sub-buffers, oldest first; all that the stream has unless given.

    Raises
    ------
    UnsupportedError
        Version 6 cannot express it: compression, or buffers with different sizes of sub-buffers.
    """
    if version not in (6, 7):
        raise UnsupportedError(f"cannot write trace.dat version {version}; ftbuf writes 6 and 7")
    if compression not in _VERSIONS:
        raise UnsupportedError(f"cannot compress with {compression!r}; ftbuf writes none, zlib and zstd")
    chosen = list(container.buffers if buffers is None else buffers)
    if version == 6 and compression != "none":
        raise UnsupportedError("a trace.dat of version 6 cannot be compressed")
    if version == 6 and len({buffer.subbuf_size for buffer in chosen}) > 1:
        raise UnsupportedError("a trace.dat of version 6 has one sub-buffer size for all buffers; these have several")

    def write(file: IO[bytes]) -> None:
        writer = _Writer(file, container, chosen, pages or _whole_subbuffers, compression)
        (writer.write_v6 if version == 6 else writer.write_v7)()

    if isinstance(dest, (str, os.PathLike)):
        _replace(os.fsdecode(dest), write)
    else:
        write(dest)


def _replace(path: str, write: Callable[[IO[bytes]], None]) -> None:
    """Write beside `path`, then rename: a source that is mapped from the same path stays whole.

    A device stays, and gets the file when it is complete: some have no positions, whatever they say.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as device, tempfile.TemporaryFile() as whole:
            if not device.seekable():
                raise UnsupportedError(f"{path}: a trace.dat cannot be written to what has no positions, as a pipe")
            write(whole)
            whole.seek(0)
            shutil.copyfileobj(whole, device)
        return
    path = os.path.realpath(path)
    try:
        fd, temporary = tempfile.mkstemp(prefix=os.path.basename(path) + ".", dir=os.path.dirname(path) or ".")
    except OSError as error:  # of the file that was asked for
        raise OSError(error.errno, error.strerror, path) from None
    try:
        with os.fdopen(fd, "wb") as file:
            write(file)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _whole_subbuffers(buffer: Buffer, stream: Stream) -> Iterable[memoryview]:
    for index in range(len(stream.segments)):
        data = stream.load(index)
        yield data[:len(data) - len(data) % buffer.subbuf_size]


def _short_uname(text: str) -> str:
    """What trace-cmd stores: sysname, nodename, release and machine, of a longer ``uname -a``."""
    words = text.removesuffix(" GNU/Linux").split()
    return " ".join([*words[:3], words[-1]]) if len(words) > 4 else text


def selected(clock: str) -> bytes:
    """As a ``trace_clock`` text shows the clock in use."""
    return f"[{clock}]".encode("utf-8", "surrogateescape")


class _Writer:
    def __init__(self, file: IO[bytes], container: Container, buffers: Sequence[Buffer], pages: Pages,
                 compression: str) -> None:
        self.file = file
        self.container = container
        self.parts = Parts(container)
        self.buffers = buffers
        self.pages = pages
        self.compression = compression
        self.compress: Compress | None = compressor(compression) if compression != "none" else None
        self.order = ">" if container.big_endian else "<"
        self.base = file.tell()
        self.subbuf_size = buffers[0].subbuf_size if buffers else getattr(container, "page_size", 0) or 4096

    # -- small pieces ------------------------------------------------------------------------------------------------

    def n(self, code: str, *values: int) -> bytes:
        return struct.pack(self.order + code, *values)

    @property
    def here(self) -> int:
        return self.file.tell() - self.base

    def put(self, data: bytes | memoryview) -> None:
        self.file.write(data)

    def patch(self, offset: int, data: bytes) -> None:
        end = self.file.tell()
        self.file.seek(self.base + offset)
        self.file.write(data)
        self.file.seek(end)

    def align(self, size: int) -> None:
        self.put(bytes(-self.here % size))

    def cpu_count(self) -> int:
        stated = self.container.cpu_count if isinstance(self.container, TraceDat) else 0
        there = [1 + stream.cpu for buffer in self.buffers for stream in buffer.streams]
        return max([stated if stated <= MAX_NR_CPUS else 0, *there])

    def start(self, version: int) -> None:
        container = self.container
        self.put(MAGIC + b"%d\0" % version + bytes([container.big_endian, container.long_size]))
        self.put(self.n("I", self.subbuf_size))

    # -- the metadata, the same bytes in both versions ---------------------------------------------------------------

    def part(self, number: OptionId) -> bytes:
        container = self.container
        if number == OptionId.HEADER_INFO:
            page, event = with_subbuf_size(container.header_page, self.subbuf_size), container.header_event
            return (b"header_page\0" + self.n("Q", len(page)) + page
                    + b"header_event\0" + self.n("Q", len(event)) + event)
        if number == OptionId.FTRACE_EVENTS:
            return self.formats(lambda system: system == "ftrace").get("ftrace", self.n("I", 0))
        if number == OptionId.EVENT_FORMATS:
            systems = self.formats(lambda system: system != "ftrace")
            return self.n("I", len(systems)) + b"".join(
                system.encode("utf-8", "surrogateescape") + b"\0" + texts for system, texts in systems.items())
        if number == OptionId.CMDLINES:
            return self.sized("Q", *self.parts.read("saved_cmdlines"))
        return self.sized("I", *self.parts.read("kallsyms" if number == OptionId.KALLSYMS else "printk_formats"))

    def sized(self, code: str, data: bytes) -> bytes:
        return self.n(code, len(data)) + data

    def formats(self, wanted: Callable[[str], bool]) -> dict[str, bytes]:
        """Of each wanted system: u32 count, and u64 size and text of each event."""
        texts: dict[str, list[bytes]] = {}
        for (system, _), key in self.container.format_index().items():
            if wanted(system):
                texts.setdefault(system, []).append(self.sized("Q", self.container.format_text(key)))
        return {system: self.n("I", len(found)) + b"".join(found) for system, found in texts.items()}

    # -- options -----------------------------------------------------------------------------------------------------

    def option(self, number: int, payload: bytes) -> None:
        self.put(self.n("HI", number, len(payload)) + payload)

    def copied_options(self) -> list[tuple[int, bytes]]:
        container = self.container
        if isinstance(container, TraceDat):
            return [(option.id, option.payload) for option in container.options if option.id not in _OWN]
        options = []
        if container.uname:
            options.append((int(OptionId.UNAME), self.text(_short_uname(container.uname))))
        for buffer in self.buffers:
            if buffer.name and buffer.stats:
                options.append((int(OptionId.CPUSTAT), self.text(f"\nBuffer: {buffer.name}\n\n")))
            for cpu, text in buffer.stats.items():
                options.append((int(OptionId.CPUSTAT), b"CPU: %d\n%b\0" % (cpu, text)))
        return options

    def text(self, text: str) -> bytes:
        return text.encode("utf-8", "surrogateescape") + b"\0"

    def clock_text(self) -> bytes:
        clock = self.buffers[0].clock if self.buffers else "local"
        return self.container.tracing_file("trace_clock") or selected(clock) + b"\n"

    # -- version 6 ---------------------------------------------------------------------------------------------------

    def write_v6(self) -> None:
        top = next((b for b in self.buffers if not b.name), None)
        instances = [b for b in self.buffers if b.name]
        cpus, text = self.cpu_count(), self.container.text
        self.start(6)
        for number in _PARTS:
            self.put(self.part(number))
        self.put(self.n("I", cpus))
        self.put(b"options  \0")
        for option, payload in self.copied_options():
            self.option(option, payload)
        if text is None:  # this option says that a clock follows each table of CPU data; a text has no such table
            self.option(OptionId.TRACECLOCK, self.clock_text() + b"\0")
        places = []
        for buffer in instances:
            places.append(self.here + 6)
            self.option(OptionId.BUFFER, bytes(8) + self.text(buffer.name))
        self.put(self.n("H", OptionId.DONE))
        if text is not None:
            self.put(b"latency  \0" + text)
            return
        self.v6_buffer(top, cpus)
        for buffer, place in zip(instances, places, strict=True):
            self.align(self.subbuf_size)
            self.patch(place, self.n("Q", self.here))
            self.v6_buffer(buffer, cpus)

    def v6_buffer(self, buffer: Buffer | None, cpus: int) -> None:
        self.put(b"flyrecord\0")
        table = self.here
        self.put(bytes(16 * cpus))
        self.put(self.sized("Q", selected(buffer.clock if buffer else "local")))
        streams = {stream.cpu: stream for stream in buffer.streams} if buffer else {}
        for cpu in range(cpus):
            self.align(self.subbuf_size)
            start = self.here
            if buffer and cpu in streams:
                for data in self.pages(buffer, streams[cpu]):
                    self.put(data)
            self.patch(table + 16 * cpu, self.n("QQ", start, self.here - start))

    # -- version 7 ---------------------------------------------------------------------------------------------------

    def write_v7(self) -> None:
        self.start(7)
        self.put(self.text(self.compression) + self.text(_VERSIONS[self.compression]))
        pointer = self.here  # to the next options section
        self.put(bytes(8))
        options = [(int(number), self.n("Q", self.section(number, self.part(number)))) for number in _PARTS]
        if isinstance(self.container, TraceDat):
            files = dict(zip((OptionId.MODULES_FILE, OptionId.BTF_FILE), self.parts.read("modules", "btf"), strict=True))
            options += [(int(n), self.n("Q", self.section(n, data))) for n, data in files.items() if data]
        options.append((int(OptionId.TRACECLOCK), self.clock_text() + b"\0"))
        options += [*self.copied_options(), (int(OptionId.CPUCOUNT), self.n("I", self.cpu_count()))]
        pointer = self.options_section(pointer, options)
        text = self.container.text
        if text is not None:
            clock = self.buffers[0].clock if self.buffers else "local"
            payload = self.n("Q", self.section(OptionId.BUFFER_TEXT, text)) + self.text("") + self.text(clock)
            self.options_section(pointer, [(OptionId.BUFFER_TEXT, payload)])
            return
        for buffer in self.buffers:
            pointer = self.options_section(pointer, [(OptionId.BUFFER, self.v7_buffer(buffer))])

    def section_head(self, number: int, compressed: bool) -> int:
        """Begin a section, whose size is written by ``section_end``; its offset."""
        offset = self.here
        self.put(self.n("HHiQ", number, COMPRESSED if compressed else 0, -1, 0))
        return offset

    def section_end(self, offset: int) -> None:
        self.patch(offset + 8, self.n("Q", self.here - offset - 16))

    def section(self, number: int, data: bytes) -> int:
        """Write a whole section; its offset."""
        offset = self.section_head(number, self.compress is not None)
        if self.compress is None:
            self.put(data)
        else:
            packed = self.compress(data)
            chunks = self.n("I", 1) if number == OptionId.BUFFER_TEXT else b""
            self.put(chunks + self.n("II", len(packed), len(data)) + packed)
        self.section_end(offset)
        return offset

    def options_section(self, pointer: int, options: Sequence[tuple[int, bytes]]) -> int:
        """Write options; where the pointer to the next ones is."""
        self.patch(pointer, self.n("Q", self.here))
        offset = self.section_head(OptionId.DONE, False)
        for number, payload in options:
            self.option(number, payload)
        self.option(OptionId.DONE, bytes(8))
        self.section_end(offset)
        return self.here - 8

    def v7_buffer(self, buffer: Buffer) -> bytes:
        """Write the section of a buffer; the payload of its option. CPUs without data are left out."""
        offset = self.section_head(OptionId.BUFFER, self.compress is not None)
        table = []
        for stream in buffer.streams:
            self.align(max(self.subbuf_size, buffer.subbuf_size))
            start = self.here
            self.cpu_data(buffer, self.pages(buffer, stream))
            if self.here > start:
                table.append(self.n("IQQ", stream.cpu, start, self.here - start))
        self.section_end(offset)
        return (self.n("Q", offset) + self.text(buffer.name) + self.text(buffer.clock)
                + self.n("II", buffer.subbuf_size, len(table)) + b"".join(table))

    def cpu_data(self, buffer: Buffer, pages: Iterable[bytes | memoryview]) -> None:
        if self.compress is None:
            for data in pages:
                self.put(data)
            return
        start, count = self.here, 0
        for chunk in _chunks(pages, PAGES_IN_CHUNK * buffer.subbuf_size):
            packed = self.compress(chunk)
            if not count:
                self.put(bytes(4))
            self.put(self.n("II", len(packed), len(chunk)) + packed)
            count += 1
        if count:
            self.patch(start, self.n("I", count))


def _chunks(pieces: Iterable[bytes | memoryview], size: int) -> Iterable[bytes | memoryview]:
    """The same bytes in pieces of `size`; the last may be shorter."""
    held = bytearray()
    for piece in pieces:
        at = 0
        if held:
            at = min(size - len(held), len(piece))
            held += piece[:at]
            if len(held) < size:
                continue
            yield bytes(held)
            held.clear()
        whole = at + (len(piece) - at) // size * size
        for start in range(at, whole, size):
            yield piece[start:start + size]
        held += piece[whole:]
    if held:
        yield bytes(held)
