"""Recordings made of events, one after another: what tests of analyses read.

    made = Recorder()
    made.add(1000, 0, "sched_switch", prev_pid=1, next_pid=2)
    made.lose(0, 5)  # before the next record of CPU 0
    with made.open() as trace: ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from filebuilder import BufferSpec, TraceDat
from pagebuilder import Abi, Page, event, format_text, make_abi, make_format

import ftbuf
from ftbuf.formats import EventFormat

Declared = Mapping[tuple[str, str], Sequence[str]]  # (system, event) -> its fields

GRAPH: Declared = {
    ("ftrace", "funcgraph_entry"): ("unsigned long func", "int depth"),
    ("ftrace", "fgraph_retaddr_entry"): ("unsigned long func", "int depth", "unsigned long retaddr"),
    ("ftrace", "funcgraph_exit"): ("unsigned long func", "unsigned long retval", "int depth", "unsigned int overrun",
                                   "unsigned long long calltime", "unsigned long long rettime"),
    ("ftrace", "function"): ("unsigned long ip", "unsigned long parent_ip"),
    ("ftrace", "func_repeats"): ("unsigned long ip", "unsigned long parent_ip", "u16 count", "u16 top_delta_ts",
                                 "u32 bottom_delta_ts"),
}
SCHED: Declared = {
    ("sched", "sched_switch"): ("char prev_comm[16]", "pid_t prev_pid", "int prev_prio", "long prev_state",
                                "char next_comm[16]", "pid_t next_pid", "int next_prio"),
    ("sched", "sched_waking"): ("char comm[16]", "pid_t pid", "int prio", "int target_cpu"),
}
DEFAULT: Declared = {**GRAPH, **SCHED}


OTHERS: Declared = {
    ("sched", "sched_wakeup"): ("char comm[16]", "pid_t pid", "int prio", "int target_cpu"),
    ("sched", "sched_wakeup_new"): ("char comm[16]", "pid_t pid", "int prio", "int target_cpu"),
    ("irq", "irq_handler_entry"): ("int irq", "__data_loc char[] name"),
    ("irq", "irq_handler_exit"): ("int irq", "int ret"),
    ("irq", "softirq_entry"): ("unsigned int vec",),
    ("irq", "softirq_exit"): ("unsigned int vec",),
    ("irq", "tasklet_entry"): ("void * tasklet", "void * func"),
    ("irq", "tasklet_exit"): ("void * tasklet", "void * func"),
    ("irq_vectors", "local_timer_entry"): ("int vector",),
    ("irq_vectors", "local_timer_exit"): ("int vector",),
    ("ipi", "ipi_entry"): ("const char * reason",),
    ("ipi", "ipi_exit"): ("const char * reason",),
    ("raw_syscalls", "sys_enter"): ("long id", "unsigned long args[6]"),
    ("raw_syscalls", "sys_exit"): ("long id", "long ret"),
    ("syscalls", "sys_enter_read"): ("int __syscall_nr", "unsigned int fd"),
    ("syscalls", "sys_exit_read"): ("int __syscall_nr", "long ret"),
    ("syscalls", "sys_enter_write"): ("int __syscall_nr", "unsigned int fd"),
    ("syscalls", "sys_exit_write"): ("int __syscall_nr", "long ret"),
    ("power", "cpu_idle"): ("u32 state", "u32 cpu_id"),
    ("power", "cpu_frequency"): ("u32 state", "u32 cpu_id"),
}


class Recorder:
    """Collects records CPU by CPU; the records of a CPU are added in time order."""

    def __init__(self, declared: Declared = DEFAULT, *, abi: Abi | None = None, kallsyms: bytes = b"") -> None:
        self.abi = make_abi() if abi is None else abi
        self.formats = {name: self._format(system, name, fields, 10 + i)
                        for i, ((system, name), fields) in enumerate(declared.items())}
        self.kallsyms = kallsyms
        self._done: dict[int, bytes] = {}
        self._pages: dict[int, Page] = {}
        self._lost: dict[int, int | None] = {}
        self._last: dict[int, int] = {}

    def _format(self, system: str, name: str, fields: Sequence[str], id: int) -> EventFormat:
        return make_format(name, id, fields, system=system, long_size=self.abi.long_size)

    def add(self, ts: int, cpu: int, name: str, *, pid: int = 0, **values: Any) -> None:
        """A record of a task's; its own fields by keyword."""
        self.add_fields(ts, cpu, name, {"common_pid": pid, **values})

    def add_fields(self, ts: int, cpu: int, name: str, values: Mapping[str, Any]) -> None:
        """A record with any fields, also one called ``pid`` or ``name``."""
        payload = event(self.formats[name], self.abi, **values)
        page = self._pages.get(cpu)
        delta = ts - self._last.get(cpu, ts)
        if page is None or page.room < len(payload) + 32 or not 0 <= delta < 1 << 27:
            self._close(cpu)
            page, delta = self._pages.setdefault(cpu, Page(self.abi, ts)), 0
        page.data(delta, payload)
        self._last[cpu] = ts

    def lose(self, cpu: int, count: int | None = None) -> None:
        """Records of a CPU are lost before its next one: so many, or an unknown number."""
        self._close(cpu)
        self._lost[cpu] = count

    def _close(self, cpu: int) -> None:
        """End a CPU's page. What was lost stands in the page behind the gap."""
        page = self._pages.pop(cpu, None)
        if page is not None:
            lost = {"missed": True, "stored": self._lost.pop(cpu)} if cpu in self._lost else {}
            self._done[cpu] = self._done.get(cpu, b"") + page.finish(**lost)

    def build(self) -> bytes:
        for cpu in list(self._pages):
            self._close(cpu)
        texts: dict[str, list[bytes]] = {}
        for fmt in self.formats.values():
            texts.setdefault(fmt.system, []).append(format_text(fmt))
        ftrace = texts.pop("ftrace", [])
        return TraceDat(self.abi, ftrace_formats=ftrace, formats=texts, kallsyms=self.kallsyms,
                        buffers=[BufferSpec(pages=self._done, subbuf_size=self.abi.subbuf_size)]).build().data

    def open(self, **options: Any) -> ftbuf.Trace:
        return ftbuf.open(self.build(), **options)
