"""The lines with '#' above the kernel's ``trace`` file.

A few of their words are known to the running kernel alone: the task of a latency tracer, the CPU that the buffer was last
reset on. They are filled in from the records as far as those tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..sections import LATENCY_TRACERS
from .columns import kernel_release
from .graph import GraphFlags
from .options import Options
from .record import encoded

RULE = "# --------------------------------------------------------------------"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the banner tells about the recording."""

    uname: str = ""
    cpus: int = 1
    entries: int = 0
    written: int = 0  # entries, and those that were overwritten
    cpu: int = 0
    max_latency: int = 0  # microseconds
    task: str = ""
    pid: int = 0
    policy: int = 0
    rt_prio: int = 0
    started_at: str = ""
    ended_at: str = ""


def banner(options: Options, facts: Facts, graph: GraphFlags | None = None) -> Iterator[bytes]:
    """All banner lines."""
    for line in _lines(options, facts, graph):
        yield encoded(line) + b"\n"


def _lines(options: Options, facts: Facts, graph: GraphFlags | None) -> Iterator[str]:
    yield f"# tracer: {options.tracer}"
    yield "#"
    if graph is not None:
        if options.latency:
            yield from _latency(options, facts)
        yield from _graph(graph)
    elif options.tracer in ("osnoise", "timerlat"):
        yield from _noise(options.tracer)
    elif options.tracer == "blk":
        if "blk_classic" in options:
            yield "# DEV   CPU TIMESTAMP     PID ACT FLG"
            yield "#  |     |     |           |   |   |"
    elif "context-info" in options:
        yield from _default(options, facts)


def _default(options: Options, facts: Facts) -> Iterator[str]:
    if options.latency:
        if facts.entries:
            yield from _latency(options, facts)
            if "verbose" not in options:
                yield from _latency_help()
    elif "verbose" not in options:
        yield from _normal_help(options, facts)


def _normal_help(options: Options, facts: Facts) -> Iterator[str]:
    yield f"# entries-in-buffer/entries-written: {facts.entries}/{facts.written}   #P:{facts.cpus}"
    yield "#"
    tgid = "record-tgid" in options
    head = "#           TASK-PID    " + ("   TGID   " if tgid else "") + " CPU#  "
    legs = "#              | |      " + ("     |    " if tgid else "") + "   |   "
    if "irq-info" not in options:
        yield head + "   TIMESTAMP  FUNCTION"
        yield legs + "      |         |"
        return
    space = "#" + " " * (32 + 10 * tgid - 2)
    for text in (
        "  _-----=> irqs-off/BH-disabled",
        " / _----=> need-resched",
        "| / _---=> hardirq/softirq",
        "|| / _--=> preempt-depth",
        "||| / _-=> migrate-disable",
        "|||| /     delay",
    ):
        yield space + text
    yield head + "|||||  TIMESTAMP  FUNCTION"
    yield legs + "|||||     |         |"


def _latency(options: Options, facts: Facts) -> Iterator[str]:
    words = facts.uname.split()
    release = words[2] if len(words) > 2 and words[0] == "Linux" else facts.uname
    smp = f" #P:{facts.cpus}" if "SMP" in words else ""
    yield f"# {options.tracer} latency trace v1.1.5 on {release}"
    yield RULE
    yield (
        f"# latency: {facts.max_latency} us, #{facts.entries}/{facts.written}, CPU#{facts.cpu} | "
        f"(M:{preemption_model(facts.uname)} VP:0, KP:0, SP:0 HP:0{smp})"
    )
    yield "#    -----------------"
    yield f"#    | task: {facts.task}-{facts.pid} (uid:0 nice:0 policy:{facts.policy} rt_prio:{facts.rt_prio})"
    yield "#    -----------------"
    if facts.started_at:
        yield f"#  => started at: {facts.started_at}"
        yield f"#  => ended at:   {facts.ended_at}"
        yield "#"
    yield "#"


def preemption_model(uname: str) -> str:
    """How the kernel calls its preemption model, as far as the uname text tells."""
    words, release = uname.split(), kernel_release(uname)
    if release < (6, 14):
        return "preempt_rt" if "PREEMPT_RT" in words else "preempt" if "PREEMPT" in words else "desktop"
    if "PREEMPT_DYNAMIC" in words:
        return "PREEMPT(lazy)" if release >= (7, 0) else "PREEMPT(none)"
    return "PREEMPT_RT" if "PREEMPT_RT" in words else "PREEMPT" if "PREEMPT" in words else "PREEMPT(none)"


def _latency_help() -> Iterator[str]:
    for text in (
        "                   _------=> CPU#            ",
        "                  / _-----=> irqs-off/BH-disabled",
        "                 | / _----=> need-resched    ",
        "                 || / _---=> hardirq/softirq ",
        "                 ||| / _--=> preempt-depth   ",
        "                 |||| / _-=> migrate-disable ",
        "                 ||||| /     delay           ",
        " cmd     pid     |||||| time  |   caller     ",
        "    \\   /        ||||||  \\    |    /       ",
    ):
        yield "# " + text


def _graph(flags: GraphFlags) -> Iterator[str]:
    if not flags.context:
        return
    names, legs = "#", "#"
    if flags.abstime:
        names, legs = names + "     TIME       ", legs + "      |         "
    if flags.reltime:
        names, legs = names + "   REL TIME     ", legs + "      |         "
    if flags.cpu:
        names, legs = names + " CPU", legs + " |  "
    if flags.proc:
        names, legs = names + "  TASK/PID       ", legs + "   |    |        "
    if flags.latency:
        yield from _graph_latency_help("#" + " " * (len(names) - 1))
        names, legs = names + "||||   ", legs + "||||   "
    if flags.duration:
        names, legs = names + "  DURATION   ", legs + "   |   |      "
    yield names + "               FUNCTION CALLS"
    yield legs + "               |   |   |   |"


def _graph_latency_help(space: str) -> Iterator[str]:
    for text in (
        "  _-----=> irqs-off        ",
        " / _----=> need-resched    ",
        "| / _---=> hardirq/softirq ",
        "|| / _--=> preempt-depth   ",
        "||| /                      ",
    ):
        yield space + text


def _noise(tracer: str) -> Iterator[str]:
    """The headers that the osnoise and timerlat tracers print in every layout."""
    space = "#                              "
    yield space + "  _-----=> irqs-off"
    yield space + " / _----=> need-resched"
    yield space + "| / _---=> hardirq/softirq"
    yield space + "|| / _--=> preempt-depth"
    if tracer == "osnoise":
        yield space + "||| / _-=> migrate-disable                         MAX"
        yield space + "|||| /     delay                                   SINGLE      Interference counters:"
        yield space + "|||||               RUNTIME      NOISE  %% OF CPU  NOISE    +-----------------------------+"
        yield (
            "#           TASK-PID      CPU# |||||   TIMESTAMP    IN US       IN US  AVAILABLE  IN US     "
            "HW    NMI    IRQ   SIRQ THREAD"
        )
        yield (
            "#              | |         |   |||||      |           |             |    |            |      "
            "|      |      |      |      |"
        )
        return
    yield space + "||| / _-=> migrate-disable"
    yield space + "|||| /     delay"
    yield space + "|||||            ACTIVATION"
    yield "#           TASK-PID      CPU# |||||   TIMESTAMP   ID            CONTEXT                 LATENCY"
    yield "#              | |         |   |||||      |         |                  |                       |"


def has_snapshot(options: Options) -> bool:
    """Whether the tracer's text is that of the snapshot it took at the worst latency."""
    return options.tracer in LATENCY_TRACERS
