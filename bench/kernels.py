"""Scan and full decode against memcpy of the same bytes and against the limit L.

L = (bytes in + bytes out) / (2 * bytes in) times memcpy: the time it takes to move what a decode must move.
Twice: with memory that earlier decodes left in the pool, against memcpy into touched memory; and with fresh memory, against memcpy
into fresh memory.
"""

from __future__ import annotations

from typing import Any

from ftbuf import _core
from ftbuf.engine import Judge, Run, Window
from ftbuf.requests import events_request, slots_request
from ftbuf.table import ColumnData

from .data import Workload, workloads
from .measure import copy_fresh, copy_touched, side_by_side

SIZES = {"memory": 64 << 20, "cache": 256 << 10}  # of pages; the columns of the first fit the pool, so that they can be reused
IN_CACHE_REPEATS = 64
ROUNDS = 20


def scan(load: Workload) -> int:
    request, _ = slots_request(load.recording)
    run = Run([load.source], Window(), request, Judge("skip")).to_end()
    return int(run.decoder.stream_stats()[0][1])


def decode(load: Workload) -> list[dict[str, ColumnData]]:
    request = events_request(load.recording, [((fmt.system, fmt.name), None) for fmt in load.events])
    return Run([load.source], Window(), request, Judge("skip")).to_end().take()


def stored_bytes(column: Any) -> int:
    arrays = (getattr(column, name, None) for name in ("values", "codes", "ends"))
    return sum(a.nbytes for a in arrays if a is not None)


def measure(load: Workload, where: str) -> dict[str, Any]:
    size = SIZES[where]
    load = load.resized(size)
    data = load.pages
    out = sum(stored_bytes(c) for plan in decode(load) for c in plan.values())
    events = scan(load)
    again = IN_CACHE_REPEATS if where == "cache" else 1

    def times(work: Any) -> Any:
        return lambda: [work() for _ in range(again)]

    works = {"touched": times(copy_touched(data)), "fresh": times(copy_fresh(data)), "scan": times(lambda: scan(load)),
             "decode": times(lambda: decode(load)), "decode fresh": times(lambda: decode(load))}
    seconds = side_by_side(works, ROUNDS, {"decode": lambda: decode(load), "decode fresh": _core.empty_pool})
    limit = (data.nbytes + out) / (2 * data.nbytes)
    return {"workload": load.name, "from": where, "MB": data.nbytes / 1e6, "events": events, "out/in": out / data.nbytes,
            "L": limit, "memcpy GB/s": data.nbytes * again / seconds["touched"] / 1e9,
            "fresh GB/s": data.nbytes * again / seconds["fresh"] / 1e9,
            "scan/memcpy": seconds["scan"] / seconds["touched"], "scan ns": seconds["scan"] / again / events * 1e9,
            "decode/memcpy": seconds["decode"] / seconds["touched"],
            "decode/L": seconds["decode"] / seconds["touched"] / limit, "decode ns": seconds["decode"] / again / events * 1e9,
            "fresh/fresh": seconds["decode fresh"] / seconds["fresh"],
            "fresh/L": seconds["decode fresh"] / seconds["fresh"] / limit,
            "fresh ns": seconds["decode fresh"] / again / events * 1e9}


def run() -> list[dict[str, Any]]:
    return [measure(load, where) for load in workloads() for where in SIZES]
