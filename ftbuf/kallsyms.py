"""The text of ``/proc/kallsyms`` as columns. Names stay where they stand in the text: most are never asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core

_PAGE = 4096
_ABSOLUTE = b"Aa"
_LOCAL_DATA = b"bd"
_DOLLAR = ord("$")


@dataclass(frozen=True, slots=True)
class Columns:
    """What lines say: address, type, and where in ``texts`` the name and the module (-1: none) stand, each up to a NUL.

    A blank stands before each name.
    """

    addresses: NDArray[np.uint64]
    types: NDArray[np.uint8]
    names: NDArray[np.int64]
    modules: NDArray[np.int64]
    texts: bytes

    def kept(self, rows: NDArray[np.bool_]) -> Columns:
        return Columns(self.addresses[rows], self.types[rows], self.names[rows], self.modules[rows], self.texts)


@dataclass(frozen=True, slots=True)
class Lines:
    """The symbols of the text that count, in its order; see ``ftbuf.names.Symbols``."""

    columns: Columns
    has_data: bool  # the kernel was built to list data symbols too (CONFIG_KALLSYMS_ALL)

    def address(self, name: bytes) -> int | None:
        """Of the first symbol of a name."""
        names, texts, wanted = self.columns.names, self.columns.texts, b" " + name + b"\0"
        at = texts.find(wanted)
        while at >= 0:
            row = int(np.searchsorted(names, at + 1))
            if row < len(names) and names[row] == at + 1:
                return int(self.columns.addresses[row])
            at = texts.find(wanted, at + 1)
        return None


def text_at(texts: bytes, at: int) -> bytes:
    """The text that begins at a place; -1: none."""
    return texts[at : texts.index(b"\0", at)] if at >= 0 else b""


def texts_at(texts: bytes, places: NDArray[np.int64]) -> list[bytes]:
    return [text_at(texts, at) for at in places.tolist()]


# ---- reading ----


def read_kallsyms(text: bytes) -> Lines:
    """The symbols that count. An odd line costs only itself."""
    found: Any = _core.read_kallsyms(text)
    addresses, types, names, modules, texts = found
    columns = Columns(np.frombuffer(addresses, np.uint64), np.frombuffer(types, np.uint8), np.frombuffer(names, np.int64),
                      np.frombuffer(modules, np.int64), texts)
    hidden = len(columns.addresses) > 0 and not columns.addresses.any()
    first = np.frombuffer(columns.texts, np.uint8)[columns.names]
    keep = ~_among(_ABSOLUTE, columns.types) & (first != _DOLLAR) & (not hidden)
    return Lines(columns.kept(keep), bool(_among(_LOCAL_DATA, columns.types).any()))


def _among(some: bytes, characters: NDArray[np.uint8]) -> NDArray[np.bool_]:
    table = np.zeros(256, np.bool_)
    table[list(some)] = True
    return table[characters]


# ---- one row an address ----


class SymbolTable:
    """One row for each address that has a symbol, ascending.

    Attributes
    ----------
    addresses, ends : array of uint64
        First byte of each symbol; where the kernel stops to count an address to it.
    ends_are_symbols : array of bool
        Whether the next symbol is there.
    name_places, module_places, exact_places : array of int64
        Where in ``texts`` the name and the module (-1: none) stand, and the name that trace-cmd prints for the address itself.
    texts : bytes
    """

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        columns = lines.columns
        order = np.argsort(columns.addresses, kind="stable")  # keeps the order of the text among symbols of one address
        ascending = columns.addresses[order]
        is_first = np.ones(len(order), dtype=np.bool_)
        is_first[1:] = ascending[1:] != ascending[:-1]
        rows = order[is_first]
        self.texts = columns.texts
        self.addresses = ascending[is_first]
        self.name_places, self.module_places = columns.names[rows], columns.modules[rows]
        self.ends, self.ends_are_symbols = self._find_ends()
        for array in (self.addresses, self.ends, self.ends_are_symbols):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.addresses)

    def name(self, row: int) -> bytes:
        return text_at(self.texts, int(self.name_places[row]))

    def exact_name(self, row: int) -> bytes:
        return text_at(self.texts, int(self.exact_places[row]))

    def module(self, row: int) -> bytes:
        return text_at(self.texts, int(self.module_places[row]))

    @cached_property
    def names(self) -> list[bytes]:
        return texts_at(self.texts, self.name_places)

    @property
    def exact_names(self) -> list[bytes]:
        return texts_at(self.texts, self.exact_places)

    @cached_property
    def modules(self) -> list[bytes]:
        return texts_at(self.texts, self.module_places)

    def rows_of_modules(self, prefix: bytes) -> NDArray[np.bool_]:
        """Which rows are of modules whose names begin so."""
        rows = np.zeros(len(self), dtype=np.bool_)
        inside = np.flatnonzero(self.module_places >= 0)
        rows[inside] = [self.texts.startswith(prefix, at) for at in self.module_places[inside].tolist()]
        return rows

    def _find_ends(self) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Where each symbol ends, and whether the next symbol is there.

        The kernel knows where it and its modules end; kallsyms does not tell. So nothing lies behind the kernel's last
        symbol (nor behind ``_etext`` where only code has symbols), and a module's last reaches to the end of the next page.
        """
        addresses = self.addresses
        ends = np.empty_like(addresses)
        ends[:-1] = addresses[1:]
        are_symbols = np.ones(len(addresses), dtype=np.bool_)
        for row in self._last_rows():
            start = int(addresses[row])
            end = (start // _PAGE + 2) * _PAGE if self.module_places[row] >= 0 else start + 1
            if row + 1 < len(addresses):
                end = min(end, int(addresses[row + 1]))
            ends[row] = min(end, (1 << 64) - 1)
            are_symbols[row] = False
        return ends, are_symbols

    def _last_rows(self) -> Sequence[int]:
        """Behind which the kernel, or a module, ends."""
        number_of: dict[bytes, int] = {b"": 0}
        numbers = np.zeros(len(self), np.int64)
        inside = np.flatnonzero(self.module_places >= 0)
        numbers[inside] = [number_of.setdefault(name, len(number_of))
                           for name in texts_at(self.texts, self.module_places[inside])]
        is_last = np.ones(len(self), dtype=np.bool_)
        is_last[:-1] = numbers[1:] != numbers[:-1]
        if not self._lines.has_data:
            is_last |= np.isin(self.name_places, [m.start() + 1 for m in re.finditer(rb" _etext\0", self.texts)])
        rows: list[int] = np.flatnonzero(is_last).tolist()
        return rows

    @cached_property
    def exact_places(self) -> NDArray[np.int64]:
        """The names that trace-cmd prints for the exact address of each row.

        libtraceevent (TE:event-parse.c) collects the symbols last line first, sorts them by address, and takes whichever
        of several at one address the binary search of the C library probes first.
        """
        columns = self._lines.columns
        places = self.name_places.copy()
        backwards = np.arange(len(columns.addresses) - 1, -1, -1)
        order = backwards[np.argsort(columns.addresses[::-1], kind="stable")]
        ascending = columns.addresses[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = ascending[1:] != ascending[:-1]
        shared = np.flatnonzero(np.diff(np.flatnonzero(is_first), append=len(order)) > 1)  # rows of several symbols
        wanted = self.addresses[shared]
        low = np.zeros(len(shared), dtype=np.int64)
        high = np.full(len(shared), len(order), dtype=np.int64)
        middle = (low + high) // 2
        for _ in range(len(order).bit_length() + 1):
            middle = (low + high) // 2
            probe = ascending[np.minimum(middle, len(order) - 1)]
            low = np.where(probe < wanted, middle + 1, low)
            high = np.where(probe > wanted, middle, high)
        places[shared] = columns.names[order[middle]]
        return places
