"""Idle states and frequencies of CPUs: how long in which."""

from __future__ import annotations

import numpy as np

from ..table import Table
from ..trace import Trace
from .gaps import Gaps
from .sched import one_buffer, require_events
from .spans import STEP, Ended, Spans, cpu_starts
from .stats import Keys, Samples
from .tables import integers, rows_of, table
from .wanted import check_trace

IDLE, FREQUENCY = "power:cpu_idle", "power:cpu_frequency"
EXIT_IDLE = 0xFFFFFFFF  # K:include/trace/events/power.h PWR_EVENT_EXIT
NOT_IDLE, NOT_KNOWN = -1, -2
STATE_BITS = 33  # a u32, and the two above


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
    found = Residency(trace)
    for step in trace[event].iterate(["common_ts", "cpu_id", "state"], step_size=STEP):
        cpus, states = integers(step, "cpu_id", np.int64), integers(step, "state", np.int64)
        states = np.where(states == EXIT_IDLE, NOT_IDLE, states)
        found.begin(np.unique(cpus))
        found.add(found.spans.step(cpus, step["common_ts"], state=states)[1])
    return found.table(name)


class Residency:
    """Sums of the time in each state of each CPU."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.spans = Spans(state=NOT_KNOWN)
        self.gaps = Gaps(trace)
        self.starts = cpu_starts(trace)
        self.keys, self.samples = Keys(), Samples()  # of a CPU (place in spans.keys) in a state

    def begin(self, cpus: np.ndarray) -> None:
        """CPUs are in a state that is not known, from their first record on: without one, from the trace's."""
        first = self.trace.start or 0
        since = np.array([self.starts.get(cpu, first) for cpu in cpus.tolist()], np.int64)
        self.spans.begin(cpus, since, state=NOT_KNOWN)

    def add(self, ended: Ended) -> None:
        state = np.where(self.gaps.touch(ended.start, ended.end), NOT_KNOWN, ended.began["state"])
        self.samples.add(self.keys.groups(ended.group.astype(np.int64) << STATE_BITS | (state - NOT_KNOWN)), ended.duration)

    def table(self, name: str) -> Table:
        self.begin(np.array(sorted(self.starts), np.int64))
        self.add(self.spans.open(self.trace.end or 0))
        keys, samples = self.keys.values.astype(np.int64), self.samples
        samples.grow(len(keys))
        place, state = keys >> STATE_BITS, (keys & (1 << STATE_BITS) - 1) + NOT_KNOWN
        cpu = self.spans.keys.values.astype(np.int64)[place]
        of_cpu = np.zeros(len(self.spans.keys), np.int64)
        np.add.at(of_cpu, place, samples.total)
        of_row = of_cpu[place]
        made = table({"cpu": cpu, name: state, "count": samples.count, "time": samples.total, "mean": samples.mean,
                      "max": samples.max, "share": samples.total / np.where(of_row > 0, of_row, np.nan)})
        return rows_of(made, np.lexsort((state, cpu)))
