"""What the names and texts of a filter mean for one event: fields, tasks, masks, names of numbers, kernel symbols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from . import _core
from .bytecode import S32, Assembler, CompileError, Int
from .codegen import Scope
from .expression import Node
from .filtersyntax import Term
from .formats import EventFormat, Field, Kind, Where
from .formatstring import split_print_fmt
from .names import IDLE, UNKNOWN
from .printfmt import KERNEL, PrintCompiler, parse_arguments
from .recording import Recording
from .regex import compile_regex

# What every record has besides its fields. An event's own field of such a name comes first, as in the kernel.
PSEUDO = ("COMM", "comm", "common_comm", "CPU", "cpu", "common_cpu", "common_ts")
_COMM = frozenset(("COMM", "comm", "common_comm"))
_CONTEXT = {"CPU": "__cpu", "cpu": "__cpu", "common_cpu": "__cpu", "common_ts": "__ts"}
TEXT_TESTS = {"EQ": "STREQ", "~": "GLOB", "=~": "REGEX"}
_MASK_FORMS = {"AND": 0, "EQ": 1, "NE": 2}  # enum ftb_mask
_TABLES = {"__print_flags": 4, "__print_flags_u64": 8, "__print_symbolic": 4, "__print_symbolic_u64": 8}
TOP = (1 << 64) - 1

Ranges = list[tuple[int, int]]


class Unknown(Exception):
    """What an event cannot answer. ``known``: how near it came, to choose the error that is shown."""

    def __init__(self, message: str, position: int, *, name: str = "", known: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.name = name  # of a field that is not there
        self.known = known


@dataclass(frozen=True, slots=True)
class Value:
    """An operand: a number has a ``node``, anything else is what a comparison makes of it."""

    node: Node | None = None
    field: Field | None = None  # that it is the value of, or (is_masked) some bits of
    is_masked: bool = False
    text: bytes | None = None
    cpus: tuple[int, ...] | None = None
    is_comm: bool = False
    unknown_name: str = ""  # a word that is no field: a text, or a name of a number
    method: str = ""
    quote: str = ""

    @property
    def is_constant(self) -> bool:
        return self.text is not None or self.cpus is not None or (self.node is not None and self.node.const)

    @property
    def is_known(self) -> int:
        return int(not self.unknown_name)

    def problem(self, wanted: str) -> str:
        if self.field is not None:
            return f"{self.field.name} is {_KINDS.get(self.field.kind, 'an array')}, and {wanted} is needed"
        return f"{wanted} is needed"


_KINDS = {Kind.STRING: "a string", Kind.MASK: "a mask", Kind.SCALAR: "a number", Kind.OPAQUE: "opaque"}


@dataclass(frozen=True, slots=True)
class TextTest:
    """== "text", ~ "glob" or =~ "regular expression"."""

    operation: str
    pattern: bytes
    position: int

    def emit(self, asm: Assembler) -> None:
        """Test the bytes on top of the stack."""
        data = self.pattern if self.operation != "=~" else _automaton(self.pattern)
        asm.emit(TEXT_TESTS[self.operation], arg=asm.intern(data), imm=len(data))

    def matching(self, names: Iterable[bytes]) -> list[bool]:
        """Which of some names pass: by the code that tests records, so that there is one rule."""
        asm = Assembler(False, 8)
        asm.emit("MTAIL", arg=0)
        self.emit(asm)
        program, renderer = _core.Program(asm.finish()), _core.Renderer(_core.TextTables())
        return [renderer.value(program, name) == 1 for name in names]


@lru_cache(maxsize=64)
def _automaton(pattern: bytes) -> bytes:
    return compile_regex(pattern.decode("utf-8", "surrogateescape")).packed()


def ranges_of(values: Iterable[int]) -> Ranges:
    """Numbers as ascending ranges of unsigned 64-bit ones."""
    ranges: Ranges = []
    for value in sorted({v & TOP for v in values}):
        if ranges and ranges[-1][1] + 1 == value:
            ranges[-1] = ranges[-1][0], value
        else:
            ranges.append((value, value))
    return ranges


def united(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Ranges, ascending, those that touch as one."""
    out: Ranges = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            out[-1] = out[-1][0], max(high, out[-1][1])
        else:
            out.append((low, high))
    return out


def is_in(node: Node, ranges: Ranges) -> Node:
    return Node("in", ranges, (node,), const=False)


@dataclass(frozen=True, slots=True)
class NameTable:
    """The names that a print fmt gives to a number: of __print_flags or __print_symbolic."""

    node: Node  # what is printed: the field, or some bits of it
    entries: Sequence[tuple[int, bytes]]
    delimiter: bytes | None  # None: one name a value
    size: int

    def values(self, text: bytes) -> list[int]:
        """The values that print as ``text``."""
        if self.delimiter is None:
            first: dict[int, bytes] = {}
            for value, name in self.entries:
                first.setdefault(value, name)
            return [value for value, name in first.items() if name == text]
        total = 0
        for part in text.split(self.delimiter) if self.delimiter else [text]:
            bits = [value for value, name in self.entries if name == part.strip()]
            if len(bits) != 1:
                return []
            total |= bits[0]
        return [total]


class EventValues:
    """Looks names up for one event."""

    def __init__(self, recording: Recording, fmt: EventFormat, known_ranges: dict[TextTest, Ranges]) -> None:
        self.recording = recording
        self.format = fmt
        self.scope = Scope(fmt, recording.container.big_endian, recording.abi.long_size)
        self._symbol_ranges = known_ranges  # shared by all events: there are many symbols

    # -- operands

    def look_up(self, term: Term) -> Value:
        """The meaning of a leaf of the tree."""
        if term.kind == "num":
            return Value(Node("num", term.value))
        if term.kind == "text":
            return Value(text=term.value, quote=term.method)
        if term.kind == "cpus":
            return Value(cpus=term.value)
        return self._name(term)

    def _name(self, term: Term) -> Value:
        name: str = term.value
        found = self.format.find(name)
        if found is not None:
            return self._field(found, term)
        if term.method:
            raise Unknown("", term.position, name=name)
        if name in _COMM:
            return Value(is_comm=True)
        if name in _CONTEXT:
            return Value(Node("name", _CONTEXT[name], const=False))
        return Value(text=name.encode("utf-8", "surrogateescape"), unknown_name=name)

    def _field(self, found: Field, term: Term) -> Value:
        is_number = found.kind is Kind.SCALAR and found.where is Where.INLINE
        if term.method == "ustring" and is_number:
            raise Unknown("memory of a user's process is not in a recording", term.position, known=2)
        if term.method == "function" and not (is_number and found.size == self.scope.long_size):
            raise Unknown(f"{found.name} is not an address", term.position, known=2)
        node = Node("field", found, const=False) if is_number else None
        return Value(node, found, method=term.method if is_number else "")

    # -- masks

    def mask_test(self, operation: str, value: Value, mask: Value, position: int) -> Node:
        """``value & CPUS{}``: any of them; == and !=: just these. For a number: whether it is one of them."""
        cpus = mask.cpus or ()
        if operation not in _MASK_FORMS:
            raise Unknown("CPUS{} can be compared by &, == and != only", position, known=2)
        if value.field is not None and value.field.kind is Kind.MASK:
            bits = bytearray(max(cpus, default=-1) // 8 + 1)
            for cpu in cpus:
                bits[cpu // 8] |= 1 << cpu % 8
            return Node("mask_test", (value.field, _MASK_FORMS[operation], bytes(bits)), const=False)
        if value.node is None:
            raise Unknown(value.problem("a mask or a number"), position, name=value.unknown_name, known=value.is_known)
        inside = is_in(value.node, ranges_of(cpus if operation == "AND" or len(cpus) == 1 else ()))
        return Node("unary", "!", (inside,)) if operation == "NE" else inside

    # -- texts

    def check_comparable(self, value: Value, position: int) -> None:
        """Arrays, masks and structs are not compared with texts or numbers."""
        if value.field is not None and value.node is None and value.field.kind is not Kind.STRING:
            raise Unknown(value.problem("a number or a string"), position, known=2)

    def text_test(self, test: TextTest, left: Value, right: Value, term: Term) -> Node:
        """A string, the name of a task, or what a number is called."""
        if left.is_comm:
            return self._comm_test(test, term)
        if left.field is not None and left.field.kind is Kind.STRING:
            return Node("text_test", (left.field, test), const=False)
        if left.node is None:
            raise Unknown(left.problem("a number or a string"), term.kids[0].position, known=2)
        if left.method != "function":
            named = self._name_test(test, left, right)
            if named is not None:
                return named
        if left.field is not None and not left.is_masked:
            ranges = self._address_ranges(test, left)
            if ranges:
                return is_in(left.node, ranges)
        if right.quote == "'" and len(test.pattern) == 1 and test.operation == "EQ":
            return Node("binary", "EQ", (left.node, Node("num", (test.pattern[0], S32))))
        if left.field is None:
            raise Unknown("a number is needed", test.position, name=right.unknown_name, known=right.is_known)
        text = test.pattern.decode("utf-8", "backslashreplace")
        raise Unknown(f"{left.field.name} has no value named {text!r}", test.position, known=1)

    def _comm_test(self, test: TextTest, term: Term) -> Node:
        pid = self.format.find("common_pid")
        if pid is None:
            raise Unknown("records do not hold a pid", term.position)
        known = self.recording.known_comms
        names = {p: known.raw(p) for p in known} | {0: IDLE}
        distinct = sorted({*names.values(), UNKNOWN})
        passed = dict(zip(distinct, test.matching(distinct), strict=True))
        others = passed[UNKNOWN]  # of tasks whose name is not known
        listed = ranges_of(p for p, name in names.items() if passed[name] != others)
        inside = is_in(Node("field", pid, const=False), listed)
        return Node("unary", "!", (inside,)) if others else inside

    # -- names of numbers

    def named(self, value: Value, other: Value) -> Value:
        """The number that a word or text stands for beside a field: ``flags & NAME``."""
        if value.text is None or other.field is None:
            return value
        numbers = {number for table in self._tables_of(other.field) for number in table.values(value.text)}
        if len(numbers) != 1:
            return value
        size = 8 if other.field.size == 8 else 4
        return Value(Node("num", (numbers.pop(), Int(size, other.field.signed))))

    def _name_test(self, test: TextTest, left: Value, right: Value) -> Node | None:
        if left.field is None:
            return None
        found: dict[str, tuple[Node, list[int]]] = {}
        for table in self._tables_of(left.field):
            values = self._passing(test, table)
            if values:
                node = left.node if left.is_masked and left.node is not None else table.node
                found[f"{node!r} {sorted(values)}"] = (node, values)
        if len(found) > 1:
            raise Unknown("the event has several values of that name", test.position, known=2)
        for node, values in found.values():
            size = 8 if left.field.size == 8 else 4
            unsigned = Node("cast_to", Int(size, False), (node,))
            return is_in(unsigned, ranges_of(v & (1 << 8 * size) - 1 for v in values))
        return None

    def _passing(self, test: TextTest, table: NameTable) -> list[int]:
        if test.operation == "EQ":
            return table.values(test.pattern)
        if table.delimiter is not None:  # too many combinations to list
            return []
        names = sorted({name for _, name in table.entries})
        passing = [name for name, passed in zip(names, test.matching(names), strict=True) if passed]
        return [value for name in passing for value in table.values(name)]

    def _tables_of(self, item: Field) -> list[NameTable]:
        return [t for t in self._name_tables if _fields_of(t.node, self.format) == {item.name}]

    @cached_property
    def _name_tables(self) -> list[NameTable]:
        """All tables of the print fmt."""
        tables: list[NameTable] = []
        compiler = PrintCompiler(self.scope, KERNEL)
        try:
            splits = split_print_fmt(self.format.print_fmt) if self.format.print_fmt else []
        except CompileError:
            return tables
        for _, arguments in splits:
            try:
                nodes = parse_arguments(arguments, long_size=self.scope.long_size)
            except (CompileError, RecursionError):
                continue
            for node in nodes:
                tables += _tables_in(node, compiler)
            break
        return tables

    # -- addresses

    def _address_ranges(self, test: TextTest, left: Value) -> Ranges:
        """The addresses of the symbols, or of the kernel's strings, whose text passes."""
        item = left.field
        if item is None or not (item.is_pointer or item.size == self.scope.long_size or left.method):
            return []
        strings: Ranges = []
        if "char" in item.type and item.is_pointer:
            known = self.recording.printk_formats
            passed = test.matching(known.values())
            strings = [(a, a) for a, yes in zip(known, passed, strict=True) if yes]
        if test not in self._symbol_ranges:
            self._symbol_ranges[test] = self._ranges_of_symbols(test)
        return united([*strings, *self._symbol_ranges[test]])

    def _ranges_of_symbols(self, test: TextTest) -> Ranges:
        symbols = self.recording.symbols
        names, starts, ends = symbols.names, symbols.addresses, symbols.ends
        passed = [name == test.pattern for name in names] if test.operation == "EQ" else test.matching(names)
        found = [(int(starts[row]), int(ends[row]) - 1) for row, yes in enumerate(passed) if yes]
        if test.operation == "EQ" and (address := symbols.by_name(test.pattern)) is not None:
            alias = symbols.lookup(address)  # of an address with several names only one is in the table
            found.append((address, address + ((alias.size if alias else None) or 1) - 1))
        return united(found)

    def function_test(self, left: Value, address: int, position: int) -> Node:
        """``ip.function == 0x...``: the function that an address lies in."""
        symbol = self.recording.symbols.lookup(address)
        if symbol is None or left.node is None:
            raise Unknown("no function has that address", position, known=2)
        return is_in(left.node, [(symbol.start, symbol.start + (symbol.size or 1) - 1)])


def _fields_of(node: Node, event: EventFormat) -> set[str]:
    """Names of the fields in a print fmt's expression; ``?`` for what is not a plain member."""
    if node.kind == "member":
        return {node.value} if node.kids[0].kind == "name" and node.kids[0].value == "REC" else {"?"}
    if node.kind in ("call", "name"):
        return {"?"}
    return {name for kid in node.kids for name in _fields_of(kid, event)}


def _tables_in(node: Node, compiler: PrintCompiler) -> Iterator[NameTable]:
    if node.kind == "call" and node.value in _TABLES:
        size = _TABLES[node.value]
        delimited = node.value.startswith("__print_flags")
        try:
            entries = compiler.entries(node.kids[2 if delimited else 1 :], size)
        except CompileError:
            return
        delimiter = node.kids[1].value if delimited and len(node.kids) > 1 and node.kids[1].kind == "str" else None
        if node.kids:
            yield NameTable(node.kids[0], entries, delimiter or (b"" if delimited else None), size)
        return
    if node.kind == "cond":
        yield from _zero_name(node, compiler)
    for kid in node.kids:
        yield from _tables_in(kid, compiler)


def _zero_name(node: Node, compiler: PrintCompiler) -> Iterator[NameTable]:
    """``value ? __print_flags(value, ...) : "R"``: the name of 0."""
    test, then, other = node.kids
    named = other.kind == "str" and then.kind == "call" and then.value in _TABLES and then.kids
    if named and repr(test) == repr(then.kids[0]):
        yield NameTable(test, [(0, other.value)], None, _TABLES[then.value])

