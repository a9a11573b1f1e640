"""How busy CPUs were."""

from __future__ import annotations

import numpy as np

from ..table import Table
from ..trace import Trace
from .sched import SWITCH, one_buffer, require_events
from .schedtimes import SchedTimes
from .tables import table
from .wanted import check_trace


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
    check_trace(trace)
    require_events(trace, [SWITCH], "how busy CPUs are")
    trace = one_buffer(trace, [SWITCH])
    _, rows = SchedTimes(trace, of_tasks=False).add_up()
    cpus = np.flatnonzero(rows["switches"])
    rows = rows[cpus]
    busy, idle, unknown, switches = (rows[name].astype(np.int64) for name in ("busy", "idle", "unknown", "switches"))
    span = busy + idle + unknown
    in_ns = trace.info["clock_unit"] == "ns"
    known = np.where(busy + idle > 0, busy + idle, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = np.where((span > 0) & in_ns, switches * 1e9 / span, np.nan)
    return table({"cpu": cpus.astype(np.int64), "busy": busy, "idle": idle, "unknown": unknown, "busy_share": busy / known,
                  "idle_share": idle / known, "switches": switches, "switches_per_second": rate})
