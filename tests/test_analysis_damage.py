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
