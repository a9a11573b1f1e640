"""The bytecode of expressions and print formats: operations, and the assembler that packs them for the C evaluator."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .errors import FormatError

# name: (integers popped, pushed, mems popped, pushed); csrc/ftb_expr.h has the same list in the same order.
OPS: dict[str, tuple[int, int, int, int]] = {
    "END": (0, 0, 0, 0),
    "PUSH": (0, 1, 0, 0),
    "FIELD": (0, 1, 0, 0),
    "CONTEXT": (0, 1, 0, 0),
    "DYNLEN": (0, 1, 0, 0),
    "CONV": (1, 1, 0, 0),
    "NEG": (1, 1, 0, 0),
    "NOT": (1, 1, 0, 0),
    "LNOT": (1, 1, 0, 0),
    "SWAP": (1, 1, 0, 0),
    "ADD": (2, 1, 0, 0),
    "SUB": (2, 1, 0, 0),
    "MUL": (2, 1, 0, 0),
    "DIV": (2, 1, 0, 0),
    "MOD": (2, 1, 0, 0),
    "SHL": (2, 1, 0, 0),
    "SHR": (2, 1, 0, 0),
    "AND": (2, 1, 0, 0),
    "OR": (2, 1, 0, 0),
    "XOR": (2, 1, 0, 0),
    "EQ": (2, 1, 0, 0),
    "NE": (2, 1, 0, 0),
    "LT": (2, 1, 0, 0),
    "LE": (2, 1, 0, 0),
    "GT": (2, 1, 0, 0),
    "GE": (2, 1, 0, 0),
    "JUMP": (0, 0, 0, 0),
    "JZ": (1, 0, 0, 0),
    "JNZ": (1, 0, 0, 0),
    "DUP": (1, 2, 0, 0),
    "POP": (1, 0, 0, 0),
    "SET": (1, 0, 0, 0),
    "GET": (0, 1, 0, 0),
    "ARG": (0, 1, 0, 0),
    "ARGMEM": (0, 0, 0, 1),
    "MFIELD": (0, 0, 0, 1),
    "MDYN": (0, 0, 0, 1),
    "MTAIL": (0, 0, 0, 1),
    "MPOOL": (0, 0, 0, 1),
    "MCOMM": (0, 0, 0, 1),
    "MCOMMOF": (1, 0, 0, 1),
    "MLOOKUP": (1, 0, 0, 1),
    "MSKIP": (1, 0, 1, 1),
    "MDROP": (0, 0, 1, 0),
    "INDEX": (1, 1, 1, 0),
    "MLEN": (0, 1, 1, 0),
    "STREQ": (0, 1, 1, 0),
    "GLOB": (0, 1, 1, 0),
    "MASK": (0, 1, 1, 0),
    "REGEX": (0, 1, 1, 0),
    "IN": (1, 1, 0, 0),
    "TEXT": (0, 0, 0, 0),
    "TFINT": (0, 0, 0, 0),
    "MARK": (0, 1, 0, 0),
    "PAD": (3, 0, 0, 0),
    "INT": (1, 0, 0, 0),
    "FINT": (0, 0, 0, 0),
    "INTX": (3, 0, 0, 0),
    "CHAR": (1, 0, 0, 0),
    "STR": (0, 0, 1, 0),
    "STRX": (2, 0, 1, 0),
    "PSTR": (1, 0, 0, 0),
    "PTR": (1, 0, 0, 0),
    "SYM": (1, 0, 0, 0),
    "FLAGS": (1, 0, 0, 0),
    "SYMBOLIC": (1, 0, 0, 0),
    "HEX": (1, 0, 1, 0),
    "ARRAY": (2, 0, 1, 0),
    "HEXDUMP": (5, 0, 1, 0),
    "BITS": (1, 0, 1, 0),
    "MAC": (0, 0, 1, 0),
    "IP4": (0, 0, 1, 0),
    "IP6": (0, 0, 1, 0),
    "SOCKADDR": (0, 0, 1, 0),
    "UUID": (0, 0, 1, 0),
    "FOURCC": (0, 0, 1, 0),
    "ESCAPED": (0, 0, 1, 0),
    "CDB": (1, 0, 1, 0),
    "BPRINT": (1, 0, 1, 0),
    "STACK": (1, 0, 1, 0),
    "OPAQUE": (0, 0, 1, 0),
    "CHOMP": (0, 0, 0, 0),
    "CALLS": (2, 0, 0, 0),
}
CODES = {name: code for code, name in enumerate(OPS)}

SIGNED = 0x80
INT_STACK, MEM_STACK, LOCALS = 64, 8, 16
SLACK = 32  # bytes behind every text of the pool
MAGIC = 0x31425446
_HEADER = struct.Struct("=IIIBBxx")
_OP = struct.Struct("=BBBBIQ")
_U64 = (1 << 64) - 1
_MAX_OPS = 1 << 16
_MAX_POOL = 1 << 24


class CompileError(FormatError):
    """An expression or a print format that cannot be understood; the message says why."""


@dataclass(frozen=True, slots=True)
class Int:
    """An integer type: its bytes and whether it has a sign."""

    size: int
    signed: bool

    @property
    def code(self) -> int:
        return self.size | (SIGNED if self.signed else 0)

    def wrap(self, value: int) -> int:
        """``value`` as this type holds it."""
        bits = 8 * self.size
        value &= (1 << bits) - 1
        return value - (1 << bits) if self.signed and value >> (bits - 1) else value


S32, U32, S64, U64 = Int(4, True), Int(4, False), Int(8, True), Int(8, False)


class Label:
    """A place ahead in the program; all jumps go forward."""

    __slots__ = ("depth", "sources")

    def __init__(self) -> None:
        self.sources: list[int] = []
        self.depth: tuple[int, int] | None = None


@dataclass(slots=True)
class Op:
    name: str
    size: int
    arg: int
    imm: int
    depth: int
    mem_depth: int


def _divide(a: int, b: int) -> int:
    """C division; 0 by the rule that a division by zero is 0."""
    quotient = abs(a) // abs(b) if b else 0
    return -quotient if (a < 0) != (b < 0) else quotient


FOLD: dict[str, Callable[[int, int], int]] = {
    "ADD": lambda a, b: a + b,
    "SUB": lambda a, b: a - b,
    "MUL": lambda a, b: a * b,
    "DIV": _divide,
    "MOD": lambda a, b: a - b * _divide(a, b) if b else 0,
    "AND": lambda a, b: a & b,
    "OR": lambda a, b: a | b,
    "XOR": lambda a, b: a ^ b,
    "EQ": lambda a, b: int(a == b),
    "NE": lambda a, b: int(a != b),
    "LT": lambda a, b: int(a < b),
    "LE": lambda a, b: int(a <= b),
    "GT": lambda a, b: int(a > b),
    "GE": lambda a, b: int(a >= b),
}
COMPARISONS = frozenset(("EQ", "NE", "LT", "LE", "GT", "GE"))


@dataclass(slots=True)
class Assembler:
    """Collects operations, keeps the depths of both stacks, folds constants."""

    big_endian: bool
    long_size: int
    ops: list[Op] = field(default_factory=list)
    pool: bytearray = field(default_factory=bytearray)
    depth: int = 0
    mem_depth: int = 0
    locals: int = 0
    _texts: dict[bytes, int] = field(default_factory=dict)
    _barrier: int = 0  # no folding across a label

    def emit(self, name: str, *, size: int = 0, arg: int = 0, imm: int = 0) -> None:
        ipop, ipush, mpop, mpush = OPS[name]
        if self.depth < ipop or self.mem_depth < mpop:
            raise CompileError(f"operands missing for {name}")
        if not 0 <= arg < 1 << 32:
            raise CompileError(f"operand of {name} out of range: {arg}")
        self.ops.append(Op(name, size, arg, imm & _U64, self.depth, self.mem_depth))
        self.depth += ipush - ipop
        self.mem_depth += mpush - mpop
        if self.depth > INT_STACK or self.mem_depth > MEM_STACK:
            raise CompileError("expression needs too many intermediate values")
        if len(self.ops) > _MAX_OPS:
            raise CompileError("expression is too long")

    def _just_before(self, name: str, back: int = 1) -> Op | None:
        """The ``back``-th last operation, when it is of this name and no label stands after it."""
        at = len(self.ops) - back
        return self.ops[at] if at >= self._barrier and self.ops[at].name == name else None

    def index(self, element: Int) -> None:
        """The element of the memory and at the index on top; one that is known to be in a field is a field itself."""
        at, array = self.constant(), self._just_before("MFIELD", 2)
        if at is not None and array is not None and (at + 1) * element.size <= array.imm:
            self.unpush()
            self.ops.pop()
            self.mem_depth -= 1
            self.emit("FIELD", arg=array.arg + at * element.size, size=element.code)
        else:
            self.emit("INDEX", size=element.code)

    def integer_text(self, kind: Int, spec: int) -> None:
        """Print the integer on top, as one of this type; a field, and a short text before it, in one operation."""
        value = self._just_before("FIELD")
        if value is None:
            self.emit("INT", size=kind.code, imm=spec)
            return
        self.ops.pop()
        self.depth -= 1
        text = self._just_before("TEXT")
        is_plain = spec & ~(SPEC_KERNEL << 32) in (10 << 40, *(() if kind.signed else (16 << 40,)))
        if text is not None and text.imm <= SLACK and is_plain and value.arg <= 0xFFFF:
            self.ops.pop()
            imm = value.arg | text.imm << 16 | spec & 0xFF << 40 | kind.code << 48
            self.emit("TFINT", size=value.size, arg=text.arg, imm=imm)
        else:
            self.emit("FINT", size=value.size, arg=value.arg, imm=spec | kind.code << 48)

    def chomp(self) -> None:
        """Take back a newline that ends the text; where it is known what that ends with, now."""
        if any(self._just_before(name) for name in ("INT", "FINT", "TFINT", "PTR")):
            return
        last = self._just_before("TEXT")
        if last is None:
            self.emit("CHOMP")
        elif self.pool[last.arg + last.imm - 1] == ord("\n"):
            self.ops.pop()
            self.text(bytes(self.pool[last.arg : last.arg + last.imm - 1]))

    # -- constants

    def push(self, value: int) -> None:
        self.emit("PUSH", imm=value)

    def constant(self, back: int = 1) -> int | None:
        """The value of the ``back``-th last operation when it and all after it push constants."""
        if len(self.ops) - back < self._barrier or any(op.name != "PUSH" for op in self.ops[len(self.ops) - back :]):
            return None
        return self.ops[-back].imm

    def unpush(self) -> int:
        """Take the constant that was pushed last back."""
        op = self.ops.pop()
        assert op.name == "PUSH"
        self.depth -= 1
        return op.imm

    def truth(self) -> bool | None:
        """Take the value that was pushed last back when it is a constant; what it means as a condition."""
        return None if self.constant() is None else bool(self.unpush())

    def convert(self, source: Int, target: Int) -> None:
        """Bring the value on top from one integer type to another."""
        if source == target or target.size == 8 or (target.size > source.size and source.signed <= target.signed):
            return  # the 64-bit slot already holds it
        value = self.constant()
        if value is None:
            self.emit("CONV", size=target.code)
        else:
            self.unpush()
            self.push(target.wrap(value))

    def unary(self, name: str, kind: Int) -> None:
        value = self.constant()
        if value is None:
            self.emit(name, size=kind.code)
            return
        self.unpush()
        value = kind.wrap(value)
        self.push({"NEG": kind.wrap(-value), "NOT": kind.wrap(~value), "LNOT": int(not value)}[name])

    def binary(self, name: str, kind: Int) -> None:
        """Both operands are already of type ``kind``."""
        if self.constant(2) is None or name in ("SHL", "SHR"):
            if self.constant(2) is not None:
                self._fold_shift(name, kind)
                return
            self.emit(name, size=kind.code)
            return
        b, a = kind.wrap(self.unpush()), kind.wrap(self.unpush())
        value = FOLD[name](a, b)
        self.push(value if name in COMPARISONS else kind.wrap(value))

    def _fold_shift(self, name: str, kind: Int) -> None:
        count = self.unpush() & (8 * kind.size - 1)
        value = kind.wrap(self.unpush())
        self.push(kind.wrap(value << count if name == "SHL" else value >> count))

    # -- jumps

    def jump(self, name: str, label: Label) -> None:
        label.sources.append(len(self.ops))
        self.emit(name)
        self._meet(label)

    def _meet(self, label: Label) -> None:
        here = (self.depth, self.mem_depth)
        if label.depth not in (None, here):
            raise CompileError("branches of ?: leave different values")
        label.depth = here

    def place(self, label: Label, *, reachable: bool = True) -> None:
        """Let ``label`` stand here. ``reachable``: the operation before runs into it."""
        if reachable:
            self._meet(label)
        assert label.depth is not None
        self.depth, self.mem_depth = label.depth
        for source in label.sources:
            self.ops[source].arg = len(self.ops)
        self._barrier = len(self.ops)

    # -- pool

    def intern(self, data: bytes) -> int:
        """Offset of ``data`` in the pool."""
        where = self._texts.get(data)
        if where is None:
            where = self._texts[data] = self._append(data)
        return where

    def _append(self, data: bytes) -> int:
        where = len(self.pool)
        if where + len(data) > _MAX_POOL:
            raise CompileError("texts of the expression are too long")
        self.pool += data
        return where

    def table(self, entries: list[tuple[int, bytes]], *, ordered: bool) -> int:
        """A table of values and texts for FLAGS and SYMBOLIC. ``ordered``: values ascend, so it can be searched."""
        rows = [(value & _U64, self.intern(text), len(text)) for value, text in entries]
        packed = struct.pack("=II", len(rows), int(ordered)) + b"".join(struct.pack("=QII", *row) for row in rows)
        return self._append(packed)

    def ranges(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Whether the value on top is in one of some ascending ranges (first, last) of unsigned 64-bit numbers."""
        packed = b"".join(struct.pack("=QQ", *pair) for pair in ranges)
        self.emit("IN", arg=self.intern(packed), imm=len(ranges))

    def text(self, data: bytes) -> None:
        """Literal text; joined to literal text just before it."""
        if not data:
            return
        last = self.ops[-1] if len(self.ops) > self._barrier else None
        if last is not None and last.name == "TEXT":
            data = bytes(self.pool[last.arg : last.arg + last.imm]) + data
            self.ops.pop()
        self.emit("TEXT", arg=self.intern(data), imm=len(data))

    def local(self) -> int:
        if self.locals == LOCALS:
            raise CompileError("statement expression has too many variables")
        self.locals += 1
        return self.locals - 1

    def finish(self) -> bytes:
        """The program as one block of bytes, in host order."""
        if self.mem_depth or self.depth > 1:
            raise CompileError("expression leaves values behind")
        self.emit("END")
        self.pool += bytes(SLACK)
        header = _HEADER.pack(MAGIC, len(self.ops), len(self.pool), self.big_endian, self.long_size)
        body = b"".join(_OP.pack(CODES[o.name], o.size, o.depth, o.mem_depth, o.arg, o.imm) for o in self.ops)
        return header + body + bytes(self.pool)


# Flags of a printf conversion (enum ftb_spec_flags).
SPEC_LEFT, SPEC_PLUS, SPEC_SPACE, SPEC_ALT, SPEC_ZERO, SPEC_UPPER, SPEC_KERNEL = 1, 2, 4, 8, 16, 32, 64


def spec(*, width: int = 0, precision: int = -1, flags: int = 0, base: int = 10) -> int:
    """One printf conversion packed for an operation's imm."""
    if not (0 <= width < 1 << 15 and -1 <= precision < 1 << 15):
        raise CompileError("width or precision of a conversion is too large")
    return width | (precision + 1) << 16 | flags << 32 | base << 40


def names_used(block: bytes) -> set[str]:
    """Names of the operations of a program."""
    _, count, _, _, _ = _HEADER.unpack_from(block)
    names = list(OPS)
    return {names[code] for code in set(block[_HEADER.size : _HEADER.size + _OP.size * count : _OP.size])}


def disassemble(block: bytes) -> list[str]:
    """One line per operation, for tests and for looking at."""
    _, count, _, _, _ = _HEADER.unpack_from(block)
    names = list(OPS)
    lines = []
    for index in range(count):
        code, size, _, _, arg, imm = _OP.unpack_from(block, _HEADER.size + _OP.size * index)
        lines.append(f"{names[code]} {size:#x} {arg} {imm:#x}")
    return lines
