"""ftbuf stat FILE: counters of each CPU."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..checkup import NO_BUFFERS
from ..percpu import CpuCounts, cpu_counts
from .common import as_json, opened, print_lines, say, say_damage
from .progress import Progress, page_count

NAME = "stat"
HELP = "per CPU: the kernel's counters, events, lost, bytes, events per second"

COLUMNS = ("cpu", "entries", "overrun", "dropped", "read", "events", "lost", "gaps", "pages", "bytes", "events/s")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a trace.dat, or a tracefs-shaped directory")
    parser.add_argument("--json", action="store_true", help="a JSON list")


def run(options: argparse.Namespace) -> int:
    with opened(options.file) as (trace, said):
        with Progress(NAME, page_count(trace.recording.container)):
            rows = cpu_counts(trace._open())
        if options.json:
            print(as_json([row.to_dict() for row in rows]))
        else:
            show(rows)
        if not rows and trace.text is None:
            say(said, f"{options.file}: {NO_BUFFERS}")
        say_damage(trace, said)
        return int(bool(said))


def show(rows: Sequence[CpuCounts]) -> None:
    for name in dict.fromkeys(row.buffer for row in rows):
        if name:
            print_lines([f"\nbuffer {name}:"])
        print("".join(f"{column:>12}" for column in COLUMNS))
        for row in rows:
            if row.buffer == name:
                print("".join(f"{cell:>12}" for cell in cells(row)))


def cells(row: CpuCounts) -> list[str]:
    kernel = [row.kernel.get(name) for name in ("entries", "overrun", "dropped events", "read events")]
    unknown = "?" if row.unknown_gaps else ""  # some gaps without a count
    rate = "-" if row.events_per_second is None else f"{row.events_per_second:.1f}"
    return [str(row.cpu), *("-" if value is None else str(value) for value in kernel), str(row.events),
            f"{row.lost}{unknown}", str(row.gaps), str(row.pages), str(row.bytes), rate]
