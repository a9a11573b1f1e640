"""Text of the blk tracer's records: struct blk_io_trace (include/uapi/linux/blktrace_api.h).

Its first eight bytes, magic and sequence, are the record's common fields here. Layouts: K:blktrace.c.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from ..blktrace import BLKTRACE
from .record import LineRecord, encoded

# BLK_TA_*: low 16 bits of the action
_ACTIONS = {1: "Q", 2: "M", 3: "F", 4: "G", 5: "S", 6: "R", 7: "D", 8: "C", 9: "P", 10: "U", 11: "UT", 12: "I", 13: "X",
            14: "B", 15: "A"}  # fmt: skip
_COMPLETE, _PLUG, _UNPLUG, _UNPLUG_TIMER, _SPLIT, _REMAP = 8, 9, 10, 11, 13, 15
_CGROUP = 1 << 8  # in the low 16 bits: a cgroup id comes first in the payload
# BLK_TC_*: high 16 bits
_WRITE, _FLUSH, _SYNC, _NOTIFY, _AHEAD, _META, _DISCARD, _FUA = (1 << bit for bit in (1, 2, 3, 10, 11, 12, 13, 15))
_SECTOR_BITS = 9
_MINOR_BITS = 20
_SIZE = 48
_CGROUP_SIZE = 8


@dataclass(frozen=True, slots=True)
class BlkRecord:
    sector: int
    size: int
    action: int
    pid: int
    device: int
    error: int
    pdu: bytes

    @property
    def kind(self) -> int:
        return self.action & 0xFF

    @property
    def category(self) -> int:
        return self.action >> 16


def parse(payload: bytes, big_endian: bool) -> BlkRecord | None:
    """The record; None when it is too short for one."""
    if len(payload) < _SIZE:
        return None
    order = ">" if big_endian else "<"
    sector, size, action, pid, device, _cpu, error, pdu_len = struct.unpack_from(order + "QIIIIIHH", payload, 16)
    skip = _CGROUP_SIZE if action & _CGROUP else 0
    return BlkRecord(sector, size, action, pid, device, error, payload[_SIZE + skip : _SIZE + pdu_len])


def flags_text(record: BlkRecord) -> str:
    """The letters RWBS."""
    category = record.category
    if category & _DISCARD:
        letters = "D"
    else:
        letters = "W" if category & _WRITE else "R" if record.size else "N"
    marks = ((_FUA, "F"), (_AHEAD, "A"), (_SYNC, "S"), (_META, "M"))
    return ("F" if category & _FLUSH else "") + letters + "".join(mark for bit, mark in marks if category & bit)


def _device(number: int) -> tuple[int, int]:
    return number >> _MINOR_BITS, number & ((1 << _MINOR_BITS) - 1)


def _number(pdu: bytes) -> int:
    """Numbers in the payload are big-endian whatever the kernel."""
    return int.from_bytes(pdu[:8], "big") if len(pdu) >= 8 else 0


def _detail(record: BlkRecord, comm: str) -> str:
    sectors = record.size >> _SECTOR_BITS
    match record.kind:
        case kind if kind == _COMPLETE:
            error = record.error - (1 << 16) if record.error >> 15 else record.error
            return f"{record.sector} + {sectors} [{error}]" if sectors else f"{record.sector} [{error}]"
        case kind if kind == _PLUG:
            return f"[{comm}]"
        case kind if kind in (_UNPLUG, _UNPLUG_TIMER):
            return f"[{comm}] {_number(record.pdu)}"
        case kind if kind == _SPLIT:
            return f"{record.sector} / {_number(record.pdu)} [{comm}]"
        case kind if kind == _REMAP and len(record.pdu) >= 16:
            major, minor = _device(int.from_bytes(record.pdu[:4], "big"))
            origin = int.from_bytes(record.pdu[8:16], "big")
            return f"{record.sector} + {sectors} <- ({major},{minor}) {origin}"
        case _:
            return f"{record.sector} + {sectors} [{comm}]" if sectors else f"[{comm}]"


def printer(
    comm_of: Callable[[int], bytes], *, classic: bool, big_endian: bool, other: Callable[[LineRecord], bytes]
) -> Callable[[LineRecord], bytes]:
    """A function that prints these records, and anything else by ``other``."""

    def body(record: LineRecord) -> bytes:
        if (record.format.system, record.format.name) != BLKTRACE:
            return other(record)
        found = parse(bytes(record.payload), big_endian)
        if found is None:
            return other(record)
        comm = comm_of(record.pid).decode("utf-8", "surrogateescape")
        major, minor = _device(found.device)
        action, flags = _ACTIONS.get(found.kind, "?"), flags_text(found)
        detail = _detail(found, comm)
        if found.category & _NOTIFY:
            action, flags, detail = "m", "N", found.pdu.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
        when = ""
        if classic:
            seconds, ns = divmod(record.ts, 1_000_000_000)
            when = f"{record.cpu:2d} {seconds:5d}.{ns:09d} {found.pid:5d} "
        text = f"{major:3d},{minor:<3d} {when}{action:>2} {flags:>3} {detail}\n"
        return encoded(text)

    return body
