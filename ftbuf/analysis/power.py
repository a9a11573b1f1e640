"""Idle states and frequencies of CPUs: how long in which."""

from __future__ import annotations

import numpy as np

from .. import _core
from ..table import Table
from ..trace import Trace
from .sched import one_buffer, require_events
from .steps import STEP, cpu_starts, gap_rows
from .tables import integers, rows_of, table
from .wanted import check_trace

IDLE, FREQUENCY = "power:cpu_idle", "power:cpu_frequency"
EXIT_IDLE = 0xFFFFFFFF  # K:include/trace/events/power.h PWR_EVENT_EXIT
NOT_IDLE, NOT_KNOWN = -1, -2
SUMS = np.dtype([(name, np.int64) for name in ("cpu", "state", "count", "time", "max")])  # csrc/ftb_residency.h ftb_state_sums


def idle_residency(trace: Trace) -> Table:
    """How long each CPU was in each idle state, from cpu_idle events.

    Of a CPU nothing is known between its first record and its first such event; at the end of the trace a state lasts up
    to the last record. Of stretches in which records of any CPU were lost (the events may come from another CPU) nothing
    is known either.

    Returns
    -------
    Table
        cpu; state (as the driver numbers them; -1: not idle; -2: not known); count; time, mean, max in ns (or units of
        the clock); share of the CPU's time.

    Raises
    ------
    EventNotFoundError
        The recording cannot hold such events.
    """
    return residency(trace, IDLE, "state")


def frequency_residency(trace: Trace) -> Table:
    """How long each CPU ran at each frequency, from cpu_frequency events: at what the governor asked for.

    The rules are those of ``idle_residency``: nothing is known of the time before a CPU's first such event.

    Returns
    -------
    Table
        cpu; frequency in kHz (-2: not known); count; time, mean, max in ns (or units of the clock); share of the CPU's
        time.

    Raises
    ------
    EventNotFoundError
        The recording cannot hold such events.
    """
    return residency(trace, FREQUENCY, "frequency")


def residency(trace: Trace, event: str, name: str) -> Table:
    check_trace(trace)
    require_events(trace, [event], name)
    trace = one_buffer(trace, [event])
    core = _core.Residency(trace.start or 0, NOT_KNOWN)
    for cpu, since in sorted(cpu_starts(trace).items()):
        core.begin(cpu, since)
    key = trace[event].key
    for step, lost in trace.steps([key], {key: ["common_ts", "cpu_id", "state"]}, step_size=STEP):
        ts, cpus, states = (integers(step[key], column, np.int64) for column in ("common_ts", "cpu_id", "state"))
        core.step(ts, cpus, np.where(states == EXIT_IDLE, NOT_IDLE, states), gap_rows(lost))
    return summed(np.frombuffer(core.finish(trace.end or 0), SUMS), name)  # type: ignore[call-overload]


def summed(sums: np.ndarray, name: str) -> Table:
    cpus, places = np.unique(sums["cpu"], return_inverse=True)
    of_cpu = np.zeros(len(cpus), np.int64)
    np.add.at(of_cpu, places, sums["time"])
    of_row = of_cpu[places]
    made = table({"cpu": sums["cpu"], name: sums["state"], "count": sums["count"], "time": sums["time"],
                  "mean": sums["time"] / np.maximum(sums["count"], 1), "max": sums["max"],
                  "share": sums["time"] / np.where(of_row > 0, of_row, np.nan)})
    return rows_of(made, np.lexsort((sums["state"], sums["cpu"])))
