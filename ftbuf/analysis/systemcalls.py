"""System calls: how often, how long, how many failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ..errors import EventNotFoundError
from ..plan import ORDER
from ..survey import encoded
from ..table import Table
from ..trace import Trace
from .callnames import machine_calls
from .intervals import NO_EDGES, Edges, Intervals, Lane, edges
from .sched import FIRST_LOOK, occurs, one_buffer
from .stats import PERCENTILES, Keys
from .steps import STEP, TaskNames, merged
from .tables import integers, rows_of, table
from .wanted import check_percentiles, check_trace, has, require_readable

ENTER, EXIT = "raw_syscalls:sys_enter", "raw_syscalls:sys_exit"
OF_EACH, ENTER_NAME, EXIT_NAME = "syscalls", "sys_enter_", "sys_exit_"
NUMBER = "__syscall_nr"
CALLS = 1 << 16  # more than kinds of calls, so that a task and a call make one number
MAX_ERRNO = 4095  # K:include/linux/err.h
BY = ("call", "task", "both")


def syscalls(trace: Trace, *, by: str = "call", percentiles: Sequence[float] = PERCENTILES) -> Table:
    """How often system calls were made, how long they took, and how many failed.

    A call lasts from the entry of a task to its next exit of the same number. From sys_enter and sys_exit if the
    recording has such records, else from sys_enter_NAME and sys_exit_NAME. A call is ``lost``, and not counted, where its
    exit does not follow (another entry does), or records of any CPU were lost inside. Exits whose entry is not in the
    recording (the first of a new task, calls under way at the start) are left out.

    Parameters
    ----------
    by : {"call", "task", "both"}
        Rows are calls, tasks, or the calls of each task.
    percentiles : list of float
        Columns ``p50`` and so on: by nearest rank, less than 1 % above the real value.

    Returns
    -------
    Table
        pid, comm of tasks; id, name of calls (from events of single calls, where they were recorded, too; else by the
        numbers of the machine, "" if that is not known. Programs of 32 bits on a kernel of 64 have numbers of their own,
        and no record tells that a call is theirs: it has the name of the kernel's own call of that number); count;
        errors (returned -1 to -4095); time, mean, min, max and percentiles in ns (or units of the clock); lost; open (had
        not returned by the end of the trace). The most time first.

    Raises
    ------
    EventNotFoundError
        The recording cannot hold system calls.
    """
    check_trace(trace)
    percentiles = check_percentiles(percentiles)
    if by not in BY:
        raise ValueError(f"by is one of {', '.join(map(repr, BY))}, not {by!r}")
    known = named_calls(trace, trace)
    if not has(trace, ENTER) and not known:
        require_readable(trace, [ENTER])
        raise EventNotFoundError(f"system calls need {ENTER} and {EXIT}, or {OF_EACH}:*, which the recording does not have")
    is_raw = occurs(trace, ENTER, EXIT)
    trace = one_buffer(trace, [ENTER, EXIT] if is_raw else list(known))
    named = named_calls(trace, trace.events) if not is_raw or are_named(trace) else {}
    machine = SyscallMachine(trace, by)
    machine.read([ENTER] if is_raw else [e for e in named if ENTER_NAME in e],
                 [EXIT] if is_raw else [e for e in named if EXIT_NAME in e])
    return machine.result(call_names(trace, named), percentiles)


def named_calls(trace: Trace, events: Iterable[str]) -> dict[str, str]:
    """Those of the events that are of single calls -> name of the call."""
    views = [view for view in map(trace.__getitem__, events) if view.system == OF_EACH and has(trace, view.key)]
    return {f"{view.system}:{view.name}": view.name.removeprefix(start)
            for view in views for start in (ENTER_NAME, EXIT_NAME) if view.name.startswith(start)}


def are_named(trace: Trace) -> bool:
    """Whether events of single calls were recorded beside those of all calls: by a look at the first ones."""
    if not has(trace, ENTER):
        return False
    looks = [int(t["common_ts"][-1]) for t in islice(trace[ENTER].iterate(["common_ts"], step_size=FIRST_LOOK), 2)]
    return bool(named_calls(trace, trace.window(end=looks[1] if len(looks) > 1 else None).events))


def call_names(trace: Trace, named: dict[str, str]) -> dict[int, str]:
    """Number -> name: as events of single calls tell, else as the machine's calls are numbered."""
    names: dict[int, str] = {}
    for event, name in named.items():
        for step in trace[event].iterate([NUMBER], step_size=FIRST_LOOK):
            names.setdefault(int(step[NUMBER][0]), name)
            break
    return machine_calls(trace) | names


class SyscallMachine:
    """Calls of all tasks, step by step."""

    def __init__(self, trace: Trace, by: str) -> None:
        self.trace, self.by = trace, by
        self.numbers, self.tasks = Keys(), Keys()
        self.both = Keys()
        self.names = TaskNames()
        self.calls = Lane(self.group_of)
        self.intervals = Intervals([self.calls], of_cpus=False)

    def group_of(self, number: np.ndarray, pid: np.ndarray) -> np.ndarray:
        """The row that a call counts in."""
        calls = self.numbers.groups(number)
        if self.by == "call":
            return calls
        tasks = self.tasks.groups(pid).astype(np.int64)
        return tasks if self.by == "task" else self.both.groups(tasks * CALLS + np.minimum(calls, CALLS - 1))

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each row the places of the task and of the number."""
        if self.by == "both":
            tasks, calls = np.divmod(self.both.values, CALLS)
            return tasks, calls
        count = np.arange(len(self.numbers if self.by == "call" else self.tasks))
        return count, count

    def read(self, entries: Sequence[str], exits: Sequence[str]) -> None:
        trace = self.trace
        number = "id" if ENTER in entries else NUMBER
        keys = [[trace[e].key for e in events if has(trace, e)] for events in (entries, exits)]
        wanted = ORDER, "common_ts", "common_pid", number, "ret"
        columns = {key: [c for c in wanted if c == ORDER or c in trace[key].columns] for key in (*keys[0], *keys[1])}
        for step, lost in trace.steps(list(columns), columns, step_size=STEP):
            begins, ends = (in_order([rows_of_calls(step[key], number) for key in some]) for some in keys)
            self.intervals.step([(begins, ends)], lost)

    # ---- results ----

    def result(self, names: dict[int, str], percentiles: Sequence[float]) -> Table:
        self.intervals.finish()
        tasks, calls = self.rows()
        columns: dict[str, Any] = {}
        if self.by != "call":
            pids = self.tasks.values[tasks]
            columns |= {"pid": pids, "comm": encoded(self.names.of(self.trace, pids.tolist()))}
        if self.by != "task":
            ids = self.numbers.values[calls]
            columns |= {"id": ids, "name": encoded([names.get(number, "") for number in ids.tolist()])}
        sums = self.calls.columns(len(tasks), percentiles)
        errors = {"errors": self.calls.counters.of("flagged", len(tasks))}
        made = table(columns | {"count": sums.pop("count")} | errors | sums)
        order = np.argsort(-made["time"], kind="stable")
        return rows_of(made, order[(made["count"] + made["lost"] + made["open"])[order] > 0])


def rows_of_calls(t: Table, number: str) -> dict[str, np.ndarray]:
    ret = integers(t, "ret", np.int64, 0)
    return {"order": t[ORDER], "ts": t["common_ts"], "pid": integers(t, "common_pid", np.int32),
            "number": integers(t, number, np.int64), "failed": (ret < 0) & (ret >= -MAX_ERRNO)}


def in_order(parts: Sequence[dict[str, np.ndarray]]) -> Edges:
    """Rows of one event, or of many, in order."""
    parts = [part for part in parts if len(part["ts"])] or parts[:1]
    if not parts:
        return NO_EDGES
    rows = parts[0] if len(parts) == 1 else merged(parts)
    return edges(rows["order"], rows["ts"], rows["pid"], rows["number"], rows["failed"])
