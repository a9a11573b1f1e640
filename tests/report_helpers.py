"""Records made by hand, and reports of real recordings."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import ftbuf
from ftbuf.formats import EventFormat, Field, Kind, Where
from ftbuf.report.kernelreport import KernelRequest, kernel_report

HEX = re.compile(r"(?:0x)?\b[0-9a-f]{8,16}\b")  # the kernel prints %p hashed


def event_format(system: str, name: str, *fields: str, event_id: int = 1) -> EventFormat:
    """A format with these fields, eight bytes each."""
    made = tuple(
        Field(f, "unsigned long", f"unsigned long {f}", 8 + 8 * i, 8, False, Kind.SCALAR, Where.INLINE, 8, False, False)
        for i, f in enumerate(fields)
    )
    return EventFormat(system, name, event_id, made, "")


FUNCTION = event_format("ftrace", "function", "ip", "parent_ip")
ENTRY = event_format("ftrace", "funcgraph_entry", "func", "depth")
EXIT = event_format("ftrace", "funcgraph_exit", "func", "depth", "calltime", "rettime", "retval", "overrun")
EVENT = event_format("sched", "sched_switch")
MESSAGE = event_format("ftrace", "print", "ip")


@dataclass
class FakeRecord:
    format: EventFormat = EVENT
    ts: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    cpu: int = 0
    pid: int = 1
    comm: bytes = b"init"
    tgid: int | None = None
    flags: int = 0
    preempt_count: int = 0
    lost: int | None = None
    buffer: int = 0

    @property
    def payload(self) -> bytes:
        """As event_format lays it out."""
        names = [f.name for f in self.format.fields]
        return bytes(8) + b"".join((self.values.get(n, 0) % (1 << 64)).to_bytes(8, "little") for n in names)

    def value(self, name: str) -> Any:
        return self.values[name]

    __getitem__ = value


def entry(ts: int, func: int, depth: int = 0, **more: Any) -> FakeRecord:
    return FakeRecord(ENTRY, ts, {"func": func, "depth": depth}, **more)


def leave(ts: int, func: int, depth: int = 0, took: int = 1000, retval: int = 0, **more: Any) -> FakeRecord:
    values = {"func": func, "depth": depth, "calltime": ts - took, "rettime": ts, "retval": retval, "overrun": 0}
    return FakeRecord(EXIT, ts, values, **more)


@dataclass(frozen=True)
class FakeSymbol:
    name: str
    start: int
    module: str = ""
    size: int | None = 0x40


class FakeSymbols:
    """Functions f0, f1, ... of 0x40 bytes each, from address 0x1000 on."""

    def lookup(self, address: int, *, trace_cmd: bool = False) -> FakeSymbol | None:
        if not 0x1000 <= address < 0x2000:
            return None
        number = (address - 0x1000) // 0x40
        return FakeSymbol(f"f{number}", 0x1000 + 0x40 * number)

    def by_name(self, name: str) -> int | None:
        return 0x1FC0 if name == "return_to_handler" else None


def func(number: int) -> int:
    return 0x1000 + 0x40 * number


def kernel_text(path: Any, *options: str, buffer: str = "") -> str:
    """The kernel-style report of a recording."""
    with ftbuf.open(path) as trace:
        return b"".join(kernel_report(trace, KernelRequest(buffer, options))).decode("utf-8", "surrogateescape")


def lines_without_banner(text: str) -> list[str]:
    return [HEX.sub("<hex>", line.rstrip()) for line in text.splitlines() if not line.startswith("#")]
