"""What an analysis costs beside the decoding of the columns it needs, on a recording of about 200 MB."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ftbuf
from ftbuf import analysis

from .grow import grow
from .measure import side_by_side

SWITCH = ("common_ts", "common_cpu", "prev_pid", "prev_state", "next_pid", "next_prio", "next_comm")
WOKEN = ("common_ts", "common_cpu", "common_pid", "pid", "target_cpu")
# name -> (sample, the analysis, event -> columns it decodes)
ANALYSES: Mapping[str, tuple[str, Callable[[Any], object], Mapping[str, tuple[str, ...]]]] = {
    "wakeup_latency": ("mixed", analysis.wakeup_latency,
                       {"sched_switch": SWITCH, "sched_waking": WOKEN, "sched_wakeup_new": WOKEN}),
}


def opened(path: Path, work: Callable[[Any], object]) -> Callable[[], object]:
    """The work on a trace that was just opened: nothing of it is known."""
    def timed() -> object:
        with ftbuf.open(path, errors="skip") as trace:
            return work(trace)

    return timed


def decode(trace: Any, columns: Mapping[str, tuple[str, ...]]) -> None:
    for _ in trace.iterate(list(columns), columns):
        pass


def run(rounds: int = 3) -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        grown: dict[str, Path] = {}
        for name, (sample, work, columns) in ANALYSES.items():
            path = grown.setdefault(sample, Path(folder) / f"{sample}.dat")
            if not path.exists():
                grow(sample, Path(folder))
            decoding = opened(path, lambda trace, columns=columns: decode(trace, columns))
            best = side_by_side({"decode": decoding, "analysis": opened(path, work)}, rounds)
            rows.append({"analysis": name, "MB": path.stat().st_size / 1e6, "decode s": best["decode"],
                         "analysis s": best["analysis"], "ratio": best["analysis"] / best["decode"]})
    return rows
