"""Task switches and wakeups added up in one pass: what the times of tasks and of CPUs share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import _core
from ..formats import EventFormat
from ..plan import ORDER
from ..table import Table
from ..trace import Trace
from .sched import ENDED, FIRST_LOOK, SWITCH
from .sched import task_states as letters_of
from .steps import TaskNames, cpu_starts, gap_rows
from .tables import integers

STATES = ("run", "runnable", "sleep", "disk", "stopped", "ended", "unknown")  # csrc/ftb_sched.h ftb_task_state
RUN, RUNNABLE, SLEEP, DISK, STOPPED, OVER, UNKNOWN = range(len(STATES))
STATE_BITS = 12  # of prev_state that have letters (K:include/linux/sched.h)
OF_LETTER = {"S": SLEEP, "I": SLEEP, "D": DISK, "W": DISK, "K": SLEEP}  # the rest is stopped: T, t, P
BY_WEIGHT = (OVER, DISK, STOPPED, SLEEP)  # of a state of several bits
STEP = "1 MB"
MOST_CPUS = 8192  # K:arch/x86/Kconfig NR_CPUS_RANGE_END; only a damaged file tells of more

TASK = np.dtype([("times", np.int64, len(STATES)), ("runs", np.uint64), ("preempted", np.uint64), ("migrations", np.uint64),
                 ("since", np.int64), ("pid", np.int32), ("cpu", np.int32), ("state", np.uint32), ("known", np.uint32)])
CPU = np.dtype([("busy", np.int64), ("idle", np.int64), ("unknown", np.int64), ("switches", np.uint64),
                ("since", np.int64), ("pid", np.int32), ("known", np.uint32)])  # ftb_task_times, ftb_cpu_times


def states_left(states: np.ndarray, fmt: EventFormat) -> np.ndarray:
    """prev_state of switches -> what the task that left did next."""
    bits = {bit: OVER if letter in ENDED else OF_LETTER.get(letter, STOPPED) for bit, letter in letters_of(fmt).items()}
    look_up = np.full(1 << STATE_BITS, RUNNABLE, np.uint8)
    every = np.arange(1 << STATE_BITS)
    for kind in BY_WEIGHT[::-1]:
        mask = sum(bit for bit, of in bits.items() if of == kind and bit < 1 << STATE_BITS)
        look_up[(every & mask) != 0] = kind
    found: np.ndarray = look_up[states & ((1 << STATE_BITS) - 1)]
    return found


class SchedTimes:
    """One pass over the switches, and the wakeups, of a trace."""

    def __init__(self, trace: Trace, wakeups: Sequence[str] = (), *, of_tasks: bool) -> None:
        self.trace, self.of_tasks = trace, of_tasks
        self.view = trace[SWITCH]
        self.wakeups = [trace[name].key for name in wakeups]
        self.names = TaskNames()
        self._core = _core.Sched()

    def add_up(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows of TASK, and of CPU, these by CPU."""
        self._begin()
        wanted = (ORDER, "common_ts", "common_cpu", "prev_pid", "next_pid", *(("prev_state", "next_comm") if self.of_tasks else ()))
        columns: dict[str, Sequence[str]] = dict.fromkeys(self.wakeups, (ORDER, "common_ts", "pid"))
        columns[self.view.key] = [c for c in wanted if c == ORDER or c in self.view.columns]
        for step, lost in self.trace.steps(list(columns), columns, step_size=STEP):
            self._step(step[self.view.key], [step[key] for key in self.wakeups], lost)
        tasks, cpus = self._core.finish(self.trace.end or 0)
        return np.frombuffer(tasks, TASK), np.frombuffer(cpus, CPU)  # type: ignore[call-overload]

    def _begin(self) -> None:
        """What CPUs have been running when they come to their first switch."""
        starts = cpu_starts(self.trace)
        for cpu, since in starts.items() if len(starts) <= MOST_CPUS else ():
            steps = self.trace.window(cpus=[cpu])[SWITCH].iterate(["prev_pid"], step_size=FIRST_LOOK)
            pid = next((int(integers(t, "prev_pid", np.int32)[0]) for t in steps if len(t)), None)
            if pid is not None:
                self._core.begin(cpu, pid, since)

    def _step(self, switches: Table, wakeups: Sequence[Table], lost: Table) -> None:
        prev, following = (integers(switches, name, np.int32) for name in ("prev_pid", "next_pid"))
        cpu = integers(switches, "common_cpu", np.uint16)
        left = self._left(switches) if self.of_tasks else None
        rows = switches[ORDER], switches["common_ts"], cpu, prev, following, left
        woken = [(t[ORDER], t["common_ts"], integers(t, "pid", np.int32)) for t in wakeups]
        self._core.step(rows, woken, gap_rows(lost))
        if "next_comm" in switches:
            self.names.note(following, switches.column("next_comm"))

    def _left(self, switches: Table) -> np.ndarray:
        if "prev_state" in switches:
            return states_left(integers(switches, "prev_state", np.int64), self.view.format)
        return np.full(switches.num_rows, SLEEP, np.uint8)
