"""What callers ask of an analysis, checked once at the door."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Iterable
from typing import Any

from ..arguments import check_type
from ..survey import readable_pairs
from ..trace import Trace
from .stats import FINENESS


def check_trace(trace: Any) -> None:
    check_type("trace", trace, Trace, "a Trace, as ftbuf.open(path) gives it")


def has(trace: Trace, name: str) -> bool:
    """Whether a recording can hold an event. One whose format is damaged counts as not there, unless damage raises."""
    recording = trace.recording
    pair = recording.pair(name)
    return pair is not None and (trace.errors == "raise" or bool(readable_pairs(recording, [pair])))


def require_readable(trace: Trace, names: Iterable[str]) -> None:
    """Raise what is wrong where the recording has one of some events, but its format cannot be read."""
    for name in names:
        if name in trace:
            _ = trace[name].format


def check_percentiles(percentiles: Iterable[float]) -> list[float]:
    listed = list(check_type("percentiles", percentiles, Iterable, "a list of numbers"))
    for percent in listed:
        check_type("a percentile", percent, numbers.Real, "a number")
        if not (math.isfinite(percent) and 0 <= percent <= 100):
            raise ValueError(f"a percentile is a number from 0 to 100, not {percent}")
    return listed


def check_fineness(value: Any) -> int:
    """Of histograms: 1 << fineness buckets between a power of two and the next."""
    fineness = check_count("fineness", value)
    if fineness > FINENESS:
        raise ValueError(f"fineness is at most {FINENESS}, not {fineness}")
    return fineness


def check_count(name: str, value: Any) -> int:
    """How many of something."""
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is an int, not {type(value).__name__}") from None
    if count < 0:
        raise ValueError(f"{name} is 0 or more, not {count}")
    return count
