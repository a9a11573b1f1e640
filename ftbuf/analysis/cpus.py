"""How busy CPUs were."""

from __future__ import annotations

import numpy as np

from ..table import Table
from ..trace import Trace
from .sched import SWITCH, one_buffer, require_events
from .spans import STEP, Counters, CpuGaps, Ended, Spans, cpu_starts
from .stats import Keys
from .tables import rows_of, table

NOT_KNOWN = -1  # no pid


def cpu_busy(trace: Trace) -> Table:
    """How long each CPU ran tasks, and how long it idled.

    From switch to switch; the time before a CPU's first switch, from its first record of any kind, belongs to the task
    that the switch left; the time behind its last one, up to the last record of the trace, to the task switched to. Time
    in which records of the CPU were lost, or a switch left another task than the one before it switched to, is
    ``unknown``. Interrupts count to the task that they interrupt: see ``irq_time``.

    Returns
    -------
    Table
        cpu; busy, idle, unknown in ns (or units of the clock); busy_share and idle_share of what is known (NaN: nothing);
        switches; switches_per_second (NaN where the clock does not count ns).

    Raises
    ------
    EventNotFoundError
        The recording cannot hold switches.
    """
    require_events(trace, [SWITCH], "how busy CPUs are")
    trace = one_buffer(trace, [SWITCH])
    view = trace[SWITCH]
    spans, counters, gaps, starts = Spans(pid=NOT_KNOWN), Counters(), CpuGaps(trace), cpu_starts(trace)

    def add(ended: Ended, wrong: np.ndarray | bool) -> None:
        pid = ended.began["pid"]
        wrong = wrong | gaps.touch(spans.keys.values[ended.group], ended.start, ended.end)
        for name, rows in (("busy", ~wrong & (pid != 0)), ("idle", ~wrong & (pid == 0)), ("unknown", wrong)):
            counters.add(name, ended.group[rows], ended.duration[rows])

    for t in view.iterate(["common_ts", "common_cpu", "prev_pid", "next_pid"], step_size=STEP):
        cpus, rows = np.unique(t["common_cpu"], return_index=True)
        since = np.array([starts[cpu] for cpu in cpus.tolist()], np.int64)
        spans.begin(cpus, since, pid=t["prev_pid"][rows])
        layout, ended = spans.step(t["common_cpu"], t["common_ts"], pid=t["next_pid"])
        left = t["prev_pid"][layout.order][ended.place]
        add(ended, left != ended.began["pid"])
        counters.add("switches", layout.group)
    end = trace.end
    add(spans.open(0 if end is None else end), False)
    return busy_table(trace, spans.keys, counters)


def busy_table(trace: Trace, keys: Keys, counters: Counters) -> Table:
    n = len(keys)
    busy, idle, unknown, switches = (counters.of(name, n) for name in ("busy", "idle", "unknown", "switches"))
    span = busy + idle + unknown
    in_ns = trace.info["clock_unit"] == "ns"
    with np.errstate(invalid="ignore", divide="ignore"):
        known = np.where(busy + idle > 0, busy + idle, np.nan)
        rate = np.where((span > 0) & in_ns, switches * 1e9 / span, np.nan)
        made = table({"cpu": keys.values.astype(np.int64), "busy": busy, "idle": idle, "unknown": unknown,
                      "busy_share": busy / known, "idle_share": idle / known, "switches": switches,
                      "switches_per_second": rate})
    return rows_of(made, np.argsort(made["cpu"]))
