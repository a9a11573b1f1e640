"""Latencies as text: what ``ftbuf latency`` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..analysis import CriticalSections, WakeupLatency
from ..table import Table
from ..texts import printable
from .tables import Clock, Column, rows, table_lines

TIMES = ("min", "last", "mean", "max", "total")
TITLES = {"last": "act", "mean": "avg"}  # as cyclictest calls them
OFTEN_ZERO = ("migrated", "repeated", "lost")
BAR = 50  # characters of the longest bar
MOST_COLUMNS = 8  # of a histogram
MOST_TITLE = 24  # characters
LEAST_RT_PRIO = 99  # as the kernel counts it (K:include/linux/sched/prio.h): 0 is the highest
AT_END = 10  # of what is open at the end, so many are listed


def wakeup_lines(found: WakeupLatency, clock: Clock) -> Iterator[str]:
    yield f"Wakeup latency by {found.by}, in {clock.unit}: from {found.event} to sched_switch"
    yield from some_lines(found, clock, f"none: no switch to a task follows a record of {found.event}")
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
            "waited": Column(clock.unit, clock.duration), "waker_pid": Column("waker"), "waker_cpu": Column("on cpu")},
            most=AT_END)
    if found.running:
        yield f"\n{found.running} wakeups of tasks that were running are left out"
    yield from lost_lines(found.table, "latencies")


def cyclictest_lines(found: WakeupLatency, clock: Clock) -> Iterator[str]:
    """A line a task, or CPU, as cyclictest prints it: whole microseconds. There is no interval here."""
    scale = 1000 if clock.unit == "us" else 1
    for i, row in enumerate(rows(found.table)):
        prio = row.get("prio", LEAST_RT_PRIO)
        rt_prio = LEAST_RT_PRIO - prio if 0 <= prio < LEAST_RT_PRIO else 0
        least, last, mean, most = (int(row[name] // scale) if row["count"] else 0 for name in ("min", "last", "mean", "max"))
        yield (f"T:{row.get('cpu', i):2d} ({row.get('pid', 0):5d}) P:{rt_prio:2d} I:0 C:{row['count']:7d} "
               f"Min:{least:7d} Act:{last:5d} Avg:{mean:5d} Max:{most:8d}")


def section_lines(found: CriticalSections, clock: Clock) -> Iterator[str]:
    what = {"irq": "Interrupts", "preempt": "Preemption"}[found.kind]
    yield f"{what} off, by {found.by}, in {clock.unit}: from {found.kind}_disable to {found.kind}_enable"
    yield from some_lines(found, clock, "none: no such section is in the recording")
    if found.worst.num_rows:
        yield f"\nThe {found.worst.num_rows} longest:"
        yield from table_lines(found.worst, {
            "duration": Column(clock.unit, clock.duration), "began": Column("from", clock.time),
            "ended": Column("to", clock.time), "cpu": Column(), "pid": Column(), "comm": Column(), "caller": Column(),
            "ended_by": Column("ended by")})
    if found.open.num_rows:
        yield "\nNot over at the end:"
        yield from table_lines(found.open, {
            "cpu": Column(), "began": Column("from", clock.time), "lasted": Column(clock.unit, clock.duration),
            "pid": Column(), "comm": Column(), "caller": Column()}, most=AT_END)
    if found.repeated or found.unbegun:
        yield f"\nLeft out: {found.repeated} begins inside of a section, {found.unbegun} ends without a begin"
    yield from lost_lines(found.table, "sections")


def some_lines(found: WakeupLatency | CriticalSections, clock: Clock, none: str) -> Iterator[str]:
    if not found.table.num_rows:
        yield none
        return
    yield from table_lines(found.table, shown(found.table, clock))
    if found.table.num_rows > 1:
        yield "\nAll:"
        yield from table_lines(found.total, shown(found.total, clock))


def histogram_lines(histogram: Table, of: Table, clock: Clock) -> Iterator[str]:
    """How often each latency was, with a bar: over all, and by row of the result's table, the first of many."""
    key = histogram.column_names[0]
    lows, places = np.unique(histogram["low"], return_inverse=True)
    highs = np.zeros(len(lows), np.int64)
    highs[places] = histogram["high"]
    names = of[key].tolist()
    column_of = {name: min(i, MOST_COLUMNS - 1) if len(names) > MOST_COLUMNS else i for i, name in enumerate(names)}
    counts = np.zeros((len(lows), min(len(names), MOST_COLUMNS)), np.int64)
    np.add.at(counts, (places, np.array([column_of[name] for name in histogram[key].tolist()], np.intp)), histogram["count"])
    totals = counts.sum(axis=1)
    most = max(int(totals.max(initial=1)), 1)
    lines = [["from", "to", "all", *(column_titles(key, names) if len(names) > 1 else [])]]
    for low, high, own, total in zip(lows.tolist(), highs.tolist(), counts.tolist(), totals.tolist(), strict=True):
        lines.append([clock.duration(low), clock.duration(high + 1), str(total), *(map(str, own) if len(names) > 1 else [])])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    yield f"\nHow often, from and to in {clock.unit}:"
    for cells, total in zip(lines, [0, *totals.tolist()], strict=True):
        bar = "#" * -(-BAR * total // most)
        yield "  ".join([*(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)), bar]).rstrip()


def column_titles(key: str, names: Sequence[Any]) -> list[str]:
    """What columns of rows are called: each its own way."""
    shown = names if len(names) <= MOST_COLUMNS else names[: MOST_COLUMNS - 1]
    titles = [printable(str(name))[:MOST_TITLE] if isinstance(name, str) else f"{key} {name}" for name in shown]
    titles = [title if titles.count(title) == 1 else f"{title} {i}" for i, title in enumerate(titles)]
    return titles if len(shown) == len(names) else [*titles, f"{len(names) - len(shown)} others"]


def lost_lines(table: Table, what: str) -> Iterator[str]:
    lost = int(table["lost"].sum())
    if lost:
        yield f"\n{lost} {what} are not counted: records were lost inside"


def shown(table: Table, clock: Clock) -> dict[str, Column]:
    """All columns, under the names that cyclictest gives them; what is 0 in every row is left out."""
    columns = {}
    for name in table:
        is_time = name in TIMES or (name[:1] == "p" and name[1:2].isdigit())
        if name not in OFTEN_ZERO or table[name].any():
            columns[name] = Column(TITLES.get(name, name), clock.duration if is_time else None)
    return columns
