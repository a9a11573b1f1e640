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
CALL = ("common_ts", "common_cpu", "common_pid", "func", "depth")
RETURN = (*CALL, "calltime", "rettime")
RAN = ("common_ts", "common_cpu", "prev_pid", "prev_state", "next_pid", "next_comm")
SOFTIRQ, IRQ = ("common_ts", "common_cpu", "vec"), ("common_ts", "common_cpu", "irq")
SYSCALL = ("common_ts", "common_pid", "id")
WOKEN = ("common_ts", "common_cpu", "common_pid", "pid", "target_cpu")
# name -> (sample, the analysis, event -> columns it decodes; none: the times and CPUs of all records)
ANALYSES: Mapping[str, tuple[str, Callable[[Any], object], Mapping[str, tuple[str, ...]]]] = {
    "function_profile": ("graph", analysis.function_profile, {"funcgraph_entry": CALL, "funcgraph_exit": RETURN}),
    "function_profile of own time": ("graph", lambda trace: analysis.function_profile(trace, graph_time=False),
                                     {"funcgraph_entry": CALL, "funcgraph_exit": RETURN}),
    "call_tree": ("graph", analysis.call_tree, {"funcgraph_entry": CALL, "funcgraph_exit": RETURN}),
    "function_profile of hits": ("function", analysis.function_profile, {"function": ("common_cpu", "ip")}),
    "losses": ("mixed", analysis.losses, {}),
    "rates": ("mixed", analysis.rates, {}),
    "task_states": ("mixed", analysis.task_states,
                    {"sched_switch": RAN, "sched_waking": ("common_ts", "pid"), "sched_wakeup_new": ("common_ts", "pid")}),
    "cpu_busy": ("mixed", analysis.cpu_busy, {"sched_switch": ("common_ts", "common_cpu", "prev_pid", "next_pid")}),
    "irq_time": ("mixed", analysis.irq_time,
                 {"softirq_entry": SOFTIRQ, "softirq_exit": SOFTIRQ, "irq_handler_entry": (*IRQ, "name"),
                  "irq_handler_exit": IRQ}),
    "syscalls": ("mixed", analysis.syscalls, {"sys_enter": SYSCALL, "sys_exit": (*SYSCALL, "ret")}),
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
    if not columns:
        trace.timeline(threads=1)
    for _ in trace.iterate(list(columns), columns) if columns else ():
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
