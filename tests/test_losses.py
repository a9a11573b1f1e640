"""Counts, sizes and losses of a recording, and its events over time: beside a slow reference."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import numpy as np
import pytest
from corpus_data import ROOT, corpus_cases
from filebuilder import BufferSpec, TraceDat, write_tracefs
from hypothesis import given
from hypothesis import strategies as st
from pagebuilder import Page, event, format_text, make_abi, make_format
from recorder import Recorder

import ftbuf
from ftbuf import _core
from ftbuf.analysis.census import take_census
from ftbuf.analysis.loss import losses, lost_rates, rates
from ftbuf.cli.main import main

SCHED = ROOT / "examples" / "sched.dat"


def size_in_buffer(record):
    n = len(record.payload)
    return n + (4 if 0 < n <= 112 else 8)


def check_losses(trace):
    found = losses(trace)
    events, sizes, times = Counter(), Counter(), defaultdict(list)
    key_of = {f"{trace[k].system}:{trace[k].name}": k for k in trace}
    names = trace.buffers
    for record in trace.records():
        system = record.format.system
        for key in ((names[record.buffer], record.cpu), key_of[f"{system}:{record.name}"] if system else record.name):
            events[key] += 1
            sizes[key] += size_in_buffer(record)
            times[key].append(record.ts)
    lost = trace.lost
    gaps = defaultdict(list)
    for i in range(lost.num_rows):
        buffer = lost["common_buffer"][i] if "common_buffer" in lost else names[0]
        gaps[buffer, int(lost["common_cpu"][i])].append(int(lost["count"][i]))
    check_cpus(found.cpus, events, sizes, times, gaps)
    kinds = {key for key in events if isinstance(key, str)}
    assert set(found.events["event"]) == kinds
    columns = ("event", "count", "bytes", "first", "last")
    for name, count, size, first, last in zip(*(found.events[c].tolist() for c in columns), strict=True):
        assert (count, size, first, last) == (events[name], sizes[name], min(times[name]), max(times[name]))
    assert found.events["bytes"].tolist() == sorted(found.events["bytes"].tolist(), reverse=True)
    check_total(found)


def check_cpus(cpus, events, sizes, times, gaps):
    assert {key for key in events if isinstance(key, tuple)} <= set(zip(cpus["buffer"], cpus["cpu"], strict=True))
    for i, key in enumerate(zip(cpus["buffer"].tolist(), cpus["cpu"].tolist(), strict=True)):
        row = {name: cpus[name][i] for name in cpus}
        own = gaps[key]
        assert (row["events"], row["bytes"]) == (events[key], sizes[key])
        assert (row["first"], row["last"]) == ((min(times[key]), max(times[key])) if times[key] else (-1, -1))
        assert (row["gaps"], row["unknown_gaps"]) == (len(own), own.count(-1))
        assert row["lost"] == sum(n for n in own if n > 0)
        happened = row["events"] + row["lost"]
        assert row["lost_share"] == row["lost"] / happened if happened else np.isnan(row["lost_share"])


def check_total(found):
    for name in ("events", "bytes", "lost", "gaps", "unknown_gaps"):
        assert found.total[name].tolist() == [found.cpus[name].sum()]
    assert found.events["count"].sum() == found.total["events"][0]
    assert found.events["bytes"].sum() == found.total["bytes"][0]


def check_rates(trace, bins, by):
    found = rates(trace, bins=bins, by=by)
    edges = sorted({*found["start"].tolist(), *found["end"].tolist()})
    want = Counter()
    for record in trace.records():
        at = int(np.clip(np.searchsorted(edges, record.ts, side="right") - 1, 0, len(edges) - 2))
        want[at, {None: None, "cpu": record.cpu, "event": record.name}[by]] += 1
    names = found["common_cpu" if by == "cpu" else "event"].tolist() if by else [None] * found.num_rows
    got = {(edges.index(start), name): n
           for start, name, n in zip(found["start"].tolist(), names, found["events"].tolist(), strict=True)}
    assert {key: n for key, n in got.items() if n} == dict(want)
    assert len(got) == found.num_rows
    if by != "event":
        counts = trace.lost["count"]
        assert found["lost"].sum() == counts[counts > 0].sum()
        assert found["gaps"].sum() == len(counts)
        assert found["unknown_gaps"].sum() == (counts < 0).sum()
    check_lost_rates(trace, bins)


def check_lost_rates(trace, bins):
    of_all, lost = rates(trace, bins=bins), lost_rates(trace, bins=bins)
    assert lost.column_names == ["start", "end", "lost", "gaps", "unknown_gaps"]
    assert all(lost[name].tolist() == of_all[name].tolist() for name in lost)


def test_a_real_recording():
    with ftbuf.open(SCHED) as trace:
        check_losses(trace)
        for by in (None, "cpu", "event"):
            check_rates(trace, 7, by)
        check_losses(trace.window(cpus=[1], where="sched_switch: prev_pid != 0"))


@pytest.mark.parametrize("name", ["d61-overwrite", "s390x-lost-consumer", "mips32be-graph", "k612-snapshot"])
def test_recordings_of_many_machines(recordings, name):
    with ftbuf.open(recordings[name].path) as trace:
        check_losses(trace)
        check_rates(trace, 5, "cpu")


def test_several_files_count_an_event_once():
    with ftbuf.open([SCHED, SCHED]) as both, ftbuf.open(SCHED) as one:
        two, single = losses(both), losses(one)
        assert two.total["events"][0] == 2 * single.total["events"][0]
        order = single.events["event"].tolist()
        assert two.events["event"].tolist() == order
        assert (two.events["count"] == 2 * single.events["count"]).all()
        assert two.cpus["buffer"].tolist() != single.cpus["buffer"].tolist()
        twice, once = rates(both, bins=4, by="event"), rates(one, bins=4, by="event")
        assert sorted(twice["events"].tolist()) == sorted(2 * n for n in once["events"].tolist())


@st.composite
def recordings_with_gaps(draw):
    made, ts = Recorder(abi=make_abi(subbuf_size=256)), 1000
    for _ in range(draw(st.integers(0, 40))):
        ts += draw(st.integers(0, 1000))
        cpu = draw(st.integers(0, 2))
        if draw(st.booleans()):
            made.lose(cpu, draw(st.none() | st.integers(1, 99)))
        made.add(ts, cpu, draw(st.sampled_from(["function", "sched_waking", "sched_switch"])), pid=1)
    return made.build()


@given(recordings_with_gaps(), st.integers(1, 9), st.sampled_from([None, "cpu", "event"]))
def test_any_recording(data, bins, by):
    with ftbuf.open(data) as trace:
        check_losses(trace)
        check_rates(trace, bins, by)


def test_stretches_have_the_width_asked_for():
    made = Recorder()
    for ts in (1000, 1010, 1055):
        made.add(ts, 0, "function", ip=1)
    with made.open() as trace:
        found = rates(trace, width=20)
        assert found["start"].tolist() == [1000, 1020, 1040]
        assert found["end"].tolist() == [1020, 1040, 1060]
        assert found["events"].tolist() == [2, 0, 1]
        assert found["per_second"].tolist() == [1e8, 0, 5e7]
        for wrong in ({"bins": 0}, {"width": 0}, {"width": -1}, {"by": "pid"}):
            with pytest.raises(ValueError):
                rates(trace, **wrong)
    for ts in (0, 1 << 62):
        made.add(ts, 1, "function", ip=1)
    with made.open() as trace, pytest.raises(ValueError, match="more than"):
        rates(trace, width=1)


def test_times_at_the_ends_of_the_world():
    """Bins up to the largest time there is, and steps back."""
    abi, top = make_abi(), (1 << 63) - 1
    fmt = make_format("probe", 5, ["u64 n"])
    pages = Page(abi, 5).data(0, event(fmt, abi)).finish() + Page(abi, top).data(0, event(fmt, abi)).finish()
    with ftbuf.open(_in_memory(abi, fmt, {0: pages, 1: Page(abi, top - 1).data(0, event(fmt, abi)).finish()})) as trace:
        found = rates(trace, bins=10)
        assert found["events"].tolist() == [1, *[0] * 8, 2]
        assert losses(trace).total["last"].tolist() == [top]


def _in_memory(abi, fmt, pages):
    return TraceDat(abi, formats={fmt.system: [format_text(fmt)]}, buffers=[BufferSpec(pages=pages)]).build().data


def test_records_without_a_format_are_counted(tmp_path):
    abi = make_abi()
    fmt, other = make_format("probe", 5, ["u64 n"]), make_format("stranger", 6, ["char text[200]"])
    pages = Page(abi, 100).data(0, event(fmt, abi)).data(1, event(other, abi)).finish()
    with ftbuf.open(write_tracefs(tmp_path, abi, [fmt], {0: pages})) as trace:
        found = losses(trace).events
        assert found["event"].tolist() == ["[unknown event]", "probe"]
        assert found["bytes"].tolist() == [208 + 8, 16 + 4]


def test_the_kernel_s_counters(recordings):
    with ftbuf.open(recordings["d61-overwrite"].path) as trace:
        found = losses(trace)
        assert found.total["overrun"].tolist() == found.total["lost"].tolist() == [3814]
        assert found.total["entries"].tolist() == found.total["events"].tolist()
    with Recorder().open() as trace:
        assert losses(trace).total["overrun"].tolist() == [-1]


def test_a_clock_that_does_not_count_ns_has_no_rates(tmp_path):
    abi, fmt = make_abi(), make_format("probe", 5, ["u64 n"])
    pages = Page(abi, 100).data(0, event(fmt, abi)).data(7, event(fmt, abi)).finish()
    clock = {"trace_clock": b"local [counter]\n"}
    with ftbuf.open(write_tracefs(tmp_path, abi, [fmt], {0: pages}, files=clock)) as trace:
        assert np.isnan(losses(trace).cpus["events_per_second"]).all()
        assert np.isnan(losses(trace).total["events_per_second"]).all()
        assert np.isnan(rates(trace, bins=2)["per_second"]).all()


def test_a_census_is_taken_once():
    with Recorder().open() as trace:
        records, _, _ = trace.reader(_core.Record, lambda _: None)
        with pytest.raises(ValueError):
            _core.Census(records, (0, 0, 5, False))
        census = _core.Census(records)
        census.run()
        with pytest.raises(ValueError):
            census.run()
        with pytest.raises(ValueError, match="too many"):
            take_census(trace, (0, 1, 1 << 30, True))


def test_damage_is_told():
    made = Recorder()
    made.add(1000, 0, "function", ip=1)
    data = bytearray(made.build())
    at = data.rindex((1000).to_bytes(8, "little"))
    data[at + 8 : at + 12] = (1 << 20).to_bytes(4, "little")
    with ftbuf.open(bytes(data)) as trace, pytest.raises(ftbuf.DamageError):
        losses(trace)
    with ftbuf.open(bytes(data), errors="skip") as trace:
        assert losses(trace).total["events"].tolist() == [0]


@pytest.mark.corpus
@pytest.mark.parametrize("case", [c for c in corpus_cases() if "lost" in c.name or "instances" in c.name or "gaps" in c.name],
                         ids=lambda c: c.name)
def test_the_corpus(case, corpus_layout):
    where = corpus_layout(case)
    with ftbuf.open(next(iter(sorted(where.glob("*.dat"))), where), errors="skip") as trace:
        check_losses(trace)
        if len(trace.buffers) < 2:
            check_rates(trace, 11, "cpu")


# ---- the command ----


def test_the_command(recordings, capsys):
    path = str(recordings["s390x-lost-consumer"].path)
    assert main(["loss", path, "--bins", "3", "--by", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:4] == ["buffer", "CPU", "events", "bytes"]
    assert any(line.split()[:1] == ["all"] for line in lines)
    assert any(line.startswith("function ") for line in lines)
    assert lines[-1].split()[1] in "01"
    assert [line for line in lines if line.endswith("gaps  of unknown size")]
    assert main(["loss", path, "--json", "--bins", "2"]) == 0
    parsed = json.loads(capsys.readouterr().out)
    assert parsed["total"][0]["events"] == sum(row["count"] for row in parsed["events"])
    assert len(parsed["rates"]) == 2
    assert main(["loss", path, "--cpu", "7"]) == 1  # nothing of that CPU is recorded
    assert "all" in capsys.readouterr().out


def test_what_the_kernel_counts_besides_is_said(tmp_path, capsys):
    abi, fmt = make_abi(), make_format("probe", 5, ["u64 n"])
    stats = {"per_cpu/cpu0/stats": b"entries: 1\noverrun: 5\ncommit overrun: 0\nbytes: 20\ndropped events: 9\nread events: 0\n"}
    pages = Page(abi, 100).data(0, event(fmt, abi)).finish(missed=True)
    path = write_tracefs(tmp_path, abi, [fmt], {0: pages}, files=stats)
    assert main(["loss", str(path)]) == 0
    out = capsys.readouterr().out
    assert "overwritten by the kernel's count: 5, up to 5 of them in gaps of unknown size" in out
    assert "dropped because the buffer was full: 9, of which records have no mark" in out
