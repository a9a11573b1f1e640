"""The public API: Trace, EventView and the functions that open them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, engine
from .arguments import check_columns, check_names, columns_of, parse_size
from .clock import IDENTITY
from .container.model import Problem
from .engine import Judge, Request, Run, Source, Window
from .errors import ClosedError, FormatError
from .event import Event
from .exports import Origin, TraceExports
from .formats import EventFormat, Field
from .metadata import Metadata
from .opening import open_recording
from .recording import EventContext, Pair, Recording
from .requests import events_request, every_event_request, row_bytes, slots_request, timeline_request
from .selection import Selection, record_filter
from .survey import (
    Survey,
    first_time,
    last_time,
    losses,
    losses_table,
    problems_table,
    readable_pairs,
    short_records,
    survey,
)
from .table import ColumnData, Table
from .texts import TraceTexts, ViewTexts

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from .filters import Filter


def open(source: Any, *, errors: str = "raise", storage_options: dict[str, Any] | None = None, guests: Any = None,
         raw_ts: bool = False, hz: int | None = None, ts_offset: int = 0) -> Trace:
    """Open a recording.

    Parameters
    ----------
    source : path, bytes-like, binary file object or URL; or a list of them
        A trace.dat (versions 6 and 7), or the path of a tracefs-shaped directory. Several are read as one trace, merged
        by time: rows of equal time come in the order of the list. Every file's own event formats and task names decode
        its records; a table of an event has the columns that all files agree on (integers become the smallest type that
        holds them all), and its ``common_buffer`` is "FILE" or "FILE:INSTANCE".
    errors : {"raise", "warn", "skip"}
        What reads of this trace do about damaged data: raise on the first, warn once a read, or only list it in
        ``problems``. Damage costs at most the sub-buffer (or the compressed chunk) it is in.
    storage_options : dict, optional
        Passed to fsspec for URLs.
    guests : "auto", path or list, optional
        Recordings of a host's virtual machines, to be merged with it on the host's clock; "auto": the ``*.dat`` files
        beside the host's that it knows by their trace id.
    raw_ts : bool
        Leave time stamps as recorded: no guest's shift, no conversion to ns, no offset.
    hz : int, optional
        The clock counts this many ticks a second: convert to ns (instead of what the recording says of its TSC).
    ts_offset : int
        Add to all time stamps, in ns.

    Returns
    -------
    Trace

    Raises
    ------
    FormatError
        The source is no recording; the message says what was found.
    TruncatedError
        The source ends inside its metadata.
    """
    Judge(errors)
    recording = open_recording(source, storage_options=storage_options, guests=guests, raw_ts=raw_ts, hz=hz,
                               ts_offset=ts_offset)
    for file in recording.files:
        file.parts.errors = errors
    if isinstance(source, (str, bytes, os.PathLike, list, tuple)):
        recording.origin = Origin(open, source, {"errors": errors, "storage_options": storage_options, "guests": guests,
                                                 "raw_ts": raw_ts, "hz": hz, "ts_offset": ts_offset})
    return Trace(recording, errors=errors)


def read_events(source: Any, event: str, columns: Sequence[str] | None = None, *, start: int | None = None,
                end: int | None = None, cpus: Iterable[int] | None = None, where: str | None = None,
                threads: int | None = None, errors: str = "raise") -> Table:
    """All events of one kind of a recording, in one call.

    Parameters
    ----------
    source, errors
        As in ``open``.
    event : str
        "sched_switch", or "sched:sched_switch".
    columns, threads
        As in ``EventView.table``.
    start, end, cpus, where
        As in ``Trace.window``.

    Returns
    -------
    Table
    """
    with open(source, errors=errors) as trace:
        return trace[event].window(start, end, cpus=cpus, where=where).table(columns, threads=threads)


def iterate(sources: Any, event: str, columns: Sequence[str] | None = None, *, step_size: int | str = "64 MB",
            errors: str = "raise") -> Iterator[Table]:
    """Tables of one event, one recording after another, each in steps of bounded memory.

    Parameters
    ----------
    sources : what ``open`` takes, or a list of it
        A recording that has no such event yields nothing.
    event : str
        "sched_switch", or "sched:sched_switch".
    columns, step_size
        As in ``EventView.iterate``.
    errors : {"raise", "warn", "skip"}
        As in ``open``.

    Yields
    ------
    Table
        In time order within each recording.
    """
    Judge(errors)
    listed = list(sources) if isinstance(sources, (list, tuple)) else [sources]
    return steps_of(listed, event, check_columns(columns), parse_size(step_size), errors)


def steps_of(sources: list[Any], event: str, columns: list[str] | None, step_size: int, errors: str) -> Iterator[Table]:
    for source in sources:
        with open(source, errors=errors) as trace:
            if event in trace:
                yield from trace[event].iterate(columns, step_size=step_size)


# What is not for users: it may change.
FOR_LAYERS_ABOVE = frozenset({"filtered", "narrowed", "objects", "reader", "recording", "selection", "steps"})


def finished(records: Iterable[Any], judge: Judge) -> Iterator[Any]:
    """The records, and at their end what the judge has to say."""
    yield from records
    judge.finish()


class Trace(Metadata, TraceTexts, TraceExports, Mapping[str, "EventView"]):
    """A recording, or a window of one. Lazy: nothing is decoded before it is asked for.

    A mapping of event names to EventView: short names where they are unique, else "system:event".
    """

    def __init__(self, recording: Recording, selection: Selection | None = None, *, errors: str = "raise") -> None:
        self._recording = recording
        self._selection: Selection = selection if selection is not None else Selection()
        self._errors = errors

    # ---- life ----

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the recording. Tables, arrays and events that were handed out stay valid."""
        self._recording.close()

    def _open(self) -> Recording:
        if self._recording.closed:
            raise ClosedError("the trace is closed")
        return self._recording

    # ---- mapping ----

    def __getitem__(self, name: str) -> EventView:
        return EventView(self, self._open().find(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._open().keys)

    def __len__(self) -> int:
        return len(self._open().keys)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._open().pair(name) is not None

    # ---- metadata ----

    @property
    def events(self) -> dict[str, int]:
        """Events that occur in this view, with how often: also records that are too short for tables (see ``problems``)."""
        self._open()
        return dict(self._survey.counts)

    @property
    def unknown_events(self) -> int:
        """How many records have an event id without a format: they are in ``records()`` and ``timeline()`` alone."""
        self._open()
        return self._survey.unknown

    @property
    def start(self) -> int | None:
        """Time of the first record of this view; None when it has none."""
        return min(self._edges(first_time), default=None)

    @property
    def end(self) -> int | None:
        """Time of the last record of this view; None when it has none."""
        return max(self._edges(last_time), default=None)

    @property
    def lost(self) -> Table:
        """What the kernel lost: common_cpu, common_buffer, before, after, count.

        ``before`` and ``after`` are the times of the records around the gap (before is -1 << 63 where none was seen);
        ``count`` is -1 where the kernel did not say how many.
        """
        self._open()
        return self._lost

    @property
    def problems(self) -> Table:
        """Damaged and missing places: cpu (-1: none), buffer, offset, status, bytes, detail. Reads the whole view."""
        whole, files = self._survey.problems + self._short_records, self._open().files  # formats are noted on the way
        return problems_table([*(p for f in files for p in [*f.container.problems, *f.parts.problems()]), *whole])

    # ---- views ----

    @property
    def raw(self) -> Trace:
        """The same trace with its time stamps as recorded: what ``open(..., raw_ts=True)`` gives.

        Raises
        ------
        ValueError
            This is a window in time: its limits are corrected times. Take ``raw`` first.
        """
        if self._selection.window.bounds() is not None:
            raise ValueError("the limits of a window in time are corrected times: take raw first, then the window")
        recording = self._open().corrected(lambda _: IDENTITY)
        return Trace(recording, self._selection, errors=self._errors)

    @property
    def snapshot(self) -> Trace | None:
        """The snapshot (a latency tracer keeps one; or taken by hand) as a trace of its own; None: there is none."""
        recording = self._open().snapshot()
        return None if recording is None else Trace(recording, self._selection, errors=self._errors)

    def window(self, start: int | None = None, end: int | None = None, *, cpus: Iterable[int] | None = None,
               pids: Iterable[int] | None = None, buffer: str | Iterable[str] | None = None, where: str | None = None) -> Trace:
        """A cheap view of part of the trace; a view of a view is what both let through.

        Sub-buffers outside the window are not read: a CPU's are in time order.

        Parameters
        ----------
        start, end : int, optional
            start <= time < end, in ns on the trace clock (raw units for clocks that do not count ns).
        cpus : collection of int, optional
        pids : collection of int, optional
            Tasks that were running: by ``common_pid``.
        buffer : str or list of str, optional
            Names of buffers: see ``buffers``.
        where : str, optional
            A filter as the kernel or trace-cmd have them: ``"prev_pid != 0 && prev_comm ~ 'ftb*'"``, or
            ``"sched_switch: prev_prio < 100"`` (see docs/filters.md). Applied before anything is decoded. Events that
            lack a field do not match.

        Returns
        -------
        Trace

        Raises
        ------
        TypeError
            A time is a float, which cannot hold a time stamp exactly.
        ValueError
            There is no such buffer.
        FilterError
            The filter cannot be understood, or names what no event has; ``position`` says where.
        """
        return self._narrowed(start, end, cpus, pids, buffer, where)

    def _narrowed(self, start: int | None = None, end: int | None = None, cpus: Iterable[int] | None = None,
                  pids: Iterable[int] | None = None, buffer: str | Iterable[str] | None = None,
                  where: Filter | str | None = None,
                  pairs: Sequence[Pair] | None = None) -> Trace:
        """As window; `pairs` are the events that the filter is for."""
        self._open()
        buffers = None if buffer is None else check_names([buffer] if isinstance(buffer, str) else buffer, "buffer")
        unknown = next((name for name in buffers or () if name not in self.buffers), None)
        if unknown is not None:
            raise ValueError(f"no buffer named {unknown!r}; there are {self.buffers}")
        given = None if where is None else record_filter(self._open(), where, pairs)
        selection = self._selection.narrowed(start, end, cpus, pids, buffers, given)
        return Trace(self._recording, selection, errors=self._errors)

    def records(self, events: Iterable[str] | None = None, *, where: str | None = None) -> Iterator[Event]:
        """Events as objects, in time order over all CPUs and buffers, in bounded memory.

        Parameters
        ----------
        events : list of str, optional
            Names of the events wanted; None: all, also those that have no format.
        where : str, optional
            As in ``window``.

        Yields
        ------
        Event
            Valid for as long as it is kept, also after the trace is closed. Those of records that are shorter than their
            format, which tables leave out, are among them: fields beyond the record's end are None.
        """
        names = self._open().names.buffers
        view = self if where is None else self._narrowed(where=where, pairs=self._pairs(events))
        return view.objects(Event, lambda file: EventContext(file, names), events)

    def objects(self, cls: type[Any], make_context: Callable[[Recording], Any], events: Iterable[str] | None = None
                ) -> Iterator[Any]:
        """Records as objects of `cls`, a subclass of the core's Record, each with a context made for its file."""
        records, judge, _ = self.reader(cls, make_context, events)
        return finished(records, judge)

    def reader(self, cls: type[Any], make_context: Callable[[Recording], Any], events: Iterable[str] | None = None
               ) -> tuple[Any, Judge, list[tuple[int, tuple[str, str] | None]]]:
        """The core's Records, the judge to call at their end, and what each slot is: (file, (system, event) or None)."""
        recording = self._open()
        request, slots = slots_request(recording, self._pairs(events))
        contexts = [make_context(f) for f in recording.files]

        def info(slot: int) -> Any:
            i, pair = slots[slot]
            return recording.files[i].event_info(pair, contexts[i])

        judge = Judge(self._errors)
        run = Run(self._sources(), self._selection.window, request, judge, at_once=False, ahead=True,
                  blocks=False)  # a record holds the segment it is in
        return _core.Records(run.decoder, run.driver, info, len(slots), cls), judge, slots

    def table(self, event: str, columns: Sequence[str] | None = None, **options: Any) -> Table:
        """The same as ``self[event].table(columns)``."""
        return self[event].table(columns, **options)

    def tables(self, events: Iterable[str] | None = None, columns: Sequence[str] | None = None, *,
               threads: int | None = None, order: str = "time") -> dict[str, Table]:
        """Every event asked for (None: all that occur) in one pass over the pages.

        Parameters
        ----------
        events : list of str, optional
            Names of the events wanted.
        columns : list of str, optional
            Names that each event must have; None: all of each event's.
        threads, order
            As in ``EventView.table``.

        Returns
        -------
        dict of str to Table
        """
        recording = self._open()
        columns = check_columns(columns)
        if events is None:
            request = partial(every_event_request, recording, columns, self._is_understood)
            every = self._decoded_tables(request, columns, threads, order)
            return {recording.key_of[pair]: every[pair] for pair in sorted(every, key=recording.place_of.__getitem__)}
        wanted = [(pair, columns) for pair in dict.fromkeys(map(recording.find, check_names(events)))]
        found = self._decoded_tables(partial(events_request, recording, wanted), columns, threads, order)
        return {recording.key_of[pair]: table for pair, table in found.items()}

    def _decoded_tables(self, make: Callable[[], Request], columns: Sequence[str] | None, threads: int | None, order: str
                        ) -> dict[Pair, Table]:
        decoded = self._decode(make, threads, order)
        batches: dict[Pair, list[dict[str, ColumnData]]] = {}
        for request, tables in zip(decoded.requests, decoded.batches, strict=True):
            for pair, table in zip(request.met, tables, strict=True):
                batches.setdefault(pair, []).append(table)
        return {pair: Table(parts, self._columns(pair, columns), pair[1]) for pair, parts in batches.items()}

    def _is_understood(self, pair: Pair) -> bool:
        """Unless damage raises: whether an event's format can be."""
        return self._errors == "raise" or bool(readable_pairs(self._recording, [pair]))

    def iterate(self, events: Iterable[str] | None = None,
                columns: Sequence[str] | Mapping[str, Sequence[str]] | None = None, *, step_size: int | str = "64 MB"
                ) -> Iterator[dict[str, Table]]:
        """Several events in step: what ``tables`` gives, in pieces of bounded memory, each going on where the last ended.

        A step holds every record of the events asked for from one place of the merged stream to another, so that pairs of
        events can be matched step by step. Records of one time may stand on both sides of a place.

        Parameters
        ----------
        events : list of str, optional
            Names of the events wanted; None: all that occur.
        columns : list of str, or mapping of event name to list of str, optional
            Names that each event must have; None, or an event that the mapping lacks: all of the event's.
        step_size : int or str
            Bytes that a step's tables take in all, about; or text such as "64 MB".

        Yields
        ------
        dict of str to Table
            One table per event asked for, perhaps without rows.
        """
        return (tables for tables, _ in self.steps(events, columns, step_size=step_size))

    def timeline(self, events: Iterable[str] | None = None, *, threads: int | None = None, order: str = "time"
                 ) -> Table:
        """The header columns and the name (``event``) of all events, without payload.

        Parameters
        ----------
        events : list of str, optional
            Names of the events wanted; None: all, also those that have no format.
        threads, order
            As in ``EventView.table``.

        Returns
        -------
        Table
        """
        recording, pairs = self._open(), self._pairs(events)
        if not recording.format_index:
            raise FormatError("the recording has no event formats")
        decoded = self._decode(partial(timeline_request, recording, pairs), threads, order)
        return Table([part[0] for part in decoded.batches])

    # ---- for the layers above ----

    def steps(self, events: Iterable[str] | None = None,
              columns: Sequence[str] | Mapping[str, Sequence[str]] | None = None, *, step_size: int | str = "64 MB"
              ) -> Iterator[tuple[dict[str, Table], Table]]:
        """As ``iterate``, with what was lost: rows of ``lost`` that no step before had, all that began in this one."""
        recording, sources, window = self._open(), self._sources(), self._selection.window
        names = list(self.events) if events is None else check_names(events)
        pairs = {recording.find(n): n for n in names}
        chosen = list(filter(self._is_understood, pairs)) if events is None else pairs
        wanted = {pair: columns_of(columns, pairs[pair]) for pair in chosen}
        widest = max((row_bytes(recording, pair, own) for pair, own in wanted.items()), default=1)
        request = partial(events_request, recording, list(wanted.items()))
        rows = max(parse_size(step_size) // widest, 1)
        return (({recording.key_of[pair]: Table([step[i]], self._columns(pair, own), pair[1])
                  for i, (pair, own) in enumerate(wanted.items())}, losses_table(lost, sources, window, recording))
                for step, lost in engine.steps(sources, window, request, self._errors, rows))

    def filtered(self, where: Filter) -> Trace:
        """A view of the records that a filter matches."""
        return self._narrowed(where=where)

    def narrowed(self, **selection: Any) -> Trace:
        """A view of what ``Selection.arguments`` of another view says."""
        return self._narrowed(**selection)

    @property
    def recording(self) -> Recording:
        """The recording that this is a view of."""
        return self._open()

    @property
    def selection(self) -> Selection:
        """What this view leaves out of its recording."""
        return self._selection

    @property
    def errors(self) -> str:
        """What reads do about damaged data, as ``open`` was told."""
        return self._errors

    # ---- inside ----

    def _sources(self) -> list[Source]:
        chosen = self._selection
        return [s for s in self._open().sources() if (chosen.cpus is None or s.stream.cpu in chosen.cpus)
                and (chosen.buffers is None or s.buffer_name in chosen.buffers)]

    def _pairs(self, events: Iterable[str] | None) -> list[tuple[str, str]] | None:
        return None if events is None else [self._open().find(n) for n in check_names(events)]

    def _columns(self, pair: Pair, columns: Sequence[str] | None) -> list[str]:
        return list(columns) if columns is not None else self._recording.columns(pair)

    def _decode(self, make: Callable[[], Request], threads: int | None, order: str
                ) -> engine.Decoded:
        window = self._selection.window
        return engine.decode(self._sources(), window, make, self._errors, threads=threads, order=order)

    @cached_property
    def _survey(self) -> Survey:
        return survey(self._open(), self._sources(), self._selection.window)

    @cached_property
    def _lost(self) -> Table:
        known: Survey | None = self.__dict__.get("_survey")
        return losses(self._open(), self._sources(), self._selection.window) if known is None else known.lost

    @cached_property
    def _short_records(self) -> list[Problem]:
        return short_records(self._open(), self._sources(), self._selection.window, self._survey.counts)

    def _edges(self, find: Callable[[Recording, Source, Window], int | None]) -> list[int]:
        times = (find(self._open(), s, self._selection.window) for s in self._sources())
        return [t for t in times if t is not None]

    def __dir__(self) -> Iterable[str]:
        return [name for name in super().__dir__() if name not in FOR_LAYERS_ABOVE]

    def __reduce__(self) -> Any:
        raise TypeError("a trace cannot be pickled: its partitions() can, and other processes open them")

    def __repr__(self) -> str:
        if self._recording.closed:
            return "<ftbuf.Trace: closed>"
        r = self._recording
        size = f"{len(self.cpus)} CPUs, {len(r.format_index)} events"
        return f"<ftbuf.Trace {r.container.path!r}: {r.container.kind}, {size}>"

    def __str__(self) -> str:
        from .summary import summary_text

        return summary_text(self)

    def _repr_html_(self) -> str:
        from .summary import summary_html

        return summary_html(self)


class EventView(ViewTexts):
    """A lazy selection of one event of a trace."""

    def __init__(self, trace: Trace, pair: tuple[str, str]) -> None:
        self._trace: Trace = trace
        self._pair = pair

    @property
    def name(self) -> str:
        """The event's own name, without its system."""
        return self._pair[1]

    @property
    def system(self) -> str:
        """The system (directory of tracefs) that the event belongs to."""
        return self._pair[0]

    @property
    def key(self) -> str:
        """What the trace calls it: the short name where that is unique, else "system:event"."""
        return self._trace._open().key_of[self._pair]

    @property
    def format(self) -> EventFormat:
        """The event's format, parsed when first asked for."""
        return self._trace._open().format(*self._pair)

    @property
    def fields(self) -> list[Field]:
        """The event's own fields, as its format describes them."""
        return list(self.format.own_fields)

    @property
    def columns(self) -> list[str]:
        """Names of the columns of its table: header columns, then its own fields."""
        return self._trace._open().columns(self._pair)

    @property
    def column_names(self) -> list[str]:
        """The same, as tables call it."""
        return self.columns

    @property
    def derived(self) -> list[str]:
        """Names of further columns, made of its fields: only those who ask for them by name get them."""
        recording = self._trace._open()
        return list(recording.derived(recording.format(*self._pair)))

    def window(self, start: int | None = None, end: int | None = None, *, cpus: Iterable[int] | None = None,
               pids: Iterable[int] | None = None, buffer: str | Iterable[str] | None = None,
               where: str | None = None) -> EventView:
        """See ``Trace.window``."""
        return EventView(self._trace._narrowed(start, end, cpus, pids, buffer, where, [self._pair]), self._pair)

    def table(self, columns: Sequence[str] | None = None, *, threads: int | None = None, order: str = "time") -> Table:
        """Decode the columns asked for, of every event in the view.

        Parameters
        ----------
        columns : list of str, optional
            Names as in ``columns``; None: all of them.
        threads : int, optional
            How many threads decode at the most; None: as many as pay.
        order : {"time", "cpu"}
            Rows in time order over CPUs (ties by buffer and CPU, each CPU's in the order of its stream), or one CPU
            after another.

        Returns
        -------
        Table

        Raises
        ------
        ColumnNotFoundError
            The event has no such field; the message lists near names.
        DamageError
            The data is damaged, and the trace was opened with ``errors="raise"``.
        """
        columns = check_columns(columns)
        request = partial(events_request, self._trace._open(), [(self._pair, columns)])
        decoded = self._trace._decode(request, threads, order)
        return Table([part[0] for part in decoded.batches], self._trace._columns(self._pair, columns), self.name)

    def arrays(self, columns: Sequence[str] | None = None, *, threads: int | None = None, order: str = "time"
               ) -> dict[str, np.ndarray]:
        """The columns as NumPy arrays: read-only, contiguous, valid after the trace is closed.

        Parameters
        ----------
        columns, threads, order
            As in ``table``.

        Returns
        -------
        dict of str to numpy.ndarray
        """
        return self.table(columns, threads=threads, order=order).to_dict()

    def iterate(self, columns: Sequence[str] | None = None, *, step_size: int | str = "64 MB") -> Iterator[Table]:
        """Tables of at most about step_size bytes each, in time order: bounded memory for any recording.

        Parameters
        ----------
        columns : list of str, optional
            As in ``table``.
        step_size : int or str
            Bytes, or text such as "64 MB".

        Yields
        ------
        Table
        """
        trace, recording, columns = self._trace, self._trace._open(), check_columns(columns)
        names = trace._columns(self._pair, columns)
        rows = max(parse_size(step_size) // row_bytes(recording, self._pair, columns), 1)
        request = partial(events_request, recording, [(self._pair, columns)])
        steps = engine.iterate(trace._sources(), trace._selection.window, request, trace._errors, rows)
        return (Table([step[0]], names, self.name) for step in steps)

    def records(self) -> Iterator[Event]:
        """Its events as objects, in time order."""
        return self._trace.records([f"{self.system}:{self.name}"])

    def __len__(self) -> int:
        return self._trace.events.get(self.key, 0)

    def to_pandas(self, columns: Sequence[str] | None = None) -> pandas.DataFrame:
        """``table(columns).to_pandas()``"""
        return self.table(columns).to_pandas()

    def to_polars(self, columns: Sequence[str] | None = None) -> polars.DataFrame:
        """``table(columns).to_polars()``"""
        return self.table(columns).to_polars()

    def to_arrow(self, columns: Sequence[str] | None = None) -> pyarrow.Table:
        """``table(columns).to_arrow()``"""
        return self.table(columns).to_arrow()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        columns = "closed" if self._trace._recording.closed else ", ".join(self.columns)
        return f"<ftbuf.EventView {self.system}:{self.name}: {columns}>"
