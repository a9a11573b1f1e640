"""Bodies that the kernel does not print by an event's print fmt, written as print fmts of ftbuf's own.

The kernel prints its own events (``ftrace:*``), system calls, probes and synthetic events by functions
(K:trace_output.c, K:trace_syscalls.c, K:trace_kprobe.c, K:trace_events_synth.c), and has other bodies altogether under
the trace options ``raw``, ``hex`` and ``fields``. What these functions print is said here in the language of print
fmts, so that one compiler and one evaluator serve them too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..bytecode import CompileError
from ..codegen import Scope
from ..formats import EventFormat, Field, Kind, Where
from ..printfmt import Style, compile_print_fmt
from .record import encoded

# Since 6.19 system calls show numbers from 10 on with 0x, and what some of their arguments point to.
_SYSCALLS_WITH_0X = (6, 19)


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """The trace options that change bodies."""

    raw: bool = False
    hex: bool = False
    fields: bool = False
    verbose: bool = False
    sym_offset: bool = False
    sym_addr: bool = False
    print_parent: bool = True
    printk_msg_only: bool = False
    title: bool = True  # the event's name before its text
    version: tuple[int, int] = (6, 12)  # of the kernel, from uname

    @property
    def style(self) -> Style:
        return Style(True, self.sym_offset, self.sym_addr)


def compile_kernel_text(scope: Scope, options: KernelOptions) -> bytes:
    """Bytecode of what the kernel prints of one event after the time stamp, with the newline.

    Never fails: an event that cannot be understood is printed by its fields.
    """
    try:
        return compile_understood(scope, options)
    except CompileError:
        return _compile_fields(scope, options)


def compile_understood(scope: Scope, options: KernelOptions) -> bytes:
    """As compile_kernel_text, but what cannot be understood is a CompileError that says why."""
    event = scope.event
    if options.hex or options.raw:
        return compile_print_fmt(scope, options.style, number_body(event, options))
    if options.fields:
        return _compile_fields(scope, options)
    own = OWN.get(event.name) if event.system == "ftrace" else None
    if own is not None:
        return compile_print_fmt(scope, options.style, own(options))
    text = syscall_body(event, options)
    if text is not None:
        return compile_print_fmt(scope, options.style, text, after=b"\n")
    if event.system == "synthetic":
        scope = replace(scope, event=_as_synthetic(event, scope, options))
    return compile_print_fmt(scope, options.style, probe_body(event), before=_title(event, options), after=b"\n")


def _compile_fields(scope: Scope, options: KernelOptions) -> bytes:
    body = fields_body(scope.event)
    if not options.title:
        body = body.replace('" ', '"', 1)
    return compile_print_fmt(scope, options.style, body, before=_title(scope.event, options).rstrip(), after=b"\n")


def _title(event: EventFormat, options: KernelOptions) -> bytes:
    return encoded(event.name) + b": " if options.title else b""


# -- the kernel's own events: format strings end with the newline, where the kernel prints one


def _function(options: KernelOptions) -> str:
    if options.print_parent:
        return r'"%pY <-%pY\n", REC->ip, REC->parent_ip'
    return r'"%pY\n", REC->ip'


def _func_repeats(options: KernelOptions) -> str:
    last = "((__ts - (((u64)REC->top_delta_ts << 32) | REC->bottom_delta_ts) + 500) / 1000)"
    return (
        r'"%pY <-%pY (repeats: %u, last_ts: %5lu.%06lu)\n", REC->ip, REC->parent_ip, REC->count, '
        f"(u64)({last} / 1000000), (u64)({last} % 1000000)"
    )


def _message(options: KernelOptions, text: str) -> str:
    return f'"%s", {text}' if options.printk_msg_only else f'"%pY: %s", REC->ip, {text}'


def _switch(arrow: str) -> str:
    """K:trace_output.c trace_ctxwake_print."""
    return (
        rf'" %7d:%3d:%s {arrow} [%03d] %7d:%3d:%s %s\n", REC->prev_pid, REC->prev_prio, {_state("REC->prev_state")},'
        f" REC->next_cpu, REC->next_pid, REC->next_prio, {_state('REC->next_state')}, __print_comm(REC->next_pid)"
    )


def _state(value: str) -> str:
    """K:include/linux/sched.h task_index_to_char."""
    return f"__print_symbolic({value}, " + ", ".join(f'{{{i}, "{c}"}}' for i, c in enumerate("RSDTtXZPI")) + ")"


def _hwlat(options: KernelOptions) -> str:
    return (
        r'"#%-5u inner/outer(us): %4llu/%-5llu ts:%lld.%09ld count:%d%s\n", REC->seqnum, REC->duration,'
        " REC->outer_duration, REC->tv_sec, REC->tv_nsec, REC->count, REC->nmi_count ?"
        ' __print_format(" nmi-total:%llu nmi-count:%u", REC->nmi_total_ts, REC->nmi_count) : ""'
    )


def _osnoise(options: KernelOptions) -> str:
    ratio = "((REC->runtime - REC->noise) * 10000000 / REC->runtime)"
    return (
        rf'"%llu %10llu %3llu.%05llu %7llu %6u %6u %6u %6u %6u\n", REC->runtime, REC->noise, {ratio} / 100000,'
        f" {ratio} % 100000, REC->max_sample, REC->hw_count, REC->nmi_count, REC->irq_count, REC->softirq_count,"
        " REC->thread_count"
    )


def _timerlat(options: KernelOptions) -> str:
    return (
        r'"#%-5u context %6s timer_latency %9llu ns\n", REC->seqnum, __print_symbolic(REC->context, {0, "irq"},'
        ' {1, "thread"}, {2, "user-ret"}), REC->timer_latency'
    )


OWN = {
    "function": _function,
    "func_repeats": _func_repeats,
    "kernel_stack": lambda o: r'"<stack trace>%s\n", __print_stack(REC->caller, REC->size)',
    "user_stack": lambda o: r'"<user stack trace>%s\n", __print_user_stack(REC->caller, 8)',
    "print": lambda o: _message(o, "REC->buf"),
    "bputs": lambda o: _message(o, "REC->str"),
    "bprint": lambda o: _message(o, "__print_printk(REC->fmt, REC->buf)"),
    "raw_data": lambda o: r'"# %x buf: %s\n", REC->id, __print_hex(REC->buf, 0x7fffffff)',
    "context_switch": lambda o: _switch("==>"),
    "wakeup": lambda o: _switch("  +"),
    "hwlat": _hwlat,
    "osnoise": _osnoise,
    "timerlat": _timerlat,
}


# -- system calls


def syscall_body(event: EventFormat, options: KernelOptions) -> str | None:
    """K:trace_syscalls.c print_syscall_enter, print_syscall_exit; None for other events."""
    names = {field.name for field in event.own_fields}
    if event.system != "syscalls" or not names & {"__syscall_nr", "nr"}:
        return None
    if event.name.startswith("sys_exit_") and "ret" in names:
        return f'"sys_{event.name.removeprefix("sys_exit_")} -> 0x%lx", REC->ret'
    if not event.name.startswith("sys_enter_"):
        return None
    name = "sys_" + event.name.removeprefix("sys_enter_")
    arguments = [f for f in event.own_fields if f.name not in ("__syscall_nr", "nr") and f.where is Where.INLINE]
    if options.version >= _SYSCALLS_WITH_0X:
        return _new_syscall(event, name, arguments, options)
    shown = [f"{_type_word(f, options)}{f.name}: %lx" for f in arguments]
    values = "".join(f", (unsigned long)REC->{f.name}" for f in arguments)
    return f'"{name}({", ".join(shown)})"{values}'


def _type_word(field: Field, options: KernelOptions) -> str:
    return f"{field.type} " if options.verbose else ""


def _new_syscall(event: EventFormat, name: str, arguments: list[Field], options: KernelOptions) -> str:
    decoded = (
        "%s%s" in event.print_fmt and not options.verbose
    )  # openat: its flags have names, its other numbers are decimal
    located = {f.name: f for f in event.own_fields if f.where is Where.DATA_LOC}
    pieces, values = [], []
    for field in arguments:
        value = f"(unsigned long)REC->{field.name}"
        word = f"{_type_word(field, options)}{field.name}: "
        if decoded and field.name == "flags":
            pieces.append(word + "%s%s")
            values += _flags_arguments(event.print_fmt)
            continue
        if decoded and field.name == "mode":  # only what creates a file has one
            pieces[-1] += "%s"
            values.append(f'REC->flags & {_creating(event)} ? __print_format(", {word}0%03o", {value}) : ""')
            continue
        if decoded:
            pieces.append(word + "%lu")
            values.append(value)
        else:
            pieces.append(word + "%s")
            values.append(f'{value} < 10 ? __print_format("%lu", {value}) : __print_format("0x%lx", {value})')
        user = located.get(f"__{field.name}_val")
        if user is not None and user.kind is Kind.STRING and "(%s)" not in event.print_fmt:
            pieces[-1] += r" \"%s\""
            values.append(f"__get_str({user.name})")
        elif user is not None:
            pieces[-1] += r" (%s%s) \"%s\"%s"
            cut = f"{_size_of_buffer(arguments, field)} > __get_dynamic_array_len({user.name})"
            values += [
                f"__print_hex_colons(__get_dynamic_array({user.name}))",
                f'{cut} ? ", ..." : ""',
                f"__print_escaped(__get_dynamic_array({user.name}))",
                f'{cut} ? "..." : ""',
            ]
    return f'"{name}({", ".join(pieces)})"' + "".join(", " + v for v in values)


def _size_of_buffer(arguments: list[Field], buffer: Field) -> str:
    """The argument that follows a buffer tells how long the whole is, of which the record has the beginning."""
    following = arguments[arguments.index(buffer) + 1 :]
    return f"(unsigned long)REC->{following[0].name}" if following else "0"


def _creating(event: EventFormat) -> int:
    match = re.search(r'\{ (0x[0-9a-f]+), "O_CREAT" \}', event.print_fmt)
    return int(match[1], 16) if match else 0


def _flags_arguments(print_fmt: str) -> list[str]:
    """The two arguments of "flags: %s%s" of sys_enter_openat."""
    match = re.search(r"\(REC->flags & ~3\).*?: \"\",\s*REC->flags \?.*?: \"O_RDONLY\"", print_fmt, re.S)
    if match is None:
        raise CompileError("flags of a system call are not understood")
    return [match[0]]


# -- probes and synthetic events


def probe_body(event: EventFormat) -> str:
    """The event's print fmt, as the kernel's own functions print it."""
    text = event.print_fmt
    names = [field.name for field in event.own_fields]
    if names[:2] == ["__probe_func", "__probe_ret_ip"]:
        text = re.sub(r'^\s*"\(%l?l?x <- %l?l?x\)', '"(%pYS <- %pYs)', text, count=1)
        return text.replace("REC->__probe_func, REC->__probe_ret_ip", "REC->__probe_ret_ip, REC->__probe_func", 1)
    if names[:1] == ["__probe_ip"]:
        return re.sub(r'^\s*"\(%l?l?x\)', '"(%pYS)', text, count=1)
    if event.system == "synthetic":
        return re.sub(r", (?=\w+=)", " ", text)
    return text


def _as_synthetic(event: EventFormat, scope: Scope, options: KernelOptions) -> EventFormat:
    """Where the kernel reads the fields of a synthetic event: before 6.6 all of the 8 bytes that each has.

    A big-endian kernel wrote the first of them, and prints the last (K:trace_events_synth.c print_synth_event_num_val).
    """
    if not scope.big_endian or options.version >= (6, 6):
        return event
    moved = [
        replace(f, offset=f.offset + 8 - f.size) if f.kind is Kind.SCALAR and f.size < 8 and not f.is_common else f
        for f in event.fields
    ]
    return replace(event, fields=tuple(moved))


# -- the options raw, hex and fields


def number_body(event: EventFormat, options: KernelOptions) -> str:
    """K:trace_output.c: bodies under the options raw and hex."""
    if event.system == "ftrace" and options.raw:
        own = RAW.get(event.name)
        if own is not None:
            return own
    ip = event.find("ip")
    if event.system == "ftrace" and event.name == "function" and ip is not None:
        return rf'"%0{2 * ip.size}lx %0{2 * ip.size}lx \n", REC->ip, REC->parent_ip'
    return rf'"type: {event.id}\n' + (r'\n"' if options.hex else '"')


RAW = {
    "function": r'"%lx %lx\n", REC->ip, REC->parent_ip',
    "print": '"# %lx %s", REC->ip, REC->buf',
    "bputs": '": %lx : %s", REC->ip, REC->str',
    "bprint": '": %lx : %s", REC->ip, __print_printk(REC->fmt, REC->buf)',
    "raw_data": r'"# %x buf: %s\n", REC->id, __print_hex(REC->buf, 0x7fffffff)',
    "hwlat": r'"%llu %lld %lld %09ld %u\n", REC->duration, REC->outer_duration, REC->tv_sec, REC->tv_nsec, REC->seqnum',
    "osnoise": r'"%lld %llu %llu %u %u %u %u %u\n", REC->runtime, REC->noise, REC->max_sample, REC->hw_count,'
    " REC->nmi_count, REC->irq_count, REC->softirq_count, REC->thread_count",
    "timerlat": r'"%u %d %llu\n", REC->seqnum, REC->context, REC->timer_latency',
}


def fields_body(event: EventFormat) -> str:
    """K:trace_output.c print_event_fields."""
    pieces, values = [], []
    for field in event.own_fields:
        text, more = _field(field)
        pieces.append(f" {field.name}={text}")
        values += more
    return '"' + "".join(pieces) + '"' + "".join(", " + v for v in values)


def _field(field: Field) -> tuple[str, list[str]]:
    value = f"REC->{field.name}"
    if field.where in (Where.DATA_LOC, Where.REL_LOC):
        if re.match(r"__(data|rel)_loc\s+(unsigned |signed )?char\b", field.declaration):
            return "%s", [f"__get_str({field.name})"]
        if re.match(r"__data_loc\s+cpumask_t", field.declaration):
            return "<INVALID-TYPE>", []
        return "%s", [f"__print_bytes(__get_dynamic_array({field.name}))"]
    if field.kind is Kind.STRING:
        return "%s", [value]
    if re.fullmatch(r"(const )?char \*", field.type):
        return f"(0x%0{2 * field.size}lx)", [value]
    if field.kind is Kind.ARRAY and field.size in (1, 2, 4, 8):
        number = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}[field.size]
        value = f"*({number} *)REC->{field.name}"
    elif field.kind is not Kind.SCALAR:
        return "<INVALID-SIZE>", []
    if field.size == 1:
        return "%s(%d)", [
            f'({value} >= 32 && {value} < 127) || {value} >= 160 ? __print_format("\'%c\'", {value}) : ""',
            f"(u8)({value})",
        ]
    if field.size == 8:
        return "0x%llx (%lld)", [f"(u64){value}", f"(s64){value}"]
    if field.size == 2:
        return "0x%x (%d)", [f"(u16){value}", f"(u16){value}"]
    return "0x%x (%d)", [f"(u32){value}", f"(s32){value}"]
