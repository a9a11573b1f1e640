"""How an address is spelled in the kernel's texts."""

from __future__ import annotations

from dataclasses import dataclass, field

from .record import Symbol, SymbolTable, encoded


@dataclass(frozen=True, slots=True)
class Spelling:
    """Spells addresses as the kernel does under sym-offset and sym-addr, or as trace-cmd does; each address once."""

    symbols: SymbolTable
    long_size: int = 8
    offset: bool = False
    address: bool = False
    trace_cmd: bool = False
    _names: dict[int, bytes] = field(default_factory=dict)

    def _lookup(self, address: int) -> Symbol | None:
        """The kernel lists code that it made at run time in kallsyms, but does not name it."""
        symbol = self.symbols.lookup(address, trace_cmd=self.trace_cmd)
        return None if symbol is not None and symbol.module.startswith("__builtin__") and not self.trace_cmd else symbol

    def name(self, address: int) -> bytes:
        """As ``%ps``: the name and its module; the number where nothing covers it."""
        known = self._names.get(address)
        if known is None:
            known = self._names[address] = self._name(address)
        return known

    def _name(self, address: int) -> bytes:
        symbol = self._lookup(address)
        if symbol is None:
            return b"0x%x" % address
        module = b" [%s]" % encoded(symbol.module) if symbol.module and not self.trace_cmd else b""
        return encoded(symbol.name) + module

    def with_offset(self, address: int) -> bytes:
        """As ``%pS``."""
        symbol = self._lookup(address)
        if symbol is None:
            return b"0x%x" % address
        text = b"%s+0x%x" % (encoded(symbol.name), address - symbol.start)
        if self.trace_cmd:
            return text
        size = b"/0x%x" % symbol.size if symbol.size is not None else b""
        module = b" [%s]" % encoded(symbol.module) if symbol.module else b""
        return text + size + module

    def ip(self, address: int) -> bytes:
        """An instruction pointer in a line (K:trace_output.c seq_print_ip_sym)."""
        if not address:
            return b"0"
        text = self.with_offset(address) if self.offset else self.name(address)
        return text + b" <%0*x>" % (2 * self.long_size, address) if self.address else text

    def raw(self, address: int) -> bytes:
        """The address alone, as in a user stack."""
        return b" <%0*x>" % (2 * self.long_size, address)
