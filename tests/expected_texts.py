"""Reads the texts that the kernel and trace-cmd made of recordings: which event, when, where, and the numbers in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ftbuf.formats import EventFormat


@dataclass(frozen=True)
class Line:
    """One event line."""

    pid: int
    cpu: int
    ts: str  # as printed: "764.314555", "764.314555094" or "12345"
    body: str
    comm: str = ""
    name: str = ""  # where the layout has one
    buffer: str = ""


# K:trace_output.c trace_print_context; the TGID column and the latency flags are optional
KERNEL = re.compile(
    r" *(?P<comm>.{0,15})-(?P<pid>\d+) +(?:\([ \d-]{7}\) +)?\[(?P<cpu>\d{3,})\] (?:[^ ]{4,5} )? *"
    r"(?P<ts>\d+(?:\.\d{6})?): (?P<body>.*)"
)
# K:trace.c print_raw_fmt
RAW = re.compile(r"(?P<pid>\d+) (?P<cpu>\d+) (?P<ts>\d+) (?P<body>.*)")
# TC:trace-read.c trace_show_data
TRACE_CMD = re.compile(
    r"(?:(?P<buffer>\S+):)? *(?P<comm>.*)-(?P<pid>-?\d+) +\[(?P<cpu>\d{3,})\](?:-0x[0-9a-f]+?| [^ ]{5}[^ \d]?)? *"
    r"(?P<ts>\d+(?:\.\d+)?): +(?P<name>[^ ]+): *(?P<body>.*)"
)


def event_lines(text: str, layout: re.Pattern[str]) -> list[Line]:
    """The event lines of a text; banners, lost-event notes and continuation lines are left out."""
    found = (layout.fullmatch(line) for line in text.split("\n") if not line.startswith("#"))
    parts = (m.groupdict() for m in found if m)
    return [
        Line(
            int(p["pid"]),
            int(p["cpu"]),
            p["ts"],
            p["body"],
            p.get("comm") or "",
            p.get("name") or "",
            p.get("buffer") or "",
        )
        for p in parts
    ]


DROPPED = re.compile(r"(?:(?P<buffer>\S+):)? *CPU:(?P<cpu>\d+) \[(?:(?P<count>\d+) )?EVENTS DROPPED\]")


def dropped(text: str) -> list[tuple[int, int]]:
    """(cpu, number) of trace-cmd's notes of lost events, in the order of the text; -1: it did not know how many."""
    found = (DROPPED.fullmatch(line) for line in text.split("\n"))
    return [(int(m["cpu"]), int(m["count"] or -1)) for m in found if m]


def same_time(ts: int, printed: str) -> bool:
    """Whether ``printed`` is ``ts``: exactly, or where it has six decimals rounded to microseconds (+500 ns)."""
    whole, _, fraction = printed.partition(".")
    if not fraction:
        return printed.endswith(str(ts))  # ``report -R`` prints flags in hex right before it, without a blank
    if len(fraction) == 9:
        return ts == int(whole) * 10**9 + int(fraction)
    return (ts + 500) // 1000 == int(whole) * 10**6 + int(fraction)


# ---------------------------------------------------------------------------------------------------- numbers

FIELD_NUMBER = re.compile(r"(?<![\w.])(\w+)=0x([0-9a-f]+) \((-?\d+)\)")
PAIR = re.compile(r"(?<![\w.])(\w+)=(-?(?:0x)?[0-9a-fA-F]+)(?=$|[\s,;)])")


def field_numbers(body: str) -> Iterator[tuple[str, int]]:
    """(field, number) of ``name=0xHEX (DECIMAL)`` tokens, K:trace_output.c print_fields; the number is the hex one."""
    for name, digits, _ in FIELD_NUMBER.findall(body):
        yield name, int(digits, 16)


def raw_numbers(body: str) -> Iterator[tuple[str, set[int]]]:
    """(field, what the digits can mean) of the ``name=value`` tokens of ``report -R``, which prints some in hex."""
    for name, digits in PAIR.findall(body):
        meanings = {int(digits, 16)}
        if re.fullmatch(r"-?\d+", digits):
            meanings.add(int(digits))
        yield name, meanings


_CONVERSION = re.compile(r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?:\.\d+)?(?P<long>hh|h|ll|l|z|L)?(?P<kind>[a-zA-Z%])")
_KEY = re.compile(r"(?:^|[^\w.])(\w+)=$")
_PLAIN = re.compile(r"(?:\((?:unsigned |signed )?(?:int|long|long long|u32|u64|s32|s64|short|char)\))?\s*REC->(\w+)")


def split_arguments(text: str) -> list[str]:
    """The arguments of a call, at commas outside brackets and strings."""
    out, depth, start, quoted = [], 0, 0, False
    for i, c in enumerate(text):
        if c == '"' and (i == 0 or text[i - 1] != "\\"):
            quoted = not quoted
        elif not quoted and c in "([{":
            depth += 1
        elif not quoted and c in ")]}":
            depth -= 1
        elif not quoted and c == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    return [*out, text[start:].strip()]


@dataclass(frozen=True)
class Printed:
    """How a print fmt prints a field: ``key=NUMBER``."""

    field: str
    base: int
    bits: int  # of the number that is printed


_BITS = {"hh": 8, "h": 16, None: 32, "ll": 64, "L": 64}


def printed_plainly(fmt: EventFormat, long_size: int) -> dict[str, Printed]:
    """The fields that a print fmt prints as ``key=NUMBER``, by key; none for what is more than one string literal."""
    first, *arguments = split_arguments(fmt.print_fmt)
    if not re.fullmatch(r'"(?:[^"\\]|\\.)*"', first):
        return {}
    found, keys = {}, []
    conversions = [m for m in _CONVERSION.finditer(first[1:-1]) if m["kind"] != "%"]
    if len(conversions) != len(arguments):
        return {}
    for m, argument in zip(conversions, arguments, strict=True):
        key = _KEY.search(first[1 : 1 + m.start()])
        if not key:
            continue
        keys.append(key[1])
        plain = _PLAIN.fullmatch(argument)
        if plain and m["kind"] in "duixX":
            found[key[1]] = Printed(plain[1], 16 if m["kind"] in "xX" else 10, _BITS.get(m["long"], 8 * long_size))
    return {key: printed for key, printed in found.items() if keys.count(key) == 1}


_DIGITS = {10: r"(-?\d+)", 16: r"(?:0x)?([0-9a-fA-F]+)"}


def kernel_numbers(body: str, plain: dict[str, Printed]) -> Iterator[tuple[Printed, int]]:
    """The numbers of the tokens that ``printed_plainly`` promises; a key that stands twice proves nothing."""
    for key, printed in plain.items():
        values = re.findall(rf"(?<![\w.]){key}={_DIGITS[printed.base]}", body)
        if len(values) == 1:
            yield printed, int(values[0], printed.base)
