"""Writes ring-buffer pages and event formats field by field, right ones and deliberately wrong ones.

``Page``          ring-buffer sub-buffers: both endians, 4- and 8-byte longs, old and new headers, every kind of record
``make_format``   event formats from C declarations; ``event`` packs a record's payload; ``format_text`` writes the text

    page = Page(abi, ts=1000).data(5, payload).time_extend(1 << 30).data(0, payload).finish(missed=True, stored=7)

Nothing is checked on the way: what a caller asks for is what gets written. Shares no code with the package but the
dataclasses of ``ftbuf.formats``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ftbuf.formats import Abi, EventFormat, Field, Kind, Where

U32 = (1 << 32) - 1
U64 = (1 << 64) - 1
MAX_SHORT = 28 * 4  # bytes of payload whose length fits in type_len


def make_abi(*, big: bool = False, long_size: int = 8, subbuf_size: int = 4096, old_header: bool = False) -> Abi:
    return Abi(big, long_size, subbuf_size, 8 + long_size, old_header)


ABIS = {
    "le64": make_abi(),
    "be64": make_abi(big=True),
    "le32": make_abi(long_size=4),
    "be32": make_abi(big=True, long_size=4),
    "le64-64k": make_abi(subbuf_size=65536),
    "be32-8k": make_abi(big=True, long_size=4, subbuf_size=8192),
    "le64-old": make_abi(old_header=True),
    "be32-old": make_abi(big=True, long_size=4, old_header=True),
}


def pack(abi: Abi, value: int, size: int) -> bytes:
    """Any integer in the kernel's byte order, wrapped to ``size`` bytes."""
    return (value & ((1 << 8 * size) - 1)).to_bytes(size, "big" if abi.big_endian else "little")


# --------------------------------------------------------------------------------------------------------- pages


class Page:
    """A sub-buffer under construction. Methods that add a record return the page."""

    def __init__(self, abi: Abi, ts: int = 0, *, align8: bool = False) -> None:
        self.abi = abi
        self.ts = ts
        self.align8 = align8  # RB_FORCE_8BYTE_ALIGNMENT: data is always long, records are multiples of 8
        self.body = bytearray()

    @property
    def here(self) -> int:
        """Offset in the page of the next record."""
        return self.abi.data_offset + len(self.body)

    @property
    def room(self) -> int:
        """Bytes left for records."""
        return self.abi.subbuf_size - self.here

    def raw(self, data: bytes) -> Page:
        self.body += data
        return self

    def word(self, value: int) -> Page:
        return self.raw(pack(self.abi, value, 4))

    def header(self, type_len: int, delta: int) -> Page:
        """The 5/27-bit record header alone."""
        delta &= (1 << 27) - 1
        return self.word(type_len << 27 | delta if self.abi.big_endian else type_len | delta << 5)

    def old_header(self, kind: int, length: int, delta: int) -> Page:
        """The 2/3/27-bit record header alone."""
        delta &= (1 << 27) - 1
        return self.word(kind << 30 | length << 27 | delta if self.abi.big_endian else kind | length << 2 | delta << 5)

    def data(self, delta: int, payload: bytes, *, long: bool | None = None, length: int | None = None) -> Page:
        """A data record, written as the kernel would unless ``long`` insists or ``length`` (array[0]) lies."""
        if self.align8:
            padded = payload + bytes(-len(payload) % 8)
            return self.header(0, delta).word(len(padded) + 4 if length is None else length).raw(padded)
        padded = payload + bytes(-len(payload) % 4)
        limit = 7 * 4 if self.abi.old_header else MAX_SHORT
        if long is None:
            long = not 0 < len(padded) <= limit or length is not None
        if self.abi.old_header:
            self.old_header(3, 0 if long else len(padded) // 4, delta)
        else:
            self.header(0 if long else len(padded) // 4, delta)
        if long:
            self.word(len(padded) + 4 if length is None else length)
        return self.raw(padded)

    def time_extend(self, delta: int) -> Page:
        """Adds ``delta`` (59 bits) to the running time."""
        if self.abi.old_header:
            self.old_header(1, 0, delta)
        else:
            self.header(30, delta)
        return self.word(delta >> 27)

    def time_stamp(self, ts: int) -> Page:
        """Sets the running time to ``ts``, of which 59 bits are kept."""
        ts &= (1 << 59) - 1
        return self.header(31, ts).word(ts >> 27)

    def padding(self, delta: int = 1, size: int = 8, *, length: int | None = None) -> Page:
        """Sized padding of ``size`` bytes in all (a discarded event keeps its delta)."""
        return self.header(29, delta).word(size - 4 if length is None else length).raw(bytes(max(0, size - 8)))

    def end_padding(self) -> Page:
        """The rest of the page is empty."""
        return self.old_header(0, 0, 0) if self.abi.old_header else self.header(29, 0)

    def fill(self) -> Page:
        """Sized padding up to the very end, as in pages that are mapped."""
        return self.padding(1, self.room)

    def finish(
        self,
        *,
        missed: bool = False,
        stored: int | None = None,
        sign_extend: bool | None = None,
        size: int | None = None,
        flags: int = 0,
        junk: bytes = b"",
        cut: int | None = None,
    ) -> bytes:
        """The page's bytes.

        Parameters
        ----------
        missed
            Events were lost before this page.
        stored
            Their number, kept after the last record.
        sign_extend
            Whether the flag is sign-extended into the upper half of a 64-bit commit; as the kernel does if not given.
        size
            What commit claims, where that is to be a lie.
        flags
            More bits to set in commit.
        junk
            What follows the data instead of zeros (a page that is mapped keeps old bytes there).
        cut
            Keep this many bytes only.
        """
        commit = (len(self.body) if size is None else size) | flags
        if missed or stored is not None:
            commit |= 1 << 31
        if stored is not None:
            commit |= 1 << 30
        if sign_extend is None:
            sign_extend = self.abi.long_size == 8
        if sign_extend and commit >> 31 & 1:
            commit |= U64 ^ U32
        page = bytearray(pack(self.abi, self.ts, 8) + pack(self.abi, commit, self.abi.long_size))
        page += bytes(self.abi.data_offset - len(page)) + self.body
        if stored is not None:
            page += pack(self.abi, stored, self.abi.long_size)
        page += junk
        page += bytes(max(0, self.abi.subbuf_size - len(page)))
        return bytes(page[: self.abi.subbuf_size if cut is None else cut])


def pages_of(abi: Abi, *payloads: bytes, ts: int = 1_000_000, step: int = 1000) -> bytes:
    """As many pages as the records need, ``step`` apart."""
    out, page = b"", Page(abi, ts)
    for payload in payloads:
        if page.room < 8 + len(payload) + 3:
            out += page.finish()
            page = Page(abi, ts)
        page.data(step if page.body else 0, payload)
        ts += step
    return out + page.finish()


# ------------------------------------------------------------------------------------------------------- formats

SIZES = {
    "char": 1,
    "bool": 1,
    "short": 2,
    "int": 4,
    "u8": 1,
    "s8": 1,
    "u16": 2,
    "s16": 2,
    "u32": 4,
    "s32": 4,
    "u64": 8,
    "s64": 8,
    "pid_t": 4,
    "dev_t": 4,
    "gfp_t": 4,
    "uint8_t": 1,
    "uint16_t": 2,
    "uint32_t": 4,
    "uint64_t": 8,
}
UNSIGNED = re.compile(r"\b(unsigned|u8|u16|u32|u64|bool|size_t|dev_t|gfp_t|uint\d+_t)\b|\*")
COMMON = (
    "unsigned short common_type",
    "unsigned char common_flags",
    "unsigned char common_preempt_count",
    "int common_pid",
)


def type_size(ctype: str, long_size: int) -> int:
    words = ctype.replace("const ", "").split()
    if "*" in ctype:
        return long_size
    if words.count("long") == 2:
        return 8
    if "long" in words or "size_t" in words:
        return long_size
    return next((SIZES[w] for w in words if w in SIZES), 0)


@dataclass(frozen=True)
class Declared:
    """A field as declared: what a kernel's struct would make of it."""

    text: str
    name: str
    type: str
    kind: Kind
    where: Where
    size: int
    element: int
    signed: bool
    pointer: bool


def declare(text: str, long_size: int = 8) -> Declared:
    """A field from its C declaration: "int pid", "char comm[16]", "__data_loc char[] name", "u32 x[]"."""
    where, rest = Where.INLINE, text
    for prefix, loc in (("__data_loc ", Where.DATA_LOC), ("__rel_loc ", Where.REL_LOC)):
        if text.startswith(prefix):
            where, rest = loc, text[len(prefix) :]
    ctype, brackets, name, after = re.fullmatch(r"(.*?)\s*(\[\w*\])?\s*(\w+)\s*(\[\w*\])?", rest).groups()
    element, pointer = type_size(ctype, long_size), "*" in ctype
    kind = Kind.SCALAR if element else Kind.OPAQUE
    if "cpumask" in ctype:
        kind, element = Kind.MASK, long_size
    elif brackets or after or where is not Where.INLINE:
        kind = Kind.OPAQUE if not element else Kind.STRING if ctype.split()[-1] == "char" else Kind.ARRAY
    element = element or 1
    size = element
    if where is not Where.INLINE:
        size = 4
    elif after:
        count = after[1:-1]
        size = element * int(count) if count else 0
        where = Where.INLINE if count else Where.TAIL
    return Declared(text, name, ctype.strip(), kind, where, size, element, not UNSIGNED.search(ctype), pointer)


def make_format(
    name: str,
    id: int,
    declarations: Sequence[str],
    *,
    system: str = "test",
    long_size: int = 8,
    common: Sequence[str] = COMMON,
    print_fmt: str = '""',
    packed: bool = False,
    holes: Mapping[str, int] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> EventFormat:
    """An EventFormat whose fields lie as a C compiler would lay them out.

    ``holes`` says how many bytes to leave before a field, ``sizes`` how large structs are; ``packed`` drops alignment.
    """
    fields, offset = [], 0
    for text in (*common, *declarations):
        d = declare(text, long_size)
        size = (sizes or {}).get(d.name, d.size)
        unit = 1 if packed else 4 if d.where in (Where.DATA_LOC, Where.REL_LOC) else d.element
        offset = -(-offset // unit) * unit + (holes or {}).get(d.name, 0)
        fields.append(
            Field(d.name, d.type, d.text, offset, size, d.signed, d.kind, d.where, d.element, d.pointer, text in common)
        )
        offset += size
    return EventFormat(system, name, id, tuple(fields), print_fmt)


def format_text(fmt: EventFormat, *, signed: bool = True) -> bytes:
    """The text of a ``format`` file, K:trace_events.c f_show; ``signed=False`` as before 2.6.33."""

    def line(f: Field) -> str:
        text = f"\tfield:{f.declaration};\toffset:{f.offset};\tsize:{f.size};"
        return text + (f"\tsigned:{f.signed:d};\n" if signed else "\n")

    common = "".join(map(line, fmt.common_fields))
    own = "".join(map(line, fmt.own_fields))
    return f"name: {fmt.name}\nID: {fmt.id}\nformat:\n{common}\n{own}\nprint fmt: {fmt.print_fmt}\n".encode()


def header_page_text(abi: Abi, *, overwrite: bool = True) -> bytes:
    rows = [
        ("u64 timestamp", 0, 8, 0),
        ("local_t commit", 8, abi.long_size, 1),
        ("int overwrite", 8, 1, 1),
        ("char data", abi.data_offset, abi.subbuf_size - abi.data_offset, 1),
    ]
    return "".join(
        f"\tfield: {d};\toffset:{o};\tsize:{s};\tsigned:{g};\n"
        for d, o, s, g in rows
        if overwrite or d != "int overwrite"
    ).encode()


HEADER_EVENT = b"""# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp : type == 31
\tdata max type_len  == 28
"""
OLD_HEADER_EVENT = b"""# compressed entry header
\ttype\t\t:    2 bits
\tlen\t\t:    3 bits
\ttime_delta\t:   27 bits
\tarray\t\t:   32 bits
"""


def header_event_text(abi: Abi) -> bytes:
    if abi.old_header:
        return OLD_HEADER_EVENT
    return HEADER_EVENT


def event(fmt: EventFormat, abi: Abi, /, **values: Any) -> bytes:
    """The payload of a record.

    Every field is zero unless given: an int, bytes or str for strings (dynamic ones get their NUL), a list of ints for
    arrays and masks. ``("loc", offset, length)`` writes a dynamic field's location as it is, for locations that lie.
    """
    values.setdefault("common_type", fmt.id)
    unknown = values.keys() - {f.name for f in fmt.fields}
    assert not unknown, f"{fmt.name} has no field {unknown}"
    payload = bytearray(max((f.offset + f.size for f in fmt.fields), default=0))
    for f in fmt.fields:
        value = values.get(f.name, 0 if f.kind is Kind.SCALAR and f.where is Where.INLINE else b"")
        if f.where is Where.INLINE:
            data = _encode(f, abi, value)[: f.size]
            payload[f.offset : f.offset + len(data)] = data
        elif f.where is Where.TAIL:
            payload[f.offset :] = _encode(f, abi, value)
        else:
            _locate(payload, f, abi, value)
    return bytes(payload)


def _encode(f: Field, abi: Abi, value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, int):
        return pack(abi, value, f.size)
    return b"".join(pack(abi, v, f.element_size) for v in value)


def _locate(payload: bytearray, f: Field, abi: Abi, value: Any) -> None:
    """Append a dynamic field's bytes and write where they are."""
    base = f.offset + 4 if f.where is Where.REL_LOC else 0
    if isinstance(value, tuple):
        _, start, length = value
    else:
        data = _encode(f, abi, value)
        if f.kind is Kind.STRING:
            data += b"\0"
        payload += bytes(-len(payload) % min(f.element_size, 8))
        start, length = len(payload) - base, len(data)
        payload += data
    if f.where is Where.SHORT_LOC:
        payload[f.offset : f.offset + 2] = pack(abi, start, 2)
    else:
        payload[f.offset : f.offset + 4] = pack(abi, length << 16 | start & 0xFFFF, 4)
