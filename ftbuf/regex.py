r"""POSIX basic regular expressions -> tables of an automaton that takes one step a byte, whatever the pattern.

As regcomp(3) of glibc with REG_ICASE reads them, in the C locale: ``*``, ``.``, ``[...]``, ``^``, ``$``, ``\(...\)``,
``\{m,n\}`` and the GNU operators ``\|``, ``\+``, ``\?``, ``\w``, ``\W``, ``\s``, ``\S``. Back-references and word
boundaries are not regular, or not worth it: they are refused by name.
"""

from __future__ import annotations

import string
import struct
from dataclasses import dataclass

MAX_NESTING = 50
MAX_REPEAT = 255  # RE_DUP_MAX is larger in glibc; a name has 255 bytes at the most
MAX_NFA = 4096
MAX_DFA = 1024
MAX_STEPS = 400_000  # of the construction: well below a second

# Besides the 256 bytes, a text has a mark at either end, which ^ and $ match.
BEGIN, END, SYMBOLS = 256, 257, 258
_BYTES = (1 << 256) - 1
DEAD, ACCEPT = 0, 1  # states that are never left

_CLASSES = {
    "alpha": string.ascii_letters,
    "digit": string.digits,
    "alnum": string.ascii_letters + string.digits,
    "upper": string.ascii_uppercase,
    "lower": string.ascii_lowercase,
    "space": " \t\n\r\f\v",
    "blank": " \t",
    "punct": string.punctuation,
    "xdigit": string.hexdigits,
    "print": string.ascii_letters + string.digits + string.punctuation + " ",
    "graph": string.ascii_letters + string.digits + string.punctuation,
    "cntrl": "".join(map(chr, range(32))) + "\x7f",
}


class RegexError(ValueError):
    """A pattern that cannot be understood, or that needs too large an automaton."""

    def __init__(self, message: str, position: int = 0) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True, slots=True)
class Regex:
    """A compiled pattern."""

    start: int
    class_of: bytes  # byte -> class
    rows: tuple[tuple[int, ...], ...]  # state -> next state for each class, and for the end of the text

    def matches(self, text: bytes) -> bool:
        """Whether the pattern is found in a text."""
        state, class_of, rows = self.start, self.class_of, self.rows
        for byte in text:
            if state <= ACCEPT:
                break
            state = rows[state][class_of[byte]]
        return (rows[state][-1] if state > ACCEPT else state) == ACCEPT

    def packed(self) -> bytes:
        """For C, little-endian: u16 states, classes, start, 0; u8 class[256]; u16 next[state][class + 1]."""
        flat = [target for row in self.rows for target in row]
        head = struct.pack("<4H", len(self.rows), len(self.rows[0]) - 1, self.start, 0)
        return head + self.class_of + struct.pack(f"<{len(flat)}H", *flat)


def compile_regex(pattern: str, *, whole: bool = False) -> Regex:
    """Compile a pattern, to be found anywhere in a text, or (``whole``) to match all of it.

    Raises
    ------
    RegexError
        The pattern is malformed, uses what is not supported, or would need an automaton of more than 1024 states.
    """
    tree = _Parser(pattern.encode("utf-8", "surrogateescape")).parse()
    if whole:
        tree = _Cat([_Set(1 << BEGIN), tree, _Set(1 << END)])
    return _determinized(_Nfa(tree, anywhere=not whole))


# -- trees


@dataclass(frozen=True, slots=True)
class _Set:
    symbols: int  # bit i: symbol i


@dataclass(frozen=True, slots=True)
class _Cat:
    parts: list[_Tree]


@dataclass(frozen=True, slots=True)
class _Alt:
    parts: list[_Tree]


@dataclass(frozen=True, slots=True)
class _Repeat:
    body: _Tree
    least: int
    most: int | None


_Tree = _Set | _Cat | _Alt | _Repeat


def _set_of(text: str | bytes) -> int:
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    symbols = 0
    for byte in data:
        symbols |= 1 << byte
    return symbols


def _fold(symbols: int) -> int:
    """With both cases of every letter that is in it."""
    upper, lower = symbols >> ord("A") & (1 << 26) - 1, symbols >> ord("a") & (1 << 26) - 1
    return symbols | (upper | lower) << ord("A") | (upper | lower) << ord("a")


_WORD = _set_of(_CLASSES["alnum"] + "_")
_SPACE = _set_of(_CLASSES["space"])
_ESCAPED_SETS = {b"w": _WORD, b"W": _BYTES & ~_WORD, b"s": _SPACE, b"S": _BYTES & ~_SPACE}


class _Parser:
    def __init__(self, pattern: bytes) -> None:
        self.pattern = pattern
        self.at = 0
        self.nesting = 0

    def parse(self) -> _Tree:
        tree = self.alternatives()
        if self.at < len(self.pattern):
            raise RegexError("\\) without \\(", self.at)
        return tree

    def ahead(self, text: bytes) -> bool:
        return self.pattern.startswith(text, self.at)

    def accept(self, text: bytes) -> bool:
        if self.ahead(text):
            self.at += len(text)
            return True
        return False

    def alternatives(self) -> _Tree:
        parts = [self.branch()]
        while self.accept(b"\\|"):
            parts.append(self.branch())
        return parts[0] if len(parts) == 1 else _Alt(parts)

    def branch(self) -> _Tree:
        parts: list[_Tree] = []
        if self.accept(b"^"):
            parts.append(_Set(1 << BEGIN))
        first = True
        while self.at < len(self.pattern) and not self.ahead(b"\\|") and not self.ahead(b"\\)"):
            atom = self.atom(first)
            first = False
            while (repeat := self.repetition()) is not None:
                atom = _Repeat(atom, *repeat)
            parts.append(atom)
        return _Cat(parts)

    def ends_branch(self, at: int) -> bool:
        return at == len(self.pattern) or self.pattern.startswith((b"\\|", b"\\)"), at)

    def atom(self, first: bool) -> _Tree:
        byte = self.pattern[self.at : self.at + 1]
        self.at += 1
        if byte == b"\\":
            return self.escaped()
        if byte == b"[":
            return _Set(self.bracket())
        if byte == b".":
            return _Set(_BYTES & ~1)
        if byte == b"$" and self.ends_branch(self.at):
            return _Set(1 << END)
        return _Set(_fold(_set_of(byte)))  # also a * that has nothing to repeat

    def escaped(self) -> _Tree:
        byte = self.pattern[self.at : self.at + 1]
        if not byte:
            raise RegexError("\\ at the end", self.at - 1)
        self.at += 1
        if byte == b"(":
            self.nesting += 1
            if self.nesting > MAX_NESTING:
                raise RegexError("nested too deeply", self.at)
            tree = self.alternatives()
            if not self.accept(b"\\)"):
                raise RegexError("\\( without \\)", self.at)
            self.nesting -= 1
            return tree
        if byte in _ESCAPED_SETS:
            return _Set(_ESCAPED_SETS[byte])
        if byte in (b"b", b"B", b"<", b">", b"`", b"'") or byte.isdigit():
            raise RegexError(f"\\{byte.decode()} is not supported", self.at - 2)
        return _Set(_fold(_set_of(byte)))

    def repetition(self) -> tuple[int, int | None] | None:
        if self.accept(b"*"):
            return 0, None
        if self.accept(b"\\+"):
            return 1, None
        if self.accept(b"\\?"):
            return 0, 1
        if not self.accept(b"\\{"):
            return None
        end = self.pattern.find(b"\\}", self.at)
        inside = self.pattern[self.at : end] if end >= 0 else b""
        least, comma, most = inside.partition(b",")
        numbers = [n for n in (least, most) if n]
        if end < 0 or not all(n.isdigit() and len(n) < 5 and int(n) <= MAX_REPEAT for n in numbers) or not inside:
            raise RegexError(f"\\{{ needs numbers up to {MAX_REPEAT} and \\}}", self.at)
        low = int(least or b"0")
        high = (int(most) if most else None) if comma else low
        if high is not None and high < low:
            raise RegexError("\\{ needs ascending numbers", self.at)
        self.at = end + 2
        return low, high

    def bracket(self) -> int:
        start = self.at - 1
        inverted = self.accept(b"^")
        symbols, first = 0, True
        while first or not self.ahead(b"]"):
            if self.at >= len(self.pattern):
                raise RegexError("[ without ]", start)
            first = False
            if self.accept(b"[:"):
                symbols |= self.named_class()
                continue
            low = self.element()
            if self.ahead(b"-") and not self.ahead(b"-]"):
                self.at += 1
                if self.at >= len(self.pattern):
                    raise RegexError("[ without ]", start)
                high = self.element()
                if high < low:
                    raise RegexError("a range in [] goes backwards", self.at)
                symbols |= (1 << high + 1) - (1 << low)
            else:
                symbols |= 1 << low
        self.at += 1
        symbols = _fold(symbols)
        return _BYTES & ~symbols & ~1 if inverted else symbols

    def element(self) -> int:
        for mark in (b".", b"="):
            if self.ahead(b"[" + mark):
                end = self.pattern.find(mark + b"]", self.at + 2)
                if end != self.at + 3:
                    raise RegexError("[. .] and [= =] hold one character", self.at)
                byte = self.pattern[self.at + 2]
                self.at = end + 2
                return byte
        byte = self.pattern[self.at]
        self.at += 1
        return byte

    def named_class(self) -> int:
        end = self.pattern.find(b":]", self.at)
        name = self.pattern[self.at : end].decode("latin-1") if end >= 0 else ""
        if name not in _CLASSES:
            raise RegexError("no such [:class:]", self.at)
        self.at = end + 2
        return _set_of(_CLASSES[name])


# -- automata


class _Nfa:
    """Thompson's construction: state 0 begins; ``last`` accepts."""

    def __init__(self, tree: _Tree, *, anywhere: bool) -> None:
        self.empty: list[list[int]] = []  # targets without a symbol
        self.steps: list[tuple[int, int] | None] = []  # (symbols, target)
        start = self.state()
        if anywhere:
            self.steps[start] = (_BYTES | 1 << BEGIN, start)
            inner = self.state()
            self.empty[start].append(inner)
            start = inner
        self.last = self.build(tree, start)

    def state(self) -> int:
        if len(self.empty) == MAX_NFA:
            raise RegexError("the expression is too long")
        self.empty.append([])
        self.steps.append(None)
        return len(self.empty) - 1

    def fresh(self, start: int) -> int:
        """A state that nothing leaves yet, reached from ``start``."""
        state = self.state()
        self.empty[start].append(state)
        return state

    def build(self, tree: _Tree, start: int) -> int:
        """The state in which ``tree`` has been matched from ``start``."""
        if isinstance(tree, _Set):
            here, there = self.fresh(start), self.state()
            self.steps[here] = (tree.symbols, there)
            return there
        if isinstance(tree, _Cat):
            for part in tree.parts:
                start = self.build(part, start)
            return start
        end = self.state()
        if isinstance(tree, _Alt):
            for part in tree.parts:
                self.empty[self.build(part, self.fresh(start))].append(end)
            return end
        for _ in range(tree.least):
            start = self.build(tree.body, start)
        if tree.most is None:
            loop = self.fresh(start)
            self.empty[self.build(tree.body, loop)].append(loop)
            self.empty[loop].append(end)
            return end
        for _ in range(tree.most - tree.least):
            self.empty[start].append(end)
            start = self.build(tree.body, start)
        self.empty[start].append(end)
        return end

    def closure(self, states: set[int]) -> frozenset[int]:
        todo = list(states)
        while todo:
            for target in self.empty[todo.pop()]:
                if target not in states:
                    states.add(target)
                    todo.append(target)
        return frozenset(states)


def _classes(nfa: _Nfa) -> tuple[bytes, list[int]]:
    """Byte -> class, and one byte of each class: bytes that no step tells apart are one class."""
    sets = sorted({step[0] for step in nfa.steps if step is not None})
    parts = [_BYTES]
    for symbols in sets:
        split = [half for part in parts for half in (part & symbols, part & ~symbols) if half]
        parts = split if len(split) <= 256 else parts
    class_of = bytearray(256)
    for number, part in enumerate(parts):
        for byte in range(256):
            if part >> byte & 1:
                class_of[byte] = number
    return bytes(class_of), [(part & -part).bit_length() - 1 for part in parts]


def _determinized(nfa: _Nfa) -> Regex:
    class_of, samples = _classes(nfa)
    numbers: dict[frozenset[int], int] = {}
    rows: list[tuple[int, ...]] = [(DEAD,) * (len(samples) + 1), (ACCEPT,) * (len(samples) + 1)]
    todo: list[frozenset[int]] = []
    work = 0

    def number(states: frozenset[int]) -> int:
        if nfa.last in states:
            return ACCEPT
        if not states:
            return DEAD
        if states not in numbers:
            if len(numbers) == MAX_DFA:
                raise RegexError(f"the expression needs more than {MAX_DFA} states")
            numbers[states] = 2 + len(numbers)
            todo.append(states)
        return numbers[states]

    def after(states: frozenset[int], symbol: int) -> frozenset[int]:
        nonlocal work
        work += len(states)
        if work > MAX_STEPS:
            raise RegexError("the expression is too complex")
        steps = [nfa.steps[state] for state in states]
        return nfa.closure({step[1] for step in steps if step is not None and step[0] >> symbol & 1})

    first = nfa.closure({0})
    start = number(first if nfa.last in first else after(first, BEGIN))
    for states in todo:  # grows
        targets = [number(after(states, sample)) for sample in samples]
        end = ACCEPT if nfa.last in after(states, END) else DEAD
        rows.append((*targets, end))
    return Regex(start, class_of, tuple(rows))
