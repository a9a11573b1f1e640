"""Tables on the terminal and as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..durations import seconds_text
from ..table import Encoded, Table
from ..texts import printable
from ..trace import Trace
from .common import as_json


@dataclass(frozen=True, slots=True)
class Column:
    """How a column is shown: its heading ("": its name) and the text of a value."""

    title: str = ""
    text: Callable[[Any], str] | None = None


@dataclass(frozen=True, slots=True)
class Clock:
    """How times are shown: a duration's unit and text, and the text of a time stamp."""

    unit: str
    duration: Callable[[Any], str]
    time: Callable[[Any], str]


def clock_of(trace: Trace) -> Clock:
    """Microseconds and seconds where the trace counts ns, else its own ticks."""
    if trace.info["clock_unit"] == "ns":
        return Clock("us", microseconds, seconds)
    return Clock("ticks", plain_text, str)


def microseconds(ns: Any) -> str:
    """1234567 -> "1234.567"."""
    return "-" if is_missing(ns) else f"{ns / 1000:.3f}"


def milliseconds(ns: Any) -> str:
    return "-" if is_missing(ns) else f"{ns / 1_000_000:.3f}"


def seconds(ns: Any) -> str:
    """A time stamp: exact, all nine digits."""
    return seconds_text(int(ns))


def percent(share: Any) -> str:
    """0.25 -> "25.0"."""
    return "-" if is_missing(share) else f"{100 * share:.1f}"


def one_decimal(value: Any) -> str:
    return "-" if is_missing(value) else f"{value:.1f}"


def hexadecimal(number: Any) -> str:
    return f"{number:#x}"


def plain_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "-" if is_missing(value) else f"{value:.2f}"
    return printable(str(value))


def is_missing(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def table_lines(table: Table, columns: Mapping[str, Column] | None = None, *, most: int | None = None) -> Iterator[str]:
    """Headings and rows, aligned: text to the left, numbers to the right.

    Parameters
    ----------
    table : Table
    columns : mapping of str to Column, optional
        Which columns to show, in which order, and how; None: all as they are.
    most : int, optional
        Only so many rows, and a line that says how many more there are.
    """
    chosen = columns if columns is not None else {name: Column() for name in table}
    shown = table.num_rows if most is None else min(most, table.num_rows)
    cells = []
    for name, how in chosen.items():
        text = how.text or plain_text
        body = [text(value) for value in table[name][:shown].tolist()]
        title = how.title or name
        width = max(map(len, [title, *body]))
        is_text = isinstance(table.column(name), Encoded)
        cells.append([f"{cell:<{width}}" if is_text else f"{cell:>{width}}" for cell in (title, *body)])
    for row in zip(*cells, strict=True):
        yield "  ".join(row).rstrip()
    if shown < table.num_rows:
        yield f"... and {table.num_rows - shown} more"


def rows(table: Table) -> list[dict[str, Any]]:
    """One dictionary a row, for JSON."""
    values = {name: table[name].tolist() for name in table}
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def print_json(tables: Mapping[str, Any]) -> None:
    """One object; a Table in it becomes a list of objects. NaN, which JSON lacks, becomes null."""
    print(as_json({name: [without_nan(row) for row in rows(value)] if isinstance(value, Table) else value
                   for name, value in tables.items()}))


def without_nan(row: dict[str, Any]) -> dict[str, Any]:
    return {name: None if is_missing(value) else value for name, value in row.items()}
