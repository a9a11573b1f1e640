"""Analyses of damaged recordings: a result or a named error, never anything else."""

from __future__ import annotations

import random

import pytest
from corpus_data import ROOT

import ftbuf
from ftbuf.analysis import critical_sections, wakeup_latency
from ftbuf.errors import FtbufError

EXAMPLE = ROOT / "examples" / "sched.dat"


def damaged(seed: int) -> bytes:
    """The example with some bytes changed, most of them in its pages."""
    rng, data = random.Random(seed), bytearray(EXAMPLE.read_bytes())
    first = rng.choice([0, len(data) // 2, len(data) * 3 // 4])
    for _ in range(rng.choice([1, 5, 50, 500])):
        data[rng.randrange(first, len(data))] = rng.choice([0, 0xFF, rng.randrange(256)])
    return bytes(data)


@pytest.mark.parametrize("seed", range(60))
def test_damage(seed):
    try:
        trace = ftbuf.open(damaged(seed), errors="skip")
    except FtbufError:
        return
    for by in ("task", "comm", "cpu", "prio"):
        try:
            found = wakeup_latency(trace, by=by)
        except FtbufError:
            continue
        table = found.table
        assert (table["count"] >= 0).all() and (table["min"] <= table["max"]).all()
        assert found.worst.num_rows <= 20
    for kind in ("irq", "preempt"):
        try:
            critical_sections(trace, kind)
        except FtbufError:
            continue
