"""trace-cmd's plugins and raw bodies, and the kernel's own functions, as print fmts."""

from __future__ import annotations

import pytest
from expr_helpers import HEAD
from pagebuilder import event, make_abi

from ftbuf import _core
from ftbuf.codegen import Scope
from ftbuf.formats import EventFormat, parse_format
from ftbuf.lookups import Lookups, symbol_columns
from ftbuf.names import Comms, Symbols
from ftbuf.printfmt import TRACE_CMD
from ftbuf.report.kernelbodies import KernelOptions, compile_kernel_text
from ftbuf.report.plugins import TraceCmdOptions, compile_trace_cmd_text

KALLSYMS = b"""ffffffff81000000 T _text
ffffffff81000100 T outer
ffffffff81000200 T middle
ffffffff81000300 T inner
ffffffff81000400 T last
"""
OUTER, MIDDLE, INNER = 0xFFFFFFFF81000100, 0xFFFFFFFF81000200, 0xFFFFFFFF81000300
ABI = make_abi()
PLAIN, KERNEL = TraceCmdOptions(), KernelOptions()


def made(system: str, name: str, fields: str, print_fmt: str) -> EventFormat:
    """An event of fields "type name:offset:size[:signed]", one a line."""
    lines = []
    for line in fields.split("\n"):
        declaration, offset, size, *signed = line.strip().split(":")
        lines.append(f"\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed[0] if signed else 0};\n")
    text = HEAD.replace("name: made", f"name: {name}") + "".join(lines) + f"\nprint fmt: {print_fmt}\n"
    return parse_format(text.encode(), system)


def trace_cmd(fmt: EventFormat, options: TraceCmdOptions = PLAIN, **values: object) -> str:
    program = _core.Program(compile_trace_cmd_text(Scope(fmt, False, 8), options))
    tables = _core.TextTables(symbol_columns(Symbols(KALLSYMS), TRACE_CMD), cpus=4)
    text = _core.Renderer(tables).body(program, event(fmt, ABI, **values), ts=5_000_000_000)
    return text.decode() if isinstance(text, bytes) else f"!{text}"


def kernel(fmt: EventFormat, options: KernelOptions = KERNEL, **values: object) -> str:
    lookups = Lookups(lambda: Symbols(KALLSYMS), dict, Scope(fmt, False, 8), options.style,
                      lambda: Comms({7: b"worker", 9: b"x y"}))
    program = lookups.program(compile_kernel_text(Scope(fmt, False, 8), options))
    text = lookups.renderer.body(program, event(fmt, ABI, **values), ts=5_000_000_000)
    return text.decode() if isinstance(text, bytes) else f"!{text}"


SWITCH = made(
    "sched",
    "sched_switch",
    """char prev_comm[16]:8:16
    pid_t prev_pid:24:4:1
    int prev_prio:28:4:1
    long prev_state:32:8:1
    char next_comm[16]:40:16
    pid_t next_pid:56:4:1
    int next_prio:60:4:1""",
    '"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s ==> next_comm=%s next_pid=%d next_prio=%d", REC->prev_comm,'
    ' REC->prev_pid, REC->prev_prio, REC->prev_state ? __print_flags(REC->prev_state, "|", {1, "S"}, {2, "D"}) : "R",'
    " REC->next_comm, REC->next_pid, REC->next_prio",
)
SWITCHED = {"prev_comm": "a b", "prev_pid": 1, "prev_prio": 120, "next_comm": "c", "next_pid": 2, "next_prio": -1}


@pytest.mark.parametrize(
    ("state", "letters"), [(0, "R"), (1, "S"), (3, "S|D"), (0x80, "W"), (0x100, "R"), (0x101, "S")]
)
def test_sched_switch(state: int, letters: str) -> None:
    assert trace_cmd(SWITCH, prev_state=state, **SWITCHED) == f"a b:1 [120] {letters} ==> c:2 [-1]"


def test_without_plugins_the_print_fmt_holds() -> None:
    text = trace_cmd(SWITCH, TraceCmdOptions(plugins=False), prev_state=1, **SWITCHED)
    assert text == "prev_comm=a b prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=c next_pid=2 next_prio=-1"


def test_raw_fields_take_their_own_conversion() -> None:
    text = trace_cmd(SWITCH, TraceCmdOptions(raw=True), prev_state=1, **SWITCHED)
    assert text == " prev_comm=a b prev_pid=1 prev_prio=120 prev_state=1 next_comm=c next_pid=2 next_prio=-1"


def test_raw_conversions_are_looked_for_in_a_circle_until_the_last_is_used() -> None:
    fields = "void * timer:8:8\nu64 now:16:8\nvoid * function:24:8\nunsigned long x:32:8"
    in_circle = made("timer", "t", fields, '"%p %ps %llu %lx", REC->timer, REC->function, REC->now, REC->x')
    values = {"timer": 5, "now": 77, "function": OUTER + 4, "x": 16}
    raw = TraceCmdOptions(raw=True)
    assert trace_cmd(in_circle, raw, **values) == f" timer=0x5 now=77 function=outer (0x{OUTER + 4:x}) x=10"
    used_up = made("timer", "t", fields, '"%p %ps 0x%lx", REC->timer, REC->function, REC->x')
    assert trace_cmd(used_up, raw, **values) == f" timer=0x5 now=77 function=outer (0x{OUTER + 4:x}) x=0x10"
    ended = made("timer", "t", fields, '"%p %ps %lld", REC->timer, REC->function, REC->now')
    assert trace_cmd(ended, raw, **values) == f" timer=0x5 now=77 function=0x{OUTER + 4:x} x=0x10"


FUNCTION = made(
    "ftrace",
    "function",
    "unsigned long ip:8:8\nunsigned long parent_ip:16:8",
    '" %ps <-- %ps", REC->ip, REC->parent_ip',
)


def test_functions_are_indented_by_their_callers() -> None:
    program = _core.Program(compile_trace_cmd_text(Scope(FUNCTION, False, 8), TraceCmdOptions()))
    renderer = _core.Renderer(_core.TextTables(symbol_columns(Symbols(KALLSYMS), TRACE_CMD), cpus=2))
    calls = [
        (MIDDLE, OUTER, 0),
        (INNER, MIDDLE, 0),
        (INNER, MIDDLE, 1),
        (MIDDLE, OUTER, 0),
        (OUTER, 0x10, 0),
        (MIDDLE, OUTER, 9),
    ]
    lines = [
        renderer.body(program, event(FUNCTION, ABI, ip=ip, parent_ip=parent), cpu=cpu) for ip, parent, cpu in calls
    ]
    assert lines == [b"middle", b"   inner", b"inner", b"middle", b"outer", b"middle"]


def test_endless_chains_of_calls_are_bounded() -> None:
    kallsyms = b"".join(b"%016x T f%d\n" % (0x1000 + 16 * i, i) for i in range(300)) + b"ffff T end\n"
    program = _core.Program(compile_trace_cmd_text(Scope(FUNCTION, False, 8), TraceCmdOptions()))
    renderer = _core.Renderer(_core.TextTables(symbol_columns(Symbols(kallsyms), TRACE_CMD), cpus=1))
    for i in range(299):
        text = renderer.body(program, event(FUNCTION, ABI, ip=0x1010 + 16 * i, parent_ip=0x1000 + 16 * i))
        assert len(text) < 400


def test_kmem_names_its_caller() -> None:
    fmt = made(
        "kmem",
        "kfree",
        "unsigned long call_site:8:8\nconst void * ptr:16:8",
        '"call_site=%pS ptr=%p", (void *)REC->call_site, REC->ptr',
    )
    assert trace_cmd(fmt, call_site=OUTER + 0x23, ptr=5) == "(outer+0x23) call_site=outer+0x23 ptr=0x5"
    assert trace_cmd(fmt, call_site=0x23, ptr=5) == "call_site=0x23 ptr=0x5"


def test_futex() -> None:
    fields = (
        "int __syscall_nr:8:4:1\nu32 * uaddr:16:8\nint op:24:8\nu32 val:32:8\nvoid * utime:40:8\nu32 * uaddr2:48:8"
        "\nu32 val3:56:8"
    )
    fmt = made("syscalls", "sys_enter_futex", fields, '"uaddr: 0x%08lx", ((unsigned long)(REC->uaddr))')
    values = {"uaddr": 0x1000, "val": 7, "utime": 0x2000, "uaddr2": 0x3000, "val3": 9}
    assert trace_cmd(fmt, op=128, **values) == (
        "op=FUTEX_WAIT|FUTEX_PRIVATE_FLAG uaddr=0x00001000 val=0x00000007 utime=0x00002000"
    )
    assert trace_cmd(fmt, op=4 | 256, **values) == (
        "op=FUTEX_CMP_REQUEUE|FUTEX_CLOCK_REALTIME uaddr=0x00001000 val=7 val2=8192 uaddr2=0x00003000 val3=0x00000009"
    )
    assert trace_cmd(fmt, op=99, **values) == "uaddr: 0x00001000"


def test_stack_of_trace_cmd() -> None:
    fmt = made("ftrace", "kernel_stack", "int size:8:4:1\nunsigned long caller[8]:16:64", '"=> %ps", REC->caller[0]')
    text = trace_cmd(fmt, size=2, caller=[OUTER + 1, 5, 2**64 - 1, INNER])
    assert text == f"<stack trace >\n=> outer ({OUTER + 1:x})\n=> 5"


def test_raw_stack_has_the_declared_entries_alone() -> None:
    fmt = made("ftrace", "kernel_stack", "int size:8:4:1\nunsigned long caller[2]:16:16", '"=> %ps", REC->caller[0]')
    text = trace_cmd(fmt, TraceCmdOptions(raw=True), size=3, caller=[1, 2, 3])
    assert text == f" size=3 caller=ARRAY[{', '.join(['01', *['00'] * 7, '02', *['00'] * 7])}]"


def test_a_print_fmt_that_cannot_be_understood_prints_fields() -> None:
    fmt = made("x", "odd", "int a:8:4:1\nchar b[8]:12:8\nu16 c[2]:20:4", '"%s", decode_it(REC->a)')
    assert trace_cmd(fmt, a=-1, b="text", c=[1, 2]) == " a=-1 b=text c=ARRAY[01, 00, 02, 00]"
    assert kernel(fmt, a=-1, b="text", c=[1, 2]) == "odd: a=0xffffffff (-1) b=text c=0x20001 (131073)\n"


def test_a_newline_at_the_end_is_taken_back_once() -> None:
    fmt = made("x", "lines", "int a:8:4:1", r'"a=%d\n\n", REC->a')
    assert trace_cmd(fmt, a=1) == "a=1\n"
    assert kernel(fmt, a=1) == "lines: a=1\n\n\n"


# -- the kernel's


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (KernelOptions(), "outer <-middle\n"),
        (KernelOptions(print_parent=False), "outer\n"),
        (KernelOptions(sym_offset=True), "outer+0x4/0x100 <-middle+0x8/0x100\n"),
        (KernelOptions(sym_addr=True), f"outer <{OUTER + 4:x}> <-middle <{MIDDLE + 8:x}>\n"),
        (KernelOptions(raw=True), f"{OUTER + 4:x} {MIDDLE + 8:x}\n"),
        (KernelOptions(hex=True), f"{OUTER + 4:x} {MIDDLE + 8:x} \n"),
    ],
)
def test_function_of_the_kernel(options: KernelOptions, text: str) -> None:
    assert kernel(FUNCTION, options, ip=OUTER + 4, parent_ip=MIDDLE + 8) == text


def test_system_calls_of_the_kernel() -> None:
    fields = "int __syscall_nr:8:4:1\nunsigned int fd:16:8\nconst char * buf:24:8"
    enter = made(
        "syscalls", "sys_enter_read", fields, '"fd: 0x%08lx, buf: 0x%08lx", ((unsigned long)(REC->fd)), REC->buf'
    )
    assert kernel(enter, fd=3, buf=0x1000) == "sys_read(fd: 3, buf: 1000)\n"
    assert (
        kernel(enter, KernelOptions(verbose=True), fd=3, buf=0x1000)
        == "sys_read(unsigned int fd: 3, const char * buf: 1000)\n"
    )
    assert kernel(enter, KernelOptions(version=(7, 2)), fd=3, buf=0x1000) == "sys_read(fd: 3, buf: 0x1000)\n"
    leave = made("syscalls", "sys_exit_read", "int __syscall_nr:8:4:1\nlong ret:16:8:1", '"0x%lx", REC->ret')
    assert kernel(leave, ret=-1) == "sys_read -> 0xffffffffffffffff\n"


def test_probes_of_the_kernel() -> None:
    probe = made("kprobes", "p", "unsigned long __probe_ip:8:8\ns64 n:16:8:1", '"(%lx) n=%Ld", REC->__probe_ip, REC->n')
    assert kernel(probe, __probe_ip=OUTER + 4, n=-5) == "p: (outer+0x4/0x100) n=-5\n"
    assert trace_cmd(probe, __probe_ip=OUTER + 4, n=-5) == f"({OUTER + 4:x}) n=-5"
    fields = "unsigned long __probe_func:8:8\nunsigned long __probe_ret_ip:16:8\ns64 r:24:8:1"
    ret = made("kprobes", "r", fields, '"(%lx <- %lx) r=%Ld", REC->__probe_func, REC->__probe_ret_ip, REC->r')
    assert kernel(ret, __probe_func=OUTER, __probe_ret_ip=MIDDLE + 9, r=1) == "r: (middle+0x9/0x100 <- outer) r=1\n"


def test_synthetic_events_of_the_kernel() -> None:
    fmt = made("synthetic", "lat", "u64 lat:8:8\npid_t pid:16:4:1", '"lat=%llu, pid=%d", REC->lat, REC->pid')
    assert kernel(fmt, lat=5, pid=7) == "lat: lat=5 pid=7\n"
    assert trace_cmd(fmt, lat=5, pid=7) == "lat=5, pid=7"


def test_wakeup_names_the_task() -> None:
    fields = """unsigned int prev_pid:8:4
    unsigned int next_pid:12:4
    unsigned int next_cpu:16:4
    unsigned char prev_prio:20:1
    unsigned char prev_state:21:1
    unsigned char next_prio:22:1
    unsigned char next_state:23:1"""
    fmt = made("ftrace", "wakeup", fields, '"%u", REC->prev_pid')
    assert (
        kernel(fmt, next_pid=9, next_prio=39, prev_prio=120, next_cpu=1)
        == "       0:120:R   + [001]       9: 39:R x y\n"
    )
    assert kernel(fmt, next_pid=10, next_state=1).endswith("10:  0:S <...>\n")
    assert kernel(fmt).endswith(" 0:  0:R <idle>\n")


def test_fields_option() -> None:
    fmt = made(
        "x",
        "y",
        "u8 a:8:1\nu8 b:9:1\nshort c:10:2:1\nint d:12:4:1\nu64 e:16:8\nchar f[4]:24:4\n__data_loc u32[] g:28:4\nu8 h[3]:32:3",
        '"%d", REC->a',
    )
    text = kernel(fmt, KernelOptions(fields=True), a=65, b=1, c=-1, d=-2, e=10, f="hi", g=[1])
    assert (
        text == "y: a='A'(65) b=(1) c=0xffff (65535) d=0xfffffffe (-2) e=0xa (10) f=hi g=01,00,00,00 h=<INVALID-SIZE>\n"
    )


def test_types_under_raw_and_hex() -> None:
    assert kernel(SWITCH, KernelOptions(raw=True)) == "type: 7\n"
    assert kernel(SWITCH, KernelOptions(hex=True)) == "type: 7\n\n"


def test_raw_markers_of_the_kernel() -> None:
    fmt = made("ftrace", "raw_data", "unsigned int id:8:4\nchar buf[]:12:0", '"id:%04x", REC->id')
    assert kernel(fmt, id=0x1000, buf=b"\1\2\xfe\xff") == "# 1000 buf: 01 02 fe ff\n"
