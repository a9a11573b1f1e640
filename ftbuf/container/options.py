"""The options of a trace.dat: numbered payloads -> typed values.

Ids and layouts: TC:include/private/trace-cmd-private.h, TC:trace-input.c handle_options. Texts are decoded with
surrogateescape.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..errors import FormatError
from .cursor import Cursor, memory_cursor

MAX_CPUS = 1 << 16  # eight times the largest CONFIG_NR_CPUS


class OptionId(enum.IntEnum):
    DONE = 0
    DATE = 1
    CPUSTAT = 2
    BUFFER = 3
    TRACECLOCK = 4
    UNAME = 5
    HOOK = 6
    OFFSET = 7
    CPUCOUNT = 8
    VERSION = 9
    PROCMAPS = 10
    TRACEID = 11
    TIME_SHIFT = 12
    GUEST = 13
    TSC2NSEC = 14
    STRINGS = 15
    HEADER_INFO = 16
    FTRACE_EVENTS = 17
    EVENT_FORMATS = 18
    KALLSYMS = 19
    PRINTK = 20
    CMDLINES = 21
    BUFFER_TEXT = 22
    BTF_FILE = 23
    LAST_BOOT_INFO = 24
    MODULES_FILE = 25


@dataclass(frozen=True, slots=True)
class CpuData:
    """Where the sub-buffers of one CPU are."""

    cpu: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class BufferOption:
    """BUFFER: a buffer and, in v7, where the data of each of its CPUs are (v6 has that table at ``offset``)."""

    offset: int
    name: str
    clock: str = ""
    page_size: int = 0
    cpus: tuple[CpuData, ...] = ()


@dataclass(frozen=True, slots=True)
class CpuStat:
    """CPUSTAT: one CPU's ``stats``; or, where ``buffer`` is not None, the buffer that the next ones are of."""

    cpu: int | None
    text: str
    buffer: str | None = None


@dataclass(frozen=True, slots=True)
class Hook:
    """HOOK: which event begins and which ends an interval (``trace-cmd record -H``)."""

    start_system: str
    start_event: str
    start_match: str
    start_pid: str
    end_system: str
    end_event: str
    end_match: str
    pinned: bool  # the end may be seen on another CPU only where this is false
    global_: bool
    stack: bool


@dataclass(frozen=True, slots=True)
class Mapping:
    start: int
    end: int
    path: str


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    path: str
    mappings: tuple[Mapping, ...]


@dataclass(frozen=True)
class ProcMaps:
    """PROCMAPS: where the files of traced processes were mapped; parsed when ``processes`` is first asked for."""

    text: str

    @cached_property
    def processes(self) -> tuple[Process, ...]:
        return tuple(_processes(self.text))


@dataclass(frozen=True, slots=True)
class CpuShift:
    """Samples of the time difference between a guest's CPU and its host."""

    times: tuple[int, ...]
    offsets: tuple[int, ...]
    scalings: tuple[int, ...]
    fractions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TimeShift:
    """TIME_SHIFT: from the clock of this recording to that of the one whose TRACEID is ``peer``."""

    peer: int
    interpolate: bool
    cpus: tuple[CpuShift, ...]


@dataclass(frozen=True, slots=True)
class Guest:
    """GUEST: a virtual machine that was traced together with this host."""

    name: str
    trace_id: int
    host_pids: dict[int, int]  # vcpu -> pid of its thread on the host


@dataclass(frozen=True, slots=True)
class TscToNsec:
    """TSC2NSEC: ns = (ts * mult) >> shift. ``offset`` is recorded, and not applied."""

    mult: int
    shift: int
    offset: int


@dataclass(frozen=True, slots=True)
class SectionRef:
    """A part of the file that is a section of its own."""

    offset: int


@dataclass(frozen=True, slots=True)
class TextBuffer:
    """BUFFER_TEXT: a buffer that was recorded as a text."""

    offset: int
    name: str
    clock: str


@dataclass(frozen=True, slots=True)
class LastBootInfo:
    """LAST_BOOT_INFO: addresses of the boot that a persistent buffer is from."""

    instance: str
    text: str


def name_of(option: int) -> str:
    try:
        return OptionId(option).name
    except ValueError:
        return "UNKNOWN"


def decode(option: int, payload: bytes, *, version: int, big_endian: bool, label: str) -> Any:
    """The typed value of an option; None for unknown ids. FtbufError when the payload cannot be understood."""
    function = _DECODERS.get(option)
    if function is None:
        return None
    return function(memory_cursor(payload, big_endian, label), version)


def decode_text(data: bytes | memoryview) -> str:
    return bytes(data).decode("utf-8", "surrogateescape")


def selected_clock(text: bytes | str) -> str:
    """The clock in brackets of a ``trace_clock`` text; the whole text where nothing is in brackets."""
    string = (decode_text(text) if isinstance(text, bytes) else text)[:4096]
    match = re.search(r"\[([^\]\n]*)\]", string)
    return match[1] if match else string.strip("\0 \t\n")


def c_integer(text: str) -> int:
    """What strtoll with base 0 makes of a text."""
    match = re.match(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", text)
    if match is None:
        raise FormatError(f"{text[:40]!r} is not a number")
    digits = match[2]
    base = 16 if digits[:2] in ("0x", "0X") else 8 if digits.startswith("0") else 10
    value = int(digits[2:] if base == 16 else digits, base) if len(digits) < 32 else (1 << 63) - 1
    return max(-(1 << 63), min((1 << 63) - 1, -value if match[1] == "-" else value))


def _rest(cursor: Cursor) -> str:
    return decode_text(cursor.take(cursor.left, "option")).rstrip("\0")


def _text(cursor: Cursor, version: int) -> str:
    return _rest(cursor)


def _number(cursor: Cursor, version: int) -> int:
    return c_integer(_rest(cursor))


def _u32(cursor: Cursor, version: int) -> int:
    return cursor.u32("option")


def _u64(cursor: Cursor, version: int) -> int:
    return cursor.u64("option")


def _section(cursor: Cursor, version: int) -> SectionRef:
    return SectionRef(cursor.u64("section offset"))


def _string(cursor: Cursor, what: str) -> str:
    return decode_text(cursor.string(what))


def _buffer(cursor: Cursor, version: int) -> BufferOption:
    offset, name = cursor.u64("buffer offset"), _string(cursor, "buffer name")
    if version < 7:
        return BufferOption(offset, name)
    clock, page_size, count = _string(cursor, "clock"), cursor.u32("page size"), cursor.u32("CPU count")
    if count > min(cursor.left // 20, MAX_CPUS):
        raise FormatError(f"{cursor.source.path}: claims {count} CPUs and has {cursor.left} bytes for them")
    cpus = tuple(CpuData(cursor.u32("CPU"), cursor.u64("CPU offset"), cursor.u64("CPU size")) for _ in range(count))
    return BufferOption(offset, name, clock, page_size, cpus)


def _text_buffer(cursor: Cursor, version: int) -> TextBuffer:
    return TextBuffer(cursor.u64("section offset"), _string(cursor, "buffer name"),
                      _string(cursor, "clock") if cursor.left else "")


def _cpustat(cursor: Cursor, version: int) -> CpuStat:
    text = _rest(cursor)
    if match := re.match(r"\s*Buffer: ([^\n]*)", text):
        return CpuStat(None, "", match[1])
    match = re.match(r"\s*CPU:\s*(\d{1,9})[^\n]*\n?", text)
    return CpuStat(int(match[1]), text[match.end():]) if match else CpuStat(None, text)


def _hook(cursor: Cursor, version: int) -> Hook:
    text = _rest(cursor).strip()
    start, _, end = text.partition("/")
    if not end:
        raise FormatError(f"{cursor.source.path}: {text[:60]!r} is not a hook")
    first, last = start.split(","), end.split(",")
    start_system, _, start_event = first[0].rpartition(":")
    end_system, _, end_event = last[0].rpartition(":")
    flags = last[2] if len(last) > 2 else ""
    return Hook(start_system, start_event, first[1] if len(first) > 1 else "", first[2] if len(first) > 2 else "",
                end_system, end_event, last[1] if len(last) > 1 else "", "p" in flags, "g" in flags, "s" in flags)


def _procmaps(cursor: Cursor, version: int) -> ProcMaps:
    return ProcMaps(_rest(cursor))


def _processes(text: str) -> list[Process]:
    processes: list[Process] = []
    lines = iter(text.split("\n"))
    for line in lines:
        head = re.fullmatch(r"\s*([0-9a-fA-F]{1,16}) ([0-9a-fA-F]{1,8}) (.*)", line)
        if head is None:
            continue
        mappings = []
        for _ in range(int(head[2], 16)):
            match = re.fullmatch(r"\s*([0-9a-fA-F]{1,16}) ([0-9a-fA-F]{1,16}) (.*)", next(lines, ""))
            if match is None:
                break
            mappings.append(Mapping(int(match[1], 16), int(match[2], 16), match[3]))
        processes.append(Process(int(head[1], 16), head[3], tuple(mappings)))
    return processes


def _time_shift(cursor: Cursor, version: int) -> TimeShift:
    peer, flags, ncpu = cursor.u64("peer"), cursor.u32("flags"), cursor.u32("CPU count")
    if ncpu > cursor.left // 4:
        raise FormatError(f"{cursor.source.path}: claims {ncpu} CPUs")
    samples = []
    for _ in range(ncpu):
        n = cursor.u32("sample count")
        samples.append([cursor.numbers("q", n, "samples") for _ in range(3)])
    cpus = [CpuShift(times, offsets, scalings, fractions)
            for (times, offsets, scalings), fractions in zip(samples, _fractions(cursor, samples), strict=True)]
    return TimeShift(peer, bool(flags & 1), tuple(cpus))


def _fractions(cursor: Cursor, samples: list[list[tuple[int, ...]]]) -> list[tuple[int, ...]]:
    """Fraction bits: absent in old files, and in some others as many per CPU as the *last* CPU has samples."""
    counts = [len(times) for times, _, _ in samples]
    stored = counts
    if counts and cursor.left != 8 * sum(counts) and cursor.left == 8 * len(counts) * counts[-1]:
        stored = [counts[-1]] * len(counts)
    result = []
    for count, there in zip(counts, stored, strict=True):
        values = cursor.numbers("q", min(there, cursor.left // 8), "fractions")[:count]
        result.append(values + (0,) * (count - len(values)))
    return result


def _guest(cursor: Cursor, version: int) -> Guest:
    name, trace_id, count = _string(cursor, "guest name"), cursor.u64("trace id"), cursor.u32("vCPU count")
    values = iter(cursor.numbers("I", 2 * count, "vCPUs"))
    return Guest(name, trace_id, dict(zip(values, values, strict=True)))


def _tsc2nsec(cursor: Cursor, version: int) -> TscToNsec:
    return TscToNsec(cursor.u32("mult"), cursor.u32("shift"), cursor.u64("offset"))


def _last_boot_info(cursor: Cursor, version: int) -> LastBootInfo:
    instance, colon, text = _rest(cursor).partition(":")
    return LastBootInfo(instance, text) if colon else LastBootInfo("", instance)


_DECODERS: dict[int, Callable[[Cursor, int], Any]] = {
    OptionId.DATE: _number,  # microseconds
    OptionId.CPUSTAT: _cpustat,
    OptionId.BUFFER: _buffer,
    OptionId.TRACECLOCK: _text,
    OptionId.UNAME: _text,
    OptionId.HOOK: _hook,
    OptionId.OFFSET: _number,  # nanoseconds, or the clock's own units
    OptionId.CPUCOUNT: _u32,
    OptionId.VERSION: _text,
    OptionId.PROCMAPS: _procmaps,
    OptionId.TRACEID: _u64,
    OptionId.TIME_SHIFT: _time_shift,
    OptionId.GUEST: _guest,
    OptionId.TSC2NSEC: _tsc2nsec,
    OptionId.HEADER_INFO: _section,
    OptionId.FTRACE_EVENTS: _section,
    OptionId.EVENT_FORMATS: _section,
    OptionId.KALLSYMS: _section,
    OptionId.PRINTK: _section,
    OptionId.CMDLINES: _section,
    OptionId.BUFFER_TEXT: _text_buffer,
    OptionId.BTF_FILE: _section,
    OptionId.LAST_BOOT_INFO: _last_boot_info,
    OptionId.MODULES_FILE: _section,
}
