"""Wakeup latency: from the moment a task is woken to the switch that runs it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arguments import check_ints
from ..plan import ORDER, UNKNOWN_COMM
from ..table import Encoded, Table
from ..trace import Trace
from .gaps import Gaps
from .sched import SWITCH, WAKEUP, WAKEUP_NEW, WAKING, occurs, one_buffer, require_events, sleep_mask
from .stats import PERCENTILES, Keys, Samples, among_longest
from .tables import histogram_table, integers, rows_of, stacked, table, total_table
from .wakeupmatch import Matcher
from .wanted import check_count, check_fineness, check_percentiles, check_trace, has

WORST = 20
# What a row of the table is -> its first column, and the field of WAIT that it is found by.
KEYS = {"task": ("pid", "task"), "comm": ("comm", "name"), "cpu": ("cpu", "cpu"), "prio": ("prio", "prio")}
STEP = "16 MB"  # a step that fits the caches is faster than a larger one


@dataclass(frozen=True, slots=True)
class WakeupLatency:
    """What ``wakeup_latency`` found. Times in ns (ticks of the clock where it does not count ns).

    Attributes
    ----------
    by : str
        What a row of ``table`` is: "task", "comm", "cpu" or "prio".
    event : str
        The event that wakeups were taken from.
    table : Table
        For tasks ``pid``, the last ``comm`` and ``prio`` as the kernel counts it (below 100: real time, -1: deadline),
        else ``comm``, ``cpu`` or ``prio`` alone; ``count``, ``min``, ``last``, ``mean``, ``max`` and percentiles of the latencies;
        ``migrated``: ran on another CPU than the one that it was last on; ``repeated``: woken again before it ran;
        ``lost``: latencies that are not counted, because records were lost inside. Tasks and names: most time first.
    total : Table
        One row: the same over all, without ``last``, and with ``total``.
    histogram : Table
        ``pid`` (``comm``, ``cpu``, ``prio``), ``low``, ``high`` (inclusive) and ``count``: from each power of two to the
        next (or finer).
    worst : Table
        The longest latencies: ``latency``, ``woken_at``, ``ran_at``, ``pid``, ``comm``, ``prio``, ``cpu`` (it ran on),
        ``waker_pid``, ``waker_cpu``, ``from_cpu`` (-1: not known).
    open : Table
        Tasks that were woken, and no switch to them came: ``pid``, ``comm``, ``woken_at``, ``waited`` (until the end of
        the trace), ``waker_pid``, ``waker_cpu``.
    running : int
        Wakeups of tasks that were running at that time: they end no wait and are left out.
    """

    by: str
    event: str
    table: Table
    total: Table
    histogram: Table
    worst: Table
    open: Table
    running: int


def wakeup_latency(trace: Trace, *, by: str = "task", event: str | None = None, cpus: Iterable[int] | None = None,
                   percentiles: Sequence[float] = PERCENTILES, worst: int = WORST, fineness: int = 0) -> WakeupLatency:
    """How long tasks waited from their wakeup to the switch that ran them.

    Rules:

    - A latency begins with the first wakeup since the task was last switched out, and ends with the next switch to it.
      Wakeups that follow before it runs are counted (``repeated``), and change nothing.
    - A wakeup of a task that is running ends no wait and is left out (``running``); but where the task then goes to sleep,
      and runs again without another wakeup, it was woken on its way to sleep, and the latency begins with the last
      wakeup of that kind.
    - A switch back to a task that was only preempted, and not woken since, is no wakeup.
    - A new task's first wakeup (``sched_wakeup_new``) counts as a wakeup.
    - Where records were lost on any CPU inside of a latency, or a task was switched to twice with no switch away from it,
      it is counted as ``lost`` alone.
    - Events at the same time count in the order of the trace's records. Times that step back count as 0.
    - The idle task (pid 0) is never woken. Of several buffers the first one that has switches is looked at
      (BufferWarning): choose another by ``trace.window(buffer=...)``.

    Parameters
    ----------
    trace : Trace
        Choose times by ``trace.window(start, end)``; not CPUs or tasks: a wakeup may be recorded on any CPU.
    by : {"task", "comm", "cpu", "prio"}
        Rows of the table: tasks, names of tasks, CPUs that tasks ran on, priorities as the kernel counts them.
    event : str, optional
        Take wakeups from this event; None: sched_waking (when the waker asked for it) if it was recorded, else
        sched_wakeup (when the task was put on a run queue).
    cpus : collection of int, optional
        Only latencies of tasks that ran on these CPUs then.
    percentiles : list of float
        Columns ``p50`` and so on: by nearest rank, less than 1 % above the real value.
    fineness : int
        Of the histograms: 2 ** fineness buckets from each power of two to the next (at most 7: below 1 % wide).
    worst : int
        How many of the longest latencies to list.

    Returns
    -------
    WakeupLatency

    Raises
    ------
    EventNotFoundError
        The recording cannot hold the events.
    """
    check_trace(trace)
    percentiles = check_percentiles(percentiles)
    worst, fineness = check_count("worst", worst), check_fineness(fineness)
    if by not in KEYS:
        raise ValueError(f"by is one of {', '.join(map(repr, KEYS))}, not {by!r}")
    require_events(trace, [SWITCH], "wakeup latency")
    require_events(trace, [event] if event is not None else [WAKING, WAKEUP], "wakeup latency")
    trace = one_buffer(trace, [SWITCH])
    wakeups = chosen_events(trace, event)
    found = _Sums(by, cpus if cpus is None else check_ints("cpus", cpus), worst)
    view = trace[SWITCH]
    matcher = Matcher(sleep_mask(view.format))
    names = [trace[name].key for name in wakeups]
    for step, lost in trace.steps([*names, view.key], _columns(trace, [*wakeups, SWITCH]), step_size=STEP):
        found.gaps.add(lost["before"], lost["after"])  # a task may have run on any CPU
        switches = step[view.key]
        numbers = found.know(matcher.tasks, switches)
        found.add(matcher, matcher.match([step[n] for n in names], switches, numbers))
    return found.result(trace, wakeups[0] if wakeups else WAKING, matcher, percentiles, fineness)


def chosen_events(trace: Trace, event: str | None) -> list[str]:
    """The event that wakeups are taken from, and that of new tasks."""
    first = event if event is not None else next((name for name in (WAKING, WAKEUP) if occurs(trace, name)), WAKING)
    return [name for name in dict.fromkeys([first, WAKEUP_NEW]) if has(trace, name)]


WORST_COLUMNS = ("latency", "woken_at", "ran_at", "pid", "comm", "prio", "cpu", "waker_pid", "waker_cpu", "from_cpu")
WANTED = (ORDER, "common_ts", "common_cpu", "common_pid", "pid", "success", "target_cpu")
SWITCH_WANTED = (ORDER, "common_ts", "common_cpu", "prev_pid", "prev_state", "next_pid", "next_prio", "next_comm")


def _columns(trace: Trace, events: Sequence[str]) -> dict[str, list[str]]:
    """What to decode of each event, as far as this kernel's format has it; pids it must have."""
    out = {}
    for name in events:
        view = trace[name]
        is_switch = view.name == "sched_switch"
        has = {ORDER, *view.columns} | ({"prev_pid", "next_pid"} if is_switch else {"pid"})
        out[view.key] = [c for c in (SWITCH_WANTED if is_switch else WANTED) if c in has]
    return out


@dataclass
class _Sums:
    """The results so far."""

    by: str
    cpus: list[int] | None
    most: int
    gaps: Gaps = field(default_factory=Gaps)
    keys: Keys = field(default_factory=Keys)
    samples: Samples = field(default_factory=Samples)
    counts: dict[str, np.ndarray] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)  # of tasks -> their numbers
    comms: dict[int, str] = field(default_factory=dict)  # pid -> the last name
    prios: dict[int, int] = field(default_factory=dict)  # likewise
    worst: Table | None = None
    least: int = 0  # a shorter latency is not among the worst

    def know(self, tasks: Keys, switches: Table) -> np.ndarray:
        """Look at names and priorities of tasks that are switched to; the number of each row's name."""
        pids, comms = integers(switches, "next_pid", np.int32), next_comms(switches)
        last = np.full(len(tasks) + len(pids), -1)
        last[tasks.groups(pids)] = np.arange(len(pids))
        rows = last[last >= 0]
        running = pids[rows].tolist()
        self.comms.update(zip(running, comms.taken(rows).to_numpy().tolist(), strict=True))
        self.prios.update(zip(running, integers(switches, "next_prio", np.int32, 0)[rows].tolist(), strict=True))
        numbers = np.array([self.names.setdefault(name, len(self.names)) for name in comms.strings], np.int32)
        return numbers[comms.codes] if len(numbers) else comms.codes

    def add(self, matcher: Matcher, found: np.ndarray) -> None:
        if self.cpus is not None:
            found = found[np.isin(found["cpu"], self.cpus)]
        groups = self.keys.groups(found[KEYS[self.by][1]])
        lost = (found["broken"] != 0) | self.gaps.touch(found["woken"], found["ran"])
        self.count("lost", groups[lost])
        if lost.any():
            found, groups = found[~lost], groups[~lost]
        latency = np.maximum(found["ran"] - found["woken"], 0)
        self.samples.add(groups, latency)
        self.samples.grow(len(self.keys))
        self.count("migrated", groups[(found["from_cpu"] >= 0) & (found["from_cpu"] != found["cpu"])])
        again = np.flatnonzero(found["repeated"])
        self.count("repeated", groups[again], found["repeated"][again])
        self.keep_worst(matcher, found, latency)

    def count(self, name: str, groups: np.ndarray, by: Any = 1) -> None:
        old = self.counts.get(name, np.zeros(0, np.int64))
        new = np.zeros(len(self.keys), np.int64)
        new[: len(old)] = old
        np.add.at(new, groups, by)
        self.counts[name] = new

    def keep_worst(self, matcher: Matcher, found: np.ndarray, latency: np.ndarray) -> None:
        rows = among_longest(latency, self.most, self.least)
        found = found[rows]
        new = table({"latency": latency[rows], "woken_at": found["woken"], "ran_at": found["ran"],
                     "pid": matcher.pids(found["task"]), "name": found["name"], "prio": found["prio"], "cpu": found["cpu"],
                     "waker_pid": found["waker"], "waker_cpu": found["waker_cpu"], "from_cpu": found["from_cpu"]})
        both = new if self.worst is None else stacked([self.worst, new])
        order = np.lexsort((both["woken_at"], -both["latency"]))
        self.worst = rows_of(both, order[: self.most])
        if 0 < self.most <= len(order):
            self.least = int(self.worst["latency"][-1])

    # ---- results ----

    def result(self, trace: Trace, event: str, matcher: Matcher, percentiles: Sequence[float], fineness: int) -> WakeupLatency:
        if self.worst is None:
            self.add(matcher, matcher.waiting()[:0])
        samples, keys = self.samples, self.keys.values
        keys = matcher.pids(keys) if self.by == "task" else keys
        heading = {"comm": self.named(keys)} if self.by == "comm" else {KEYS[self.by][0]: keys.astype(np.int64)}
        order = np.lexsort((keys, -samples.total)) if self.by in ("task", "comm") else np.argsort(keys)
        summed = rows_of(self.table(trace, heading, percentiles), order)
        total = total_table(samples, percentiles, **self.all_counts())
        return WakeupLatency(self.by, event, summed, total, histogram_table(table(heading), samples, order, fineness),
                             self.worst_table(), self.open(trace, matcher), matcher.running)

    def table(self, trace: Trace, heading: dict[str, Any], percentiles: Sequence[float]) -> Table:
        samples, columns = self.samples, dict(heading)
        if self.by == "task":
            pids = heading["pid"].tolist()
            columns["comm"] = self.comms_of(trace, pids)
            columns["prio"] = np.array([self.prios.get(pid, 0) for pid in pids], np.int64)
        columns |= {"count": samples.count, "min": samples.least, "last": samples.last, "mean": samples.mean,
                    "max": samples.max, **samples.percentiles(percentiles)}
        return table(columns | self.all_counts())

    def all_counts(self) -> dict[str, np.ndarray]:
        return {name: self.counts.get(name, np.zeros(0, np.int64)) for name in ("migrated", "repeated", "lost")}

    def named(self, numbers: np.ndarray) -> Encoded:
        return Encoded(numbers.astype(np.int32), list(self.names))

    def comms_of(self, trace: Trace, pids: Iterable[int]) -> list[str]:
        return [self.comms[pid] if pid in self.comms else trace.comms[pid] for pid in pids]

    def worst_table(self) -> Table:
        worst = self.worst if self.worst is not None else table({})
        columns = {name: worst.column(name) for name in worst}
        columns["comm"] = self.named(worst["name"])
        return Table([columns], WORST_COLUMNS)

    def open(self, trace: Trace, matcher: Matcher) -> Table:
        end, waits = trace.end, matcher.waiting()
        pid = matcher.pids(waits["task"])
        found = table({"pid": pid, "comm": self.comms_of(trace, pid.tolist()), "woken_at": waits["woken"],
                       "waited": (end if end is not None else 0) - waits["woken"], "waker_pid": waits["waker"],
                       "waker_cpu": waits["waker_cpu"]})
        return rows_of(found, np.lexsort((pid, waits["woken"])))


def next_comms(switches: Table) -> Encoded:
    """Names of the tasks switched to."""
    if "next_comm" in switches:
        column = switches.column("next_comm")
        if isinstance(column, Encoded):
            return column
    return Encoded(np.zeros(switches.num_rows, np.int32), [UNKNOWN_COMM])
