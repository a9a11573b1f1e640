"""ftbuf tasks FILE: what tasks and CPUs did with their time; interrupts, system calls, idle states, frequencies, noise."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..analysis.cpus import cpu_busy
from ..analysis.irqs import irq_time
from ..analysis.osnoise import noise
from ..analysis.power import frequency_residency, idle_residency
from ..analysis.systemcalls import BY, syscalls
from ..analysis.tasks import task_states
from ..table import Table
from ..trace import Trace
from .common import opened
from .tables import (
    Clock,
    Column,
    clock_of,
    microseconds,
    one_decimal,
    percent,
    print_json,
    print_lines,
    seconds,
    table_lines,
)
from .windows import add_time_arguments, times

NAME = "tasks"
HELP = "what tasks did with their time; --what: CPUs, interrupts, system calls, idle states, frequencies, noise"

MOST = 40
Shown = Mapping[str, Column]


@dataclass(frozen=True, slots=True)
class What:
    """One of the things that the command shows: tables by title, and columns for the terminal."""

    tables: Callable[[Trace, argparse.Namespace], dict[str, Table]]
    columns: Callable[[str, Clock], Shown]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a trace.dat, or a tracefs-shaped directory")
    parser.add_argument("--what", choices=tuple(ALL), default="tasks", help="what to tell of (default: tasks)")
    parser.add_argument("--by-cpu", action="store_true", help="--what irqs: a row for each CPU")
    parser.add_argument("--by", choices=BY, default="call", help="--what syscalls: a row is a call (default), a task, or both")
    parser.add_argument("--all", action="store_true", help=f"list all rows, not the first {MOST}")
    parser.add_argument("--json", action="store_true", help="one JSON object; times in ns, or in units of the clock")
    add_time_arguments(parser)


def run(options: argparse.Namespace) -> int:
    what = ALL[options.what]
    with opened(options.file) as (whole, said):
        trace = whole.window(*times(options, whole))
        tables = what.tables(trace, options)
        if options.json:
            print_json(tables)
        else:
            print_lines(lines(tables, what, clock_of(trace), None if options.all else MOST))
        return int(bool(said))


def lines(tables: Mapping[str, Table], what: What, clock: Clock, most: int | None) -> Iterator[str]:
    """The tables that have rows (all, if none has any), with their titles where there are several."""
    shown = {title: found for title, found in tables.items() if found.num_rows} or tables
    for i, (title, found) in enumerate(shown.items()):
        if len(shown) > 1:
            yield f"{title}:" if not i else f"\n{title}:"
        columns = what.columns(title, clock)
        yield from table_lines(found, {name: how for name, how in columns.items() if name in found}, most=most)


# ---- columns on the terminal ----


def durations(clock: Clock, *names: str) -> dict[str, Column]:
    return {name: Column(f"{name} {clock.unit}", clock.duration) for name in names}


def plain(*names: str) -> dict[str, Column]:
    return {name: Column() for name in names}


def task_columns(_: str, clock: Clock) -> Shown:
    return {**plain("pid", "comm"), **durations(clock, "run", "runnable", "sleep", "disk", "stopped", "unknown"),
            **plain("runs", "preempted", "migrations", "state")}


def cpu_columns(_: str, clock: Clock) -> Shown:
    return {"cpu": Column("CPU"), "busy_share": Column("busy %", percent), "idle_share": Column("idle %", percent),
            **durations(clock, "busy", "idle", "unknown"), "switches": Column(),
            "switches_per_second": Column("switches/s", one_decimal)}


def sample_columns(clock: Clock) -> Shown:
    return {"count": Column(), **durations(clock, "time", "self", "mean", "min", "max"),
            **{name: Column(f"{name} {clock.unit}", clock.duration) for name in ("p50", "p99")}}


def irq_columns(_: str, clock: Clock) -> Shown:
    return {**plain("kind", "id", "name", "cpu"), **sample_columns(clock), **plain("lost", "open")}


def syscall_columns(_: str, clock: Clock) -> Shown:
    return {**plain("pid", "comm", "id", "name"), **sample_columns(clock), **plain("errors", "lost", "open")}


def residency_columns(_: str, clock: Clock) -> Shown:
    return {"cpu": Column("CPU"), "state": Column(text=state_text), "frequency": Column("kHz", state_text),
            "share": Column("share %", percent), "count": Column(), **durations(clock, "time", "mean", "max")}


def noise_columns(title: str, _: Clock) -> Shown:
    """In the order of rtla's tables; these times are ns, or us, on any clock."""
    clock = Clock("us", microseconds, seconds)
    if title == "osnoise":
        return {"cpu": Column("CPU"), "periods": Column("period"), "runtime": Column("runtime us"),
                "noise": Column("noise us"), "available": Column("% CPU aval", five_decimals),
                "max_noise": Column("max noise us"), "max_single": Column("max single us"),
                **plain("hw", "nmi", "irq", "softirq", "thread")}
    if title == "timerlat":
        return {"cpu": Column("CPU"), "context": Column(), "count": Column(), **durations(clock, "last", "min", "mean", "max")}
    if title == "hwlat":
        return {"cpu": Column("CPU"), "samples": Column(), "max_inner": Column("max inner us"),
                "max_outer": Column("max outer us"), **plain("count", "nmi_count", "nmi_time")}
    return {**plain("kind", "id", "name"), **sample_columns(clock)}


def five_decimals(share: Any) -> str:
    return "-" if share != share else f"{100 * share:.5f}"


def state_text(state: Any) -> str:
    return {-1: "busy", -2: "unknown"}.get(state, str(state))


# ---- what there is ----


def noise_tables(trace: Trace, _: argparse.Namespace) -> dict[str, Table]:
    found = noise(trace)
    return {"osnoise": found.osnoise, "timerlat": found.timerlat, "hwlat": found.hwlat, "sources": found.sources}


ALL = {
    "tasks": What(lambda trace, _: {"tasks": task_states(trace)}, task_columns),
    "cpus": What(lambda trace, _: {"cpus": cpu_busy(trace)}, cpu_columns),
    "irqs": What(lambda trace, options: {"irqs": irq_time(trace, by_cpu=options.by_cpu)}, irq_columns),
    "syscalls": What(lambda trace, options: {"syscalls": syscalls(trace, by=options.by)}, syscall_columns),
    "idle": What(lambda trace, _: {"idle": idle_residency(trace)}, residency_columns),
    "frequency": What(lambda trace, _: {"frequency": frequency_residency(trace)}, residency_columns),
    "noise": What(noise_tables, noise_columns),
}
