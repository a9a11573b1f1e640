"""Latencies as text: what ``ftbuf latency`` prints."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..analysis import CriticalSections, WakeupLatency
from ..table import Table
from .tables import Clock, Column, table_lines

TIMES = ("min", "last", "mean", "max", "total")
TITLES = {"last": "act", "mean": "avg"}  # as cyclictest calls them
OFTEN_ZERO = ("migrated", "repeated", "lost")
BAR = 50  # characters of the longest bar
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


def histogram_lines(table: Table, clock: Clock) -> Iterator[str]:
    """All rows of a histogram together, with a bar for each bucket."""
    lows, places = np.unique(table["low"], return_inverse=True)
    counts = np.bincount(places, weights=table["count"]).astype(np.int64)
    highs = np.zeros(len(lows), np.int64)
    highs[places] = table["high"]
    yield f"\nFrom, to ({clock.unit}), how often"
    most = int(counts.max(initial=1))
    rows = [(clock.duration(low), clock.duration(high + 1), count)
            for low, high, count in zip(lows.tolist(), highs.tolist(), counts.tolist(), strict=True)]
    width = max((len(text) for row in rows for text in row[:2]), default=0)
    for low, high, count in rows:
        yield f"{low:>{width}}  {high:>{width}}  {count:>9}  {'#' * -(-BAR * count // most)}"


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
