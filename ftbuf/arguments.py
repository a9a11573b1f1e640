"""What callers pass, checked once at the door: times, numbers, names, sizes."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])i?b?|b)?", re.IGNORECASE)
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def check_time(name: str, value: Any) -> int | None:
    if value is None:
        return None
    try:
        return min(max(operator.index(value), -1 << 63), (1 << 63) - 1)
    except TypeError:
        why = ": a float cannot hold a time stamp exactly" if isinstance(value, (float, np.floating)) else ""
        raise TypeError(f"{name} is an int of nanoseconds, not {type(value).__name__}{why}") from None


def check_type(name: str, value: Any, kinds: type | tuple[type, ...], what: str) -> Any:
    """The value, if it is of one of some types; ``what``: what they are, for people."""
    if not isinstance(value, kinds):
        raise TypeError(f"{name} is {what}, not {type(value).__name__}")
    return value


def check_ints(name: str, values: Any, most: int = 1 << 22) -> list[int]:
    """A list of at most so many numbers; no more of what was given is looked at."""
    try:
        listed = [operator.index(v) for v in islice(values, most + 1)]
    except TypeError:
        raise TypeError(f"{name} is a collection of ints") from None
    if len(listed) > most:
        raise ValueError(f"{name} has more than {most} numbers")
    return listed


def check_names(names: Any, what: str = "events") -> list[str]:
    """A list, whatever kind of collection was given."""
    if isinstance(names, str):
        raise TypeError(f"{what} is a list of names, not one string")
    listed = list(names)
    if not all(isinstance(name, str) for name in listed):
        raise TypeError(f"{what} is a list of names: of str")
    return listed


def check_columns(columns: Any) -> list[str] | None:
    return None if columns is None else check_names(columns, "columns")


def columns_of(columns: Iterable[str] | Mapping[str, Sequence[str]] | None, event: str) -> list[str] | None:
    """The columns asked for of one event: the same of all, or a mapping of event to columns (one not in it: all)."""
    return check_columns(columns.get(event) if isinstance(columns, Mapping) else columns)


def parse_size(size: int | str) -> int:
    """Bytes of "64 MB", "1.5 GiB" and the like, in powers of 1024; an int is bytes already.

    Raises
    ------
    TypeError, ValueError
        It is no size, or not positive.
    """
    if isinstance(size, str):
        match = _SIZE.fullmatch(size.strip())
        if match is None:
            raise ValueError(f"a size is an int of bytes or text as '64 MB', not {size!r}")
        n = int(float(match[1]) * (1 << _UNITS[(match[2] or "").lower()]))
    else:
        try:
            n = operator.index(size)
        except TypeError:
            raise TypeError(f"a size is an int of bytes or text as '64 MB', not {type(size).__name__}") from None
    if n < 1:
        raise ValueError("a size must be positive")
    return n
