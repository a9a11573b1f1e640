"""function_graph as the kernel's ``trace`` file draws it (layouts: K:trace_functions_graph.c)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..durations import duration_text
from ..sections import LATENCY_TRACERS
from .calls import MAX_DEPTH, Call, CallReader, indentation, with_leaves
from .columns import LatencyColumns, mark
from .kernel import Losses
from .options import Options
from .record import LineRecord, Value
from .symbols import Spelling

PLAIN = frozenset(("function", "kernel_stack", "user_stack", "func_repeats"))  # never drawn as comments
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


class Known(Protocol):
    """What the drawing of one CPU remembers."""

    pid: int
    depth: int
    irq_depth: int

    @property
    def functions(self) -> Any: ...


@dataclass(slots=True)
class _Cpu:

    pid: int = -1
    depth: int = 0
    irq_depth: int = -1
    functions: list[int] = field(default_factory=lambda: [0] * MAX_DEPTH)


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
        big_endian: bool = False,
        cpus: int = 1,
        start: int = 0,
        irq_entry: tuple[int, int] = (0, 0),
    ) -> None:
        self._flags, self._latency, self._spell, self._comm_of = flags, latency, spell, comm_of
        self._event, self._plain, self._start, self._irq_entry = event, plain, start, irq_entry
        self.read = CallReader(big_endian=big_endian)
        self._losses = Losses()
        self._no_duration = b"              |  " if flags.duration and flags.context else b""
        others = flags.abstime or flags.reltime or flags.proc or flags.latency
        self._only_cpu = not flags.context or not others
        self._cpu_texts: dict[int, bytes] = {}
        self._cpu_width = len(str(max(cpus - 1, 0)))
        self.cpus: dict[int, Known] = {}

    def draw(self, records: Iterable[LineRecord]) -> Iterator[bytes]:
        """The text of all records."""
        for record, call, leaf in with_leaves(records, self.read):
            yield self.lines(record, call, leaf)

    def lines(self, record: LineRecord, call: Call | None, leaf: Call | None) -> bytes:
        """The text of one record; of a call together with ``leaf``, its return."""
        before = self._losses(record)
        if call is None:
            text = self._other(record)
        elif call.is_entry:
            text = self._entry(record, call, leaf)
        else:
            text = self._exit(record, call)
        return before + text if before else text

    def _other(self, record: LineRecord) -> bytes:
        fmt = record.format
        return self._plain(record) if fmt.system == "ftrace" and fmt.name in PLAIN else self._comment(record)

    def _state(self, cpu: int) -> Known:
        state = self.cpus.get(cpu)
        if state is None:
            state = self.cpus[cpu] = _Cpu()
        return state

    # the columns before the drawing

    def _columns(self, record: LineRecord) -> bytes:
        flags = self._flags
        text = self._cpu_text(record.cpu) if flags.cpu and flags.context else b""
        return text if self._only_cpu else self._all_columns(record, text)

    def _all_columns(self, record: LineRecord, cpu: bytes) -> bytes:
        flags = self._flags
        pieces = []
        if flags.abstime:
            pieces.append(b"%5d.%06d |  " % divmod(record.ts // 1000, 1_000_000))
        if flags.reltime:
            pieces.append(b"%9d us |  " % ((record.ts - self._start) // 1000))
        pieces.append(cpu)
        if flags.proc:
            pieces.append(proc_text(self._comm_of(record.pid), record.pid) + b" | ")
        if flags.latency:
            pieces.append(b" " + self._latency.text(record.flags, record.preempt_count) + b" | ")
        return b"".join(pieces)

    def _cpu_text(self, cpu: int) -> bytes:
        text = self._cpu_texts.get(cpu)
        if text is None:
            text = self._cpu_texts[cpu] = b" %*d) " % (self._cpu_width, cpu)
        return text

    def _duration(self, ns: int) -> bytes:
        if not self._flags.duration or not self._flags.context:
            return b""
        overhead = mark(ns) if self._flags.overhead else b" "
        return overhead + b" " + duration_text(ns) + b"|  "

    def _prologue(self, record: LineRecord, state: Known, function: int = 0) -> bytes:
        """What comes before the drawing: a switch of tasks, the mark of an interrupt that begins, and the columns."""
        text = self._columns(record)
        low, high = self._irq_entry
        if low <= function < high:
            text = self._irq_mark(record, function, True) + text
        return text if state.pid == record.pid else self._switch(record, state) + text

    def _switch(self, record: LineRecord, state: Known) -> bytes:
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
        return self._columns(record) + left + arrow + right + b"\n"

    def _hidden(self, state: Known, function: int, depth: int, *, entering: bool) -> bool:
        """Whether a call belongs to an interrupt that the options leave out."""
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

    def _entry(self, record: LineRecord, call: Call, leaf: Call | None) -> bytes:
        state, function, depth = self._state(record.cpu), call.func, call.depth
        if not self._flags.irqs and self._hidden(state, function, depth, entering=True):
            if leaf is not None:
                self._hidden(state, function, depth, entering=False)
            return b""
        text = self._prologue(record, state, function)
        name = indentation(depth) + self._spell.name(function) + self._arguments(record)
        if leaf is None:
            state.depth = depth
            if 0 <= depth < MAX_DEPTH:
                state.functions[depth] = function
            return b"%s%s%s {%s\n" % (text, self._no_duration, name, self._caller(record, call))
        state.depth = depth - 1
        if 0 <= depth < MAX_DEPTH:
            state.functions[depth] = 0
        note = self._leaf_note(record, call, leaf)
        return b"%s%s%s;%s\n" % (text, self._duration(leaf.rettime - leaf.calltime), name, note)

    def _exit(self, record: LineRecord, call: Call) -> bytes:
        state, function, depth = self._state(record.cpu), call.func, call.depth
        if not self._flags.irqs and self._hidden(state, function, depth, entering=False):
            return b""
        state.depth = depth - 1
        matches = True
        if 0 <= depth < MAX_DEPTH:
            matches = state.functions[depth] == function
            state.functions[depth] = 0
        text = self._prologue(record, state) + self._duration(call.rettime - call.calltime) + indentation(depth) + b"}"
        value = self._value(call)
        if value or not matches or self._flags.tail:
            text += b" /* " + self._spell.name(function) + value + b" */"
        if self._flags.overrun:
            text += b" (Overruns: %d)" % call.overrun
        return text + b"\n" + self._irq_mark(record, function, False)

    def _comment(self, record: LineRecord) -> bytes:
        state = self._state(record.cpu)
        if not self._flags.irqs and state.irq_depth >= 0:
            return b""
        text = self._prologue(record, state) + self._no_duration
        if state.depth > 0:
            text += indentation(state.depth + 1)
        return text + b"/* " + self._event(record).removesuffix(b"\n") + b" */\n"

    # what stands behind a call

    def _value(self, call: Call) -> bytes:
        if not self._flags.retval or call.retval is None:
            return b""
        value, bits = call.retval, 8 * self._spell.long_size
        signed = signed_value(value, bits)
        if -MAX_ERRNO <= signed < 0 and not self._flags.retval_hex:
            return b" = %d" % signed
        return b" = 0x%x" % value

    def _leaf_note(self, entry: LineRecord, call: Call, leaf: Call) -> bytes:
        value, caller = self._value(leaf), self._caller(entry, call)
        if value:
            return b" /*" + value + b" */"
        return caller

    def _caller(self, record: LineRecord, call: Call) -> bytes:
        if not self._flags.retaddr or record.format.name != "fgraph_retaddr_entry":
            return b""
        return b" /* <-" + self._spell.name(call.retaddr) + b" */"

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


def irq_entry_range(address_of: Callable[[bytes], int | None]) -> tuple[int, int]:
    """The addresses of interrupt entry functions, empty where the symbols do not tell."""
    low, high = (address_of(name) for name in IRQ_ENTRY)
    return (low, high) if low is not None and high is not None and low < high else (0, 0)
