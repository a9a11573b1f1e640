"""ftbuf tasks FILE: what tasks and CPUs did with their time; interrupts, system calls, idle states, frequencies, noise."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ..analysis.cpus import cpu_busy
from ..analysis.irqs import irq_time
from ..analysis.osnoise import BUCKET_SIZE, ENTRIES, Noise, check_buckets, noise
from ..analysis.power import frequency_residency, idle_residency
from ..analysis.systemcalls import BY, syscalls
from ..analysis.tasks import task_states
from ..table import Table
from ..trace import Trace
from . import UsageError
from .common import at_least, opened, print_lines, say_nothing, usage_errors
from .plotfile import add_plot_argument, check_plot, save_plot
from .progress import Progress
from .rtlatext import histogram_lines, osnoise_lines, timerlat_lines
from .tables import (
    Clock,
    Column,
    clock_of,
    microseconds,
    one_decimal,
    percent,
    print_json,
    seconds,
    table_lines,
)
from .windows import add_buffer_argument, add_time_arguments, narrowed

NAME = "tasks"
HELP = "what tasks did with their time; --what: CPUs, interrupts, system calls, idle states, frequencies, noise"

MOST = 40
HISTOGRAMS = ("timerlat", "samples")  # tables of noise that --histogram draws
NS_CLOCK = Clock("us", microseconds, seconds)
Shown = Mapping[str, Column]


@dataclass(frozen=True, slots=True)
class What:
    """One of the things that the command shows: tables by title, columns for the terminal, or a text of its own."""

    tables: Callable[[Trace, argparse.Namespace], dict[str, Table]]
    columns: Callable[[str, Clock], Shown]
    text: Callable[[dict[str, Table], Trace, argparse.Namespace], Iterator[str]] | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a trace.dat, or a tracefs-shaped directory")
    parser.add_argument("--what", choices=tuple(ALL), default="tasks", help="what to tell of (default: tasks)")
    parser.add_argument("--by-cpu", action="store_true", help="--what irqs: a row for each CPU")
    parser.add_argument("--by", choices=BY, default="call", help="--what syscalls: a row is a call (default), a task, or both")
    parser.add_argument("--histogram", action="store_true", help="--what noise: histograms, as rtla's of timerlat and osnoise")
    parser.add_argument("-b", "--bucket-size", type=at_least(1), metavar="US", help="of these histograms: microseconds of a line "
                        f"(default: {BUCKET_SIZE})")
    parser.add_argument("-E", "--entries", type=at_least(1), metavar="N", help="of these histograms: so many lines, what is "
                        f"longer counts as over (default: {ENTRIES})")
    parser.add_argument("--all", action="store_true", help=f"list all rows, not the first {MOST}")
    parser.add_argument("--json", action="store_true", help="one JSON object; times in ns, or in units of the clock")
    add_plot_argument(parser)
    add_time_arguments(parser)
    add_buffer_argument(parser)


def run(options: argparse.Namespace) -> int:
    what = ALL[options.what]
    if options.histogram and options.what != "noise":
        raise UsageError("--histogram is for --what noise")
    if (options.bucket_size or options.entries) and not options.histogram and not (options.json and options.what == "noise"):
        raise UsageError("--bucket-size and --entries are for --histogram")
    with usage_errors():
        check_buckets(*buckets(options))
    check_plot(options)
    with opened(options.file) as (whole, said):
        trace = narrowed(whole, options)
        with Progress(NAME):
            tables = what.tables(trace, options)
        save_plot(options, lambda: draw(tables, options.what, trace))
        if options.json:
            print_json(tables)
        elif what.text is not None:
            print_lines(what.text(tables, trace, options))
        else:
            print_lines(lines(tables, what, clock_of(trace), most(options)))
        shown = [tables[name] for name in HISTOGRAMS] if options.histogram else tables.values()
        say_nothing(said, options.file, sum(found.num_rows for found in shown))
        return int(bool(said))


def draw(tables: dict[str, Table], what: str, trace: Trace) -> Any:
    from ..analysis import plots

    if what == "noise":
        return plots.noise(Noise(**tables))
    how = {"irqs": plots.handlers, "idle": plots.residency, "frequency": plots.residency, "cpus": plots.cpus,
           "syscalls": plots.syscalls, "tasks": plots.tasks}
    return how[what](tables[what], in_ns=trace.info["clock_unit"] == "ns")


def most(options: argparse.Namespace) -> int | None:
    """How many rows to list."""
    return None if options.all else MOST


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
    """These times are ns, or us, on any clock."""
    if title == "hwlat":
        return {"cpu": Column("CPU"), "samples": Column(), "max_inner": Column("max inner us"),
                "max_outer": Column("max outer us"), **plain("count", "nmi_count", "nmi_time")}
    return {**plain("kind", "id", "name"), **sample_columns(NS_CLOCK)}


def noise_text(tables: dict[str, Table], trace: Trace, options: argparse.Namespace) -> Iterator[str]:
    """What rtla has a layout for in that layout, the rest as tables."""
    ns = elapsed(trace)
    if options.histogram:
        size, entries = buckets(options)
        parts = [histogram_lines(tables[sums], tables["histogram"], tool, ns, size * entries)
                 for tool, sums in (("timerlat", "timerlat"), ("osnoise", "samples")) if tables[sums].num_rows]
    else:
        parts = [text(tables[title], ns) for title, text in (("osnoise", osnoise_lines), ("timerlat", timerlat_lines))
                 if tables[title].num_rows]
        rest = {title: tables[title] for title in ("hwlat", "sources") if tables[title].num_rows}
        parts += [chain([f"{title}:"], lines({title: found}, ALL["noise"], NS_CLOCK, most(options)))
                  for title, found in rest.items()]
    yield from (line for i, part in enumerate(parts) for line in ([""] * (i > 0) + list(part)))
    if not parts:
        yield "none: nothing was measured" + (", of which there are histograms" if options.histogram else "")


def elapsed(trace: Trace) -> int:
    """Time from the first to the last record; 0 where the clock does not count ns."""
    start, end = trace.start, trace.end
    return 0 if start is None or end is None or trace.info["clock_unit"] != "ns" else end - start


def state_text(state: Any) -> str:
    return {-1: "busy", -2: "unknown"}.get(state, str(state))


# ---- what there is ----


def noise_tables(trace: Trace, options: argparse.Namespace) -> dict[str, Table]:
    size, entries = buckets(options)
    found = noise(trace, bucket_size=size, entries=entries)
    return {name: getattr(found, name) for name in Noise.__dataclass_fields__}


def buckets(options: argparse.Namespace) -> tuple[int, int]:
    """Size and number."""
    return options.bucket_size or BUCKET_SIZE, options.entries or ENTRIES


ALL = {
    "tasks": What(lambda trace, _: {"tasks": task_states(trace)}, task_columns),
    "cpus": What(lambda trace, _: {"cpus": cpu_busy(trace)}, cpu_columns),
    "irqs": What(lambda trace, options: {"irqs": irq_time(trace, by_cpu=options.by_cpu)}, irq_columns),
    "syscalls": What(lambda trace, options: {"syscalls": syscalls(trace, by=options.by)}, syscall_columns),
    "idle": What(lambda trace, _: {"idle": idle_residency(trace)}, residency_columns),
    "frequency": What(lambda trace, _: {"frequency": frequency_residency(trace)}, residency_columns),
    "noise": What(noise_tables, noise_columns, noise_text),
}
