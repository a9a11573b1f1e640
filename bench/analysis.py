"""What an analysis costs beside the decoding of the columns it needs, on a recording of about 200 MB."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ftbuf
from ftbuf import analysis

from .grow import grow, grow_directory
from .measure import side_by_side

SWITCH = ("common_ts", "common_cpu", "prev_pid", "prev_state", "next_pid", "next_prio", "next_comm")
CALL = ("common_ts", "common_cpu", "common_pid", "func", "depth")
RETURN = (*CALL, "calltime", "rettime")
RAN = ("common_ts", "common_cpu", "prev_pid", "prev_state", "next_pid", "next_comm")
SOFTIRQ, IRQ = ("common_ts", "common_cpu", "vec"), ("common_ts", "common_cpu", "irq")
SYSCALL = ("common_ts", "common_pid", "id")
WOKEN = ("common_ts", "common_cpu", "common_pid", "pid", "target_cpu")
IDLE, SECTION, LATENCY = ("common_ts", "cpu_id", "state"), ("common_ts", "common_cpu", "common_pid", "caller_offs"), (
    "common_cpu", "context", "timer_latency")
SCHEDULED = {"sched_switch": RAN, "sched_waking": ("common_ts", "pid"), "sched_wakeup_new": ("common_ts", "pid")}
WAKEUPS = {"sched_switch": SWITCH, "sched_waking": WOKEN, "sched_wakeup_new": WOKEN}
HANDLED = {"softirq_entry": SOFTIRQ, "softirq_exit": SOFTIRQ, "irq_handler_entry": (*IRQ, "name"), "irq_handler_exit": IRQ}
VECTORS = {f"{name}_{edge}": ("common_ts", "common_cpu", "vector")
           for name in ("local_timer", "call_function_single", "reschedule") for edge in ("entry", "exit")}
CALLS = {"funcgraph_entry": CALL, "funcgraph_exit": RETURN}
NOISES = {"timerlat": LATENCY, "irq_noise": ("common_cpu", "duration", "vector", "desc"),
          "thread_noise": ("common_cpu", "duration", "pid", "comm"), "softirq_noise": ("common_cpu", "duration", "vector")}
# Recordings that hold nothing but what one analysis looks at: where it costs most beside the decoding.
ALONE = {"sections": ("preemptirq:irq_*",), "interrupts": ("irq:softirq_e*", "irq_vectors:*"), "idle": ("power:cpu_idle",)}
DIRECTORIES = ("irqsoff",)  # a trace.dat does not tell which tracer made it
# name -> (sample, the analysis, event -> columns it decodes; none: the times and CPUs of all records)
ANALYSES: Mapping[str, tuple[str, Callable[[Any], object], Mapping[str, tuple[str, ...]]]] = {
    "function_profile": ("graph", analysis.function_profile, CALLS),
    "function_profile of own time": ("graph", lambda trace: analysis.function_profile(trace, graph_time=False), CALLS),
    "call_tree": ("graph", analysis.call_tree, CALLS),
    "function_profile of hits": ("function", analysis.function_profile, {"function": ("common_cpu", "ip")}),
    "losses": ("mixed", analysis.losses, {}),
    "rates": ("mixed", analysis.rates, {}),
    "task_states": ("mixed", analysis.task_states, SCHEDULED),
    "cpu_busy": ("mixed", analysis.cpu_busy, {"sched_switch": ("common_ts", "common_cpu", "prev_pid", "next_pid")}),
    "irq_time": ("mixed", analysis.irq_time, HANDLED),
    "syscalls": ("mixed", analysis.syscalls, {"sys_enter": SYSCALL, "sys_exit": (*SYSCALL, "ret")}),
    "wakeup_latency": ("mixed", analysis.wakeup_latency, WAKEUPS),
    "task_states, scheduler alone": ("switches", analysis.task_states, SCHEDULED),
    "wakeup_latency, scheduler alone": ("switches", analysis.wakeup_latency, WAKEUPS),
    "irq_time, interrupts alone": ("interrupts", analysis.irq_time, {"softirq_entry": SOFTIRQ, "softirq_exit": SOFTIRQ, **VECTORS}),
    "critical_sections, these alone": ("sections", analysis.critical_sections, {"irq_disable": SECTION, "irq_enable": SECTION}),
    "idle_residency, these alone": ("idle", analysis.idle_residency, {"cpu_idle": IDLE}),
    "idle_residency": ("all events", analysis.idle_residency, {"cpu_idle": IDLE}),
    "frequency_residency": ("all events", analysis.frequency_residency, {"cpu_frequency": IDLE}),
    "noise": ("timerlat", analysis.noise, NOISES),
    "latency_report": ("irqsoff", analysis.latency_report, {}),
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
    known = {name: wanted for name, wanted in columns.items() if name in trace}
    for _ in trace.iterate(list(known), known) if known else ():
        pass


def run(names: Sequence[str] = (), rounds: int = 3) -> list[dict[str, Any]]:
    """All analyses, or those whose names begin with one of these."""
    chosen = [name for name in ANALYSES if not names or name.startswith(tuple(names))]
    rows = []
    for sample in dict.fromkeys(ANALYSES[name][0] for name in chosen):
        with tempfile.TemporaryDirectory() as folder:  # one large file at a time
            events = ALONE.get(sample)
            path = (grow_directory(sample, Path(folder)) if sample in DIRECTORIES
                    else grow("all events" if events else sample, Path(folder), events=events))
            size = sum(file.stat().st_size for file in [path, *path.rglob("*_raw")])
            for name in chosen:
                of, work, columns = ANALYSES[name]
                if of == sample:
                    decoding = opened(path, lambda trace, columns=columns: decode(trace, columns))
                    best = side_by_side({"decode": decoding, "analysis": opened(path, work)}, rounds)
                    rows.append({"analysis": name, "MB": size / 1e6, "decode s": best["decode"],
                                 "analysis s": best["analysis"], "ratio": best["analysis"] / best["decode"]})
    return rows
