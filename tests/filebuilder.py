"""Writes trace.dat files (``TraceDat``, versions 6 and 7) and tracefs-shaped directories (``write_tracefs``).

    built = TraceDat(abi, formats={"sched": [text]}, buffers=[BufferSpec(pages={0: pages})], compression="zstd").build()
    built.data                              the file
    built.patched("page_size", 0)           the same with one number replaced: ``built.marks`` names the places
    built.cut("inst.cpu1", 100)             the same, cut 100 bytes into the pages of CPU 1 of instance "inst"

trace-cmd reads what this writes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pagebuilder import U64, Abi, EventFormat, format_text, header_event_text, header_page_text, make_abi, pack

# ----------------------------------------------------------------------------------------------------- trace.dat

MAGIC = b"\x17\x08\x44tracing"
PAGES_IN_CHUNK = 10  # TC:lib/trace-cmd/trace-compress.c

DONE, DATE, CPUSTAT, BUFFER, TRACECLOCK, UNAME, OFFSET, CPUCOUNT, VERSION = 0, 1, 2, 3, 4, 5, 7, 8, 9
TRACEID, TIME_SHIFT, GUEST, TSC2NSEC, STRINGS = 11, 12, 13, 14, 15
HEADER_INFO, FTRACE_EVENTS, EVENT_FORMATS, KALLSYMS, PRINTK, CMDLINES, BUFFER_TEXT = 16, 17, 18, 19, 20, 21, 22
BTF = 23


def compress(data: bytes, algorithm: str) -> bytes:
    if algorithm == "zlib":
        return zlib.compress(data, 9)
    if algorithm == "zstd":
        from backports import zstd

        options = {zstd.CompressionParameter.content_size_flag: 0}  # trace-cmd's frames do not say how long they are
        return zstd.compress(data, options=options)
    return data


@dataclass
class BufferSpec:
    """A buffer of a trace.dat: the top one ("") or an instance."""

    name: str = ""
    pages: Mapping[int, bytes] = field(default_factory=dict)  # cpu -> its sub-buffers
    clock: str = "local"
    subbuf_size: int = 4096


@dataclass
class Built:
    """A file, and where its parts are: ``marks`` name the places that a test may want to damage."""

    data: bytes
    marks: dict[str, tuple[int, int]]  # name -> (offset, size)

    def patched(self, mark: str, value: int | bytes, *, big: bool = False) -> bytes:
        offset, size = self.marks[mark]
        new = (
            value
            if isinstance(value, bytes)
            else (value & ((1 << 8 * size) - 1)).to_bytes(size, "big" if big else "little")
        )
        return self.data[:offset] + new + self.data[offset + len(new) :]

    def cut(self, mark: str, extra: int = 0) -> bytes:
        return self.data[: self.marks[mark][0] + extra]


@dataclass
class TraceDat:
    """Parts of a trace.dat; ``build`` writes them as version 6 or 7."""

    abi: Abi = field(default_factory=make_abi)
    version: int = 7
    compression: str = "none"  # "none", "zlib", "zstd": version 7 only
    chunk_pages: int = PAGES_IN_CHUNK
    long_size: int | None = None  # of the recording user space: the kernel's unless given
    header_page: bytes | None = None
    header_event: bytes | None = None
    ftrace_formats: Sequence[bytes] = ()
    formats: Mapping[str, Sequence[bytes]] = field(default_factory=dict)  # system -> texts
    kallsyms: bytes = b""
    printk: bytes = b""
    cmdlines: bytes = b""
    options: Sequence[tuple[int, bytes]] = ()  # more than build adds: BUFFER, TRACECLOCK, section pointers
    buffers: Sequence[BufferSpec] = ()
    latency_text: bytes | None = None  # version 6: the file is a text

    def build(self) -> Built:
        writer = _Writer(self)
        (writer.v6 if self.version < 7 else writer.v7)()
        return Built(bytes(writer.out), writer.marks)


class _Writer:
    def __init__(self, spec: TraceDat) -> None:
        self.spec, self.abi = spec, spec.abi
        self.out = bytearray()
        self.marks: dict[str, tuple[int, int]] = {}

    # -- small pieces

    def n(self, value: int, size: int) -> bytes:
        return pack(self.abi, value, size)

    def put(self, value: int, size: int, mark: str = "") -> None:
        if mark:
            self.marks[mark] = len(self.out), size
        self.out += self.n(value, size)

    def put_bytes(self, data: bytes, mark: str = "") -> None:
        if mark:
            self.marks[mark] = len(self.out), len(data)
        self.out += data

    def set(self, mark: str, value: int) -> None:
        offset, size = self.marks[mark]
        self.out[offset : offset + size] = self.n(value, size)

    def align(self, unit: int) -> None:
        self.out += bytes(-len(self.out) % unit)

    def start(self) -> None:
        spec = self.spec
        self.put_bytes(MAGIC, "magic")
        self.put_bytes(b"%d\0" % spec.version, "version")
        self.put(self.abi.big_endian, 1, "endian")
        self.put(spec.long_size or self.abi.long_size, 1, "long_size")
        self.put(spec.buffers[0].subbuf_size if spec.buffers else self.abi.subbuf_size, 4, "page_size")

    # -- the metadata, the same bytes in both versions

    def header_info(self) -> bytes:
        spec = self.spec
        page = header_page_text(self.abi) if spec.header_page is None else spec.header_page
        head = header_event_text(self.abi) if spec.header_event is None else spec.header_event
        return b"header_page\0" + self.n(len(page), 8) + page + b"header_event\0" + self.n(len(head), 8) + head

    def ftrace_part(self) -> bytes:
        texts = self.spec.ftrace_formats
        return self.n(len(texts), 4) + b"".join(self.n(len(t), 8) + t for t in texts)

    def formats_part(self) -> bytes:
        out = self.n(len(self.spec.formats), 4)
        for system, texts in self.spec.formats.items():
            out += system.encode() + b"\0" + self.n(len(texts), 4)
            out += b"".join(self.n(len(t), 8) + t for t in texts)
        return out

    def parts(self) -> list[tuple[int, str, bytes]]:
        spec = self.spec
        return [
            (HEADER_INFO, "header_info", self.header_info()),
            (FTRACE_EVENTS, "ftrace", self.ftrace_part()),
            (EVENT_FORMATS, "formats", self.formats_part()),
            (KALLSYMS, "kallsyms", self.n(len(spec.kallsyms), 4) + spec.kallsyms),
            (PRINTK, "printk", self.n(len(spec.printk), 4) + spec.printk),
            (CMDLINES, "cmdlines", self.n(len(spec.cmdlines), 8) + spec.cmdlines),
        ]

    # -- version 6

    def v6(self) -> None:
        spec = self.spec
        self.start()
        for _, mark, data in self.parts():
            self.put_bytes(data, mark)
        top = next((b for b in spec.buffers if not b.name), BufferSpec())
        instances = [b for b in spec.buffers if b.name]
        self.cpus = range(max((cpu for b in spec.buffers for cpu in b.pages), default=-1) + 1)  # the same in all tables
        self.put(len(self.cpus), 4, "cpus")
        if spec.latency_text is not None:
            self.put_bytes(b"latency  \0", "tag")
            self.put_bytes(spec.latency_text, "latency_text")
            return
        self.put_bytes(b"options  \0", "options")
        for option, payload in (*spec.options, (TRACECLOCK, b"")):
            self.option(option, payload)
        for b in instances:
            self.option(BUFFER, self.n(0, 8) + b.name.encode() + b"\0", f"{b.name}.option")
            self.marks[f"{b.name}.offset"] = self.marks[f"{b.name}.option"][0], 8
        self.put(DONE, 2, "options.done")
        self.v6_buffer(top)
        for b in instances:
            self.set(f"{b.name}.offset", len(self.out))
            self.v6_buffer(b)

    def option(self, option: int, payload: bytes, mark: str = "") -> None:
        self.put(option, 2)
        self.put(len(payload), 4, f"{mark}.size" if mark else f"option{option}.size")
        self.put_bytes(payload, mark or f"option{option}")

    def v6_buffer(self, b: BufferSpec) -> None:
        self.put_bytes(b"flyrecord\0", f"{b.name}.flyrecord")
        for cpu in self.cpus:
            self.put(0, 8, f"{b.name}.cpu{cpu}.offset")
            self.put(len(b.pages.get(cpu, b"")), 8, f"{b.name}.cpu{cpu}.size")
        clock = f"[{b.clock}]\n".encode()
        self.put(len(clock), 8, f"{b.name}.clock.size")
        self.put_bytes(clock, f"{b.name}.clock")
        for cpu in self.cpus:
            self.align(b.subbuf_size)
            self.set(f"{b.name}.cpu{cpu}.offset", len(self.out))
            self.put_bytes(b.pages.get(cpu, b""), f"{b.name}.cpu{cpu}")

    # -- version 7

    def v7(self) -> None:
        spec = self.spec
        self.start()
        name = spec.compression
        self.put_bytes(name.encode() + b"\0", "compression")
        self.put_bytes(
            {"none": b"\0", "zlib": b"1.2.13\0", "zstd": b"1.5.4\0"}.get(name, b"1\0"), "compression_version"
        )
        self.put(0, 8, "first_options")
        options: list[tuple[int, bytes]] = []
        for section, mark, data in self.parts():
            options.append((section, self.n(len(self.out), 8)))
            self.section(section, data, mark, packed=name != "none")
        self.options_section([*options, *spec.options], "options0", "first_options")
        buffers = [(BUFFER, self.v7_buffer(b)) for b in spec.buffers]
        self.options_section([(TRACECLOCK, self.clock_text()), *buffers], "options1", "options0.next")

    def clock_text(self) -> bytes:
        clock = self.spec.buffers[0].clock if self.spec.buffers else "local"
        return f"[{clock}]\n\0".encode()

    def section_header(self, section: int, mark: str, *, packed: bool = False) -> None:
        self.put(section, 2, f"{mark}.id")
        self.put(int(packed), 2, f"{mark}.flags")
        self.put(-1, 4, f"{mark}.string")
        self.put(0, 8, f"{mark}.section_size")

    def close_section(self, mark: str) -> None:
        offset, size = self.marks[f"{mark}.section_size"]
        self.set(f"{mark}.section_size", len(self.out) - offset - size)

    def section(self, section: int, data: bytes, mark: str, *, packed: bool = False) -> None:
        self.section_header(section, mark, packed=packed)
        if packed:
            body = compress(data, self.spec.compression)
            self.put(len(body), 4, f"{mark}.csize")
            self.put(len(data), 4, f"{mark}.usize")
            data = body
        self.put_bytes(data, mark)
        self.close_section(mark)

    def options_section(self, options: Sequence[tuple[int, bytes]], mark: str, pointer: str) -> None:
        self.set(pointer, len(self.out))
        self.section_header(0, mark)
        for option, payload in options:
            self.option(option, payload)
        self.put(DONE, 2)
        self.put(8, 4, f"{mark}.done.size")
        self.put(0, 8, f"{mark}.next")
        self.close_section(mark)

    def v7_buffer(self, b: BufferSpec) -> bytes:
        """Write a buffer's section; the payload of its BUFFER option."""
        offset, table, mark = len(self.out), b"", f"{b.name}.flyrecord"
        self.section_header(BUFFER, mark, packed=self.spec.compression != "none")
        for cpu, pages in sorted(b.pages.items()):
            self.align(b.subbuf_size)
            start = len(self.out)
            self.cpu_data(b, cpu, pages)
            table += self.n(cpu, 4) + self.n(start, 8) + self.n(len(self.out) - start, 8)
        self.close_section(mark)
        names = b.name.encode() + b"\0" + b.clock.encode() + b"\0"
        return self.n(offset, 8) + names + self.n(b.subbuf_size, 4) + self.n(len(b.pages), 4) + table

    def cpu_data(self, b: BufferSpec, cpu: int, pages: bytes) -> None:
        mark = f"{b.name}.cpu{cpu}"
        if self.spec.compression == "none":
            self.put_bytes(pages, mark)
            return
        size = self.spec.chunk_pages * b.subbuf_size
        chunks = [pages[i : i + size] for i in range(0, len(pages), size)]
        self.put(len(chunks), 4, f"{mark}.chunks")
        for i, chunk in enumerate(chunks):
            body = compress(chunk, self.spec.compression)
            self.put(len(body), 4, f"{mark}.chunk{i}.csize")
            self.put(len(chunk), 4, f"{mark}.chunk{i}.usize")
            self.put_bytes(body, f"{mark}.chunk{i}")


# --------------------------------------------------------------------------------------------------- directories


def write_tracefs(
    dest: Path,
    abi: Abi,
    formats: Sequence[EventFormat] = (),
    pages: Mapping[int, bytes] | None = None,
    *,
    snapshot: Mapping[int, bytes] | None = None,
    files: Mapping[str, bytes] | None = None,
) -> Path:
    """A tracefs-shaped directory; ``files`` are more files by their path in it (``None`` values leave a file out)."""
    wanted: dict[str, bytes | None] = {
        "events/header_page": header_page_text(abi),
        "events/header_event": header_event_text(abi),
    }
    for fmt in formats:
        wanted[f"events/{fmt.system}/{fmt.name}/format"] = format_text(fmt)
    for cpu, data in (pages or {}).items():
        wanted[f"per_cpu/cpu{cpu}/trace_pipe_raw"] = data
    for cpu, data in (snapshot or {}).items():
        wanted[f"per_cpu/cpu{cpu}/snapshot_raw"] = data
    wanted |= files or {}
    for name, data in wanted.items():
        if data is not None:
            path = dest / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return dest


def u64s(abi: Abi, *values: int) -> bytes:
    """Numbers of 8 bytes, for option payloads."""
    return struct.pack(f"{'>' if abi.big_endian else '<'}{len(values)}Q", *(v & U64 for v in values))


Sample = tuple[int, int, int, int]  # time, offset, scaling, fraction bits


def time_shift(abi: Abi, peer: int, cpus: Sequence[Sequence[Sample]], *, interpolate: bool = False,
               fractions: bool = True) -> tuple[int, bytes]:
    """The option TIME_SHIFT (TC:tracecmd_write_guest_time_shift); the oldest files have no fractions."""
    out = pack(abi, peer, 8) + pack(abi, int(interpolate), 4) + pack(abi, len(cpus), 4)
    for samples in cpus:
        out += pack(abi, len(samples), 4)
        for row in range(3):
            out += b"".join(pack(abi, s[row], 8) for s in samples)
    if fractions:
        out += b"".join(pack(abi, s[3], 8) for samples in cpus for s in samples)
    return TIME_SHIFT, out


def trace_id(abi: Abi, number: int) -> tuple[int, bytes]:
    return TRACEID, pack(abi, number, 8)


def guest(abi: Abi, name: str, number: int, pids: Mapping[int, int]) -> tuple[int, bytes]:
    """The option GUEST of a host's file."""
    out = name.encode() + b"\0" + pack(abi, number, 8) + pack(abi, len(pids), 4)
    return GUEST, out + b"".join(pack(abi, cpu, 4) + pack(abi, pid, 4) for cpu, pid in pids.items())


def text_option(number: int, text: str) -> tuple[int, bytes]:
    return number, text.encode() + b"\0"
