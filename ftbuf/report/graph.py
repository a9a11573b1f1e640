"""function_graph as the kernel's ``trace`` file draws it (layouts: K:trace_functions_graph.c)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from .columns import LatencyColumns, mark
from .kernel import Losses
from .options import LATENCY_TRACERS, Options
from .record import LineRecord, Value, number
from .symbols import Spelling

ENTRIES = frozenset(("funcgraph_entry", "fgraph_retaddr_entry"))
EXIT = "funcgraph_exit"
PLAIN = frozenset(("function", "kernel_stack", "user_stack", "func_repeats"))  # never drawn as comments
MAX_DEPTH = 50  # FTRACE_RETFUNC_DEPTH
MAX_INDENT = 2048  # blanks before a call: no kernel nests calls so deep, but a damaged record may say so
PROC_WIDTH = 14  # TRACE_GRAPH_PROCINFO_LENGTH
COMM_CUT = 7
MAX_ERRNO = 4095  # K:include/linux/err.h
IRQ_ENTRY = (b"__irqentry_text_start", b"__irqentry_text_end")
_RULE = b" ------------------------------------------\n"


@dataclass(frozen=True, slots=True)
class GraphFlags:
    """Which columns a graph has."""

    cpu: bool = True
    overhead: bool = True
    proc: bool = False
    duration: bool = True
    abstime: bool = False
    reltime: bool = False
    irqs: bool = True
    tail: bool = False
    overrun: bool = False
    retval: bool = False
    retval_hex: bool = False
    retaddr: bool = False
    args: bool = False
    latency: bool = False
    context: bool = True


def graph_flags(options: Options) -> GraphFlags:
    """The columns under these options; the latency tracers have their own, fixed set."""
    latency, context = options.latency, "context-info" in options
    if options.tracer in LATENCY_TRACERS:
        return GraphFlags(overhead=False, proc=True, reltime=True, irqs=False, latency=latency, context=context)

    def on(name: str) -> bool:
        return f"funcgraph-{name}" in options

    return GraphFlags(
        on("cpu"),
        on("overhead"),
        on("proc"),
        on("duration"),
        on("abstime"),
        False,
        on("irqs"),
        on("tail"),
        on("overrun"),
        on("retval"),
        on("retval-hex"),
        on("retaddr"),
        on("args"),
        latency,
        context,
    )


@dataclass(slots=True)
class _Cpu:
    """What the drawing of one CPU remembers."""

    pid: int = -1
    depth: int = 0
    irq_depth: int = -1
    functions: list[int] = field(default_factory=lambda: [0] * MAX_DEPTH)


def duration_text(ns: int) -> bytes:
    """Seven digits of microseconds and the unit (K:trace_functions_graph.c trace_print_graph_duration)."""
    whole = b"%d" % (ns // 1000)
    digits = whole if len(whole) >= 7 else whole + (b".%03d" % (ns % 1000))[: 8 - len(whole)]
    return digits + b" us " + b" " * (8 - len(digits))


def indentation(depth: int) -> bytes:
    """The blanks before a call of this depth."""
    return b" " * min(2 * depth, MAX_INDENT)


def proc_text(comm: bytes, pid: int) -> bytes:
    """Task and pid, centred."""
    name = b"%s-%d" % (comm[:COMM_CUT], pid)
    spaces = max(PROC_WIDTH - len(name), 0)
    return b" " * (spaces // 2) + name + b" " * (spaces - spaces // 2)


def signed_value(value: int, bits: int) -> int:
    """A return value as the number it was meant as, whatever the width of the function's type."""
    for width in (16, 32):
        if width < bits and value >> width == 0 and value >> (width - 1) & 1:
            return value - (1 << width)
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


class Graph:
    """Draws records in time order. ``comm_of`` names the task of a pid, ``event`` prints any other record type."""

    def __init__(
        self,
        flags: GraphFlags,
        latency: LatencyColumns,
        spell: Spelling,
        comm_of: Callable[[int], bytes],
        event: Callable[[LineRecord], bytes],
        plain: Callable[[LineRecord], bytes],
        *,
        cpus: int = 1,
        start: int = 0,
        irq_entry: tuple[int, int] = (0, 0),
    ) -> None:
        self._flags, self._latency, self._spell, self._comm_of = flags, latency, spell, comm_of
        self._event, self._plain, self._start, self._irq_entry = event, plain, start, irq_entry
        self._cpu_width = len(str(max(cpus - 1, 0)))
        self._cpus: dict[int, _Cpu] = {}

    def draw(self, records: Iterable[LineRecord]) -> Iterator[bytes]:
        """The text of all records."""
        losses = Losses()
        for record, leaf in with_leaves(records):
            yield losses(record) + self._record(record, leaf)

    def _record(self, record: LineRecord, leaf: LineRecord | None) -> bytes:
        fmt = record.format
        if fmt.system == "ftrace":
            if fmt.name in ENTRIES:
                return self._entry(record, leaf)
            if fmt.name == EXIT:
                return self._exit(record)
            if fmt.name in PLAIN:
                return self._plain(record)
        return self._comment(record)

    # the columns before the drawing

    def _columns(self, record: LineRecord, *, latency: bool = True) -> bytes:
        flags = self._flags
        if not flags.context:
            return b""
        pieces = []
        if flags.abstime:
            pieces.append(b"%5d.%06d |  " % divmod(record.ts // 1000, 1_000_000))
        if flags.reltime:
            pieces.append(b"%9d us |  " % ((record.ts - self._start) // 1000))
        if flags.cpu:
            pieces.append(self._cpu_text(record.cpu))
        if flags.proc:
            pieces.append(proc_text(self._comm_of(record.pid), record.pid) + b" | ")
        if flags.latency and latency:
            pieces.append(b" " + self._latency.text(record.flags, record.preempt_count) + b" | ")
        return b"".join(pieces)

    def _cpu_text(self, cpu: int) -> bytes:
        return b" %*d) " % (self._cpu_width, cpu)

    def _duration(self, ns: int) -> bytes:
        if not self._flags.duration or not self._flags.context:
            return b""
        overhead = mark(ns) if self._flags.overhead else b" "
        return overhead + b" " + duration_text(ns) + b"|  "

    def _no_duration(self) -> bytes:
        return b"              |  " if self._flags.duration and self._flags.context else b""

    def _prologue(self, record: LineRecord, function: int = 0, *, entering: bool = False) -> bytes:
        state = self._cpus.setdefault(record.cpu, _Cpu())
        text = self._switch(record, state)
        if function:
            text += self._irq_mark(record, function, entering)
        return text + self._columns(record)

    def _switch(self, record: LineRecord, state: _Cpu) -> bytes:
        previous, state.pid = state.pid, record.pid
        if previous in (-1, record.pid):
            return b""
        names = [proc_text(self._comm_of(pid), pid) for pid in (previous, record.pid)]
        return _RULE + self._cpu_text(record.cpu) + b" => ".join(names) + b"\n" + _RULE + b"\n"

    def _irq_mark(self, record: LineRecord, function: int, entering: bool) -> bytes:
        low, high = self._irq_entry
        if not low <= function < high:
            return b""
        flags = self._flags
        left = b"  " if flags.duration and flags.context else b""
        right = b" |" if flags.duration and flags.context else b""
        arrow = b"==========>" if entering else b"<=========="
        return self._columns(record, latency=True) + left + arrow + right + b"\n"

    def _hidden(self, state: _Cpu, function: int, depth: int, *, entering: bool) -> bool:
        """Whether a call belongs to an interrupt that the options leave out."""
        if self._flags.irqs:
            return False
        low, high = self._irq_entry
        if entering:
            if state.irq_depth >= 0:
                return True
            if low <= function < high:
                state.irq_depth = depth
                return True
            return False
        if state.irq_depth < 0:
            return False
        if state.irq_depth >= depth:
            state.irq_depth = -1
        return True

    # the three kinds of lines

    def _entry(self, record: LineRecord, leaf: LineRecord | None) -> bytes:
        state = self._cpus.setdefault(record.cpu, _Cpu())
        function, depth = number(record, "func"), number(record, "depth")
        if self._hidden(state, function, depth, entering=True):
            if leaf is not None:
                self._hidden(state, function, depth, entering=False)
            return b""
        text = self._prologue(record, function, entering=True)
        indent = indentation(depth)
        call = self._spell.name(function) + self._arguments(record)
        if leaf is None:
            state.depth = depth
            if 0 <= depth < MAX_DEPTH:
                state.functions[depth] = function
            return text + self._no_duration() + indent + call + b" {" + self._caller(record) + b"\n"
        state.depth = depth - 1
        if 0 <= depth < MAX_DEPTH:
            state.functions[depth] = 0
        ns = number(leaf, "rettime") - number(leaf, "calltime")
        return text + self._duration(ns) + indent + call + b";" + self._leaf_note(record, leaf) + b"\n"

    def _exit(self, record: LineRecord) -> bytes:
        state = self._cpus.setdefault(record.cpu, _Cpu())
        function, depth = number(record, "func"), number(record, "depth")
        if self._hidden(state, function, depth, entering=False):
            return b""
        state.depth = depth - 1
        matches = True
        if 0 <= depth < MAX_DEPTH:
            matches = state.functions[depth] == function
            state.functions[depth] = 0
        text = self._prologue(record)
        ns = number(record, "rettime") - number(record, "calltime")
        text += self._duration(ns) + indentation(depth) + b"}"
        value = self._value(record)
        if value:
            text += b" /* " + self._spell.name(function) + value + b" */"
        elif not matches or self._flags.tail:
            text += b" /* " + self._spell.name(function) + b" */"
        if self._flags.overrun:
            text += b" (Overruns: %d)\n" % number(record, "overrun")
        else:
            text += b"\n"
        return text + self._irq_mark(record, function, False)

    def _comment(self, record: LineRecord) -> bytes:
        state = self._cpus.setdefault(record.cpu, _Cpu())
        if self._flags.irqs is False and state.irq_depth >= 0:
            return b""
        text = self._prologue(record) + self._no_duration()
        if state.depth > 0:
            text += indentation(state.depth + 1)
        return text + b"/* " + self._event(record).removesuffix(b"\n") + b" */\n"

    # what stands behind a call

    def _value(self, record: LineRecord) -> bytes:
        if not self._flags.retval or not any(f.name == "retval" for f in record.format.fields):
            return b""
        value, bits = number(record, "retval"), 8 * self._spell.long_size
        signed = signed_value(value, bits)
        if -MAX_ERRNO <= signed < 0 and not self._flags.retval_hex:
            return b" = %d" % signed
        return b" = 0x%x" % value

    def _leaf_note(self, entry: LineRecord, leaf: LineRecord) -> bytes:
        value, caller = self._value(leaf), self._caller(entry)
        if value:
            return b" /*" + value + b" */"
        return caller

    def _caller(self, record: LineRecord) -> bytes:
        if not self._flags.retaddr or record.format.name != "fgraph_retaddr_entry":
            return b""
        return b" /* <-" + self._spell.name(number(record, "retaddr")) + b" */"

    def _arguments(self, record: LineRecord) -> bytes:
        if not self._flags.args:
            return b"()"
        try:
            values: Value = record.value("args")
        except (KeyError, IndexError):
            return b"()"
        if not isinstance(values, Sequence) or isinstance(values, bytes) or not values:
            return b"()"
        return b"(" + b", ".join(b"0x%x" % value for value in values) + b")"


def returns_from(entry: LineRecord, record: LineRecord) -> bool:
    """Whether the record is the return of this call."""
    return (
        entry.format.system == record.format.system == "ftrace"
        and entry.format.name in ENTRIES
        and record.format.name == EXIT
        and entry.pid == record.pid
        and number(entry, "func") == number(record, "func")
    )


def with_leaves(records: Iterable[LineRecord]) -> Iterator[tuple[LineRecord, LineRecord | None]]:
    """Every record, a call that is directly followed on its CPU by its own return together with that return.

    The return is then not seen again. One CPU's last call waits for that CPU's next record, so records of other CPUs are
    held back behind it: what is kept is bounded by the time until that next record, and cut at PENDING records.
    """
    waiting: deque[_Waiting] = deque()
    open_calls: dict[int, _Waiting] = {}
    for record in records:
        call = open_calls.pop(record.cpu, None)
        if call is not None:
            call.done = True
            if returns_from(call.record, record):
                call.leaf = record
                yield from _ready(waiting)
                continue
        item = _Waiting(record)
        if record.format.system == "ftrace" and record.format.name in ENTRIES:
            open_calls[record.cpu] = item
        else:
            item.done = True
        if waiting or not item.done:
            waiting.append(item)
            if len(waiting) > PENDING:
                _give_up(waiting[0], open_calls)
            yield from _ready(waiting)
        else:
            yield record, None
    for item in waiting:
        yield item.record, item.leaf


PENDING = 100_000


@dataclass(slots=True)
class _Waiting:
    record: LineRecord
    leaf: LineRecord | None = None
    done: bool = False


def _ready(waiting: deque[_Waiting]) -> Iterator[tuple[LineRecord, LineRecord | None]]:
    while waiting and waiting[0].done:
        item = waiting.popleft()
        yield item.record, item.leaf


def _give_up(item: _Waiting, open_calls: dict[int, _Waiting]) -> None:
    item.done = True
    open_calls.pop(item.record.cpu, None)


def irq_entry_range(address_of: Callable[[bytes], int | None]) -> tuple[int, int]:
    """The addresses of interrupt entry functions, empty where the symbols do not tell."""
    low, high = (address_of(name) for name in IRQ_ENTRY)
    return (low, high) if low is not None and high is not None and low < high else (0, 0)
