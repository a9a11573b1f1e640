"""Analyses of damaged recordings: a result or an error of ours, soon."""

from __future__ import annotations

import random

import pytest
from corpus_data import ROOT

import ftbuf
from ftbuf import analysis

EVERY = {
    "task_states": analysis.task_states, "cpu_busy": analysis.cpu_busy, "irq_time": analysis.irq_time,
    "syscalls": lambda trace: analysis.syscalls(trace, by="both"), "idle_residency": analysis.idle_residency,
    "frequency_residency": analysis.frequency_residency, "noise": analysis.noise, "losses": analysis.losses,
    "rates": lambda trace: analysis.rates(trace, bins=5, by="event"), "function_profile": analysis.function_profile,
    "call_tree": analysis.call_tree, "trace_stat": analysis.trace_stat,
}
WHOLE = (ROOT / "examples" / "sched.dat").read_bytes()


def damaged(seed):
    rng = random.Random(seed)
    data = bytearray(WHOLE)
    for _ in range(rng.choice([1, 10, 300])):
        at = rng.randrange(len(data) * rng.choice([0, 5, 9]) // 10, len(data))
        data[at] = rng.choice([0, 255, rng.randrange(256), data[at] ^ 1 << rng.randrange(8)])
    return bytes(data)


@pytest.mark.parametrize("seed", range(40))
def test_damage_is_survived(seed):
    try:
        trace = ftbuf.open(damaged(seed), errors="skip")
    except ftbuf.FtbufError:
        return
    with trace:
        for name, work in EVERY.items():
            try:
                work(trace)
            except ftbuf.FtbufError as error:
                assert str(error), name


# ---- formats ----


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The example, not compressed."""
    path = tmp_path_factory.mktemp("plain") / "plain.dat"
    ftbuf.convert(ROOT / "examples" / "sched.dat", path, version=6)
    return path.read_bytes()


def spoilt(data, *events):
    """The format of some events cannot be understood."""
    for event in events:
        head = b"name: %s\nID:" % event.encode()
        assert data.count(head) == 1
        at = data.index(b"offset:", data.index(head))
        data = data[:at] + b"\xffffset:" + data[at + 7:]
    return data


NEVER = ["hwlat", "osnoise", "timerlat", "funcgraph_exit", "func_repeats", "sched_wakeup_new"]


@pytest.mark.parametrize("name", [name for name in EVERY if name != "noise"])  # of which these events are all
def test_a_damaged_format_of_an_event_that_never_occurs_costs_nothing(plain, name):
    def outcome(data, errors):
        with ftbuf.open(data, errors=errors) as trace:
            try:
                return str(EVERY[name](trace))
            except ftbuf.EventNotFoundError as error:
                return str(error)

    with ftbuf.open(plain) as trace:
        never = [event for event in NEVER if event in trace and event not in trace.events]
    assert len(never) > 3
    assert outcome(spoilt(plain, *never), "skip") == outcome(plain, "skip")


def test_a_needed_event_whose_format_is_damaged_is_named(plain):
    with ftbuf.open(spoilt(plain, "sched_switch"), errors="skip") as trace, \
            pytest.raises(ftbuf.FormatError, match="format of sched:sched_switch"):
        analysis.task_states(trace)


def test_a_field_that_is_missing_is_said_with_its_event(plain):
    at = plain.index(b"field:long id;", plain.index(b"name: sys_enter\nID:"))
    data = plain[:at + 11] + b"ix" + plain[at + 13:]
    with ftbuf.open(data, errors="skip") as trace, pytest.raises(ftbuf.FtbufError, match="sys_enter"):
        analysis.syscalls(trace)
    data = plain.replace(b"field:pid_t next_pid", b"field:pid_t next_pit", 1)
    with ftbuf.open(data, errors="skip") as trace, pytest.raises(ftbuf.ColumnNotFoundError, match="column of sched_switch"):
        analysis.task_states(trace)


def test_system_calls_whose_format_is_damaged(plain):
    with ftbuf.open(spoilt(plain, "sys_enter"), errors="skip") as trace, \
            pytest.raises(ftbuf.FormatError, match="format of raw_syscalls:sys_enter"):
        analysis.syscalls(trace)


def test_noise_of_what_is_left(plain):
    with ftbuf.open(spoilt(plain, "hwlat", "timerlat"), errors="warn") as trace, pytest.warns(ftbuf.DamageWarning) as said:
        assert analysis.noise(trace).osnoise.num_rows == 0
    assert len(said) == 2
