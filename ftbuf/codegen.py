"""Trees of C expressions -> bytecode, by C's own rules: promotions, usual arithmetic conversions, pointers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .bytecode import COMPARISONS, S32, U32, Assembler, CompileError, Int, Label
from .constants import KERNEL_CONSTANTS
from .expression import CType, Node, integer_type, parse_expression
from .formats import EventFormat, Field, Kind, Where

_PSEUDO = {"__cpu": 0, "__pid": 1, "__ts": 2}  # what a record has besides its payload (enum ftb_pseudo)
_WHERE = {Where.DATA_LOC: 1, Where.REL_LOC: 2, Where.SHORT_LOC: 3}


def _declared_size(item: Field) -> int:
    """Bytes of ``type name[N]``; 0 when N is not said."""
    count = re.search(r"\[(\d{1,6})\]", item.declaration)
    return int(count[1]) * item.element_size if count else 0


@dataclass(frozen=True, slots=True)
class Pointer:
    """A kernel address on the integer stack."""

    target: Int | None = None
    target_size: int | None = None


@dataclass(frozen=True, slots=True)
class Mem:
    """Bytes of the record on the mem stack: an array, or a pointer into the record."""

    element: Int | None = None
    size: int | None = None  # of the whole, where it is fixed


Type = Int | Pointer | Mem


@dataclass(frozen=True, slots=True)
class Scope:
    """What the names of an expression mean."""

    event: EventFormat
    big_endian: bool
    long_size: int
    constants: Mapping[str, int] = field(default_factory=dict)  # enum values and macros
    address: Callable[[str], int | None] = lambda name: None  # of a kernel symbol
    hz: int = 1000  # CONFIG_HZ: of jiffies_to_msecs


class Compiler:
    """Emits the code of expressions into one program."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.asm = Assembler(scope.big_endian, scope.long_size)
        self.locals: dict[str, tuple[int, Type]] = {}
        self._known: dict[int, tuple[Type, int | None]] = {}  # by id of a node, of the trees that are being compiled
        self.long = Int(scope.long_size, True)
        self.ulong = Int(scope.long_size, False)

    # -- entry points

    def value(self, node: Node) -> Type:
        """Emit code that leaves the value of ``node``: on the integer stack, or on the mem stack for Mem."""
        kind, known = self._known.get(id(node), (None, None))
        if kind is not None and known is not None:
            self.asm.push(known)
            return kind
        method = _VALUES.get(node.kind)
        if method is None:
            raise CompileError(f"{node.kind} cannot be used as a value")
        return method(self, node)

    def integer(self, node: Node) -> Int:
        """As value, for where a number is needed."""
        kind = self.value(node)
        if isinstance(kind, Mem):
            raise CompileError("an array is used as a number")
        return self.ulong if isinstance(kind, Pointer) else kind

    def mem(self, node: Node) -> Mem:
        """As value, for where bytes of the record are needed."""
        if node.kind == "str":
            self.asm.emit("MPOOL", arg=self.asm.intern(node.value), imm=len(node.value))
            return Mem(Int(1, True), len(node.value))
        kind = self.value(node)
        if not isinstance(kind, Mem):
            raise CompileError("a number is used where bytes of the record are needed")
        return kind

    def constant(self, node: Node) -> int:
        """The value of an expression that must be constant."""
        kind = self.type_of(node)
        value = self._known[id(node)][1]
        if value is None or isinstance(kind, Mem):
            raise CompileError("a constant is needed")
        return (self.ulong if isinstance(kind, Pointer) else kind).wrap(value)

    def branch(self, node: Node, label: Label, sense: bool) -> None:
        """Jump to ``label`` when the truth of ``node`` is ``sense``."""
        if node.kind == "unary" and node.value == "!":
            self.branch(node.kids[0], label, not sense)
        elif node.kind in ("&&", "||"):
            every_one_decides = (node.kind == "||") == sense  # true || ... and false && ... decide at once
            if every_one_decides:
                for kid in node.kids:
                    self.branch(kid, label, sense)
                return
            past = Label()
            for kid in node.kids[:-1]:
                self.branch(kid, past, not sense)
            self.branch(node.kids[-1], label, sense)
            self.asm.place(past)
        else:
            self._truth(node)
            self.asm.jump("JNZ" if sense else "JZ", label)

    def _truth(self, node: Node) -> None:
        if isinstance(self.value(node), Mem):  # an address in the record is never null
            self.asm.emit("MDROP")
            self.asm.push(1)

    def known_truth(self, node: Node) -> bool | None:
        """The truth of a constant condition; None when it depends on the record."""
        if node.kind in ("&&", "||"):
            truths = [self.known_truth(kid) for kid in node.kids]
            deciding = node.kind == "||"
            return deciding if deciding in truths else None if None in truths else not deciding
        if node.kind == "unary" and node.value == "!":
            known = self.known_truth(node.kids[0])
            return None if known is None else not known
        return bool(self.constant(node)) if node.const and node.kind != "str" else None

    # -- leaves

    def _num(self, node: Node) -> Type:
        value, kind = node.value
        self.asm.push(value)
        return kind  # type: ignore[no-any-return]

    def _argument(self, node: Node) -> Type:
        """The next argument of a trace_printk."""
        kind: Int = node.value
        self.asm.emit("ARG", size=kind.code)
        return kind

    def _argument_text(self, node: Node) -> Type:
        self.asm.emit("ARGMEM")
        return Mem(Int(1, True))

    def _str(self, node: Node) -> Type:
        return self.mem(node)

    def _name(self, node: Node) -> Type:
        name = node.value
        if name in self.locals:
            slot, kind = self.locals[name]
            self.asm.emit("GET", arg=slot)
            return kind
        if name in _PSEUDO:
            self.asm.emit("CONTEXT", arg=_PSEUDO[name])
            return Int(8, True)
        value = self.scope.constants.get(name, KERNEL_CONSTANTS.get(name))
        if value is not None:
            self.asm.push(value)
            return S32 if -1 << 31 <= value < 1 << 31 else Int(8, value < 1 << 63)
        address = (
            self.scope.address(name) if name.startswith("_") else None
        )  # _stext: an array, so its value is its address
        if address is not None:
            self.asm.push(address)
            return Pointer(Int(1, True), 1)
        raise CompileError(f"{name} is known to the kernel alone")

    def find_field(self, name: str, *, located: bool = False) -> Field:
        found = self.scope.event.find(name, located=located)
        if found is None:
            raise CompileError(f"the event {self.scope.event.name or 'that is asked for'} has no field {name}")
        return found

    def _dotted(self, node: Node) -> str:
        names: list[str] = []
        while node.kind == "member":
            names.append(node.value)
            node = node.kids[0]
        if node.kind != "name":
            raise CompileError("a member of something that is not the record")
        names.append(node.value)
        return ".".join(reversed(names))

    def member_field(self, node: Node) -> Field | None:
        """The field that ``REC->name`` is; None for other expressions."""
        return self._path(node) if node.kind == "member" else None

    def _path(self, node: Node) -> Field:
        """The field that REC->a or REC->a.b means."""
        record, _, name = self._dotted(node).partition(".")
        if record != "REC":
            raise CompileError("a member of something that is not the record")
        if name.startswith("ent."):  # struct trace_entry: the common fields
            name = "common_" + name.removeprefix("ent.")
        return self.find_field(name)

    def _member(self, node: Node) -> Type:
        return self.load(self._path(node))

    def load(self, item: Field) -> Type:
        """The value of a field."""
        if item.kind is Kind.SCALAR and item.where is Where.INLINE:
            signed = item.signed and not item.is_pointer
            self.asm.emit("FIELD", arg=item.offset, size=Int(item.size, signed).code)
            return self._pointer_to(item.type) if item.is_pointer else Int(item.size, signed)
        return self.place(item)

    def _pointer_to(self, written: str) -> Pointer:
        target = (
            integer_type(written.replace("*", " ").split(), self.scope.long_size) if written.count("*") == 1 else None
        )
        return Pointer(target, target.size if target else None)

    def place(self, item: Field, *, as_declared: bool = False) -> Mem:
        """The bytes of a field. ``as_declared``: no more than its declaration says (K:trace_entries.h kernel_stack)."""
        size = item.size if item.where is Where.INLINE else None
        if item.where is Where.TAIL:
            self.asm.emit("MTAIL", arg=item.offset, imm=_declared_size(item) if as_declared else 0)
        elif item.where is Where.INLINE:
            self.asm.emit("MFIELD", arg=item.offset, imm=item.size)
        else:
            self.asm.emit("MDYN", arg=item.offset, size=_WHERE[item.where])
        element = item.element_size if item.kind is not Kind.SCALAR else item.size
        return Mem(Int(element, item.signed) if element in (1, 2, 4, 8) else None, size)

    def length(self, item: Field) -> Type:
        """Bytes of a dynamic field."""
        if item.where in (Where.DATA_LOC, Where.REL_LOC):
            self.asm.emit("DYNLEN", arg=item.offset, size=_WHERE[item.where])
        else:
            self.place(item)
            self.asm.emit("MLEN")
        return U32

    # -- operators

    def _unary(self, node: Node) -> Type:
        operator, kid = node.value, node.kids[0]
        if operator == "!":
            self._truth(kid)
            self.asm.unary("LNOT", Int(8, True))
            return S32
        if operator == "&":
            return self._address(kid)
        if operator == "*":
            return self._element(self.value(kid), lambda: self.asm.push(0))
        kind = self._promote(self.integer(kid))
        if operator != "+":
            self.asm.unary("NEG" if operator == "-" else "NOT", kind)
        return kind

    def _promote(self, kind: Int) -> Int:
        if kind.size >= 4:
            return kind
        self.asm.convert(kind, S32)
        return S32

    def _address(self, node: Node) -> Type:
        if node.kind == "member":
            return self.place(self._path(node))
        if node.kind == "index":
            base = self.value(node.kids[0])
            if isinstance(base, Mem) and base.element:
                self._scaled(node.kids[1], base.element.size)
                self.asm.emit("MSKIP")
                return Mem(base.element)
        if node.kind == "name":
            address = self.scope.address(node.value)
            if address is not None:
                self.asm.push(address)
                return Pointer()
        raise CompileError("cannot take this address")

    def _scaled(self, node: Node, size: int) -> None:
        self.asm.convert(self.integer(node), Int(8, True))
        if size != 1:
            self.asm.push(size)
            self.asm.binary("MUL", Int(8, True))

    def _index(self, node: Node) -> Type:
        return self._element(self.value(node.kids[0]), lambda: self.integer(node.kids[1]))

    def _element(self, base: Type, push_index: Callable[[], object]) -> Type:
        if not isinstance(base, Mem):
            raise CompileError("memory of the kernel cannot be read")
        if base.element is None:
            raise CompileError("elements of unknown size")
        push_index()
        self.asm.index(base.element)
        return base.element

    def _binary(self, node: Node) -> Type:
        left = self.value(node.kids[0])
        if isinstance(left, Mem):
            return self._mem_arithmetic(node, left)
        if isinstance(left, Pointer):
            return self._pointer_arithmetic(node, left)
        if node.value in ("SHL", "SHR"):
            kind = self._promote(left)
            self._promote(self.integer(node.kids[1]))
            self.asm.binary(node.value, kind)
            return kind
        right = self.type_of(node.kids[1])
        if isinstance(right, Mem):
            raise CompileError("an array is used as a number")
        kind = self._common(left, self.ulong if isinstance(right, Pointer) else right)
        self.asm.convert(left, kind)
        self.asm.convert(self.integer(node.kids[1]), kind)
        self.asm.binary(node.value, kind)
        return S32 if node.value in COMPARISONS else kind

    def _common(self, a: Int, b: Int) -> Int:
        """Usual arithmetic conversions (C11 6.3.1.8)."""
        a, b = (S32 if k.size < 4 else k for k in (a, b))
        if a.size != b.size:
            return a if a.size > b.size else b
        return Int(a.size, a.signed and b.signed)

    def _mem_arithmetic(self, node: Node, left: Mem) -> Type:
        if node.value != "ADD":
            raise CompileError("an array is used as a number")
        self._scaled(node.kids[1], left.element.size if left.element else 1)
        self.asm.emit("MSKIP")
        return Mem(left.element)

    def _pointer_arithmetic(self, node: Node, left: Pointer) -> Type:
        kind = Int(self.scope.long_size, False)
        right = self.value(node.kids[1])
        if isinstance(right, Mem):
            raise CompileError("an array is used as a number")
        scale = left.target_size or 1
        if isinstance(right, Int) and node.value in ("ADD", "SUB") and scale != 1:
            self.asm.push(scale)
            self.asm.binary("MUL", Int(8, True))
        self.asm.binary(node.value, kind)
        if node.value in COMPARISONS:
            return S32
        if isinstance(right, Pointer) and node.value == "SUB":
            if scale != 1:
                self.asm.push(scale)
                self.asm.binary("DIV", Int(self.scope.long_size, True))
            return self.long
        return left

    def _logic(self, node: Node) -> Type:
        known = self.known_truth(node) if node.const else None
        if known is not None:
            self.asm.push(known)
            return S32
        no, end = Label(), Label()
        self.branch(node, no, False)
        self.asm.push(1)
        self.asm.jump("JUMP", end)
        self.asm.depth -= 1
        self.asm.place(no, reachable=False)
        self.asm.push(0)
        self.asm.place(end)
        return S32

    def _cond(self, node: Node) -> Type:
        test, then, other = node.kids
        known = self.known_truth(test)
        if known is not None:
            return self.value(then if known else other)
        if_no, end = Label(), Label()
        kind = self._result(then, other)
        self.branch(test, if_no, False)
        self._as(then, kind)
        depth = self.asm.depth, self.asm.mem_depth
        self.asm.jump("JUMP", end)
        self.asm.place(if_no, reachable=False)
        self._as(other, kind)
        if (self.asm.depth, self.asm.mem_depth) != depth:
            raise CompileError("branches of ?: have different kinds")
        self.asm.place(end)
        return kind

    def _elvis(self, node: Node) -> Type:
        test, other = node.kids
        end = Label()
        kind = self._result(test, other)
        if isinstance(kind, Mem):
            return self.value(test)
        self._as(test, kind)
        self.asm.emit("DUP")
        self.asm.jump("JNZ", end)
        self.asm.emit("POP")
        self._as(other, kind)
        self.asm.place(end)
        return kind

    def type_of(self, node: Node) -> Type:
        """The type of an expression, without its code. Remembered, so that a tree is not compiled over and over."""
        known = self._known.get(id(node))
        if known is not None:
            return known[0]
        asm, self.asm = self.asm, Assembler(self.scope.big_endian, self.scope.long_size)
        names = dict(self.locals)
        try:
            kind = self.value(node)
            value = self.asm.constant() if len(self.asm.ops) == 1 else None
        finally:
            self.asm, self.locals = asm, names
        self._known[id(node)] = (kind, value)
        return kind

    def _result(self, then: Node, other: Node) -> Type:
        a, b = self.type_of(then), self.type_of(other)
        if isinstance(a, Int) and isinstance(b, Int):
            return self._common(a, b)
        return b if isinstance(a, Int) else a

    def _as(self, node: Node, kind: Type) -> None:
        mine = self.value(node)
        if isinstance(mine, Int) and isinstance(kind, Int):
            self.asm.convert(mine, kind)

    # -- types

    def resolve(self, written: CType | Node, otherwise: Type) -> Type:
        """The type that a cast or declaration names; ``otherwise`` when it is not known."""
        if isinstance(written, Node):
            return self.type_of(written)
        if written.pointers:
            plain = written.pointers == 1
            size = (written.base.size if written.base else written.size) if plain else self.scope.long_size
            return Pointer(written.base if plain else self.ulong, size)
        return written.base or otherwise

    def _cast(self, node: Node) -> Type:
        mine = self.value(node.kids[0])
        wanted = self.resolve(node.value, mine)
        if isinstance(mine, Mem):
            if isinstance(wanted, Pointer):
                return Mem(wanted.target)
            if wanted is mine or isinstance(wanted, Mem):
                return mine
            raise CompileError("an array is cast to a number")
        if isinstance(wanted, Mem):
            raise CompileError("a number is cast to an array")
        self.asm.convert(
            self.ulong if isinstance(mine, Pointer) else mine, self.ulong if isinstance(wanted, Pointer) else wanted
        )
        return wanted

    def _sizeof_type(self, node: Node) -> Type:
        if isinstance(node.value, Node):
            return self._size(self.type_of(node.value))
        written: CType = node.value
        size = self.scope.long_size if written.pointers else written.base.size if written.base else written.size
        if size is None:
            raise CompileError("size of a type that the kernel alone knows")
        self.asm.push(size)
        return self.ulong

    def _sizeof(self, node: Node) -> Type:
        kid = node.kids[0]
        if kid.kind == "str":
            return self._size(Mem(None, len(kid.value) + 1))
        return self._size(self.type_of(kid))

    def _size(self, kind: Type) -> Type:
        size = self.scope.long_size if isinstance(kind, Pointer) else kind.size
        if size is None:
            raise CompileError("size of something that has no fixed size")
        self.asm.push(size)
        return self.ulong

    # -- statement expressions and calls

    def _block(self, node: Node) -> Type:
        outer = dict(self.locals)
        for kid in node.kids[:-1]:
            self.declare(kid)
        kind = self.value(node.kids[-1])
        self.locals = outer
        return kind

    def declare(self, node: Node) -> None:
        """A variable of a statement expression."""
        name, written = node.value
        mine = self.value(node.kids[0])
        if isinstance(mine, Mem):
            raise CompileError("a variable holds an array")
        kind = self.resolve(written, mine)
        if isinstance(kind, Mem):
            raise CompileError("a variable holds an array")
        self.asm.convert(
            self.ulong if isinstance(mine, Pointer) else mine, self.ulong if isinstance(kind, Pointer) else kind
        )
        slot = self.asm.local()
        self.asm.emit("SET", arg=slot)
        self.locals[name] = (slot, kind)

    def _call(self, node: Node) -> Type:
        function = FUNCTIONS.get(node.value)
        if function is None:
            raise CompileError(f"function {node.value} is known to the kernel alone")
        return function(self, node.kids)

    def argument_field(self, arguments: tuple[Node, ...]) -> Field:
        """The field that the first argument of __get_str and its like names."""
        if not arguments:
            raise CompileError("a field's name is needed")
        return self.find_field(self._dotted(arguments[0]), located=True)


_VALUES: dict[str, Callable[[Compiler, Node], Type]] = {
    "num": Compiler._num,
    "str": Compiler._str,
    "name": Compiler._name,
    "member": Compiler._member,
    "unary": Compiler._unary,
    "index": Compiler._index,
    "binary": Compiler._binary,
    "&&": Compiler._logic,
    "||": Compiler._logic,
    "cond": Compiler._cond,
    "elvis": Compiler._elvis,
    "cast": Compiler._cast,
    "sizeof_type": Compiler._sizeof_type,
    "sizeof": Compiler._sizeof,
    "block": Compiler._block,
    "call": Compiler._call,
    "argument": Compiler._argument,
    "argument_text": Compiler._argument_text,
}

Function = Callable[[Compiler, tuple[Node, ...]], Type]


def _bytes_of(compiler: Compiler, arguments: tuple[Node, ...]) -> Type:
    return compiler.place(compiler.argument_field(arguments))


def _string_of(compiler: Compiler, arguments: tuple[Node, ...]) -> Type:
    compiler.place(compiler.argument_field(arguments))
    return Mem(Int(1, True))


def _length_of(compiler: Compiler, arguments: tuple[Node, ...]) -> Type:
    return compiler.length(compiler.argument_field(arguments))


def _first(compiler: Compiler, arguments: tuple[Node, ...]) -> Type:
    if not arguments:
        raise CompileError("an argument is missing")
    return compiler.value(arguments[0])


def _zero(compiler: Compiler, arguments: tuple[Node, ...]) -> Type:
    compiler.asm.push(0)
    return S32


def _jiffies_to_msecs(compiler: Compiler, arguments: tuple[Node, ...]) -> Type:
    """Kernel time ticks (K:time/time.c); the result is an unsigned int."""
    _first(compiler, arguments)
    if compiler.scope.hz != 1000:
        compiler.asm.push(1000)
        compiler.asm.binary("MUL", Int(8, False))
        compiler.asm.push(compiler.scope.hz)
        compiler.asm.binary("DIV", Int(8, False))
    compiler.asm.convert(Int(8, False), U32)
    return U32


def _swap(size: int) -> Function:
    def function(compiler: Compiler, arguments: tuple[Node, ...]) -> Type:
        if not arguments:
            raise CompileError("an argument is missing")
        compiler.integer(arguments[0])
        compiler.asm.emit("SWAP", size=size)
        return Int(size, False)

    return function


def _le_at(size: int) -> Function:
    """__le16_to_cpup and its like: a little-endian number at a pointer."""

    def function(compiler: Compiler, arguments: tuple[Node, ...]) -> Type:
        if not arguments:
            raise CompileError("an argument is missing")
        compiler.mem(arguments[0])
        compiler.asm.push(0)
        compiler.asm.index(Int(size, False))
        if compiler.scope.big_endian:
            compiler.asm.emit("SWAP", size=size)
        return Int(size, False)

    return function


def _is_writable_pte(compiler: Compiler, arguments: tuple[Node, ...]) -> Type:
    """Bit 1 of a page table entry (K:arch/x86/kvm/mmu.h PT_WRITABLE_MASK)."""
    _first(compiler, arguments)
    compiler.asm.push(2)
    compiler.asm.binary("AND", Int(8, False))
    return Int(compiler.scope.long_size, False)


FUNCTIONS: dict[str, Function] = {
    "__get_dynamic_array": _bytes_of,
    "__get_rel_dynamic_array": _bytes_of,
    "__get_str": _string_of,
    "__get_rel_str": _string_of,
    "__get_dynamic_array_len": _length_of,
    "__get_rel_dynamic_array_len": _length_of,
    "__get_sockaddr": _bytes_of,
    "__get_rel_sockaddr": _bytes_of,
    "__get_sockaddr_rel": _bytes_of,
    "__get_bitmask": _bytes_of,
    "__get_rel_bitmask": _bytes_of,
    "__get_cpumask": _bytes_of,
    "__get_rel_cpumask": _bytes_of,
    "__builtin_expect": _first,
    "__builtin_constant_p": _zero,
    "__builtin_types_compatible_p": _zero,
    "jiffies_to_msecs": _jiffies_to_msecs,
    "is_writable_pte": _is_writable_pte,
    "__fswab16": _swap(2),
    "__fswab32": _swap(4),
    "__fswab64": _swap(8),
    "__swab16": _swap(2),
    "__swab32": _swap(4),
    "__le16_to_cpup": _le_at(2),
    "__le32_to_cpup": _le_at(4),
    "__le64_to_cpup": _le_at(8),
    # conversions between a page table entry and its number
    **dict.fromkeys(
        (
            "pte_val",
            "pmd_val",
            "pud_val",
            "p4d_val",
            "pgd_val",
            "native_make_pte",
            "native_make_pmd",
            "native_make_pud",
            "native_make_p4d",
            "native_make_pgd",
            "from_kuid",
            "from_kgid",
        ),
        _first,
    ),
}


def compile_value(scope: Scope, text: str) -> bytes:
    """Bytecode that leaves the value of one C expression.

    Raises
    ------
    CompileError
        When the expression cannot be understood; the message says why.
    """
    compiler = Compiler(scope)
    try:
        compiler.integer(parse_expression(text, long_size=scope.long_size))
        return compiler.asm.finish()
    except RecursionError:
        raise CompileError("expression is nested too deeply") from None
