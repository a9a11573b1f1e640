"""Columns that no format has, made of those that one has: asked for by name, in tables as in events.

========================  ===================  ==========================================================
event                     column               value
========================  ===================  ==========================================================
print, bprint, bputs      ``text``             the message, without the newline at its end
func_repeats              ``last_ts``          time of the last call: it is stored as a distance to the record
========================  ===================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from . import _core
from .clock import Correction
from .formats import EventFormat, Field, Kind, Where
from .names import Symbols
from .plan import WHERE, ColumnPlan, array, field_op, fields_by_name, header_op
from .table import ColumnData, Encoded, Plain

TEXT, LAST_TS = "text", "last_ts"


@dataclass(frozen=True, slots=True)
class Derived:
    """One derived column: the ops whose columns it needs, and what makes it of them, or of one record."""

    ops: tuple[Any, ...]
    finish: Callable[..., ColumnData]  # (column, values) of each op, one after another
    value: Callable[[Any], Any]

    def plan(self, name: str) -> ColumnPlan:
        return ColumnPlan(name, self.ops[0], self.finish, self.ops[1:])


@dataclass(frozen=True)
class Sources:
    """What derived columns look up, each read when first needed."""

    big_endian: bool
    long_size: int
    strings: Callable[[], Mapping[int, bytes]]  # printk_formats
    symbols: Callable[[], Symbols]
    correction: Callable[[], Correction]

    @cached_property
    def renderers(self) -> dict[int, tuple[Any, Any]]:
        """Event id -> what prints it: made once."""
        return {}


def derived_columns(fmt: EventFormat, sources: Sources) -> dict[str, Derived]:
    """The derived columns of an event."""
    make = _MAKERS.get((fmt.system, fmt.name))
    return make(fmt, fields_by_name(fmt), sources) if make is not None else {}


# ---- func_repeats ----


def _func_repeats(fmt: EventFormat, fields: dict[str, Field], sources: Sources) -> dict[str, Derived]:
    """K:trace_entries.h func_repeats: the distance in two halves, of 16 and 32 bits."""
    halves = [fields.get(n) for n in ("top_delta_ts", "bottom_delta_ts")]
    if not all(f is not None and f.kind is Kind.SCALAR for f in halves):
        return {}
    top, bottom = (f for f in halves if f is not None)

    def finish(ts: Any, _0: Any, tops: Any, _1: Any, bottoms: Any, _2: Any) -> ColumnData:
        high = array(tops, f"u{top.size}").astype(np.int64)
        return Plain(array(ts, np.int64) - corrected(high << 32 | array(bottoms, f"u{bottom.size}").astype(np.int64)))

    def corrected(delta: Any) -> Any:
        c = sources.correction()
        return delta * c.mult >> c.shift if c.mult else delta

    def value(record: Any) -> int:
        return int(record.ts - corrected(record[top.name] << 32 | record[bottom.name]))

    return {LAST_TS: Derived((header_op(_core.OP_TS), field_op(top), field_op(bottom)), finish, value)}


# ---- messages ----


def _print(fmt: EventFormat, fields: dict[str, Field], sources: Sources) -> dict[str, Derived]:
    buf = fields.get("buf")
    if buf is None or buf.kind is not Kind.STRING:
        return {}

    def finish(codes: Any, _: Any) -> ColumnData:
        return Encoded(array(codes, np.int32), [message(s) for s in dictionary.strings()])

    dictionary = _core.Dictionary()
    return {TEXT: Derived((field_op(buf, dictionary),), finish, lambda r: r[buf.name].removesuffix("\n"))}


def _bputs(fmt: EventFormat, fields: dict[str, Field], sources: Sources) -> dict[str, Derived]:
    address = fields.get("str")
    if address is None or address.kind is not Kind.SCALAR:
        return {}

    def text(at: int) -> str:
        found = sources.strings().get(at)
        return f"{at:#x}" if found is None else message(found)

    def finish(addresses: Any, _: Any) -> ColumnData:
        return _coded(array(addresses, np.uint64).tolist(), text)

    return {TEXT: Derived((field_op(address),), finish, lambda record: text(record[address.name]))}


def _bprint(fmt: EventFormat, fields: dict[str, Field], sources: Sources) -> dict[str, Derived]:
    """The format string is kept by address, the arguments as they were passed (K:trace_printk.c)."""
    address, buf = fields.get("fmt"), fields.get("buf")
    if address is None or address.kind is not Kind.SCALAR or buf is None or buf.where is not Where.TAIL:
        return {}
    def text(record: tuple[int, bytes]) -> str:
        at, arguments = record
        if at not in sources.strings():
            return f"{at:#x}"  # the recording does not have the format
        payload = bytearray(buf.offset)
        pointer = at.to_bytes(address.size, "big" if sources.big_endian else "little")
        payload[address.offset : address.offset + address.size] = pointer
        return message(_render(fmt, sources, bytes(payload) + arguments))

    def finish(addresses: Any, _: Any, ends: Any, values: Any) -> ColumnData:
        data, stops = bytes(values), array(ends, np.uint64).tolist()
        parts = [data[a:b] for a, b in zip([0, *stops], stops, strict=False)]
        return _coded(list(zip(array(addresses, np.uint64).tolist(), parts, strict=True)), text)

    raw = (_core.OP_LIST, WHERE[Where.TAIL], 1, 1, 0, buf.offset, 0, None)
    return {TEXT: Derived((field_op(address), raw), finish,
                          lambda record: text((record[address.name], record.payload[buf.offset :])))}


def _render(fmt: EventFormat, sources: Sources, payload: bytes) -> bytes:
    """The message of a bprint record."""
    if fmt.id not in sources.renderers:
        sources.renderers[fmt.id] = _renderer(fmt, sources)
    renderer, program = sources.renderers[fmt.id]
    body = renderer.body(program, payload)
    return body if isinstance(body, bytes) else b""


def _renderer(fmt: EventFormat, sources: Sources) -> tuple[Any, Any]:
    from .codegen import Scope
    from .lookups import Lookups
    from .printfmt import KERNEL, compile_print_fmt

    scope = Scope(fmt, sources.big_endian, sources.long_size)
    lookups = Lookups(sources.symbols, sources.strings, scope, KERNEL)
    return lookups.renderer, lookups.program(compile_print_fmt(scope, KERNEL, '"%s", __print_printk(REC->fmt, REC->buf)'))


def message(text: bytes) -> str:
    return text.removesuffix(b"\n").decode("utf-8", "surrogateescape")


def _coded(items: list[Any], text: Callable[[Any], str]) -> Encoded:
    """A string for each item, made once for equal ones."""
    code_of: dict[Any, int] = {}
    codes = np.fromiter((code_of.setdefault(item, len(code_of)) for item in items), np.int32, len(items))
    return Encoded(codes, [text(item) for item in code_of])


_Maker = Callable[[EventFormat, dict[str, Field], Sources], dict[str, Derived]]
_MAKERS: dict[tuple[str, str], _Maker] = {
    ("ftrace", "func_repeats"): _func_repeats,
    ("ftrace", "print"): _print,
    ("ftrace", "bprint"): _bprint,
    ("ftrace", "bputs"): _bputs,
}
