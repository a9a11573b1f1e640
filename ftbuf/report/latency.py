"""The latency tracers: which records of the max-latency snapshot the kernel shows, from when it counts, and its heading.

The kernel keeps the start of the longest critical section, shows nothing older, and counts from it. A recording does not
hold that time, but the records tell where it is. irqsoff, preemptoff and preemptirqsoff (K:trace_irqsoff.c) write a record
themselves when a section starts and when it ends, and theirs differ from the function tracer's: the address is that of a
caller, inside a function, and in a graph the call takes no time. The wakeup tracers (K:trace_sched_wakeup.c) empty the
buffer when they start, and measure until just after their last record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .calls import CallReader
from .record import LineRecord, number
from .symbols import Spelling

SECTION_TRACERS = frozenset(("irqsoff", "preemptoff", "preemptirqsoff"))
ENTRY_SIZE = 12  # a function tracer's own call sits this near to the function's start
START_COST = 330  # ns between the kernel's look at the clock and the time stamp of the record that it writes then
END_COST = 2300  # likewise from a wakeup's last record, with its stack, to the look at the clock
DEADLINE_PRIO = 255  # -1 in the record's byte
MAX_RT_PRIO = 100  # K:include/linux/sched/prio.h


@dataclass(frozen=True, slots=True)
class Section:
    """What the longest latency was: its records, its start, and the words of the heading."""

    records: Sequence[LineRecord]
    start: int
    cpu: int = 0
    task: int = 0
    policy: int = 0
    rt_prio: int = 0
    started_at: str = ""
    ended_at: str = ""


def longest_section(
    tracer: str, records: Sequence[LineRecord], max_latency: int, spell: Spelling, *, big_endian: bool = False
) -> Section:
    """The section that a latency tracer's text shows, out of all records of its snapshot. ``max_latency``: in us."""
    if not records:
        return Section(records, 0)
    if tracer in SECTION_TRACERS:
        return _critical_section(records, max_latency, spell, CallReader(big_endian=big_endian))
    return _wakeup(records, max_latency)


def _wakeup(records: Sequence[LineRecord], max_latency: int) -> Section:
    first, last = records[0], records[-1]
    start = min(first.ts, last.ts + END_COST - max_latency * 1000)
    woken = next((r for r in records if r.format.system == "ftrace" and r.format.name == "wakeup"), None)
    if woken is None:
        return Section(records, start, last.cpu, last.pid)
    prio = number(woken, "next_prio")
    policy, rt_prio = (6, 0) if prio == DEADLINE_PRIO else (1, MAX_RT_PRIO - 1 - prio) if prio < MAX_RT_PRIO else (0, 0)
    return Section(records, start, last.cpu, number(woken, "next_pid"), policy, rt_prio)


def _critical_section(records: Sequence[LineRecord], max_latency: int, spell: Spelling, read: CallReader) -> Section:
    last = records[-1]
    own = [i for i, r in enumerate(records) if r.cpu == last.cpu]
    marks = [i for i, after in zip(own, [*own[1:], None], strict=True) if _is_mark(records, i, after, spell, read)]
    if len(marks) >= 3:  # start and end of the section, and the one that its report writes
        begin, end = marks[-3], marks[-2]
    else:
        begin = next(i for i in own if records[i].ts >= last.ts - max_latency * 1000 or records[i] is last)
        end = own[-1]
    first = records[begin]
    start = first.ts - START_COST
    return Section(
        records[begin:],
        start,
        last.cpu,
        last.pid,
        started_at=_caller(first, spell),
        ended_at=_caller(records[end], spell),
    )


def _is_mark(records: Sequence[LineRecord], place: int, after: int | None, spell: Spelling, read: CallReader) -> bool:
    """Whether the tracer itself wrote the record at a place; ``after``: that of the CPU's next record."""
    record = records[place]
    if record.format.system != "ftrace":
        return False
    if record.format.name == "function":
        symbol = spell.symbols.lookup(number(record, "ip"))
        return symbol is not None and number(record, "ip") - symbol.start > ENTRY_SIZE
    call = read(record)
    leaf = read(records[after]) if call is not None and call.is_entry and after is not None else None
    if call is None or leaf is None or leaf.is_entry:
        return False
    return call.func == leaf.func and leaf.calltime == leaf.rettime


def _caller(record: LineRecord, spell: Spelling) -> str:
    address = number(record, "parent_ip") or number(record, "func")
    return spell.name(address).decode("utf-8", "replace")
