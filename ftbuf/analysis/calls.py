"""Calls of the function graph, and of the function tracer, summed up step by step: what profiles and call trees share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from .. import _core
from ..errors import EventNotFoundError, FormatError
from ..table import Table
from ..trace import Trace
from .sched import SWITCH, occurs, one_buffer

ENTRIES = ("ftrace:funcgraph_entry", "ftrace:fgraph_retaddr_entry")
EXIT = "ftrace:funcgraph_exit"
FUNCTION = "ftrace:function"
REPEATS = "ftrace:func_repeats"

CALL = ("common_ts", "common_cpu", "common_pid", "func", "depth")
COLUMNS = {**dict.fromkeys(ENTRIES, CALL), EXIT: (*CALL, "calltime", "rettime"), FUNCTION: ("common_cpu", "ip"),
           REPEATS: ("common_cpu", "ip", "count"), SWITCH: ("common_ts", "prev_pid", "next_pid")}
TYPES = {"common_ts": np.int64, "common_cpu": np.uint16, "common_pid": np.int32, "prev_pid": np.int32,
         "next_pid": np.int32, "func": np.uint64, "ip": np.uint64, "depth": np.uint32, "calltime": np.uint64,
         "rettime": np.uint64, "count": np.int64}

SUMS = np.dtype([("func", np.uint64), ("key", np.uint32), ("", np.uint32), ("hit", np.uint64), ("returned", np.uint64),
                 ("open", np.uint64), ("lossy", np.uint64), ("time", np.int64), ("inner", np.int64),
                 ("square_low", np.uint64), ("square_high", np.uint64)])  # csrc/ftb_graph.h ftb_call_sums
NO_CALLER = 0xFFFFFFFF  # key of a path's first call


def call_sums(trace: Trace, *, by_path: bool, own_time: bool, sleep_time: bool) -> np.ndarray:
    """Rows of SUMS: of each function on each CPU, or of each path.

    Calls come from the function graph's records if there are any, else from the function tracer's.
    """
    return CallSums(trace, by_path, own_time, sleep_time).sums()


def has_calls(trace: Trace) -> bool:
    """Whether there are records that tell how long calls took."""
    return occurs(trace, *ENTRIES, EXIT)


class CallSums:
    """One run over a trace."""

    def __init__(self, trace: Trace, by_path: bool, own_time: bool, sleep_time: bool) -> None:
        self._trace = one_buffer(trace, (*ENTRIES, EXIT) if has_calls(trace) else (FUNCTION,))
        self._calls = _core.Calls(by_path, own_time, self._gaps)
        self._subtract_sleep = not sleep_time and not sleep_is_left_out(trace)

    def sums(self) -> np.ndarray:
        if has_calls(self._trace):
            self._graph()
        else:
            self._functions()
        return np.frombuffer(self._calls.finish(), SUMS)  # type: ignore[call-overload, no-any-return]

    @cached_property
    def _gaps(self) -> tuple[np.ndarray, np.ndarray]:
        lost = self._trace.lost
        return np.ascontiguousarray(lost["after"]), np.ascontiguousarray(lost["common_cpu"])

    def _graph(self) -> None:
        names = [*ENTRIES, EXIT, *([SWITCH] if self._subtract_sleep else [])]
        if self._subtract_sleep and not occurs(self._trace, SWITCH):
            raise EventNotFoundError(f"only {SWITCH} tells when tasks slept, and the recording has no such records")
        for step in self._steps(names):
            entries = merged([step[name] for name in ENTRIES if name in step])
            self._calls.step(entries, returns(step.get(EXIT)), step.get(SWITCH))

    def _functions(self) -> None:
        for step in self._steps([FUNCTION, REPEATS]):
            if FUNCTION in step:
                cpu, function = step[FUNCTION]
                self._calls.count(function, cpu)
            if REPEATS in step:
                cpu, function, count = step[REPEATS]
                self._calls.count(np.repeat(function, count), np.repeat(cpu, count))

    def _steps(self, names: Sequence[str]) -> Iterator[dict[str, list[np.ndarray]]]:
        trace = self._trace
        wanted = [name for name in names if name in trace]
        columns = {name: COLUMNS[name] for name in wanted}
        for step in trace.iterate(wanted, columns) if wanted else ():
            yield {name: arrays(step[trace[name].key]) for name in wanted}


def sleep_is_left_out(trace: Trace) -> bool:
    """Whether the kernel itself left the time that tasks slept out of what it recorded (option sleep-time)."""
    options = trace.recording.container.tracing_file("trace_options") or b""
    return b"nosleep-time" in options.split()


def arrays(table: Table) -> list[np.ndarray]:
    """Its columns in the types that the core takes."""
    found = [table[name] for name in table]
    if any(column.ndim != 1 or column.dtype.kind not in "iu" for column in found):
        raise FormatError(f"not all of {', '.join(table)} are numbers")
    return [np.ascontiguousarray(column, TYPES[name]) for name, column in zip(table, found, strict=True)]


def returns(found: list[np.ndarray] | None) -> list[np.ndarray] | None:
    """With their durations, instead of the two times."""
    if found is None:
        return None
    *call, calltime, rettime = found
    return [*call, (rettime - calltime).view(np.int64)]


def merged(parts: Sequence[list[np.ndarray]]) -> list[np.ndarray] | None:
    """The rows of entries of several kinds by time."""
    parts = [part for part in parts if len(part[0])]
    if len(parts) < 2:
        return parts[0] if parts else None
    joined = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return [column[order] for column in joined]
