"""The scheduler's events as analyses need them: which buffer to look at, which fields there are, what a state means."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

from ..errors import BufferWarning, EventNotFoundError
from ..formats import EventFormat
from ..trace import Trace
from .wanted import has, require_readable

SWITCH, WAKING, WAKEUP, WAKEUP_NEW = "sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup", "sched:sched_wakeup_new"
_STATE = re.compile(r'\{\s*(0x[0-9a-fA-F]+|\d+)[uUlL]*\s*,\s*"(\w+)"\s*\}')
USUAL_STATES = {1: "S", 2: "D", 4: "T", 8: "t", 16: "X", 32: "Z", 64: "P", 128: "I"}  # K:include/linux/sched.h, since 4.14
ENDED = frozenset("XxZ")
FIRST_LOOK = "4 KB"


def task_states(switch: EventFormat) -> dict[int, str]:
    """Bit of ``prev_state`` -> its letter, as the print format of this kernel's sched_switch has them.

    A task whose state has none of these bits can run: it was switched out while it could have gone on.
    """
    found = {int(bit, 0): letter for bit, letter in _STATE.findall(switch.print_fmt) if int(bit, 0)}
    return found or USUAL_STATES


def sleep_mask(switch: EventFormat) -> int:
    """The bits of ``prev_state`` that a task which sleeps has; one that ends has others."""
    mask = 0
    for bit, letter in task_states(switch).items():
        mask |= 0 if letter in ENDED else bit
    return mask


def one_buffer(trace: Trace, events: Sequence[str]) -> Trace:
    """The view, narrowed to one buffer where it has several: the first in which one of the events occurs.

    Buffers can hold the same events twice (instances), or those of different machines (merged files): a BufferWarning names
    those that are left out. Parts of one recording are not: their buffers are looked at together.
    """
    if trace.selection.buffers is not None or len(trace.buffers) < 2:
        return trace
    holding = [name for name in trace.buffers if occurs(trace.window(buffer=name), *events)]
    if not holding:
        return trace
    chosen = trace.joined(holding[0])
    others = [name for name in holding if name not in chosen]
    if others:
        warnings.warn(f"only the buffer {holding[0]!r} is looked at; there are such events in {', '.join(map(repr, others))}, too: "
                      "choose by window(buffer=...), or --buffer", BufferWarning, stacklevel=3)
    return trace.window(buffer=chosen)


def occurs(trace: Trace, *events: str) -> bool:
    """Whether a trace has records of any of the events: found out by looking for the first."""
    known = [name for name in events if has(trace, name)]
    steps = trace.iterate(known, ["common_ts"], step_size=FIRST_LOOK) if known else ()
    return any(len(rows) for step in steps for rows in step.values())


def require_events(trace: Trace, events: Sequence[str], what: str) -> None:
    """Raise where the recording cannot hold any of the events, or their formats are damaged."""
    if not any(has(trace, name) for name in events):
        require_readable(trace, events)
        raise EventNotFoundError(f"{what} needs the event {' or '.join(events)}, which the recording does not have")
