"""Analyses as plain loops over records: slow, and short enough to be read as their rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

W, OUT, SLEPT, IN = "woken", "switched out", "switched out to sleep", "switched to"


@dataclass(frozen=True)
class Wait:
    """One wakeup latency."""

    pid: int
    comm: Any
    woken: int
    ran: int
    cpu: int
    prio: int
    waker: int
    waker_cpu: int
    from_cpu: int
    repeated: int
    is_lost: bool


@dataclass
class Task:
    state: str | None = None
    since: list[tuple[int, ...]] = field(default_factory=list)  # wakeups since the last switch
    ran_with: list[tuple[int, ...]] = field(default_factory=list)  # wakeups while it ran, before it went to sleep
    was_running: bool = False  # is known to have been


def is_lost(gaps: Iterable[tuple[int, int]], start: int, end: int) -> bool:
    return any(before < end and after > start for before, after in gaps)


def switch_kind(state: int, letters: dict[int, str]) -> str:
    bits = [letter for bit, letter in letters.items() if state & bit]
    return SLEPT if set(bits) - set("XxZ") else OUT


def scheduling(trace: Any, wakeups: Sequence[str], letters: dict[int, str]) -> list[tuple[Any, ...]]:
    """(kind, pid, ts, cpu, CPU it was on or priority, waker or name) in the order of the records."""
    rows: list[tuple[Any, ...]] = []
    for r in trace.records([*wakeups, "sched_switch"]):
        if r.name == "sched_switch":
            rows += [(switch_kind(r["prev_state"], letters), r["prev_pid"], r.ts, r.cpu, 0, 0),
                     (IN, r["next_pid"], r.ts, r.cpu, r["next_prio"], r["next_comm"])]
        elif r.get("success", 1):
            rows.append((W, r["pid"], r.ts, r.cpu, r["target_cpu"], r.pid))
    return rows


def waits(rows: Iterable[tuple[Any, ...]], gaps: Sequence[tuple[int, int]] = ()
          ) -> tuple[list[Wait], dict[int, tuple[int, ...]], int]:
    """Latencies, tasks that still wait with the wakeup's row, and how many wakeups of running tasks there were."""
    tasks: defaultdict[int, Task] = defaultdict(Task)
    found, running = [], 0
    for row in rows:
        kind, pid, ts, cpu, number, other = row
        if pid <= 0:
            continue
        task = tasks[pid]
        if kind == W:
            task.since.append(row)
            running += task.state == IN
        elif kind == IN:
            woken = None
            if task.since:
                woken, repeated = task.since[0], len(task.since) - 1
            elif task.state == SLEPT and task.ran_with:
                woken, repeated = task.ran_with[-1], 0
                running -= task.was_running
            if woken is not None:
                lost = task.state == IN or is_lost(gaps, woken[2], ts)
                found.append(Wait(pid, other, woken[2], ts, cpu, number, woken[5], woken[3], woken[4], repeated, lost))
            tasks[pid] = Task(IN)
        else:
            ran_with = task.since if task.state in (IN, None) and kind == SLEPT else []
            tasks[pid] = Task(kind, [], ran_with, task.state == IN)
    waiting = {pid: task.since[0] for pid, task in tasks.items() if task.state != IN and task.since}
    return found, waiting, running


@dataclass(frozen=True)
class OffSection:
    """A stretch with interrupts or preemption off."""

    cpu: int
    began: int
    ended: int
    pid: int
    caller: int
    ended_by: int


def off_sections(rows: Iterable[tuple[bool, int, int, int, int]]) -> tuple[list[OffSection], dict[int, Any], int, int]:
    """Of (is it "off", ts, CPU, pid, caller): sections, what is open by CPU, repeated and unbegun."""
    found, begun, repeated, unbegun = [], {}, 0, 0
    for off, ts, cpu, pid, caller in rows:
        if off and cpu in begun:
            repeated += 1
        elif off:
            begun[cpu] = (ts, pid, caller)
        elif cpu in begun:
            since, task, by = begun.pop(cpu)
            found.append(OffSection(cpu, since, ts, task, by, caller))
        else:
            unbegun += 1
    return found, begun, repeated, unbegun
