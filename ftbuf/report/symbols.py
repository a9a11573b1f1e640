"""How an address is spelled in the kernel's texts."""

from __future__ import annotations

from dataclasses import dataclass

from .record import SymbolTable


@dataclass(frozen=True, slots=True)
class Spelling:
    """Spells addresses as the kernel does under sym-offset and sym-addr."""

    symbols: SymbolTable
    long_size: int = 8
    offset: bool = False
    address: bool = False

    def name(self, address: int) -> bytes:
        """As ``%ps``: the name and its module; the number where nothing covers it."""
        symbol = self.symbols.lookup(address)
        if symbol is None:
            return b"0x%x" % address
        return symbol.name + (b" [%s]" % symbol.module if symbol.module else b"")

    def with_offset(self, address: int) -> bytes:
        """As ``%pS``."""
        symbol = self.symbols.lookup(address)
        if symbol is None:
            return b"0x%x" % address
        size = b"/0x%x" % symbol.size if symbol.size is not None else b""
        module = b" [%s]" % symbol.module if symbol.module else b""
        return b"%s+0x%x%s%s" % (symbol.name, symbol.offset, size, module)

    def ip(self, address: int) -> bytes:
        """An instruction pointer in a line (K:trace_output.c seq_print_ip_sym)."""
        if not address:
            return b"0"
        text = self.with_offset(address) if self.offset else self.name(address)
        return text + b" <%0*x>" % (2 * self.long_size, address) if self.address else text

    def raw(self, address: int) -> bytes:
        """The address alone, as in a user stack."""
        return b" <%0*x>" % (2 * self.long_size, address)
