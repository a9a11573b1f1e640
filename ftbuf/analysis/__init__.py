"""Analyses: each a function that takes a trace and returns a Table, or a few of them, in bounded memory."""

from __future__ import annotations

from .calltree import call_tree, folded
from .losses import Losses, losses, rates
from .profile import function_profile, trace_stat
from .wakeup import WakeupLatency, wakeup_latency

__all__ = [
    "Losses",
    "WakeupLatency",
    "call_tree",
    "folded",
    "function_profile",
    "losses",
    "rates",
    "trace_stat",
    "wakeup_latency",
]
