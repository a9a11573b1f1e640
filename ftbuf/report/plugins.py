"""Bodies of trace-cmd's report that its plugins print, as print fmts of ftbuf's own; and its raw bodies (-R).

Where a plugin prints what the C rules say is wrong, such as an unsigned priority, the C rules hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..bytecode import CompileError
from ..codegen import Scope
from ..expression import Node
from ..formats import EventFormat, Field, Kind, Where
from ..formatstring import Conversion, parse_format_string, split_print_fmt
from ..printfmt import TRACE_CMD, compile_print_fmt, parse_arguments


@dataclass(frozen=True, slots=True)
class TraceCmdOptions:
    """What changes bodies."""

    raw: bool = False  # -R
    plugins: bool = True  # not with -N


def compile_trace_cmd_text(scope: Scope, options: TraceCmdOptions) -> bytes:
    """Bytecode of an event's body in trace-cmd's style, without a newline at its end.

    Never fails: an event that cannot be understood is printed by its fields.
    """
    event = scope.event
    if options.raw:
        return compile_print_fmt(scope, TRACE_CMD, raw_body(scope), chomp=True)
    text = plugin_body(event) if options.plugins else None
    if text is None and event.system == "ftrace":
        text = _PRINTK.get(event.name)
    try:
        return compile_print_fmt(scope, TRACE_CMD, text, chomp=True)
    except CompileError:
        return compile_print_fmt(scope, TRACE_CMD, raw_body(scope, plain=True), chomp=True)


# What libtraceevent knows by itself: the strings behind the addresses.
_PRINTK = {"bprint": '"%ps: %s", REC->ip, __print_printk(REC->fmt, REC->buf)', "bputs": '"%ps: %s", REC->ip, REC->str'}


def plugin_body(event: EventFormat) -> str | None:
    """The print fmt that stands for a plugin's text of this event, if there is one."""
    plugin = PLUGINS.get((event.system, event.name))
    return plugin(event) if plugin is not None else None


# -- plugins


def _state(value: str) -> str:
    """Letters of a task's state, as trace-cmd up to libtraceevent 1.7 has them."""
    flags = ", ".join(f'{{{1 << bit}, "{letter}"}}' for bit, letter in enumerate("SDTtZXxW"))
    return f'({value} & 0xff) ? __print_flags({value} & 0xff, "|", {flags}) : "R"'


def _sched_switch(event: EventFormat) -> str:
    return (
        f'"%s:%d [%d] %s ==> %s:%d [%d]", REC->prev_comm, REC->prev_pid, REC->prev_prio, {_state("REC->prev_state")},'
        " REC->next_comm, REC->next_pid, REC->next_prio"
    )


def _sched_wakeup(event: EventFormat) -> str:
    success = " success=%d" if event.find("success") else ""
    values = ", REC->success" if success else ""
    return f'"%s:%d [%d]{success} CPU:%03d", REC->comm, REC->pid, REC->prio{values}, REC->target_cpu'


def _hrtimer_start(event: EventFormat) -> str:
    return (
        '"hrtimer=0x%llx function=%s expires=%llu softexpires=%llu", (u64)REC->hrtimer, __print_slash(REC->function),'
        " REC->expires, REC->softexpires"
    )


def _hrtimer_expire_entry(event: EventFormat) -> str:
    return '"hrtimer=0x%llx now=%llu function=%s", (u64)REC->hrtimer, REC->now, __print_slash(REC->function)'


def _kmem(event: EventFormat) -> str | None:
    if event.find("call_site") is None:
        return None
    string, rest = split_print_fmt(event.print_fmt)[0]
    return f'"%s{_quoted(string)}", __print_prefix(REC->call_site), {rest}'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _function(event: EventFormat) -> str:
    return '"%s%ps", __print_calls(REC->ip, REC->parent_ip), REC->ip'


def _func_repeats(event: EventFormat) -> str:
    last = "((__ts - (((u64)REC->top_delta_ts << 32) | REC->bottom_delta_ts) + 500) / 1000)"
    return (
        '"%s%ps (count: %u  last_ts: %5lu.%06lu)", __print_calls(REC->ip, REC->parent_ip), REC->ip, REC->count,'
        f" (u64)({last} / 1000000), (u64)({last} % 1000000)"
    )


_FUTEX_OPS: tuple[tuple[str, str], ...] = (
    ("WAIT", "uaddr val utime"),
    ("WAKE", "uaddr count"),
    ("FD", "uaddr count"),
    ("REQUEUE", "uaddr count val2 uaddr2"),
    ("CMP_REQUEUE", "uaddr count val2 uaddr2 val3"),
    ("WAKE_OP", "uaddr count val2 uaddr2 val3"),
    ("LOCK_PI", "uaddr utime"),
    ("UNLOCK_PI", "uaddr"),
    ("TRYLOCK_PI", "uaddr"),
    ("WAIT_BITSET", "uaddr val utime val3"),
    ("WAKE_BITSET", "uaddr count val3"),
    ("WAIT_REQUEUE_PI", "uaddr val utime uaddr2 val3"),
    ("CMP_REQUEUE_PI", "uaddr count val2 uaddr2 val3"),
)
_FUTEX_VALUES = {
    "uaddr": (" uaddr=0x%08llx", "REC->uaddr"),
    "val": (" val=0x%08llx", "REC->val"),
    "count": (" val=%llu", "REC->val"),
    "utime": (" utime=0x%08llx", "REC->utime"),
    "val2": (" val2=%llu", "REC->utime"),
    "uaddr2": (" uaddr2=0x%08llx", "REC->uaddr2"),
    "val3": (" val3=0x%08llx", "REC->val3"),
}


def _futex(event: EventFormat) -> str:
    """K:include/uapi/linux/futex.h: 128 is FUTEX_PRIVATE_FLAG, 256 FUTEX_CLOCK_REALTIME."""
    text = f"__print_format({event.print_fmt})"
    for number, (name, arguments) in reversed(list(enumerate(_FUTEX_OPS))):
        shown = [_FUTEX_VALUES[word] for word in arguments.split()]
        format_string = f"op=FUTEX_{name}%s%s" + "".join(piece for piece, _ in shown)
        values = "".join(f", (u64){value}" for _, value in shown)
        text = (
            f'(REC->op & 0x7f) == {number} ? __print_format("{format_string}", REC->op & 128 ? "|FUTEX_PRIVATE_FLAG"'
            f' : "", REC->op & 256 ? "|FUTEX_CLOCK_REALTIME" : ""{values}) : {text}'
        )
    return f'"%s", {text}'


def _tlb_flush(event: EventFormat) -> str:
    reasons = ("flush on task switch", "remote shootdown", "local shootdown", "local mm shootdown")
    names = ", ".join(f'{{{number}, "{name}"}}' for number, name in enumerate(reasons))
    reason = f'REC->reason < 4 ? __print_symbolic(REC->reason, {names}) : ""'
    return f'"pages=%ld reason=%s (%d)", REC->pages, {reason}, REC->reason'


def _exit_reason(event: EventFormat, name: str) -> str:
    """Names of exit reasons, from the event's own print fmt."""
    lists = re.findall(r"__print_symbolic\(REC->\w+(?: & 0xffff)?, ((?:\{ [^{}]*? \}(?:, )?)+)\)", event.print_fmt)
    if len(lists) < 2:
        raise CompileError("exit reasons are not understood")
    return (
        f"REC->isa == 1 ? __print_symbolic(REC->{name} & 0xffff, {lists[0]}) :"
        f' REC->isa == 2 ? __print_symbolic(REC->{name}, {lists[1]}) : "UNKNOWN-ISA"'
    )


def _kvm_exit(event: EventFormat) -> str:
    if event.find("info1") is None or event.find("isa") is None:
        return event.print_fmt
    reason = _exit_reason(event, "exit_reason")
    return f'"reason %s rip 0x%lx info %llx %llx", {reason}, REC->guest_rip, REC->info1, REC->info2'


def _kvm_nested_vmexit_inject(event: EventFormat) -> str:
    return (
        f'"reason %s info1 %llx info2 %llx int_info %llx int_info_err %llx", {_exit_reason(event, "exit_code")},'
        " REC->exit_info1, REC->exit_info2, (u64)REC->exit_int_info, (u64)REC->exit_int_info_err"
    )


def _kvm_entry(event: EventFormat) -> str | None:
    return '" vcpu %u rip 0x%lx", REC->vcpu_id, REC->rip' if event.find("rip") else None


def _kvm_emulate_insn(event: EventFormat) -> str:
    return '"%llx:%llx: %s%s", (u64)REC->csbase, REC->rip, __print_hex(REC->insn, REC->len), REC->failed ? " FAIL" : ""'


def _fields(names: str) -> Callable[[EventFormat], bool]:
    wanted = names.split()
    return lambda event: all(event.find(name) is not None for name in wanted)


def _needs(names: str, plugin: Callable[[EventFormat], str | None]) -> Callable[[EventFormat], str | None]:
    """A plugin that steps back when the event does not have the fields it prints."""
    has = _fields(names)
    return lambda event: plugin(event) if has(event) else None


_WAKEUP = _needs("comm pid prio target_cpu", _sched_wakeup)
PLUGINS: dict[tuple[str, str], Callable[[EventFormat], str | None]] = {
    ("sched", "sched_switch"): _needs(
        "prev_comm prev_pid prev_prio prev_state next_comm next_pid next_prio", _sched_switch
    ),
    ("sched", "sched_wakeup"): _WAKEUP,
    ("sched", "sched_wakeup_new"): _WAKEUP,
    ("timer", "hrtimer_start"): _needs("hrtimer function expires softexpires", _hrtimer_start),
    ("timer", "hrtimer_expire_entry"): _needs("hrtimer function now", _hrtimer_expire_entry),
    **dict.fromkeys(
        [
            ("kmem", name)
            for name in (
                "kfree",
                "kmalloc",
                "kmalloc_node",
                "kmem_cache_alloc",
                "kmem_cache_alloc_node",
                "kmem_cache_free",
            )
        ],
        _kmem,
    ),
    ("ftrace", "function"): _needs("ip parent_ip", _function),
    ("ftrace", "func_repeats"): _needs("ip parent_ip count top_delta_ts bottom_delta_ts", _func_repeats),
    ("ftrace", "kernel_stack"): lambda event: '"<stack trace >%s", __print_stack(REC->caller, -1)',
    ("ftrace", "raw_data"): lambda event: '"# %x%s%s", REC->id, " ", __print_hex(REC->buf, 0x7fffffff)',
    ("syscalls", "sys_enter_futex"): _needs("uaddr op val utime uaddr2 val3", _futex),
    ("tlb", "tlb_flush"): _needs("reason pages", _tlb_flush),
    ("kvm", "kvm_exit"): _kvm_exit,
    ("kvm", "kvm_nested_vmexit_inject"): _kvm_nested_vmexit_inject,
    ("kvm", "kvm_entry"): _kvm_entry,
    ("kvm", "kvm_emulate_insn"): _needs("csbase rip insn len failed", _kvm_emulate_insn),
}


# -- raw bodies


def raw_body(scope: Scope, *, plain: bool = False) -> str:
    """All fields as `` name=value``, each printed by its own conversion in the print fmt where it has one."""
    event = scope.event
    conversions = [] if plain else _conversions(event, scope.long_size)
    position: int | None = 0 if conversions else None
    pieces, values = [], []
    for field in event.own_fields:
        found = None
        if position is not None:
            order = [*range(position, len(conversions)), *range(position)]
            found = next((i for i in order if conversions[i][1] == field.name), None)
        if found is None:
            text, more = _default(field)
        else:
            text, more = _own_conversion(conversions[found][0], field, conversions[found][2])
            position = found + 1 if found + 1 < len(conversions) else None
        pieces.append(f" {field.name}={text}")
        values += more
    return '"' + "".join(pieces) + '"' + "".join(", " + value for value in values)


def _conversions(event: EventFormat, long_size: int) -> list[tuple[Conversion, str, bool]]:
    """The conversions of a print fmt, the field each prints as it is ("" for expressions), and whether 0x precedes."""
    try:
        readings = split_print_fmt(event.print_fmt)
    except CompileError:
        return []
    for string, rest in readings:
        try:
            pieces = parse_format_string(string)
            nodes = iter(parse_arguments(rest, long_size=long_size))
            found = []
            before: bytes | Conversion = b""
            for piece in pieces:
                if isinstance(piece, Conversion):
                    for _ in range(piece.stars):
                        next(nodes)
                    has_prefix = isinstance(before, bytes) and before.endswith(b"0x")
                    found.append((piece, _plain_field(next(nodes)), has_prefix))
                before = piece
            return found
        except (CompileError, StopIteration):
            continue
    return []


def _plain_field(node: Node) -> str:
    while node.kind == "cast":
        node = node.kids[0]
    if (
        node.kind == "call"
        and node.value in ("__get_str", "__get_rel_str")
        and node.kids
        and node.kids[0].kind == "name"
    ):
        return str(node.kids[0].value)
    if node.kind == "member" and node.kids[0].kind == "name":
        return str(node.value)
    return ""


def _own_conversion(c: Conversion, field: Field, has_prefix: bool) -> tuple[str, list[str]]:
    value = f"REC->{field.name}"
    if c.kind == "s" or field.kind is not Kind.SCALAR:
        return _default(field) if field.kind is not Kind.SCALAR else ("%s", [value])
    if c.kind == "p":
        if c.pointer[:1] in ("S", "s", "F", "f"):
            return f"%p{c.pointer[0]} (0x%llx)", [value, value]
        return "%p", [value]
    zero = "0" if c.flags & 16 else ""
    width = str(c.width) if c.width else ""
    letter = "d" if c.kind == "i" else c.kind
    if letter == "c":
        return "%c", [value]
    prefix = "0x" if has_prefix else ""
    cast = "(s64)" if letter == "d" and field.signed else "(u64)"
    return f"{prefix}%{zero}{width}ll{letter}", [cast + value]


def _default(field: Field) -> tuple[str, list[str]]:
    value = f"REC->{field.name}"
    if field.kind is not Kind.SCALAR:
        where = f"__get_dynamic_array({field.name})" if field.where not in (Where.INLINE, Where.TAIL) else value
        is_text = re.search(r"\bchar\b", field.declaration) is not None
        if field.where is Where.TAIL and is_text:
            return "%s", [value]
        return "%s", [f"__print_raw_{'text' if is_text else 'array'}({where})"]
    if field.is_pointer:
        return "0x%llx", [f"(u64){value}"]
    is_long = re.search(r"\blong\b", field.type) is not None
    if field.signed:
        if field.size == 4 and is_long:
            return "0x%x", [value]
        return {4: "%d", 2: "%2d", 1: "%1d"}.get(field.size, "%lld"), [f"(s64){value}" if field.size == 8 else value]
    return ("0x%llx" if is_long else "%llu"), [f"(u64){value}"]
