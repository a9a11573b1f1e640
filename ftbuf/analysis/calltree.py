"""Calls by their callers: what each path from a first call downwards cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..survey import encoded
from ..table import Table
from ..trace import Trace
from .calls import NO_CALLER, call_sums
from .profile import function_names
from .tables import table


@dataclass(frozen=True, slots=True)
class Tree:
    """Paths, each as its last function and the place of the path above it (-1: none), callers before what they call."""

    functions: list[str]
    parents: np.ndarray
    depths: np.ndarray
    sums: np.ndarray  # rows of calls.SUMS
    timed: bool


def call_tree(trace: Trace, *, sleep_time: bool = True) -> Table:
    """How often each path of calls was taken, and how long it took, over all tasks and CPUs.

    A path begins with the first call of a task's that the recording has: calls whose callers began before it, and all
    records of the function tracer (hits only), have no callers here. Returns are matched as in ``function_profile``.

    Parameters
    ----------
    sleep_time : bool
        As in ``function_profile``.

    Returns
    -------
    Table
        function, address, depth (0: a first call), caller (row of the path above, -1: none), hit, time, self (time
        without that of calls inside), returned, open, lossy, as in ``function_profile``. A path is followed by those
        below it, the one that took the most time first.
    """
    tree = read_tree(trace, sleep_time=sleep_time)
    sums = tree.sums
    counts = {name: sums[name].astype(np.int64) for name in ("hit", "returned", "open", "lossy")}
    return table({
        "function": encoded(tree.functions),
        "address": sums["func"],
        "depth": tree.depths,
        "caller": tree.parents,
        "hit": counts["hit"],
        "time": sums["time"],
        "self": sums["time"] - sums["inner"],
        "returned": counts["returned"],
        "open": counts["open"],
        "lossy": counts["lossy"],
    })


def folded(trace: Trace, *, sleep_time: bool = True) -> Iterator[str]:
    """Lines ``caller;function value`` that flame graphs are made of.

    The value is the time in ns that the path's last function took itself; for records of the function tracer, which tell
    none, the hits.

    Parameters
    ----------
    sleep_time : bool
        As in ``function_profile``.

    Returns
    -------
    iterator of str
        Of paths with a value only.
    """
    return folded_lines(read_tree(trace, sleep_time=sleep_time))


def folded_lines(tree: Tree) -> Iterator[str]:
    values = tree.sums["time"] - tree.sums["inner"] if tree.timed else tree.sums["hit"]
    path: list[str] = []
    for function, depth, value in zip(tree.functions, tree.depths.tolist(), values.tolist(), strict=True):
        path[depth:] = [function.replace(";", ":").replace(" ", "_")]
        if value:
            yield f"{';'.join(path)} {value}"


def read_tree(trace: Trace, *, sleep_time: bool) -> Tree:
    found = call_sums(trace, by_path=True, own_time=False, sleep_time=sleep_time)
    sums = found.rows
    names = function_names(trace, sums["func"])
    parents = np.where(sums["key"] == NO_CALLER, -1, sums["key"].astype(np.int64))
    order, depths = depth_first(parents, np.lexsort((sums["hit"], sums["time"]))[::-1])
    place_of = np.empty(len(order) + 1, np.int64)
    place_of[order] = np.arange(len(order))
    place_of[-1] = -1
    return Tree([names[i] for i in order.tolist()], place_of[parents[order]], depths, sums[order], found.timed)


def depth_first(parents: np.ndarray, by_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the order of a walk over the tree, heavier branches first, and the depth of each."""
    below: dict[int, list[int]] = {}
    for row in by_weight[::-1].tolist():
        below.setdefault(int(parents[row]), []).append(row)
    order, depths = [], []
    waiting = [(row, 0) for row in below.get(-1, ())]
    while waiting:
        row, depth = waiting.pop()
        order.append(row)
        depths.append(depth)
        waiting += [(child, depth + 1) for child in below.get(row, ())]
    return np.array(order, np.int64), np.array(depths, np.int64)
