"""Event format text -> EventFormat and Field; header_page text -> Abi. Cold code: text in, frozen values out."""

from __future__ import annotations

import enum
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache

from .errors import FormatError


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
    """One field of an event. Offset, size and signedness are the kernel's word; the C type is only a hint."""

    name: str
    type: str  # the C type as declared, without name, brackets and __data_loc: "unsigned long", "char", "const char *"
    declaration: str  # everything between "field:" and the first ";"
    offset: int
    size: int  # as declared, but 0 for TAIL; 8 for the DATA_LOC of synthetic events, whose first 4 bytes are the u32
    signed: bool
    kind: Kind
    where: Where
    element_size: int  # bytes of one element (SCALAR: size; STRING and OPAQUE: 1; MASK: a kernel long)
    is_pointer: bool  # a kernel address: columns are uint64
    is_common: bool  # one of the common_* fields, before the blank line
    count: tuple[int, int] | None = None  # TAIL: (offset, size) of the field that says how many elements it has


@dataclass(frozen=True, slots=True)
class EventFormat:
    """One event: its identity, its fields and the text of its print fmt."""

    system: str
    name: str
    id: int
    fields: tuple[Field, ...]  # common fields first, in the order of the text; their names are unique
    print_fmt: str

    @property
    def common_fields(self) -> tuple[Field, ...]:
        """Those that every event begins with."""
        return tuple(f for f in self.fields if f.is_common)

    @property
    def own_fields(self) -> tuple[Field, ...]:
        """Those that are this event's alone."""
        return tuple(f for f in self.fields if not f.is_common)

    def find(self, name: str, *, located: bool = False) -> Field | None:
        """Return the field that a print fmt means by ``name``, or None.

        Parameters
        ----------
        name : str
            The name as the print fmt spells it.
        located : bool
            True for the argument of ``__get_str()`` and its like: where an event has two fields of one name, these
            mean the ``__data_loc`` or ``__rel_loc`` one. False for ``REC->name``, which means the other.
        """
        spellings = (*(prefix + "_" + name for prefix in _LOCATED), name) if located else (name,)
        for spelling in spellings:
            for field in self.fields:
                if field.name == spelling:
                    return field
        return None


@dataclass(frozen=True, slots=True)
class Abi:
    """How the traced kernel lays out one buffer: always a value read from the recording, never the host's."""

    big_endian: bool
    long_size: int  # of the kernel: size of the commit field
    subbuf_size: int
    data_offset: int  # of the first record in a sub-buffer
    old_header: bool = False  # the 2/3/27-bit record header of 2.6.28 to 2.6.30


MAX_TEXT = 1 << 20  # real format files stay below 64 KiB
MAX_DECLARATION = 1024  # real ones stay below 100 bytes
MIN_SUBBUF, MAX_SUBBUF = 64, 1 << 24  # no record, so no field, ends beyond a sub-buffer
MAX_ID = 0xFFFF  # common_type is a u16 (K:trace_events.h)

_INTEGER_SIZES = (1, 2, 4, 8)

# Prefix of a declaration -> where the bytes are. __str_loc is how 2.6.31 spelled __data_loc.
_LOCATED = {"__data_loc": Where.DATA_LOC, "__rel_loc": Where.REL_LOC, "__str_loc": Where.DATA_LOC}

# Fields that are not what they declare (K:trace_entries.h): kernel_stack.caller[8] has as many entries as the stack,
# raw_data.buf is declared as text, but holds bytes.
_TAILS = {("ftrace", "kernel_stack", "caller"): Kind.ARRAY, ("ftrace", "raw_data", "buf"): Kind.OPAQUE}

# Tails that do not reach to the end of the record: the field that says how many elements they have.
_COUNTS = {("ftrace", "kernel_stack", "caller"): "size", ("ftrace", "blktrace", "pdu"): "pdu_len"}

# One line of the text (K:trace_events.c f_show). A word may stand before the colon; "signed:" came with 2.6.33.
_FIELD_LINE = re.compile(
    r"[ \t]*field[ \t]*(?:\w+[ \t]*)?:([^;\n]*);"
    r"[ \t]*offset:[ \t]*([0-9]{1,10});[ \t]*size:[ \t]*([0-9]{1,10});(?:[ \t]*signed:[ \t]*([01]))?"
)
_HEAD = re.compile(rb"name:([^\n]*)\nID:[ \t]*([0-9]{1,5})[ \t\r]*(?:\n|$)")
_OLD_HEADER = re.compile(rb"^\s*len\s*:\s*3 bits", re.MULTILINE)
_HEADER = frozenset({"common_type", "common_flags", "common_preempt_count", "common_pid"})
_MASK_ARGUMENT = re.compile(r"__get_(?:rel_)?(?:bitmask|cpumask)\(\(?([\w.]{1,256})\)")


def event_name_and_id(text: bytes | memoryview) -> tuple[str, int]:
    """Find the name and the id of an event without parsing the rest of its format text.

    Raises
    ------
    FormatError
        The text does not begin as a format file does, or the id does not fit ``common_type``.
    """
    match = _HEAD.match(text)
    name = match[1].strip() if match is not None else b""
    if match is not None and name and int(match[2]) <= MAX_ID:
        return name.decode("utf-8", "surrogateescape"), int(match[2])
    raise FormatError(f"not an event format: begins with {bytes(text[:60])!r}")


def parse_format(text: bytes, system: str, *, long_size: int = 8) -> EventFormat:
    """Parse the text of one event's ``format`` file.

    Parameters
    ----------
    text : bytes
        The file as the kernel shows it.
    system : str
        Name of the event system (directory) it belongs to.
    long_size : int
        Bytes of a long of the traced kernel: the size of an element of arrays of long or of pointers.

    Returns
    -------
    EventFormat
        Every field of the text. What cannot be understood of a field's type leaves it as OPAQUE bytes.

    Raises
    ------
    FormatError
        The text is not an event format, or a field does not say where it is.
    """
    if len(text) > MAX_TEXT:
        raise FormatError(f"format text of {len(text)} bytes")
    name, event_id = event_name_and_id(text)
    head, _, print_fmt = text.decode("utf-8", "surrogateescape").partition("\nprint fmt:")
    lines = head.split("\n")[2:]
    masks = set(_MASK_ARGUMENT.findall(print_fmt))
    fields = [_parse_field(line, (system, name), long_size, common, masks) for line, common in _field_lines(lines)]
    counted = _with_counts(_settle(fields), (system, name))
    return check_header(EventFormat(system, name, event_id, counted, print_fmt.strip(" \n\0")))


def check_header(fmt: EventFormat) -> EventFormat:
    """The format, whose fields that every event has must be numbers: much is looked up by them."""
    for field in fmt.common_fields:
        if field.name in _HEADER and (field.kind is not Kind.SCALAR or field.where is not Where.INLINE):
            raise FormatError(f"{field.name} of {field.size} bytes is no number")
    return fmt


def parse_header_page(text: bytes, *, big_endian: bool, header_event: bytes = b"", fallback_subbuf_size: int = 4096,
                      fallback_long_size: int = 8) -> Abi:
    """Parse ``events/header_page`` (empty for kernels that had none).

    Parameters
    ----------
    text : bytes
        The file; empty means a kernel before 2.6.31, whose layout is then taken from the fallbacks.
    big_endian : bool
        Byte order of the traced kernel.
    header_event : bytes
        The ``events/header_event`` file: it tells the record header of kernels before 2.6.31 from today's.
    fallback_subbuf_size, fallback_long_size : int
        What to believe when there is no text.

    Raises
    ------
    FormatError
        The text is not a header_page, or describes a layout that no kernel has.
    """
    if not text.strip(b" \t\n\0"):
        return _checked_abi(Abi(
            big_endian, fallback_long_size, fallback_subbuf_size,
            data_offset=8 + fallback_long_size, old_header=b"type_len" not in header_event,
        ))
    if len(text) > MAX_TEXT:
        raise FormatError(f"header_page of {len(text)} bytes")
    places: dict[str, tuple[int, int]] = {}  # name -> offset, size
    for line, _ in _field_lines(text.decode("utf-8", "surrogateescape").split("\n")):
        places[_declared(line[1][:MAX_DECLARATION]).name] = int(line[2]), int(line[3])
    if "commit" not in places or "data" not in places:
        raise FormatError(f"header_page without commit and data: {text[:200]!r}")
    if places.get("timestamp", (0, 8)) != (0, 8) or places["commit"][0] != 8:
        raise FormatError(f"header_page with a page header of another shape: {text[:200]!r}")
    long_size = places["commit"][1]
    offset, size = places["data"]
    return _checked_abi(Abi(big_endian, long_size, offset + size, offset, _OLD_HEADER.search(header_event) is not None))


def _checked_abi(abi: Abi) -> Abi:
    if abi.long_size not in (4, 8):
        raise FormatError(f"commit field of {abi.long_size} bytes: a kernel long has 4 or 8")
    if not MIN_SUBBUF <= abi.subbuf_size <= MAX_SUBBUF or abi.subbuf_size % 4:
        raise FormatError(f"sub-buffers of {abi.subbuf_size} bytes")
    if not 8 + abi.long_size <= abi.data_offset < abi.subbuf_size or abi.data_offset % 4:
        raise FormatError(f"records begin at byte {abi.data_offset} of a sub-buffer of {abi.subbuf_size}")
    return abi


def _field_lines(lines: list[str]) -> list[tuple[re.Match[str], bool]]:
    """The field lines, and whether each is in the part before the blank line that ends the common fields."""
    found: list[tuple[re.Match[str], bool]] = []
    is_common = True
    for line in lines:
        match = _FIELD_LINE.match(line)
        if match:
            found.append((match, is_common))
        elif line.lstrip().startswith("field"):
            raise FormatError(f"field without offset and size: {line[:200]!r}")
        elif not line.strip():
            is_common = False
    return found


def _parse_field(
    line: re.Match[str], event: tuple[str, str], long_size: int, may_be_common: bool, masks: set[str]
) -> Field:
    declaration = line[1].strip()
    if len(declaration) > MAX_DECLARATION:
        raise FormatError(f"declaration of {len(declaration)} bytes: {declaration[:80]!r}...")
    offset, size = int(line[2]), int(line[3])
    if offset + size > MAX_SUBBUF:
        raise FormatError(f"field {declaration[:80]!r} at offset {offset}, size {size}: larger than any record")
    d = _declared(declaration)
    hint = _type_hint(d.type, long_size)
    where = _place(d, size)
    kind, element_size = _value(d, hint, where, size)
    if d.name in masks and kind is Kind.ARRAY and element_size == long_size:
        kind = Kind.MASK
    if tail := _TAILS.get((*event, d.name)):
        kind, where = tail, Where.TAIL
    if kind is Kind.OPAQUE:
        element_size = 1
    return Field(
        name=d.name or f"field_{offset}",
        type=d.type,
        declaration=declaration,
        offset=offset,
        size=0 if where is Where.TAIL else size,
        signed=line[4] == "1" if line[4] else hint.signed,
        kind=kind,
        where=where,
        element_size=element_size,
        is_pointer=hint.is_pointer and kind in (Kind.SCALAR, Kind.ARRAY),
        is_common=may_be_common and d.name.startswith("common_"),
    )


@dataclass(frozen=True, slots=True)
class _Declared:
    """A declaration taken apart."""

    located: str  # "__data_loc", "__rel_loc", "__str_loc" or ""
    type: str
    name: str
    is_array: bool  # has brackets
    count: int  # between the brackets; 0 where that is empty or no number


def _declared(declaration: str) -> _Declared:
    text = declaration.strip()
    located, _, rest = text.partition(" ")
    if located in _LOCATED:
        text = rest.strip()
    else:
        located = ""
    text, after_name = _cut_brackets(text)
    cut = max(text.rfind(c) for c in " \t*])") + 1  # the name is the last word
    type_, after_type = _cut_brackets(text[:cut].rstrip())
    brackets = after_name + after_type
    count = 1
    for inside in brackets:
        count = min(count * _number(inside), MAX_SUBBUF)
    return _Declared(located, type_, text[cut:], bool(brackets), count if brackets else 0)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0


def _cut_brackets(text: str) -> tuple[str, list[str]]:
    """Cut ``[..][..]`` off the end of a text: what is left, and what stood between the brackets."""
    inside: list[str] = []
    while text.endswith("]") and (start := text.rfind("[")) >= 0:
        inside.append(text[start + 1 : -1].strip())
        text = text[:start].rstrip()
    return text, inside


@dataclass(frozen=True, slots=True)
class _TypeHint:
    """What the spelling of a C type tells."""

    size: int  # of one value; 0 where it is not known
    signed: bool  # used only where the text does not say
    is_pointer: bool = False
    is_char: bool = False  # plain char: arrays of it are text
    is_struct: bool = False
    is_mask: bool = False


def _spellings(sizes: dict[int, str]) -> dict[str, int]:
    return {word: size for size, words in sizes.items() for word in words.split()}


_LONG = 0  # marks the types that are as wide as a long of the traced kernel
_SIGNED_TYPES = _spellings({
    1: "s8 __s8 int8_t",
    2: "short s16 __s16 int16_t",
    4: "int s32 __s32 int32_t pid_t clockid_t key_t key_serial_t mqd_t timer_t",
    8: "longlong s64 __s64 int64_t loff_t ktime_t time64_t",
    _LONG: "long ssize_t off_t intptr_t ptrdiff_t clock_t",
})
_UNSIGNED_TYPES = _spellings({
    1: "char bool _Bool u8 __u8 uint8_t u_char uchar unchar",
    2: "u16 __u16 uint16_t ushort u_short __le16 __be16 __sum16 umode_t",
    4: "enum uint u_int u32 __u32 uint32_t __le32 __be32 __wsum dev_t uid_t gid_t gfp_t fmode_t qid_t rwf_t",
    8: "u64 __u64 uint64_t __le64 __be64 sector_t",
    _LONG: "ulong u_long size_t uintptr_t ino_t pgoff_t aio_context_t kernel_ulong_t pgprotval_t",
})
_QUALIFIERS = frozenset({"const", "volatile", "signed", "unsigned", "__user", "__iomem", "__percpu", "__rcu"})
_MASK_TYPES = frozenset({"cpumask_t", "cpumask", "nodemask_t"})
_ATTRIBUTE = re.compile(r"__attribute__\s?\(\((?:[^()]|\([^()]*\))*\)\)")


@lru_cache(maxsize=4096)
def _type_hint(type_: str, long_size: int) -> _TypeHint:
    words = _ATTRIBUTE.sub(" ", type_).replace("*", " ").split()
    base = "".join(w for w in words if w not in _QUALIFIERS)
    if base.removeprefix("struct") in _MASK_TYPES:
        return _TypeHint(long_size, False, is_mask=True, is_pointer="*" in type_)
    if "*" in type_:
        return _TypeHint(long_size, False, is_pointer=True)
    if "struct" in words or "union" in words:
        return _TypeHint(0, False, is_struct=True)
    if "enum" in words:
        base = "enum"
    elif base[:4] in ("long", "shor"):
        base = base.removesuffix("int")  # "long unsigned int" is "long"
    elif not base:
        base = "int" if words else "char"  # "unsigned" is "unsigned int"; "__data_loc name" of old kernels is text
    is_char = base == "char" and "unsigned" not in words and "signed" not in words
    if base in _SIGNED_TYPES:
        return _TypeHint(_SIGNED_TYPES[base] or long_size, "unsigned" not in words)
    if base in _UNSIGNED_TYPES:
        return _TypeHint(_UNSIGNED_TYPES[base] or long_size, "signed" in words, is_char=is_char)
    return _TypeHint(0, False)


def _place(d: _Declared, size: int) -> Where:
    if d.located and size == 2:
        return Where.SHORT_LOC
    if d.located and size in (4, 8):
        return _LOCATED[d.located]
    return Where.INLINE if size else Where.TAIL


def _value(d: _Declared, hint: _TypeHint, where: Where, size: int) -> tuple[Kind, int]:
    """Kind and element size of a field: from its size and count where they tell, else from its type."""
    if where is Where.SHORT_LOC:
        return Kind.STRING, 1
    if where is not Where.INLINE:
        return _value_of_any_length(hint)
    if d.located:
        return Kind.OPAQUE, 1  # a location of a width that no kernel has
    if hint.is_mask and not hint.is_pointer:
        return (Kind.MASK, hint.size) if size % hint.size == 0 else (Kind.OPAQUE, 1)
    if not d.is_array:
        return (Kind.SCALAR, size) if size in _INTEGER_SIZES and not hint.is_struct else (Kind.OPAQUE, 1)
    if hint.is_char:
        return Kind.STRING, 1
    if hint.is_struct:
        return Kind.OPAQUE, 1
    each = size // d.count if d.count and size % d.count == 0 else 0
    for element_size in (each, hint.size, size):
        if element_size in _INTEGER_SIZES and size % element_size == 0:
            return Kind.ARRAY, element_size
    return Kind.OPAQUE, 1


def _value_of_any_length(hint: _TypeHint) -> tuple[Kind, int]:
    if hint.is_mask:
        return Kind.MASK, hint.size
    if hint.is_char:
        return Kind.STRING, 1
    return (Kind.ARRAY, hint.size) if hint.size in _INTEGER_SIZES else (Kind.OPAQUE, 1)


def _settle(fields: list[Field]) -> tuple[Field, ...]:
    """Make what depends on the other fields right: names are unique, and only the last field can be a tail.

    A field of size 0 with others behind it holds nothing: OPAQUE, INLINE, no bytes.
    """
    end = max((f.offset + f.size for f in fields), default=0)
    uses = Counter(f.name for f in fields)
    taken = {name for name, count in uses.items() if count == 1}
    next_number = dict.fromkeys(uses, 2)
    settled = []
    for field in fields:
        if field.where is Where.TAIL and field.offset < end:
            field = replace(field, where=Where.INLINE, kind=Kind.OPAQUE, element_size=1, is_pointer=False)
        if uses[field.name] > 1:
            field = replace(field, name=_unique(field, taken, next_number))
        taken.add(field.name)
        settled.append(field)
    return tuple(settled)


def _with_counts(fields: tuple[Field, ...], event: tuple[str, str]) -> tuple[Field, ...]:
    """Tell the tails that need it where their number of elements stands."""
    places = {f.name: (f.offset, f.size) for f in fields if f.kind is Kind.SCALAR and f.where is Where.INLINE}
    counts = {f.name: places.get(_COUNTS.get((*event, f.name), "")) for f in fields if f.where is Where.TAIL}
    return tuple(replace(f, count=counts[f.name]) if counts.get(f.name) else f for f in fields)


def _unique(field: Field, taken: set[str], next_number: dict[str, int]) -> str:
    """A name for one of several fields of one name: a located one gets that of its member in the kernel's struct."""
    prefix = next((p for p in _LOCATED if field.declaration.startswith(p)), "")
    name = f"{prefix}_{field.name}" if prefix else field.name
    while name in taken:
        name = f"{field.name}__{next_number[field.name]}"
        next_number[field.name] += 1
    return name
