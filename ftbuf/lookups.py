"""Tables that text needs at run time, in the form the C core reads: symbols, kernel strings, trace_printk formats."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from typing import Any

import numpy as np

from . import _core
from .bytecode import CompileError
from .codegen import Scope
from .names import Comms, Symbols
from .printfmt import Style, compile_printk

_TOP = (1 << 64) - 1


def symbol_columns(symbols: Symbols, style: Style) -> tuple[Any, ...]:
    """Columns of TextTables: the kernel's choice among aliases and ends, or trace-cmd's."""
    addresses, ends = symbols.addresses, symbols.ends
    names, modules = symbols.names, symbols.modules
    if style.kernel:  # code that kallsyms lists, but that the kernel does not look up (K:kernel/kallsyms.c)
        keep = np.array([not module.startswith(b"__builtin__") for module in modules], dtype=np.bool_)
        addresses, ends = addresses[keep], ends[keep]
        names, modules = list(compress(names, keep)), list(compress(modules, keep))
    offsets, texts = _named(names, modules)
    if style.kernel:
        return addresses, ends, offsets, offsets, texts
    exact = offsets.copy()
    others = [i for i, (name, own) in enumerate(zip(symbols.exact_names, names, strict=True)) if name != own]
    more, more_texts = _named([symbols.exact_names[i] for i in others], [modules[i] for i in others])
    exact[others] = more + np.uint32(len(texts))
    ends = np.empty_like(addresses)  # trace-cmd knows no end of a symbol but the next one, and none of the last
    ends[:-1] = addresses[1:]
    ends[-1:] = addresses[-1:] + np.uint64(1)
    return addresses, ends, offsets, exact, texts + more_texts


def _named(names: list[bytes], modules: list[bytes]) -> tuple[Any, bytes]:
    """Offsets of names, and all texts: each name is followed by that of its module, both with a NUL."""
    offsets, texts = _packed([name + b"\0" + module + b"\0" for name, module in zip(names, modules, strict=True)])
    return offsets[:-1], texts


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


def printk_programs(strings: Mapping[int, bytes], scope: Scope, style: Style) -> tuple[Any, list[_core.Program]]:
    """Compiled trace_printk formats. A string that is no format that can be understood prints as it stands."""
    rows = sorted((address, text) for address, text in strings.items() if address <= _TOP)
    programs = []
    for _, text in rows:
        try:
            block = compile_printk(scope, style, text)
        except CompileError:
            block = compile_printk(scope, style, text.replace(b"%", b"%%"))
        programs.append(_core.Program(block))
    return np.array([address for address, _ in rows], dtype=np.uint64), programs


def text_tables(
    symbols: Symbols | None,
    strings: Mapping[int, bytes],
    scope: Scope,
    style: Style,
    comms: Comms | None = None,
    *,
    cpus: int = 0,
) -> _core.TextTables:
    """All tables of one recording and style, for one report; ``cpus``: of how many to guess the depths of calls."""
    return _core.TextTables(
        symbol_columns(symbols, style) if symbols is not None and len(symbols) else None,
        string_columns(strings),
        printk_programs(strings, scope, style),
        comm_columns(comms) if comms is not None else None,
        cpus=cpus,
    )
