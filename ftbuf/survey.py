"""Tables about a recording rather than of its events: losses, problems, the kernel's counters; times of its ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core
from .container.model import Problem
from .engine import LOSS, Judge, Piece, Result, Run, Source, Window, clip, each_alone
from .plan import TS
from .recording import Pair, Recording
from .requests import events_request, slots_request, times_request
from .table import ColumnData, Encoded, Plain, Table

COUNTERS = ("entries", "overrun", "commit overrun", "bytes", "dropped events", "read events")
TIMES = ("oldest event ts", "now ts")
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Survey:
    """What one pass over all record headers tells."""

    counts: dict[str, int]  # events that occur
    unknown: int  # records whose event has no format
    lost: Table
    problems: list[Problem]
    pages: int


def survey(recording: Recording, sources: Sequence[Source], window: Window) -> Survey:
    """Count, without decoding; damage is listed here, never raised."""
    request, slots = slots_request(recording)
    runs = each_alone(sources, window, request)
    results = [run.result() for run in runs]
    total = sum((r.counts for r in results), np.zeros(len(slots), np.int64))
    counts: Counter[str] = Counter()
    unknown = 0
    for (_, pair), n in zip(slots, total.tolist(), strict=True):
        if pair is None:
            unknown += n
        elif n:
            counts[recording.key_of[pair]] += n
    problems = [p for run in runs for p in run.judge.problems]
    lost = losses_table(losses_of(results), sources, window, recording)
    return Survey(dict(counts), unknown, lost, problems, sum(r.stream_stats[0][0] for r in results))


def losses_of(results: Sequence[Result]) -> np.ndarray:
    """Losses of streams that were read one by one, as those of one decode."""
    rows = [r.losses.copy() for r in results]
    for i, own in enumerate(rows):
        own["stream"] = i
    return np.concatenate(rows) if rows else np.empty(0, LOSS)


def losses(recording: Recording, sources: Sequence[Source], window: Window) -> Table:
    """What ``survey`` tells of losses, for a quarter of its time: no record is looked into."""
    runs = each_alone(sources, window, events_request(recording, []))
    return losses_table(losses_of([run.result() for run in runs]), sources, window, recording)


def readable_pairs(recording: Recording, pairs: Iterable[Pair], *, quiet: bool = False) -> list[Pair]:
    """Those whose formats can be understood in all files that have them; the others are noted as problems."""
    return [pair for pair in pairs
            if all([file.readable(pair, quiet=quiet) for file in recording.files if pair in file.format_index])]


def short_records(
    recording: Recording, sources: Sequence[Source], window: Window, events: Iterable[str]
) -> list[Problem]:
    """Records of ``events`` too short for the fixed part of their format, which tables leave out.

    One more pass; only the formats of events that occur are parsed.
    """
    wanted = [(pair, ()) for pair in readable_pairs(recording, (recording.keys[name] for name in events),
                                                     quiet=True)]
    judge = Judge("skip")
    Run(sources, window, events_request(recording, wanted), judge, at_once=False).to_end()
    return [p for p in judge.problems if p.status == "record_short"]


def encoded(values: Sequence[str]) -> Encoded:
    codes: dict[str, int] = {}
    return Encoded(np.array([codes.setdefault(v, len(codes)) for v in values], np.int32), list(codes))


def losses_table(losses: np.ndarray, sources: Sequence[Source], window: Window, recording: Recording) -> Table:
    bounds = window.bounds()
    if bounds is not None:
        losses = losses[(losses["after"] >= bounds[0]) & (losses["after"] < bounds[1])]
    losses = losses[np.lexsort((losses["stream"], losses["after"]))]
    cpu_of = np.array([s.stream.cpu for s in sources], np.uint16)
    buffer_of = np.array([s.buffer for s in sources], np.uint16)
    stream = losses["stream"]
    columns: dict[str, ColumnData] = {"common_cpu": Plain(cpu_of[stream])}
    if len(recording.buffers) > 1:
        columns["common_buffer"] = Encoded(buffer_of[stream], recording.names.buffers)
    columns |= {name: Plain(losses[name].copy()) for name in ("before", "after", "count")}
    return Table([columns])


def problems_table(problems: Sequence[Problem]) -> Table:
    return Table([{
        "cpu": Plain(np.array([p.cpu for p in problems], np.int32)),
        "buffer": encoded([p.buffer for p in problems]),
        "offset": Plain(np.array([p.offset for p in problems], np.uint64)),
        "status": encoded([p.status for p in problems]),
        "bytes": Plain(np.array([p.bytes for p in problems], np.uint64)),
        "detail": encoded([p.detail or _core.MESSAGES.get(p.status, p.status) for p in problems]),
    }])


def parse_stats(text: bytes) -> dict[str, int | float]:
    """The text of per_cpu/cpuN/stats: counters, and times in seconds (raw units for clocks that do not count ns)."""
    values: dict[str, int | float] = {}
    for line in text.decode("utf-8", "replace").splitlines():
        name, _, value = line.partition(":")
        try:
            values[name.strip()] = float(value) if name.strip() in TIMES else int(value)
        except ValueError:
            continue
    return values


def stats_table(recording: Recording) -> Table:
    """One row per buffer and CPU that has a stats text; -1 (NaN for times) where a line is missing."""
    rows = [(b.name, cpu, parse_stats(text)) for b in recording.buffers for cpu, text in sorted(b.stats.items())]
    columns: dict[str, ColumnData] = {"buffer": encoded([b for b, _, _ in rows]),
                                      "cpu": Plain(np.array([c for _, c, _ in rows], np.int32))}
    for name in COUNTERS:
        columns[name.replace(" ", "_")] = Plain(np.array([v.get(name, UNKNOWN) for _, _, v in rows], np.int64))
    for name in TIMES:
        columns[name.replace(" ", "_")] = Plain(np.array([v.get(name, np.nan) for _, _, v in rows], np.float64))
    return Table([columns])


# ---- ends ----


def some_times(recording: Recording, source: Source, window: Window, piece: Piece, *, all_of_it: bool) -> np.ndarray:
    """Times of a piece's records: all, or those of the first batch that has any."""
    run = Run([source], window, times_request(recording), Judge("skip"), [piece])
    run.set_plans()
    while run.step(1) and (all_of_it or not run.decoder.rows(0)):
        pass
    column: Any = run.take()[0][TS]
    times: np.ndarray = column.values
    return times


def first_time(recording: Recording, source: Source, window: Window) -> int | None:
    times = some_times(recording, source, window, clip(source, window), all_of_it=False)
    return int(times[0]) if len(times) else None


def last_time(recording: Recording, source: Source, window: Window) -> int | None:
    """Looks at ever more sub-buffers from the end, so that empty ones there cost little."""
    piece, subbuf = clip(source, window), source.abi[0]
    for index in range(piece.last - 1, piece.first - 1, -1):
        stop = source.stream.segments[index].size
        if index == piece.last - 1 and piece.stop is not None:
            stop = min(stop, piece.stop)
        begin = piece.start if index == piece.first else 0
        pages = 1
        while stop > begin:
            start = max(begin, (stop - 1) // subbuf * subbuf - (pages - 1) * subbuf)
            times = some_times(recording, source, window, Piece(index, index + 1, start, stop), all_of_it=True)
            if len(times):
                return int(times[-1])
            stop, pages = start, pages * 2
    return None
