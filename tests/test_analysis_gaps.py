"""Latencies across gaps: whole files made up, with losses anywhere, against the loops over their records."""

from __future__ import annotations

import itertools

import pytest
from filebuilder import BufferSpec, TraceDat
from hypothesis import given
from hypothesis import strategies as st
from pagebuilder import ABIS, Page, event, format_text, make_format
from test_critical import check as check_sections
from test_wakeup import check as check_wakeups

import ftbuf
from ftbuf.analysis import critical, wakeup

ABI = ABIS["le64"]
STATES = '"%d", __print_flags(REC->prev_state & 0xff, "|", {0x01, "S"}, {0x02, "D"}, {0x10, "X"}, {0x20, "Z"})'
SWITCH = make_format("sched_switch", 40, ["char prev_comm[16]", "pid_t prev_pid", "int prev_prio", "long prev_state",
                                          "char next_comm[16]", "pid_t next_pid", "int next_prio"], print_fmt=STATES)
WAKING = make_format("sched_waking", 41, ["char comm[16]", "pid_t pid", "int prio", "int target_cpu"], print_fmt='""')
OFFS = ["s32 caller_offs", "s32 parent_offs"]
DISABLE, ENABLE = (make_format(name, 42 + i, OFFS, print_fmt='""') for i, name in enumerate(("irq_disable", "irq_enable")))
PID = st.integers(0, 3)
WAKEUPS = st.one_of(
    st.builds(lambda pid: event(WAKING, ABI, pid=pid, prio=120, target_cpu=1, common_pid=9), PID),
    st.builds(lambda prev, pid, state: event(SWITCH, ABI, prev_pid=prev, prev_state=state, next_pid=pid, next_prio=120,
                                             next_comm=f"task{pid}"), PID, PID, st.sampled_from([0, 1, 2, 16, 256])))
SECTIONS = st.builds(lambda fmt, at: event(fmt, ABI, caller_offs=at), st.sampled_from([DISABLE, ENABLE]), st.integers(0, 9))


def pages(events) -> st.SearchStrategy[list[tuple[int, bool, list[bytes]]]]:
    """(CPU, whether something was lost before, records) of sub-buffers, as they follow one another in time."""
    return st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.lists(events, min_size=1, max_size=4)), max_size=8)


def recording(chosen, weave) -> bytes:
    """The records of sub-buffers of different CPUs are woven into each other, as far as each CPU's order allows."""
    clock, streams = itertools.count(1000, 10), {0: b"", 1: b"", 2: b""}
    for some in batched(chosen, weave):
        together: dict[int, tuple[bool, list[bytes]]] = {}
        for cpu, lost, records in some:
            before = together.get(cpu, (lost, []))
            together[cpu] = before[0], before[1] + records
        built = {cpu: Page(ABI) for cpu in together}
        times = dict.fromkeys(together, 0)
        for turn in itertools.zip_longest(*([(cpu, r) for r in records] for cpu, (_, records) in together.items())):
            for cpu, record in filter(None, turn):
                now = next(clock)
                if not built[cpu].body:
                    built[cpu].ts = times[cpu] = now
                built[cpu].data(now - times[cpu], record)
                times[cpu] = now
        for cpu, page in built.items():
            streams[cpu] += page.finish(missed=together[cpu][0])
    formats = {"sched": [format_text(SWITCH), format_text(WAKING)], "preemptirq": [format_text(DISABLE), format_text(ENABLE)]}
    return TraceDat(ABI, formats=formats, buffers=[BufferSpec(pages=streams)]).build().data


def batched(items, size):
    return [items[i:i + size] for i in range(0, len(items), size)]


@pytest.mark.parametrize("step", [64, 1 << 20])
@given(chosen=pages(WAKEUPS), weave=st.integers(1, 3))
def test_wakeups(step, chosen, weave):
    with ftbuf.open(recording(chosen, weave)) as trace, pytest.MonkeyPatch.context() as patch:
        patch.setattr(wakeup, "STEP", step)
        check_wakeups(trace)


@pytest.mark.parametrize("step", [64, 1 << 20])
@given(chosen=pages(SECTIONS), weave=st.integers(1, 3))
def test_sections(step, chosen, weave):
    with ftbuf.open(recording(chosen, weave)) as trace, pytest.MonkeyPatch.context() as patch:
        patch.setattr(critical, "STEP", step)
        check_sections(trace, "irq")
