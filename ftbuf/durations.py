"""Times and lengths of time as the kernel prints them."""

from __future__ import annotations


def duration_text(ns: int) -> bytes:
    """Seven digits of microseconds and the unit (K:trace_functions_graph.c trace_print_graph_duration)."""
    whole = b"%d" % (ns // 1000)
    digits = whole if len(whole) >= 7 else whole + (b".%03d" % (ns % 1000))[: 8 - len(whole)]
    return digits + b" us " + b" " * (8 - len(digits))


def seconds_text(time: int, digits: int = 9, width: int = 0) -> str:
    """A time stamp, in units of 10 ** -digits seconds, as seconds; the sign stands for all of it: -10 ns are -0.000000010."""
    seconds, rest = divmod(abs(time), 10**digits)
    return f"{'-' if time < 0 else ''}{seconds}".rjust(width) + f".{rest:0{digits}d}"
