"""What a view looks at: a window in time, CPUs, tasks, buffers, a filter; and what is left of it when it is narrowed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from .arguments import check_ints, check_time
from .engine import Window
from .recording import Pair, Recording

if TYPE_CHECKING:
    from .filters import Filter, RecordFilter


T = TypeVar("T")
MAX_CPUS = 1 << 16  # a stream's CPU has 16 bits
MAX_PIDS = 1 << 22  # K:include/linux/threads.h PID_MAX_LIMIT


@dataclass(frozen=True, slots=True)
class Selection:
    """What a view looks at."""

    window: Window = field(default_factory=Window)
    cpus: frozenset[int] | None = None
    buffers: frozenset[str] | None = None

    def narrowed(self, start: int | None, end: int | None, cpus: Iterable[int] | None, pids: Iterable[int] | None,
                 buffers: Iterable[str] | None, where: RecordFilter | None = None) -> Selection:
        own = self.window
        narrower = Window(
            start=tighter(own.start, check_time("start", start), max),
            end=tighter(own.end, check_time("end", end), min),
            pids=own.pids if pids is None else tuple(sorted(both(own.pids, check_ints("pids", pids, MAX_PIDS)))),
            where=own.where if where is None else where.also(own.where),  # type: ignore[arg-type]
        )
        chosen = self.cpus if cpus is None else both(self.cpus, check_ints("cpus", cpus, MAX_CPUS))
        return Selection(narrower, chosen, self.buffers if buffers is None else both(self.buffers, buffers))

    def arguments(self) -> dict[str, Any]:
        """What makes a Selection of the same CPUs, tasks, buffers and filter: without the times."""
        where = self.window.where
        return {"cpus": self.cpus, "pids": self.window.pids,
                "buffer": None if self.buffers is None else sorted(self.buffers),
                "where": getattr(where, "filter", None)}


def record_filter(recording: Recording, where: Filter | str, pairs: Sequence[Pair] | None) -> RecordFilter:
    if isinstance(where, (bytes, int, float)):
        raise TypeError(f"where is a filter, not {type(where).__name__}")
    from .filters import RecordFilter  # the language is only brought in where it is used

    return RecordFilter(recording, where, pairs)


def tighter(a: int | None, b: int | None, pick: Callable[[int, int], int]) -> int | None:
    return b if a is None else a if b is None else pick(a, b)


def both(own: Iterable[T] | None, wanted: Iterable[T]) -> frozenset[T]:
    """What a view narrowed to `own` (None: not narrowed) has left of `wanted`."""
    return frozenset(wanted) if own is None else frozenset(wanted) & frozenset(own)
