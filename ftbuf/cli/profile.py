"""ftbuf profile FILE: what functions cost, as the kernel's function profiler shows it; call trees, flame graphs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..analysis.calltree import call_tree, folded
from ..analysis.profile import function_profile, function_rows, stat_texts
from ..durations import duration_text
from ..table import Table
from ..texts import printable
from ..trace import Trace
from .common import opened, print_lines, say_damage, say_nothing
from .plotfile import add_plot_argument, check_plot, save_plot
from .progress import Progress
from .tables import print_json
from .windows import add_buffer_argument, add_cpu_argument, add_time_arguments, cpus, narrowed

NAME = "profile"
HELP = "hits and times of functions per CPU (as trace_stat/functionN); --tree and --folded: by callers"

NONE = "none: no records of the function graph, or of the function tracer"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a trace.dat, or a tracefs-shaped directory, of function_graph or function")
    parser.add_argument("--graph-time", action=argparse.BooleanOptionalAction, default=True,
                        help="count the time of calls inside (default), or not")
    parser.add_argument("--sleep-time", action=argparse.BooleanOptionalAction, default=True,
                        help="count the time that tasks were switched out (default), or not: needs sched_switch")
    add_cpu_argument(parser)
    add_time_arguments(parser)
    add_buffer_argument(parser)
    parser.add_argument("-P", "--pid", action="append", type=int, help="only calls of this task")
    add_plot_argument(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--tree", action="store_true", help="functions below their callers")
    how.add_argument("--folded", action="store_true", help="lines 'caller;function ns' for flame graphs")
    how.add_argument("--json", action="store_true", help="the profile and the tree as JSON")


def run(options: argparse.Namespace) -> int:
    check_plot(options)
    with opened(options.file) as (whole, said):
        trace = narrowed(whole, options, pids=options.pid)
        with Progress(NAME):
            show, rows = printed(options, trace)
        show()
        save_plot(options, lambda: draw(options, trace))
        say_damage(trace, said)
        say_nothing(said, options.file, rows)
        return int(bool(said))


def printed(options: argparse.Namespace, trace: Trace) -> tuple[Callable[[], None], int]:
    """What is to be printed, computed, and how many rows it has."""
    if options.json:
        found = {"profile": profile(options, trace), "tree": call_tree(trace, sleep_time=options.sleep_time)}
        return lambda: print_json(found), found["profile"].num_rows
    if options.folded:
        lines = list(map(printable, folded(trace, sleep_time=options.sleep_time)))
        return lambda: print_lines(lines), len(lines)
    if options.tree:
        tree = call_tree(trace, sleep_time=options.sleep_time)
        lines = list(tree_lines(tree))
        return lambda: print_lines(lines), tree.num_rows
    wanted = cpus(options)
    rows, timed = function_rows(trace, graph_time=options.graph_time, sleep_time=options.sleep_time, cpus=wanted)
    lines = list(stat_lines(trace, rows, timed, wanted))
    return lambda: print_lines(lines), len(rows)


def draw(options: argparse.Namespace, trace: Trace) -> Any:
    from ..analysis import plots

    in_ns = trace.info["clock_unit"] == "ns"
    if options.tree or options.folded:
        tree = call_tree(trace, sleep_time=options.sleep_time)
        if tree["depth"].any():  # without callers there is nothing to see but the profile
            return plots.call_tree(tree, in_ns=in_ns)
    return plots.profile(profile(options, trace), in_ns=in_ns)


def profile(options: argparse.Namespace, trace: Trace) -> Table:
    return function_profile(trace, graph_time=options.graph_time, sleep_time=options.sleep_time, cpus=cpus(options))


def stat_lines(trace: Trace, found: Sequence[Any], timed: bool, wanted: list[int] | None) -> Iterator[str]:
    """The kernel's text of each CPU, under a heading unless it is of the one CPU asked for."""
    if wanted is None and not found:
        yield NONE
        return
    note_losses(sum(row.lossy for row in found))
    for cpu, text in stat_texts(trace, found, timed, cpus=wanted).items():
        if wanted is None or len(wanted) > 1:
            yield f"cpu{cpu}"
        yield from map(printable, text.splitlines())


def note_losses(calls: int) -> None:
    """Beside the table, which is the kernel's."""
    if calls:
        print(f"ftbuf {NAME}: records were lost inside of {calls} calls: what they called may be missing", file=sys.stderr)


def tree_lines(tree: Table) -> Iterator[str]:
    """Functions below their callers; without times where records tell none."""
    if not tree.num_rows:
        yield NONE
        return
    note_losses(int(tree["lossy"].sum()))
    timed = bool(tree["returned"].any())
    yield f"{'Hit':>10}    " + (f"{'Time':<12}    {'Self':<12}    " if timed else "") + "Function"
    columns = (tree[name].tolist() for name in ("hit", "time", "self", "depth", "function"))
    for hit, time, own, depth, function in zip(*columns, strict=True):
        times = f"{duration_text(time).decode()}    {duration_text(own).decode()}    " if timed else ""
        yield printable(f"{hit:>10}    {times}{'  ' * depth}{function}")
