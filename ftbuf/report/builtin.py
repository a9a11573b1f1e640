"""Text of the kernel's own record types (events/ftrace/*), which is code in the kernel and not a print fmt.

Each printer gives everything after the line's context, with its line ends. Source of the layouts: K:trace_output.c.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from .columns import microseconds
from .record import LineRecord, number, text
from .symbols import Spelling

TRAMPOLINE = 0x7FFFFFFF  # FTRACE_TRAMPOLINE_MARKER: INT_MAX
USER_STACK_ENTRIES = 8  # K:trace.h FTRACE_STACK_ENTRIES
STATES = b"RSDTtXZPI"  # K:sched.h task_index_to_char
TIMERLAT_CONTEXTS = (b"irq", b"thread", b"user-ret")


@dataclass(frozen=True, slots=True)
class Context:
    """What the printers need besides the record."""

    spell: Spelling
    print_parent: bool = True
    in_ns: bool = True
    big_endian: bool = False

    @property
    def long_size(self) -> int:
        return self.spell.long_size


Printer = Callable[[LineRecord, Context], bytes]


def _tail(record: LineRecord, name: str) -> bytes:
    """Everything from the field's offset to the end of the record."""
    for field in record.format.fields:
        if field.name == name:
            return bytes(record.payload[field.offset :])
    return b""


def _longs(data: bytes, context: Context) -> tuple[int, ...]:
    size = context.long_size
    count = len(data) // size
    return struct.unpack(
        f"{'>' if context.big_endian else '<'}{count}{'Q' if size == 8 else 'I'}", data[: count * size]
    )


def function(record: LineRecord, context: Context) -> bytes:
    line = context.spell.ip(number(record, "ip"))
    parent = number(record, "parent_ip")
    if context.print_parent and parent:
        line += b" <-" + context.spell.ip(parent)
    return line + b"\n"


def func_repeats(record: LineRecord, context: Context) -> bytes:
    line = function(record, context)[:-1]
    delta = number(record, "top_delta_ts") << 32 | number(record, "bottom_delta_ts")
    last = record.ts - delta
    when = b" %5d.%06d" % divmod(microseconds(last), 1_000_000) if context.in_ns else b" %12d" % last
    return line + b" (repeats: %d, last_ts:%s)\n" % (number(record, "count"), when)


def kernel_stack(record: LineRecord, context: Context) -> bytes:
    callers = _longs(_tail(record, "caller"), context)
    size = number(record, "size")
    if 0 < size < len(callers):
        callers = callers[:size]
    end = (1 << 8 * context.long_size) - 1
    lines = [b"<stack trace>\n"]
    for address in callers:
        if address == end:
            break
        name = b"[FTRACE TRAMPOLINE]" if address == TRAMPOLINE else context.spell.ip(address)
        lines.append(b" => %s\n" % name)
    return b"".join(lines)


def user_stack(record: LineRecord, context: Context) -> bytes:
    lines = [b"<user stack trace>\n"]
    for address in _longs(_tail(record, "caller"), context)[:USER_STACK_ENTRIES]:
        if not address:
            break
        lines.append(b" => %s\n" % context.spell.raw(address))
    return b"".join(lines)


def print_(record: LineRecord, context: Context) -> bytes:
    return context.spell.ip(number(record, "ip")) + b": " + text(record, "buf")


def raw_data(record: LineRecord, context: Context) -> bytes:
    data = _tail(record, "buf")
    return b"# %x buf:%s\n" % (number(record, "id"), b"".join(b" %02x" % byte for byte in data))


def _state(value: int) -> bytes:
    return STATES[value : value + 1] or b"?"


def switch(arrow: bytes, comm_of: Callable[[int], bytes]) -> Printer:
    """wakeup and context_switch records, which share their fields."""

    def printer(record: LineRecord, context: Context) -> bytes:
        pid = number(record, "next_pid")
        return b" %7d:%3d:%s %s [%03d] %7d:%3d:%s %s\n" % (
            number(record, "prev_pid"),
            number(record, "prev_prio"),
            _state(number(record, "prev_state")),
            arrow,
            number(record, "next_cpu"),
            pid,
            number(record, "next_prio"),
            _state(number(record, "next_state")),
            comm_of(pid),
        )

    return printer


def hwlat(record: LineRecord, context: Context) -> bytes:
    line = b"#%-5d inner/outer(us): %4d/%-5d ts:%d.%09d count:%d" % (
        number(record, "seqnum"),
        number(record, "duration"),
        number(record, "outer_duration"),
        number(record, "tv_sec"),
        number(record, "tv_nsec"),
        number(record, "count"),
    )
    if number(record, "nmi_count"):
        line += b" nmi-total:%d nmi-count:%d" % (number(record, "nmi_total_ts"), number(record, "nmi_count"))
    return line + b"\n"


def osnoise(record: LineRecord, context: Context) -> bytes:
    runtime, noise = number(record, "runtime"), number(record, "noise")
    ratio = (runtime - noise) * 10_000_000 // runtime if runtime else 0
    counts = b"".join(b" %6d" % number(record, name + "_count") for name in ("hw", "nmi", "irq", "softirq", "thread"))
    return b"%d %10d %3d.%05d %7d%s\n" % (runtime, noise, *divmod(ratio, 100_000), number(record, "max_sample"), counts)


def timerlat(record: LineRecord, context: Context) -> bytes:
    kind = number(record, "context")
    name = TIMERLAT_CONTEXTS[kind] if 0 <= kind < len(TIMERLAT_CONTEXTS) else b"?"
    return b"#%-5d context %6s timer_latency %9d ns\n" % (
        number(record, "seqnum"),
        name,
        number(record, "timer_latency"),
    )


# The same records under the options raw and hex; every other type is "type: <id>".


def raw_function(record: LineRecord, context: Context) -> bytes:
    return b"%x %x\n" % (number(record, "ip"), number(record, "parent_ip"))


def raw_func_repeats(record: LineRecord, context: Context) -> bytes:
    delta = number(record, "top_delta_ts") << 32 | number(record, "bottom_delta_ts")
    return b"%d %d %d %d\n" % (number(record, "ip"), number(record, "parent_ip"), number(record, "count"), delta)


def raw_print(record: LineRecord, context: Context) -> bytes:
    return b"# %x %s" % (number(record, "ip"), text(record, "buf"))


def raw_switch(arrow: bytes) -> Printer:
    def printer(record: LineRecord, context: Context) -> bytes:
        return b"%d %d %s %d %d %d %s\n" % (
            number(record, "prev_pid"),
            number(record, "prev_prio"),
            _state(number(record, "prev_state")),
            number(record, "next_cpu"),
            number(record, "next_pid"),
            number(record, "next_prio"),
            arrow or _state(number(record, "next_state")),
        )

    return printer


def raw_hwlat(record: LineRecord, context: Context) -> bytes:
    return b"%d %d %d %09d %d\n" % (
        number(record, "duration"),
        number(record, "outer_duration"),
        number(record, "tv_sec"),
        number(record, "tv_nsec"),
        number(record, "seqnum"),
    )


def raw_osnoise(record: LineRecord, context: Context) -> bytes:
    names = ("runtime", "noise", "max_sample", "hw_count", "nmi_count", "irq_count", "softirq_count", "thread_count")
    return b" ".join(b"%d" % number(record, name) for name in names) + b"\n"


def raw_timerlat(record: LineRecord, context: Context) -> bytes:
    return b"%d %d %d\n" % (number(record, "seqnum"), number(record, "context"), number(record, "timer_latency"))


def hex_function(record: LineRecord, context: Context) -> bytes:
    width = 2 * context.long_size
    return b"%0*x %0*x \n" % (width, number(record, "ip"), width, number(record, "parent_ip"))


def text_printers(comm_of: Callable[[int], bytes]) -> dict[str, Printer]:
    """Event name in the ftrace system -> its printer in the normal layout."""
    return {
        "function": function,
        "func_repeats": func_repeats,
        "kernel_stack": kernel_stack,
        "user_stack": user_stack,
        "print": print_,
        "raw_data": raw_data,
        "context_switch": switch(b"==>", comm_of),
        "wakeup": switch(b"  +", comm_of),
        "hwlat": hwlat,
        "osnoise": osnoise,
        "timerlat": timerlat,
    }


RAW_PRINTERS: dict[str, Printer] = {
    "function": raw_function,
    "raw_data": raw_data,
    "func_repeats": raw_func_repeats,
    "print": raw_print,
    "context_switch": raw_switch(b""),
    "wakeup": raw_switch(b"+"),
    "hwlat": raw_hwlat,
    "osnoise": raw_osnoise,
    "timerlat": raw_timerlat,
}
HEX_PRINTERS: dict[str, Printer] = {"function": hex_function}


def nop(record: LineRecord, context: Context) -> bytes:
    """What a record type without a printer shows (K:trace_output.c trace_nop_print)."""
    return b"type: %d\n" % record.format.id
