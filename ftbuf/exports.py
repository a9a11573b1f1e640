"""What leaves a trace: parts of it for other processes, and files. A part of Trace."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from .arguments import check_names, parse_size
from .engine import Source
from .errors import DamageError, UnsupportedError
from .table import Table, require

if TYPE_CHECKING:
    from .recording import Recording

SAMPLES = 64  # of times, for each partition that is to be made


@dataclass(frozen=True, slots=True)
class Origin:
    """How a recording was opened, so that another process can do so, too."""

    opener: Callable[..., Any]
    source: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    def open(self) -> Any:
        return self.opener(self.source, **self.options)


@dataclass(frozen=True, slots=True)
class Partition:
    """A stretch of time of a trace. Can be pickled, and opens the recording by itself wherever it is unpickled.

    Attributes
    ----------
    start, end : int or None
        Records of start <= time < end; None: from the first, to the last.
    bytes : int
        About so many bytes of the recording.
    """

    start: int | None
    end: int | None
    bytes: int
    origin: Origin
    view: Mapping[str, Any]  # arguments of the window that it was made of

    def open(self) -> Any:
        """The part as a Trace, to be closed by the caller (a context manager)."""
        whole = self.origin.open()
        try:
            return whole.window(self.start, self.end).narrowed(**self.view)
        except BaseException:
            whole.close()
            raise

    def table(self, event: str, columns: Sequence[str] | None = None) -> Table:
        """The part's rows of an event, as ``EventView.table`` has them. Concatenated, those of all parts are the whole's."""
        with self.open() as trace:
            found: Table = trace[event].table(columns)
            return found

    def tables(self, events: Iterable[str] | None = None, columns: Sequence[str] | None = None) -> dict[str, Table]:
        """The part's tables, as ``Trace.tables`` has them."""
        with self.open() as trace:
            found: dict[str, Table] = trace.tables(events, columns)
            return found


class TraceExports:
    """The part of Trace that leaves it."""

    if TYPE_CHECKING:  # what Trace has
        iterate: Callable[..., Iterator[dict[str, Table]]]
        _selection: Any

        def _open(self) -> Recording: ...
        def _sources(self) -> list[Source]: ...

    def partitions(self, target_bytes: int | str = 64 << 20) -> list[Partition]:
        """Parts of this view that follow one another in time, for other processes: each opens the recording by itself.

        Every record is in exactly one of them.

        Parameters
        ----------
        target_bytes : int or str
            About so many bytes of the recording in each, or text such as "64 MB".

        Returns
        -------
        list of Partition

        Raises
        ------
        UnsupportedError
            The trace was not opened from a path, a URL or bytes; or this is its snapshot, or ``raw``.
        """
        size = parse_size(target_bytes)
        origin = self._open().origin
        if origin is None:
            raise UnsupportedError("another process cannot open this trace: it is no path, URL or bytes, or a variant of one")
        places = sampled_times(self._sources(), size // SAMPLES + 1)
        cuts = time_cuts(places, size, self._selection.window)
        window = self._selection.window
        edges = [window.start, *cuts, window.end]
        view = self._selection.arguments()
        total = sum(weight for _, weight in places)
        return [Partition(a, b, total // (len(cuts) + 1), origin, view) for a, b in pairwise(edges)]

    def to_parquet(self, directory: str | os.PathLike[str], events: Iterable[str] | None = None, *,
                   compression: str = "zstd", step_size: int | str = "64 MB") -> dict[str, Path]:
        """Write the events as Parquet files, one an event, in one pass and bounded memory.

        Parameters
        ----------
        directory : path
            Made where it is not there. Files are named by their events, "sched_switch.parquet", and replaced.
        events : list of str, optional
            Names of the events wanted; None: all that occur.
        compression : str
            As pyarrow has it: "zstd", "snappy", "none", ...
        step_size : int or str
            As in ``iterate``: how much is held, and what becomes a row group.

        Returns
        -------
        dict of str to pathlib.Path
            The file of each event, also of those without rows.
        """
        parquet = require("pyarrow.parquet", "arrow")
        wanted = None if events is None else check_names(events)
        steps = self.iterate(wanted, step_size=step_size)
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        writers: dict[str, Any] = {}
        paths: dict[str, Path] = {}
        with ExitStack() as stack:
            for step in steps:
                for name, table in step.items():
                    arrow = table.to_arrow()
                    if name not in writers:
                        paths[name] = folder / f"{name.replace(':', '.')}.parquet"
                        writers[name] = stack.enter_context(
                            parquet.ParquetWriter(paths[name], arrow.schema, compression=compression))
                    if table.num_rows:
                        writers[name].write_table(arrow)
        return paths


def sampled_times(sources: Sequence[Source], step: int) -> list[tuple[int, int]]:
    """(time, bytes) of a sub-buffer every so many bytes of each stream, and how many bytes it stands for."""
    found = []
    for source in sources:
        walker, subbuf = _core.Walker(source.abi, source.clock), source.abi[0]
        stride = max(step // subbuf, 1)
        carried = 0  # sub-buffers since the last sample
        for index, segment in enumerate(source.stream.segments):
            count = segment.size // subbuf
            wanted = range((-carried) % stride, count, stride)
            carried = (carried + count) % stride
            if not wanted:
                continue
            try:
                pages = _core.Pages(source.stream.load(index))
            except DamageError:
                continue
            found += [(walker.page_time(pages, page), stride * subbuf) for page in wanted if page < len(pages) // subbuf]
    return found


def time_cuts(places: Sequence[tuple[int, int]], size: int, window: Any) -> list[int]:
    """Times between parts of about `size` bytes, ascending, all inside the window."""
    if not places:
        return []
    times, weights = (np.array(column, np.int64) for column in zip(*sorted(places), strict=True))
    inside = np.ones(len(times), np.bool_)
    if window.start is not None:
        inside &= times > window.start
    if window.end is not None:
        inside &= times < window.end
    times, weights = times[inside], weights[inside]
    if not len(times):
        return []
    before = np.cumsum(weights) - weights
    parts = max(round(int(weights.sum()) / size), 1)
    at = np.searchsorted(before, [int(weights.sum()) * i // parts for i in range(1, parts)])
    cuts: list[int] = np.unique(times[at[at < len(times)]]).tolist()
    return cuts
