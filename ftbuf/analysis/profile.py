"""What functions cost, as the kernel's function profiler sums it up (K:kernel/trace/ftrace.c)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..durations import duration_text
from ..survey import encoded
from ..table import Table
from ..trace import Trace
from .calls import call_sums
from .tables import table

NAME_WIDTH = 30


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """One function on one CPU; times in ns."""

    function: str
    address: int
    cpu: int
    hit: int
    time: int
    own: int
    squares: int
    returned: int
    open: int
    lossy: int

    def spread(self, scale: int = 1) -> tuple[int, int]:
        """s^2 as numerator and denominator: n * sum(x^2) - sum(x)^2 over n * (n - 1) * scale, where n is ``hit``."""
        if self.hit < 2:
            return 0, 1
        return max(self.hit * self.squares - self.time * self.time, 0), self.hit * (self.hit - 1) * scale


def function_profile(trace: Trace, *, graph_time: bool = True, sleep_time: bool = True,
                     cpus: Iterable[int] | None = None) -> Table:
    """How often each function was called on each CPU, and how long it took.

    From the records of the function graph; where there are none, from those of the function tracer, which tell hits only.
    The rules are those of the kernel's function profiler (``function_profile_enabled``): a call is a hit on the CPU where
    it began, its time counts on the CPU where it returned, ``avg`` and ``s2`` divide by the hits. A call whose entry is
    not in the recording is a hit where it returned.

    Returns belong to the last open call of the same task, depth and function, on whatever CPU. A call that is left by one
    less deep without a return of its own, or that still runs at the end, is ``open``: it is a hit without time.

    Parameters
    ----------
    graph_time : bool
        Count the time of calls inside (the kernel's option graph-time). False: a call's own time only.
    sleep_time : bool
        Count the time that the task was switched out (option sleep-time). False: needs sched_switch records, unless the
        kernel left that time out itself.
    cpus : collection of int, optional
        Rows of these CPUs only. (A window of CPUs would separate returns from calls that began elsewhere.)

    Returns
    -------
    Table
        function, address, cpu, hit, time, avg, s2 (ns squared), self (time without that of calls inside), returned
        (returns seen), open, lossy (of those returned: between call and return, records were lost on the CPU of either;
        the time is right, but not ``self``). Times in ns, or in units of the clock. The most time, then hits, first.
    """
    rows, _ = function_rows(trace, graph_time=graph_time, sleep_time=sleep_time, cpus=cpus)
    ints = {name: np.array([getattr(row, name) for row in rows], np.int64)
            for name in ("cpu", "hit", "time", "own", "returned", "open", "lossy")}
    with np.errstate(invalid="ignore", divide="ignore"):
        avg = np.where(ints["hit"] > 0, ints["time"] / ints["hit"], np.nan)
    return table({
        "function": encoded([row.function for row in rows]),
        "address": np.array([row.address for row in rows], np.uint64),
        "cpu": ints["cpu"],
        "hit": ints["hit"],
        "time": ints["time"],
        "avg": avg,
        "s2": np.array([over / under for over, under in (row.spread() for row in rows)], np.float64),
        "self": ints["own"],
        "returned": ints["returned"],
        "open": ints["open"],
        "lossy": ints["lossy"],
    })


def function_rows(trace: Trace, *, graph_time: bool = True, sleep_time: bool = True,
                  cpus: Iterable[int] | None = None) -> tuple[list[FunctionRow], bool]:
    """What ``function_profile`` makes a table of, and whether the times are known."""
    found = call_sums(trace, by_path=False, own_time=not graph_time, sleep_time=sleep_time)
    sums = found.rows
    if cpus is not None:
        sums = sums[np.isin(sums["key"], list(cpus))]
    names = function_names(trace, sums["func"])
    own = sums["time"] - sums["inner"] if graph_time else sums["time"]
    squares = [low + (high << 64) for low, high in zip(sums["square_low"].tolist(), sums["square_high"].tolist(),
                                                       strict=True)]
    columns = (sums[name].tolist() for name in ("returned", "open", "lossy"))
    rows = map(FunctionRow, names, sums["func"].tolist(), sums["key"].tolist(), sums["hit"].tolist(),
               sums["time"].tolist(), own.tolist(), squares, *columns)
    return sorted(rows, key=lambda row: (-row.time, -row.hit, row.function, row.cpu)), found.timed


def function_names(trace: Trace, addresses: np.ndarray) -> list[str]:
    """Names of functions; the address where no symbol is known."""
    unique, places = np.unique(addresses, return_inverse=True)
    names = [f"{address:#x}" if name is None else name
             for address, name in zip(unique.tolist(), trace.symbols.names_of(unique).tolist(), strict=True)]
    return [names[i] for i in places.tolist()]


# ---- the kernel's text ----


def trace_stat(trace: Trace, *, graph_time: bool = True, sleep_time: bool = True, cpus: Iterable[int] | None = None
               ) -> dict[int, str]:
    """The text that the kernel's profiler would show: CPU -> what its ``trace_stat/functionN`` holds.

    To the last digit, but where the kernel's own 64-bit sums overflow (s^2 of calls of seconds) it is the right number
    that is shown, and functions of equal time, which the kernel has in no order, are in that of their names.

    Parameters
    ----------
    graph_time, sleep_time, cpus
        As in ``function_profile``.

    Returns
    -------
    dict of int to str
    """
    return stat_texts(trace, *function_rows(trace, graph_time=graph_time, sleep_time=sleep_time, cpus=cpus), cpus=cpus)


def stat_texts(trace: Trace, rows: Sequence[FunctionRow], timed: bool, *, cpus: Iterable[int] | None) -> dict[int, str]:
    """``trace_stat`` of rows; a CPU without any has one, too."""
    wanted = sorted({row.cpu for row in rows} | set(trace.cpus if cpus is None else cpus))
    return {cpu: stat_text([row for row in rows if row.cpu == cpu and row.hit], timed) for cpu in wanted}


def stat_text(rows: Sequence[FunctionRow], timed: bool) -> str:
    """K:ftrace.c function_stat_headers, function_stat_show."""
    lines = [f"  {'Function':<30}  {'   Hit':>10}", f"  {'--------':<30}  {'   ---':>10}"]
    if timed:
        lines[0] += "    Time            Avg             s^2"
        lines[1] += "    ----            ---             ---"
    return "".join(line + "\n" for line in [*lines, *(stat_line(row, timed) for row in rows)])


def stat_line(row: FunctionRow, timed: bool) -> str:
    line = f"  {row.function[:NAME_WIDTH]:<{NAME_WIDTH}}  {row.hit:>10}"
    if not timed:
        return line
    over, under = row.spread(1000)
    return line + "".join(f"    {duration_text(ns).decode()}" for ns in (row.time, row.time // row.hit, over // under))
