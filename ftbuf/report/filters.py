"""-F and -v of the report: trace-cmd's filters, ``event[,event][:expression]``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import UnsupportedError
from .record import LineRecord

if TYPE_CHECKING:
    from ..trace import Trace


def filter_test(trace: Trace, text: str) -> Callable[[LineRecord], bool]:
    """A test of records by one filter; an event that the filter does not name fails it."""
    names, _, expression = text.partition(":")
    if expression.strip():
        raise UnsupportedError("filters with an expression are not available yet")
    wanted = {name.strip() for name in names.split(",")}
    return lambda record: record.format.name in wanted or record.format.system in wanted
