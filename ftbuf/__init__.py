"""ftbuf: Linux ftrace recordings to arrays.

``ftbuf.open`` gives a Trace; ``trace["sched_switch"].arrays()`` its columns, ``trace.records()`` its events as objects.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import texts
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
from .table import Table
from .trace import EventView, Trace, iterate, open, read_events

if TYPE_CHECKING:
    from .rewrite import Written, convert, split

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

_WRITING = frozenset({"Written", "convert", "split"})


def __getattr__(name: str) -> Any:
    """What writes recordings is brought in when it is first asked for."""
    if name not in _WRITING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import rewrite

    return getattr(rewrite, name)


texts.provide(lambda: import_module("ftbuf.report.texts"))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
