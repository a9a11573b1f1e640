"""Decoded columns and the Table that holds them. What is handed out is read-only and outlives the trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np

from .arguments import check_names, check_type
from .errors import ColumnNotFoundError, MissingDependencyError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class ColumnData(Protocol):
    """One column of a Table: how its values are stored."""

    def __len__(self) -> int: ...
    def to_numpy(self) -> np.ndarray: ...
    def to_arrow(self) -> pyarrow.Array: ...
    def to_pandas(self) -> Any: ...
    def joined(self, others: Sequence[Any]) -> ColumnData: ...
    def taken(self, order: np.ndarray) -> ColumnData: ...
    def agrees(self, other: Any) -> bool: ...


def read_only(array: np.ndarray) -> np.ndarray:
    """A view that cannot be made writable again: numpy lets whoever has an array that owns its memory do that."""
    flags = array.flags
    if not flags.writeable and not flags.owndata:
        return array
    flags.writeable = False
    return array.view()


# Columns pickle by their constructors, so that what comes back is read-only too.


class Plain:
    """Numbers: one per row, or a fixed number of them per row (two-dimensional)."""

    __slots__ = ("values",)

    def __init__(self, values: np.ndarray) -> None:
        self.values = read_only(values)

    def __len__(self) -> int:
        return len(self.values)

    def to_numpy(self) -> np.ndarray:
        return self.values

    def to_arrow(self) -> pyarrow.Array:
        pa = require("pyarrow", "arrow")
        if self.values.ndim == 1:
            return pa.array(self.values)
        flat = pa.array(self.values.reshape(-1))
        return pa.FixedSizeListArray.from_arrays(flat, self.values.shape[1])

    def to_pandas(self) -> Any:
        return self.values if self.values.ndim == 1 else list(self.values)

    def __reduce__(self) -> tuple[type[Plain], tuple[np.ndarray]]:
        return Plain, (self.values,)

    def joined(self, others: Sequence[Plain]) -> Plain:
        return Plain(np.concatenate([self.values, *(o.values for o in others)]))

    def taken(self, order: np.ndarray) -> Plain:
        return Plain(self.values[order])

    def agrees(self, other: Any) -> bool:
        """Integers of any sizes and signs agree if one integer type holds all their values."""
        return (isinstance(other, Plain) and self.values.shape[1:] == other.values.shape[1:]
                and np.result_type(self.values, other.values).kind in "iu")


class Encoded:
    """Strings: an int32 code per row into ``strings``."""

    __slots__ = ("_objects", "codes", "strings")

    def __init__(self, codes: np.ndarray, strings: list[str]) -> None:
        self.codes = read_only(codes)
        self.strings = strings
        self._objects: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def to_numpy(self) -> np.ndarray:
        """An object array that shares the dictionary's str objects."""
        if self._objects is None:
            self._objects = read_only(as_objects(self.strings)[self.codes])
        return self._objects

    def to_arrow(self) -> pyarrow.Array:
        pa = require("pyarrow", "arrow")
        # Arrow strings are UTF-8; bytes that are not become \\xNN escapes, so that distinct names stay distinct.
        strings = [s.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") for s in self.strings]
        return pa.DictionaryArray.from_arrays(pa.array(self.codes), pa.array(strings, type=pa.string()))

    def to_pandas(self) -> Any:
        pd = require("pandas", "pandas")
        return pd.Categorical.from_codes(self.codes, pd.Index(self.strings, dtype=object))  # names need not be UTF-8

    def __reduce__(self) -> tuple[type[Encoded], tuple[np.ndarray, list[str]]]:
        return Encoded, (self.codes, self.strings)

    def joined(self, others: Sequence[Encoded]) -> Encoded:
        parts = [self, *others]
        if all(p.strings == self.strings for p in others):
            return Encoded(np.concatenate([p.codes for p in parts]), self.strings)
        code_of: dict[str, int] = {}
        codes = []
        for part in parts:
            to = np.fromiter((code_of.setdefault(s, len(code_of)) for s in part.strings), np.int32, len(part.strings))
            codes.append(to[part.codes] if len(to) else part.codes)
        return Encoded(np.concatenate(codes), list(code_of))

    def taken(self, order: np.ndarray) -> Encoded:
        return Encoded(self.codes[order], self.strings)

    def agrees(self, other: Any) -> bool:
        return isinstance(other, Encoded)


class Lists:
    """A varying number of elements per row: row i is values[ends[i - 1]:ends[i]]."""

    __slots__ = ("ends", "values")

    def __init__(self, ends: np.ndarray, values: np.ndarray) -> None:
        self.ends = read_only(ends)
        self.values = read_only(values)

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def offsets(self) -> np.ndarray:
        """Where each row's elements start, and one more: where the last row's end. int64, shape (rows + 1,)."""
        return np.concatenate([np.zeros(1, np.int64), self.ends.astype(np.int64)])

    def to_numpy(self) -> np.ndarray:
        """An object array of views into the elements."""
        out = np.empty(len(self.ends), object)
        start = 0
        for i, end in enumerate(self.ends.tolist()):
            out[i] = self.values[start:end]
            start = end
        return read_only(out)

    def to_arrow(self) -> pyarrow.Array:
        pa = require("pyarrow", "arrow")
        return pa.LargeListArray.from_arrays(pa.array(self.offsets), pa.array(self.values))

    def to_pandas(self) -> Any:
        return self.to_numpy()

    def __reduce__(self) -> tuple[type[Lists], tuple[np.ndarray, np.ndarray]]:
        return Lists, (self.ends, self.values)

    def joined(self, others: Sequence[Lists]) -> Lists:
        parts = [self, *others]
        shift = np.cumsum([0, *(len(p.values) for p in parts)])
        ends = [p.ends + np.uint64(s) for p, s in zip(parts, shift, strict=False)]
        return Lists(np.concatenate(ends), np.concatenate([p.values for p in parts]))

    def taken(self, order: np.ndarray) -> Lists:
        offsets = self.offsets
        starts, counts = offsets[:-1][order], np.diff(offsets)[order]
        ends = np.cumsum(counts)
        places = np.repeat(starts - (ends - counts), counts) + np.arange(int(counts.sum()))
        return Lists(ends.astype(np.uint64), self.values[places])

    def agrees(self, other: Any) -> bool:
        return isinstance(other, Lists) and np.result_type(self.values, other.values).kind in "iu"


def interleaved(parts: Sequence[dict[str, ColumnData]], ts: str, names: Sequence[str]) -> dict[str, ColumnData]:
    """Rows of several files as one batch, in the order of a merge by time; ties go to the file that comes first.

    A file's own order stays, also where its clock steps back: a row waits for all that stand before it.
    """
    times = [np.maximum.accumulate(np.asarray(p[ts].to_numpy())) for p in parts]
    order = np.argsort(np.concatenate(times), kind="stable")
    return {n: parts[0][n].joined([p[n] for p in parts[1:]]).taken(order) for n in names}


def as_objects(items: Sequence[Any]) -> np.ndarray:
    out = np.empty(len(items), object)
    out[:] = items
    return out


def require(module: str, extra: str) -> Any:
    """Import an optional package, or say which extra brings it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise MissingDependencyError(f"{module} is not installed: pip install 'ftbuf[{extra}]'") from e


class Table:
    """Decoded columns of equal length, in one or more batches.

    Columns that are asked for by name come back as one contiguous, read-only NumPy array: numbers by their own dtype,
    fixed arrays as shape (rows, elements), strings and varying lists as object arrays. Batches are joined when a column
    is first asked for.
    """

    def __init__(self, batches: Sequence[dict[str, ColumnData]], names: Sequence[str] | None = None, event: str = ""
                 ) -> None:
        self._event = event  # whose table it is, for messages
        self._names = list(names if names is not None else batches[0] if batches else [])
        self._parts = {name: [b[name] for b in batches] for name in self._names}
        self._rows = sum(len(next(iter(b.values()))) for b in batches if b)

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in their order."""
        return list(self._names)

    @property
    def columns(self) -> list[str]:
        """The same, as views call it."""
        return self.column_names

    @property
    def num_rows(self) -> int:
        """Length of every column."""
        return self._rows

    def __len__(self) -> int:
        return self.num_rows

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def column(self, name: str) -> ColumnData:
        """How a column is stored: Plain (.values), Encoded (.codes, .strings) or Lists (.offsets, .values)."""
        if check_type("a column's name", name, str, "a str") not in self._parts:
            raise ColumnNotFoundError(near_names(f"column of {self._event}" if self._event else "column", name, self._names))
        parts = self._parts[name]
        if len(parts) > 1:
            self._parts[name] = parts = [parts[0].joined(parts[1:])]  # one store: other threads see either list
        return parts[0]

    @overload
    def __getitem__(self, name: str) -> np.ndarray: ...
    @overload
    def __getitem__(self, name: list[str]) -> Table: ...
    def __getitem__(self, name: str | list[str]) -> np.ndarray | Table:
        """A column as an array; for a list of names, the table of these columns."""
        if not isinstance(name, list):
            return self.column(name).to_numpy()
        names = check_names(name, "columns")
        return Table([{n: self.column(n) for n in names}], names, self._event)

    def to_dict(self) -> dict[str, np.ndarray]:
        """Every column as a NumPy array."""
        return {name: self[name] for name in self._names}

    def to_pandas(self) -> pandas.DataFrame:
        """Strings become categoricals, so that a name costs four bytes a row.

        The frame shares the table's memory, and is read-only as that is: ``.copy()`` it to write into it.
        """
        pd = require("pandas", "pandas")
        return pd.DataFrame({name: self.column(name).to_pandas() for name in self._names}, copy=False)

    def to_arrow(self) -> pyarrow.Table:
        """Strings become dictionaries, varying lists large lists."""
        pa = require("pyarrow", "arrow")
        return pa.table({name: self.column(name).to_arrow() for name in self._names})

    def to_polars(self) -> polars.DataFrame:
        """By way of Arrow."""
        pl = require("polars", "polars")
        return pl.from_arrow(self.to_arrow())

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("a Table is no array: to_pandas(), to_dict() and table[name] make what can be made of it")

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.to_arrow().schema.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"<ftbuf.Table: {self.num_rows} rows x {len(self._names)} columns: {', '.join(self._names)}>"


def near_names(what: str, name: str, names: Sequence[str]) -> str:
    """An error message for a name that is not there, with the names that look like it."""
    import difflib

    near = difflib.get_close_matches(name, list(dict.fromkeys(names)), n=5, cutoff=0.5)
    if f"common_{name}" in names:
        near = list(dict.fromkeys([f"common_{name}", *near]))
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    return f"no {what} named {name!r}{hint}"
