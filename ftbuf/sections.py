"""The latency tracers: which records of the max-latency snapshot are the longest section, and when the kernel began to count.

The kernel keeps the start of the longest critical section, shows nothing older, and counts from it. A recording does not
hold that time, but the records tell where it is. irqsoff, preemptoff and preemptirqsoff (K:trace_irqsoff.c) write a record
themselves when a section starts and when it ends, and theirs differ from the function tracer's: the address is that of a
caller, inside a function, and in a graph the call takes no time. The wakeup tracers (K:trace_sched_wakeup.c) empty the
buffer when they start, and measure until just after their last record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .formats import EventFormat

SECTION_TRACERS = frozenset(("irqsoff", "preemptoff", "preemptirqsoff"))
LATENCY_TRACERS = SECTION_TRACERS | {"wakeup", "wakeup_rt", "wakeup_dl"}
GRAPH_ENTRIES, GRAPH_EXIT = frozenset(("funcgraph_entry", "fgraph_retaddr_entry")), "funcgraph_exit"
ENTRY_SIZE = 12  # a function tracer's own call sits this near to the function's start
# ns between the kernel's look at the clock and the time stamp of the record that it writes then: measured, not known
START_COST = 325
HALF_US = 500  # the latency is rounded to whole microseconds
INTERRUPTED = 1_000_000  # ns that the start of a section may be interrupted before its first record is written
GRAPH_START_COST = 440
# Of a wakeup, what passes between the look at the clock and the first record, and between the last record and the next
# look, is known as a sum: the second is some quarter of it, but no more than this when the first was interrupted.
END_SHARE, END_MOST = 4, 6300
OPEN_FOR = 10_000  # records in which the call of an open function is looked for
DEADLINE_PRIO = 255  # -1 in the record's byte
MAX_RT_PRIO = 100  # K:include/linux/sched/prio.h


_NUMBER = re.compile(rb"\s*(\d{1,15})\s*")  # longer ones are no number of microseconds
EARLIEST = -(1 << 63)


class SectionRecord(Protocol):
    """What is asked of a record."""

    @property
    def ts(self) -> int: ...
    @property
    def cpu(self) -> int: ...
    @property
    def pid(self) -> int: ...
    @property
    def format(self) -> EventFormat: ...
    def __getitem__(self, name: str, /) -> Any: ...


class Symbols(Protocol):
    """Kernel addresses to symbols, that know where they start."""

    def lookup(self, address: int, /) -> Any: ...
    def by_name(self, name: str, /) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Section:
    """The longest section: places of its records, times, and what the kernel's heading tells of it."""

    begin: int = 0  # place of its first record; all from there on belong to it, and to the report of it
    end: int = 0  # place of the record that ends it
    start: int = 0  # when the kernel began to count
    cpu: int = 0
    task: int = 0
    policy: int = 0
    rt_prio: int = 0
    started_at: int = 0  # addresses; 0: not known
    ended_at: int = 0


def max_latency_us(text: bytes | None) -> int:
    """What ``tracing_max_latency`` says; 0 where it says nothing."""
    match = _NUMBER.fullmatch(text or b"")
    return int(match[1]) if match else 0


def longest_section(tracer: str, records: Sequence[SectionRecord], max_latency: int, symbols: Symbols) -> Section:
    """The section that a latency tracer's text shows, out of all records of its snapshot. ``max_latency``: in us."""
    if not records:
        return Section()
    if tracer in SECTION_TRACERS:
        return _critical_section(tracer, records, max_latency, symbols)
    return _wakeup(records, max_latency)


def _wakeup(records: Sequence[SectionRecord], max_latency: int) -> Section:
    first, last = records[0], records[-1]
    around = max(max_latency * 1000 - (last.ts - first.ts), 0)  # outside of the records
    start = first.ts - around + min(around // END_SHARE, END_MOST)
    woken = next((r for r in records if is_internal(r, "wakeup")), None)
    found = {"end": len(records) - 1, "start": max(start, EARLIEST), "cpu": last.cpu}
    if woken is None:
        return Section(**found, task=last.pid or 0)
    prio = number(woken, "next_prio")
    policy, rt_prio = (6, 0) if prio == DEADLINE_PRIO else (1, MAX_RT_PRIO - 1 - prio) if prio < MAX_RT_PRIO else (0, 0)
    return Section(**found, task=number(woken, "next_pid"), policy=policy, rt_prio=rt_prio)


def _critical_section(tracer: str, records: Sequence[SectionRecord], max_latency: int, symbols: Symbols) -> Section:
    last = records[-1]
    own = [i for i, r in enumerate(records) if r.cpu == last.cpu]
    marks = [i for i, after in zip(own, [*own[1:], None], strict=True) if _is_mark(records, i, after, symbols)]
    latest = None
    if len(marks) >= 3:  # start and end of the section, and the one that its report writes
        begin, end = marks[-3], marks[-2]
        latest = records[marks[-1]].ts + HALF_US - max_latency * 1000  # the latency ended before that one
    else:
        begin = next(i for i in own if records[i].ts >= last.ts - max_latency * 1000 or records[i] is last)
        end = own[-1]
    first = records[begin]
    cost = GRAPH_START_COST if is_internal(first, *GRAPH_ENTRIES) else START_COST
    start = first.ts - cost
    if latest is not None and first.ts - INTERRUPTED < latest < start:
        start = latest
    return Section(begin, end, max(start, EARLIEST), last.cpu, last.pid or 0,
                   started_at=_caller(tracer, records, begin, symbols),
                   ended_at=_caller(tracer, records, end, symbols))


def _is_mark(records: Sequence[SectionRecord], place: int, after: int | None, symbols: Symbols) -> bool:
    """Whether the tracer itself wrote the record at a place; ``after``: that of the CPU's next record."""
    record = records[place]
    if is_internal(record, "function"):
        symbol = symbols.lookup(number(record, "ip"))
        return symbol is not None and number(record, "ip") - symbol.start > ENTRY_SIZE
    if after is None or not is_internal(record, *GRAPH_ENTRIES) or not is_internal(records[after], GRAPH_EXIT):
        return False
    leaf = records[after]
    return number(record, "func") == number(leaf, "func") and number(leaf, "calltime") == number(leaf, "rettime")


def _caller(tracer: str, records: Sequence[SectionRecord], place: int, symbols: Symbols) -> int:
    """Who called the function that a record of the tracer is about; that function itself where it is not known.

    Of preemption the kernel only tells the function. Of interrupts also its caller, which a graph's record lacks; but a
    function whose own call is in the graph returns to the tracer.
    """
    record = records[place]
    if tracer == "irqsoff" and is_internal(record, *GRAPH_ENTRIES) and _is_open(records, place, symbols):
        return symbols.by_name("return_to_handler") or number(record, "func")
    return number(record, "parent_ip") or number(record, "func")


def _is_open(records: Sequence[SectionRecord], place: int, symbols: Symbols) -> bool:
    """Whether the function that an address lies in was called before by the same task, and has not returned."""
    symbol = symbols.lookup(number(records[place], "func"))
    func, pid, returned = symbol.start if symbol is not None else None, records[place].pid, 0
    for record in reversed(records[max(place - OPEN_FOR, 0) : place]):
        if record.pid != pid or not is_internal(record, *GRAPH_ENTRIES, GRAPH_EXIT) or number(record, "func") != func:
            continue
        if is_internal(record, GRAPH_EXIT):
            returned += 1
        elif not returned:
            return True
        else:
            returned -= 1
    return False


def is_internal(record: SectionRecord, *names: str) -> bool:
    """Whether it is a record of ftrace's own of one of these names."""
    return record.format.system == "ftrace" and record.format.name in names


def number(record: SectionRecord, name: str) -> int:
    """An integer field; 0 where the record does not have it, as an old kernel's may not."""
    try:
        value = record[name]
    except (KeyError, IndexError):
        return 0
    return value if isinstance(value, int) else 0
