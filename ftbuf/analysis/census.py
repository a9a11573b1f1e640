"""Records of a view counted by kind, by stream and over time, without decoding any: what losses and rates share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .. import _core
from ..clock import counts_ns
from ..engine import Source
from ..recording import UNKNOWN_EVENT
from ..trace import Trace

TALLY = np.dtype([("events", np.uint64), ("bytes", np.uint64), ("first", np.int64), ("last", np.int64)])  # ftb_tally
GRID_LIMIT = 1 << 24  # cells


@dataclass(frozen=True, slots=True)
class Census:
    """What was counted: a row of TALLY for each event and each stream; counts in bins, a row each of either."""

    events: list[str]
    sources: list[Source]
    by_event: np.ndarray
    by_source: np.ndarray
    bins: np.ndarray


def take_census(trace: Trace, grid: tuple[int, int, int, bool] | None = None, events: Iterable[str] | None = None
                ) -> Census:
    """Count; ``grid``: start and width of the first bin, number of bins, whether there are bins for each event."""
    records, judge, slots = trace.reader(_core.Record, lambda _: None, events)
    key_of = trace.recording.key_of
    names = [UNKNOWN_EVENT if pair is None else key_of[pair] for _, pair in slots]
    sources = trace._sources()
    if grid is not None and grid[2] * len(names if grid[3] else sources) > GRID_LIMIT:
        raise ValueError(f"{grid[2]} bins for each of {len(names if grid[3] else sources)} rows are too many")
    by_slot, by_stream, cells = _core.Census(records, grid).run()
    judge.finish()
    bins = np.frombuffer(cells, np.int64).reshape(-1, grid[2] if grid else 1)  # type: ignore[call-overload]
    by_event, by_source = (np.frombuffer(rows, TALLY) for rows in (by_slot, by_stream))  # type: ignore[call-overload]
    return joined(Census(names, sources, by_event, by_source, bins), by_event=grid is not None and grid[3])


def joined(census: Census, *, by_event: bool) -> Census:
    """One row for each name: files have slots of their own for one event, and ids without a format."""
    names = list(dict.fromkeys(census.events))
    if len(names) == len(census.events):
        return census
    place_of = {name: i for i, name in enumerate(names)}
    places = np.array([place_of[name] for name in census.events])
    tally = np.zeros(len(names), TALLY)
    for name in ("events", "bytes"):
        np.add.at(tally[name], places, census.by_event[name])
    tally["first"], tally["last"] = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    np.minimum.at(tally["first"], places, census.by_event["first"])
    np.maximum.at(tally["last"], places, census.by_event["last"])
    bins = census.bins
    if by_event:
        bins = np.zeros((len(names), census.bins.shape[1]), np.int64)
        np.add.at(bins, places, census.bins)
    return Census(names, census.sources, tally, census.by_source, bins)


def source_in_ns(trace: Trace, source: Source) -> bool:
    """Whether its times are ns, so that there is such a thing as events per second."""
    clocks = {buffer.name: buffer.clock for buffer in trace.recording.buffers}
    return counts_ns(clocks[source.buffer_name], trace.recording.correction)
