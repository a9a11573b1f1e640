"""What a recording holds, and what it lacks: counts, sizes and losses of CPUs and events; events over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..survey import COUNTERS, encoded
from ..table import Table
from ..trace import Trace
from .census import Census, source_in_ns, take_census
from .tables import rows_of, table
from .wanted import check_count, check_trace

BINS = 100
MOST_BINS = 1_000_000
NEVER = -1
GAPS = ("lost", "gaps", "unknown_gaps")
SUMMED = ("events", "bytes", *GAPS)


@dataclass(frozen=True, slots=True)
class Losses:
    """What ``losses`` found.

    Attributes
    ----------
    cpus : Table
        A row for each buffer and CPU: ``events`` in the recording, ``bytes`` that they take in the ring buffer (record
        headers of 4 or 8 bytes included, time extends not) and ``bytes_per_event``; ``lost``: events that the kernel
        says it lost, in ``gaps`` places, of which ``unknown_gaps`` do not say how many; ``lost_share`` of all that
        happened (at least so much where a gap is unknown); ``first`` and ``last`` time (-1: none) and
        ``events_per_second`` between them (NaN: the clock does not count ns). Then the kernel's own counters, of the
        whole buffer since it was last cleared, -1 where it did not say: ``entries``, ``overrun``, ``commit_overrun``,
        ``dropped_events``, ``read_events``.
    total : Table
        One row: the same over all.
    events : Table
        A row for each kind of event that occurs: ``event``, ``count``, ``bytes``, ``bytes_per_event``, ``share`` of all
        bytes, ``first``, ``last``; the one that takes the most bytes first.
    """

    cpus: Table
    total: Table
    events: Table


def losses(trace: Trace) -> Losses:
    """Count what a view holds, and what the kernel says it lost of it.

    One pass over the record headers; nothing is decoded.

    Returns
    -------
    Losses
    """
    check_trace(trace)
    census = take_census(trace)
    columns = of_sources(trace, census) | of_gaps(trace, census)
    kernel = of_kernel(trace, census)
    return Losses(table(finished(columns) | kernel), total(trace, columns, kernel), of_events(census))


Columns = dict[str, Any]


def of_sources(trace: Trace, census: Census) -> Columns:
    tally = census.by_source
    first, last = times(tally)
    in_ns = np.array([source_in_ns(trace, source) for source in census.sources], bool)
    return {"buffer": encoded([s.buffer_name for s in census.sources]),
            "cpu": np.array([s.stream.cpu for s in census.sources], np.int64),
            "events": tally["events"].astype(np.int64), "bytes": tally["bytes"].astype(np.int64),
            "first": first, "last": last, "span": np.where(in_ns, last - first, 0)}


def of_gaps(trace: Trace, census: Census) -> Columns:
    lost = trace.lost
    buffers = lost["common_buffer"].tolist() if "common_buffer" in lost else [None] * lost.num_rows
    place_of = {(s.buffer_name if "common_buffer" in lost else None, s.stream.cpu): i
                for i, s in enumerate(census.sources)}
    places = np.array([place_of[key] for key in zip(buffers, lost["common_cpu"].tolist(), strict=True)], np.int64)
    return summed_gaps(places, lost["count"], len(census.sources))


def summed_gaps(places: np.ndarray, count: np.ndarray, rows: int) -> Columns:
    """What gaps add up to in the row that each belongs to; a count below 0 is not known."""
    out = {name: np.zeros(rows, np.int64) for name in GAPS}
    np.add.at(out["lost"], places, np.maximum(count, 0))
    np.add.at(out["gaps"], places, 1)
    np.add.at(out["unknown_gaps"], places, count < 0)
    return out


def of_kernel(trace: Trace, census: Census) -> Columns:
    """The kernel's counters of each source."""
    stats = trace.stats
    names = [name.replace(" ", "_") for name in COUNTERS if name != "bytes"]
    row_of = {key: i for i, key in enumerate(zip(stats["buffer"].tolist(), stats["cpu"].tolist(), strict=True))}
    rows = [row_of.get((s.buffer_name, s.stream.cpu), -1) for s in census.sources]
    return {name: np.array([stats[name][row] if row >= 0 else NEVER for row in rows], np.int64) for name in names}


def finished(columns: Columns) -> Columns:
    """With the shares that follow from the sums; the columns in their order."""
    events, span = columns["events"], columns["span"]
    with np.errstate(invalid="ignore", divide="ignore"):
        columns = columns | {
            "bytes_per_event": columns["bytes"] / np.where(events > 0, events, np.nan),
            "lost_share": columns["lost"] / np.where(events + columns["lost"] > 0, events + columns["lost"], np.nan),
            "events_per_second": np.where(span > 0, events * 1e9 / span, np.nan)}
    names = ("buffer", "cpu", "events", "bytes", "bytes_per_event", "lost", "gaps", "unknown_gaps", "lost_share",
             "first", "last", "events_per_second")
    return {name: columns[name] for name in names if name in columns}


def total(trace: Trace, columns: Columns, kernel: Columns) -> Table:
    """One row of sums; a counter that some CPU does not have is not known of all."""
    has_any = columns["events"] > 0
    some = bool(has_any.any())
    in_ns = not some or bool((columns["span"] == columns["last"] - columns["first"])[has_any].all())
    first = int(columns["first"][has_any].min()) if some else NEVER
    last = int(columns["last"][has_any].max()) if some else NEVER
    sums = {name: np.array([columns[name].sum()]) for name in SUMMED}
    ends = {"first": np.array([first]), "last": np.array([last]), "span": np.array([last - first if in_ns else 0])}
    counters = {name: np.array([values.sum() if len(values) and (values >= 0).all() else NEVER])
                for name, values in kernel.items()}
    return table(finished(sums | ends) | counters)


def of_events(census: Census) -> Table:
    tally = census.by_event
    first, last = times(tally)
    count, size = tally["events"].astype(np.int64), tally["bytes"].astype(np.int64)
    with np.errstate(invalid="ignore"):
        made = table({"event": encoded(census.events), "count": count, "bytes": size,
                      "bytes_per_event": size / np.where(count > 0, count, np.nan),
                      "share": size / max(int(size.sum()), 1), "first": first, "last": last})
    order = np.lexsort((-count, -size))
    return rows_of(made, order[count[order] > 0])


def times(tally: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    some = tally["events"] > 0
    return np.where(some, tally["first"], NEVER), np.where(some, tally["last"], NEVER)


# ---- over time ----


def rates(trace: Trace, *, bins: int = BINS, width: int | None = None, by: str | None = None) -> Table:
    """Events over time.

    Parameters
    ----------
    bins : int
        How many stretches of equal length the time from the first to the last event is cut into.
    width : int, optional
        Their length in ns (or units of the clock), instead of their number.
    by : {None, "cpu", "event"}
        Count each CPU, or each kind of event, by itself.

    Returns
    -------
    Table
        start, end (of a stretch: start <= time < end), then common_cpu or event, and events, per_second (NaN where the
        clock does not count ns); not by event also lost (events lost by the kernel's count, at the time of the first one
        behind the gap), gaps, and unknown_gaps: those of them that do not say how many. Stretches without events have a
        row, too.

    Raises
    ------
    ValueError
        The bins are none, or too many.
    """
    check_trace(trace)
    bins = check_count("bins", bins)
    if by not in (None, "cpu", "event"):
        raise ValueError(f"by is None, 'cpu' or 'event', not {by!r}")
    start, width, bins = stretches(trace, bins, width)
    census = take_census(trace, (start, width, bins, by == "event"), list(trace.events) if by == "event" else None)
    names, counts = rows_by(census, by)
    edges = start + width * np.arange(bins + 1)
    rows = len(counts)
    columns: Columns = {"start": np.repeat(edges[:-1], rows), "end": np.repeat(edges[1:], rows)}
    if by is not None:
        columns |= {"common_cpu": np.tile(names, bins)} if by == "cpu" else {"event": encoded(names * bins)}
    columns["events"] = counts.T.reshape(-1)
    in_ns = all(source_in_ns(trace, source) for source in census.sources)
    columns["per_second"] = columns["events"] * (1e9 / width) if in_ns else np.full(bins * rows, np.nan)
    if by != "event":
        columns |= lost_over_time(trace, edges, names if by == "cpu" else None)
    return table(columns)


def lost_rates(trace: Trace, *, bins: int = BINS, width: int | None = None) -> Table:
    """What was lost over time: of all events, as nobody knows of which kind they were.

    Parameters
    ----------
    bins, width : int
        As in ``rates``.

    Returns
    -------
    Table
        start, end, lost, gaps, unknown_gaps, as in ``rates``.
    """
    check_trace(trace)
    start, width, bins = stretches(trace, check_count("bins", bins), width)
    edges = start + width * np.arange(bins + 1)
    return table({"start": edges[:-1], "end": edges[1:], **lost_over_time(trace, edges, None)})


def stretches(trace: Trace, bins: int, width: int | None) -> tuple[int, int, int]:
    """Start, width and number of bins."""
    first, last = trace.start, trace.end
    start, span = (0, 0) if first is None or last is None else (first, max(last - first, 0) + 1)
    if width is None and bins > 0:
        width = max(-(-span // bins), 1)
    if width is None or width <= 0:
        raise ValueError("bins need a number, or a width, greater than 0")
    bins = -(-span // width)
    if bins > MOST_BINS:
        raise ValueError(f"{bins} bins are more than {MOST_BINS}")
    return start, width, max(bins, 1)


def rows_by(census: Census, by: str | None) -> tuple[list[Any], np.ndarray]:
    """What the rows of counts are of, and the counts."""
    if by is None:
        return [None], census.bins.sum(axis=0, keepdims=True)
    if by == "event":
        some = np.flatnonzero(census.by_event["events"])
        return [census.events[i] for i in some], census.bins[some]
    cpus, places = np.unique([source.stream.cpu for source in census.sources], return_inverse=True)
    counts = np.zeros((len(cpus), census.bins.shape[1]), np.int64)
    np.add.at(counts, places, census.bins)
    return cpus.tolist(), counts


def lost_over_time(trace: Trace, edges: np.ndarray, cpus: list[int] | None) -> Columns:
    lost, bins = trace.lost, len(edges) - 1
    at = np.clip(np.searchsorted(edges, lost["after"], side="right") - 1, 0, bins - 1)
    rows = 1 if cpus is None else len(cpus)
    row = 0 if cpus is None else np.searchsorted(cpus, lost["common_cpu"])
    return summed_gaps(at * rows + row, lost["count"], bins * rows)
