"""Print formats: the text of ``print fmt:`` -> bytecode that writes an event's body.

The format string is cut into literal text and conversions; every argument is compiled where its conversion stands, so
that a program writes from left to right into one text and nothing is stored in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .bytecode import (
    SPEC_ALT,
    SPEC_KERNEL,
    SPEC_ZERO,
    CompileError,
    Int,
    Label,
    spec,
)
from .codegen import Compiler, Mem, Pointer, Scope
from .constants import KERNEL_VARIABLES, XEN_HYPERCALLS
from .expression import Node, Parser, tokenize
from .formatstring import Conversion, Piece, parse_format_string, split_print_fmt, to_bytes

POINTER_C, POINTER_KERNEL, POINTER_HEX = range(3)
SYM_OFFSET, SYM_SIZE, SYM_MODULE, SYM_CALLER, SYM_ADDRESS, SYM_SLASH, SYM_PREFIX = 1, 2, 4, 8, 16, 32, 64
STACK_KERNEL, STACK_TRACE_CMD, STACK_USER = range(3)
SA_PORT, SA_COMPRESSED, SA_FLOW, SA_SCOPE = 1, 2, 4, 8


@dataclass(frozen=True, slots=True)
class Style:
    """Where the kernel's own text and that of trace-cmd differ, and what trace options ask for."""

    kernel: bool = False
    sym_offset: bool = False  # of addresses that the kernel prints with its own seq_print_ip_sym, not by a print fmt
    sym_addr: bool = False

    @property
    def pointer(self) -> int:
        return POINTER_KERNEL if self.kernel else POINTER_C

    def symbol(self, form: int) -> int:
        """trace-cmd knows neither sizes nor modules of symbols."""
        return form if self.kernel else form & ~(SYM_SIZE | SYM_MODULE)

    def ip(self, letter: str) -> int:
        """Form of %pY: as the options say; %pYS: with offset in any case; %pYs: never."""
        offset = self.sym_offset if letter not in ("S", "s") else letter == "S"
        form = (SYM_OFFSET | SYM_SIZE if offset else 0) | SYM_MODULE | (SYM_ADDRESS if self.sym_addr else 0)
        return self.symbol(form)


TRACE_CMD, KERNEL = Style(False), Style(True)


def parse_arguments(text: str, *, long_size: int) -> list[Node]:
    """The trees of comma-separated expressions."""
    parser = Parser(tokenize(text), long_size=long_size)
    nodes: list[Node] = []
    while parser.kind != "end":
        nodes.append(parser.expression())
        if parser.kind != "end":
            parser.expect(",")
    return nodes


class PrintCompiler(Compiler):
    """Compiles format strings and their arguments."""

    def __init__(self, scope: Scope, style: Style) -> None:
        super().__init__(scope)
        self.style = style

    # -- format strings

    def print_fmt(self, text: str) -> None:
        """Emit the whole of one ``print fmt``."""
        first: CompileError | None = None
        for string, rest in split_print_fmt(text):
            try:
                pieces = parse_format_string(string)
                nodes = parse_arguments(rest, long_size=self.scope.long_size)
                wanted = sum(1 + p.stars for p in pieces if isinstance(p, Conversion))
                if len(nodes) < wanted:
                    raise CompileError(f"{wanted} conversions, but {len(nodes)} arguments")
            except CompileError as error:
                first = first or error
            else:
                self.pieces(pieces, nodes)
                return
        raise first or CompileError("print fmt cannot be understood")

    def pieces(self, pieces: list[Piece], nodes: list[Node]) -> None:
        queue = iter(nodes)
        for piece in pieces:
            if isinstance(piece, bytes):
                self.asm.text(piece)
                continue
            stars = [next(queue) for _ in range(piece.stars)]
            self.conversion(piece, stars, next(queue))

    def conversion(self, c: Conversion, stars: list[Node], node: Node) -> None:
        """Emit one conversion of ``node``."""
        if c.kind == "s":
            self._string(c, stars, node)
        elif c.kind == "p":
            self._pointer(c, stars, node)
        elif c.kind == "c":
            self.integer(node)
            for star in stars:
                raise CompileError(f"%c with a width from {star.kind}")
            self.asm.emit("CHAR", imm=self._spec(c))
        else:
            self._number(c, stars, node)

    def _spec(self, c: Conversion, base: int = 10) -> int:
        flags = c.flags | (SPEC_KERNEL if self.style.kernel else 0)
        return spec(width=c.width or 0, precision=-1 if c.precision is None else c.precision, flags=flags, base=base)

    def _stars(self, c: Conversion, stars: list[Node]) -> None:
        """Push width and precision of a conversion that has at least one from an argument."""
        queue = iter(stars)
        for fixed in (c.width, c.precision):
            if fixed is None:
                self.asm.convert(self.integer(next(queue)), Int(4, True))
            else:
                self.asm.push(fixed)

    def _number(self, c: Conversion, stars: list[Node], node: Node) -> None:
        kind = c.integer(self.scope.long_size)
        base = {"o": 8, "x": 16, "X": 16}.get(c.kind, 10)
        if stars:
            self._stars(c, stars)
        self.integer(node)
        if stars:
            self.asm.emit("INTX", size=kind.code, imm=self._spec(c, base))
        else:
            self.asm.integer_text(kind, self._spec(c, base))

    # -- %s

    def _string(self, c: Conversion, stars: list[Node], node: Node) -> None:
        if c.plain:
            self.text(node)
        elif self._is_plain_mem(node):
            if stars:
                self._stars(c, stars)
            self.mem(node)
            self.asm.emit("STRX" if stars else "STR", imm=self._spec(c))
        else:
            self._padded(c, stars, lambda: self.text(node))

    def _is_plain_mem(self, node: Node) -> bool:
        try:
            return node.kind != "str" and isinstance(self.type_of(node), Mem)
        except CompileError:
            return False

    def _padded(self, c: Conversion, stars: list[Node], write: Callable[[], None]) -> None:
        """What ``write`` emits, cut and padded."""
        if c.plain:
            write()
            return
        self.asm.emit("MARK")
        write()
        self._stars(c, stars)
        self.asm.emit("PAD", imm=self._spec(c))

    def text(self, node: Node) -> None:
        """Emit ``node`` as %s does."""
        if node.kind == "str":
            self.asm.text(node.value)
        elif node.kind == "cond":
            self._text_cond(node)
        elif node.kind == "call" and node.value in TEXTS:
            TEXTS[node.value](self, node.kids)
        elif node.kind == "cast" and node.kids[0].kind in ("str", "cond", "call"):
            self.text(node.kids[0])
        elif node.kind == "block":
            self._text_block(node)
        elif node.kind == "index" and node.kids[0].kind == "array_of_texts":
            raise CompileError("an array of texts")
        elif node.kind == "elvis":
            self._text_elvis(node)
        else:
            self._text_value(node)

    def _text_value(self, node: Node) -> None:
        kind = self.value(node)
        if isinstance(kind, Mem):
            self.asm.emit("STR", imm=spec())
            return
        null = self.asm.constant()
        if null == 0:
            self.asm.unpush()
            self.asm.text(b"(null)")
            return
        if isinstance(kind, Int) and kind.size < self.scope.long_size:
            raise CompileError("%s of a number")
        self.asm.emit("PSTR", arg=POINTER_HEX)

    def _text_cond(self, node: Node) -> None:
        test, then, other = node.kids
        known = self.known_truth(test)
        if known is not None:
            self.text(then if known else other)
            return
        self._either(lambda label: self.branch(test, label, False), lambda: self.text(then), lambda: self.text(other))

    def _either(self, test: Callable[[Label], None], then: Callable[[], None], other: Callable[[], None]) -> None:
        if_no, end = Label(), Label()
        test(if_no)
        then()
        self.asm.jump("JUMP", end)
        self.asm.place(if_no, reachable=False)
        other()
        self.asm.place(end)

    def _text_elvis(self, node: Node) -> None:
        test, other = node.kids
        if self._is_plain_mem(test):
            self.text(test)
            return
        self._either(lambda label: self.branch(test, label, False), lambda: self.text(test), lambda: self.text(other))

    def _text_block(self, node: Node) -> None:
        outer = dict(self.locals)
        for kid in node.kids[:-1]:
            self.declare(kid)
        self.text(node.kids[-1])
        self.locals = outer

    # -- %p

    def _pointer(self, c: Conversion, stars: list[Node], node: Node) -> None:
        if node.kind == "argument_text":
            self._padded(c, [], lambda: self.text(node))
            return
        for prefix, handler in POINTERS:
            if c.pointer.startswith(prefix):
                handler(self, c, stars, node)
                return
        self._padded(c, stars, lambda: self._address_value(node, self.style.pointer))

    def _address_value(self, node: Node, form: int) -> None:
        """A pointer as a number."""
        try:
            kind = self.type_of(node)
        except CompileError:
            if not _mentions(node, KERNEL_VARIABLES):
                raise
            kind = Pointer()
            self.asm.push(0)
        else:
            kind = self.value(node)
        if isinstance(kind, Mem):  # where the record is in the kernel's ring buffer: not in the recording
            self.asm.emit("MDROP")
            self.asm.push(0)
        self.asm.emit("PTR", arg=form)

    def raw_pointer(self, c: Conversion, stars: list[Node], node: Node) -> None:
        """%px, %pK: the address itself, in the kernel's own width."""
        self._padded(c, stars, lambda: self._address_value(node, self.style.pointer))

    def symbol(self, c: Conversion, stars: list[Node], node: Node) -> None:
        letter = c.pointer[0]
        form = 0 if letter in "sf" else SYM_OFFSET | SYM_SIZE
        if letter == "B":
            form |= SYM_CALLER
        self.integer(node)
        if c.plain:
            self.asm.emit("SYM", arg=self.style.symbol(form | SYM_MODULE))
            return
        slot = self.asm.local()
        self.asm.emit("SET", arg=slot)

        def write() -> None:
            self.asm.emit("GET", arg=slot)
            self.asm.emit("SYM", arg=self.style.symbol(form | SYM_MODULE))

        self._padded(c, stars, write)

    def ip_symbol(self, c: Conversion, stars: list[Node], node: Node) -> None:
        """%pY, ours: an address as the kernel's function tracer prints it (K:trace_output.c seq_print_ip_sym)."""
        self.integer(node)
        self.asm.emit("SYM", arg=self.style.ip(c.pointer[1:2]))

    def error_name(self, c: Conversion, stars: list[Node], node: Node) -> None:
        """%pe: the symbolic name of an error pointer; the kernel's list of names is not in a recording."""
        self._padded(c, stars, lambda: self._address_value(node, self.style.pointer))

    def _bytes_conversion(self, op: str, arg: int) -> Callable[[Conversion, list[Node], Node], None]:
        def handler(c: Conversion, stars: list[Node], node: Node) -> None:
            def write() -> None:
                self.mem(node)
                self.asm.emit(op, arg=arg)

            self._padded(c, stars, write)

        return handler

    def mac(self, c: Conversion, stars: list[Node], node: Node) -> None:
        letters = c.pointer[1:]
        separator = 0 if c.pointer[0] == "m" else ord("-") if "F" in letters else ord(":")
        self._bytes_conversion("MAC", separator | (0x100 if "R" in letters else 0))(c, stars, node)

    def ip(self, c: Conversion, stars: list[Node], node: Node) -> None:
        which, letters = c.pointer[1:2], c.pointer[2:]
        if which == "4":
            little = "l" in letters or ("h" in letters and not self.scope.big_endian)
            arg = (1 if c.pointer[0] == "i" else 0) | (2 if little else 0)
            self._bytes_conversion("IP4", arg)(c, stars, node)
        elif which == "6":
            arg = 2 if "c" in letters else 1 if c.pointer[0] == "i" else 0
            self._bytes_conversion("IP6", arg)(c, stars, node)
        elif which == "S":
            forms = {"p": SA_PORT, "c": SA_COMPRESSED, "f": SA_FLOW, "s": SA_SCOPE}
            self._bytes_conversion("SOCKADDR", sum(forms.get(letter, 0) for letter in set(letters)))(c, stars, node)
        else:
            raise CompileError(f"%p{c.pointer} is not understood")

    def uuid(self, c: Conversion, stars: list[Node], node: Node) -> None:
        letter = c.pointer[1:2]
        self._bytes_conversion("UUID", (letter in "lL" if letter else 0) | (2 if letter in ("B", "L") else 0))(
            c, stars, node
        )

    def hex_string(self, c: Conversion, stars: list[Node], node: Node) -> None:
        """%*ph[CDN]: so many bytes, at most 64 (K:lib/vsprintf.c hex_string)."""
        separator = {"C": ":", "D": "-", "N": ""}.get(c.pointer[1:2], " ")
        self.mem(node)
        if c.width is None:
            count = self.integer(stars[0])
            self.asm.convert(count, Int(4, True))
            slot = self.asm.local()
            self.asm.emit("SET", arg=slot)
            node_of_count = Node("local", slot)
            self._minimum(node_of_count, 64)
        else:
            self.asm.push(min(c.width or 1, 64))
        self.asm.emit("HEX", arg=ord(separator) if separator else 0)

    def _minimum(self, slot: Node, most: int) -> None:
        small, end = Label(), Label()
        self.asm.emit("GET", arg=slot.value)
        self.asm.push(most)
        self.asm.emit("GT", size=Int(4, True).code)
        self.asm.jump("JZ", small)
        self.asm.push(most)
        self.asm.jump("JUMP", end)
        self.asm.depth -= 1
        self.asm.place(small, reachable=False)
        self.asm.emit("GET", arg=slot.value)
        self.asm.place(end)

    def bits(self, c: Conversion, stars: list[Node], node: Node) -> None:
        """%*pb and %*pbl: a bitmap of so many bits."""
        self.mem(node)
        if c.width is None:
            self.asm.convert(self.integer(stars[0]), Int(4, True))
        else:
            self.asm.push(c.width)
        self.asm.emit("BITS", arg=int(c.pointer.startswith("bl")))

    def fourcc(self, c: Conversion, stars: list[Node], node: Node) -> None:
        self._bytes_conversion("FOURCC", 0)(c, stars, node)

    def number_at(self, c: Conversion, stars: list[Node], node: Node) -> None:
        """%pa: a physical address or size, by reference."""
        mem = self.mem(node)
        self.asm.push(0)
        element = mem.element or Int(self.scope.long_size, False)
        self.asm.index(Int(element.size, False))
        flags = SPEC_ALT | SPEC_ZERO | SPEC_KERNEL
        self.asm.integer_text(Int(8, False), spec(width=2 + 2 * element.size, flags=flags, base=16))

    # -- helpers of print formats

    def entries(self, nodes: tuple[Node, ...], size: int) -> list[tuple[int, bytes]]:
        """The {value, "text"} of __print_flags and __print_symbolic, but for values only the kernel knows."""
        found: list[tuple[int, bytes]] = []
        for node in nodes:
            if node.kind == "braces" and not node.kids:
                continue
            if node.kind != "braces" or len(node.kids) < 2:
                raise CompileError("a {value, text} is needed")
            value, text = node.kids[0], node.kids[1]
            if text.kind != "str":
                break  # { -1, NULL } ends the list
            try:
                found.append((self.constant(value) & (1 << 8 * size) - 1, text.value))
            except CompileError:
                if not any(n.kind == "name" for n in _walk(value)):
                    raise
        return found

    def flags_text(self, nodes: tuple[Node, ...], size: int) -> None:
        if len(nodes) < 2:
            raise CompileError("__print_flags needs a value and a delimiter")
        delimiter = nodes[1].value if nodes[1].kind == "str" else b""
        entries = self.entries(nodes[2:], size)
        if not self.style.kernel:
            entries = [entry for entry in entries if entry[0]]
        self.asm.convert(self.integer(nodes[0]), Int(size, False))
        table = self.asm.table(entries, ordered=False)
        self.asm.emit("FLAGS", size=size, arg=table, imm=self.asm.intern(delimiter) | len(delimiter) << 32)

    def symbolic_text(self, nodes: tuple[Node, ...], size: int) -> None:
        if not nodes:
            raise CompileError("__print_symbolic needs a value")
        self.asm.convert(self.integer(nodes[0]), Int(size, False))
        self.names(self.entries(nodes[1:], size), size)

    def names(self, entries: list[tuple[int, bytes]], size: int) -> None:
        """Emit the name of the number on top: the first entry of that value."""
        first: dict[int, bytes] = {}
        for value, text in entries:
            first.setdefault(value, text)
        self.asm.emit("SYMBOLIC", size=size, arg=self.asm.table(sorted(first.items()), ordered=True))

    def hex_text(self, nodes: tuple[Node, ...], separator: int) -> None:
        if len(nodes) < 2:
            raise CompileError("__print_hex needs bytes and a length")
        self.mem(nodes[0])
        self.asm.convert(self.integer(nodes[1]), Int(8, True))
        self.asm.emit("HEX", arg=separator)

    def array_text(self, nodes: tuple[Node, ...]) -> None:
        if len(nodes) < 3:
            raise CompileError("__print_array needs an array, a count and an element size")
        self.mem(nodes[0])
        for node in nodes[1:3]:
            self.asm.convert(self.integer(node), Int(8, True))
        self.asm.emit("ARRAY")

    def dynamic_array_text(self, nodes: tuple[Node, ...]) -> None:
        if len(nodes) < 2:
            raise CompileError("__print_dynamic_array needs an array and an element size")
        field = self.argument_field(nodes)
        self.place(field)
        self.length(field)
        self.integer(nodes[1])
        self.asm.binary("DIV", Int(8, False))
        self.integer(nodes[1])
        self.asm.emit("ARRAY")

    def hex_dump_text(self, nodes: tuple[Node, ...]) -> None:
        """__print_hex_dump(prefix, prefix type, row size, group size, buffer, length, ascii)."""
        if len(nodes) < 7 or nodes[0].kind != "str":
            raise CompileError("__print_hex_dump needs seven arguments")
        constants = {"DUMP_PREFIX_NONE": 0, "DUMP_PREFIX_ADDRESS": 1, "DUMP_PREFIX_OFFSET": 2}
        self.mem(nodes[4])
        for index in (1, 2, 3, 5, 6):
            node = nodes[index]
            if node.kind == "name" and node.value in constants:
                self.asm.push(constants[node.value])
            else:
                self.integer(node)
        self.asm.emit("HEXDUMP", arg=self.asm.intern(nodes[0].value), imm=len(nodes[0].value))

    def bitmask_text(self, nodes: tuple[Node, ...], as_list: bool) -> None:
        self.place(self.argument_field(nodes))
        self.asm.push(-1)
        self.asm.emit("BITS", arg=int(as_list))

    def named_text(self, nodes: tuple[Node, ...], entries: list[tuple[int, bytes]]) -> None:
        if not nodes:
            raise CompileError("an argument is missing")
        self.integer(nodes[-1])
        self.names(entries, 8)

    def cdb_text(self, nodes: tuple[Node, ...]) -> None:
        """scsi_trace_parse_cdb(p, command, length)."""
        if len(nodes) < 3:
            raise CompileError("scsi_trace_parse_cdb needs three arguments")
        self.mem(nodes[1])
        self.integer(nodes[2])
        self.asm.emit("CDB")

    def format_text(self, nodes: tuple[Node, ...]) -> None:
        """__print_format("...", arguments): ours, a print fmt inside another, so that one can depend on a condition."""
        if not nodes or nodes[0].kind != "str":
            raise CompileError("__print_format needs a format string")
        self.pieces(parse_format_string(nodes[0].value.decode("utf-8", "surrogateescape")), list(nodes[1:]))

    def stack_text(self, nodes: tuple[Node, ...], form: int) -> None:
        """__print_stack(addresses, entries): ours, one line for each address."""
        if len(nodes) < 2:
            raise CompileError("__print_stack needs addresses and a count")
        self.mem(nodes[0])
        self.integer(nodes[1])
        self.asm.emit("STACK", arg=form, imm=self.style.ip(""))

    def symbol_text(self, nodes: tuple[Node, ...], form: int) -> None:
        """__print_slash(address), __print_prefix(address): ours, two ways in which plugins print symbols."""
        self.integer(nodes[0])
        self.asm.emit("SYM", arg=form)

    def calls_text(self, nodes: tuple[Node, ...]) -> None:
        """__print_calls(function, parent): ours, blanks for the depth of calls."""
        self.integer(nodes[0])
        self.integer(nodes[1])
        self.asm.emit("CALLS")

    def comm_text(self, nodes: tuple[Node, ...]) -> None:
        """__print_comm(pid): ours, the name of another task."""
        if not nodes:
            raise CompileError("__print_comm needs a pid")
        self.integer(nodes[0])
        self.asm.emit("MCOMMOF")
        self.asm.emit("STR", imm=spec())

    def escaped_text(self, nodes: tuple[Node, ...]) -> None:
        """__print_escaped(bytes): ours, bytes with dots for what cannot be printed."""
        self.mem(nodes[0])
        self.asm.emit("ESCAPED")

    def bytes_text(self, nodes: tuple[Node, ...], form: int) -> None:
        """__print_bytes(bytes), __print_raw_array, __print_raw_text: ours, two hexadecimal digits a byte."""
        field = self.member_field(nodes[0])
        if field is None:
            self.mem(nodes[0])
        else:
            self.place(field, as_declared=True)
        self.asm.emit("OPAQUE", arg=form)

    def printk_text(self, nodes: tuple[Node, ...]) -> None:
        """__print_printk(format, buffer): ours, for bprint."""
        if len(nodes) < 2:
            raise CompileError("__print_printk needs a format and a buffer")
        self.integer(nodes[0])
        self.mem(nodes[1])
        self.asm.emit("BPRINT")

    def error_type_text(self, nodes: tuple[Node, ...]) -> None:
        """K:include/linux/edac.h mc_event_error_type."""
        node = nodes[0]
        names = ((0, "Corrected"), (1, "Uncorrected"), (2, "Deferred"), (3, "Fatal"))
        self._chain(node, [(value, to_bytes(name)) for value, name in names], b"Info")

    def _chain(self, node: Node, entries: list[tuple[int, bytes]], otherwise: bytes) -> None:
        end = Label()
        for value, text in entries:
            miss = Label()
            self.integer(node)
            self.asm.push(value)
            self.asm.emit("EQ", size=8)
            self.asm.jump("JZ", miss)
            self.asm.text(text)
            self.asm.jump("JUMP", end)
            self.asm.place(miss, reachable=False)
        self.asm.text(otherwise)
        self.asm.place(end)


def _walk(node: Node) -> list[Node]:
    found, index = [node], 0
    while index < len(found):
        found.extend(found[index].kids)
        index += 1
    return found


def _mentions(node: Node, names: frozenset[str]) -> bool:
    return any(n.kind == "name" and n.value in names for n in _walk(node))


Handler = Callable[[PrintCompiler, Conversion, list[Node], Node], Any]

# %p suffixes by their beginning, longest first.
POINTERS: tuple[tuple[str, Handler], ...] = (
    ("4cc", PrintCompiler.fourcc),
    ("S", PrintCompiler.symbol),
    ("s", PrintCompiler.symbol),
    ("F", PrintCompiler.symbol),
    ("f", PrintCompiler.symbol),
    ("B", PrintCompiler.symbol),
    ("M", PrintCompiler.mac),
    ("m", PrintCompiler.mac),
    ("I", PrintCompiler.ip),
    ("i", PrintCompiler.ip),
    ("U", PrintCompiler.uuid),
    ("h", PrintCompiler.hex_string),
    ("b", PrintCompiler.bits),
    ("a", PrintCompiler.number_at),
    ("x", PrintCompiler.raw_pointer),
    ("K", PrintCompiler.raw_pointer),
    ("e", PrintCompiler.error_name),
    ("Y", PrintCompiler.ip_symbol),
)

_XEN = [(number, f"({name})".encode()) for number, name in XEN_HYPERCALLS.items()]

# Functions whose result is text, for %s.
TEXTS: dict[str, Callable[[PrintCompiler, tuple[Node, ...]], None]] = {
    "__print_flags": lambda c, n: c.flags_text(n, c.scope.long_size),
    "__print_flags_u64": lambda c, n: c.flags_text(n, 8),
    "__print_symbolic": lambda c, n: c.symbolic_text(n, c.scope.long_size),
    "__print_symbolic_u64": lambda c, n: c.symbolic_text(n, 8),
    "__print_hex": lambda c, n: c.hex_text(n, ord(" ")),
    "__print_hex_str": lambda c, n: c.hex_text(n, 0),
    "ftrace_print_hex_seq": lambda c, n: c.hex_text(n[1:], ord(" ")),
    "__print_array": PrintCompiler.array_text,
    "__print_dynamic_array": PrintCompiler.dynamic_array_text,
    "__print_hex_dump": PrintCompiler.hex_dump_text,
    "__get_bitmask": lambda c, n: c.bitmask_text(n, False),
    "__get_rel_bitmask": lambda c, n: c.bitmask_text(n, False),
    "__get_cpumask": lambda c, n: c.bitmask_text(n, not c.style.kernel),
    "__get_rel_cpumask": lambda c, n: c.bitmask_text(n, not c.style.kernel),
    "xen_hypercall_name": lambda c, n: c.named_text(n, _XEN),
    "scsi_trace_parse_cdb": PrintCompiler.cdb_text,
    "mc_event_error_type": PrintCompiler.error_type_text,
    "__print_printk": PrintCompiler.printk_text,
    "__print_format": PrintCompiler.format_text,
    "__print_stack": lambda c, n: c.stack_text(n, STACK_KERNEL if c.style.kernel else STACK_TRACE_CMD),
    "__print_user_stack": lambda c, n: c.stack_text(n, STACK_USER),
    "__print_hex_colons": lambda c, n: c.hex_text((n[0], Node("num", (1 << 30, Int(4, True)))), ord(":")),
    "__print_slash": lambda c, n: c.symbol_text(n, SYM_SLASH),
    "__print_prefix": lambda c, n: c.symbol_text(n, SYM_PREFIX),
    "__print_calls": PrintCompiler.calls_text,
    "__print_comm": PrintCompiler.comm_text,
    "__print_escaped": PrintCompiler.escaped_text,
    "__print_bytes": lambda c, n: c.bytes_text(n, 0),
    "__print_raw_array": lambda c, n: c.bytes_text(n, 1),
    "__print_raw_text": lambda c, n: c.bytes_text(n, 2),
}


def compile_print_fmt(
    scope: Scope,
    style: Style,
    text: str | None = None,
    *,
    before: bytes = b"",
    after: bytes = b"",
    chomp: bool = False,
) -> bytes:
    """Bytecode that writes the body of one event.

    Parameters
    ----------
    scope : Scope
        The event, its kernel, and what its names mean.
    style : Style
        Whose text it is to be like.
    text : str, optional
        Another print fmt than the event's own.
    before, after : bytes
        Text to write around it.
    chomp : bool
        Take a newline back that ends the text, as trace-cmd does.

    Raises
    ------
    CompileError
        When the print fmt cannot be understood; the message says why.
    """
    compiler = PrintCompiler(scope, style)
    try:
        compiler.asm.text(before)
        compiler.print_fmt(scope.event.print_fmt if text is None else text)
        if chomp:
            compiler.asm.chomp()
        compiler.asm.text(after)
        return compiler.asm.finish()
    except RecursionError:
        raise CompileError("expression is nested too deeply") from None


def compile_printk(scope: Scope, style: Style, text: bytes) -> bytes:
    """Bytecode that writes a trace_printk of this format from its argument buffer (K:lib/vsprintf.c bstr_printf)."""
    compiler = PrintCompiler(scope, style)
    string = text.decode("utf-8", "surrogateescape")
    for piece in parse_format_string(string if style.kernel else string.removesuffix("\n")):
        if isinstance(piece, bytes):
            compiler.asm.text(piece)
            continue
        stars = [Node("argument", Int(4, True)) for _ in range(piece.stars)]
        compiler.conversion(piece, stars, printk_argument(piece, scope.long_size))
    return compiler.asm.finish()


def printk_argument(c: Conversion, long_size: int) -> Node:
    """How the argument of a conversion stands in the buffer.

    Pointers that the kernel can print later are numbers; what others point to was printed when they were recorded.
    """
    if c.kind == "s" or (c.kind == "p" and c.pointer[:1] not in ("", *"SsxKeFfB")):
        return Node("argument_text")
    if c.kind == "p":
        return Node("argument", Int(long_size, False))
    if c.kind == "c":
        return Node("argument", Int(1, False))
    return Node("argument", c.integer(long_size))
