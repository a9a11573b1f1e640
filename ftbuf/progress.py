"""How far the passes over a recording are, for whoever watches: commands on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Passage:
    """One pass over some streams: of how many sub-buffers, and how many of them were read."""

    total: int
    read: Callable[[], int]


@dataclass(slots=True)
class Passages:
    """Those that began since watching did. ``expected``: sub-buffers of all that will, if that is known."""

    expected: int = 0
    begun: list[Passage] = field(default_factory=list)

    def share(self) -> float:
        """How much of all is done: 0 to 1."""
        passages = list(self.begun)  # others begin meanwhile
        total = max(sum(p.total for p in passages), self.expected)
        return min(sum(min(p.read(), p.total) for p in passages) / total, 1.0) if total else 0.0


_watched: list[Passages] = []


def begins(total: Callable[[], int], read: Callable[[], int]) -> None:
    """Tell those who watch of a pass; where nobody does, nothing is asked."""
    for passages in _watched:
        passages.begun.append(Passage(total(), read))


@contextmanager
def watched(expected: int = 0) -> Iterator[Passages]:
    """The passes that begin inside."""
    passages = Passages(expected)
    _watched.append(passages)
    try:
        yield passages
    finally:
        _watched.remove(passages)
