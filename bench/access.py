"""Through the public API, from files: what is left out costs nothing, order costs little, steps are bounded, records are quick.

Every row is a ratio from one run: how often the second thing could be done in the time of the first.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

import ftbuf

from .grow import grow
from .measure import once, side_by_side

RECORDS = 2_000_000
COPIED = 200 << 20
ROUNDS = 5


def row(what: str, seconds: dict[str, float], events: int) -> dict[str, Any]:
    (first, a), (second, b) = seconds.items()
    return {"of": what, "time of": first, "ms": a * 1e3, "over time of": second, "ms ": b * 1e3, "ratio": a / b,
            "Mevents/s": events / b / 1e6}


def rare_event(counts: dict[str, int]) -> str:
    """The event whose share is nearest to one in a hundred."""
    total = sum(counts.values())
    return min(counts, key=lambda name: abs(counts[name] - total / 100))


def compare(name: str, trace: ftbuf.Trace) -> list[dict[str, Any]]:
    counts, start, end = trace.events, trace.start or 0, trace.end or 0
    events, rare = sum(counts.values()), rare_event(counts)
    middle, length = (start + end) // 2, (end - start) // 100

    def everything() -> object:
        return trace.tables(threads=1)

    pairs: list[tuple[str, Callable[[], object], str]] = [
        ("CPU order", lambda: trace.tables(threads=1, order="cpu"), "all, in time order"),
        ("two threads", lambda: trace.tables(threads=2), "one thread"),
        ("1 % window", lambda: trace.window(middle, middle + length).tables(threads=1), "all"),
    ]
    if len(counts) > 1:
        share = f"{rare}, {100 * counts[rare] / events:.1f} %"
        pairs.append((share, lambda: trace[rare].table(threads=1), "all events"))
    return [row(name, side_by_side({first: everything, second: work}, ROUNDS), events) for second, work, first in pairs]


def bandwidth() -> dict[str, Any]:
    """What a second thread brings a memcpy: where that is little, memory is what bounds the two."""
    halves = [np.ones(COPIED // 2, np.uint8) for _ in range(2)]
    copies = [np.ones(COPIED // 2, np.uint8) for _ in range(2)]

    def one() -> None:
        for to, data in zip(copies, halves, strict=True):
            np.copyto(to, data)

    def two() -> None:
        threads = [Thread(target=np.copyto, args=pair) for pair in zip(copies, halves, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return row("memcpy", side_by_side({"one thread": one, "two threads": two}), 0)


def compressed(name: str, path: Path) -> list[dict[str, Any]]:
    """A recording in compressed chunks, opened and decoded whole, beside the reading and decompressing of its chunks."""
    def decompress() -> None:
        with ftbuf.open(path) as trace:
            for source in trace.recording.sources():
                for index in range(len(source.stream.segments)):
                    source.stream.load(index)

    def decode(threads: int) -> object:
        with ftbuf.open(path) as trace:
            return trace.tables(threads=threads)

    def steps() -> int:
        with ftbuf.open(path) as trace:
            return sum(len(table) for step in trace.iterate(events) for table in step.values())

    with ftbuf.open(path) as trace:
        events, count = list(trace.events), sum(trace.events.values())
    works: dict[str, Callable[[], object]] = {
        "one thread": lambda: decode(1), "two threads": lambda: decode(2), "iterate()": steps}
    return [row(name, side_by_side({f"compressed, {what}": work, "decompression alone": decompress}, ROUNDS), count)
            for what, work in works.items()]


def each_record(path: Path, look: Callable[[Any], object] | None) -> None:
    with ftbuf.open(path) as trace:
        events = islice(trace.records(), RECORDS)
        deque(events if look is None else map(look, events), maxlen=0)


def records(name: str, path: Path) -> dict[str, Any]:
    with ftbuf.open(path) as trace:
        n = min(RECORDS, sum(trace.events.values()))
    alone = min(once(lambda: each_record(path, None)) for _ in range(ROUNDS))
    fields = min(once(lambda: each_record(path, lambda e: (e.pid, e.ts))) for _ in range(ROUNDS))
    return {"of": name, "time of": "records(), two fields read", "ms": fields * 1e3, "over time of": "records()",
            "ms ": alone * 1e3, "ratio": fields / alone, "Mevents/s": n / alone / 1e6}


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as temporary:
        paths = {name: grow(name, Path(temporary)) for name in ("function", "mixed")}
        rows = []
        for name, path in paths.items():
            with ftbuf.open(path) as trace:
                rows += compare(name, trace)
        folder = Path(temporary) / "compressed"
        folder.mkdir()
        for name in paths:
            rows += compressed(name, grow(name, folder, compression="zstd"))
        return [bandwidth(), *rows, *(records(name, path) for name, path in paths.items())]
