"""ftbuf latency FILE: how long tasks wait to run, and how long interrupts or preemption were off."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..analysis import (
    CriticalSections,
    WakeupLatency,
    critical_sections,
    latency_report,
    latency_tracer,
    wakeup_latency,
)
from ..analysis.tables import beside, coarse_histogram, stacked, table
from ..analysis.tracers import need_tracer
from ..trace import Trace
from .common import at_least, opened, print_lines, say_nothing, usage_errors
from .latencytext import TITLES, cyclictest_lines, histogram_lines, section_lines, shown, wakeup_lines
from .plotfile import add_plot_argument, check_plot, save_plot
from .progress import Progress
from .report import write_kernel_text
from .tables import Clock, Column, clock_of, print_json, table_lines
from .windows import add_buffer_argument, add_cpu_argument, add_time_arguments, cpus, narrowed

NAME = "latency"
HELP = "how long tasks wait to run, or interrupts or preemption were off; of a latency tracer's recording its longest latency"

BY = {"wakeup": ("task", "comm", "cpu", "prio"), "irq": ("caller", "cpu"), "preempt": ("caller", "cpu"), "tracer": ()}
FINENESS = 3  # of histograms that are drawn: eight buckets between a power of two and the next
COMPARED = ("count", "mean", "p99", "max")
IN_TOTAL = ("count", "min", "mean", "p50", "p90", "p99", "p99.9", "max")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a trace.dat, or a tracefs-shaped directory")
    parser.add_argument("--of", choices=tuple(BY), help="wakeup: from sched_waking (or sched_wakeup) to the switch that "
                        "runs the task; irq, preempt: between the events irq_disable and irq_enable, preempt_disable and "
                        "preempt_enable; tracer: what a latency tracer kept, as the kernel shows it (default: tracer where "
                        "a latency tracer made the recording, else wakeup)")
    parser.add_argument("--versus", metavar="FILE", help="set another recording beside it: tracing on and off, say")
    parser.add_argument("--by", choices=("task", "comm", "cpu", "prio", "caller"), help="a row of the table is: a task "
                        "(default of wakeup), a name (with --versus), a CPU, a priority as the kernel counts it, the "
                        "function that switched off (default of irq and preempt)")
    parser.add_argument("-e", "--event", help="wakeup: take wakeups from this event: sched_waking (default), sched_wakeup")
    parser.add_argument("-n", "--worst", type=at_least(0), default=10, metavar="N", help="list the N longest (default: 10)")
    parser.add_argument("--histogram", action="store_true",
                        help="also how often each latency was, by powers of two: of all, and by row")
    parser.add_argument("--cyclictest", action="store_true", help="wakeup, by task or CPU: the lines that cyclictest prints")
    parser.add_argument("--json", action="store_true", help="one JSON object; times in ns")
    add_plot_argument(parser)
    add_time_arguments(parser)
    add_buffer_argument(parser)
    add_cpu_argument(parser)


@dataclass(frozen=True, slots=True)
class Measured:
    """One file's result."""

    path: str
    of: str
    result: WakeupLatency | CriticalSections
    clock: Clock
    said: list[str]


def run(options: argparse.Namespace) -> int:
    check_plot(options)
    with opened(options.file) as (trace, said):
        of = options.of or ("tracer" if latency_tracer(trace) else "wakeup")
        wrong = misused(options, of)
        if wrong:
            print(f"ftbuf latency: {wrong}", file=sys.stderr)
            return 2
        if of == "tracer":
            show_tracer(trace, options)
            return int(bool(said))
        found = measured(options.file, trace, of, options, said)
    if options.versus is None:
        show(found, options)
        return end(found)
    with opened(options.versus) as (trace, said):
        other = measured(options.versus, trace, of, options, said)
    save_plot(options, lambda: draw(found, other))
    compare(found, other, options)
    return end(found, other)


def end(*all_of: Measured) -> int:
    """The exit status."""
    for found in all_of:
        say_nothing(found.said, found.path, found.result.table.num_rows)
    return int(any(found.said for found in all_of))


def misused(options: argparse.Namespace, of: str) -> str:
    """What is wrong with the options together."""
    if of == "tracer":
        given = [name for name in ("versus", "by", "event", "start", "end", "cpu", "buffer", "cyclictest")
                 if getattr(options, name) not in (None, False)]
        return f"a latency tracer's recording has one latency: --{given[0]} says nothing of it" if given else ""
    if options.by is not None and options.by not in BY[of]:
        return f"--by {options.by}: of {of} there are {', '.join(BY[of])}"
    if options.cyclictest and (of != "wakeup" or options.by not in (None, "task", "cpu") or options.versus is not None):
        return "--cyclictest is for --of wakeup, by task or CPU, of one recording"
    return "--event is for --of wakeup" if options.event is not None and of != "wakeup" else ""


def measured(path: str, trace: Trace, of: str, options: argparse.Namespace, said: list[str]) -> Measured:
    with Progress(NAME):
        return Measured(path, of, measure(trace, of, options), clock_of(trace), said)


def measure(trace: Trace, of: str, options: argparse.Namespace) -> WakeupLatency | CriticalSections:
    view, worst = narrowed(trace, options), options.worst
    fineness = FINENESS if options.plot else 0
    if options.event is not None:
        with usage_errors():
            trace[options.event]
    if of == "wakeup":
        by = options.by or ("task" if options.versus is None else "comm")
        return wakeup_latency(view, by=by, event=options.event, cpus=cpus(options), worst=worst, fineness=fineness)
    return critical_sections(view.window(cpus=cpus(options)), of, by=options.by or "caller", worst=worst, fineness=fineness)


def draw(*all_of: Measured) -> Any:
    from ..analysis import plots

    return plots.latency(*(m.result for m in all_of), labels=[m.path for m in all_of], in_ns=all_of[0].clock.unit == "us")


def show(found: Measured, options: argparse.Namespace) -> None:
    save_plot(options, lambda: draw(found))
    if options.json:
        print_json(fields(found.result) | {"histogram": coarse_histogram(found.result.histogram)})
    elif options.cyclictest and isinstance(found.result, WakeupLatency):
        print_lines(cyclictest_lines(found.result, found.clock))
    else:
        print_lines(lines(found))
        if options.histogram and found.result.table.num_rows:
            print_lines(histogram_lines(coarse_histogram(found.result.histogram), found.result.table, found.clock))


def lines(found: Measured) -> Iterator[str]:
    if isinstance(found.result, WakeupLatency):
        return wakeup_lines(found.result, found.clock)
    return section_lines(found.result, found.clock)


def fields(result: Any) -> dict[str, Any]:
    """For JSON: the attributes of a result."""
    return {name: getattr(result, name) for name in result.__dataclass_fields__}


def show_tracer(trace: Trace, options: argparse.Namespace) -> None:
    need_tracer(trace)
    found = latency_report(trace) if options.json or options.plot else None
    save_plot(options, lambda: draw_report(found, clock_of(trace)))
    if options.json:
        print_json(fields(found))
    else:
        write_kernel_text(trace)


def draw_report(found: Any, clock: Clock) -> Any:
    from ..analysis import plots

    return plots.report(found, in_ns=clock.unit == "us")


def compare(a: Measured, b: Measured, options: argparse.Namespace) -> None:
    key = a.result.table.column_names[0]
    both = beside(a.result.table, b.result.table, key, COMPARED)
    totals = stacked([table({"file": [m.path], **{name: m.result.total.column(name) for name in IN_TOTAL}}) for m in (a, b)])
    if options.json:
        print_json({"a": a.path, "b": b.path, "of": a.of, "by": a.result.by, "table": both, "total": totals})
        return
    clock = a.clock
    print_lines([f"Latency of {a.of} by {a.result.by}, in {clock.unit}: a is {a.path}, b is {b.path}"])
    columns = {key: Column()}
    for name in COMPARED:
        text = None if name == "count" else clock.duration
        columns |= {f"{name}_{side}": Column(f"{TITLES.get(name, name)} {side}", text) for side in "ab"}
    print_lines(table_lines(both, columns))
    print("\nAll:")
    print_lines(table_lines(totals, shown(totals, clock)))
