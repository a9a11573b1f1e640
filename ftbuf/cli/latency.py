"""ftbuf latency FILE: how long tasks wait to run, and how long the kernel was held up."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from ..analysis import WakeupLatency, wakeup_latency
from ..analysis.tables import beside
from ..table import Table
from .common import opened
from .tables import Clock, Column, clock_of, print_json, print_lines, table_lines
from .windows import add_cpu_argument, add_time_arguments, cpus, times

NAME = "latency"
HELP = "wakeup latency of tasks: from sched_waking (or sched_wakeup) to the switch that runs them"

TIMES = ("min", "last", "mean", "max")
TITLES = {"last": "act", "mean": "avg"}  # as cyclictest calls them
COMPARED = ("count", "mean", "p99", "max")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a trace.dat, or a tracefs-shaped directory")
    parser.add_argument("--versus", metavar="FILE", help="set another recording beside it: tracing on and off, say")
    parser.add_argument("--by", choices=("task", "comm", "cpu", "prio"), help="a row of the table is: a task (default), "
                        "a name (default with --versus), the CPU a task ran on, a priority as the kernel counts it")
    parser.add_argument("-e", "--event", help="take wakeups from this event: sched_waking (default), sched_wakeup")
    parser.add_argument("-n", "--worst", type=int, default=10, metavar="N", help="list the N longest (default: 10)")
    parser.add_argument("--json", action="store_true", help="one JSON object; times in ns")
    add_time_arguments(parser)
    add_cpu_argument(parser)


def run(options: argparse.Namespace) -> int:
    found = measured(options.file, options)
    if options.versus is None:
        show(found, options)
        return int(found.damaged)
    other = measured(options.versus, options)
    compare(found, other, options)
    return int(found.damaged or other.damaged)


@dataclass(frozen=True, slots=True)
class Measured:
    """One file's result."""

    path: str
    result: WakeupLatency
    clock: Clock
    damaged: bool


def measured(path: str, options: argparse.Namespace) -> Measured:
    by = options.by or ("task" if options.versus is None else "comm")
    with opened(path) as (trace, said):
        found = wakeup_latency(trace.window(*times(options, trace)), by=by, event=options.event, cpus=cpus(options),
                               worst=max(options.worst, 0))
        return Measured(path, found, clock_of(trace), bool(said))


def show(measured: Measured, options: argparse.Namespace) -> None:
    found = measured.result
    if options.json:
        print_json({"event": found.event, "by": found.by, "latency": found.table, "worst": found.worst,
                    "open": found.open, "running": found.running})
        return
    print_lines(wakeup_lines(found, measured.clock))


def wakeup_lines(found: WakeupLatency, clock: Clock) -> Iterator[str]:
    yield f"Wakeup latency by {found.by}, in {clock.unit}: from {found.event} to sched_switch"
    yield from table_lines(found.table, shown(found.table, clock))
    if found.worst.num_rows:
        yield f"\nThe {found.worst.num_rows} longest:"
        yield from table_lines(found.worst, {
            "latency": Column(clock.unit, clock.duration), "woken_at": Column("woken at", clock.time),
            "ran_at": Column("ran at", clock.time), "pid": Column(), "comm": Column(), "prio": Column(), "cpu": Column(),
            "from_cpu": Column("from"), "waker_pid": Column("waker"), "waker_cpu": Column("on cpu")})
    if found.open.num_rows:
        yield f"\nStill waiting at the end: {found.open.num_rows}"
        yield from table_lines(found.open, {
            "pid": Column(), "comm": Column(), "woken_at": Column("woken at", clock.time),
            "waited": Column(clock.unit, clock.duration), "waker_pid": Column("waker"), "waker_cpu": Column("on cpu")}, most=10)
    if found.running:
        yield f"\n{found.running} wakeups of tasks that were running are left out"
    lost = int(found.table["lost"].sum())
    if lost:
        yield f"\n{lost} latencies are not counted: records were lost inside"


def shown(table: Table, clock: Clock) -> dict[str, Column]:
    """All columns, under the names that cyclictest gives them; what is 0 in every row is left out."""
    columns = {}
    for name in table:
        is_time = name in TIMES or (name[:1] == "p" and name[1:2].isdigit())
        if name in ("migrated", "repeated", "lost") and not table[name].any():
            continue
        columns[name] = Column(TITLES.get(name, name), clock.duration if is_time else None)
    return columns


def compare(a: Measured, b: Measured, options: argparse.Namespace) -> None:
    key = a.result.table.column_names[0]
    both = beside(a.result.table, b.result.table, key, COMPARED)
    if options.json:
        print_json({"a": a.path, "b": b.path, "by": a.result.by, "latency": both})
        return
    clock = a.clock
    print(f"Wakeup latency by {a.result.by}, in {clock.unit}: a is {a.path}, b is {b.path}")
    columns = {key: Column()}
    for name in COMPARED:
        text = None if name == "count" else clock.duration
        columns |= {f"{name}_{side}": Column(f"{TITLES.get(name, name)} {side}", text) for side in "ab"}
    print_lines(table_lines(both, columns))
