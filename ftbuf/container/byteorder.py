"""The byte order of raw pages that come without a header: judged by the pages, else by the machine's name."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable

PAGES_JUDGED = 16
_BIG = re.compile(r"\b(s390x?|ppc(64)?|sparc(64|32)?|parisc(64)?|m68k|mips(64)?|or1k|armv\d\w*b|aarch64_be|\w+eb)\b")
_LITTLE = re.compile(r"\b(x86_64|i[3-6]86|aarch64|armv\d\w*l|ppc64le|ppcle|riscv(32|64)|loongarch(32|64)|alpha|ia64)\b")


def guess_byte_order(pages: Iterable[memoryview], *, long_size: int, data_offset: int, uname: str = "") -> bool:
    """Whether the pages are big-endian.

    Parameters
    ----------
    pages
        Sub-buffers of any CPUs; some that hold events are enough.
    long_size, data_offset
        From header_page.
    uname
        Of the traced machine. It decides where no page does: "mips" alone does not tell, and counts as big.
    """
    votes = 0
    for judged, page in enumerate(pages):
        if judged >= PAGES_JUDGED or abs(votes) >= 8:
            break
        votes += _plausible(page, ">", long_size, data_offset) - _plausible(page, "<", long_size, data_offset)
    if votes:
        return votes > 0
    return bool(_BIG.search(uname)) and not _LITTLE.search(uname)


def _plausible(page: memoryview, order: str, long_size: int, data_offset: int) -> int:
    """0: the page makes no sense in this byte order; 1: it may be empty; 2: its size is sound; 4: its records too."""
    if len(page) < data_offset + 8:
        return 1
    commit = struct.unpack_from(order + ("Q" if long_size == 8 else "I"), page, 8)[0]
    if commit >> 32 not in (0, 0xFFFFFFFF):  # the flags are sign-extended (K:ring_buffer.c RB_MISSED_EVENTS)
        return 0
    size = commit & 0x3FFFFFFF
    if size > len(page) - data_offset or size % 4:
        return 0
    if size == 0:
        return 1
    return 4 if _records_end_at(page[data_offset:data_offset + size], order) else 2


def _records_end_at(data: memoryview, order: str) -> bool:
    """Whether a walk over the record headers ends exactly where the data do (K:ring_buffer.c rb_event_length)."""
    pos, big, word = 0, order == ">", struct.Struct(order + "I").unpack_from
    while pos + 4 <= len(data):
        head = word(data, pos)[0]
        kind = head >> 27 if big else head & 31
        delta = head & 0x07FFFFFF if big else head >> 5
        if kind == 29 and not delta:
            return True
        if kind in (30, 31):
            pos += 8
        elif kind in (0, 29):
            if pos + 8 > len(data):
                return False
            pos += 4 + (max(word(data, pos + 4)[0], 4) + 3) // 4 * 4
        else:
            pos += 4 + 4 * kind
    return pos == len(data)
