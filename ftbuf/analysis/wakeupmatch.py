"""Wakeups matched with the switches that end them, step by step: columns of events to the arrays that the core takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from ..plan import ORDER
from ..table import Table
from .stats import Keys
from .tables import integers, rows_of, stacked

# As in csrc/ftb_wakeups.h ftb_wait; `task` is a number of Matcher.tasks, `name` one of its caller's.
WAIT = np.dtype([("woken", "i8"), ("ran", "i8"), ("task", "i4"), ("name", "i4"), ("prio", "i4"), ("waker", "i4"),
                 ("from_cpu", "i4"), ("repeated", "u4"), ("cpu", "u2"), ("waker_cpu", "u2"), ("broken", "u4")])
NO_TASK, NO_CPU = -1, -1


class Matcher:
    """Matches one step after another: see ``wakeup_latency`` for the rules.

    Parameters
    ----------
    asleep : int
        The bits of ``prev_state`` that a task which sleeps has.
    """

    def __init__(self, asleep: int) -> None:
        self.tasks = Keys()
        self._asleep = asleep
        self._core: Any = _core.Wakeups()

    def match(self, wakeups: Sequence[Table], switches: Table, names: np.ndarray) -> np.ndarray:
        """The waits (WAIT) that end in a step. ``names``: for each switch the number of the name of the task it runs."""
        woken, runs = self.wakeup_rows(in_order(wakeups)), self.run_rows(switches, names)
        return np.frombuffer(self._core.step(len(self.tasks), woken, runs), WAIT)

    def waiting(self) -> np.ndarray:
        """Of the tasks that were woken, and not yet run, their waits: without an end."""
        return np.frombuffer(self._core.open(), WAIT)

    @property
    def running(self) -> int:
        """Wakeups of tasks that were running, and stayed so."""
        return int(self._core.running)

    def pids(self, tasks: np.ndarray) -> np.ndarray:
        """Of numbers of tasks."""
        return self.tasks.values[tasks] if len(tasks) else np.empty(0, np.int64)

    def numbers(self, pids: np.ndarray) -> np.ndarray:
        """Numbers of tasks; the idle task is none."""
        is_task = pids > 0
        if is_task.all():
            return np.ascontiguousarray(self.tasks.groups(pids), np.int32)
        out = np.full(len(pids), NO_TASK, np.int32)
        out[is_task] = self.tasks.groups(pids[is_task])
        return out

    def wakeup_rows(self, t: Table) -> list[np.ndarray]:
        return [t[ORDER], integers(t, "common_ts", np.int64), integers(t, "common_cpu", np.uint16),
                self.numbers(integers(t, "pid", np.int32)), integers(t, "target_cpu", np.int32, NO_CPU),
                integers(t, "common_pid", np.int32)]

    def run_rows(self, t: Table, names: np.ndarray) -> list[np.ndarray]:
        asleep = (integers(t, "prev_state", np.int64, 0) & self._asleep) != 0
        return [t[ORDER], integers(t, "common_ts", np.int64), integers(t, "common_cpu", np.uint16),
                self.numbers(integers(t, "prev_pid", np.int32)), asleep.view(np.uint8),
                self.numbers(integers(t, "next_pid", np.int32)), integers(t, "next_prio", np.int32, 0),
                np.ascontiguousarray(names, np.int32)]


def in_order(wakeups: Sequence[Table]) -> Table:
    """Records of several events as one table, in order; without those that woke nobody.

    Before 4.3 the event also came, with success=0, where there was nothing to wake.
    """
    tables = [rows_of(t, integers(t, "success", np.int64) != 0) if "success" in t else t for t in wakeups]
    filled = [t for t in tables if t.num_rows]
    if len(filled) < 2:
        return filled[0] if filled else tables[0]
    names = [name for name in filled[0] if all(name in t for t in filled)]
    both = stacked([Table([{name: t.column(name) for name in names}], names) for t in filled])
    return rows_of(both, np.argsort(both[ORDER], kind="stable"))

