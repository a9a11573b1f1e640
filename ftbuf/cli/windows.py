"""Options that narrow a recording: times, CPUs and buffers."""

from __future__ import annotations

import argparse
from decimal import Decimal, InvalidOperation
from typing import Any

from ..trace import Trace
from .common import usage_errors

NS = 1_000_000_000
CPUS, PIDS = 1 << 16, 1 << 31  # what their numbers are below
MOST_IN_RANGE = 1 << 16


def add_time_arguments(parser: argparse.ArgumentParser) -> None:
    time = "nanoseconds, or seconds with a decimal point; +TIME counts from the first event"
    parser.add_argument("--start", type=parse_time, metavar="TIME", help=f"events from this time on: {time}")
    parser.add_argument("--end", type=parse_time, metavar="TIME", help="events before this time")


def add_cpu_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cpu", action="append", type=cpu_list, metavar="LIST", help="only these CPUs: 0,2-3")


def add_buffer_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--buffer", action="append", metavar="NAME", help="only these buffers, as ftbuf info names them "
                        "(default: the first that has the events, with the other parts of the same recording)")


def times(options: argparse.Namespace, trace: Trace) -> tuple[int | None, int | None]:
    """--start and --end."""
    return absolute(options.start, trace), absolute(options.end, trace)


def cpus(options: argparse.Namespace) -> list[int] | None:
    """--cpu; None: all."""
    return None if options.cpu is None else [cpu for listed in options.cpu for cpu in listed]


def narrowed(trace: Trace, options: argparse.Namespace, **more: Any) -> Trace:
    """The times and buffers of the options; ``more`` as of Trace.window."""
    with usage_errors():
        return trace.window(*times(options, trace), buffer=options.buffer, **more)


def absolute(time: tuple[int, bool] | None, trace: Trace) -> int | None:
    """A time that may count from the first event."""
    if time is None:
        return None
    ns, relative = time
    return ns + (trace.start or 0) if relative else ns


def parse_time(text: str) -> tuple[int, bool]:
    """"123" ns, "1.5" seconds, "+0.25" seconds from the start: (ns, whether it counts from the start)."""
    digits = text.removeprefix("+")
    try:
        return (exact_ns(digits) if "." in digits else int(digits)), text.startswith("+")
    except (ValueError, InvalidOperation):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: 123456 (ns), 1.25 (seconds), +0.5") from None


def exact_ns(text: str) -> int:
    value = Decimal(text) * NS
    if not value.is_finite() or abs(value) > 1 << 63:
        raise ValueError(text)
    return int(value)


def cpu_list(text: str) -> list[int]:
    """"0,2-3" -> [0, 2, 3]."""
    return number_list(text, "CPUs", CPUS)


def pid_list(text: str) -> list[int]:
    return number_list(text, "pids", PIDS)


def number_list(text: str, what: str, limit: int) -> list[int]:
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise argparse.ArgumentTypeError(f"{text!r} is not a list of {what}: 0,2-3")
        low, high = int(first), int(last or first)
        if max(low, high) >= limit:
            raise argparse.ArgumentTypeError(f"{part!r}: {what} have numbers below {limit}")
        if not low <= high < low + MOST_IN_RANGE:
            raise argparse.ArgumentTypeError(f"{part!r} is not a range of 1 to {MOST_IN_RANGE} {what}")
        numbers += range(low, high + 1)
    return numbers
