"""Wakeups matched with the switches that end them, step by step: a few rows a task are all that is carried on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..table import Table
from .columns import Columns
from .stats import Keys
from .tables import rows_of

WOKEN, OUT, SLEPT, IN = range(4)  # kinds of rows: woken; switched out; switched out to sleep; switched to

@dataclass(frozen=True, slots=True)
class Facts(Columns):
    """What is known of wakeups and switches."""

    ts: np.ndarray
    cpu: np.ndarray  # recorded on
    number: np.ndarray  # of a wakeup: the CPU that the task was on, -1 where that is not known; of a switch: its priority
    other: np.ndarray  # of a wakeup: pid of the waker; of a switch: number of the task's name
    repeated: np.ndarray  # of a wakeup: how many further ones it stands for


@dataclass(frozen=True, slots=True)
class Rows:
    """What happened to tasks, in order of time."""

    kind: np.ndarray
    pid: np.ndarray
    place: np.ndarray  # in the facts: a switch is two rows, of the task switched out and the one switched to
    facts: Facts

    def followed_by(self, more: Rows) -> Rows:
        return Rows(np.concatenate([self.kind, more.kind]), np.concatenate([self.pid, more.pid]),
                    np.concatenate([self.place, more.place + len(self.facts)]), Facts.joined([self.facts, more.facts]))

    def taken(self, rows: np.ndarray) -> Rows:
        return Rows(self.kind[rows], self.pid[rows], np.arange(len(rows)), self.facts.taken(self.place[rows]))


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


NO_FACTS = Facts(*(np.empty(0, dtype) for dtype in (np.int64, *[np.int32] * 4)))
NO_ROWS = Rows(np.empty(0, np.int8), np.empty(0, np.int32), np.empty(0, np.int64), NO_FACTS)


def step_rows(wakeups: Sequence[Table], switches: Table, names: np.ndarray, asleep: int) -> Rows:
    """The rows of one step; of the same time, wakeups come first. ``names``: numbers of the names switched to."""
    woken = [real_wakeups(t) for t in wakeups]
    parts = [*map(facts_of_wakeups, woken), facts_of_switches(switches, names)]
    times = np.concatenate([np.maximum.accumulate(p.ts) for p in parts])  # a stream's own order stays
    order = np.argsort(times, kind="stable")
    first_switch = len(times) - switches.num_rows
    place = np.repeat(order, 1 + (order >= first_switch))
    is_in = np.concatenate([[False], place[1:] == place[:-1]])[: len(place)]  # the second row of a switch
    kind = np.concatenate([np.full(first_switch, WOKEN, np.int8), kinds_of_leaving(switches, asleep)])[place]
    kind[is_in] = IN
    pid = np.concatenate([*(t["pid"] for t in woken), switches["prev_pid"]])[place]
    pid[is_in] = switches["next_pid"][place[is_in] - first_switch]
    is_task = pid > 0
    return Rows(kind[is_task], pid[is_task], place[is_task], Facts.joined(parts))


def real_wakeups(t: Table) -> Table:
    """Before 4.3 the event also came, with success=0, where there was nothing to wake."""
    return rows_of(t, t["success"] != 0) if "success" in t else t


def facts_of_wakeups(t: Table) -> Facts:
    zeros = np.zeros(t.num_rows, np.int32)
    target = t["target_cpu"] if "target_cpu" in t else zeros - 1
    return Facts(t["common_ts"], t["common_cpu"], target, t["common_pid"], zeros)


def facts_of_switches(t: Table, names: np.ndarray) -> Facts:
    zeros = np.zeros(t.num_rows, np.int32)
    prio = t["next_prio"] if "next_prio" in t else zeros  # noqa: SIM401 a Table has no get
    return Facts(t["common_ts"], t["common_cpu"], prio, names, zeros)


def kinds_of_leaving(t: Table, asleep: int) -> np.ndarray:
    if "prev_state" not in t:
        return np.full(t.num_rows, OUT, np.int8)
    return np.where(t["prev_state"] & t["prev_state"].dtype.type(asleep), np.int8(SLEPT), np.int8(OUT))


class Matcher:
    """Matches rows of one step after another."""

    def __init__(self) -> None:
        self.keys = Keys()  # tasks
        self.running = 0  # wakeups of tasks that were running
        self._carried = NO_ROWS

    def match(self, new: Rows) -> Matches:
        """The latencies that end in this step."""
        rows = self._carried.followed_by(new)
        if not len(rows.kind):
            return Matches.none()
        tasks = arranged(rows, self.keys)
        found = latencies(rows, tasks)
        while_running = (tasks.kind == WOKEN) & (tasks.before >= 0) & (tasks.kind[tasks.before] == IN)
        self.running += int((while_running & (tasks.order >= len(self._carried.kind))).sum()) - int(found.racing.sum())
        self._carried = carried(rows, tasks)
        return found

    def waiting(self) -> Rows:
        """The wakeups that no switch has ended, of tasks that are not running."""
        if not len(self._carried.kind):
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
    racing = (woken == runs) & (last >= 0) & tasks.racing[last]
    chosen = (woken < runs) | racing
    runs, last, woken, racing = runs[chosen], last[chosen], woken[chosen], racing[chosen]
    count = runs - woken  # wakeups since that switch
    woken[racing] = last[racing] - 1
    broken = (last >= 0) & (tasks.kind[last] == IN)
    task = tasks.order[runs]
    ran, began, facts = rows.place[task], rows.place[tasks.order[woken]], rows.facts
    more = np.where(racing, 0, count - 1 + facts.repeated[began])
    return Matches(facts.ts[began], facts.ts[ran], rows.pid[task], facts.other[ran], facts.number[ran], facts.cpu[ran],
                   facts.other[began], facts.cpu[began], facts.number[began], more, racing, broken)


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
    out.facts.repeated[np.searchsorted(kept, woken)] += (final - woken - (may_run & (final > woken))).astype(np.int32)
    return out
