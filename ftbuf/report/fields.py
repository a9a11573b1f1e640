"""An event field by field, as the kernel prints it under the option fields (K:trace_output.c print_event_fields)."""

from __future__ import annotations

from ftbuf.formats import EventFormat, Field, Kind, Where

from .record import LineRecord


def field_text(record: LineRecord, *, big_endian: bool = False, long_size: int = 8) -> bytes:
    """`` name=value`` for every field of the event's own."""
    reader = _Reader(bytes(record.payload), "big" if big_endian else "little", long_size)
    return b"".join(b" %s=%s" % (f.name.encode(), reader.value(f)) for f in own_fields(record.format))


def own_fields(fmt: EventFormat) -> tuple[Field, ...]:
    return tuple(f for f in fmt.fields if not f.is_common)


def located(payload: bytes, field: Field, order: str) -> tuple[int, int]:
    """(offset, length) of a dynamic field's bytes."""
    word = int.from_bytes(payload[field.offset : field.offset + 4], "big" if order == "big" else "little")
    base = field.offset + 4 if field.where is Where.REL_LOC else 0
    return base + (word & 0xFFFF), word >> 16


class _Reader:
    def __init__(self, payload: bytes, order: str, long_size: int) -> None:
        self._payload, self._order, self._long_size = payload, order, long_size

    def value(self, field: Field) -> bytes:
        if field.where in (Where.DATA_LOC, Where.REL_LOC):
            offset, length = located(self._payload, field, self._order)
            return self._dynamic(field, self._payload[offset : offset + length])
        data = self._payload[field.offset : field.offset + field.size if field.size else None]
        if field.kind is Kind.STRING:
            return data.split(b"\0", 1)[0]
        if field.type in ("char *", "const char *"):
            return b"(0x%0*x)" % (2 * self._long_size, self._number(data, False))
        return self._scalar(data)

    def _number(self, data: bytes, signed: bool) -> int:
        return int.from_bytes(data, "big" if self._order == "big" else "little", signed=signed)

    def _scalar(self, data: bytes) -> bytes:
        """By its size alone: an array of that size is taken for a number too."""
        if len(data) not in (1, 2, 4, 8):
            return b"<INVALID-SIZE>"
        if len(data) == 1:
            letter = b"'%c'" % data[0] if is_printable(data[0]) else b""
            return letter + b"(%d)" % data[0]
        signed = len(data) >= 4  # the kernel prints int and long as signed whatever the field says
        return b"0x%x (%d)" % (self._number(data, False), self._number(data, signed))

    def _dynamic(self, field: Field, data: bytes) -> bytes:
        if field.kind is Kind.STRING:
            return printable(data)
        if "[" not in field.declaration and field.where is Where.DATA_LOC:
            return b"<INVALID-TYPE>"
        return b",".join(b"%02x" % byte for byte in data)


def is_printable(byte: int) -> bool:
    """As the kernel's isprint: Latin-1."""
    return 32 <= byte < 127 or byte >= 160


def printable(data: bytes) -> bytes:
    """Characters up to the NUL, dots for what cannot be shown, and then all bytes again as numbers."""
    text = data.split(b"\0", 1)[0]
    shown = bytes(byte if is_printable(byte) else 0x2E for byte in text)
    return shown if shown == text else shown + b" (" + b":".join(b"%02x" % byte for byte in text) + b")"
