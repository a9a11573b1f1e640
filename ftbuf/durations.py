"""Lengths of time as the kernel prints them."""

from __future__ import annotations


def duration_text(ns: int) -> bytes:
    """Seven digits of microseconds and the unit (K:trace_functions_graph.c trace_print_graph_duration)."""
    whole = b"%d" % (ns // 1000)
    digits = whole if len(whole) >= 7 else whole + (b".%03d" % (ns % 1000))[: 8 - len(whole)]
    return digits + b" us " + b" " * (8 - len(digits))
