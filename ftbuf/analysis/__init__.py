"""Analyses: each a function that takes a trace and returns a Table, or a few of them, in bounded memory.

Of several buffers with the events that an analysis needs (instances, files of several machines) it looks at the first, and names
the others in a BufferWarning; ``trace.window(buffer=...)`` chooses. Parts of one recording in several files are looked at together.
"""

from __future__ import annotations

from . import plots as plots
from .calltree import call_tree, folded
from .cpus import cpu_busy
from .critical import CriticalSections, critical_sections
from .irqs import irq_time
from .loss import Losses, losses, lost_rates, rates
from .osnoise import Noise, noise
from .power import frequency_residency, idle_residency
from .profile import function_profile, trace_stat
from .systemcalls import syscalls
from .tasks import task_states
from .tracers import LatencyReport, latency_report, latency_tracer
from .wakeup import WakeupLatency, wakeup_latency

__all__ = [
    "CriticalSections",
    "LatencyReport",
    "Losses",
    "Noise",
    "WakeupLatency",
    "call_tree",
    "cpu_busy",
    "critical_sections",
    "folded",
    "frequency_residency",
    "function_profile",
    "idle_residency",
    "irq_time",
    "latency_report",
    "latency_tracer",
    "losses",
    "lost_rates",
    "noise",
    "rates",
    "syscalls",
    "task_states",
    "trace_stat",
    "wakeup_latency",
]
