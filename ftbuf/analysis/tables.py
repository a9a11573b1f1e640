"""Tables made of NumPy columns: what every analysis returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import FormatError
from ..survey import encoded
from ..table import ColumnData, Encoded, Lists, Plain, Table, as_objects
from .stats import Samples

COLUMN_KINDS = (Plain, Encoded, Lists)


def table(columns: Mapping[str, Any]) -> Table:
    """A table of columns of one length.

    Parameters
    ----------
    columns : mapping of str to array, sequence or ColumnData
        Numbers become arrays of their own type (of Python: int64 or float64), str a dictionary and codes, sequences of
        arrays a column of lists. What is a column already stays as it is.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        The columns differ in length.
    """
    made = {name: column(values) for name, values in columns.items()}
    lengths = {name: len(values) for name, values in made.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns of different lengths: {lengths}")
    return Table([made])


def column(values: Any) -> ColumnData:
    """One column of ``table``."""
    if isinstance(values, COLUMN_KINDS):
        return values
    if not isinstance(values, np.ndarray):
        values = as_array(list(values))
    if values.dtype.kind in "iufb":
        return Plain(np.array(values))  # a copy: the column makes its memory read-only
    if values.dtype.kind in "OU" and all(isinstance(v, str) for v in values.tolist()):
        return encoded(values.tolist())
    if values.dtype.kind == "O" and all(isinstance(v, np.ndarray) for v in values):
        ends = np.cumsum([len(v) for v in values], dtype=np.uint64)
        return Lists(ends, np.concatenate(list(values)))
    raise TypeError(f"no column is made of {values.dtype}")


def as_array(values: list[Any]) -> np.ndarray:
    if not values or all(isinstance(v, (bool, np.bool_)) for v in values):
        return np.array(values, bool if values else np.int64)
    if all(isinstance(v, (int, np.integer)) for v in values):
        return np.array(values, np.int64)
    if all(isinstance(v, (int, float, np.integer, np.floating)) for v in values):
        return np.array(values, np.float64)
    return as_objects(values)


def integers(of: Table, name: str, dtype: Any, missing: int | None = None) -> np.ndarray:
    """A column of integers as a contiguous array of a type; ``missing`` in all rows where the table has no such column.

    Raises
    ------
    ColumnNotFoundError
        There is no such column, and nothing that stands for it.
    FormatError
        It is no column of integers: the format is damaged.
    """
    if missing is not None and name not in of:
        return np.full(of.num_rows, missing, dtype)
    found = of.column(name)
    if not isinstance(found, Plain) or found.values.ndim != 1 or found.values.dtype.kind not in "iub":
        raise FormatError(f"the field {name} is expected to be a number, and is none by its format")
    return np.ascontiguousarray(found.values, dtype)


def rows_of(of: Table, rows: np.ndarray) -> Table:
    """The rows of a table at the places (or of the mask) given, in that order."""
    places = np.flatnonzero(rows) if rows.dtype == bool else rows
    return Table([{name: of.column(name).taken(places) for name in of}], of.column_names)


def stacked(tables: Sequence[Table]) -> Table:
    """The rows of tables of the same columns, one table after another."""
    if len(tables) == 1:
        return tables[0]
    names = tables[0].column_names
    return Table([{name: part.column(name) for name in names} for part in tables], names)


def histogram_table(headings: Table, samples: Samples, order: np.ndarray, fineness: int = 0) -> Table:
    """Histograms of groups, one row a bucket: what a group's row in ``headings`` has, ``low``, ``high`` and ``count``."""
    groups, low, high, count = samples.histograms(fineness=fineness)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    rows = np.argsort(place[groups], kind="stable")
    of_rows = rows_of(headings, groups[rows])
    return table({**{name: of_rows.column(name) for name in of_rows}, "low": low[rows], "high": high[rows],
                  "count": count[rows]})


def coarse_histogram(fine: Table) -> Table:
    """The same with one bucket from each power of two to the next."""
    low = fine["low"]
    _, bits = np.frexp(low.astype(np.float64))
    power = np.where(low > 0, np.int64(1) << np.maximum(bits.astype(np.int64) - 1, 0), 0)
    heading = fine.column_names[0]
    name = fine.column(heading)
    key = name.codes if isinstance(name, Encoded) else fine[heading]
    first = np.flatnonzero(np.concatenate([[True], (key[1:] != key[:-1]) | (power[1:] != power[:-1])])[: len(low)])
    counts = np.add.reduceat(fine["count"], first) if len(first) else np.zeros(0, np.int64)
    return table({heading: rows_of(fine, first).column(heading), "low": power[first],
                  "high": np.maximum(2 * power[first] - 1, 0), "count": counts})


def total_table(samples: Samples, percentiles: Sequence[float], **counts: np.ndarray) -> Table:
    """One row of all groups together; ``counts`` are of groups."""
    one = samples.merged(np.zeros(len(samples), np.intp), 1)
    return table({"count": one.count, "min": one.least, "mean": one.mean, "max": one.max, "total": one.total,
                  **one.percentiles(percentiles), **{name: values.sum(keepdims=True) for name, values in counts.items()}})


def beside(a: Table, b: Table, key: str, columns: Sequence[str], counts: Sequence[str] = ("count",)) -> Table:
    """Two tables side by side: one row for each key of either, ``NAME_a`` and ``NAME_b`` of each column.

    The rows of ``a`` come first, in its order, then those that only ``b`` has. What a table lacks is NaN; of ``counts`` 0.
    """
    place = {value: row for row, value in enumerate(a[key].tolist())}
    to_b = np.array([place.setdefault(value, len(place)) for value in b[key].tolist()], np.int64)
    to_a = np.arange(a.num_rows)
    out: dict[str, Any] = {key: list(place)}
    for name in columns:
        for suffix, of, to in (("a", a, to_a), ("b", b, to_b)):
            values = np.zeros(len(place), np.int64) if name in counts else np.full(len(place), np.nan)
            values[to] = of[name]
            out[f"{name}_{suffix}"] = values
    return table(out)
