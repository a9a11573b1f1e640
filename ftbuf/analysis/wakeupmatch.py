"""Wakeups matched with the switches that end them, step by step: a few rows a task are all that is carried on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from ..table import Table
from .columns import Columns
from .stats import Keys
from .tables import rows_of

# Kinds of rows: woken; switched out; switched out to sleep; switched to; and where there is no row.
WOKEN, OUT, SLEPT, IN, NONE = range(5)

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
    broken: np.ndarray  # something is missing in between

    @classmethod
    def none(cls) -> Matches:
        return cls(*(np.empty(0, bool if f.name == "broken" else np.int64) for f in fields(cls)))


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
        self.running = 0  # wakeups of tasks that were running, but for those that raced with going to sleep
        self._carried = NO_ROWS

    def match(self, new: Rows) -> Matches:
        """The latencies that end in this step."""
        old, rows = len(self._carried.kind), self._carried.followed_by(new)
        found = bursts(rows, self.keys)
        while_running = found.before == IN
        self.running += found.wakeups(while_running, old) - int((found.races & while_running).sum())
        self._carried = carried(rows, found)
        return latencies(rows, found)

    def waiting(self) -> Rows:
        """The wakeups that no switch has ended, of tasks that are not running."""
        found = bursts(self._carried, self.keys)
        is_open = (found.after == NONE) & (found.before != IN)
        return self._carried.taken(found.order[found.first[is_open]])


@dataclass(frozen=True, slots=True)
class Bursts:
    """Wakeups of a task with no switch of it in between: places of the first and the last, kinds of the rows around."""

    order: np.ndarray  # place -> row: by task, each task's in order of time
    is_last: np.ndarray  # of each place: whether it is its task's last
    # of each burst:
    first: np.ndarray
    last: np.ndarray
    before: np.ndarray  # NONE: the task has no row before
    after: np.ndarray
    beyond: np.ndarray  # of the row behind the one after

    @property
    def may_race(self) -> np.ndarray:
        """Where the task was running, or may have been, and then went to sleep."""
        found: np.ndarray = (self.after == SLEPT) & ((self.before == IN) | (self.before == NONE))
        return found

    @property
    def races(self) -> np.ndarray:
        """Where it ran again with no other wakeup: it was woken on its way to sleep."""
        found: np.ndarray = self.may_race & (self.beyond == IN)
        return found

    def wakeups(self, which: np.ndarray, old: int) -> int:
        """How many wakeups some bursts have, without the first `old` rows (at most two in a burst, its first)."""
        first, last = self.first[which], self.last[which]
        second = np.minimum(first + 1, last)
        seen = (self.order[first] < old).astype(np.int64) + ((self.order[second] < old) & (second > first))
        return int((last - first + 1 - seen).sum())


def bursts(rows: Rows, keys: Keys) -> Bursts:
    groups = keys.groups(rows.pid)
    order = grouped(groups, len(keys))
    groups, kind = groups[order], rows.kind[order]
    is_last = np.append(groups[1:] != groups[:-1], True)[: len(kind)]
    before, after = np.full(len(kind), NONE, np.int8), np.full(len(kind), NONE, np.int8)
    before[1:], after[:-1] = kind[:-1], kind[1:]
    before[1:][is_last[:-1]] = NONE
    after[is_last] = NONE
    is_woken = kind == WOKEN
    first, last = np.flatnonzero(is_woken & (before != WOKEN)), np.flatnonzero(is_woken & (after != WOKEN))
    following = after[last]
    beyond = np.where(following == NONE, np.int8(NONE), after[np.minimum(last + 1, len(kind) - 1)])
    return Bursts(order, is_last, first, last, before[first], following, beyond)


def grouped(groups: np.ndarray, count: int) -> np.ndarray:
    """The order that brings rows of one group together, and keeps the order of those."""
    return np.argsort(groups.astype(np.uint16) if count <= 1 << 16 else groups, kind="stable")  # a radix sort, or not


def latencies(rows: Rows, found: Bursts) -> Matches:
    races = found.races
    chosen = (found.after == IN) | races
    first, last, racing = found.first[chosen], found.last[chosen], races[chosen]
    task = found.order[np.where(racing, last + 2, last + 1)]
    began, ran, facts = rows.place[found.order[np.where(racing, last, first)]], rows.place[task], rows.facts
    repeated = np.where(racing, 0, last - first + facts.repeated[began])
    broken = ~racing & (found.before[chosen] == IN)
    return Matches(facts.ts[began], facts.ts[ran], rows.pid[task], facts.other[ran], facts.number[ran], facts.cpu[ran],
                   facts.other[began], facts.cpu[began], facts.number[began], repeated, broken)


def carried(rows: Rows, found: Bursts) -> Rows:
    """What later rows need of each task: its last switch, and of the wakeups since the first.

    Of a task that is, or may be, running also the last one: it may race with its going to sleep. Where it did go to
    sleep, that one, and the row before.
    """
    keep = found.is_last.copy()  # switches; a wakeup is the last of its burst
    trailing = found.after == NONE
    may_run = (found.before == IN) | (found.before == NONE)
    keep[found.last[trailing & ~may_run]] = False
    keep[found.first[trailing]] = True
    races = found.may_race & (found.beyond == NONE)
    keep[found.last[races]] = True
    keep[found.first[(trailing | races) & (found.before != NONE)] - 1] = True
    kept = np.flatnonzero(keep)
    out = rows.taken(found.order[kept])
    first, last = found.first[trailing], found.last[trailing]
    left_out = last - first - (may_run[trailing] & (last > first))
    out.facts.repeated[np.searchsorted(kept, first)] += left_out.astype(np.int32)
    return out
