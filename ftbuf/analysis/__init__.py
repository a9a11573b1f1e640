"""Analyses: each a function that takes a trace and returns a Table, or a few of them, in bounded memory."""

from __future__ import annotations

from .calltree import call_tree, folded
from .critical import CriticalSections, critical_sections
from .losses import Losses, losses, rates
from .profile import function_profile, trace_stat
from .tracers import LatencyReport, latency_report, latency_tracer
from .wakeup import WakeupLatency, wakeup_latency

__all__ = [
    "CriticalSections",
    "LatencyReport",
    "Losses",
    "WakeupLatency",
    "call_tree",
    "critical_sections",
    "folded",
    "function_profile",
    "latency_report",
    "latency_tracer",
    "losses",
    "rates",
    "trace_stat",
    "wakeup_latency",
]
