"""Sections with interrupts or preemption off, against a loop over the records."""

from __future__ import annotations

import json
from itertools import accumulate, count, cycle

import numpy as np
import pytest
from analysis_reference import is_lost, off_sections
from corpus_data import raw_cases
from filebuilder import BufferSpec, TraceDat
from hypothesis import given
from hypothesis import strategies as st
from pagebuilder import ABIS, event, format_text, make_format, pages_of

import ftbuf
from ftbuf import _core
from ftbuf.analysis import critical, critical_sections
from ftbuf.analysis.critical import EVENTS, OFF, SECTION
from ftbuf.cli.main import main

ABI = ABIS["le64"]
FORMATS = {name: make_format(name, 50 + i, ["s32 caller_offs", "s32 parent_offs"], print_fmt='"%d", REC->caller_offs')
           for i, name in enumerate(("irq_disable", "irq_enable", "preempt_disable", "preempt_enable"))}
KALLSYMS = b"ffffffff81000000 T _stext\nffffffff81000100 T lock\nffffffff81000200 T other\nffffffff81000300 T _etext\n"


def as_rows(step, off):
    rows = [(order, ts, cpu, pid, caller) for order, is_off, ts, cpu, pid, caller in step if is_off == off]
    columns = zip(*rows, strict=True) if rows else [()] * 5
    return [np.array(column, kind) for column, kind in zip(columns, ("i8", "i8", "u2", "i4", "i8"), strict=True)]


def paired(steps):
    core, found = _core.Sections(), []
    for step in steps:
        s = np.frombuffer(core.step(as_rows(step, True), as_rows(step, False)), SECTION)
        found += zip(*(s[n].tolist() for n in ("cpu", "began", "ended", "pid", "caller", "ended_by")), strict=True)
    off = np.frombuffer(core.open(), OFF)
    still = {cpu: int(off["since"][cpu]) for cpu in np.flatnonzero(off["is_open"]).tolist()}
    return sorted(found), still, core.repeated, core.unbegun


@given(st.lists(st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 3), st.integers(-9, 9)), max_size=12),
                max_size=5))
def test_any_sequence_in_any_steps(steps):
    order, time = count(), accumulate(cycle([0, 0, 1, 0, 1, 1]))  # some share a time
    steps = [[(next(order), off, next(time), cpu, pid, caller) for off, cpu, pid, caller in step] for step in steps]
    rows = [row for step in steps for row in step]
    found, begun, repeated, unbegun = off_sections(row[1:] for row in rows)
    expected = (sorted((s.cpu, s.began, s.ended, s.pid, s.caller, s.ended_by) for s in found),
                {cpu: since for cpu, (since, _, _) in begun.items()}, repeated, unbegun)
    assert paired(steps) == paired([rows]) == expected


def built(*rows, cpus=1):
    """A file of (event, caller's distance) records, 1 us apart, CPU after CPU in turn."""
    pages = {cpu: pages_of(ABI, *(event(FORMATS[name], ABI, common_pid=7, caller_offs=at) for name, at in rows[cpu::cpus]),
                           ts=1000 + cpu, step=1000) for cpu in range(cpus)}
    return TraceDat(ABI, formats={"preemptirq": [format_text(f) for f in FORMATS.values()]}, kallsyms=KALLSYMS,
                    buffers=[BufferSpec(pages=pages)]).build()


def recorded(*rows, cpus=1):
    return ftbuf.open(built(*rows, cpus=cpus).data)


def test_callers_have_names_and_sites_of_one_function_are_one():
    with recorded(("irq_disable", 0x110), ("irq_enable", 0x210), ("irq_disable", 0x120), ("irq_enable", 0x210),
                  ("irq_disable", 0x210)) as trace:
        found = critical_sections(trace)
        assert found.table["caller"].tolist() == ["lock"]
        assert found.table["count"].tolist() == [2]
        assert found.table["total"].tolist() == [2000]
        assert found.worst["ended_by"].tolist() == ["other", "other"]
        assert (found.open["caller"].tolist(), found.open["lasted"].tolist()) == (["other"], [0])
        assert found.histogram["count"].sum() == 2
        preempt = critical_sections(trace, "preempt", by="cpu")
        assert preempt.table.num_rows == preempt.histogram.num_rows == preempt.worst.num_rows == 0


def test_sections_of_cpus_are_their_own():
    with recorded(("preempt_disable", 0x110), ("preempt_disable", 0x210), ("preempt_enable", 0x110),
                  ("preempt_enable", 0x210), cpus=2) as trace:
        found = critical_sections(trace, "preempt", by="cpu")
        assert found.table["cpu"].tolist() == [0, 1]
        assert found.table["max"].tolist() == [1000, 1000]
        assert found.repeated == found.unbegun == 0


def test_what_is_wrong_is_told():
    with recorded(("irq_disable", 1)) as trace:
        with pytest.raises(ValueError, match="kind is one of"):
            critical_sections(trace, "both")
        with pytest.raises(ValueError, match="by is"):
            critical_sections(trace, by="task")
    half = TraceDat(ABI, formats={"preemptirq": [format_text(FORMATS["irq_disable"])]}, buffers=[BufferSpec()]).build()
    with ftbuf.open(half.data) as trace, pytest.raises(ftbuf.EventNotFoundError, match="irq_enable"):
        critical_sections(trace)


def check(trace, kind):
    names = EVENTS[kind]
    lost = trace.lost
    gaps = list(zip(*(lost[n].tolist() for n in ("common_cpu", "before", "after")), strict=True))
    found, begun, repeated, unbegun = off_sections((r.name.endswith("disable"), r.ts, r.cpu, r.pid, r["caller_offs"])
                                                   for r in trace.records(list(names)))
    whole = [s for s in found if not is_lost([(b, a) for cpu, b, a in gaps if cpu == s.cpu], s.began, s.ended)]
    result = critical_sections(trace, kind, by="cpu", worst=1 << 20)
    assert (result.repeated, result.unbegun) == (repeated, unbegun)
    assert dict(zip(result.open["cpu"].tolist(), result.open["began"].tolist(), strict=True)) == {
        cpu: since for cpu, (since, _, _) in begun.items()}
    table = result.table
    for i, cpu in enumerate(table["cpu"].tolist()):
        times = [s.ended - s.began for s in whole if s.cpu == cpu]
        assert [table[n][i] for n in ("count", "min", "max", "total")] == [
            len(times), min(times, default=0), max(times, default=0), sum(times)]
        assert table["lost"][i] == sum(s.cpu == cpu for s in found) - len(times)
    listed = zip(*(result.worst[n].tolist() for n in ("cpu", "began", "ended", "pid")), strict=True)
    assert sorted(listed) == sorted((s.cpu, s.began, s.ended, s.pid) for s in whole)
    by_caller = critical_sections(trace, kind)
    assert by_caller.table["count"].sum() == len(whole) == by_caller.histogram["count"].sum()
    return result


@pytest.mark.corpus
@pytest.mark.parametrize("case", [c for c in raw_cases() if c.name.startswith("k612-irqsoff-events")], ids=lambda c: c.name)
@pytest.mark.parametrize("kind", EVENTS)
def test_against_a_loop_over_the_records(case, kind, corpus_layout, monkeypatch):
    with ftbuf.open(corpus_layout(case)) as trace:
        for view in (trace, trace.snapshot):
            whole = check(view, kind)
            monkeypatch.setattr(critical, "STEP", 512)
            stepped = check(view, kind)
            assert whole.table.to_pandas().equals(stepped.table.to_pandas())


def test_the_command(tmp_path, capsys):
    path = tmp_path / "trace.dat"
    rows = [("irq_disable", 0x110), ("irq_enable", 0x210), ("irq_enable", 0x210), ("irq_disable", 0x210), ("irq_disable", 0x210)]
    path.write_bytes(built(*rows).data)
    assert main(["latency", "--of", "irq", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[2].split()[:4] == ["lock", "1", "1.000", "1.000"]
    assert "Not over at the end:" in out
    assert "Left out: 1 begins inside of a section, 1 ends without a begin" in out
    assert main(["latency", "--of", "irq", "--by", "cpu", "--json", str(path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["table"][0]["cpu"], found["histogram"][0]["low"], found["histogram"][0]["high"]) == (0, 512, 1023)
    assert main(["latency", "--of", "irq", "--versus", str(path), str(path)]) == 0
    assert "avg b" in capsys.readouterr().out
