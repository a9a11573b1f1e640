"""What tasks did with their time: ran, waited to run, slept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..formats import EventFormat
from ..survey import encoded
from ..table import Table
from ..trace import Trace
from .sched import ENDED, FIRST_LOOK, SWITCH, WAKEUP, WAKEUP_NEW, WAKING, occurs, one_buffer, require_events
from .sched import task_states as letters_of
from .spans import STEP, Counters, CpuGaps, Ended, Layout, Spans, TaskNames, alternating, cpu_starts, previous
from .tables import rows_of, table

STATES = ("run", "runnable", "sleep", "disk", "stopped", "ended", "unknown")
RUN, RUNNABLE, SLEEP, DISK, STOPPED, OVER, UNKNOWN = range(len(STATES))
WOKEN = len(STATES)  # no state: a row that makes a task which does not run runnable
STATE_BITS = 12  # of prev_state that have letters (K:include/linux/sched.h); the others are told apart by none
OF_LETTER = {"S": SLEEP, "I": SLEEP, "D": DISK, "W": DISK, "K": SLEEP}  # the rest is stopped: T, t, P
BY_WEIGHT = (OVER, DISK, STOPPED, SLEEP)  # of a state of several bits
WANTED = ("common_ts", "common_cpu", "prev_pid", "prev_state", "next_pid", "next_comm")


def task_states_of(states: np.ndarray, fmt: EventFormat) -> np.ndarray:
    """prev_state of switches -> what the task that left did next."""
    bits = {bit: OVER if letter in ENDED else OF_LETTER.get(letter, STOPPED) for bit, letter in letters_of(fmt).items()}
    look_up = np.full(1 << STATE_BITS, RUNNABLE, np.int8)
    every = np.arange(1 << STATE_BITS)
    for kind in BY_WEIGHT[::-1]:
        mask = sum(bit for bit, of in bits.items() if of == kind and bit < 1 << STATE_BITS)
        look_up[(every & mask) != 0] = kind
    found: np.ndarray = look_up[states & ((1 << STATE_BITS) - 1)]
    return found


def task_states(trace: Trace) -> Table:
    """How long each task ran, waited to run, and slept; how often it was switched to, preempted and moved.

    Rules:

    - A task runs from a switch to it to the switch away from it; the tasks that the CPUs were running at their first
      switch, since the first record of that CPU.
    - Switched away while it could go on (preempted, or by its own will), it is runnable until it runs again. Else it is
      asleep in the state that the switch tells (``disk``: uninterruptible) until it is woken, and runnable from then on:
      by sched_waking if that was recorded, else by sched_wakeup; without either it sleeps until it runs.
    - A wakeup of a running task changes nothing.
    - Nothing is said of the time before a task's first record. What a task does at the end of the trace it does up to the
      trace's last record (``state``).
    - A stretch of time in which records were lost (of its CPU while it runs, of any CPU else), or that the records
      contradict, is ``unknown``.
    - The idle tasks (pid 0) are no tasks here: see ``cpu_busy``. Of a trace with several buffers the first one that has
      switches is looked at: choose another by ``trace.window(buffer=...)``.

    Parameters
    ----------
    trace : Trace
        Choose times by ``trace.window(start, end)``; not CPUs or tasks: tasks are woken from anywhere.

    Returns
    -------
    Table
        pid, comm (the last one seen); run, runnable, sleep, disk, stopped, unknown in ns (or units of the clock); runs
        (switches to it), preempted (switches away while runnable), migrations (runs on another CPU than before), state
        (at the end: one of the names above, or "ended"). Tasks that ran longest come first.

    Raises
    ------
    EventNotFoundError
        The recording cannot hold switches.
    """
    require_events(trace, [SWITCH], "times of tasks")
    trace = one_buffer(trace, [SWITCH])
    wakeups = [name for name in (WAKING if occurs(trace, WAKING) else WAKEUP, WAKEUP_NEW) if name in trace]
    view = trace[SWITCH]
    keys = [trace[name].key for name in wakeups]
    columns = {view.key: [c for c in WANTED if c in view.columns], **dict.fromkeys(keys, ("common_ts", "pid"))}
    machine = TaskMachine(trace, view.format)
    for step in trace.iterate(list(columns), columns, step_size=STEP):
        machine.step(step[view.key], [step[key] for key in keys])
    return machine.result()


class TaskMachine:
    """The states of all tasks, step by step."""

    def __init__(self, trace: Trace, switch: EventFormat) -> None:
        self.trace, self.format = trace, switch
        self.spans = Spans(state=UNKNOWN, cpu=-1)
        self.counters = Counters()
        self.gaps = CpuGaps(trace)
        self.names = TaskNames()
        self.begin()

    def step(self, switches: Table, wakeups: Sequence[Table]) -> None:
        state, pid, ts, cpu = self.rows(switches, wakeups)
        layout = self.spans.layout(pid)
        order = layout.order
        row_state = state[order]
        effective, cpu_of = self.without_wakeups(layout, row_state, cpu[order])
        self.add(self.spans.end(layout, ts[order], state=effective, cpu=cpu_of), row_state, cpu_of)
        self.counters.add("runs", layout.group[row_state == RUN])
        self.counters.add("preempted", layout.group[row_state == RUNNABLE])
        if "next_comm" in switches:
            self.names.note(switches["next_pid"], switches.column("next_comm"))

    def begin(self) -> None:
        """What CPUs were running before their first switch."""
        for cpu, since in cpu_starts(self.trace).items():
            steps = self.trace.window(cpus=[cpu])[SWITCH].iterate(["prev_pid"], step_size=FIRST_LOOK)
            pid = next((int(t["prev_pid"][0]) for t in steps if len(t)), 0)
            if pid > 0:
                self.spans.begin(np.array([pid]), np.array([since]), state=RUN, cpu=cpu)

    def rows(self, switches: Table, wakeups: Sequence[Table]) -> tuple[np.ndarray, ...]:
        """State, pid, time and CPU of what happened to tasks, in order of time; of the same time, switches come first."""
        count = switches.num_rows
        left = (task_states_of(switches["prev_state"], self.format) if "prev_state" in switches
                else np.full(count, SLEEP, np.int8))
        state = [alternating(left, np.full(count, RUN, np.int8), np.int8)]
        pid = [alternating(switches["prev_pid"], switches["next_pid"], np.int64)]
        ts, cpu = [np.repeat(switches["common_ts"], 2)], [np.repeat(switches["common_cpu"].astype(np.int32), 2)]
        for woken in wakeups:
            state.append(np.full(woken.num_rows, WOKEN, np.int8))
            pid.append(woken["pid"].astype(np.int64))
            ts.append(woken["common_ts"])
            cpu.append(np.full(woken.num_rows, -1, np.int32))
        pids = np.concatenate(pid)
        order = np.argsort(np.concatenate([np.maximum.accumulate(t) for t in ts]), kind="stable")
        order = order[pids[order] > 0]
        return np.concatenate(state)[order], pids[order], np.concatenate(ts)[order], np.concatenate(cpu)[order]

    def without_wakeups(self, layout: Layout, state: np.ndarray, cpu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A wakeup's row as the state that it leads to, and the CPU that the task was on last."""
        woken = np.flatnonzero(state == WOKEN)
        if not len(woken):
            return state, cpu
        last = previous(state != WOKEN, layout.start)[woken]
        group, seen = layout.group[woken], last >= 0
        before = np.where(seen, state[last], self.spans.carried("state", group))
        effective, cpu_of = state.copy(), cpu.copy()
        effective[woken] = np.where(before == RUN, RUN, RUNNABLE)
        cpu_of[woken] = np.where(seen, cpu[last], self.spans.carried("cpu", group))
        return effective, cpu_of

    def add(self, ended: Ended, row_state: np.ndarray, cpu: np.ndarray) -> None:
        by, state = row_state[ended.place], ended.began["state"]
        wrong = np.where(by == RUN, state == RUN, (by != WOKEN) & (state != RUN))
        self.count(ended, wrong)
        moved = (by == RUN) & (ended.began["cpu"] >= 0) & (ended.began["cpu"] != cpu[ended.place])
        self.counters.add("migrations", ended.group[moved])

    def count(self, ended: Ended, wrong: np.ndarray | bool = False) -> None:
        state = ended.began["state"]
        if len(self.gaps.all):
            own = self.gaps.touch(ended.began["cpu"], ended.start, ended.end)
            wrong = wrong | np.where(state == RUN, own, self.gaps.all.touch(ended.start, ended.end))
        state = np.where(wrong, UNKNOWN, state)
        self.counters.add("times", ended.group * len(STATES) + state, ended.duration)

    def result(self) -> Table:
        end = self.trace.end
        last = self.spans.open(0 if end is None else end)
        self.count(last)
        n = len(self.spans.keys)
        pids = self.spans.keys.values.astype(np.int64)
        times = self.counters.of("times", n * len(STATES)).reshape(n, len(STATES))
        state = np.full(n, UNKNOWN)
        state[last.group] = last.began["state"]
        columns: dict[str, Any] = {"pid": pids, "comm": encoded(self.names.of(self.trace, pids.tolist()))}
        columns |= {name: times[:, i] for i, name in enumerate(STATES) if name != "ended"}
        columns |= {name: self.counters.of(name, n) for name in ("runs", "preempted", "migrations")}
        columns["state"] = encoded([STATES[i] for i in state.tolist()])
        return rows_of(table(columns), np.lexsort((pids, -times[:, RUN])))
