"""Wakeups matched with the switches that end them, step by step: a few rows a task are all that is carried on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..table import Table
from .columns import Columns
from .stats import Keys

WOKEN, OUT, SLEPT, IN = range(4)  # kinds of rows: woken; switched out; switched out to sleep; switched to

@dataclass(frozen=True, slots=True)
class Rows(Columns):
    """What happened to tasks, in order of time."""

    kind: np.ndarray
    pid: np.ndarray
    ts: np.ndarray
    cpu: np.ndarray  # recorded on
    number: np.ndarray  # WOKEN: the CPU it was on, -1 where that is not known; IN: its priority
    other: np.ndarray  # WOKEN: pid of the waker; IN: number of its name
    repeated: np.ndarray  # WOKEN: how many further wakeups it stands for


@dataclass(frozen=True, slots=True)
class Matches(Columns):
    """Wakeups and the switches that ended them."""

    woken: np.ndarray
    ran: np.ndarray
    pid: np.ndarray
    name: np.ndarray
    prio: np.ndarray
    cpu: np.ndarray
    waker: np.ndarray
    waker_cpu: np.ndarray
    from_cpu: np.ndarray
    repeated: np.ndarray
    racing: np.ndarray  # woken on its way to sleep
    broken: np.ndarray  # something is missing in between

    @classmethod
    def none(cls) -> Matches:
        return cls(*([np.empty(0, np.int64)] * 10), *([np.empty(0, bool)] * 2))


NO_ROWS = Rows(np.empty(0, np.int8), *([np.empty(0, np.int64)] * 2), *([np.empty(0, np.int32)] * 4))


def step_rows(wakeups: Sequence[Table], switches: Table, names: np.ndarray, asleep: int) -> Rows:
    """The rows of one step; of the same time, wakeups come first. ``names``: numbers of the names switched to."""
    parts = [*map(wakeup_rows, wakeups), switch_rows(switches, names, asleep)]
    both = Rows.joined(parts)
    times = np.concatenate([np.maximum.accumulate(p.ts) for p in parts])  # a stream's own order stays
    order = np.argsort(times, kind="stable")
    return both.taken(order[both.pid[order] > 0])


def wakeup_rows(t: Table) -> Rows:
    count = t.num_rows
    zeros = np.zeros(count, np.int32)
    target = t["target_cpu"].astype(np.int32) if "target_cpu" in t else zeros - 1
    rows = Rows(np.full(count, WOKEN, np.int8), t["pid"].astype(np.int64), t["common_ts"],
                t["common_cpu"].astype(np.int32), target, t["common_pid"].astype(np.int32), zeros)
    # before 4.3 the event also came, with success=0, where there was nothing to wake
    return rows.taken(t["success"] != 0) if "success" in t else rows


def switch_rows(t: Table, names: np.ndarray, asleep: int) -> Rows:
    """Each switch is two rows: one task is switched out, then another one to."""
    count = t.num_rows
    if "prev_state" in t:
        left = np.where(t["prev_state"] & np.int64(asleep), SLEPT, OUT)
    else:
        left = np.full(count, OUT)
    prio = t["next_prio"] if "next_prio" in t else np.zeros(count)
    zeros = np.zeros(2 * count, np.int32)
    return Rows(pairs(left, np.full(count, IN), np.int8), pairs(t["prev_pid"], t["next_pid"], np.int64),
                np.repeat(t["common_ts"], 2), np.repeat(t["common_cpu"].astype(np.int32), 2),
                pairs(zeros[:count], prio, np.int32), pairs(zeros[:count], names, np.int32), zeros)


def pairs(first: np.ndarray, second: np.ndarray, dtype: type) -> np.ndarray:
    """first[0], second[0], first[1], second[1], ..."""
    out: np.ndarray = np.empty(2 * len(first), dtype)
    out[0::2], out[1::2] = first, second
    return out


class Matcher:
    """Matches rows of one step after another."""

    def __init__(self) -> None:
        self.keys = Keys()  # tasks
        self.running = 0  # wakeups of tasks that were running
        self._carried = NO_ROWS

    def match(self, new: Rows) -> Matches:
        """The latencies that end in this step."""
        rows = Rows.joined([self._carried, new])
        if not len(rows):
            return Matches.none()
        tasks = arranged(rows, self.keys)
        found = latencies(rows, tasks)
        while_running = (tasks.kind == WOKEN) & (tasks.before >= 0) & (tasks.kind[tasks.before] == IN)
        self.running += int((while_running & (tasks.order >= len(self._carried))).sum()) - int(found.racing.sum())
        self._carried = carried(rows, tasks)
        return found

    def waiting(self) -> Rows:
        """The wakeups that no switch has ended, of tasks that are not running."""
        if not len(self._carried):
            return NO_ROWS
        tasks = arranged(self._carried, self.keys)
        is_open = (tasks.woken < tasks.end) & ~tasks.runs
        return self._carried.taken(tasks.order[tasks.woken[is_open]])


@dataclass(frozen=True, slots=True)
class Tasks:
    """Rows by task, each task's in order of time."""

    order: np.ndarray  # place -> row
    kind: np.ndarray
    start: np.ndarray  # of each place: where its task's begin
    before: np.ndarray  # of each place: the last switch of that task before it, -1: none was seen
    racing: np.ndarray  # of each place: a switch to sleep, right after a wakeup while the task was running
    # of each task:
    end: np.ndarray
    last: np.ndarray  # its last switch, -1: none
    woken: np.ndarray  # its first wakeup since, `end`: none
    runs: np.ndarray  # whether the last switch was to it


def arranged(rows: Rows, keys: Keys) -> Tasks:
    groups = keys.groups(rows.pid)
    order = grouped(groups, len(keys))
    groups, kind = groups[order], rows.kind[order]
    is_first = np.concatenate([[True], groups[1:] != groups[:-1]])
    first = np.flatnonzero(is_first)
    end = np.concatenate([first[1:], [len(kind)]])
    start = np.repeat(first, end - first)
    before = previous(kind != WOKEN, start)
    racing = np.zeros(len(kind), bool)
    sleeps = np.flatnonzero(kind == SLEPT)
    ran = before[sleeps]
    racing[sleeps] = (sleeps > start[sleeps]) & (kind[sleeps - 1] == WOKEN) & ((ran < 0) | (kind[ran] == IN))
    last = np.where(kind[end - 1] == WOKEN, before[end - 1], end - 1)
    woken = np.where(last >= 0, last + 1, first)
    return Tasks(order, kind, start, before, racing, end, last, woken, (last >= 0) & (kind[last] == IN))


def grouped(groups: np.ndarray, count: int) -> np.ndarray:
    """The order that brings rows of one group together, and keeps the order of those."""
    return np.argsort(groups.astype(np.uint16) if count <= 1 << 16 else groups, kind="stable")  # a radix sort, or not


def previous(mask: np.ndarray, start: np.ndarray) -> np.ndarray:
    """For each place the last one before it where `mask` is set, -1 where there is none from `start` on."""
    upto = np.maximum.accumulate(np.where(mask, np.arange(len(mask)), -1))
    found = np.concatenate([[-1], upto[:-1]])
    found[found < start] = -1
    return found


def latencies(rows: Rows, tasks: Tasks) -> Matches:
    runs = np.flatnonzero(tasks.kind == IN)
    last = tasks.before[runs]
    woken = np.where(last >= 0, last + 1, tasks.start[runs])
    count = runs - woken  # wakeups since that switch
    racing = (count == 0) & (last >= 0) & tasks.racing[last]
    woken[racing] = last[racing] - 1
    chosen = (count > 0) | racing
    ran, began = tasks.order[runs[chosen]], tasks.order[woken[chosen]]
    broken = (last >= 0) & (tasks.kind[last] == IN)
    more = np.where(racing, 0, count - 1 + rows.repeated[tasks.order[woken]])
    return Matches(rows.ts[began], rows.ts[ran], rows.pid[ran], rows.other[ran], rows.number[ran], rows.cpu[ran],
                   rows.other[began], rows.cpu[began], rows.number[began], more[chosen], racing[chosen], broken[chosen])


def carried(rows: Rows, tasks: Tasks) -> Rows:
    """What later rows need of each task: its last switch, the wakeup that raced with it, and the first one since.

    Of a task that is, or may be, running also the last one since: it may race with its going to sleep.
    """
    keep = np.zeros(len(tasks.kind), bool)
    known = tasks.last[tasks.last >= 0]
    keep[known] = True
    keep[known[tasks.racing[known]] - 1] = True
    is_woken = tasks.woken < tasks.end
    woken, final = tasks.woken[is_woken], tasks.end[is_woken] - 1
    may_run = (tasks.runs | (tasks.last < 0))[is_woken]
    keep[woken] = True
    keep[final[may_run]] = True
    kept = np.flatnonzero(keep)
    out = rows.taken(tasks.order[kept])
    out.repeated[np.searchsorted(kept, woken)] += (final - woken - (may_run & (final > woken))).astype(np.int32)
    return out
