"""C expressions: parsed, compiled and evaluated by C's rules. FORMAT.md 2.4 names what other readers get wrong."""

from __future__ import annotations

import contextlib
import re
import struct
from pathlib import Path

import pytest
from expr_helpers import Made, field, sample
from hypothesis import given, settings
from hypothesis import strategies as st

from ftbuf import _core
from ftbuf.bytecode import OPS, CompileError, disassemble
from ftbuf.codegen import compile_value
from ftbuf.errors import FormatError

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize(
    ("expression", "value"),
    [  # FORMAT.md 2.4, column "correct"
        ("REC->prio-1-1", 118),
        ("REC->prio*(2+3)", 600),
        ("100/(2+3)", 20),
        ("REC->pid/(1-1+2)", 299),
        ("10%4*2", 4),
        ("REC->pid?1:REC->prio?2:3", 1),
        ("REC->neg<0", 1),
        ("REC->neg>-10", 1),
        ("REC->prio<-1", 0),
        ("__get_str(rs)[0] ? 1 : 0", 1),
        ("((u32*)__get_dynamic_array(da))[1]", 22),
        ("sizeof(REC->comm)", 16),
        ("5/0", 0),
        ("__get_rel_dynamic_array_len(rs)", 4),
    ],
)
def test_vectors(expression: str, value: int, big_endian: bool) -> None:
    assert sample(big_endian=big_endian).value(expression) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("1<<2+1", 8),
        ("7&3==3", 1),
        ("1|2^3&1", 1 | (2 ^ (3 & 1))),
        ("-3/2", -1),
        ("-3%2", -1),
        ("~0", -1),
        ("!5", 0),
        ("!!5", 1),
        ("- -3", 3),
        ("+4", 4),
        ("0x10", 16),
        ("010", 8),
        ("0b101", 5),
        ("'A'", 65),
        ("'\\n'", 10),
        ("1?2:3", 2),
        ("0?2:0?3:4", 4),
        ("0?:9", 9),
        ("7?:9", 7),
        ("1||1/0", 1),
        ("0&&1/0", 0),
        ("1&&2", 1),
        ("3>2>1", 0),
        ("sizeof(u64)", 8),
        ("sizeof(unsigned int)", 4),
        ("sizeof(unsigned long long)", 8),
        ("sizeof(void *)", 8),
        ("sizeof(char)", 1),
        ("sizeof(struct page)", 64),
        ('sizeof("abc")', 4),
        ("(u8)300", 44),
        ("(s8)200", -56),
        ("(unsigned)-1", 0xFFFFFFFF),
        ("(u64)-1 == -1", 1),
        ("-1 < 1u", 0),
        ("-1 < (u8)1", 1),
        ("-1 < 1UL", 0),
        ("(int)0x80000000", -0x80000000),
        ("0x80000000 < 0", 0),
        ("2147483647 + 1", -0x80000000),
        ("4294967295 + 1", 4294967296),
        ("0xffffffff + 1", 0),
        ("(loff_t)-1", -1),
        ("(gfp_t)5", 5),
        ("(no_such_type)5", 5),
        ("(bool)3", 3),
        ("1 << 31", -0x80000000),
        ("1UL << 63 >> 63", 1),
        ("1LL << 63 >> 63", -1),
        ("1 << 33", 2),
        ("(-2147483647 - 1) / -1", -0x80000000),
        ("5 % 0", 0),
        ("__builtin_expect(!!(3), 0)", 1),
        ("__builtin_constant_p(3)", 0),
        ("__fswab16(0x1234)", 0x3412),
        ("__fswab32(1)", 1 << 24),
        ("({ int a = (4); int b = (9); ((a) < (b) ? (a) : (b)); })", 4),
        ("({ 5; })", 5),
        ("jiffies_to_msecs(250)", 250),
        ("((ktime_t) { .tv64 = 77 }).tv64", 77),
        ("(typeof(1UL))-1 > 0", 1),
        ("sizeof(struct { int:-!!(0); })", 0),
        ("HI_SOFTIRQ", 0),
        ("HRTIMER_MODE_REL_PINNED", 3),
    ],
)
def test_constants(expression: str, value: int) -> None:
    block = compile_value(sample().scope(), expression)
    assert _core.Renderer(_core.TextTables()).value(_core.Program(block), b"") == value


@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("REC->pid", 599),
        ("(REC)->pid", 599),
        ("REC->neg", -5),
        ("REC->small", 200),
        ("REC->tiny", -3),
        ("REC->tiny < 0", 1),
        ("REC->small + 100", 300),
        ("(s8)REC->small", -56),
        ("REC->mask", 0xF0000001),
        ("REC->mask + 0x10000000", 1),
        ("REC->mask * 16ULL", 0xF00000010),
        ("REC->mask > -1", 0),
        ("REC->neg + REC->mask", 0xEFFFFFFC),
        ("REC->big", 0xFFFFFFFF00000005 - 2**64),
        ("REC->big > 0", 1),
        ("(u32)REC->big", 5),
        ("REC->big >> 32", 0xFFFFFFFF),
        ("REC->list[0]", 1),
        ("REC->list[2]", 0xFFFF),
        ("REC->list[3]", 0),
        ("REC->list[-1]", 0),
        ("REC->list[REC->pid]", 0),
        ("*REC->list", 1),
        ("REC->comm[0]", ord("d")),
        ("__get_str(ds)[4]", ord("o")),
        ("__get_dynamic_array_len(da)", 12),
        ("__get_dynamic_array_len(da) / sizeof(u32)", 3),
        ("((u32 *)__get_dynamic_array(da))[2]", 33),
        ("((u32 *)__get_dynamic_array(da))[3]", 0),
        ("*(u32 *)__get_dynamic_array(da)", 11),
        ("((u8 *)__get_dynamic_array(da))[1] + ((u8 *)__get_dynamic_array(da))[2]", 0),
        ("*(__get_str(ds) + 1)", ord("e")),
        ("REC->common_type", 7),
        ("REC->ent.pid", 599),
        ("REC->ptr == 0", 0),
        ("(unsigned long)REC->ptr >> 63", 1),
        ("(long)REC->ptr < 0", 1),
        ("REC->port & 0xff", 0x34),
        ("REC->pid && REC->neg < 0 && !REC->common_preempt_count", 1),
        ("!REC->pid || REC->prio == 120", 1),
        ("(REC->pid == 1 || REC->pid == 599) && REC->prio", 1),
        ("REC->pid == 599 ? REC->neg : REC->mask", 0xFFFFFFFB),
        ("sizeof(REC->list)", 6),
        ("sizeof(REC->list) / sizeof(REC->list[0])", 3),
        ("sizeof(REC->pid)", 4),
        ("({ typeof(REC->pid) x = REC->pid; x + 1; })", 600),
        ("__le16_to_cpup((__le16 *)__get_dynamic_array(ds))", 0x6568),
    ],
)
def test_fields(expression: str, value: int, big_endian: bool) -> None:
    assert sample(big_endian=big_endian).value(expression) == value


def test_long_is_the_kernels() -> None:
    made = Made(field("unsigned long x", 8, 4), bytes(8) + struct.pack("<I", 0xFFFFFFFF), long_size=4)
    assert made.value("REC->x + 1") == 0
    assert made.value("sizeof(long)") == 4
    assert made.value("(1UL << 31) * 2") == 0
    assert made.value("4294967295 + 1") == 4294967296  # too large for a long of 4 bytes, so a long long


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("REC->nosuch", "no field nosuch"),
        ("__get_str(nosuch)", "no field nosuch"),
        ("mystery(REC->pid)", "function mystery"),
        ("vmemmap_base + 1", "known to the kernel alone"),
        ("1 +", "expected a value"),
        ("(1", "expected"),
        ("1 2", "expected the end"),
        ("REC->ptr[0]", "memory of the kernel"),
        ("REC->comm + 0 == 1", "array"),
        ("sizeof(struct nosuch)", "size of a type"),
        ("@", "cannot understand"),
        ("", "expected a value"),
        ("({ x = 1; })", "not understood"),
        ("REC->comm == 5", "array"),
        ("({ int a; })", "not understood"),
    ],
)
def test_what_cannot_be_understood_says_why(expression: str, why: str) -> None:
    with pytest.raises(CompileError, match=re.escape(why)) as caught:
        sample().value(expression)
    assert isinstance(caught.value, FormatError)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100000 + "1",
        "-" * 100000 + "1",
        "1" + "+1" * 100000 + "+REC->pid",
        "f(" * 5000,
        "1?" * 5000 + "1",
        "{" * 5000,
        "REC->" * 5000,
        "(int)" * 5000 + "1",
        "sizeof " * 5000 + "1",
    ],
)
def test_depth_is_limited(text: str) -> None:
    with pytest.raises(CompileError):
        sample().value(text)


def test_long_chains_of_or_are_no_nesting() -> None:
    text = "||".join(f"REC->pid == {pid}" for pid in range(2000))
    assert sample().value(text) == 1


def test_nested_conditionals_compile_once() -> None:
    """A tree is typed and compiled in time that does not double with every level."""
    text = "".join(f"REC->pid == {i} ? {i} : " for i in range(50)) + "-1"
    assert len(disassemble(compile_value(sample().scope(), text))) < 1000


@pytest.mark.parametrize("size", range(0, 100, 7))
def test_short_records_are_said(size: int) -> None:
    made = sample()
    made.payload = made.payload[:size]
    assert made.value("REC->big") in ("record_short", 0xFFFFFFFF00000005 - 2**64)
    assert made.value("__get_str(ds)[0]") in ("record_short", "field_outside")


def test_dynamic_field_outside_is_said() -> None:
    made = sample()
    made.payload = made.payload[:36] + struct.pack("<I", 0xFFFF << 16 | 50) + made.payload[40:]
    assert made.value("__get_str(ds)[0]") == "field_outside"
    assert made.value("__get_dynamic_array_len(ds)") == "field_outside"


def test_the_two_lists_of_operations_agree() -> None:
    header = (ROOT / "csrc" / "ftb_expr.h").read_text()
    listed = {m[0]: tuple(map(int, m[1:])) for m in re.findall(r"X\((\w+), (\d), (\d), (\d), (\d)\)", header)}
    assert list(listed.items()) == list(OPS.items())


Tree = tuple[str, int, int, bool]  # text, and by the rules of C: value, bits, signed


def _wrap(value: int, bits: int, signed: bool) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


_LEAVES: list[Tree] = [
    ("REC->pid", 599, 32, True),
    ("REC->neg", -5, 32, True),
    ("REC->small", 200, 32, True),
    ("REC->tiny", -3, 32, True),
    ("REC->mask", 0xF0000001, 32, False),
    ("3", 3, 32, True),
    ("0", 0, 32, True),
    ("7u", 7, 32, False),
    ("0x80000000", 0x80000000, 32, False),
    ("1ULL", 1, 64, False),
    ("9LL", 9, 64, True),
]
_ARITHMETIC = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
_RELATIONS = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _binary(left: Tree, operator: str, right: Tree) -> Tree:
    text = f"({left[0]} {operator} {right[0]})"
    if operator == "&&":
        return text, int(bool(left[1] and right[1])), 32, True
    if operator == "||":
        return text, int(bool(left[1] or right[1])), 32, True
    bits = max(left[2], right[2])
    signed = left[3] and right[3] if left[2] == right[2] else max(left, right, key=lambda t: t[2])[3]
    a, b = _wrap(left[1], bits, signed), _wrap(right[1], bits, signed)
    if operator in _RELATIONS:
        return text, int(_RELATIONS[operator](a, b)), 32, True
    return text, _wrap(_ARITHMETIC[operator](a, b), bits, signed), bits, signed


def _unary(operator: str, kid: Tree) -> Tree:
    text, value, bits, signed = kid
    if operator in ("-", "~"):
        return f"({operator} {text})", _wrap(-value if operator == "-" else ~value, bits, signed), bits, signed
    if operator == "!":
        return f"(!{text})", int(not value), 32, True
    width, is_signed = {"u8": (8, False), "s16": (16, True), "u32": (32, False), "s64": (64, True)}[operator]
    return f"(({operator}){text})", _wrap(value, width, is_signed), max(width, 32), is_signed or width < 32


_TREES = st.recursive(
    st.sampled_from(_LEAVES),
    lambda kid: (
        st.builds(_binary, kid, st.sampled_from([*_ARITHMETIC, *_RELATIONS, "&&", "||"]), kid)
        | st.builds(_unary, st.sampled_from(["-", "~", "!", "u8", "s16", "u32", "s64"]), kid)
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=300)
@given(_TREES)
def test_any_expression_has_cs_value(tree: Tree) -> None:
    text, value, _, _ = tree
    assert sample().value(text) == _wrap(value, 64, True)


@settings(deadline=None, max_examples=300)
@given(st.text(alphabet=list("REC->pid()+-*/%<>=!&|?:[]{}\"',;0123456789xuL sizeofint_"), max_size=60))
def test_any_text_is_a_value_or_a_named_error(text: str) -> None:
    with contextlib.suppress(CompileError):
        sample().value(text)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_a_damaged_program_is_refused_or_harmless(data: st.DataObject) -> None:
    made = sample()
    block = bytearray(compile_value(made.scope(), "REC->pid ? __get_str(ds)[1] : REC->list[2] + 3"))
    for _ in range(data.draw(st.integers(1, 4))):
        block[data.draw(st.integers(0, len(block) - 1))] = data.draw(st.integers(0, 255))
    try:
        program = _core.Program(bytes(block))
    except ValueError:
        return
    renderer = _core.Renderer(_core.TextTables())
    (renderer.value if program.result else renderer.body)(program, made.payload)
