"""Format strings as printf has them: text -> literal texts and conversions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .bytecode import SPEC_ALT, SPEC_LEFT, SPEC_PLUS, SPEC_SPACE, SPEC_UPPER, SPEC_ZERO, CompileError, Int
from .expression import unescape

MAX_WIDTH = 4096

_FLAGS = {"-": SPEC_LEFT, "+": SPEC_PLUS, " ": SPEC_SPACE, "#": SPEC_ALT, "0": SPEC_ZERO}
_CONVERSION = re.compile(
    r"%(?:(?P<percent>%)|(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|-?\d*))?"
    r"(?P<length>hh|h|ll|l|L|q|z|Z|t|j)?(?:(?P<kind>[diouxXcs])|p(?P<pointer>[A-Za-z0-9]*)))"
)
_LITERAL = re.compile(r'\s*"((?:[^"\\]|\\.)*)"', re.S)


@dataclass(frozen=True, slots=True)
class Conversion:
    """One ``%...`` of a format string."""

    kind: str  # d i o u x X c s p
    flags: int
    width: int | None  # None: from an argument
    precision: int | None  # -1: none; None: from an argument
    length: str
    pointer: str = ""

    @property
    def stars(self) -> int:
        return (self.width is None) + (self.precision is None)

    @property
    def plain(self) -> bool:
        return self.width == 0 and self.precision == -1

    def integer(self, long_size: int) -> Int:
        """The type that a conversion of a number reads."""
        size = {"hh": 1, "h": 2, "": 4}.get(self.length, long_size if self.length in ("l", "z", "Z", "t") else 8)
        return Int(size, self.kind in "di")


Piece = bytes | Conversion


def parse_format_string(text: str) -> list[Piece]:
    """Cut a format string into literal texts and conversions."""
    pieces: list[Piece] = []
    literal: list[str] = []
    position = 0
    for match in _CONVERSION.finditer(text):
        literal.append(text[position : match.start()])
        position = match.end()
        if match["percent"]:
            literal.append("%")
            continue
        pieces += [to_bytes("".join(literal)), _conversion(match)]
        literal = []
    pieces.append(to_bytes("".join([*literal, text[position:]])))
    return [piece for piece in pieces if piece != b""]


def to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _conversion(match: re.Match[str]) -> Conversion:
    width, precision = match["width"], match["precision"]
    flags = 0
    for letter in match["flags"]:
        flags |= _FLAGS[letter]
    if match["kind"] == "X":
        flags |= SPEC_UPPER
    return Conversion(
        match["kind"] or "p",
        flags,
        None if width == "*" else _bounded(width or "0"),
        None
        if precision == "*"
        else -1
        if precision is None or precision.startswith("-")
        else _bounded(precision or "0"),
        match["length"] or "",
        match["pointer"] or "",
    )


def _bounded(digits: str) -> int:
    if len(digits) > 5 or int(digits) > MAX_WIDTH:
        raise CompileError("width or precision of a conversion is too large")
    return int(digits)


def split_print_fmt(text: str) -> list[tuple[str, str]]:
    """(format string, text of the arguments) in which ``text`` can be read, most likely first.

    The kernel writes a format string's own quotes unescaped, so where it ends can be a guess.
    """
    literals: list[str] = []
    position = 0
    while match := _LITERAL.match(text, position):
        literals.append(unescape(match[1]).decode("utf-8", "surrogateescape"))
        position = match.end()
    if not literals:
        raise CompileError("print fmt does not begin with a string")
    rest = text[position:].lstrip()
    found = [("".join(literals), rest[1:])] if not rest or rest[0] == "," else []
    start = text.index('"') + 1
    for end in re.finditer(r'"\s*(?:,|$)', text[start:]):
        inside = text[start : start + end.start()]
        if '"' in inside:
            found.append((unescape(inside).decode("utf-8", "surrogateescape"), text[start + end.end() :]))
    return found[:32]
