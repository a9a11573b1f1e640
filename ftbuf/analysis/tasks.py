"""What tasks did with their time: ran, waited to run, slept."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..survey import encoded
from ..table import Table
from ..trace import Trace
from .sched import SWITCH, WAKEUP, WAKEUP_NEW, WAKING, occurs, one_buffer, require_events
from .schedtimes import RUN, STATES, SchedTimes
from .tables import rows_of, table
from .wanted import check_trace, has


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
    - The idle tasks (pid 0) are no tasks here: see ``cpu_busy``. Of several buffers the first one that has
      switches is looked at (BufferWarning): choose another by ``trace.window(buffer=...)``.

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
    check_trace(trace)
    require_events(trace, [SWITCH], "times of tasks")
    trace = one_buffer(trace, [SWITCH])
    wakeups = [name for name in (WAKING if occurs(trace, WAKING) else WAKEUP, WAKEUP_NEW) if has(trace, name)]
    run = SchedTimes(trace, wakeups, of_tasks=True)
    tasks, _ = run.add_up()
    times, pids = tasks["times"], tasks["pid"].astype(np.int64)
    columns: dict[str, Any] = {"pid": pids, "comm": encoded(run.names.of(trace, pids.tolist()))}
    columns |= {name: times[:, i] for i, name in enumerate(STATES) if name != "ended"}
    columns |= {name: tasks[name].astype(np.int64) for name in ("runs", "preempted", "migrations")}
    columns["state"] = encoded([STATES[i] for i in tasks["state"].tolist()])
    return rows_of(table(columns), np.lexsort((pids, -times[:, RUN])))
