"""Verifies a recording page by page: damage of its file, its pages, records and formats, and what was lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from . import _core
from .container.model import METADATA, Container, Problem
from .container.parts import Parts, problem_of
from .engine import LOSS, STEP, EventPlan, Judge, Request, Run, Source, Window
from .errors import FtbufError
from .plan import TS, fixed_length, plain_column
from .recording import NO_TYPE, Pair, Recording
from .requests import check_slots, new_select, times_request

TIME_BACKWARDS = "time_backwards"  # of records: no status of a page
UNKNOWN_EVENT = "unknown_event"
NO_BUFFERS = "there are no buffers: no CPU's events were recorded"
LISTED = 1000  # problems of one status that are listed; the others are only counted
IDS = "ids"


@dataclass(frozen=True, slots=True)
class Loss:
    """A gap in a CPU's records."""

    buffer: str
    cpu: int
    before: int | None  # time of the record before it; None: none was seen
    after: int
    count: int | None  # None: the kernel did not say how many


@dataclass(slots=True)
class Checkup:
    """What was found.

    Attributes
    ----------
    problems : list of Problem
        Damaged places; of each status at most ``LISTED``.
    counts : dict
        Status -> how many places there are of it.
    unknown : dict
        Event id that has no format -> how many records of it.
    lost : list of Loss
        What the kernel lost: no damage. The first ``LISTED``; ``losses`` counts all.
    """

    path: str
    kind: str
    buffers: int = 0
    streams: int = 0
    pages: int = 0
    events: int = 0
    formats: int = 0
    losses: int = 0
    lost_events: int = 0  # that the kernel counted
    problems: list[Problem] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    unknown: Counter[int] = field(default_factory=Counter)
    lost: list[Loss] = field(default_factory=list)

    @property
    def damaged(self) -> bool:
        return bool(self.counts)

    def note(self, problem: Problem) -> None:
        self.counts[problem.status] += 1
        if self.counts[problem.status] <= LISTED:
            self.problems.append(problem)

    def to_dict(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**found, "damaged": self.damaged, "problems": [asdict(p) for p in self.problems],
                "lost": [asdict(loss) for loss in self.lost], "unknown": dict(self.unknown)}


class _Noting(Judge):
    """Hands on what it is told of."""

    def __init__(self, checkup: Checkup) -> None:
        super().__init__("skip")
        self.checkup = checkup

    def note(self, problem: Problem) -> None:
        self.checkup.note(problem)


class _Readable(Recording):
    """A recording whose formats count as none where they cannot be read: its pages still can."""

    @cached_property
    def format_index(self) -> Mapping[Pair, int]:
        try:
            return super().format_index
        except FtbufError:
            return {}

    @cached_property
    def id_index(self) -> Mapping[int, Pair]:
        try:
            return super().id_index
        except FtbufError:
            return {}


def check_up(container: Container) -> Checkup:
    """Check every part of a recording. Nothing is raised for damage: all of it is in the result."""
    recording = _Readable(container)
    found = Checkup(container.path, container.kind, len(recording.buffers))
    for problem in [*container.problems, *_damaged_parts(container)]:
        found.note(problem)
    try:
        lengths = _check_formats(recording, found)
        request = _length_request(recording, lengths)
        for source in recording.sources():
            found.streams += 1
            if source.stream.segments or source.stream.problems:
                _check_stream(recording, source, request, found)
    except FtbufError as error:  # of the layout of pages, without which there are none
        found.note(problem_of(error, "layout", container.path))
    if not found.streams and not container.snapshot_buffers and not _is_text(container):
        found.note(Problem(-1, 0, METADATA, 0, "", NO_BUFFERS))
    for event_id, count in sorted(found.unknown.items()):
        detail = f"{count} records of event id {event_id}, which has no format"
        found.note(Problem(-1, 0, UNKNOWN_EVENT, 0, "", detail))
    return found


# ---- the file ----


def _damaged_parts(container: Container) -> Iterator[Problem]:
    """Read every metadata text once: decompresses it, and checks that it is there."""
    yield from Parts(container).problems()
    try:
        _ = container.text
    except FtbufError as error:
        yield problem_of(error, "text", container.path)


def _is_text(container: Container) -> bool:
    """Whether the recording is a text, perhaps a damaged one."""
    try:
        return container.text is not None
    except FtbufError:
        return True


def _check_formats(recording: Recording, found: Checkup) -> dict[Pair, int]:
    """Parse every format; the fixed length of records of each event."""
    lengths = {}
    found.formats = len(recording.format_index)
    for system, event in recording.format_index:
        try:
            lengths[system, event] = fixed_length(recording.format(system, event))
        except FtbufError as error:
            found.note(problem_of(error, f"format of {system}:{event}", recording.container.path))
    return lengths


# ---- streams ----


def _check_stream(recording: Recording, source: Source, request: Request, found: Checkup) -> None:
    run = _Steps(source, request, found)
    for columns in run:
        ids, counts = np.unique(columns[0][IDS].values, return_counts=True)
        found.unknown.update(dict(zip(ids.tolist(), counts.tolist(), strict=True)))
    pages, events, *_, backwards, _ = run.decoder.stream_stats()[0]
    found.pages += pages
    found.events += events
    if backwards:
        _check_times(recording, source, found)


class _Steps(Run):
    """A run over one whole stream: its columns step by step, its losses told to the checkup."""

    def __init__(self, source: Source, request: Request, found: Checkup | None) -> None:
        judge = _Noting(found) if found is not None else Judge("skip")
        super().__init__([source], Window(), request, judge, at_once=False)
        self.found = found

    def __iter__(self) -> Iterator[list[dict[str, Any]]]:
        self.set_plans()
        more = True
        while more:
            more = self.step(STEP)
            if self.found is not None:
                _note_losses(self.sources[0], np.frombuffer(self.decoder.take_losses(), LOSS), self.found)
            yield self.take()


def _length_request(recording: Recording, lengths: dict[Pair, int]) -> Request:
    """No columns but the ids of unknown events: the core compares lengths."""
    big = recording.container.big_endian
    offset, size = recording.common_place("common_type") or NO_TYPE
    ids = plain_column(IDS, (_core.OP_SCALAR, 0, size, size, 0, offset, size, None), np.dtype(f"u{size}"))
    plans = [EventPlan(offset + size, big, [ids])]
    select = new_select(recording, fill=0)
    for number, pair in recording.id_index.items():
        select.slot_of[number] = len(plans)
        plans.append(EventPlan(lengths.get(pair, 0), big, []))
    n = check_slots(len(plans))
    return Request([select], n, np.arange(n, dtype=np.uint16), plans)


def _note_losses(source: Source, rows: np.ndarray, found: Checkup) -> None:
    found.losses += len(rows)
    found.lost_events += int(rows["count"][rows["count"] > 0].sum())
    for row in rows[:max(0, LISTED - len(found.lost))]:
        before, after, count = int(row["before"]), int(row["after"]), int(row["count"])
        found.lost.append(Loss(source.buffer_name, source.stream.cpu, before if before != -1 << 63 else None, after,
                               count if count >= 0 else None))


def _check_times(recording: Recording, source: Source, found: Checkup) -> None:
    """Where time steps back within a CPU's records."""
    last: Sequence[int] = ()
    seen = 0
    for columns in _Steps(source, times_request(recording), None):
        times = np.concatenate([np.array(last, np.int64), columns[0][TS].values])
        for at in np.nonzero(times[1:] < times[:-1])[0].tolist():
            before, after = int(times[at]), int(times[at + 1])
            detail = f"record {seen - len(last) + at + 1}: time goes back by {before - after}, from {before} to {after}"
            found.note(Problem(source.stream.cpu, 0, TIME_BACKWARDS, 0, source.buffer_name, detail))
        seen += len(times) - len(last)
        last = times[-1:].tolist()
