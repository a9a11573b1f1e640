"""trace.dat, versions 6 and 7: opening reads the tables and no text; everything else is read when it is asked for.

Both versions hold the same parts (header info, formats, kallsyms, ...): v6 one after the other, v7 in sections that
options point to. ``_cursor`` gives a cursor at the start of each, so the code after it need not know the version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NoReturn

from ..errors import CompressionError, DamageError, FormatError, FtbufError, TruncatedError, UnsupportedError
from ..source import Source
from .compress import MAX_CHUNK, MAX_SECTION, decompressor
from .cursor import Cursor, memory_cursor
from .formattext import FormatExtent, FormatTexts, event_formats, ftrace_formats
from .model import COMPRESSION, METADATA, TRUNCATED, Buffer, Container, Option, Problem, Stream
from .options import (
    MAX_CPUS,
    BufferOption,
    CpuData,
    CpuStat,
    LastBootInfo,
    OptionId,
    SectionRef,
    TextBuffer,
    TscToNsec,
    decode,
    decode_text,
    name_of,
    selected_clock,
)
from .pages import MAX_SUBBUF, page_layout, with_subbuf_size
from .recover import find_cpus
from .streams import ChunkStream, PlainStream

MAGIC = b"\x17\x08\x44tracing"
COMPRESSED = 1  # flag of a section
MAX_SECTIONS = 1 << 16
MAX_OPTIONS = 1 << 18
MAX_CLOCK_TEXT = 4096


class TraceDat(Container):
    """A trace.dat file, or one in memory."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.path = source.path
        self.options: list[Option] = []
        self.problems: list[Problem] = []
        self.buffers: list[Buffer] = []
        self._parts: dict[int, Cursor] = {}  # v6: where each part begins
        self._sections: dict[int, int] = {}  # v7: where each part's section begins
        self._clock_text: bytes | None = None
        self._text_at: tuple[int, bool] | None = None  # (offset, whether it is a v7 section)
        self.compression = "none"
        self.cpu_count = 0  # as the file states it
        self._format_errors: list[DamageError | FormatError] = []
        self._lost: tuple[int, int] | None = None  # version 7: where its chain of options ended early, and the problem
        cursor = self._read_start()
        if self.version < 7:
            self._read_v6(cursor)
        else:
            self._read_v7(cursor)
        self._assign_stats()
        self.buffers.sort(key=lambda buffer: buffer.name != "")

    # -- the common start --------------------------------------------------------------------------------------------

    def _read_start(self) -> Cursor:
        cursor = Cursor(self.source, False)
        if cursor.take(len(MAGIC), "the start of a trace.dat") != MAGIC:
            raise FormatError(f"{self.path}: not a trace.dat")
        version = cursor.string("file version")
        if not re.fullmatch(rb"\d{0,4}", version):
            raise FormatError(f"{self.path}: {version!r} is not a file version")
        self.version = int(version or b"0")  # the oldest files have no version; their layout is that of version 6
        if self.version > 7:
            raise UnsupportedError(f"{self.path}: trace.dat version {self.version} is not known (6 and 7 are)")
        self.kind = f"trace.dat v{self.version}"
        endian = cursor.u8("byte order")
        if endian > 1:
            raise FormatError(f"{self.path}: byte order is {endian}, neither 0 (little) nor 1 (big)")
        self.big_endian = endian == 1
        cursor = Cursor(self.source, self.big_endian, cursor.pos)
        self.long_size = cursor.u8("size of long")
        if self.long_size not in (4, 8):
            raise FormatError(f"{self.path}: size of long is {self.long_size}, neither 4 nor 8")
        self.page_size = cursor.u32("page size")
        return cursor

    def _subbuf_size(self, *sizes: int) -> int:
        """The first of `sizes` that is stated."""
        for size in sizes:
            if size:
                if 16 < size <= MAX_SUBBUF:
                    return size
                raise FormatError(f"{self.path}: a page size of {size} cannot be")
        raise FormatError(f"{self.path}: the page size is not stated")

    def _problem(self, status: str, offset: int, detail: str, n: int = 0, *, cpu: int = -1, buffer: str = "") -> None:
        self.problems.append(Problem(cpu, offset, status, n, buffer, detail))

    # -- options of both versions ------------------------------------------------------------------------------------

    def _add_option(self, option: int, offset: int, payload: bytes) -> Option:
        label = f"{self.path}: option {name_of(option)} at offset {offset}"
        value = None
        try:
            value = decode(option, payload, version=self.version, big_endian=self.big_endian, label=label)
        except FtbufError as error:
            self._problem(METADATA, offset, f"option {name_of(option)}: {error}", len(payload))
        if len(self.options) >= MAX_OPTIONS:
            raise FormatError(f"{self.path}: more than {MAX_OPTIONS} options")
        self.options.append(Option(option, name_of(option), offset, payload, value))
        return self.options[-1]

    def _values(self, option: OptionId) -> list[Option]:
        return [o for o in self.options if o.id == option and o.value is not None]

    def _value(self, option: OptionId, default: object = None) -> object:
        found = self._values(option)
        return found[-1].value if found else default

    def _assign_stats(self) -> None:
        by_name = {buffer.name: buffer for buffer in self.buffers}
        buffer = by_name.get("")
        for option in self._values(OptionId.CPUSTAT):
            stat = option.value
            assert isinstance(stat, CpuStat)
            if stat.buffer is not None:
                buffer = by_name.get(stat.buffer)
            elif stat.cpu is not None and buffer is not None:
                buffer.stats[stat.cpu] = stat.text.encode("utf-8", "surrogateescape")

    # -- version 6 ---------------------------------------------------------------------------------------------------

    def _read_v6(self, cursor: Cursor) -> None:
        def part(number: OptionId) -> Cursor:
            self._parts[number] = cursor.at(cursor.pos)
            return cursor

        self.header_page, self.header_event = _header_info(part(OptionId.HEADER_INFO))
        self._v6_formats = [*ftrace_formats(part(OptionId.FTRACE_EVENTS)), *event_formats(part(OptionId.EVENT_FORMATS))]
        part(OptionId.KALLSYMS).skip(cursor.u32("size of kallsyms"), "kallsyms")
        part(OptionId.PRINTK).skip(cursor.u32("size of printk_formats"), "printk_formats")
        part(OptionId.CMDLINES).skip(cursor.u64("size of saved_cmdlines"), "saved_cmdlines")
        self.cpu_count = cpus = _cpu_count(cursor, cursor.u32("CPU count"))
        tag = _tag(cursor)
        if tag == b"options":
            self._read_v6_options(cursor)
            tag = _tag(cursor)
        if tag == b"latency":
            self._text_at = (cursor.pos, False)
        elif tag == b"flyrecord":
            self._read_v6_buffers(cursor, cpus)
        else:
            raise FormatError(f"{self.path}: {tag!r} at offset {cursor.pos - 10} is no section name (options, latency, "
                              "flyrecord)")

    def _read_v6_options(self, cursor: Cursor) -> None:
        while True:
            offset = cursor.pos
            number = cursor.u16("option")
            if number == OptionId.DONE:
                return
            size = cursor.u32(f"size of option {name_of(number)}")
            self._add_option(number, offset, bytes(cursor.take(size, f"option {name_of(number)}")))

    def _read_v6_buffers(self, cursor: Cursor, cpus: int) -> None:
        layout = page_layout(self.header_page)
        subbuf_size = self._subbuf_size(layout.subbuf_size if layout else 0, self.page_size)
        count = self._value(OptionId.CPUCOUNT, cpus)
        assert isinstance(count, int)
        # CPUCOUNT is about the tables after it; the top buffer's own table still has the header's count
        self._add_v6_buffer("", cursor, (cpus, count), subbuf_size)
        for option in self._values(OptionId.BUFFER):
            value = option.value
            assert isinstance(value, BufferOption)
            try:
                at = self._flyrecord(value)
                self._add_v6_buffer(value.name, at, (count, cpus), subbuf_size)
            except DamageError as error:
                self._problem(error.status, value.offset, f"buffer {value.name}: {error}", buffer=value.name)
            except FormatError as error:
                self._problem(METADATA, value.offset, f"buffer {value.name}: {error}", buffer=value.name)

    def _flyrecord(self, option: BufferOption) -> Cursor:
        """A cursor after the tag at the option's offset, which a converted file may have in the other byte order."""
        swapped = int.from_bytes(option.offset.to_bytes(8, "big"), "little")
        failure: FtbufError | None = None
        for offset in (option.offset, swapped):
            cursor = Cursor(self.source, self.big_endian, offset)
            try:
                tag = _tag(cursor)
                if tag == b"flyrecord":
                    return cursor
                failure = failure or FormatError(f"flyrecord expected at offset {offset}, not {tag!r}")
            except FtbufError as error:
                failure = failure or error
        assert failure is not None
        raise failure

    def _add_v6_buffer(self, name: str, cursor: Cursor, counts: tuple[int, int], subbuf_size: int) -> None:
        table = _v6_table(cursor, counts)
        clock = ""
        if self._value(OptionId.TRACECLOCK) is not None:
            clock = self._v6_clock(cursor, table, name)
        if not clock:
            stored = self._value(OptionId.TRACECLOCK)
            clock = selected_clock(stored) if isinstance(stored, str) else ""
        streams: list[Stream] = [self._plain(data, subbuf_size, name) for data in table]
        self.buffers.append(Buffer(name, clock or "local", self.header_page, subbuf_size, streams))

    def _v6_clock(self, cursor: Cursor, table: list[CpuData], name: str) -> str:
        """The clock text after a CPU table; "" where there is none."""
        limit = min([data.offset for data in table if data.size] + [self.source.size])
        if limit - cursor.pos < 8:
            return ""
        size = cursor.u64("size of the clock text")
        if not 0 < size <= min(MAX_CLOCK_TEXT, limit - cursor.pos):
            return ""
        text = bytes(cursor.take(size, "clock text"))
        if not name:
            self._clock_text = text.rstrip(b"\0")
        return selected_clock(text)

    def _plain(self, data: CpuData, subbuf_size: int, name: str) -> PlainStream:
        layout = page_layout(self.header_page)
        return PlainStream(self.source, data.cpu, data.offset, data.size, subbuf_size, buffer=name,
                           data_offset=layout.data_offset if layout else 16)

    # -- version 7 ---------------------------------------------------------------------------------------------------

    def _read_v7(self, cursor: Cursor) -> None:
        self.compression = decode_text(cursor.string("compression")) or "none"
        self.compression_version = decode_text(cursor.string("compression version"))
        self._read_option_sections(cursor.u64("offset of the options"))
        for option in self.options:
            if option.id >= OptionId.HEADER_INFO and isinstance(option.value, SectionRef):
                self._sections.setdefault(option.id, option.value.offset)
            elif isinstance(option.value, TextBuffer) and self._text_at is None:
                self._text_at = (option.value.offset, True)
        count = self._value(OptionId.CPUCOUNT, 0)
        self.cpu_count = count if isinstance(count, int) and count <= MAX_CPUS else 0
        if OptionId.HEADER_INFO not in self._sections:
            self._nothing_known("the header info")
        self.header_page, self.header_event = _header_info(self._cursor(OptionId.HEADER_INFO))
        for option in self._values(OptionId.BUFFER):
            if isinstance(option.value, BufferOption):
                self._add_v7_buffer(option.value)
        if self._lost is not None:
            self._recover_buffer(*self._lost)

    def _recover_buffer(self, offset: int, problem: int) -> None:
        """Find the pages of the buffer at `offset`, the table of which is missing."""
        layout = page_layout(self.header_page)
        if layout is None:
            return
        groups: list[tuple[str, dict[int, str]]] = [("", {})]  # the statistics, in the order of the buffers
        for stat in (option.value for option in self._values(OptionId.CPUSTAT)):
            if stat.buffer is not None:
                groups.append((stat.buffer, {}))
            elif stat.cpu is not None:
                groups[-1][1][stat.cpu] = stat.text
        known = {buffer.name for buffer in self.buffers}
        name, stats = next((group for group in groups if group[0] not in known), ("?", {}))
        align = self.page_size or layout.subbuf_size
        flags, cpus = find_cpus(self.source, offset, layout, self.big_endian, align, stats)
        if not cpus or (flags & COMPRESSED and self.compression == "none"):
            return
        clock = selected_clock(self.tracing_file("trace_clock") or b"")
        self._add_v7_buffer(BufferOption(offset, name, clock, layout.subbuf_size, tuple(cpus)))
        lost = self.problems[problem]
        detail = f"{lost.detail}; the pages before it were found without their table: CPU numbers are a guess"
        self.problems[problem] = replace(lost, detail=detail, buffer=name, bytes=0)

    def _nothing_known(self, what: str) -> NoReturn:
        for problem in self.problems:
            if problem.status == TRUNCATED:
                raise TruncatedError(f"{self.path}: {what} cannot be found: {problem.detail}", status=TRUNCATED,
                                     offset=problem.offset)
        raise FormatError(f"{self.path}: {what} cannot be found" + "".join(f": {p.detail}" for p in self.problems[:1]))

    def _read_option_sections(self, offset: int) -> None:
        """Follow the chain; where it breaks, keep what was read."""
        seen: set[int] = set()
        end = 0  # of the last section that was read: what follows it is unreachable without the next one
        while offset:
            if offset in seen or len(seen) >= MAX_SECTIONS:
                self._problem(METADATA, offset, "the chain of options sections is a loop")
                return
            seen.add(offset)
            try:
                section = self._section(OptionId.DONE, offset)
                next_offset = self._read_options(section, offset)
                end, offset = offset + 16 + section.pos, next_offset
            except DamageError as error:
                self._problem(error.status, offset, str(error), max(0, self.source.size - end) if end else 0)
                self._lost = (end, len(self.problems) - 1) if end else None
                return
            except FormatError as error:
                self._problem(METADATA, offset, str(error))
                return

    def _read_options(self, cursor: Cursor, section: int) -> int:
        """Read one options section; the offset of the next one (0: none)."""
        while cursor.left:
            at = cursor.pos
            number = cursor.u16("option")
            size = cursor.u32(f"size of option {name_of(number)}")
            payload = bytes(cursor.take(size, f"option {name_of(number)}"))
            if number == OptionId.DONE:
                done = memory_cursor(payload, self.big_endian, f"{self.path}: option DONE")
                return done.u64("next options") if size else 0
            self._add_option(number, section + 16 + at, payload)
        return 0

    def _section(self, number: int, offset: int) -> Cursor:
        """A cursor over the (decompressed) body of the section at `offset`."""
        what = "options" if number == OptionId.DONE else name_of(number)
        head = Cursor(self.source, self.big_endian, offset)
        if offset >= self.source.size:
            raise TruncatedError(f"{self.path}: the {what} section at offset {offset} is missing (the input has "
                                 f"{self.source.size} bytes)", status=TRUNCATED, offset=offset)
        found, flags = head.u16(f"{what} section"), head.u16(f"{what} section")
        head.skip(4, f"{what} section")
        size = head.u64(f"size of the {what} section")
        if found != number:
            raise FormatError(f"{self.path}: section {what} expected at offset {offset}, but its id is {found}")
        label = f"{self.path}: {what} section"
        body = self.source.borrow(head.pos, size, f"{what} section")
        if not flags & COMPRESSED:
            return memory_cursor(body, self.big_endian, label)
        cursor = memory_cursor(body, self.big_endian, label)
        if number == OptionId.BUFFER_TEXT:
            return memory_cursor(self._chunks(cursor), self.big_endian, label)
        csize, usize = cursor.u32("compressed size"), cursor.u32("size")
        data = cursor.take(csize, "compressed data")
        return memory_cursor(self._decompress(data, usize, MAX_SECTION, offset, f"the {what} section "), self.big_endian, label)

    def _decompress(self, data: memoryview, size: int, limit: int, offset: int, what: str = "") -> bytes:
        if size > limit:
            raise CompressionError(f"{self.path}: {what or 'what is compressed '}at offset {offset} claims to have {size} bytes",
                                   status=COMPRESSION, offset=offset)
        try:
            return decompressor(self.compression)(data, size)
        except CompressionError as error:
            raise CompressionError(f"{self.path}: {what}at offset {offset}: {error}", status=COMPRESSION,
                                   offset=offset) from None

    def _chunks(self, cursor: Cursor) -> bytes:
        pieces: list[bytes] = []
        total = 0
        for _ in range(cursor.u32("chunk count")):
            csize, usize = cursor.u32("compressed size"), cursor.u32("size")
            total += usize
            if total > MAX_SECTION:
                raise CompressionError(f"{cursor.source.path}: claims more than {MAX_SECTION} bytes",
                                       status=COMPRESSION, offset=cursor.pos)
            pieces.append(self._decompress(cursor.take(csize, "chunk"), usize, MAX_CHUNK, cursor.pos))
        return b"".join(pieces)

    def _add_v7_buffer(self, option: BufferOption) -> None:
        layout = page_layout(self.header_page)
        subbuf_size = self._subbuf_size(option.page_size, layout.subbuf_size if layout else 0, self.page_size)
        chunked = self._is_chunked(option) if option.cpus else False
        streams: list[Stream] = []
        for data in option.cpus:
            if data.cpu >= MAX_CPUS:
                self._problem(METADATA, data.offset, f"a CPU number of {data.cpu} cannot be", data.size,
                              buffer=option.name)
            elif chunked:
                streams.append(ChunkStream(self.source, data.cpu, data.offset, data.size, subbuf_size,
                                           decompressor(self.compression), big_endian=self.big_endian,
                                           buffer=option.name))
            else:
                streams.append(self._plain(data, subbuf_size, option.name))
        header_page = with_subbuf_size(self.header_page, subbuf_size)
        self.buffers.append(Buffer(option.name, option.clock or "local", header_page, subbuf_size, streams))

    def _is_chunked(self, option: BufferOption) -> bool:
        """Whether the CPUs' data are compressed: the flag of the buffer's section says so."""
        head = Cursor(self.source, self.big_endian, option.offset)
        try:
            found, flags = head.u16("buffer section"), head.u16("buffer section")
            if found == OptionId.BUFFER:
                return bool(flags & COMPRESSED)
        except TruncatedError:
            pass
        self._problem(METADATA, option.offset, f"buffer {option.name!r} has no section at offset {option.offset}",
                      buffer=option.name)
        return self.compression != "none"

    # -- parts -------------------------------------------------------------------------------------------------------

    def _cursor(self, number: OptionId) -> Cursor:
        if number in self._parts:
            return self._parts[number].at(self._parts[number].pos)
        offset = self._sections.get(number)
        return memory_cursor(b"", self.big_endian, name_of(number)) if offset is None else self._section(number, offset)

    def _sized_text(self, number: OptionId, wide: bool = False) -> bytes:
        cursor = self._cursor(number)
        if not cursor.left:
            return b""
        name = name_of(number)
        return bytes(cursor.take(cursor.u64(name) if wide else cursor.u32(name), name))

    @cached_property
    def _formats(self) -> FormatTexts:
        if self.version < 7:
            return FormatTexts(self._v6_formats)
        extents: list[FormatExtent] = []
        for number, read in ((OptionId.FTRACE_EVENTS, ftrace_formats), (OptionId.EVENT_FORMATS, event_formats)):
            try:
                cursor = self._cursor(number)
                if cursor.left:
                    extents.extend(read(cursor))  # those before the damage stay
            except (DamageError, FormatError) as error:
                self._format_errors.append(error)
        return FormatTexts(extents)

    @property
    def format_errors(self) -> Sequence[DamageError | FormatError]:
        return self._format_errors

    def format_index(self) -> Mapping[tuple[str, str], int]:
        return self._formats.by_name

    def format_text(self, key: int) -> bytes:
        return self._formats.text(key)

    def id_index(self) -> Mapping[int, tuple[str, str]]:
        return self._formats.by_id

    def kallsyms(self) -> bytes:
        return self._sized_text(OptionId.KALLSYMS)

    def printk_formats(self) -> bytes:
        return self._sized_text(OptionId.PRINTK)

    def saved_cmdlines(self) -> bytes:
        return self._sized_text(OptionId.CMDLINES, wide=True)

    def saved_tgids(self) -> bytes:
        return b""  # a trace.dat does not store them

    def modules(self) -> bytes:
        """/proc/modules of the traced kernel (trace-cmd 3.4 and later)."""
        return self._whole(OptionId.MODULES_FILE)

    def btf(self) -> bytes:
        """/sys/kernel/btf/vmlinux of the traced kernel (trace-cmd 3.4 and later)."""
        return self._whole(OptionId.BTF_FILE)

    def _whole(self, number: OptionId) -> bytes:
        cursor = self._cursor(number)
        return bytes(cursor.take(cursor.left, name_of(number)))

    def tracing_file(self, name: str) -> bytes | None:
        if name == "trace_clock":
            text = self._value(OptionId.TRACECLOCK)
            if isinstance(text, str) and text:
                return text.encode("utf-8", "surrogateescape")
            return self._clock_text
        if name == "last_boot_info":
            value = self._value(OptionId.LAST_BOOT_INFO)
            return value.text.encode("utf-8", "surrogateescape") if isinstance(value, LastBootInfo) else None
        texts = {"saved_cmdlines": self.saved_cmdlines, "printk_formats": self.printk_formats,
                 "kallsyms": self.kallsyms, "modules": self.modules}
        return (texts[name]() or None) if name in texts else None

    @cached_property
    def text(self) -> bytes | None:
        if self._text_at is None:
            return None
        offset, section = self._text_at
        if not section:
            return bytes(self.source.borrow(offset, self.source.size - offset))
        cursor = self._section(OptionId.BUFFER_TEXT, offset)
        return bytes(cursor.take(cursor.left, "text"))

    @property
    def uname(self) -> str:
        return str(self._value(OptionId.UNAME, ""))

    @property
    def ts_offset(self) -> int:
        date = sum(int(o.value) for o in self._values(OptionId.DATE))
        return date * 1000 + sum(int(o.value) for o in self._values(OptionId.OFFSET))

    @property
    def tsc2nsec(self) -> TscToNsec | None:
        value = self._value(OptionId.TSC2NSEC)
        return value if isinstance(value, TscToNsec) else None

    @property
    def trace_id(self) -> int | None:
        value = self._value(OptionId.TRACEID)
        return value if isinstance(value, int) else None

    def close(self) -> None:
        self.source.close()
        self.__dict__.pop("_formats", None)  # its sources look into the same memory


def _header_info(cursor: Cursor) -> tuple[bytes, bytes]:
    texts = []
    for tag in (b"header_page\0", b"header_event\0"):
        name = tag[:-1].decode()
        at = cursor.pos
        found = bytes(cursor.take(len(tag), name))
        if found != tag:
            raise FormatError(f"{cursor.source.path}: {name} expected at offset {at}, not {found!r}")
        texts.append(bytes(cursor.take(cursor.u64(f"size of {name}"), name)))
    return texts[0], texts[1]


def _tag(cursor: Cursor) -> bytes:
    """A section name of version 6: ten bytes, filled up with blanks and a NUL."""
    return bytes(cursor.take(10, "section name")).rstrip(b"\0").rstrip(b" ")


def _cpu_count(cursor: Cursor, count: int) -> int:
    if count > MAX_CPUS:
        raise FormatError(f"{cursor.source.path}: {count} CPUs are claimed at offset {cursor.pos - 4}")
    return count


def _v6_table(cursor: Cursor, counts: tuple[int, int]) -> list[CpuData]:
    """The {offset, size} of each CPU. The first count for which no CPU's data overlap the table is taken."""
    failure: FtbufError | None = None
    start = cursor.pos
    for count in dict.fromkeys(counts):
        cursor.pos = start
        try:
            numbers = cursor.numbers("Q", 2 * _cpu_count(cursor, count), "the table of CPU data")
        except FtbufError as error:
            failure = failure or error
            continue
        table = [CpuData(cpu, *numbers[2 * cpu:2 * cpu + 2]) for cpu in range(count)]
        if all(data.offset >= cursor.pos for data in table if data.size):
            return table
        failure = failure or FormatError(f"{cursor.source.path}: the table of CPU data at offset {start} makes no "
                                         "sense")
    assert failure is not None
    raise failure
