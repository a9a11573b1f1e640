"""One event as an object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._core import Record


class Event(Record):
    """One event of a trace, as ``Trace.records()`` yields it: fields are decoded when they are looked at.

    Attributes
    ----------
    ts : int
        Time stamp in ns on the trace clock (raw units for clocks that do not count ns).
    cpu, pid, flags, preempt_count : int
    comm : str
        Name of the task, ``"<...>"`` when it was not recorded.
    name : str
    lost : int or None
        Events lost on this CPU just before this one; -1: how many is unknown; None: none.

    ``event["field"]`` is one of the event's own fields (or a ``common_`` one), by its name in the format.
    """

    __slots__ = ()

    @property
    def comm(self) -> str:
        """Name of the task, ``"<...>"`` when it was not recorded."""
        comm: str = self.info.context.comm(self.pid)
        return comm

    def missing(self, name: str) -> Any:
        """The value of a derived column (``EventView.derived``): what was asked for is no field of the format."""
        return self.info.context.derived(self, name)

    def keys(self) -> list[str]:
        """Names of the event's own fields."""
        return [f.name for f in self.format.own_fields]

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def get(self, name: str, default: Any = None) -> Any:
        """The field, or ``default`` where the event has none of that name."""
        return self[name] if name in self else default  # noqa: SIM401

    def items(self) -> Iterator[tuple[str, Any]]:
        """(name, value) of the event's own fields."""
        return ((name, self[name]) for name in self.keys())

    def __str__(self) -> str:
        line: str = self.info.context.line(self)
        return line

    def __repr__(self) -> str:
        return f"<ftbuf.Event {self.name} ts={self.ts} cpu={self.cpu} pid={self.pid}>"
