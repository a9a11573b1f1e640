"""What the latency tracers found: the longest time with interrupts or preemption off, or from a wakeup to its switch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..sections import LATENCY_TRACERS, SECTION_TRACERS, Section, longest_section, max_latency_us
from ..table import Table
from ..trace import Trace
from .tables import table
from .wanted import check_trace

SLACK = 100_000_000  # ns: how much older than the latency itself what belongs to it can be
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class LatencyReport:
    """The longest latency of a recording that a latency tracer made.

    Attributes
    ----------
    tracer : str
        irqsoff, preemptoff, preemptirqsoff, wakeup, wakeup_rt or wakeup_dl.
    latency_us : int
        Microseconds, as the kernel rounded them (``tracing_max_latency``); measured, where the recording lacks it.
    cpu, pid : int
    comm : str
        The task: of a wakeup tracer the one that was woken.
    policy, rt_prio : int
        0 other, 1 real time (first in, first out, for all that records tell), 6 deadline; -1 where the records do not
        tell: only the wakeup tracers' do, and texts.
    started_at, ended_at : str
        Functions that switched interrupts or preemption off, and on again, as the kernel's heading names them (of a
        function that is itself in the graph, its caller is return_to_handler); "" where there are none.
    start, end : int
        Times on the trace clock: when the kernel began to count (less than a microsecond off; of a wakeup tracer a few),
        and the record that ends the section. -1 of a recording that is text.
    steps : Table
        ``ts`` (-1 of text), ``since_start`` and ``delay`` until the next step, in ns; ``cpu``, ``pid``, ``comm``,
        ``event`` ("" of text), ``text`` as the kernel prints it, and ``inside``: False of what the tracer itself
        recorded after the section's end.
    """

    tracer: str
    latency_us: int
    cpu: int
    pid: int
    comm: str
    policy: int
    rt_prio: int
    started_at: str
    ended_at: str
    start: int
    end: int
    steps: Table


def latency_tracer(trace: Trace) -> str | None:
    """The latency tracer that a recording was made with, if any."""
    check_trace(trace)
    text = trace.text
    if text is not None:
        match = _TRACER.match(text)
        tracer = match[1] if match else ""
    else:
        tracer = (trace.recording.container.tracing_file("current_tracer") or b"").strip().decode("utf-8", "replace")
    return tracer if tracer in LATENCY_TRACERS else None


def need_tracer(trace: Trace) -> str:
    """The latency tracer; UnsupportedError where none made the recording."""
    tracer = latency_tracer(trace)
    if tracer is None:
        raise UnsupportedError(f"no latency tracer made this recording: there are {', '.join(sorted(LATENCY_TRACERS))}")
    return tracer


def latency_report(trace: Trace) -> LatencyReport:
    """The longest latency that a latency tracer met, and what happened in it step by step.

    Such a tracer keeps the records of the longest latency in the snapshot; of a recording without one, its buffer is
    looked at. ``trace-cmd`` extracts them as text, which is read too.

    Returns
    -------
    LatencyReport

    Raises
    ------
    UnsupportedError
        The recording was not made with a latency tracer.
    """
    tracer, text = need_tracer(trace), trace.text
    return _of_text(tracer, text) if text is not None else _of_records(tracer, trace)


# ---- records ----


def _of_records(tracer: str, trace: Trace) -> LatencyReport:
    known = max_latency_us(trace.recording.container.tracing_file("tracing_max_latency"))
    view = _near_the_end(trace.snapshot or trace, known)
    records = list(view.records())
    found = longest_section(tracer, records, known, view.symbols)
    end = records[found.end].ts if records else found.start
    policy, rt_prio = (UNKNOWN, UNKNOWN) if tracer in SECTION_TRACERS else (found.policy, found.rt_prio)
    return LatencyReport(
        tracer, known if known else round((end - found.start) / 1000), found.cpu, found.task,
        trace.comms[found.task], policy, rt_prio, _function(trace, found.started_at),
        _function(trace, found.ended_at), found.start, end, _steps(view, records, found))


def _near_the_end(trace: Trace, latency_us: int) -> Trace:
    """The part that can belong to the latency: the snapshot was taken when it ended."""
    end = trace.end
    if end is None or not latency_us or trace.info["clock_unit"] != "ns":
        return trace
    return trace.window(start=end - latency_us * 1000 - SLACK)


def _function(trace: Trace, address: int) -> str:
    return (trace.symbols.name(address) or f"{address:#x}") if address else ""


def _steps(trace: Trace, records: Sequence[Any], found: Section) -> Table:
    texts = _texts(trace)
    bodies = [texts(r) for r in records]
    kept = records[found.begin :]
    ts = np.array([r.ts for r in kept], np.int64)
    return table({
        "ts": ts, "since_start": ts - found.start, "delay": np.diff(ts, append=ts[-1:]), "cpu": [r.cpu for r in kept],
        "pid": [r.pid or 0 for r in kept], "comm": _strings(trace.comms[r.pid or 0] for r in kept),
        "event": _strings(r.name for r in kept), "text": _strings(bodies[found.begin :]),
        "inside": np.arange(found.begin, len(records)) <= found.end})


def _texts(trace: Trace) -> Callable[[Any], str]:
    """Record after record -> its text: each event's are made in one go."""
    left: dict[tuple[str, str], Iterator[str]] = {}

    def text(record: Any) -> str:
        fmt = record.format
        pair = (fmt.system, fmt.name)
        if pair not in left:
            name = ":".join(pair)
            left[pair] = iter(trace[name].text().tolist() if name in trace else [])
        return next(left[pair], "")

    return text


def _strings(values: Any) -> np.ndarray:
    listed = list(values)
    out = np.empty(len(listed), object)
    out[:] = listed
    return out


# ---- text ----

# Numbers and names have limits: a text is untrusted, and long ones would cost the matching much time.
_TRACER = re.compile(r"# tracer: (\S{1,32})")
_HEADING = re.compile(r"# latency: (\d{1,15}) us, [^,]{1,64}, CPU#(\d{1,6})")
_TASK = re.compile(r"#    \| task: (.{0,32})-(\d{1,10}) "
                   r"\(uid:\d{1,10} nice:-?\d{1,4} policy:(\d{1,4}) rt_prio:(\d{1,4})\)")
_PLACE = re.compile(r"#  => (started|ended) at: +(.*)")
_COMM_PID = r"(?P<comm>.{0,16})-(?P<pid>\d{1,10}) {1,16}"
# K:trace_output.c trace_print_lat_context; K:trace_functions_graph.c print_graph_rel_time and the columns after it
_LINE = re.compile(_COMM_PID + r"(?P<cpu>\d{1,6}?)\D\S{3,4} {1,16}(?P<us>\d{1,15})us.: (?P<text>.*)")
_GRAPH = re.compile(r" {0,16}(?P<us>\d{1,15}) us \| {1,16}(?P<cpu>\d{1,6})\) {1,16}" + _COMM_PID + r"\|(?P<text>.*)")
_OWN = ("tracer_hardirqs_on", "tracer_preempt_on", "<stack trace>")  # what the tracer records when it reports


def _of_text(tracer: str, text: str) -> LatencyReport:
    lines = text.splitlines()
    heading = [line for line in lines if line.startswith("#")]
    latency, cpu = (int(n) for n in _first(_HEADING, heading, ("0", "0")))
    comm, pid, policy, rt_prio = _first(_TASK, heading, ("", "0", "0", "0"))
    places = {m[1]: m[2] for m in map(_PLACE.match, heading) if m}
    return LatencyReport(tracer, latency, cpu, int(pid), comm, int(policy), int(rt_prio), places.get("started", ""),
                         places.get("ended", ""), UNKNOWN, UNKNOWN, _text_steps(tracer, lines))


def _first(pattern: re.Pattern[str], lines: Sequence[str], default: tuple[str, ...]) -> tuple[str | Any, ...]:
    return next((m.groups() for m in map(pattern.match, lines) if m), default)


def _text_steps(tracer: str, lines: Sequence[str]) -> Table:
    found: list[dict[str, Any]] = []
    for line in lines:
        match = None if line.startswith("#") else _LINE.fullmatch(line) or _GRAPH.fullmatch(line)
        if match:
            found.append(match.groupdict())
        elif found and line.startswith(" => "):
            found[-1]["text"] += "\n" + line
    since = np.array([int(row["us"]) * 1000 for row in found], np.int64)
    texts = [row["text"] for row in found]
    last = len(texts)
    while last and "wakeup" not in tracer and any(own in texts[last - 1] for own in _OWN):
        last -= 1
    cpu, pid = (np.array([int(row[name]) for row in found], np.int64) for name in ("cpu", "pid"))
    return table({
        "ts": np.full(len(found), UNKNOWN, np.int64), "since_start": since, "delay": np.diff(since, append=since[-1:]),
        "cpu": cpu, "pid": pid, "comm": _strings(row["comm"].strip() for row in found),
        "event": _strings("" for _ in found), "text": _strings(texts), "inside": np.arange(len(found)) < last})
