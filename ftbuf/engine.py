"""Runs the C core over streams: clips them to a window, feeds segments, judges damage, collects columns."""

from __future__ import annotations

import os
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, islice, pairwise
from typing import Any, ClassVar, Protocol

import numpy as np

from . import _core, progress
from .ahead import segments_of
from .clock import ClockSpec
from .container.model import Problem, Stream
from .errors import DamageError, DamageWarning, TruncatedError
from .plan import ORDER, TS, ColumnPlan, Op
from .table import ColumnData, interleaved

PROBLEM = np.dtype([("offset", "u8"), ("bytes", "u8"), ("stream", "u4"), ("status", "u4")])
LOSS = np.dtype([("before", "i8"), ("after", "i8"), ("count", "i8"), ("stream", "u4"), ("unused", "u4")])
CUT = frozenset({"truncated", "page_short", "page_cut"})  # statuses of an input that ends too early
STEP = 1 << 20  # records per call into C: between calls signals are seen
TRIES = 16  # damaged segments that a search by time gets around
MOST_THREADS = 256
THREAD_BYTES = 16 << 20  # a thread's share below which starting it does not pay

AbiSpec = tuple[int, int, int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Source:
    """One CPU's stream as the engine sees it."""

    stream: Stream
    buffer: int  # position in the recording's buffers
    buffer_name: str
    abi: AbiSpec
    clock: ClockSpec
    file: int = 0  # position in the files that are read together


@dataclass(frozen=True, slots=True)
class Piece:
    """Sub-buffers of one stream: segments first to last - 1; of the first from byte start, of the last to byte stop."""

    first: int
    last: int
    start: int = 0
    stop: int | None = None


class Judge:
    """What damage leads to: an exception, a warning, or a row only."""

    def __init__(self, errors: str) -> None:
        if errors not in ("raise", "warn", "skip"):
            raise ValueError(f"errors must be 'raise', 'warn' or 'skip', not {errors!r}")
        self.errors = errors
        self.problems: list[Problem] = []

    def note(self, problem: Problem) -> None:
        self.problems.append(problem)
        if self.errors == "raise":
            raise damage_error(problem)

    def finish(self) -> None:
        if self.errors == "warn" and self.problems:
            first = describe(self.problems[0])
            more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
            warnings.warn(f"{first}{more}", DamageWarning, stacklevel=3)


def describe(problem: Problem) -> str:
    message = problem.detail or _core.MESSAGES.get(problem.status, problem.status)
    where = f"CPU {problem.cpu}, " if problem.cpu >= 0 else ""
    buffer = f"buffer {problem.buffer!r}, " if problem.buffer else ""
    return f"{buffer}{where}offset {problem.offset:#x}: {message} [{problem.status}]"


def damage_error(problem: Problem) -> DamageError:
    """The one place that turns a status into an exception."""
    kind = TruncatedError if problem.status in CUT else DamageError
    return kind(describe(problem), status=problem.status, cpu=problem.cpu, offset=problem.offset)


class RecordFilter(Protocol):
    """A ``where=``, made for the files of one recording."""

    def select(self, file: int, slot_of: np.ndarray, n_slots: int) -> tuple[np.ndarray, list[_core.Program | None]]:
        """Narrow a file's table of event ids -> slots, and the program of each slot (None: all records)."""


@dataclass(frozen=True, slots=True)
class Window:
    """Which records are wanted: what is decided before anything is gathered."""

    start: int | None = None
    end: int | None = None
    pids: tuple[int, ...] | None = None
    where: RecordFilter | None = None

    def bounds(self) -> tuple[int, int] | None:
        if self.start is None and self.end is None:
            return None
        start = -(1 << 63) if self.start is None else self.start
        return start, (1 << 63) - 1 if self.end is None else self.end

    def pid_filter(self, place: tuple[int, int] | None) -> tuple[np.ndarray, int, int] | None:
        """The pids as C wants them, with the place of common_pid (None: records have none, so that none is wanted)."""
        if self.pids is None:
            return None
        return np.array(sorted({pid for pid in self.pids if -1 << 31 <= pid < 1 << 31}), np.int32), *(place or (0, 0))


# ---- clipping a stream to a time window ----


class Clip:
    """Finds the sub-buffers of a stream that a time window can touch, by searching their time stamps."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.walker = _core.Walker(source.abi, source.clock)
        self.count = len(source.stream.segments)

    def pages(self, index: int) -> Any:
        try:
            return _core.Pages(self.source.stream.load(index))
        except DamageError:
            return None  # met again, and reported, when it is decoded

    def segment_time(self, index: int) -> int:
        """When a segment begins; one that cannot be read counts as its left neighbour."""
        for at in range(index, max(index - TRIES, -1), -1):
            pages = self.pages(at)
            if pages is not None and len(pages):
                time: int = self.walker.page_time(pages, 0)
                return time
        return -(1 << 63)

    def search(self, ts: int, low: int, high: int) -> int:
        """Index of the first segment of low to high that begins after ts."""
        return bisect_right(range(high), ts, low, key=self.segment_time)

    def first_after(self, ts: int) -> int:
        """The same of all; where times contradict one another (one of them is damaged), rather too early."""
        found = self.search(ts, 0, self.count)
        for _ in range(TRIES):
            if found < 2 or self.segment_time(found - 2) <= ts:
                break
            found = self.search(ts, 0, found - 2)
        return found

    def last_after(self, ts: int) -> int:
        """The same of all; where times contradict one another, rather too late."""
        found = self.search(ts, 0, self.count)
        for _ in range(TRIES):
            if found + 1 >= self.count or self.segment_time(found + 1) > ts:
                break
            found = self.search(ts, found + 2, self.count)
        return found

    def piece(self, start: int | None, end: int | None) -> Piece:
        """Sub-buffers that can hold records of start <= ts < end; one more on each side, in case the nearest is bad."""
        subbuf = self.source.abi[0]
        first = last = 0
        skip, stop = 0, None
        last = self.count
        if start is not None and self.count:
            # many sub-buffers may begin at `start` itself, where a clock is coarse: all of them are wanted, and one before
            before = max(start - 1, -(1 << 63))
            first = max(self.first_after(before) - 1, 0)
            if (pages := self.pages(first)) is not None:
                skip = max(self.walker.find_page(pages, before) - 3, 0) * subbuf
            if first > 0 and skip == 0:
                first -= 1
        if end is not None and self.count:
            last = self.last_after(end - 1)
            if last > 0 and (pages := self.pages(last - 1)) is not None:
                stop = (self.walker.find_page(pages, end - 1) + 1) * subbuf
            if last < self.count and stop is not None and pages is not None and stop >= len(pages):
                last, stop = last + 1, subbuf
        return Piece(first, last, skip, stop)


# ---- one decode ----


class Driver:
    """Feeds a decoder's streams with their segments, and turns what C reports into problems."""

    def __init__(self, sources: Sequence[Source], pieces: Sequence[Piece], judge: Judge, *, forget: bool = False,
                 ahead: bool = False, blocks: bool = False) -> None:
        self.sources = sources
        self.pieces = pieces
        self.blocks = blocks  # what is fed takes several segments at once
        self.judge = judge
        self.segments = segments_of([s.stream for s in sources], [p.last for p in pieces], ahead)
        self.forget = forget  # let go of what was decoded: for passes that take little memory themselves
        self.next = [p.first for p in pieces]

    def feed(self, decoder: Any) -> None:
        """Give the stream that waits its next readable segments, or the word that there are none."""
        i = decoder.need
        stream, piece = self.sources[i].stream, self.pieces[i]
        while self.next[i] < piece.last:
            block = self.block(i)
            if len(block) == 1:
                pages, offset, start, stop = block[0]
                decoder.feed(i, pages, offset, False, start, stop)
                return
            if block:
                decoder.feed_block(i, block)
                return
        decoder.feed(i, None, 0, True)
        if piece.last == len(stream.segments) and piece.stop is None:
            for problem in stream.problems:
                self.judge.note(replace(problem, buffer=self.sources[i].buffer_name))

    def block(self, i: int) -> list[tuple[Any, int, int, int]]:
        """The next segments up to one that cannot be read: chunks are many and small, others large and few."""
        stream, piece = self.sources[i].stream, self.pieces[i]
        first = self.next[i]
        block = []
        for index in self.segments.places(i, first) if self.blocks and stream.compressed else range(first, first + 1):
            self.next[i] = index + 1
            if self.forget and index > piece.first:
                stream.forget(index - 1)
            try:
                pages = _core.Pages(self.segments.load(i, index))
            except DamageError as error:
                self.note_lost_segment(i, index, error)
                break
            last = index + 1 == piece.last
            stop = piece.stop if last and piece.stop is not None else len(pages)
            block.append((pages, stream.segments[index].offset, piece.start if index == piece.first else 0, stop))
        return block

    def note_lost_segment(self, i: int, index: int, error: DamageError) -> None:
        source, segment = self.sources[i], self.sources[i].stream.segments[index]
        offset = error.offset if error.offset is not None else segment.offset
        self.judge.note(Problem(source.stream.cpu, offset, error.status, segment.size, source.buffer_name, str(error)))

    def check(self, decoder: Any) -> None:
        """Turn problem rows of C into Problems."""
        rows = decoder.take_problems()
        if not len(rows):
            return
        for row in np.frombuffer(rows, PROBLEM):
            source = self.sources[row["stream"]]
            status = _core.STATUSES[row["status"]]
            offset, size = int(row["offset"]), int(row["bytes"])
            self.judge.note(Problem(source.stream.cpu, offset, status, size, source.buffer_name))


@dataclass(slots=True)
class Select:
    """What the streams of one file let through: event ids and places of fields mean something in one file only."""

    slot_of: np.ndarray  # uint16, one per possible event id -> slot
    pid_place: tuple[int, int] | None = None  # offset, width of common_pid: what a pid filter needs
    comm_codes: np.ndarray | None = None  # int32: pid -> code


@dataclass(slots=True)
class EventPlan:
    """The columns that records of some slots of one file become."""

    min_len: int
    big_endian: bool
    columns: list[ColumnPlan]
    file: int = 0


@dataclass(slots=True)
class TableParts:
    """The plans whose rows make up one table, one per file that has the event, and its columns."""

    plans: list[int]
    names: list[str]


@dataclass(slots=True)
class Request:
    """What to decode: per file event ids to slots; slots to plans, plans to columns, plans to tables."""

    selects: list[Select]  # one per file
    n_slots: int
    plan_of_slot: np.ndarray  # uint16
    plans: list[EventPlan]
    tables: list[TableParts] | None = None  # None: one table a plan
    met: list[tuple[str, str]] = field(default_factory=list)  # the events whose tables they are
    meets: ClassVar[bool] = False  # whether slots may wait for a plan

    def meet(self, slot: int) -> None:
        """Add what a slot needs, now that a record of it was met."""
        raise NotImplementedError


@dataclass(slots=True)
class Result:
    """What a decode found besides columns."""

    counts: np.ndarray
    losses: np.ndarray
    stream_stats: list[tuple[Any, ...]]
    outside: list[int] = field(default_factory=list)


class Run:
    """One pass over some streams."""

    def __init__(self, sources: Sequence[Source], window: Window, request: Request, judge: Judge,
                 pieces: Sequence[Piece] | None = None, *, at_once: bool = True, ahead: bool = False,
                 blocks: bool = True) -> None:
        self.sources = sources
        self.request = request
        self.judge = judge
        self.window = window
        self.pieces = pieces if pieces is not None else [clip(s, window) for s in sources]
        self.driver = Driver(sources, self.pieces, judge, forget=not at_once, ahead=ahead, blocks=blocks)
        self.decoder = self.make_decoder(sum(map(piece_bytes, sources, self.pieces)) if at_once else 0)
        self.done = False
        progress.begins(lambda: sum(map(piece_pages, sources, self.pieces)),
                        lambda: sum(stats[0] for stats in self.decoder.stream_stats()))

    def make_decoder(self, total_bytes: int) -> Any:
        abis = sorted({s.abi for s in self.sources})
        clocks: list[ClockSpec] = []
        for s in self.sources:
            if s.clock not in clocks:
                clocks.append(s.clock)
        streams = [(s.stream.cpu, s.buffer, abis.index(s.abi), clocks.index(s.clock), s.file) for s in self.sources]
        selects = [self.select(i, s) for i, s in enumerate(self.request.selects)]
        return _core.Decoder(abis, clocks, streams, selects, self.request.n_slots, self.window.bounds(), total_bytes)

    def select(self, file: int, select: Select) -> tuple[np.ndarray, Any, Any, Any]:
        """What the streams of one file let through, as C wants it."""
        slot_of, programs = select.slot_of, None
        if self.window.where is not None:
            slot_of, programs = self.window.where.select(file, slot_of, self.request.n_slots)
        return slot_of, self.window.pid_filter(select.pid_place), select.comm_codes, programs

    def set_plans(self) -> None:
        request = self.request
        room = request.n_slots if request.meets else 0
        self.decoder.set_plans(request.plan_of_slot, list(map(plan_spec, request.plans)), room)

    def meet(self, slot: int) -> None:
        """A record of an event is next that none was met of before."""
        known = len(self.request.plans)
        self.request.meet(slot)
        self.decoder.add_plans(list(map(plan_spec, self.request.plans[known:])))

    def step(self, max_records: int) -> bool:
        """Decode up to max_records more; False when nothing is left."""
        if self.done:
            return False
        status = self.decoder.step(max_records)
        self.driver.check(self.decoder)
        if status == _core.NEED_SEGMENT:
            self.driver.feed(self.decoder)
        elif status == _core.NEED_PLAN:
            self.meet(self.decoder.new_slot)
        self.done = status == _core.DONE
        return not self.done

    def take(self) -> list[dict[str, ColumnData]]:
        """The columns decoded since the last take, per table."""
        taken = []
        for i, plan in enumerate(self.request.plans):
            _, memory = self.decoder.take(i)
            pieces = iter(memory)
            taken.append({c.name: c.finish(*next(pieces)) if not c.more else
                          c.finish(*chain.from_iterable(islice(pieces, len(c.ops)))) for c in plan.columns})
        if self.request.tables is None:
            return taken
        return [taken[t.plans[0]] if len(t.plans) == 1 else
                interleaved([taken[i] for i in t.plans], ORDER if ORDER in t.names else TS, t.names)
                for t in self.request.tables]

    def result(self) -> Result:
        losses = np.frombuffer(self.decoder.take_losses(), LOSS)
        outside = [self.decoder.outside(i) for i in range(len(self.request.plans))]
        return Result(np.array(self.decoder.counts(), np.int64), losses, self.decoder.stream_stats(), outside)

    def to_end(self) -> Run:
        self.set_plans()
        while self.step(STEP):
            pass
        return self


def plan_spec(plan: EventPlan) -> tuple[int, int, list[Op], int]:
    """A plan as the decoder takes it."""
    return plan.min_len, int(plan.big_endian), [op for c in plan.columns for op in c.ops], plan.file


def each_alone(sources: Sequence[Source], window: Window, request: Request) -> list[Run]:
    """Every stream read to its end by itself, for what needs no order between them; `request` has no columns."""
    runs = [Run([s], window, request, Judge("skip"), at_once=False) for s in sources]
    workers = min(thread_count(sources, None), len(runs))
    if workers > 1:
        from concurrent.futures import ThreadPoolExecutor  # half of what ftbuf itself takes to import

        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(Run.to_end, runs))
    return [run.to_end() for run in runs]


def piece_pages(source: Source, piece: Piece) -> int:
    return piece_bytes(source, piece) // source.abi[0]


def piece_bytes(source: Source, piece: Piece) -> int:
    sizes = source.stream.sizes[piece.first:piece.last]
    beyond = max(sizes[-1] - piece.stop, 0) if sizes and piece.stop is not None else 0
    return max(sum(sizes) - beyond - piece.start, 0)


def clip(source: Source, window: Window) -> Piece:
    if window.start is None and window.end is None:
        return Piece(0, len(source.stream.segments))
    return Clip(source).piece(window.start, window.end)


class MakeRequest(Protocol):
    """Makes a fresh Request: dictionaries belong to one decoder each."""

    def __call__(self) -> Request: ...


@dataclass(slots=True)
class Decoded:
    """Per part (in row order) the request and the columns of each of its tables."""

    requests: list[Request]
    batches: list[list[dict[str, ColumnData]]]


def decode(sources: Sequence[Source], window: Window, make: MakeRequest, errors: str, *, threads: int | None = 1,
           order: str = "time") -> Decoded:
    """Decode what is asked for."""
    judge = Judge(errors)
    if order == "cpu":
        parts = [[s] for s in sources] or [[]]
        runs = [Run(part, window, make(), judge).to_end() for part in parts]
    elif order == "time":
        runs = in_time_order(sources, window, make, judge, threads)
    else:
        raise ValueError(f"order must be 'time' or 'cpu', not {order!r}")
    judge.finish()
    return Decoded([run.request for run in runs], [run.take() for run in runs])


def in_time_order(sources: Sequence[Source], window: Window, make: MakeRequest, judge: Judge, threads: int | None) -> list[Run]:
    cuts = time_cuts(sources, window, thread_count(sources, threads))
    if cuts:
        runs = in_threads(sources, window, make, judge, cuts)
        if runs is not None:
            return runs
        judge.problems.clear()
    return [Run(sources, window, make(), judge, ahead=threads != 1).to_end()]


def thread_count(sources: Sequence[Source], threads: int | None) -> int:
    size = sum(sum(s.stream.sizes) for s in sources)
    if threads is None:
        return max(1, min(os.cpu_count() or 1, size // THREAD_BYTES))
    if isinstance(threads, bool) or not isinstance(threads, int):
        raise TypeError(f"threads is an int, not {type(threads).__name__}")
    if threads < 1:
        raise ValueError("threads must be at least 1")
    return min(threads, MOST_THREADS)


def time_cuts(sources: Sequence[Source], window: Window, parts: int) -> list[int]:
    """Times that cut the window into parts of about the same number of sub-buffers, by the largest stream."""
    if parts < 2 or not sources:
        return []
    largest = max(sources, key=lambda s: sum(s.stream.sizes))
    finder, cuts = Clip(largest), set()
    low, high = window.bounds() or (-(1 << 63), (1 << 63) - 1)
    piece = clip(largest, window)
    total = sum(largest.stream.sizes[piece.first:piece.last])
    for part in range(1, parts):
        time = time_at(finder, piece, total * part // parts)
        if time is not None and low < time < high:
            cuts.add(time)
    return sorted(cuts)


def time_at(finder: Clip, piece: Piece, offset: int) -> int | None:
    """Time of the sub-buffer at a byte offset into a piece."""
    subbuf, sizes = finder.source.abi[0], finder.source.stream.sizes
    for i in range(piece.first, piece.last):
        size = sizes[i]
        if offset < size:
            pages = finder.pages(i)
            return None if pages is None else finder.walker.page_time(pages, offset // subbuf)
        offset -= size
    return None


def meet(source: Source, piece: Piece, after: Piece) -> bool:
    """Whether two pieces of a stream share a sub-buffer.

    Where all neighbours do, and no part saw the clock step back, it nowhere does, and no sub-buffer was left out.
    """
    sizes = source.stream.sizes
    if not len(sizes):
        return True
    if piece.last == 0 or after.first >= len(sizes):
        return False
    starts = list(accumulate(sizes, initial=0))
    stop = sizes[piece.last - 1] if piece.stop is None else min(piece.stop, sizes[piece.last - 1])
    return starts[after.first] + after.start < starts[piece.last - 1] + stop


def in_threads(sources: Sequence[Source], window: Window, make: MakeRequest, judge: Judge, cuts: list[int]) -> list[Run] | None:
    """One part of the time range a thread. None when a clock stepped back: a cut by time would misplace records."""
    edges = [window.start, *cuts, window.end]
    windows = [replace(window, start=a, end=b) for a, b in pairwise(edges)]
    runs = [Run(sources, w, make(), Judge("skip")) for w in windows]
    from concurrent.futures import ThreadPoolExecutor  # half of what ftbuf itself takes to import

    with ThreadPoolExecutor(len(runs)) as pool:
        list(pool.map(lambda run: run.to_end(), runs))
    if not all(meet(source, run.pieces[i], after.pieces[i]) for run, after in pairwise(runs)
               for i, source in enumerate(sources)):
        return None
    if any(stats[6] for run in runs for stats in run.decoder.stream_stats()):
        return None
    for problem in sorted({p for run in runs for p in run.judge.problems}, key=lambda p: (p.buffer, p.cpu, p.offset)):
        judge.note(problem)
    return runs


def iterate(sources: Sequence[Source], window: Window, make: MakeRequest, errors: str, rows: int
            ) -> Iterator[list[dict[str, ColumnData]]]:
    """Decode in steps of about `rows` records, in bounded memory."""
    for columns, _ in steps(sources, window, make, errors, rows):
        yield columns


def steps(sources: Sequence[Source], window: Window, make: MakeRequest, errors: str, rows: int
          ) -> Iterator[tuple[list[dict[str, ColumnData]], np.ndarray]]:
    """As iterate; with each step the losses that were met since the one before: all that began before the step's end.

    (Where a step ends, every stream was scanned up to its next record, and so were the gaps before that.)
    """
    judge = Judge(errors)
    run = Run(sources, window, make(), judge, at_once=False, ahead=True)
    run.set_plans()
    more, told = True, 0
    while more:
        seen = 0
        while more and seen < rows:
            more = run.step(min(rows - seen, STEP))
            seen = sum(run.decoder.rows(i) for i in range(len(run.request.plans)))
        if seen:
            losses = np.frombuffer(run.decoder.losses_from(told * LOSS.itemsize), LOSS)
            told += len(losses)
            yield run.take(), losses
    judge.finish()
