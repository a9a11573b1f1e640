"""Lines of plain layouts by the core: the same LinePlan that lineplan.py runs, for whole batches of records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..engine import Judge
from ..plan import PID_LIMIT
from ..recording import Recording
from .lineplan import Column, LinePlan, Op, event_name
from .lines import Line, Names
from .record import LineRecord, encoded

if TYPE_CHECKING:
    from ..trace import Trace

Programs = Callable[[tuple[str, str]], Any]  # the core's programs of an event
DrawnFallback = Callable[..., tuple[bytes, int, int, bool]]  # see _core.LineWriter
Fallback = Callable[[LineRecord, int, int], bytes]  # record, time of its neighbour (see _core.LineWriter), number of the line


def can_write(trace: Trace) -> bool:
    """Whether the core can print its lines: records of one file."""
    return len(trace.recording.files) == 1


def written(
    trace: Trace,
    names: Names,
    plan: LinePlan,
    programs: Programs,
    renderer: _core.Renderer,
    fallback: Fallback,
    max_line: int = 0,
) -> Iterator[bytes]:
    """Text in pieces of some lines."""
    writer, judge = line_writer(trace, names, plan, programs, renderer, fallback, max_line)
    yield from writer
    judge.finish()


def line_writer(
    trace: Trace,
    names: Names,
    plan: LinePlan,
    programs: Programs,
    renderer: _core.Renderer,
    fallback: Fallback | DrawnFallback,
    max_line: int = 0,
    events: Sequence[str] | None = None,
    calls: Callable[[tuple[str, str]], Any] = lambda pair: None,
    irq_entry: tuple[int, int] | None = None,
) -> tuple[_core.LineWriter, Judge]:
    """What writes lines, and the judge to call at their end.

    Parameters
    ----------
    programs : function
        What prints the body of an event; None: only the fallback can.
    calls : function
        What the core is to know of an event whose records are drawn as calls and returns.
    irq_entry : tuple of int
        For the kernel's graph: where functions that interrupts begin with lie.
    """
    recording: Recording = trace.recording
    records, judge, slots = trace.reader(Line, lambda file: names, events)

    def program(slot: int) -> Any:
        pair = slots[slot][1]
        return None if pair is None else programs(pair)

    drawn = [None if pair is None else calls(pair) for _, pair in slots]
    columns, before_name, after_flags = folded(joined(plan.columns))
    graph = None if irq_entry is None else (1 + next(i for i, c in enumerate(columns) if c.op is Op.BODY), *irq_entry)
    writer = _core.LineWriter(
        records,
        renderer,
        [(int(c.op), c.width, c.text) for c in columns],
        plan.latency.flags,
        [text + after_flags for text in plan.latency.preempt],
        plan.labels,
        [before_name + names_column(columns, encoded(pair[1]) if pair is not None else b"") for _, pair in slots],
        comm_table(names),
        tgid_table(names),
        [recording.common_place(n) or (0, 0) for n in ("common_pid", "common_flags", "common_preempt_count")],
        program,
        fallback,
        big_endian=recording.container.big_endian,
        start=plan.start,
        max_line=max_line,
        calls=drawn if any(drawn) else None,
        graph=graph,
    )
    return writer, judge


def joined(columns: Sequence[Column]) -> list[Column]:
    """The columns, with texts that follow one another as one."""
    out: list[Column] = []
    for column in columns:
        if out and out[-1].op is column.op is Op.TEXT:
            out[-1] = replace(column, text=out[-1].text + column.text)
        else:
            out.append(column)
    return out


def folded(columns: Sequence[Column]) -> tuple[list[Column], bytes, bytes]:
    """The columns without the texts before the event's name and behind the latency characters, and these texts.

    They are added to what those columns print: a layout has either once at the most.
    """
    out: list[Column] = []
    before_name = after_flags = b""
    for column in columns:
        if column.op is Op.EVENT_NAME and out and out[-1].op is Op.TEXT:
            before_name = out.pop().text
        if column.op is Op.TEXT and out and out[-1].op is Op.LATENCY:
            after_flags = column.text
        else:
            out.append(column)
    return out, before_name, after_flags


def names_column(columns: Sequence[Column], name: bytes) -> bytes:
    """What an event-name column prints for an event."""
    return next((event_name(name, c.width) for c in columns if c.op is Op.EVENT_NAME), b"")


def comm_table(names: Names) -> tuple[np.ndarray, list[bytes]]:
    """(code of each pid, texts by code); code 0 is for tasks that are not known."""
    known = [pid for pid in names.known_pids() if 0 < pid <= PID_LIMIT]
    codes = np.zeros(max(known, default=0) + 1, np.int32)
    texts = {names.comm(PID_LIMIT + 1): 0}
    for pid in (0, *known):
        codes[pid] = texts.setdefault(names.comm(pid), len(texts))
    return codes, list(texts)


def tgid_table(names: Names) -> np.ndarray:
    """Thread group of each pid; 0: not known."""
    known = {pid: tgid for pid, tgid in names.tgids.items() if 0 <= pid <= PID_LIMIT}
    tgids = np.zeros(max(known, default=-1) + 1, np.int32)
    for pid, tgid in known.items():
        tgids[pid] = tgid
    return tgids
