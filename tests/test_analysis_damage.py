"""Analyses of damaged recordings: a result or a named error, never anything else."""

from __future__ import annotations

import random
import re

import pytest
from corpus_data import ROOT
from filebuilder import BufferSpec, TraceDat
from pagebuilder import ABIS, event, format_text, make_format, pages_of

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


@pytest.mark.parametrize("name", ["pid", "next_pid", "prev_state", "next_prio", "next_comm", "success"])
@pytest.mark.parametrize("declared", ["char {}[8]", "int {}[2]", "__data_loc char[] {}", "u8 {}", "u64 {}"])
def test_formats_that_lie(name, declared):
    """A field that the analysis counts on is of another kind."""
    abi = ABIS["le64"]
    fields = {"switch": ["pid_t prev_pid", "long prev_state", "char next_comm[16]", "pid_t next_pid", "int next_prio"],
              "waking": ["pid_t pid", "int success"]}
    changed = {event: [declared.format(name) if re.split(r"[ \[]", f)[1] == name else f for f in own]
               for event, own in fields.items()}
    formats = [make_format(f"sched_{event}", 40 + i, own) for i, (event, own) in enumerate(changed.items())]
    pages = pages_of(abi, *(event(f, abi) for f in formats))
    built = TraceDat(abi, formats={"sched": [format_text(f) for f in formats]}, buffers=[BufferSpec(pages={0: pages})])
    with ftbuf.open(built.build().data, errors="skip") as trace:
        try:
            wakeup_latency(trace)
        except FtbufError as error:
            assert name in str(error) and "expected to be a number" in str(error)
