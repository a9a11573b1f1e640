"""ftbuf: Linux ftrace recordings to arrays.

``ftbuf.open`` gives a Trace; ``trace["sched_switch"].arrays()`` its columns, ``trace.records()`` its events as objects.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import texts

if TYPE_CHECKING:
    from . import analysis as analysis
    from ._core import STATUSES
    from .errors import (
        BufferWarning,
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
    from .scan import from_dask, scan_trace
    from .table import Table
    from .trace import EventView, Trace, iterate, open, read_events

__version__ = "0.1.0"

__all__ = [
    "STATUSES",
    "Abi",
    "BufferWarning",
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
    "from_dask",
    "iterate",
    "open",
    "read_events",
    "scan_trace",
    "split",
]

_HOMES = {
    "_core": ["STATUSES"],
    "errors": ["BufferWarning", "ClosedError", "ColumnNotFoundError", "CompressionError", "DamageError", "DamageWarning",
               "EventNotFoundError", "FilterError", "FormatError", "FtbufError", "MissingDependencyError", "TruncatedError",
               "UnsupportedError"],
    "event": ["Event"],
    "formats": ["Abi", "EventFormat", "Field"],
    "raw": ["decode_mmap", "decode_pages"],
    "scan": ["from_dask", "scan_trace"],
    "rewrite": ["Written", "convert", "split"],
    "table": ["Table"],
    "trace": ["EventView", "Trace", "iterate", "open", "read_events"],
}
_MODULES = ("analysis",)
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Every name is brought in when it is first asked for: so a command can arrange its process before numpy is there."""
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    return value


texts.provide(lambda: import_module("ftbuf.report.texts"))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
