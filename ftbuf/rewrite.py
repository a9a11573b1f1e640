"""Recordings to trace.dat files: whole ones (convert), or a window, some CPUs, events or tasks of one (split).

Sub-buffers whose every record is wanted are copied whole; the wanted records of others are packed anew, byte for byte
but for their time deltas. Damaged parts are left out, and reported. Memory stays bounded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any

import numpy as np

from . import _core, progress
from .arguments import check_names
from .container import open_container
from .container.model import Buffer, Stream
from .container.pages import with_subbuf_size
from .container.parts import Parts
from .engine import AbiSpec, Driver, Judge, Piece, Run, Source, Window, clip, piece_pages
from .errors import EventNotFoundError, FormatError, UnsupportedError
from .recording import Pair, Recording
from .requests import check_slots, slots_request
from .selection import Selection, both, record_filter
from .trace import Trace

STEP_BYTES = 1 << 20  # of sub-buffers per call into C: bounds what is held in memory
MAX_PARTS = 10_000
MAX_SHARED = 1 << 20  # no kernel has larger sub-buffers (K:ring_buffer.c RB_WRITE_MASK)


@dataclass(slots=True)
class Written:
    """What one output file has.

    Attributes
    ----------
    path : str
        The file; "" where it was a file object.
    records : int
        Records written.
    copied, rebuilt : int
        Sub-buffers copied whole, and sub-buffers made anew.
    problems : list of Problem
        What was damaged, and so left out.
    """

    path: str
    records: int = 0
    copied: int = 0
    rebuilt: int = 0
    problems: Sequence[Any] = ()


def convert(source: Any, dest: Any, *, version: int = 7, compression: str | None = None, snapshot: bool = False,
            errors: str = "raise") -> Written:
    """Write a whole recording as a trace.dat of another version or compression; also a tracefs-shaped directory.

    Parameters
    ----------
    source
        As for ``ftbuf.open``; or a Trace: of a view (``Trace.window``), what it looks at.
    dest
        A path (the file appears when it is complete; it may be the source), or a seekable binary file.
    version : {6, 7}
    compression : {"none", "zlib", "zstd"}, optional
        None: the source's own, where version 7 has it.
    snapshot : bool
        Of a directory: the snapshot instead of the buffers.
    errors : {"raise", "warn", "skip"}
        What damage of the source leads to. With "warn" and "skip" all that is readable is written.

    Raises
    ------
    UnsupportedError
        Version 6 cannot express it.
    """
    with _recording(source, snapshot) as (recording, selection):
        rewriter = Rewriter(recording, version=version, compression=compression, errors=errors)
        return rewriter.write(dest, Wanted.of(selection))


def split(source: Any, dest: Any, *, start: int | None = None, end: int | None = None,
          cpus: Iterable[int] | None = None, events: Iterable[str] | None = None, pids: Iterable[int] | None = None,
          buffers: Iterable[str] | None = None, parts: int | None = None, every: int | None = None,
          version: int | None = None, compression: str | None = None, errors: str = "raise", where: str | None = None
          ) -> list[Written]:
    """Write part of a recording as a trace.dat, or all of it as several.

    Parameters
    ----------
    source
        As for ``ftbuf.open``; or a Trace: of a view (``Trace.window``), what it looks at.
    dest
        A path, or a seekable binary file. With several parts: the paths are ``dest.1``, ``dest.2`` and so on.
    start, end : int, optional
        Records of start <= time < end, in nanoseconds on the trace's clock.
    cpus, events, pids, buffers : optional
        Only these. Events are named as in ``ftbuf.open(source)``, or by patterns: ``sched_*``, ``irq:*``.
    parts : int, optional
        As many files, each of the same stretch of time.
    every : int, optional
        Files of so many nanoseconds each.
    version, compression : optional
        See ``convert``; None: the source's own.
    errors
        See ``convert``.
    where : str, optional
        A filter: see ``Trace.window``.
    """
    with _recording(source, False) as (recording, selection):
        rewriter = Rewriter(recording, version=version, compression=compression, errors=errors)
        names = None if events is None else tuple(check_names(events))
        given = None if where is None else record_filter(recording, where, rewriter.pairs(names))
        selection = selection.narrowed(start, end, cpus, pids, None, given)
        wanted = Wanted.of(selection, None if buffers is None else rewriter.known_buffers(buffers), names)
        if parts is None and every is None:
            return [rewriter.write(dest, wanted)]
        return rewriter.write_parts(dest, wanted, parts, every)


@contextmanager
def _recording(source: Any, snapshot: bool) -> Iterator[tuple[Recording, Selection]]:
    if isinstance(source, Trace):
        yield _one_file(source.recording, snapshot), source.selection
        return
    container = open_container(source)
    try:
        yield _one_file(Recording(container), snapshot), Selection()
    finally:
        container.close()


def _one_file(recording: Recording, snapshot: bool) -> Recording:
    if len(recording.files) > 1:
        raise UnsupportedError("several files that were opened together cannot be written as one")
    chosen = recording.snapshot() if snapshot else recording
    if chosen is None:
        raise FormatError(f"{recording.container.path}: there is no snapshot")
    return chosen


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records go into a file."""

    window: Window = field(default_factory=Window)
    cpus: frozenset[int] | None = None
    buffers: frozenset[str] | None = None
    events: tuple[str, ...] | None = None

    @classmethod
    def of(cls, selection: Selection, buffers: frozenset[str] | None = None,
           events: tuple[str, ...] | None = None) -> Wanted:
        """What a view looks at; of that, some buffers and events."""
        if selection.buffers is not None:
            buffers = both(buffers, selection.buffers)
        return cls(selection.window, selection.cpus, buffers, events)

    @property
    def everything(self) -> bool:
        return self == Wanted()


class Rewriter:
    """Writes files from one recording."""

    def __init__(self, recording: Recording, *, version: int | None = None, compression: str | None = None,
                 errors: str = "raise") -> None:
        from .container.tracedat import TraceDat

        self.recording = recording
        container = recording.container
        own = container if isinstance(container, TraceDat) else None
        self.version = version if version is not None else (6 if own is not None and own.version < 7 else 7)
        kept = own.compression if own is not None and self.version > 6 else "none"
        self.compression = compression if compression is not None else kept
        self.errors = errors
        self._backwards: dict[int, bool] = {}

    # ---- one file ----

    def write(self, dest: Any, wanted: Wanted) -> Written:
        """Write one file."""
        from .container.write import write_tracedat

        container = self.recording.container
        if container.text is not None and not wanted.everything:
            raise UnsupportedError(f"{container.path}: the recording is a text: it can only be converted as a whole")
        judge = Judge(self.errors)
        for problem in [*container.problems, *Parts(container).problems()]:
            judge.note(problem)
        buffers = self.buffers(wanted)
        sources = {id(s.stream): s for s in self.recording.sources()}
        slot_of, filters = self.slots(wanted)
        path = os.fsdecode(dest) if isinstance(dest, (str, os.PathLike)) else ""
        written = Written(path, problems=judge.problems)

        def pages(buffer: Buffer, stream: Stream) -> Iterator[memoryview]:
            packer = _Packer(sources[id(stream)], wanted.window, slot_of, self.recording.common_place("common_pid"),
                             buffer.subbuf_size, filters)
            return packer.run(self.piece(packer.source, wanted.window), judge, written)

        write_tracedat(dest, container, version=self.version, compression=self.compression, buffers=buffers,
                       pages=pages)
        judge.finish()
        return written

    def buffers(self, wanted: Wanted) -> list[Buffer]:
        """The buffers to write, each with the streams to write; in version 6 all with sub-buffers of one size."""
        chosen = []
        for buffer in self.recording.buffers:
            if wanted.buffers is None or buffer.name in wanted.buffers:
                streams = [s for s in buffer.streams if wanted.cpus is None or s.cpu in wanted.cpus]
                chosen.append(replace(buffer, streams=streams))
        if self.version == 6 and chosen:
            size = max(buffer.subbuf_size for buffer in chosen)
            if size > MAX_SHARED and any(buffer.subbuf_size < size for buffer in chosen):
                raise UnsupportedError(f"version 6 has one sub-buffer size for all buffers: {size} bytes are too many")
            chosen = [replace(b, subbuf_size=size, header_page=with_subbuf_size(b.header_page, size)) for b in chosen]
        return chosen

    def known_buffers(self, wanted: Iterable[str]) -> frozenset[str]:
        """The names of some buffers, all of which there are."""
        names, given = {buffer.name for buffer in self.recording.buffers}, frozenset(check_names(wanted))
        if given - names:
            raise ValueError(f"no buffer named {min(given - names)!r}; there are {sorted(names)}")
        return given

    def slots(self, wanted: Wanted) -> tuple[np.ndarray, list[_core.Program | None] | None]:
        """Event id -> a slot where the event is wanted; and the filters of the slots, if there are any."""
        pairs, where = self.pairs(wanted.events), wanted.window.where
        if pairs is None and where is None:
            return np.zeros(_core.N_IDS, np.uint16), None
        slot_of = np.full(_core.N_IDS, _core.NO_SLOT, np.uint16)
        ids = [i for i, pair in self.recording.id_index.items() if pairs is None or pair in pairs]
        slot_of[ids] = np.arange(len(ids))
        return (slot_of, None) if where is None else where.select(0, slot_of, check_slots(len(ids)))

    def pairs(self, events: Sequence[str] | None) -> list[Pair] | None:
        """The events of some names and patterns; None: all."""
        return None if events is None else list(dict.fromkeys(pair for name in events for pair in self.named(name)))

    def named(self, pattern: str) -> list[tuple[str, str]]:
        """The events of a name or a pattern."""
        if not any(c in pattern for c in "*?["):
            return [self.recording.find(pattern)]
        found = [(system, event) for system, event in self.recording.format_index
                 if fnmatchcase(event, pattern) or fnmatchcase(f"{system}:{event}", pattern)]
        if not found:
            raise EventNotFoundError(f"no event matches {pattern!r}")
        return found

    def piece(self, source: Source, window: Window) -> Piece:
        """What of a stream can hold records of the window: found by its sub-buffers' times, where these only rise."""
        everything = Piece(0, len(source.stream.segments))
        if window.bounds() is None or self.goes_backwards(source):
            return everything
        return clip(source, window)

    def goes_backwards(self, source: Source) -> bool:
        key = id(source.stream)
        if key not in self._backwards:
            request, _ = slots_request(self.recording)
            run = Run([source], Window(), request, Judge("skip"), at_once=False).to_end()
            self._backwards[key] = bool(run.decoder.stream_stats()[0][6])
        return self._backwards[key]

    # ---- several files ----

    def write_parts(self, dest: Any, wanted: Wanted, parts: int | None, every: int | None) -> list[Written]:
        """Write ``dest.1``, ``dest.2`` and so on."""
        if not isinstance(dest, (str, os.PathLike)):
            raise TypeError("several parts need a path")
        windows = self.windows(wanted, parts, every)
        return [self.write(f"{os.fsdecode(dest)}.{n}", replace(wanted, window=window))
                for n, window in enumerate(windows, 1)]

    def windows(self, wanted: Wanted, parts: int | None, every: int | None) -> list[Window]:
        """Windows that follow one another and together are the one wanted."""
        if (parts is None) == (every is None) or (parts or every or 0) < 1:
            raise ValueError("either parts or every is a positive number")
        window = wanted.window
        trace = Trace(self.recording, Selection(window), errors="skip")
        start = window.start if window.start is not None else trace.start
        end = window.end if window.end is not None else trace.end
        if start is None or end is None:
            return [window]
        length = max(end - start + (window.end is None), 1)  # the window's end is not in it, the last record is
        count = parts if parts is not None else -(-length // (every or 1))
        if count > MAX_PARTS:
            raise ValueError(f"that makes {count} parts; at most {MAX_PARTS} are written")
        inner = [start + (length * i // count if every is None else every * i) for i in range(1, count)]
        edges = [window.start, *inner, window.end]
        return [replace(window, start=a, end=b) for a, b in pairwise(edges)]


class _Packer:
    """The sub-buffers to write of one stream. The engine's driver feeds it as it feeds a decoder."""

    need = 0  # its only stream

    def __init__(self, source: Source, window: Window, slot_of: np.ndarray, pid_place: tuple[int, int] | None,
                 subbuf_size: int, filters: list[_core.Program | None] | None) -> None:
        self.source = source
        abi: AbiSpec = source.abi
        self.core = _core.Repacker(abi, source.clock, slot_of, window.bounds(), window.pid_filter(pid_place), subbuf_size,
                                   filters, source.stream.cpu)
        self.at_end = False

    def feed(self, stream: int, pages: Any, file_offset: int, last: bool, start: int = 0, stop: int = 1 << 62) -> None:
        self.at_end = pages is None
        if pages is not None:
            self.core.feed(pages, file_offset, start, stop)

    def take_problems(self) -> Any:
        return self.core.take_problems()

    def take(self) -> memoryview:
        pages: Any = self.core.take()
        return memoryview(pages)

    def run(self, piece: Piece, judge: Judge, written: Written) -> Iterator[memoryview]:
        driver = Driver([self.source], [piece], judge)
        pages = max(STEP_BYTES // self.source.abi[0], 1)
        steps = 0
        progress.begins(lambda: piece_pages(self.source, piece), lambda: steps * pages)
        driver.feed(self)
        while not self.at_end:
            more = self.core.step(pages)
            steps += 1
            driver.check(self)
            yield self.take()
            if not more:
                driver.feed(self)
        self.core.flush()
        yield self.take()
        records, copied, rebuilt = self.core.counts()
        written.records += records
        written.copied += copied
        written.rebuilt += rebuilt
