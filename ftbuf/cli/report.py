"""ftbuf report FILE: a recording as text, as trace-cmd's report or as the kernel's own trace file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from ..opening import together
from ..recording import Recording, option_values
from ..report import tracecmd
from ..report.columns import HARDIRQ, SOFTIRQ
from ..report.render import TraceCmdRequest
from ..report.texts import report_pieces
from ..table import near_names
from ..trace import Trace
from . import UsageError
from .common import opened, print_lines, say, usage_errors
from .progress import Progress
from .windows import cpu_list, pid_list

if TYPE_CHECKING:
    from ..filters import Filter

NAME = "report"
HELP = "print a recording as text, one line an event"
CHUNK = 1 << 16
TABLES = ("stat", "uname", "event_list", "printk", "first_event", "last_event")
# Those of trace-cmd that the text depends on, and those that are taken and change nothing here.
PLUGIN_OPTIONS = ("fgraph:tailprint", "fgraph:retval-skip", "fgraph:retval-dec", "fgraph:retval-hex", "fgraph:depth",
                  "ftrace:parent", "ftrace:indent", "ftrace:offset")
CHOOSING = ("filters", "comm", "event", "no_irqs", "no_softirqs")  # options that choose records by a filter


def frequency(text: str) -> int:
    hz = int(text)
    if not 0 < hz < 1 << 63:
        raise ValueError
    return hz


def shift(text: str) -> int:
    offset = int(text)
    if not -(1 << 62) < offset < 1 << 62:
        raise ValueError
    return offset


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="*", help="a trace.dat, or a tracefs-shaped directory; several are merged by time"
    )
    parser.add_argument("-i", dest="inputs", metavar="FILE", action="append", default=[], help="the same")
    parser.add_argument("-q", "--quiet", action="store_true", help="do not say on stderr what is damaged")
    parser.add_argument(
        "--style",
        choices=("trace-cmd", "kernel"),
        default="trace-cmd",
        help="layout: of trace-cmd's report (default), or of the kernel's trace file",
    )
    parser.add_argument("--buffer", choices=("main", "snapshot"), default="", help="kernel style: which buffer to show")
    parser.add_argument(
        "-O",
        dest="options",
        metavar="OPTION",
        action="append",
        default=[],
        help="kernel style: a trace option as in trace_options (sym-offset, norecord-tgid, latency-format, ...);"
        " else an option of a plugin (fgraph:tailprint)",
    )
    _add_columns(parser)
    _add_times(parser)
    _add_filters(parser)
    _add_tables(parser)


def _add_columns(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("columns")
    group.add_argument("-l", dest="latency", action="store_true", help="latency layout")
    group.add_argument("-t", dest="nanoseconds", action="store_true", help="full time stamps")
    group.add_argument("-R", dest="raw", action="store_true", help="fields instead of text for all events")
    group.add_argument(
        "-r",
        dest="raw_events",
        metavar="EVENT",
        action="append",
        default=[],
        help="fields instead of text for these events",
    )
    group.add_argument("-N", dest="no_plugins", action="store_true", help="the text of print formats alone")
    group.add_argument("-w", dest="wakeup", action="store_true", help="how long tasks waited from wakeup to switch, and a summary")


def _add_times(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("times")
    group.add_argument("--ts-offset", type=shift, default=0, metavar="N", help="add N to all time stamps")
    group.add_argument("--ts2secs", type=frequency, default=0, metavar="HZ", help="the clock counts HZ a second")
    group.add_argument("--ts-diff", action="store_true", help="also the time since the line before")
    group.add_argument("--align-ts", action="store_true", help="count from the first event")
    group.add_argument("--nodate", action="store_true", help="without the offset that trace-cmd record --date gave")
    group.add_argument("--raw-ts", action="store_true", help="time stamps as recorded")


class AddFilter(argparse.Action):
    """-F: a filter, and whether a -v stands before it."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        namespace.filters = [*namespace.filters, (values, namespace.inverting)]


def _add_filters(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("filters")
    for name, kind, what in (("--cpu", cpu_list, "CPUs (0,2-5), of the top buffer"),
                             ("--pid", pid_list, "tasks, by their pids")):
        group.add_argument(name, type=kind, metavar="LIST", action="append", default=[],
                           help=f"only these {what}; several add up")
    group.add_argument("--comm", metavar="NAME", action="append", default=[], help="only tasks of this name")
    group.add_argument("--event", metavar="NAME", action="append", default=[], help="only these events")
    group.add_argument(
        "-F",
        dest="filters",
        metavar="FILTER",
        action=AddFilter,
        default=[],
        help="only records that match: 'EVENT[,EVENT]:CONDITION', 'EVENT' or 'CONDITION'; of several, any",
    )
    group.add_argument(
        "-v", dest="inverting", action="store_true", help="show what the filters after it do not match"
    )
    group.add_argument("-T", dest="test_filters", action="store_true", help="check the filters, print them, and no events")
    group.add_argument("-I", dest="no_irqs", action="store_true", help="no events from interrupts")
    group.add_argument("-S", dest="no_softirqs", action="store_true", help="no events from soft interrupts")


def _add_tables(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("instead of events")
    group.add_argument("--stat", action="store_true", help="the kernel's counters of each CPU")
    group.add_argument("--uname", action="store_true", help="the kernel that was traced")
    group.add_argument("-E", "--events", dest="event_list", action="store_true", help="the events that are described")
    group.add_argument("-P", dest="printk", action="store_true", help="the strings of trace_printk")
    group.add_argument("--check-events", action="store_true",
                       help="the events whose print format cannot be understood; exit status 1 if there are any")
    group.add_argument("--first-event", action="store_true", help="time of each CPU's first event")
    group.add_argument("--last-event", action="store_true", help="time of each CPU's last event")


def run(options: argparse.Namespace) -> int:
    options.file = [*options.inputs, *options.file]
    if not options.file:
        raise UsageError("a file is needed: a trace.dat, or a tracefs-shaped directory")
    with opened(options.file if len(options.file) > 1 else options.file[0], quiet=options.quiet) as (trace, said):
        if options.check_events:
            from .events import refused

            failed = list(refused(trace, trace.values()))
            print_lines(f"{row['system']}:{row['name']}: {row['reason']}" for row in failed)
            return int(bool(failed or said))
        if options.test_filters:
            narrowed(trace, options)
            print_lines(text for text, _ in options.filters)
            return int(bool(said))
        write_all(report(trace, options))
        return int(bool(said))


def write_all(pieces: Iterable[bytes]) -> None:
    """To standard output, in large writes."""
    write = sys.stdout.buffer.write
    kept: list[bytes] = []
    size = 0
    with Progress(NAME, prints=True) as progress:
        for piece in pieces:
            kept.append(piece)
            size += len(piece)
            if size >= CHUNK:
                write(b"".join(kept))
                progress.add(size)
                kept.clear()
                size = 0
        write(b"".join(kept))
        progress.add(size)


def write_kernel_text(trace: Trace) -> None:
    """What the kernel's ``trace`` file would show, on standard output."""
    from ..report.kernelreport import KernelRequest

    write_all(report_pieces(trace, KernelRequest()))


def report(trace: Trace, options: argparse.Namespace) -> Iterator[bytes]:
    """The text that was asked for."""
    trace = narrowed(without_date(trace) if options.nodate else trace, options)
    if options.style == "kernel":
        from ..report.kernelreport import KernelRequest

        with usage_errors():
            return report_pieces(trace, KernelRequest(options.buffer, tuple(options.options)))
    if options.buffer:
        raise UsageError("--buffer is for --style kernel")
    request = trace_cmd_request(trace, options)
    return instead_of_events(trace, options, request) or report_pieces(trace, request)


def instead_of_events(trace: Trace, options: argparse.Namespace, request: TraceCmdRequest) -> Iterator[bytes] | None:
    """The table that was asked for; None: events."""
    if not any(getattr(options, name) for name in TABLES):
        return None
    from ..report import extras

    if options.stat:
        return extras.stat_text(trace)
    if options.uname:
        return extras.uname_text(trace)
    if options.event_list:
        return extras.events_text(trace)
    if options.printk:
        return extras.printk_text(trace)
    return extras.first_and_last_text(trace, request, options.file[0], first=options.first_event, last=options.last_event)


def without_date(trace: Trace) -> Trace:
    """The trace without what its DATE options add to time stamps."""
    def change(file: Recording) -> Recording:
        date = sum(option_values(file.container, "DATE")) * 1000  # microseconds
        return file.corrected(lambda own: replace(own, offset=own.offset - date))

    return Trace(together([change(file) for file in trace.recording.files]), trace.selection, errors=trace.errors)


def check_names(trace: Trace, options: argparse.Namespace) -> None:
    """-O names what there is. So should -r; but as with trace-cmd, it may stand in a command for several recordings."""
    events = sorted({event for _, event in trace.recording.format_index})
    for name in options.raw_events:
        if name not in events:
            say([], f"-r: {near_names('event', name, events)}", quiet=options.quiet)
    for word in options.options:
        if word.partition("=")[0] not in PLUGIN_OPTIONS:
            raise UsageError(near_names("option of a plugin", word, PLUGIN_OPTIONS))


def trace_cmd_request(trace: Trace, options: argparse.Namespace) -> TraceCmdRequest:
    check_names(trace, options)
    plugin = set(options.options)
    layout = tracecmd.Options(
        latency=options.latency,
        nanoseconds=options.nanoseconds,
        ts_diff=options.ts_diff,
        raw=options.raw,
        raw_events=tuple(options.raw_events),
        tail="fgraph:tailprint" in plugin,
        retval_skip="fgraph:retval-skip" in plugin,
        retval_dec="fgraph:retval-dec" in plugin,
        retval_hex="fgraph:retval-hex" in plugin,
    )
    return TraceCmdRequest(
        layout,
        not options.no_plugins,
        options.ts2secs,
        options.raw_ts,
        options.ts_offset,
        options.align_ts,
        options.wakeup,
    )


def narrowed(trace: Trace, options: argparse.Namespace) -> Trace:
    """A view of the CPUs and tasks that were asked for. As with trace-cmd, --cpu leaves only the top buffer."""
    if options.cpu:
        first = trace.buffers[0] if trace.buffers else None
        trace = trace.window(cpus=chain.from_iterable(options.cpu), buffer=first)
    if options.pid:
        trace = trace.window(pids=chain.from_iterable(options.pid))
    return filtered(trace, options) if any(getattr(options, name) for name in CHOOSING) else trace


def filtered(trace: Trace, options: argparse.Namespace) -> Trace:
    from ..filters import all_of  # the language is only brought in where it is used

    return trace.filtered(all_of(chosen_filters(options)))


def chosen_filters(options: argparse.Namespace) -> list[Filter]:
    """The options that choose records, as filters that must all match."""
    from ..filters import any_of, events_named, parse, tasks_named

    wanted = [parse(text) for text, inverted in options.filters if not inverted]
    unwanted = [parse(text) for text, inverted in options.filters if inverted]
    chosen = [any_of(wanted)] if wanted else []
    chosen += [~part for part in unwanted]
    if options.comm:
        chosen.append(tasks_named(options.comm))
    if options.event:
        chosen.append(events_named(options.event))
    if options.no_irqs:
        chosen.append(parse(f"!(common_flags & {HARDIRQ})"))
    if options.no_softirqs:
        chosen.append(parse(f"!(common_flags & {SOFTIRQ})"))
    return chosen
