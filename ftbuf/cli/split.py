"""ftbuf split FILE -o OUT: a window, some CPUs, events or tasks of a recording; or all of it in parts."""

from __future__ import annotations

import argparse
import sys
from decimal import Decimal, InvalidOperation

from ..rewrite import split
from ..trace import Trace
from .common import opened
from .convert import add_output_arguments

NAME = "split"
HELP = "write part of a recording as trace.dat: a time window, CPUs, events, tasks, buffers; or all of it in parts"

NS = 1_000_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a trace.dat, or a tracefs-shaped directory")
    time = "nanoseconds, or seconds with a decimal point; +TIME counts from the first event"
    parser.add_argument("--start", type=parse_time, metavar="TIME", help=f"events from this time on: {time}")
    parser.add_argument("--end", type=parse_time, metavar="TIME", help="events before this time")
    parser.add_argument("--cpu", action="append", type=cpu_list, metavar="LIST", help="only these CPUs: 0,2-3")
    parser.add_argument("-e", "--event", action="append", help="only this event, or those of a pattern: sched_*, irq:*")
    parser.add_argument("-P", "--pid", action="append", type=int, help="only events of this task")
    parser.add_argument("-B", "--buffer", action="append", help="only this buffer; '' is the top one")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("-n", "--parts", type=positive, metavar="N",
                       help="write N files, OUT.1 to OUT.N, each of the same stretch of time")
    parts.add_argument("-s", "--every", type=seconds, metavar="SECONDS",
                       help="write files of so many seconds each, OUT.1 and so on")
    add_output_arguments(parser)


def run(options: argparse.Namespace) -> int:
    with opened(options.file) as (trace, said):
        unknown = sorted(set(options.buffer or ()) - set(trace.buffers))
        if unknown:
            print(f"ftbuf split: no buffer named {unknown[0]!r}; there are {trace.buffers}", file=sys.stderr)
            return 2
        cpus = None if options.cpu is None else [cpu for cpus in options.cpu for cpu in cpus]
        split(trace, options.output, start=absolute(options.start, trace), end=absolute(options.end, trace), cpus=cpus,
              events=options.event, pids=options.pid, buffers=options.buffer, parts=options.parts, every=options.every,
              version=options.version, compression=options.compression, errors="warn")
        return int(bool(said))


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


def seconds(text: str) -> int:
    try:
        ns = exact_ns(text)
    except (ValueError, InvalidOperation):
        ns = 0
    if ns < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return ns


def positive(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def cpu_list(text: str) -> list[int]:
    """"0,2-3" -> [0, 2, 3]."""
    cpus: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()) or int(last or first) >= 1 << 16:
            raise argparse.ArgumentTypeError(f"{text!r} is not a list of CPUs: 0,2-3")
        cpus += range(int(first), int(last or first) + 1)
    return cpus
