"""ftbuf split FILE -o OUT: a window, some CPUs, events or tasks of a recording; or all of it in parts."""

from __future__ import annotations

import argparse
from decimal import InvalidOperation

from ..rewrite import split
from .common import opened, usage_errors
from .convert import add_output_arguments, check_output
from .progress import Progress
from .windows import add_cpu_argument, add_time_arguments, cpus, exact_ns, times

NAME = "split"
HELP = "write part of a recording as trace.dat: a time window, CPUs, events, tasks, buffers; or all of it in parts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a trace.dat, or a tracefs-shaped directory")
    add_time_arguments(parser)
    add_cpu_argument(parser)
    parser.add_argument("-e", "--event", action="append", help="only this event, or those of a pattern: sched_*, irq:*")
    parser.add_argument("-P", "--pid", action="append", type=int, help="only events of this task")
    parser.add_argument("-B", "--buffer", action="append", help="only this buffer; '' is the top one")
    parser.add_argument("--where", metavar="FILTER", help="only records that match: 'prev_pid != 0'")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("-n", "--parts", type=positive, metavar="N",
                       help="write N files, OUT.1 to OUT.N, each of the same stretch of time")
    parts.add_argument("-s", "--every", type=seconds, metavar="SECONDS",
                       help="write files of so many seconds each, OUT.1 and so on")
    add_output_arguments(parser)


def run(options: argparse.Namespace) -> int:
    with opened(options.file) as (trace, said), usage_errors():
        check_output(options.version or getattr(trace.recording.container, "version", None), options)
        start, end = times(options, trace)
        with Progress(NAME):
            split(trace, options.output, start=start, end=end, cpus=cpus(options),
                  events=options.event, pids=options.pid, buffers=options.buffer, parts=options.parts, every=options.every,
                  version=options.version, compression=options.compression, errors="warn", where=options.where)
        return int(bool(said))


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
