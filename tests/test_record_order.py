"""Events of the same time, in the order in which they were recorded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pagebuilder import event, make_abi
from recorder import OTHERS, SCHED, Recorder

import ftbuf
from ftbuf.analysis import critical_sections, irq_time, syscalls, task_states, wakeup_latency
from ftbuf.plan import ORDER

KINDS = {**SCHED, **OTHERS, ("preemptirq", "irq_disable"): ("s32 caller_offs", "s32 parent_offs"),
         ("preemptirq", "irq_enable"): ("s32 caller_offs", "s32 parent_offs")}
NAMES = ("sched_switch", "sched_waking", "sys_enter", "sys_exit")


def recorded(*events):
    """Of (ts, name, fields), all on CPU 0."""
    made = Recorder(KINDS)
    for ts, name, fields in events:
        made.add_fields(ts, 0, name, fields)
    return made.open()


def switch(ts, prev, state, following):
    return ts, "sched_switch", {"common_pid": prev, "prev_pid": prev, "prev_state": state, "next_pid": following}


def waking(ts, pid):
    return ts, "sched_waking", {"pid": pid}


def call(ts, name, number=0):
    return ts, name, {"common_pid": 5, "id": number}


# ---- the analyses ----


def test_a_call_that_follows_another_at_once():
    events = [call(100, "sys_enter"), call(110, "sys_exit"), call(110, "sys_enter"), call(125, "sys_exit"),
              call(130, "sys_enter"), call(130, "sys_exit")]
    with recorded(*events) as trace:
        found = syscalls(trace)
        assert [found[n].tolist() for n in ("count", "time", "lost", "open")] == [[3], [25], [0], [0]]


def test_handlers_one_after_another_at_once():
    events = [(100, "softirq_entry", {"vec": 1}), (110, "softirq_exit", {"vec": 1}), (110, "softirq_entry", {"vec": 2}),
              (115, "softirq_exit", {"vec": 2})]
    with recorded(*events) as trace:
        found = irq_time(trace)
        found = {i: (c, t, n) for i, c, t, n in zip(*(found[k].tolist() for k in ("id", "count", "time", "lost")), strict=True)}
        assert found == {1: (1, 10, 0), 2: (1, 5, 0)}


def test_a_task_that_runs_and_sleeps_at_once():
    events = [switch(90, 9, 0, 9), waking(100, 5), switch(100, 9, 0, 5), switch(100, 5, 128, 6), switch(100, 6, 32, 9),
              switch(130, 9, 0, 0)]
    with recorded(*events) as trace:
        found = task_states(trace)
        row = {p: (r, s, state) for p, r, s, state in zip(*(found[n].tolist() for n in ("pid", "runnable", "sleep", "state")),
                                                          strict=True)}
        assert row[5] == (0, 30, "sleep")
        assert row[6] == (0, 0, "ended")


def test_a_wakeup_that_follows_sleep_at_once():
    events = [switch(90, 9, 0, 5), switch(100, 5, 1, 9), waking(100, 5), switch(144, 9, 0, 5)]
    with recorded(*events) as trace:
        found = wakeup_latency(trace)
        assert [found.worst[n].tolist() for n in ("pid", "latency")] == [[5], [44]]
        assert found.running == found.open.num_rows == 0
        states = task_states(trace)
        assert states["runnable"][states["pid"].tolist().index(5)] == 44


def test_a_section_that_follows_another_at_once():
    events = [(100, "irq_disable", {}), (110, "irq_enable", {}), (110, "irq_disable", {}), (115, "irq_enable", {})]
    with recorded(*events) as trace:
        found = critical_sections(trace, by="cpu")
        assert [found.table[n].tolist() for n in ("count", "total")] == [[2], [15]]
        assert found.repeated == found.unbegun == found.open.num_rows == 0


# ---- the order itself ----


@st.composite
def recordings(draw):
    made, ts = Recorder(KINDS, abi=make_abi(subbuf_size=512)), 1000
    for _ in range(draw(st.integers(0, 80))):
        ts += draw(st.integers(0, 1))
        made.add_fields(ts, draw(st.integers(0, 2)), draw(st.sampled_from(NAMES)), {"common_pid": draw(st.integers(0, 3))})
    return made.build()


def stepped(trace, size):
    """(place, event, ts) of all records of NAMES, step by step; each step's sorted."""
    names = [name for name in NAMES if name in trace]
    for step in trace.iterate(names, [ORDER, "common_ts"], step_size=size):
        yield sorted((place, name.split(":")[-1], ts) for name, table in step.items()
                     for place, ts in zip(table[ORDER].tolist(), table["common_ts"].tolist(), strict=True))


@given(st.lists(recordings(), min_size=1, max_size=3), st.sampled_from([1, 100, "1 MB"]))
def test_rows_know_their_places_among_those_of_all_events(files, size):
    with ftbuf.open(files if len(files) > 1 else files[0]) as trace:
        found = [row for step in stepped(trace, size) for row in step]
        records = list(trace.records(list(NAMES)))
        assert [place for place, *_ in found] == list(range(len(records)))
        assert [row[1:] for row in found] == [(r.name, r.ts) for r in records]


def test_many_records_of_one_kind_and_then_of_others():
    made = Recorder(KINDS)
    for i in range(3000):
        made.add_fields(1000 + i, 0, "sys_exit" if i % 1000 > 900 and i % 3 else "sys_enter", {"common_pid": i})
    with made.open() as trace:
        found = [row for step in stepped(trace, "64 MB") for row in step]
        assert [place for place, *_ in found] == list(range(3000))
        assert [ts for *_, ts in found] == list(range(1000, 4000))


def test_records_that_are_too_short_leave_their_places_empty():
    made = Recorder(KINDS)
    for i in range(9):
        made.add_fields(1000 + i, 0, "sys_enter", {"common_pid": i})
        if i % 3 == 1:
            made._pages[0].data(0, event(made.formats["sys_enter"], made.abi)[:16])
    with made.open(errors="skip") as trace:
        found = [row for step in stepped(trace, "64 MB") for row in step]
        assert [(place, ts) for place, _, ts in found] == list(zip([0, 1, 3, 4, 5, 7, 8, 9, 11], range(1000, 1009), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_it_is_no_column_of_a_table(name):
    with recorded(call(1, "sys_enter")) as trace:
        assert ORDER not in trace[name].columns
        assert trace[name].table([ORDER]).column_names == [ORDER]
