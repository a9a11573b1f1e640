"""Event format text -> EventFormat and Field; header_page text -> Abi. Cold code: text in, frozen values out."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Kind(enum.Enum):
    """What one value of a field is."""

    SCALAR = "scalar"  # an integer of 1, 2, 4 or 8 bytes
    STRING = "string"  # bytes up to the first NUL
    ARRAY = "array"  # elements of element_size (1, 2, 4 or 8) bytes
    MASK = "mask"  # a bitmap of kernel longs (cpumask_t and other bitmasks)
    OPAQUE = "opaque"  # bytes that only the kernel understands (structs, odd sizes)


class Where(enum.Enum):
    """Where the bytes of a field are."""

    INLINE = "inline"  # at offset, size bytes
    DATA_LOC = "data_loc"  # u32 at offset: low 16 bits offset from the record's start, high 16 bits length
    REL_LOC = "rel_loc"  # the same, counted from the end of that u32
    SHORT_LOC = "short_loc"  # u16 at offset: offset only; a string up to its NUL (kernels before 2.6.33)
    TAIL = "tail"  # from offset to the end of the record


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: str  # the C type as declared, without name, brackets and __data_loc: "unsigned long", "char", "const char *"
    declaration: str  # everything between "field:" and the first ";"
    offset: int
    size: int
    signed: bool
    kind: Kind
    where: Where
    element_size: int  # bytes of one element (SCALAR: size; STRING and OPAQUE: 1)
    is_pointer: bool  # a kernel address: columns are uint64
    is_common: bool  # one of the common_* fields, before the blank line


@dataclass(frozen=True, slots=True)
class EventFormat:
    system: str
    name: str
    id: int
    fields: tuple[Field, ...]  # common fields first, in the order of the text
    print_fmt: str

    @property
    def common_fields(self) -> tuple[Field, ...]:
        return tuple(f for f in self.fields if f.is_common)

    @property
    def own_fields(self) -> tuple[Field, ...]:
        return tuple(f for f in self.fields if not f.is_common)


@dataclass(frozen=True, slots=True)
class Abi:
    """How the traced kernel lays out one buffer: always a value read from the recording, never the host's."""

    big_endian: bool
    long_size: int  # of the kernel: size of the commit field
    subbuf_size: int
    data_offset: int  # of the first record in a sub-buffer
    old_header: bool = False  # the 2/3/27-bit record header of 2.6.28 to 2.6.30


def parse_format(text: bytes, system: str, *, long_size: int = 8) -> EventFormat:
    """Parse the text of one event's ``format`` file."""
    raise NotImplementedError


def parse_header_page(text: bytes, *, big_endian: bool, header_event: bytes = b"", fallback_subbuf_size: int = 4096,
                      fallback_long_size: int = 8) -> Abi:
    """Parse ``events/header_page`` (empty for kernels that had none)."""
    raise NotImplementedError
