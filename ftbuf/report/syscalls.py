"""System call events as the kernel prints them: as calls and their results, not by their print fmt (K:trace_syscalls.c)."""

from __future__ import annotations

import re
from collections.abc import Callable

from ftbuf.formats import Field

from .fields import is_printable, located, own_fields
from .record import LineRecord, number

ENTER, EXIT = "sys_enter_", "sys_exit_"
READABLE = (6, 19)  # since then: 0x before hexadecimal numbers, strings that user space passed
_HEX = re.compile(rb"0x([0-9a-f]{8,})")


def is_call(record: LineRecord) -> bool:
    return record.format.system == "syscalls" and record.format.name.startswith((ENTER, EXIT))


def call_text(
    record: LineRecord,
    release: tuple[int, int],
    *,
    verbose: bool = False,
    big_endian: bool = False,
    event_text: Callable[[LineRecord], bytes] | None = None,
) -> bytes:
    """A call or its result. ``verbose``: with the arguments' types."""
    name = record.format.name
    if name.startswith(EXIT):
        value = number(record, "ret")
        bits = 8 * next((f.size for f in own_fields(record.format) if f.name == "ret"), 8)
        return b"sys_%s -> 0x%x" % (name[len(EXIT) :].encode(), value & ((1 << bits) - 1))
    call = b"sys_%s(" % name[len(ENTER) :].encode()
    if release >= READABLE and not verbose and event_text is not None and "__print_flags" in record.format.print_fmt:
        return call + _HEX.sub(lambda m: b"%d" % int(m[1], 16), event_text(record)) + b")"
    return call + b", ".join(_arguments(record, release, verbose, big_endian)) + b")"


def _arguments(record: LineRecord, release: tuple[int, int], verbose: bool, big_endian: bool) -> list[bytes]:
    fields = [f for f in own_fields(record.format) if f.name not in ("__syscall_nr", "nr")]
    extra = {f.name: f for f in fields if f.name.startswith("__") and f.name.endswith("_val")}
    texts = []
    following = 0
    for field in reversed([f for f in fields if f.name not in extra]):
        value = number(record, field.name) & ((1 << 8 * field.size) - 1)
        text = field.name.encode() + b": " + _number(value, release)
        if verbose:
            text = field.type.encode() + b" " + text
        user = extra.get(f"__{field.name}_val")
        if user is not None:
            text += _user_data(record, user, following, big_endian)
        texts.append(text)
        following = value
    return texts[::-1]


def _number(value: int, release: tuple[int, int]) -> bytes:
    if release < READABLE:
        return b"%x" % value
    return b"%d" % value if value < 10 else b"0x%x" % value


def _user_data(record: LineRecord, field: Field, count: int, big_endian: bool) -> bytes:
    """What the kernel copied from user space: a string, or bytes of which there may have been more."""
    payload = bytes(record.payload)
    offset, length = located(payload, field, "big" if big_endian else "little")
    data = payload[offset : offset + length]
    if f"__get_str({field.name})" in record.format.print_fmt:
        return b' "%s"' % data.split(b"\0", 1)[0]
    cut = length < count
    shown = bytes(byte if is_printable(byte) else 0x2E for byte in data)
    return b' (%s%s) "%s"%s' % (
        b":".join(b"%02x" % byte for byte in data),
        b", ..." if cut else b"",
        shown,
        b"..." if cut else b"",
    )
