"""ftbuf: Linux ftrace recordings to arrays.

``ftbuf.open`` gives a Trace; ``trace["sched_switch"].arrays()`` its columns, ``trace.records()`` its events as objects.
"""

from ._core import STATUSES
from .errors import (
    ClosedError,
    ColumnNotFoundError,
    CompressionError,
    DamageError,
    DamageWarning,
    EventNotFoundError,
    FilterError,
    FormatError,
    FtbufError,
    MissingDependencyError,
    TruncatedError,
    UnsupportedError,
)
from .event import Event
from .formats import Abi, EventFormat, Field
from .raw import decode_mmap, decode_pages
from .rewrite import Written, convert, split
from .table import Table
from .trace import EventView, Trace, iterate, open, read_events

__version__ = "0.1.0"

__all__ = [
    "STATUSES",
    "Abi",
    "ClosedError",
    "ColumnNotFoundError",
    "CompressionError",
    "DamageError",
    "DamageWarning",
    "Event",
    "EventFormat",
    "EventNotFoundError",
    "EventView",
    "Field",
    "FilterError",
    "FormatError",
    "FtbufError",
    "MissingDependencyError",
    "Table",
    "Trace",
    "TruncatedError",
    "UnsupportedError",
    "Written",
    "convert",
    "decode_mmap",
    "decode_pages",
    "iterate",
    "open",
    "read_events",
    "split",
]
