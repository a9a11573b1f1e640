"""C expressions, as print formats have them: text -> tokens -> tree. ``codegen`` turns the tree into bytecode.

The grammar is the part of C that occurs in the kernel's print formats: all operators but assignment and the comma,
casts, sizeof, GNU ``?:`` and statement expressions that declare and then compute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .bytecode import CompileError, Int

MAX_NESTING = 64  # parentheses, braces, unary operators
MAX_DEPTH = 150  # of the tree

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<num>(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)[uUlL]*)
      | (?P<id>[A-Za-z_$][A-Za-z_$0-9]*)
      | (?P<str>"(?:[^"\\]|\\.)*")
      | (?P<chr>'(?:[^'\\]|\\.)+')
      | (?P<op>->|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>=!~&|^?:,.;(){}\[\]])""",
    re.X | re.S,
)
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]+)|([0-7]{1,3})|(.))", re.S)
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v", b"e": b"\x1b"}

# Binary operators: precedence, operation.
_BINARY = {
    "||": (1, "OR"),
    "&&": (2, "AND"),
    "|": (3, "OR"),
    "^": (4, "XOR"),
    "&": (5, "AND"),
    "==": (6, "EQ"),
    "!=": (6, "NE"),
    "<": (7, "LT"),
    "<=": (7, "LE"),
    ">": (7, "GT"),
    ">=": (7, "GE"),
    "<<": (8, "SHL"),
    ">>": (8, "SHR"),
    "+": (9, "ADD"),
    "-": (9, "SUB"),
    "*": (10, "MUL"),
    "/": (10, "DIV"),
    "%": (10, "MOD"),
}
_TYPE_WORDS = frozenset(
    (
        "unsigned",
        "signed",
        "int",
        "long",
        "char",
        "short",
        "void",
        "struct",
        "union",
        "enum",
        "const",
        "volatile",
        "_Bool",
        "bool",
        "__signed__",
        "static",
        "register",
        "typeof",
        "__typeof__",
        "__auto_type",
        "float",
        "double",
    )
)
# Kernel typedefs: bytes ("long": the kernel's long), signed. Those that are not here keep the type of what is cast.
_TYPEDEFS: dict[str, tuple[int | str, bool]] = {
    "uint": (4, False),
    "ulong": ("long", False),
    "ushort": (2, False),
    "uchar": (1, False),
    "size_t": ("long", False),
    "ssize_t": ("long", True),
    "uintptr_t": ("long", False),
    "intptr_t": ("long", True),
    "ptrdiff_t": ("long", True),
    "loff_t": (8, True),
    "off_t": ("long", True),
    "gfp_t": (4, False),
    "fmode_t": (4, False),
    "dev_t": (4, False),
    "pid_t": (4, True),
    "uid_t": (4, False),
    "gid_t": (4, False),
    "umode_t": (2, False),
    "mode_t": (2, False),
    "ino_t": ("long", False),
    "sector_t": (8, False),
    "blkcnt_t": (8, False),
    "pgoff_t": ("long", False),
    "dma_addr_t": (8, False),
    "phys_addr_t": (8, False),
    "resource_size_t": (8, False),
    "ktime_t": (8, True),
    "time64_t": (8, True),
    "int_least64_t": (8, True),
    "pteval_t": ("long", False),
    "kuid_t": (4, False),
    "qid_t": (4, False),
    "xfs_ino_t": (8, False),
    "xfs_fsblock_t": (8, False),
    "xfs_daddr_t": (8, True),
    "xfs_lsn_t": (8, True),
    "blk_opf_t": (4, False),
    "vm_fault_t": (4, False),
    "acpi_status": (4, False),
    "tid_t": (4, False),
    "key_serial_t": (4, True),
}
for _bits in (8, 16, 32, 64):
    for _pattern, _signed in (
        ("u{}", False),
        ("__u{}", False),
        ("uint{}_t", False),
        ("u_int{}_t", False),
        ("__le{}", False),
        ("__be{}", False),
        ("s{}", True),
        ("__s{}", True),
        ("int{}_t", True),
    ):
        _TYPEDEFS[_pattern.format(_bits)] = (_bits // 8, _signed)
# sizeof of structs that print formats name, on 64-bit kernels (K:include/linux/mm_types.h).
_STRUCTS = {"page": 64, "folio": 64}


@dataclass(frozen=True, slots=True)
class CType:
    """A type as written: an integer, something only the kernel knows (``base`` None), or a pointer to either."""

    base: Int | None
    pointers: int = 0
    size: int | None = None  # of a struct, where it is known


class Node:
    """One node of the tree; ``const``: no field, name or call is in it."""

    __slots__ = ("const", "depth", "kids", "kind", "value")

    def __init__(self, kind: str, value: Any = None, kids: tuple[Node, ...] = (), *, const: bool = True) -> None:
        self.kind = kind
        self.value = value
        self.kids = kids
        self.depth: int = 1 + max((kid.depth for kid in kids), default=0)
        self.const: bool = const and all(kid.const for kid in kids)
        if self.depth > MAX_DEPTH:
            raise CompileError("expression is nested too deeply")

    def __repr__(self) -> str:
        parts = [repr(self.value)] if self.value is not None else []
        return f"{self.kind}({', '.join(parts + [repr(kid) for kid in self.kids])})"


def unescape(literal: str) -> bytes:
    """Bytes of a C literal's inside."""

    def one(match: re.Match[bytes]) -> bytes:
        if match[1]:
            return bytes([int(match[1], 16) & 255])
        if match[2]:
            return bytes([int(match[2], 8) & 255])
        return _ESCAPES.get(match[3], match[3])

    data = literal.encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(one, data) if b"\\" in data else data


Token = tuple[str, str, int]


def tokenize(text: str, start: int = 0) -> list[Token]:
    """(kind, text, position) of every token, and an ``end`` token."""
    tokens: list[Token] = []
    position = start
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise CompileError(f"cannot understand {text[position : position + 20]!r}")
        kind = match.lastgroup or ""
        if kind != "space":
            tokens.append((kind, match[0], position))
        position = match.end()
    tokens.append(("end", "end of text", len(text)))
    return tokens


class Parser:
    """Recursive descent over the tokens of one or more expressions."""

    def __init__(self, tokens: list[Token], *, long_size: int = 8) -> None:
        self.tokens = tokens
        self.index = 0
        self.long_size = long_size
        self.nesting = 0

    # -- tokens

    @property
    def text(self) -> str:
        return self.tokens[self.index][1]

    @property
    def kind(self) -> str:
        return self.tokens[self.index][0]

    def ahead(self, distance: int) -> Token:
        return self.tokens[min(self.index + distance, len(self.tokens) - 1)]

    def at(self, *texts: str) -> bool:
        return self.kind == "op" and self.text in texts

    def accept(self, text: str) -> bool:
        if self.at(text):
            self.index += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise CompileError(f"expected {text!r}, found {self.text[:40]!r}")

    def _nest(self) -> None:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise CompileError("expression is nested too deeply")

    # -- expressions

    def expression(self) -> Node:
        """One expression without a comma."""
        self._nest()
        node = self._binary(1)
        if self.accept("?"):
            if self.accept(":"):
                node = Node("elvis", None, (node, self.expression()))
            else:
                then = self.expression()
                self.expect(":")
                node = Node("cond", None, (node, then, self.expression()))
        self.nesting -= 1
        return node

    def _binary(self, lowest: int) -> Node:
        node = self._unary()
        while self.kind == "op":
            token = self.text
            precedence, operation = _BINARY.get(token, (0, ""))
            if precedence < lowest:
                break
            self.index += 1
            right = self._binary(precedence + 1)
            if token in ("&&", "||"):
                kids = (*node.kids, right) if node.kind == token else (node, right)
                node = Node(token, None, kids)
            else:
                node = Node("binary", operation, (node, right))
        return node

    def _unary(self) -> Node:
        if self.kind == "op" and self.text in "!~+-&*" and len(self.text) == 1:
            token = self.text
            self.index += 1
            self._nest()
            node = Node("unary", token, (self._unary(),))
            self.nesting -= 1
            return node
        if self.kind == "id" and self.text == "sizeof":
            self.index += 1
            return self._sizeof()
        if self.at("(") and self._starts_cast():
            self.index += 1
            written = self.type_name()
            self.expect(")")
            self._nest()
            node = Node("cast", written, (self._compound() if self.at("{") else self._unary(),))
            self.nesting -= 1
            return node
        return self._postfix(self._primary())

    def _compound(self) -> Node:
        """``{ .name = value }`` of a struct with one number in it, such as ktime_t was: stands for the number."""
        self.expect("{")
        if self.accept("."):
            self.identifier()
            self.expect("=")
        node = self.expression()
        self.expect("}")
        return Node("compound", None, (node,))

    def _sizeof(self) -> Node:
        if self.at("(") and self._is_type(1):
            self.index += 1
            written = self.type_name()
            self.expect(")")
            return Node("sizeof_type", written)
        return Node("sizeof", None, (self._unary(),))

    def _postfix(self, node: Node) -> Node:
        while True:
            if node.kind == "cast" and node.kids[0].kind == "compound" and self.accept("."):
                self.identifier()
                node = node.kids[0].kids[0]
            elif self.accept("->") or self.accept("."):
                node = Node("member", self.identifier(), (node,), const=False)
            elif self.accept("["):
                node = Node("index", None, (node, self.expression()), const=False)
                self.expect("]")
            elif self.at("(") and node.kind == "name":
                node = Node("call", node.value, tuple(self._arguments()), const=False)
            else:
                return node

    def _arguments(self) -> Iterator[Node]:
        self.expect("(")
        if self.accept(")"):
            return
        while True:
            yield self._argument()
            if self.accept(")"):
                return
            self.expect(",")
            if self.accept(")"):  # a list macro that ended with a comma
                return

    def _argument(self) -> Node:
        if self.at("{"):
            self._nest()
            node = self._braces()
            self.nesting -= 1
            return node
        if self._is_type(0) and self.kind == "id" and self.text in _TYPE_WORDS:
            return Node("type", self.type_name())
        return self.expression()

    def _braces(self) -> Node:
        self.expect("{")
        items: list[Node] = []
        while not self.accept("}"):
            items.append(self._argument())
            if not self.at("}"):
                self.expect(",")
        return Node("braces", None, tuple(items))

    def identifier(self) -> str:
        if self.kind != "id":
            raise CompileError(f"expected a name, found {self.text[:40]!r}")
        self.index += 1
        return self.tokens[self.index - 1][1]

    def _primary(self) -> Node:
        kind, text, _ = self.tokens[self.index]
        if self.at("("):
            return self._parenthesis()
        self.index += 1
        if kind == "num":
            return Node("num", self._number(text))
        if kind == "str":
            return self._string(unescape(text[1:-1]))
        if kind == "chr":
            data = unescape(text[1:-1])
            return Node("num", (int.from_bytes(data[-4:], "big"), Int(4, True)))
        if kind == "id":
            return Node("name", text, const=False)
        raise CompileError(f"expected a value, found {text[:40]!r}")

    def _parenthesis(self) -> Node:
        self.expect("(")
        node = self._statements() if self.at("{") else self.expression()
        self.expect(")")
        return node

    def _string(self, data: bytes) -> Node:
        while self.kind == "str":  # adjacent literals are one
            data += unescape(self.text[1:-1])
            self.index += 1
        return Node("str", data)

    def _number(self, text: str) -> tuple[int, Int]:
        digits = text.rstrip("uUlL")
        suffix = text[len(digits) :].lower()
        octal = len(digits) > 1 and digits.isdigit() and digits[0] == "0"
        try:
            value = int(digits, 8 if octal else 0)
        except ValueError:
            raise CompileError(f"not a number: {text!r}") from None
        smallest = 8 if suffix.count("l") > 1 else self.long_size if "l" in suffix else 4
        for size in (4, 8):
            if size < smallest:
                continue
            if "u" not in suffix and value < 1 << (8 * size - 1):
                return value, Int(size, True)
            if ("u" in suffix or digits[:2].lower() in ("0x", "0b") or octal) and value < 1 << (8 * size):
                return value, Int(size, False)
        return value & (1 << 64) - 1, Int(8, False)

    # -- types

    def _is_type(self, distance: int) -> bool:
        kind, text, _ = self.ahead(distance)
        return kind == "id" and (text in _TYPE_WORDS or text in _TYPEDEFS)

    def _starts_cast(self) -> bool:
        """At "(": a known type, or an unknown name that can only be one: ``(name)x``, ``(name *)...``."""
        if self._is_type(1):
            return True
        if self.ahead(1)[0] != "id":
            return False
        distance = 2
        while self.ahead(distance)[1] == "*" and self.ahead(distance)[0] == "op":
            distance += 1
        if self.ahead(distance)[1] != ")":
            return False
        kind, text, _ = self.ahead(distance + 1)
        return distance > 2 or kind in ("num", "id", "str", "chr") or (kind == "op" and text == "(")

    def type_name(self) -> CType | Node:
        """A type as written; a Node stands for typeof(expression)."""
        words: list[str] = []
        size: int | None = None
        found: CType | Node | None = None
        while self.kind == "id":
            word = self.identifier()
            if word in ("struct", "union", "enum"):
                size = self._tag(word)
                found = CType(Int(4, False) if word == "enum" else None, 0, size)
            elif word in ("typeof", "__typeof__"):
                self.expect("(")
                found = self.type_name() if self._is_type(0) else self.expression()
                self.expect(")")
            elif word in ("__attribute__",):
                raise CompileError("attributes in a cast are not understood")
            else:
                words.append(word)
            if (
                self.kind == "id"
                and not self._is_type(0)
                and (words or found)
                and self.text not in ("const", "volatile")
            ):
                break  # the name that is declared
        pointers = 0
        while self.at("*") or (
            self.kind == "id" and self.text in ("const", "volatile", "__user", "__iomem", "__percpu", "__rcu")
        ):
            pointers += self.at("*")
            self.index += 1
        if isinstance(found, Node):
            return found
        base = found or CType(self._integer(words), 0, None)
        return CType(base.base, base.pointers + pointers, base.size)

    def _tag(self, word: str) -> int | None:
        name = self.identifier() if self.kind == "id" else ""
        if self.accept("{"):
            while not self.accept("}"):
                if self.kind == "end":
                    raise CompileError("struct without end")
                self.index += 1
            return 0  # BUILD_BUG_ON_ZERO's struct of one unnamed bit-field
        return 4 if word == "enum" else _STRUCTS.get(name) if self.long_size == 8 else None

    def _integer(self, words: list[str]) -> Int | None:
        return integer_type(words, self.long_size)

    # -- statement expressions

    def _statements(self) -> Node:
        """``({ type name = value; ... value; })``: declarations, then one value."""
        self._nest()
        self.expect("{")
        kids: list[Node] = []
        while True:
            if self._is_type(0):
                kids.append(self._declaration())
            else:
                kids.append(self.expression())
                self.accept(";")
                if self.accept("}"):
                    break
                raise CompileError("statement expression is not understood")
        self.nesting -= 1
        return Node("block", None, tuple(kids), const=False)

    def _declaration(self) -> Node:
        written = self.type_name()
        name = self.identifier()
        if not self.accept("="):
            raise CompileError("statement expression is not understood")
        node = Node("declare", (name, written), (self.expression(),), const=False)
        self.expect(";")
        return node


def integer_type(words: list[str], long_size: int) -> Int | None:
    """The integer that the words of a type name stand for; None when it is not known to be one."""
    words = [
        w
        for w in words
        if w not in ("const", "volatile", "static", "register", "int", "__force", "__user", "__bitwise")
    ] or (["int"] if "int" in words else [])
    signed = "unsigned" not in words
    rest = sorted(w for w in words if w not in ("unsigned", "signed", "__signed__"))
    sizes = {"": 4, "int": 4, "short": 2, "long": long_size, "long long": 8, "char": 1}
    key = " ".join(rest)
    if key in sizes:
        return Int(sizes[key], signed) if words else None
    if key in ("_Bool", "bool"):
        return Int(1, False)
    if key in _TYPEDEFS:
        size, signed = _TYPEDEFS[key]
        return Int(long_size if isinstance(size, str) else size, signed)
    return None


def parse_expression(text: str, *, long_size: int = 8) -> Node:
    """The tree of one whole expression."""
    parser = Parser(tokenize(text), long_size=long_size)
    node = parser.expression()
    if parser.kind != "end":
        raise CompileError(f"expected the end, found {parser.text[:40]!r}")
    return node
