"""Which of the kernel's trace options a report follows: those of the recording, changed by the user's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..sections import LATENCY_TRACERS
from ..table import near_names

NANOSECOND_CLOCKS = frozenset(("local", "global", "perf", "mono", "mono_raw", "boot", "tai"))  # K:trace.c trace_clocks

# K:trace.h: what is on where a recording does not tell
DEFAULTS = (
    "print-parent",
    "trace_printk",
    "annotate",
    "context-info",
    "record-cmd",
    "overwrite",
    "irq-info",
    "markers",
    "hash-ptr",
    "function-trace",
    "funcgraph-cpu",
    "funcgraph-overhead",
    "funcgraph-duration",
    "funcgraph-irqs",
)

# Other options of trace_options that kernels have (Documentation/trace/ftrace.rst), of all tracers.
OTHERS = (
    "bin", "bitmask-list", "blk_cgname", "blk_cgroup", "blk_classic", "block", "copy_trace_marker", "disable_on_free",
    "display-graph", "event-fork", "fields", "func-args", "func-no-repeats", "func_stack_trace", "funcgraph-abstime",
    "funcgraph-args", "funcgraph-overrun", "funcgraph-proc", "funcgraph-retaddr", "funcgraph-retval",
    "funcgraph-retval-hex", "funcgraph-tail", "function-fork", "graph-time", "hex", "latency-format", "pause-on-trace",
    "printk-msg-only", "raw", "record-tgid", "sleep-time", "stacktrace", "sym-addr", "sym-offset", "sym-userobj",
    "test_nop_accept", "test_nop_refuse", "trace_printk_dest", "userstacktrace", "verbose",
)  # fmt: skip


def parse_trace_options(text: bytes) -> dict[str, bool]:
    """``trace_options``: one name a line, "no" before those that are off."""
    options = dict.fromkeys(DEFAULTS, True)
    for word in text.decode("utf-8", "replace").split():
        change(options, word)
    return options


def change(options: dict[str, bool], word: str) -> None:
    """Set what ``-O word`` sets. Every option's own name starts otherwise than with "no"."""
    if word.startswith("no"):
        options[word[2:]] = False
    else:
        options[word] = True


@dataclass(frozen=True, slots=True)
class Options:
    """Everything that decides which layout a line has."""

    tracer: str
    enabled: frozenset[str]
    clock: str = "local"

    def __contains__(self, name: str) -> bool:
        return name in self.enabled

    @property
    def in_ns(self) -> bool:
        return self.clock in NANOSECOND_CLOCKS

    @property
    def latency(self) -> bool:
        return "latency-format" in self.enabled

    @property
    def blk_classic(self) -> bool:
        """Whether the blk tracer prints whole lines of its own."""
        return self.tracer == "blk" and "blk_classic" in self.enabled

    @property
    def draws_graph(self) -> bool:
        """Whether the tracer draws calls as a graph."""
        return self.tracer == "function_graph" or (self.tracer in LATENCY_TRACERS and "display-graph" in self.enabled)


def make_options(
    trace_options: bytes | None, current_tracer: bytes | None, clock: str, changes: Iterable[str] = ()
) -> Options:
    """The options of a recording, with the user's changes (``-O name``, ``-O noname``) on top.

    Raises
    ------
    ValueError
        No kernel has such an option; the message lists near names.
    """
    options = parse_trace_options(trace_options or b"")
    known = [*DEFAULTS, *OTHERS, *options]
    for word in changes:
        if word.removeprefix("no") not in known:
            raise ValueError(near_names("trace option", word, known))
        change(options, word)
    tracer = (current_tracer or b"").strip().decode("utf-8", "replace") or "nop"
    return Options(tracer, frozenset(name for name, on in options.items() if on), clock)
