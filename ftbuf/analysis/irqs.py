"""Time in interrupt handlers: hardware interrupts, softirqs, tasklets, vectors and interrupts between processors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..constants import KERNEL_CONSTANTS
from ..errors import EventNotFoundError
from ..plan import ORDER
from ..survey import encoded
from ..table import Encoded, Table
from ..trace import EventView, Trace
from .intervals import NO_EDGES, Edges, Intervals, Lane, edges
from .sched import one_buffer
from .stats import PERCENTILES, Keys
from .tables import integers, rows_of, stacked, table
from .wanted import check_percentiles, check_trace, has

STEP = "4 MB"
ENTRY, EXIT = "_entry", "_exit"
NUMBERS = {"irq_handler": "irq", "softirq": "vec", "tasklet": "func", "ipi": "reason"}  # fields; of vectors: "vector"
KINDS = {"irq_handler": "irq"}  # what a pair of events is called; vectors go by the name of their events
_SYMBOL = re.compile(r'\{\s*(\w+)\s*,\s*"([^"]*)"\s*\}')


@dataclass(frozen=True, slots=True)
class Pair:
    """An event that tells of a handler's beginning, the one that tells of its end, and the field that both have."""

    kind: str
    entry: EventView
    exit: EventView
    number: str  # "": none

    def columns(self, view: EventView) -> list[str]:
        own = [self.number, "name"] if self.kind == "irq" else [self.number]
        return [ORDER, "common_ts", "common_cpu", *(c for c in own if c in view.columns)]


def handler_pairs(trace: Trace) -> list[Pair]:
    """Pairs of events NAME_entry, NAME_exit of interrupts that the recording can hold."""
    found = []
    for key in trace:
        view = trace[key]
        name = view.name.removesuffix(ENTRY)
        end = f"{view.system}:{name}{EXIT}"
        if view.name.endswith(ENTRY) and view.system in ("irq", "irq_vectors", "ipi") and has(trace, key) and has(trace, end):
            number = "vector" if view.system == "irq_vectors" else NUMBERS.get(name, "")
            found.append(Pair(KINDS.get(name, name), view, trace[end], number if number in view.columns else ""))
    return found


def irq_time(trace: Trace, *, by_cpu: bool = False, percentiles: Sequence[float] = PERCENTILES) -> Table:
    """How often interrupt handlers ran, and how long.

    From pairs of events: irq_handler_entry and _exit, softirq_entry and _exit, those of tasklets, ipi_entry and _exit, and
    the irq_vectors of x86. Each kind is measured by itself, on its CPU: the ``time`` of a softirq has that of the interrupts
    in the middle of it, and that of the tasklets that it runs. ``self`` is the time without that of handlers, of any kind,
    that began and ended inside, so that it adds up to the time that CPUs spent in handlers. A handler is ``lost``, and not
    counted, where its end does not follow (another beginning of its kind does), or records of its CPU were lost inside.

    Parameters
    ----------
    by_cpu : bool
        A row for each CPU.
    percentiles : list of float
        Columns ``p50`` and so on: by nearest rank, less than 1 % above the real value.

    Returns
    -------
    Table
        kind ("irq", "softirq", "tasklet", "ipi", or the name of a vector: "local_timer"); id (number of the interrupt, the
        softirq, the vector; address of a tasklet's function); name; with ``by_cpu`` cpu; count; time, self, mean, min, max
        and percentiles in ns (or units of the clock); lost; open (had not ended by the end of the trace). By kind, the most
        time first.

    Raises
    ------
    EventNotFoundError
        The recording cannot hold any such events.
    """
    check_trace(trace)
    percentiles = check_percentiles(percentiles)
    pairs = handler_pairs(trace)
    if not pairs:
        raise EventNotFoundError("interrupt times need events such as irq_handler_entry and irq_handler_exit, which the "
                                 "recording does not have")
    trace = one_buffer(trace, [f"{p.entry.system}:{p.entry.name}" for p in pairs])
    machines = [PairMachine(trace, pair, by_cpu) for pair in pairs]
    intervals = Intervals([machine.handlers for machine in machines], of_cpus=True)
    columns = {view.key: pair.columns(view) for pair in pairs for view in (pair.entry, pair.exit)}
    for step, lost in trace.steps(list(columns), columns, step_size=STEP):
        intervals.step([machine.rows(step) for machine in machines], lost)
    intervals.finish()
    return stacked([machine.result(percentiles) for machine in machines])


class PairMachine:
    """The handlers that one pair of events tells of, step by step."""

    def __init__(self, trace: Trace, pair: Pair, by_cpu: bool) -> None:
        self.trace, self.pair, self.by_cpu = trace, pair, by_cpu
        self.numbers = Keys()
        self.groups = Keys()  # place of the number << 16 | CPU
        self.names: dict[int, dict[str, None]] = {}  # number -> names of its handlers
        self.handlers = Lane(self.group_of)

    def group_of(self, number: np.ndarray, cpu: np.ndarray) -> np.ndarray:
        places = self.numbers.groups(number.astype(np.uint64)).astype(np.int64)
        return self.groups.groups(places << 16 | (cpu if self.by_cpu else 0))

    def rows(self, step: dict[str, Table]) -> tuple[Edges, Edges]:
        """Beginnings and ends."""
        entries, exits = step[self.pair.entry.key], step[self.pair.exit.key]
        if "name" in entries:
            self.note_names(entries)
        return self.edges(entries), self.edges(exits)

    def edges(self, t: Table) -> Edges:
        if not t.num_rows:
            return NO_EDGES
        return edges(t[ORDER], t["common_ts"], integers(t, "common_cpu", np.int32), integers(t, self.pair.number, np.int64, 0))

    def note_names(self, t: Table) -> None:
        number, names = integers(t, self.pair.number, np.int64, 0), t.column("name")
        if isinstance(names, Encoded):
            for one in np.unique(number << 32 | names.codes).tolist():
                self.names.setdefault(one >> 32, {})[names.strings[one & 0xFFFFFFFF]] = None

    # ---- results ----

    def result(self, percentiles: Sequence[float]) -> Table:
        groups = self.groups.values
        kinds = groups >> 16
        columns: dict[str, Any] = {"kind": encoded([self.pair.kind] * len(groups)),
                                   "id": self.numbers.values.astype(np.uint64)[kinds]}
        columns["name"] = encoded([self.name(number) for number in columns["id"].tolist()])
        if self.by_cpu:
            columns["cpu"] = groups & 0xFFFF
        sums = self.handlers.columns(len(groups), percentiles)
        first = {name: sums.pop(name) for name in ("count", "time")}
        made = table(columns | first | {"self": self.handlers.own(len(groups))} | sums)
        return rows_of(made, np.lexsort((columns["id"], -made["time"])))

    def name(self, number: int) -> str:
        """Its handlers' names, what the print format calls it, its function, or its reason."""
        if number in self.names:
            return ", ".join(self.names[number])
        if self.pair.kind == "tasklet":
            return self.trace.symbols.name(number) or f"{number:#x}"
        if self.pair.kind == "ipi":
            reason = self.trace.recording.printk_formats.get(number)
            return f"{number:#x}" if reason is None else reason.decode("utf-8", "surrogateescape")
        return symbols_of(self.pair.entry).get(number, "")


def symbols_of(view: EventView) -> dict[int, str]:
    """Names that an event's print format has for numbers."""
    found = _SYMBOL.findall(view.format.print_fmt)
    return {KERNEL_CONSTANTS[word] if word in KERNEL_CONSTANTS else int(word): name
            for word, name in found if word in KERNEL_CONSTANTS or word.isdecimal()}
