"""ftbuf info FILE: what a recording is."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ..trace import Trace
from .common import as_json, opened, print_lines

NAME = "info"
MOST = 10  # damaged places that are listed
HELP = "say what a recording is: kernel, clock, CPUs, time range, events with counts, lost, damaged"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="+", help="a trace.dat, or a tracefs-shaped directory")
    parser.add_argument("--where", metavar="FILTER", help="count only records that match: 'prev_pid != 0'")
    parser.add_argument("--json", action="store_true", help="one JSON object per file")


def run(options: argparse.Namespace) -> int:
    damaged = False
    for path in options.file:
        with opened(path) as (whole, _):
            trace = whole.window(where=options.where)
            if options.json:
                details = {**trace.info, "start": trace.start, "end": trace.end, "events": trace.events,
                           "unknown_events": trace.unknown_events,
                           "lost": trace.lost.to_dict(), "problems": trace.problems.to_dict(),
                           "stats": trace.stats.to_dict()}
                print(as_json(details))
            else:
                print_lines([str(trace)])
                counts = sorted(trace.events.items(), key=lambda item: (-item[1], item[0]))
                print_lines(f"{count:>12} {name}" for name, count in counts)
                print_lines(problem_lines(trace))
            damaged |= trace.problems.num_rows > 0 or trace.unknown_events > 0
    return int(damaged)


def problem_lines(trace: Trace) -> Iterator[str]:
    table = trace.problems
    columns = (table[name][:MOST].tolist() for name in ("cpu", "buffer", "offset", "status", "bytes", "detail"))
    for cpu, buffer, offset, status, size, detail in zip(*columns, strict=True):
        yield f"damaged: CPU {cpu} {buffer + ' ' if buffer else ''}offset {offset:#x}: {status}, {size} bytes: {detail}"
    if table.num_rows > MOST:
        yield f"damaged: {table.num_rows - MOST} more places: see ftbuf check"
