"""Calls of the function graph, and of the function tracer, summed up step by step: what profiles and call trees share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .. import _core
from ..errors import EventNotFoundError
from ..plan import ORDER
from ..table import Table
from ..trace import Trace
from .sched import SWITCH, one_buffer
from .steps import gap_rows
from .tables import integers
from .wanted import check_trace, has

ENTRIES = ("ftrace:funcgraph_entry", "ftrace:fgraph_retaddr_entry")
EXIT = "ftrace:funcgraph_exit"
FUNCTION = "ftrace:function"
REPEATS = "ftrace:func_repeats"

CALL = (ORDER, "common_ts", "common_cpu", "common_pid", "func", "depth")
COLUMNS = {**dict.fromkeys(ENTRIES, CALL), EXIT: (*CALL, "calltime", "rettime"), FUNCTION: ("common_cpu", "ip"),
           REPEATS: ("common_cpu", "ip", "count"), SWITCH: (ORDER, "common_ts", "prev_pid", "next_pid")}
TYPES = {ORDER: np.int64, "common_ts": np.int64, "common_cpu": np.uint16, "common_pid": np.int32, "prev_pid": np.int32,
         "next_pid": np.int32, "func": np.uint64, "ip": np.uint64, "depth": np.uint32, "calltime": np.uint64,
         "rettime": np.uint64, "count": np.uint64}

SUMS = np.dtype([("func", np.uint64), ("key", np.uint32), ("", np.uint32), ("hit", np.uint64), ("returned", np.uint64),
                 ("open", np.uint64), ("lossy", np.uint64), ("time", np.int64), ("inner", np.int64),
                 ("square_low", np.uint64), ("square_high", np.uint64)])  # csrc/ftb_graph.h ftb_call_sums
NO_CALLER = 0xFFFFFFFF  # key of a path's first call
STEP = "4 MB"


@dataclass(frozen=True, slots=True)
class Sums:
    """What calls were summed up to."""

    rows: np.ndarray  # of SUMS
    timed: bool  # whether they come from records that tell how long calls took


def call_sums(trace: Trace, *, by_path: bool, own_time: bool, sleep_time: bool) -> Sums:
    """Of each function on each CPU, or of each path.

    Calls come from the function graph's records if there are any, else from the function tracer's. Of a trace with
    several buffers the first one that has any is looked at.
    """
    check_trace(trace)
    narrowed = one_buffer(trace, (*ENTRIES, EXIT))
    trace = narrowed if narrowed is not trace else one_buffer(trace, (FUNCTION,))
    run = CallRun(trace, by_path, own_time, without_sleep=not sleep_time and not sleep_is_left_out(trace))
    return run.sums()


class CallRun:
    """One pass over a trace."""

    def __init__(self, trace: Trace, by_path: bool, own_time: bool, *, without_sleep: bool) -> None:
        self.trace, self.without_sleep = trace, without_sleep
        self.graph, self.functions = (_core.Calls(by_path, own_time) for _ in range(2))

    def sums(self) -> Sums:
        timed = slept = False
        for step, gaps in self.steps():
            entries, exits, switches = merged([step[e] for e in ENTRIES if e in step]), step.get(EXIT), step.get(SWITCH)
            timed, slept = timed or has_rows(entries) or has_rows(exits), slept or has_rows(switches)
            self.graph.step(entries, returns(exits), switches, gaps)
            self.count(step)
        if timed and self.without_sleep and not slept:
            raise EventNotFoundError(f"only {SWITCH} tells when tasks slept, and the recording has no such records")
        found = np.frombuffer((self.graph if timed else self.functions).finish(), SUMS)  # type: ignore[call-overload]
        return Sums(found, timed)

    def count(self, step: dict[str, list[np.ndarray]]) -> None:
        """Records of the function tracer; some stand for several."""
        if FUNCTION in step:
            cpu, function = step[FUNCTION]
            self.functions.count(function, cpu, None)
        if REPEATS in step:
            cpu, function, count = step[REPEATS]
            self.functions.count(function, cpu, count)

    def steps(self) -> Iterator[tuple[dict[str, list[np.ndarray]], tuple[np.ndarray, ...]]]:
        """Columns of each event, and the losses of the step."""
        trace = self.trace
        wanted = (*ENTRIES, EXIT, FUNCTION, REPEATS, *([SWITCH] if self.without_sleep else []))
        key_of = {name: trace[name].key for name in wanted if has(trace, name)}
        columns = {key: COLUMNS[name] for name, key in key_of.items()}
        for step, lost in trace.steps(list(columns), columns, step_size=STEP) if columns else ():
            yield {name: arrays(step[key]) for name, key in key_of.items()}, gap_rows(lost)


def has_rows(columns: Sequence[np.ndarray] | None) -> bool:
    return columns is not None and len(columns[0]) > 0


def sleep_is_left_out(trace: Trace) -> bool:
    """Whether the kernel itself left the time that tasks slept out of what it recorded (option sleep-time)."""
    options = trace.recording.container.tracing_file("trace_options") or b""
    return b"nosleep-time" in options.split()


def arrays(table: Table) -> list[np.ndarray]:
    """Its columns in the types that the core takes."""
    return [integers(table, name, TYPES[name]) for name in table]


def returns(found: list[np.ndarray] | None) -> list[np.ndarray] | None:
    """With their durations, instead of the two times."""
    if found is None:
        return None
    *call, calltime, rettime = found
    return [*call, (rettime - calltime).view(np.int64)]


def merged(parts: Sequence[list[np.ndarray]]) -> list[np.ndarray] | None:
    """The rows of entries of several kinds, in order."""
    parts = [part for part in parts if len(part[0])]
    if len(parts) < 2:
        return parts[0] if parts else None
    joined = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return [column[order] for column in joined]
