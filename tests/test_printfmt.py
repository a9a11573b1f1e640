"""Print formats: compiled, and rendered as the kernel or as trace-cmd does."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from expr_helpers import Made, field, sample
from hypothesis import given, settings
from hypothesis import strategies as st

from ftbuf import _core
from ftbuf.bytecode import CompileError, disassemble
from ftbuf.lookups import Lookups, string_columns, symbol_columns
from ftbuf.names import Symbols
from ftbuf.printfmt import KERNEL, TRACE_CMD, compile_print_fmt

BOTH = pytest.mark.parametrize("big_endian", [False, True])


@BOTH
@pytest.mark.parametrize(
    ("print_fmt", "text"),
    [  # FORMAT.md 2.4, column "correct"
        ('"%d", REC->prio-1-1', "118"),
        ('"%d", REC->prio*(2+3)', "600"),
        ('"%d", 100/(2+3)', "20"),
        ('"%d", REC->pid/(1-1+2)', "299"),
        ('"%d", 10%4*2', "4"),
        ('"%d", REC->pid?1:REC->prio?2:3', "1"),
        ('"%d", REC->neg<0', "1"),
        ('"%d", REC->neg>-10', "1"),
        ('"%d", REC->prio<-1', "0"),
        ('"%s", __get_str(rs)[0] ? "a":"b"', "a"),
        ('"%d", ((u32*)__get_dynamic_array(da))[1]', "22"),
        ('"%s", (char *)REC->comm', "dpkg-deb"),
        ('"%d", sizeof(REC->comm)', "16"),
        ('"%d", 5/0', "0"),
        ('"%s", __print_hex(REC->bytes,9999999)', "00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f"),
        ('"%d", __get_rel_dynamic_array_len(rs)', "4"),
    ],
)
def test_vectors(print_fmt: str, text: str, big_endian: bool) -> None:
    assert sample(big_endian=big_endian).body(print_fmt) == text
    assert sample(big_endian=big_endian).kernel_body(print_fmt) == text


def test_flags_of_no_field_are_an_error() -> None:
    with pytest.raises(CompileError, match="no field nosuch"):
        sample().body('"%s", __print_flags(REC->nosuch, "|", {1, "A"})')


@BOTH
@pytest.mark.parametrize(
    ("print_fmt", "text"),
    [
        ('"plain"', "plain"),
        ('"a%%b"', "a%b"),
        (r'"tab\there \"q\" back\\slash"', 'tab\there "q" back\\slash'),
        ('"pid" "=%d" " end", REC->pid', "pid=599 end"),
        ('"say "%s" now", REC->comm', 'say "dpkg-deb" now'),
        (
            '"%d|%5d|%-5d|%05d|%+d|% d", REC->pid, REC->pid, REC->pid, REC->pid, REC->pid, REC->pid',
            "599|  599|599  |00599|+599| 599",
        ),
        ('"%d %5d %-5d| %05d", REC->neg, REC->neg, REC->neg, REC->neg', "-5    -5 -5   | -0005"),
        (
            '"%x %#x %X %#X %08x %o %#o", REC->pid, REC->pid, REC->mask, REC->mask, REC->pid, REC->prio, REC->prio',
            "257 0x257 F0000001 0XF0000001 00000257 170 0170",
        ),
        ('"%.5d %.0d. %8.3d", REC->pid, REC->common_preempt_count, REC->neg', "00599 .     -005"),
        ('"%u %u", REC->mask, REC->neg', "4026531841 4294967291"),
        ('"%lu %lx %ld", REC->big, REC->big, REC->big', "18446744069414584325 ffffffff00000005 -4294967291"),
        (
            '"%llu %Lu %hd %hhd %hu %hhu", REC->big, REC->big, REC->mask, REC->mask, REC->list[2], REC->list[2]',
            "18446744069414584325 18446744069414584325 1 1 65535 255",
        ),
        ('"%*d|%-*d|%.*d", 5, REC->prio, 5, REC->prio, 5, REC->prio', "  120|120  |00120"),
        ('"%*d|", -5, REC->prio', "120  |"),
        ("\"%c%c %3c\", 65, REC->comm[0], 'z'", "Ad   z"),
        (
            '"%s|%10s|%-10s|%.4s|%*s|%.*s", REC->comm, REC->comm, REC->comm, REC->comm, 9, REC->comm, 3, REC->comm',
            "dpkg-deb|  dpkg-deb|dpkg-deb  |dpkg| dpkg-deb|dpk",
        ),
        ('"%s %s", __get_str(ds), __get_rel_str(rs)', "hello xyz"),
        ('"%s|%5s|%-5s|", "lit", "lit", "lit"', "lit|  lit|lit  |"),
        ('"%s", REC->pid ? "yes" : "no"', "yes"),
        ('"%s", REC->neg > 0 ? "pos" : REC->neg == -5 ? __get_str(ds) : "none"', "hello"),
        ('"%s", ((void *)0)', "(null)"),
        ('"%s", __print_symbolic(REC->prio, {119, "a"}, { 120, "b" "c" }, {120, "d"})', "bc"),
        ('"%s", __print_symbolic(REC->prio, {1, "a"})', "0x78"),
        ('"%s", __print_symbolic(REC->prio, { })', "0x78"),
        (
            '"%6s|%-6s|", __print_symbolic(REC->prio, {120, "b"}), __print_symbolic(REC->prio, {120, "b"})',
            "     b|b     |",
        ),
        ('"%s", __print_flags(REC->prio, "|", {8, "E"}, {0x10, "S"}, {0x100, "no"})', "E|S|0x60"),
        ('"%s.", __print_flags(0, "|", {8, "E"})', "."),
        ('"%s", __print_flags(REC->mask, ":", {1, "one"}, {0xf0000000, "high"})', "one:high"),
        ('"%s", REC->prio & 0x40 ? __print_flags(REC->prio & 0xc0, "|", {0x40, "X"}, {0x80, "Y"}) : "R"', "X"),
        (
            '"%s %s", __print_hex(__get_str(ds), 3), __print_hex_str(__get_str(ds), __get_dynamic_array_len(ds))',
            "68 65 6c 68656c6c6f00",
        ),
        (
            '"%s", __print_array(__get_dynamic_array(da), __get_dynamic_array_len(da) / sizeof(u32), sizeof(u32))',
            "{0xb,0x16,0x21}",
        ),
        ('"%s", __print_array(REC->list, 99, 2)', "{0x1,0x2,0xffff}"),
        ('"%s", __print_dynamic_array(da, sizeof(u32))', "{0xb,0x16,0x21}"),
        ('"%s", __get_bitmask(cpus)', "00000000,0000002d"),
        ('"%*pbl %*pb", 6, __get_dynamic_array(cpus), 8, __get_dynamic_array(cpus)', "0,2-3,5 2d"),
        (
            '"%*ph|%*phC|%*phD|%*phN|%3ph", 3, REC->bytes, 3, REC->bytes, 3, REC->bytes, 3, REC->bytes, REC->bytes',
            "00 01 02|00:01:02|00-01-02|000102|00 01 02",
        ),
        ('"%*ph", REC->pid, __get_str(ds)', "68 65 6c 6c 6f 00"),
        (
            '"%pM %pm %pMF %pMR", REC->bytes, REC->bytes, REC->bytes, REC->bytes',
            "00:01:02:03:04:05 000102030405 00-01-02-03-04-05 05:04:03:02:01:00",
        ),
        ('"%pI4 %pi4", REC->bytes, REC->bytes', "0.1.2.3 000.001.002.003"),
        (
            '"%pI6 %pi6 %pI6c", REC->bytes, REC->bytes, REC->bytes',
            "0001:0203:0405:0607:0809:0a0b:0c0d:0e0f 000102030405060708090a0b0c0d0e0f 1:203:405:607:809:a0b:c0d:e0f",
        ),
        (
            '"%pU %pUB %pUl %pUL", REC->bytes, REC->bytes, REC->bytes, REC->bytes',
            "00010203-0405-0607-0809-0a0b0c0d0e0f 00010203-0405-0607-0809-0A0B0C0D0E0F "
            "03020100-0504-0706-0809-0a0b0c0d0e0f 03020100-0504-0706-0809-0A0B0C0D0E0F",
        ),
        ('"%px", 0x1234', "0x1234"),
        ('"%d", ({ int a = (REC->pid); int b = (128); ((a) < (b) ? (a) : (b)); })', "128"),
        ('"%s", ({ int a = REC->pid; a > 5 ? "big" : "small"; })', "big"),
        ('"%s", xen_hypercall_name(29)', "(sched_op)"),
        ('"%s", mc_event_error_type(1)', "Uncorrected"),
        ('"%s", __print_symbolic(1, {nobody_knows, "x"}, {1, "y"})', "y"),
    ],
)
def test_conversions(print_fmt: str, text: str, big_endian: bool) -> None:
    assert sample(big_endian=big_endian).body(print_fmt) == text


@pytest.mark.parametrize(
    ("print_fmt", "tracecmd", "kernel"),
    [
        ('"%p %p", REC->ptr, 0', "0xffff888000001000 (nil)", "ffff888000001000 0000000000000000"),
        ('"%#x", REC->common_preempt_count', "0", "0x0"),
        ('"%s", __get_cpumask(cpus)', "0,2-3,5", "00000000,0000002d"),
        ('"page=%p", (struct page *)vmemmap_base + REC->pid', "page=(nil)", "page=0000000000000000"),
    ],
)
def test_where_the_kernel_and_trace_cmd_differ(print_fmt: str, tracecmd: str, kernel: str) -> None:
    assert sample().body(print_fmt) == tracecmd
    assert sample().kernel_body(print_fmt) == kernel


KALLSYMS = b"""ffffffff81000000 T _text
ffffffff81000100 T first
ffffffff81000200 t second
ffffffffc0000000 t inside\t[mod]
"""


@pytest.mark.parametrize(
    ("print_fmt", "address", "tracecmd", "kernel"),
    [
        ("%ps", 0xFFFFFFFF81000110, "first", "first"),
        ("%pS", 0xFFFFFFFF81000110, "first+0x10", "first+0x10/0x100"),
        ("%pF", 0xFFFFFFFF81000100, "first+0x0", "first+0x0/0x100"),
        ("%pB", 0xFFFFFFFF81000200, "first+0x100", "first+0x100/0x100"),
        ("%ps", 0xFFFFFFFFC0000000, "inside", "inside [mod]"),
        ("%ps", 0x1234, "0x1234", "0x1234"),
        ("%8ps|%-8ps|", 0xFFFFFFFF81000110, "   first|first   |", "   first|first   |"),
    ],
)
def test_symbols(print_fmt: str, address: int, tracecmd: str, kernel: str) -> None:
    made = Made(field("void * ip", 8, 8), bytes(8) + struct.pack("<Q", address))
    arguments = ", REC->ip" * print_fmt.count("%")
    for style, expected in ((TRACE_CMD, tracecmd), (KERNEL, kernel)):
        tables = _core.TextTables(symbol_columns(Symbols(KALLSYMS), style))
        assert made.body(f'"{print_fmt}"{arguments}', style, tables=tables) == expected


def test_kernel_strings() -> None:
    made = Made(field("const char * reason", 8, 8), bytes(8) + struct.pack("<Q", 0xFFFF0010))
    tables = _core.TextTables(None, string_columns({0xFFFF0000: b"other", 0xFFFF0010: b"Rescheduling"}))
    assert made.body('"(%s)", REC->reason', tables=tables) == "(Rescheduling)"
    assert made.body('"(%s)", REC->reason') == "(0xffff0010)"


@pytest.mark.parametrize(
    ("data", "form", "text"),
    [
        (struct.pack("<HH4s", 2, 0x5000, bytes([10, 0, 2, 15])), "p", "10.0.2.15:80"),
        (struct.pack("<HH4s", 2, 0x5000, bytes([10, 0, 2, 15])), "", "10.0.2.15"),
        (struct.pack("<HHI16sI", 10, 0x5000, 0, bytes(15) + b"\1", 3), "pc", "[::1]:80"),
        (struct.pack("<HHI16sI", 10, 0x5000, 0, bytes(15) + b"\1", 3), "c", "::1"),
        (struct.pack("<HHI16sI", 10, 0x5000, 0, bytes(15) + b"\1", 3), "pfsc", "[::1]:80/0%3"),
        (struct.pack("<HHI16s", 10, 0, 0, bytes(10) + b"\xff\xff\x0a\0\2\x0f"), "c", "::ffff:10.0.2.15"),
        (struct.pack("<HHI16s", 10, 0, 0, b"\xfe\x80" + bytes(12) + b"\0\1"), "c", "fe80::1"),
        (struct.pack("<HHI16s", 10, 0, 0, b"\x20\1\0\0\0\1" + bytes(10)), "c", "2001:0:1::"),
        (struct.pack("<H", 0), "pc", "(einval)"),
        (struct.pack("<H", 10), "pc", "(efault)"),
    ],
)
def test_socket_addresses(data: bytes, form: str, text: str) -> None:
    made = Made(field("__data_loc u8[] addr", 8, 4), bytes(8) + struct.pack("<I", len(data) << 16 | 12) + data)
    assert made.body(f'"%pIS{form}", __get_sockaddr(addr)') == text


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("28 00 00 00 12 34 00 00 08 00", "lba=4660 txlen=8 protect=0"),
        ("08 01 02 03 00 00", "lba=66051 txlen=256"),
        ("8a 20 00 00 00 00 00 00 10 00 00 00 00 04 00 00", "lba=4096 txlen=4 protect=1"),
        ("12 00 00 00 24 00", "-"),
    ],
)
def test_scsi_commands(command: str, text: str) -> None:
    data = bytes.fromhex(command)
    made = Made(
        field("__data_loc unsigned char[] cmnd", 8, 4), bytes(8) + struct.pack("<I", len(data) << 16 | 12) + data
    )
    assert made.body(f'"%s", scsi_trace_parse_cdb(p, __get_dynamic_array(cmnd), {len(data)})') == text


@pytest.mark.parametrize(
    ("print_fmt", "why"),
    [
        ('"%d"', "1 conversions, but 0 arguments"),
        ("%d", "does not begin with a string"),
        ("", "does not begin with a string"),
        ('"%99999d", 1', "too large"),
        ('"%d", jiffies - REC->pid', "jiffies"),
        ('"%s", REC->pid', "%s of a number"),
        ('"%s", decode_it(REC->pid)', "function decode_it"),
        ('"%d", REC->comm', "array"),
        ('"%pM", REC->pid', "number is used"),
    ],
)
def test_what_cannot_be_understood_says_why(print_fmt: str, why: str) -> None:
    with pytest.raises(CompileError, match=why):
        sample().body(print_fmt)


@pytest.mark.parametrize("long_size", [4, 8])
@pytest.mark.parametrize(
    ("text", "arguments", "body"),
    [
        (b"n=%d s=%s\\n", ("i", 7, "s", b"abc"), "n=7 s=abc"),
        (b"%c%hhd%hd|%d", ("B", 65, "b", -1, "h", -2, "i", 3), "A-1-2|3"),
        (b"%lld %x", ("q", -9, "I", 255), "-9 ff"),
        (b"%-5d|%5.2s|%*d", ("i", 4, "s", b"xyz", "i", 3, "i", 9), "4    |   xy|  9"),
        (b"%pI4 %s", ("s", b"1.2.3.4", "s", b"t"), "1.2.3.4 t"),
        (b"100%% %jd %td", ("q", 1, "l", 2), "100% 1 2"),
    ],
)
def test_trace_printk(text: bytes, arguments: tuple[object, ...], body: str, long_size: int) -> None:
    """The argument buffer is made as K:lib/vsprintf.c vbin_printf does."""
    data = b""
    for code, value in zip(arguments[::2], arguments[1::2], strict=True):
        if code == "s":
            data += value + b"\0"
            continue
        size = long_size if code == "l" else struct.calcsize(code)
        data += bytes(-len(data) % min(size, 4)) + int(value).to_bytes(size, "little", signed=int(value) < 0)
    pointer = "I" if long_size == 4 else "Q"
    made = Made(
        field("unsigned long ip", 8, long_size)
        + field("const char * fmt", 8 + long_size, long_size)
        + field("u32 buf[]", 8 + 2 * long_size, 0),
        bytes(8) + struct.pack("<2" + pointer, 0x100, 0x200) + data,
        long_size=long_size,
    )
    strings = {0x200: text.replace(b"\\n", b"\n")}
    block = compile_print_fmt(made.scope('"%s", __print_printk(REC->fmt, REC->buf)'), TRACE_CMD)

    def printed(known: dict[int, bytes]) -> bytes | str:
        lookups = Lookups(lambda: Symbols(b""), lambda: known, made.scope(), TRACE_CMD)
        return lookups.renderer.body(lookups.program(block), made.payload)

    assert printed(strings) == body.encode()
    assert printed({}) == b"[UNKNOWN FORMAT 0x200]"


def test_unbounded_widths_are_bounded() -> None:
    made = sample()
    made.payload = made.payload[:8] + struct.pack("<i", 2**31 - 1) + made.payload[12:]
    assert len(made.body('"%*d %*s", REC->pid, 1, REC->pid, REC->comm')) == 2 * 4096 + 1


def test_a_failure_takes_its_text_back() -> None:
    made = sample()
    program = _core.Program(compile_print_fmt(made.scope('"before %d", REC->big'), TRACE_CMD))
    assert _core.Renderer(_core.TextTables()).body(program, made.payload[:20]) == "record_short"


def test_columns_of_tables_must_agree() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        _core.TextTables(
            (np.zeros(2, np.uint64), np.zeros(1, np.uint64), np.zeros(2, np.uint32), np.zeros(2, np.uint32), b"")
        )
    with pytest.raises(ValueError, match="differ in length"):
        _core.TextTables(None, (np.zeros(2, np.uint64), np.zeros(2, np.uint32), b""))


_PIECES = st.sampled_from(
    ["%d", "%s", "%5.3x", "%p", "%pS", "%*ph", "%pI6c", "%c", "%-*s", "%%", " text ", "%llu", "%*pbl", "%pU", "%.*s"]
)
_VALUES = st.sampled_from(
    [
        "REC->pid",
        "REC->comm",
        "__get_str(ds)",
        "REC->bytes",
        "__get_dynamic_array(da)",
        "REC->neg",
        "REC->big",
        "REC->ptr",
        "3",
        '__print_flags(REC->mask, "|", {1, "x"})',
        '"lit"',
        "REC->list[REC->neg]",
        "__get_rel_str(rs)",
        "REC->cpus",
    ]
)


@settings(deadline=None, max_examples=300)
@given(st.lists(_PIECES, max_size=5), st.lists(_VALUES, max_size=8), st.data())
def test_any_record_is_text_or_a_status(pieces: list[str], values: list[str], data: st.DataObject) -> None:
    made = sample(big_endian=data.draw(st.booleans()))
    payload = bytearray(made.payload[: data.draw(st.integers(0, len(made.payload)))])
    for _ in range(data.draw(st.integers(0, 6))):
        if payload:
            payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    made.payload = bytes(payload)
    try:
        text = made.body(
            '"' + "".join(pieces) + '"' + "".join(", " + v for v in values),
            data.draw(st.sampled_from([TRACE_CMD, KERNEL])),
        )
    except CompileError:
        return
    assert not text.startswith("!") or text in ("!record_short", "!field_outside")


@pytest.mark.parametrize("style", [TRACE_CMD, KERNEL])
def test_texts_of_every_length(style) -> None:
    """Short pieces are copied in blocks: each length has its own."""
    made = sample()
    for n in range(80):
        text = ("abcdefghijklmnopqrstuvwxyz0123456789" * 3)[:n]
        assert made.body(f'"{text}%d{text}", REC->pid', style) == f"{text}599{text}"


def test_hexadecimal_numbers_of_every_length() -> None:
    made = Made(field("u64 x", 8, 8), bytes(16))
    for n in range(65):
        for value in {(1 << n) - 1, (0xFEDCBA9876543210 >> 64 - n if n else 0)}:
            made.payload = bytes(8) + struct.pack("<Q", value)
            assert made.body('"%llx,%llX,%016llx,%p", REC->x, REC->x, REC->x, REC->x').split(",")[:3] == [
                f"{value:x}", f"{value:X}", f"{value:016x}"]


def test_decimal_numbers_of_every_length() -> None:
    made = Made(field("u64 x", 8, 8) + field("s64 y", 8, 8, 1), bytes(16))
    edges = {10**n + d for n in range(20) for d in (-1, 0, 1)} | {(1 << n) - d for n in range(65) for d in (0, 1)} | {905_060_307}
    for value in sorted(v for v in edges if 0 <= v < 1 << 64):
        made.payload = bytes(8) + struct.pack("<Q", value)
        signed = value - (1 << 64 if value >> 63 else 0)
        assert made.body('"%llu,%lld,%22lld", REC->x, REC->y, REC->y') == f"{value},{signed},{signed:22}"


@pytest.mark.parametrize("end", ["", "\\n", "\\n\\n", "x\\n", "%d", "%d\\n", "%s", "%s\\n"])
def test_one_newline_at_the_end_is_taken_back(end: str) -> None:
    made = sample()
    values = ", REC->pid" if "%d" in end else ", REC->comm" if "%s" in end else ""
    whole = end.replace("%d", "599").replace("%s", "dpkg-deb").replace("\\n", "\n")
    block = compile_print_fmt(made.scope(f'"a{end}"{values}'), TRACE_CMD, chomp=True)
    text = _core.Renderer(_core.TextTables()).body(_core.Program(block), made.payload)
    assert text.decode() == "a" + whole.removesuffix("\n")


@BOTH
def test_fields_are_printed_in_one_operation(big_endian: bool) -> None:
    """A field and an element at a known place take no stack; jumps do not land between what was joined."""
    made = Made(field("int a[4]", 8, 16, 1) + field("s8 b", 24, 1, 1),
                bytes(8) + struct.pack((">" if big_endian else "<") + "4ib", 1, -2, 3, -4, -1), big_endian=big_endian)
    text = '"%d %u %hhx %x %d", REC->a[1], REC->a[3], REC->b, REC->b, REC->b ? REC->a[2] : REC->a[0]'
    assert made.body(text) == "-2 4294967292 ff ffffffff 3"
    names = [line.split()[0] for line in disassemble(compile_print_fmt(made.scope(text), TRACE_CMD))]
    assert names.count("FINT") + names.count("TFINT") == 4 and "INDEX" not in names and "MFIELD" not in names
    assert made.body('"%d %d", REC->a[4], REC->a[-1]') == "0 0"
    made.payload = made.payload[:12]
    assert made.body('"%d", REC->a[0]') == "1"
    assert made.body('"%d", REC->a[1]') == "!record_short"
