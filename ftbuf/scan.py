"""Recordings as lazy frames, of Polars and Dask: what a query does not need is not decoded."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .arguments import check_ints, check_time
from .errors import EventNotFoundError
from .exports import Partition
from .table import Encoded, Table, require
from .trace import EventView, open

if TYPE_CHECKING:
    import dask.dataframe
    import pandas
    import polars

STEP = "64 MB"


def scan_trace(sources: Any, event: str, *, start: int | None = None, end: int | None = None,
               cpus: Iterable[int] | None = None, where: str | None = None, errors: str = "raise") -> polars.LazyFrame:
    """Events of one kind as a LazyFrame of Polars, of one recording after another.

    Columns that the query does not use are not decoded; what it asks of ``common_ts`` and ``common_cpu`` decides which
    parts of the recordings are read at all, and its head (``limit``) where reading ends.

    Parameters
    ----------
    sources : what ``open`` takes, or a list of it
        Opened anew for each query. A recording that has no such event has no rows.
    event : str
        "sched_switch", or "sched:sched_switch".
    start, end, cpus, where
        As in ``Trace.window``.
    errors : {"raise", "warn", "skip"}
        As in ``open``.

    Returns
    -------
    polars.LazyFrame
        In time order within each recording.

    Raises
    ------
    EventNotFoundError
        None of the recordings has such an event.
    """
    plugins = require("polars.io.plugins", "polars")
    listed = list(sources) if isinstance(sources, (list, tuple)) else [sources]
    chosen = Bounds(check_time("start", start), check_time("end", end),
                    None if cpus is None else frozenset(check_ints("cpus", cpus)))

    def views(bounds: Bounds) -> Generator[EventView]:
        for source in listed:
            with open(source, errors=errors) as trace:
                if event in trace:
                    yield trace[event].window(bounds.start, bounds.end, cpus=bounds.cpus, where=where)

    def read(with_columns: list[str] | None, predicate: Any, n_rows: int | None, batch_size: int | None) -> Iterator[Any]:
        bounds = chosen if predicate is None else chosen.and_those_of(predicate)
        columns = columns_needed(with_columns, predicate)
        left = sys.maxsize if n_rows is None else n_rows  # Polars gives either a predicate or a number of rows
        for view in views(bounds):
            for table in view.iterate(columns, step_size=STEP):
                frame = table.to_polars()
                if predicate is not None:
                    frame = frame.filter(predicate)
                if with_columns is not None:
                    frame = frame.select(with_columns)
                yield frame.head(left)
                left -= min(left, len(frame))
                if not left:
                    return

    return plugins.register_io_source(read, schema=schema_of(views(chosen), event), is_pure=True)


def from_dask(sources: Any, event: str, columns: Sequence[str] | None = None, *, target_bytes: int | str = 64 << 20,
              errors: str = "raise") -> dask.dataframe.DataFrame:
    """Events of one kind as a Dask DataFrame, of one recording after another: a partition for each stretch of time.

    Parameters
    ----------
    sources : path, URL or bytes; or a list of them
        Opened by the workers, which must reach them. A recording that has no such event has no rows.
    event : str
        "sched_switch", or "sched:sched_switch".
    columns : list of str, optional
        As in ``EventView.table``.
    target_bytes : int or str
        About so many bytes of a recording in each partition.
    errors : {"raise", "warn", "skip"}
        As in ``open``.

    Returns
    -------
    dask.dataframe.DataFrame
        In time order within each recording; strings are strings of pyarrow, as Dask has them.

    Raises
    ------
    EventNotFoundError
        None of the recordings has such an event.
    """
    frames = require("dask.dataframe", "dask")
    parts = []
    meta = None
    for source in sources if isinstance(sources, (list, tuple)) else [sources]:
        with open(source, errors=errors) as trace:
            if event in trace:
                meta = as_frame(trace[event].window(end=-(1 << 63)).table(columns)) if meta is None else meta
                parts += trace.partitions(target_bytes)
    if meta is None:
        raise EventNotFoundError(f"no recording has an event named {event!r}")
    return frames.from_map(partition_frame, parts, event=event, columns=columns, meta=meta)


def partition_frame(part: Partition, event: str, columns: Sequence[str] | None) -> pandas.DataFrame:
    return as_frame(part.table(event, columns))


def as_frame(table: Table) -> pandas.DataFrame:
    """With strings instead of categories, which would differ from partition to partition."""
    frame = table.to_pandas()
    names = [n for n in table.column_names if isinstance(table.column(n), Encoded)]
    return frame.astype(dict.fromkeys(names, "string[pyarrow]"))


def columns_needed(with_columns: list[str] | None, predicate: Any) -> list[str] | None:
    """What has to be decoded: one column at the least, for the number of rows."""
    if with_columns is None:
        return None
    tested = [] if predicate is None else predicate.meta.root_names()
    return list(dict.fromkeys([*with_columns, *tested])) or ["common_ts"]


def schema_of(views: Generator[EventView], event: str) -> Mapping[str, Any]:
    """Of the first recording that has the event."""
    with closing(views):
        for view in views:
            empty: Table = view.window(end=-(1 << 63)).table()
            return dict(empty.to_polars().schema)
    raise EventNotFoundError(f"no recording has an event named {event!r}")


# ---- what a predicate says of times and CPUs ----


@dataclass(frozen=True, slots=True)
class Bounds:
    """start <= common_ts < end, on these CPUs (None: all)."""

    start: int | None = None
    end: int | None = None
    cpus: frozenset[int] | None = None

    def and_those_of(self, predicate: Any) -> Bounds:
        """Narrowed by those parts of a Polars expression that are joined by "and" and compare a column with a number.

        All else is left to Polars, which filters what comes out in any case.
        """
        bounds = self
        for column, operator, value in comparisons(tree_of(predicate)):
            bounds = bounds.narrowed(column, operator, value)
        return bounds

    def narrowed(self, column: str, operator: str, value: int) -> Bounds:
        if column == "common_cpu" and operator == "Eq":
            return replace(self, cpus=frozenset({value}) if self.cpus is None else self.cpus & {value})
        if column != "common_ts":
            return self
        first = {"Eq": value, "GtEq": value, "Gt": value + 1}.get(operator)
        behind = {"Eq": value + 1, "LtEq": value + 1, "Lt": value}.get(operator)
        start = self.start if first is None else first if self.start is None else max(first, self.start)
        end = self.end if behind is None else behind if self.end is None else min(behind, self.end)
        return replace(self, start=start, end=end)


def tree_of(predicate: Any) -> Any:
    """The expression as JSON: what Polars offers to look into one. None where a version does not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return json.loads(predicate.meta.serialize(format="json"))
    except Exception:  # of whatever kind: the predicate is only a hint
        return None


FLIPPED = {"Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq", "Eq": "Eq"}


def comparisons(tree: Any) -> Iterator[tuple[str, str, int]]:
    """(column, operator, number) of the comparisons that must all hold."""
    if not isinstance(tree, dict):
        return
    yield from between(tree.get("Function"))
    node = tree.get("BinaryExpr")
    if not isinstance(node, dict):
        return
    operator, left, right = node.get("op"), node.get("left"), node.get("right")
    if operator in ("And", "LogicalAnd"):
        yield from comparisons(left)
        yield from comparisons(right)
    elif operator in FLIPPED:
        if column_of(left) and (number := number_of(right)) is not None:
            yield column_of(left), operator, number
        elif column_of(right) and (number := number_of(left)) is not None:
            yield column_of(right), FLIPPED[operator], number


def between(node: Any) -> Iterator[tuple[str, str, int]]:
    """``is_between``: its ends, whether they belong to it or not."""
    match node:
        case {"input": [column, low, high], "function": {"Boolean": {"IsBetween": _}}}:
            for operator, limit in (("GtEq", low), ("LtEq", high)):
                if column_of(column) and (number := number_of(limit)) is not None:
                    yield column_of(column), operator, number


def column_of(tree: Any) -> str:
    name = tree.get("Column") if isinstance(tree, dict) else None
    return name if isinstance(name, str) else ""


def number_of(tree: Any) -> int | None:
    """An integer literal: {"Literal": {"Dyn": {"Int": 5}}}, or with its type instead of "Dyn"."""
    while isinstance(tree, dict) and len(tree) == 1:
        ((key, tree),) = tree.items()
        if key not in LITERALS:
            return None
    return tree if isinstance(tree, int) and not isinstance(tree, bool) else None


LITERALS = frozenset({"Literal", "Dyn", "Scalar", "Int", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"})
