"""Time things side by side: each result is a ratio of times from one run, the least of several interleaved rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

ROUNDS = 7


def once(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    result = work()
    elapsed = time.perf_counter() - start
    del result  # freeing is not part of the work
    return elapsed


def side_by_side(works: Mapping[str, Callable[[], object]], rounds: int = ROUNDS,
                 before: Mapping[str, Callable[[], object]] | None = None) -> dict[str, float]:
    """Least seconds of each; rounds are interleaved, so that a busy moment of the machine does not fall on one alone.

    `before`: what is to be done before some of them, untimed.
    """
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            if before is not None and name in before:
                before[name]()
            best[name] = min(best[name], once(work))
    return best


def copy_touched(data: np.ndarray) -> Callable[[], object]:
    """memcpy into memory that was touched before."""
    to = np.empty_like(data)
    to[:] = 0
    return lambda: np.copyto(to, data)


def copy_fresh(data: np.ndarray) -> Callable[[], object]:
    """memcpy into fresh memory: what a user who gets a new array pays."""
    return data.copy
