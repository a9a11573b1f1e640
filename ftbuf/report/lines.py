"""Records of a trace as the layouts want them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .._core import Record
from ..names import Comms
from .record import Value, encoded

if TYPE_CHECKING:
    from ..trace import Trace


class Line(Record):
    """A record with the names that its line shows."""

    __slots__ = ()

    @property
    def pid(self) -> int:
        return super().pid or 0  # a damaged record may be too short to hold it

    @property
    def flags(self) -> int:
        return super().flags or 0

    @property
    def preempt_count(self) -> int:
        return super().preempt_count or 0

    @property
    def comm(self) -> bytes:
        return self.info.context.comm(self.pid)  # type: ignore[no-any-return]

    @property
    def tgid(self) -> int | None:
        return self.info.context.tgids.get(self.pid)  # type: ignore[no-any-return]

    def value(self, name: str) -> Value:
        value = self[name]
        return encoded(value) if isinstance(value, str) else value


class Names:
    """What all lines of a report share: tasks and thread groups by pid."""

    def __init__(self, comms: Comms, tgids: Mapping[int, int], *, kernel: bool) -> None:
        self._comms, self._kernel, self.tgids = comms, kernel, tgids
        self._known: dict[int, bytes] = {}

    def known_pids(self) -> Iterator[int]:
        """Tasks that have a name."""
        return iter(self._comms)

    def comm(self, pid: int) -> bytes:
        known = self._known.get(pid)
        if known is None:
            known = self._known[pid] = self._comms.raw(pid, kernel=self._kernel)
        return known

    def no_such_field(self, fmt: Any, name: str) -> KeyError:
        return KeyError(name)


def lines(trace: Trace, names: Names) -> Iterator[Line]:
    """All records in time order."""
    return trace.objects(Line, lambda file: names)
