"""Tables that text needs at run time, in the form the C core reads: symbols, kernel strings, trace_printk formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import _core
from .bytecode import CompileError, names_used
from .codegen import Scope
from .names import Comms, Symbols
from .printfmt import Style, compile_printk

_TOP = (1 << 64) - 1


def symbol_columns(symbols: Symbols, style: Style) -> tuple[Any, ...]:
    """Columns of TextTables: the kernel's choice among aliases and ends, or trace-cmd's."""
    table = symbols.table
    addresses, ends, names = table.addresses, table.ends, table.name_places.astype(np.uint32)
    if style.kernel:  # code that kallsyms lists, but that the kernel does not look up (K:kernel/kallsyms.c)
        keep = ~table.rows_of_modules(b"__builtin__")
        return addresses[keep], ends[keep], names[keep], names[keep], table.texts
    ends = np.empty_like(addresses)  # trace-cmd knows no end of a symbol but the next one, and none of the last
    ends[:-1] = addresses[1:]
    ends[-1:] = addresses[-1:] + np.uint64(1)
    return addresses, ends, names, table.exact_places.astype(np.uint32), table.texts


def comm_columns(comms: Comms) -> tuple[Any, ...]:
    """Columns of TextTables for the names of tasks."""
    rows = sorted((pid, comms.raw(pid, kernel=True)) for pid in comms if -(1 << 31) <= pid < 1 << 31)
    pids = np.array([pid for pid, _ in rows], dtype=np.int32)
    return pids, *_packed([comm for _, comm in rows])


def _packed(texts: list[bytes]) -> tuple[Any, bytes]:
    offsets = np.zeros(len(texts) + 1, dtype=np.uint32)
    offsets[1:] = np.cumsum([len(text) for text in texts], dtype=np.uint64)
    return offsets, b"".join(texts)


def string_columns(strings: Mapping[int, bytes]) -> tuple[Any, ...]:
    """Columns of TextTables for printk_formats."""
    rows = sorted((address, text) for address, text in strings.items() if address <= _TOP)
    addresses = np.array([address for address, _ in rows], dtype=np.uint64)
    return addresses, *_packed([text for _, text in rows])


def printk_blocks(strings: Mapping[int, bytes], scope: Scope, style: Style) -> tuple[Any, list[bytes]]:
    """trace_printk formats as bytecode. A string that is no format that can be understood prints as it stands."""
    rows = sorted((address, text) for address, text in strings.items() if address <= _TOP)
    blocks = []
    for _, text in rows:
        try:
            blocks.append(compile_printk(scope, style, text))
        except CompileError:
            blocks.append(compile_printk(scope, style, text.replace(b"%", b"%%")))
    return np.array([address for address, _ in rows], dtype=np.uint64), blocks


# Which table an operation reads.
_READS = {"SYM": "symbols", "CALLS": "symbols", "STACK": "symbols", "PSTR": "strings", "MLOOKUP": "strings",
          "BPRINT": "printk", "MCOMMOF": "comms"}


class Lookups:
    """All tables of one recording and style, for one report; each is made when the first program that reads it is met.

    Parameters
    ----------
    symbols, strings, comms : functions
        What the recording has.
    scope : Scope
        Of any event: what trace_printk formats are compiled for.
    cpus : int
        Of how many to guess the depths of calls.
    """

    def __init__(self, symbols: Callable[[], Symbols], strings: Callable[[], Mapping[int, bytes]], scope: Scope,
                 style: Style, comms: Callable[[], Comms] | None = None, *, cpus: int = 0) -> None:
        self._symbols, self._strings, self._comms = symbols, strings, comms
        self._scope, self._style = scope, style
        self._made: set[str] = set()
        self._tables = _core.TextTables(cpus=cpus)
        self.renderer = _core.Renderer(self._tables)

    def program(self, block: bytes) -> _core.Program:
        """A program that the renderer can run from now on."""
        for table in sorted({_READS[name] for name in names_used(block) if name in _READS} - self._made):
            self._make(table)
            self._made.add(table)
        return _core.Program(block)

    def _make(self, table: str) -> None:
        if table == "printk":
            addresses, blocks = printk_blocks(self._strings(), self._scope, self._style)
            self._tables.supply(printk=(addresses, [self.program(block) for block in blocks]))
        elif table == "strings":
            self._tables.supply(strings=string_columns(self._strings()))
        elif table == "comms" and self._comms is not None:
            self._tables.supply(comms=comm_columns(self._comms()))
        elif table == "symbols" and len(symbols := self._symbols()):
            self._tables.supply(symbols=symbol_columns(symbols, self._style))
