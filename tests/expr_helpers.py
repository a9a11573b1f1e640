"""Events made by hand, for tests of expressions and print formats."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ftbuf import _core
from ftbuf.codegen import Scope, compile_value
from ftbuf.formats import parse_format
from ftbuf.printfmt import KERNEL, TRACE_CMD, Style, compile_print_fmt

HEAD = """name: made
ID: 7
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

"""


@dataclass
class Made:
    """An event of given fields and one record of it."""

    fields: str
    payload: bytes
    big_endian: bool = False
    long_size: int = 8

    def scope(self, print_fmt: str = '""') -> Scope:
        text = HEAD + self.fields + "\nprint fmt: " + print_fmt + "\n"
        event = parse_format(text.encode("utf-8", "surrogateescape"), "made", long_size=self.long_size)
        return Scope(event, self.big_endian, self.long_size)

    def value(self, expression: str) -> int | str:
        program = _core.Program(compile_value(self.scope(), expression))
        return _core.Renderer(_core.TextTables()).value(program, self.payload)

    def body(self, print_fmt: str, style: Style = TRACE_CMD, *, tables: _core.TextTables | None = None) -> str:
        program = _core.Program(compile_print_fmt(self.scope(print_fmt), style))
        text = _core.Renderer(tables or _core.TextTables()).body(program, self.payload)
        return text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else f"!{text}"

    def kernel_body(self, print_fmt: str) -> str:
        return self.body(print_fmt, KERNEL)


def field(declaration: str, offset: int, size: int, signed: int = 0) -> str:
    return f"\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n"


def sample(*, big_endian: bool = False) -> Made:
    """The event of FORMAT.md 2.4: pid=599, prio=120, neg=-5, comm="dpkg-deb", and dynamic fields."""
    order = ">" if big_endian else "<"
    fields = (
        field("int pid", 8, 4, 1)
        + field("int prio", 12, 4, 1)
        + field("int neg", 16, 4, 1)
        + field("char comm[16]", 20, 16)
        + field("__data_loc char[] ds", 36, 4)
        + field("__data_loc u32[] da", 40, 4)
        + field("__rel_loc char[] rs", 44, 4)
        + field("unsigned char small", 48, 1)
        + field("signed char tiny", 49, 1, 1)
        + field("unsigned short port", 50, 2)
        + field("unsigned int mask", 52, 4)
        + field("u64 big", 56, 8)
        + field("u16 list[3]", 64, 6)
        + field("void * ptr", 72, 8)
        + field("u8 bytes[16]", 80, 16)
        + field("__data_loc cpumask_t cpus", 96, 4)
    )
    dynamic = (
        b"hello\0" + b"\0\0" + struct.pack(order + "3I", 11, 22, 33) + b"xyz\0" + struct.pack(order + "Q", 0b101101)
    )
    start = 100
    loc = [
        len(p) << 16 | at
        for p, at in ((b"hello\0", start), (b"x" * 12, start + 8), (b"xyz\0", start + 20 - 48), (b"x" * 8, start + 24))
    ]
    fixed = struct.pack(
        order + "HBBi iii16s III Bb H I Q 3H xx Q 16s I",
        7,
        1,
        0,
        599,
        599,
        120,
        -5,
        b"dpkg-deb",
        loc[0],
        loc[1],
        loc[2],
        200,
        -3,
        0x1234,
        0xF0000001,
        0xFFFFFFFF00000005,
        1,
        2,
        0xFFFF,
        0xFFFF888000001000,
        bytes(range(16)),
        loc[3],
    )
    assert len(fixed) == start
    return Made(fields, fixed + dynamic, big_endian)
