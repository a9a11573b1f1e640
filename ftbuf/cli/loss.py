"""ftbuf loss FILE: what a recording holds and lacks: events, bytes and losses per CPU and kind of event, and over time."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from ..analysis.loss import Losses, losses, lost_rates, rates
from ..analysis.tables import stacked, table
from ..survey import encoded
from ..table import Table
from ..trace import Trace
from . import UsageError
from .common import at_least, opened, print_lines, say_damage, say_nothing, usage_errors
from .plotfile import add_plot_argument, check_plot, save_plot
from .progress import Progress
from .tables import Column, clock_of, one_decimal, percent, print_json, table_lines
from .windows import add_buffer_argument, add_cpu_argument, add_time_arguments, cpus, narrowed

NAME = "loss"
HELP = "per CPU and event: how many, bytes, events lost; --bins: over time"

MOST = 20
DRAWN_BINS = 200
UNKNOWN = "of unknown size"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a trace.dat, or a tracefs-shaped directory")
    parser.add_argument("--bins", type=at_least(1), metavar="N", help="events and losses in N stretches of time")
    parser.add_argument("--by", choices=("cpu", "event"), help="with --bins or --plot: of each CPU, or kind of event, by itself")
    parser.add_argument("--all", action="store_true", help=f"list all kinds of events, not the {MOST} largest")
    parser.add_argument("--json", action="store_true", help="one JSON object; times in ns, or in units of the clock")
    add_plot_argument(parser)
    add_time_arguments(parser)
    add_buffer_argument(parser)
    add_cpu_argument(parser)


def run(options: argparse.Namespace) -> int:
    check_plot(options)
    if options.by is not None and options.bins is None and options.plot is None:
        raise UsageError("--by is for --bins and --plot")
    with opened(options.file) as (whole, said):
        trace = narrowed(whole, options, cpus=cpus(options))
        with Progress(NAME), usage_errors():
            found = losses(trace)
            over_time = None if options.bins is None else rates(trace, bins=options.bins, by=options.by)
            save_plot(options, lambda: draw(options, trace, found))
        if options.json:
            print_json({"cpus": found.cpus, "total": found.total, "events": found.events}
                       | ({} if over_time is None else {"rates": over_time}))
        else:
            time = Column(text=clock_of(trace).time)
            print_lines(lines(found, None if options.all else MOST))
            if over_time is not None:
                print_lines(["", *table_lines(over_time, rate_columns(over_time, time))])
        say_damage(trace, said)
        say_nothing(said, options.file, sum(int(found.total[name][0]) for name in ("events", "gaps")))
        return int(bool(said))


def draw(options: argparse.Namespace, trace: Trace, found: Losses) -> Any:
    from ..analysis import plots

    bins = options.bins or DRAWN_BINS
    lost = lost_rates(trace, bins=bins) if options.by == "event" else None
    return plots.rates(rates(trace, bins=bins, by=options.by), found, lost=lost, in_ns=trace.info["clock_unit"] == "ns")


def lines(found: Losses, most: int | None) -> Iterator[str]:
    yield from table_lines(with_total(found), {
        "buffer": Column(), "cpu": Column("CPU"), "events": Column(), "bytes": Column(),
        "bytes_per_event": Column("bytes/event", one_decimal), "events_per_second": Column("events/s", one_decimal),
        "lost": Column(), "gaps": Column(), "unknown_gaps": Column(UNKNOWN),
        "lost_share": Column("lost %", percent), "entries": Column(text=known), "overrun": Column(text=known),
        "dropped_events": Column("dropped", known), "read_events": Column("read", known)})
    yield from notes(found)
    yield ""
    yield from table_lines(found.events, {
        "event": Column(), "count": Column(), "bytes": Column(), "share": Column("bytes %", percent),
        "bytes_per_event": Column("bytes/event", one_decimal)}, most=most)


def with_total(found: Losses) -> Table:
    """The rows of CPUs, and one of all."""
    names = [name for name in found.cpus if name not in ("buffer", "cpu")]
    cpu = [str(value) for value in found.cpus["cpu"].tolist()]
    own = table({"buffer": found.cpus.column("buffer"), "cpu": encoded(cpu), **{n: found.cpus[n] for n in names}})
    return stacked([own, table({"buffer": [""], "cpu": ["all"], **{n: found.total[n] for n in names}})])


def notes(found: Losses) -> Iterator[str]:
    """What the counts of the recording do not say, and the kernel's counters do."""
    lost, unknown, overrun, dropped = (int(found.total[name][0])
                                       for name in ("lost", "unknown_gaps", "overrun", "dropped_events"))
    if unknown and overrun > lost:
        yield f"overwritten by the kernel's count: {overrun}, up to {overrun - lost} of them in gaps of unknown size"
    if dropped > 0:
        yield f"dropped because the buffer was full: {dropped}, of which records have no mark"


def rate_columns(found: Table, time: Column) -> dict[str, Column]:
    """All but where a stretch ends: where the next begins."""
    shown = {"start": time, "common_cpu": Column("CPU"), "per_second": Column("events/s", one_decimal),
             "unknown_gaps": Column(UNKNOWN)}
    return {name: shown.get(name, Column()) for name in found if name != "end"}


def known(counter: Any) -> str:
    return "-" if counter < 0 else str(counter)
