"""The pieces that lines of every layout are made of: latency columns, delay marks, times."""

from __future__ import annotations

from dataclasses import dataclass

# common_flags, K:include/linux/trace_events.h
IRQS_OFF = 0x01
NO_SUPPORT = 0x02  # up to 6.12
RESCHED_LAZY = 0x02  # from 6.13
NEED_RESCHED = 0x04
HARDIRQ = 0x08
SOFTIRQ = 0x10
PREEMPT_RESCHED = 0x20
NMI = 0x40
BH_OFF = 0x80

_HEX = b".123456789abcdef"
MARKS = (
    (1_000_000_000, b"$"),
    (100_000_000, b"@"),
    (10_000_000, b"*"),
    (1_000_000, b"#"),
    (100_000, b"!"),
    (10_000, b"+"),
)  # K:trace_output.c


def mark(ns: int) -> bytes:
    """The character that makes a long time stand out."""
    if ns <= MARKS[-1][0]:
        return b" "
    return next(character for limit, character in MARKS if ns > limit)


@dataclass(frozen=True, slots=True)
class LatencyColumns:
    """The five latency characters: three looked up by common_flags, two by common_preempt_count."""

    flags: tuple[bytes, ...]
    preempt: tuple[bytes, ...]

    def text(self, flags: int, preempt_count: int) -> bytes:
        return self.flags[flags] + self.preempt[preempt_count]


def _irqs(flags: int, lazy: bool) -> bytes:
    if flags & IRQS_OFF:
        return b"D" if flags & BH_OFF else b"d"
    if flags & BH_OFF:
        return b"b"
    return b"X" if flags & NO_SUPPORT and not lazy else b"."


def _resched(flags: int, lazy: bool) -> bytes:
    if lazy:
        key = (bool(flags & NEED_RESCHED), bool(flags & PREEMPT_RESCHED), bool(flags & RESCHED_LAZY))
        return {
            (True, True, True): b"B",
            (True, True, False): b"N",
            (False, True, True): b"L",
            (True, False, True): b"b",
            (True, False, False): b"n",
            (False, False, True): b"l",
            (False, True, False): b"p",
        }.get(key, b".")
    if flags & NEED_RESCHED:
        return b"N" if flags & PREEMPT_RESCHED else b"n"
    return b"p" if flags & PREEMPT_RESCHED else b"."


def _context(flags: int) -> bytes:
    if flags & NMI:
        return b"Z" if flags & HARDIRQ else b"z"
    if flags & HARDIRQ:
        return b"H" if flags & SOFTIRQ else b"h"
    return b"s" if flags & SOFTIRQ else b"."


def _depths(count: int) -> bytes:
    return _HEX[count & 15 :][:1] + _HEX[count >> 4 :][:1]


def kernel_columns(release: tuple[int, int]) -> LatencyColumns:
    """What the kernel of that release prints (K:trace_output.c trace_print_lat_fmt)."""
    lazy = release >= (6, 13)
    flags = tuple(_irqs(f, lazy) + _resched(f, lazy) + _context(f) for f in range(256))
    migrate = release >= (5, 15)
    preempt = tuple(_depths(c) if migrate else _HEX[min(c, 15) :][:1] for c in range(256))
    return LatencyColumns(flags, preempt)


def trace_cmd_columns() -> LatencyColumns:
    """What trace-cmd 3.4 prints whatever the kernel: bit 0x02 is a lazy reschedule, other needs hide it."""

    def context(f: int) -> bytes:
        return b"H" if f & HARDIRQ and f & SOFTIRQ else b"h" if f & HARDIRQ else b"s" if f & SOFTIRQ else b"."

    def resched(f: int) -> bytes:
        return b"N" if f & NEED_RESCHED else b"L" if f & RESCHED_LAZY else b"."

    flags = tuple((b"d" if f & IRQS_OFF else b".") + resched(f) + context(f) for f in range(256))
    return LatencyColumns(flags, tuple(_depths(c) for c in range(256)))


def kernel_release(uname: str) -> tuple[int, int]:
    """(major, minor) out of a uname text; a kernel that does not say is taken for a recent one before 6.13."""
    for word in uname.split():
        parts = word.split(".")
        if len(parts) >= 2 and parts[0].isdigit():
            digits = ""
            for character in parts[1]:
                if not character.isdigit():
                    break
                digits += character
            if digits:
                return int(parts[0]), int(digits)
    return 6, 12


def microseconds(ns: int) -> int:
    """Rounded, as kernel and trace-cmd do."""
    return (ns + 500) // 1000
