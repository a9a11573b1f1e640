"""Analyses: each a function that takes a trace and returns a Table, or a few of them, in bounded memory."""

from .wakeup import WakeupLatency, wakeup_latency

__all__ = ["WakeupLatency", "wakeup_latency"]
