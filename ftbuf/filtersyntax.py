"""Text of a filter -> events and a tree. The kernel's event filters and trace-cmd's are one language here:

    filter     := [events ':'] condition | events
    events     := event {',' event}             event := [SYSTEM '/'] NAME, each a regular expression
    condition  := and {'||' and}                and := not {'&&' not}             not := '!' not | comparison
    comparison := C's operators | ^ & == != < <= > >= << >> + - * / % with C's precedence, and
                  field == != ~ =~ !~ "text",  field & == != CPUS{0,2-5}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from .bytecode import Int
from .errors import FilterError
from .regex import Regex, RegexError, compile_regex

MAX_TEXT = 1 << 14
MAX_NESTING = 50
MAX_DEPTH = 100  # of the tree: operators in a row nest to the left
MAX_CPUS = 1 << 13  # NR_CPUS of the largest configurations

# Binary operators: precedence and operation; those that compare have one of their own name.
BINARY = {
    "|": (1, "OR"),
    "^": (2, "XOR"),
    "&": (3, "AND"),
    "==": (4, "EQ"),
    "!=": (4, "NE"),
    "~": (4, "~"),
    "=~": (4, "=~"),
    "!~": (4, "!~"),
    "<": (5, "LT"),
    "<=": (5, "LE"),
    ">": (5, "GT"),
    ">=": (5, "GE"),
    "<<": (6, "SHL"),
    ">>": (6, "SHR"),
    "+": (7, "ADD"),
    "-": (7, "SUB"),
    "*": (8, "MUL"),
    "/": (8, "DIV"),
    "%": (8, "MOD"),
}
COMPARISONS = frozenset(("EQ", "NE", "~", "=~", "!~", "LT", "LE", "GT", "GE"))

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<num>\d\w*)
      | (?P<cpus>CPUS\s*\{[^}]*\})
      | (?P<id>[A-Za-z_](?:[\w.]*\w)?)
      | (?P<str>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<op><<|>>|<=|>=|==|!=|=~|!~|&&|\|\||[-+*/%<>!~&|^()])""",
    re.X | re.S | re.A,
)
_QUOTED = r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
_BRACKETS = r"\[\^?\]?(?:\[[:.=][^\]]{0,20}\]|[^\]]){0,255}\]"  # bounded: many that are not closed take time
# What may stand around the colon that ends the events.
_PIECES = re.compile(rf"{_QUOTED}|{_BRACKETS}|\{{[^}}]{{0,4096}}\}}|\\.|.", re.S)
# Text that can be no condition: "sched_switch", "sched:sched_switch", but not "sched_switch: prev_pid".
_EVENTS_ALONE = re.compile(rf"\s*(?:{_BRACKETS}|\\.|[\w.*^$/,:]|(?<=,)\s+|\s+(?=,))+\s*", re.S)
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)([uUlL]{0,3})")
_CPU_RANGE = re.compile(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*")
_METHODS = ("function", "ustring")
_METACHARACTERS = re.compile(r"[.*^$\\\[\]]")


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A node of the tree: && || ! compare, binary, unary; num, text, name, cpus. ``position``: where it stands."""

    kind: str
    position: int
    value: Any = None
    kids: tuple[Term, ...] = ()
    method: str = ""  # of a name: "function" or "ustring"; of a text: its quote
    depth: int = 1


@dataclass(frozen=True, slots=True)
class EventPattern:
    """The events that one of the comma-separated patterns means: by system and name, or by either."""

    text: str
    position: int
    system: Regex | None
    name: Regex

    def matches(self, system: bytes, name: bytes) -> bool:
        if self.system is not None:
            return self.system.matches(system) and self.name.matches(name)
        return self.name.matches(name) or self.name.matches(system)

    @property
    def is_plain(self) -> bool:
        return not _METACHARACTERS.search(self.text)


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One filter as it was written."""

    text: str
    events: tuple[EventPattern, ...] | None  # None: all that have the fields
    term: Term | None  # None: no condition
    _matched: dict[tuple[str, str], bool] = field(default_factory=dict)

    def applies_to(self, system: str, name: str) -> bool:
        """Whether an event is among those that the filter names."""
        if self.events is None:
            return True
        known = self._matched.get((system, name))
        if known is None:
            pair = system.encode("utf-8", "surrogateescape"), name.encode("utf-8", "surrogateescape")
            known = self._matched[system, name] = any(event.matches(*pair) for event in self.events)
        return known


def filter_error(message: str, text: str, position: int) -> FilterError:
    """The message, and below it the line of the text with a caret under the offending character."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", start)
    first = max(start, position - 60)
    line = text[first : min(len(text) if end < 0 else end, position + 60)]
    shown = "".join(c if c.isprintable() else " " for c in line)
    return FilterError(f"{message}\n  {shown}\n  {' ' * (position - first)}^", position=position)


def parse_rule(text: str) -> Rule:
    """Parse one filter.

    Raises
    ------
    FilterError
        With the ``position`` of the character that cannot be understood.
    """
    if not isinstance(text, str):
        raise TypeError(f"a filter is a str, not {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise FilterError(f"a filter of {len(text)} characters; at most {MAX_TEXT}", position=MAX_TEXT)
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:  # half of a pair, which stands for no bytes
        raise filter_error("a lone surrogate is no character", text, error.start) from None
    colon = _colon(text)
    if _EVENTS_ALONE.fullmatch(text) and not text.rstrip().endswith(":"):
        return Rule(text, tuple(_events(text, len(text))), None)
    events = None if colon is None else tuple(_events(text, colon))
    start = 0 if colon is None else colon + 1
    if colon is not None and not text[start:].strip():
        return Rule(text, events, None)
    return Rule(text, events, _Parser(text, start).parse())


def _colon(text: str) -> int | None:
    """Place of the last colon outside quotes, brackets and braces."""
    found = None
    for piece in _PIECES.finditer(text):
        if piece[0] == ":":
            found = piece.start()
    return found


def _events(text: str, end: int) -> Iterator[EventPattern]:
    start = 0
    commas = [p.start() for p in _PIECES.finditer(text, 0, end) if p[0] == ","]
    for stop in (*commas, end):
        part = text[start:stop]
        position = start + len(part) - len(part.lstrip())
        yield _event(text, part.strip(), position)
        start = stop + 1


def _event(text: str, part: str, position: int) -> EventPattern:
    split = next((p.start() for p in _PIECES.finditer(part) if p[0] in "/:"), None)
    if not part:
        raise filter_error("an event's name is missing", text, min(position, len(text)))
    system = None if split is None else _pattern(text, part[:split].rstrip(), position)
    rest = part if split is None else part[split + 1 :].lstrip()
    return EventPattern(part, position, system, _pattern(text, rest, position + len(part) - len(rest)))


def _pattern(text: str, part: str, position: int) -> Regex:
    if not part:
        raise filter_error("an event's name is missing", text, position)
    try:
        return compile_regex(part, whole=True)
    except RegexError as error:
        raise filter_error(f"regular expression: {error}", text, position + min(error.position, len(part))) from None


class _Parser:
    """Recursive descent over the tokens of a condition."""

    def __init__(self, text: str, start: int) -> None:
        self.whole = text
        self.tokens = list(self._tokens(start))
        self.index = 0
        self.nesting = 0

    def _tokens(self, position: int) -> Iterator[tuple[str, str, int]]:
        while position < len(self.whole):
            match = _TOKEN.match(self.whole, position)
            if match is None:
                self.fail(_why_not(self.whole[position]), position)
            if match.lastgroup != "space":
                yield match.lastgroup or "", match[0], position
            position = match.end()
        yield "end", "", len(self.whole)

    def fail(self, message: str, position: int | None = None) -> NoReturn:
        raise filter_error(message, self.whole, self.tokens[self.index][2] if position is None else position)

    @property
    def kind(self) -> str:
        return self.tokens[self.index][0]

    @property
    def text(self) -> str:
        return self.tokens[self.index][1]

    @property
    def position(self) -> int:
        return self.tokens[self.index][2]

    def accept(self, operator: str) -> bool:
        if self.kind == "op" and self.text == operator:
            self.index += 1
            return True
        return False

    def nest(self) -> None:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            self.fail("nested too deeply")

    def term(self, kind: str, position: int, value: Any, *kids: Term) -> Term:
        depth = 1 + max(kid.depth for kid in kids)
        if depth > MAX_DEPTH:
            self.fail("too many operators in a row", position)
        return Term(kind, position, value, kids, depth=depth)

    def parse(self) -> Term:
        term = self.chain("||")
        if self.kind != "end":
            self.fail(") without (" if self.text == ")" else "an operator is missing")
        return term

    def chain(self, operator: str) -> Term:
        """Terms that && or || joins: one node, however many."""
        position = self.position
        parts = [self.chain("&&") if operator == "||" else self.negation()]
        while self.accept(operator):
            parts.append(self.chain("&&") if operator == "||" else self.negation())
        return parts[0] if len(parts) == 1 else self.term(operator, position, None, *parts)

    def negation(self) -> Term:
        """``!`` before a comparison negates all of it, as in the kernel and in trace-cmd."""
        position = self.position
        if not self.accept("!"):
            return self.binary(1)
        self.nest()
        term = self.term("!", position, None, self.negation())
        self.nesting -= 1
        return term

    def binary(self, lowest: int) -> Term:
        term = self.unary()
        while True:
            operator = self.text if self.kind == "op" else ""
            precedence, operation = BINARY.get(operator, (0, ""))
            if precedence < lowest:
                return term
            position = self.position
            self.index += 1
            right = self.binary(precedence + 1)
            if operator in ("=~", "!~"):
                self.check_regex(right)
            term = self.term("compare" if operation in COMPARISONS else "binary", position, operation, term, right)

    def check_regex(self, term: Term) -> None:
        if term.kind != "text":
            self.fail("a regular expression in quotes is missing", term.position)
        try:
            compile_regex(term.value.decode("utf-8", "surrogateescape"))
        except RegexError as error:
            self.fail(f"regular expression: {error}", term.position + 1 + min(error.position, len(term.value)))

    def unary(self) -> Term:
        position = self.position
        operator = self.text if self.kind == "op" else ""
        if operator and operator in ("-", "+", "~", "!", "!~"):
            self.index += 1
            self.nest()
            term = self.term("unary", position, operator[-1], self.unary())
            self.nesting -= 1
            return self.term("unary", position, "!", term) if operator == "!~" else term
        return self.primary()

    def primary(self) -> Term:
        kind, text, position = self.tokens[self.index]
        if self.accept("("):
            self.nest()
            term = self.chain("||")
            if not self.accept(")"):
                self.fail("( without )" if self.kind == "end" else "an operator or ) is missing")
            self.nesting -= 1
            return term
        self.index += 1
        if kind == "num":
            return Term("num", position, self.number(text, position))
        if kind == "str":
            return Term("text", position, _unquoted(text), method=text[0])
        if kind == "cpus":
            return Term("cpus", position, self.cpu_list(text, position))
        if kind == "id":
            name, _, method = text.rpartition(".")
            if name and method in _METHODS:
                return Term("name", position, name, method=method)
            return Term("name", position, text)
        self.index -= 1
        self.fail("a field or a value is missing")

    def number(self, text: str, position: int) -> tuple[int, Int]:
        """A number and its type, by C's rules (C11 6.4.4.1) with a long of 8 bytes."""
        match = _NUMBER.fullmatch(text)
        value = int(match[1], 8 if match[1].isdigit() and match[1][0] == "0" else 0) if match else 1 << 64
        if match is None or value >= 1 << 64:
            self.fail("not a number" if match is None else "a number of more than 64 bits", position)
        suffix = match[2].lower()
        decimal = match[1].isdigit() and match[1][0] != "0"
        for size in (8,) if "l" in suffix else (4, 8):
            if "u" not in suffix and value < 1 << (8 * size - 1):
                return value, Int(size, True)
            if ("u" in suffix or not decimal) and value < 1 << (8 * size):
                return value, Int(size, False)
        return value, Int(8, False)

    def cpu_list(self, text: str, position: int) -> tuple[int, ...]:
        """CPUS{0,2-5}"""
        cpus: set[int] = set()
        start = text.index("{") + 1
        for part in text[start:-1].split(","):
            match = _CPU_RANGE.fullmatch(part)
            low = int(match[1]) if match else 0
            high = int(match[2] or low) if match else -1
            if not low <= high < MAX_CPUS:
                self.fail("a list of CPUs such as CPUS{0,2-5} is needed", position + start)
            cpus.update(range(low, high + 1))
            start += len(part) + 1
        return tuple(sorted(cpus))


def _why_not(character: str) -> str:
    if character in "\"'":
        return "a text without its closing quote"
    return "use == to compare" if character == "=" else "cannot be understood"


def _unquoted(text: str) -> bytes:
    """Inside of the quotes. Only a quote is escaped: other backslashes belong to the pattern."""
    quote = text[0]
    return text[1:-1].replace("\\" + quote, quote).encode("utf-8", "surrogateescape")


def plain_pattern(name: str) -> str:
    """A pattern that matches just this name."""
    return re.sub(r"([.*^$\\\[\]])", r"\\\1", name)
