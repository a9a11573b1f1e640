"""Wakeup latency against a loop over the records, and against trace-cmd."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from decimal import Decimal
from itertools import accumulate, cycle
from types import SimpleNamespace

import numpy as np
import pytest
from analysis_reference import IN, OUT, SLEPT, W, scheduling, waits
from corpus_data import ROOT, raw_cases
from filebuilder import BufferSpec, TraceDat
from hypothesis import given
from hypothesis import strategies as st
from pagebuilder import ABIS, event, format_text, make_format, pages_of

import ftbuf
from ftbuf import _core
from ftbuf.analysis import wakeup, wakeup_latency
from ftbuf.analysis.sched import SWITCH, WAKEUP, WAKING, sleep_mask, task_states
from ftbuf.analysis.tables import table
from ftbuf.analysis.wakeupmatch import Matcher
from ftbuf.cli.latencytext import cyclictest_lines
from ftbuf.cli.main import main
from ftbuf.cli.tables import Clock

EXAMPLE = ROOT / "examples" / "sched.dat"
WITH_SCHED = re.compile("sched|mixed|overwrite|gaps|lost|irq|clock-(counter|uptime|x86)|allevents")
NOBODY = 0  # pid of the idle task


def as_tables(rows):
    """Wakeups and switches; a task that only leaves (comes) is followed by (comes after) the idle task."""
    woken = [(at, ts, cpu, pid, number, other) for at, (kind, pid, ts, cpu, number, other) in enumerate(rows) if kind == W]
    runs = [(at, ts, cpu, pid if kind != IN else NOBODY, int(kind == SLEPT), pid if kind == IN else NOBODY, number)
            for at, (kind, pid, ts, cpu, number, _) in enumerate(rows) if kind != W]
    names = [other if kind == IN else 0 for kind, *_, other in rows if kind != W]
    return (as_table(woken, common_order="i8", common_ts="i8", common_cpu="u2", pid="i4", target_cpu="i4", common_pid="i4"),
            as_table(runs, common_order="i8", common_ts="i8", common_cpu="u2", prev_pid="i4", prev_state="i8", next_pid="i4",
                     next_prio="i4"),
            np.array(names, np.int32))


def as_table(rows, **types):
    columns = zip(*rows, strict=True) if rows else [()] * len(types)
    return table({name: np.array(c, t) for (name, t), c in zip(types.items(), columns, strict=True)})


def matched(steps):
    """What the matcher finds, in order of time; rows still waiting; wakeups of running tasks."""
    matcher, found = Matcher(1), []
    for step in steps:
        woken, runs, names = as_tables(step)
        waits = matcher.match([woken], runs, names)
        pids = matcher.pids(waits["task"]).tolist()
        found += zip(pids, *(waits[n].tolist() for n in (
            "name", "woken", "ran", "cpu", "prio", "waker", "waker_cpu", "from_cpu", "repeated")),
            (waits["broken"] != 0).tolist(), strict=True)
    waiting = matcher.waiting()
    rows = zip(matcher.pids(waiting["task"]).tolist(), waiting["woken"].tolist(), strict=True)
    return sorted(found, key=lambda f: (f[3], f[0])), sorted(rows), matcher.running


def expected(rows):
    found, waiting, running = waits(rows)
    listed = [(w.pid, w.comm, w.woken, w.ran, w.cpu, w.prio, w.waker, w.waker_cpu, w.from_cpu, w.repeated, w.is_lost)
              for w in found]
    return sorted(listed, key=lambda f: (f[3], f[0])), sorted((p, w[2]) for p, w in waiting.items()), running


@given(st.lists(st.lists(st.tuples(st.sampled_from([W, W, OUT, SLEPT, IN]), st.integers(1, 3)), max_size=12), max_size=5))
def test_any_sequence_in_any_steps(steps):
    time = accumulate(cycle([0, 0, 1, 0, 1, 1]))  # some share a time
    steps = [[(kind, pid, next(time), pid % 2, 7, 9) for kind, pid in step] for step in steps]
    rows = [row for step in steps for row in step]
    assert matched(steps) == matched([rows]) == expected(rows)


CASES = {
    "woken, then run": ([(W, 1), (IN, 4)], [(1, 4)]),
    "the first of several wakeups counts": ([(SLEPT, 0), (W, 1), (W, 2), (IN, 4)], [(1, 4)]),
    "a wakeup of a running task ends no wait": ([(IN, 0), (W, 1), (OUT, 2), (IN, 3)], []),
    "nor does it count when a real one follows": ([(IN, 0), (W, 1), (SLEPT, 2), (W, 5), (IN, 6)], [(5, 6)]),
    "woken on its way to sleep": ([(IN, 0), (W, 1), (W, 2), (SLEPT, 3), (IN, 6)], [(2, 6)]),
    "preempted and back": ([(IN, 0), (OUT, 1), (IN, 2)], []),
    "preempted before it slept, and woken": ([(IN, 0), (OUT, 1), (W, 2), (IN, 3)], [(2, 3)]),
    "no switch ever came": ([(SLEPT, 0), (W, 1)], []),
}


@pytest.mark.parametrize("name", CASES)
def test_rules(name):
    rows, pairs = CASES[name]
    found, waiting, _ = matched([[(kind, 5, ts, 0, 0, 0) for kind, ts in rows]])
    assert [(f[2], f[3]) for f in found] == pairs
    assert waiting == ([(5, 1)] if name == "no switch ever came" else [])


# ---- recordings ----


def check(trace, event=None, **options):
    """The tables of both groupings against the loop over records."""
    result = wakeup_latency(trace, event=event, worst=1 << 20, **options)
    names = wakeup.chosen_events(trace, event)
    letters = task_states(trace[SWITCH].format)
    lost = trace.lost
    gaps = list(zip(lost["before"].tolist(), lost["after"].tolist(), strict=True))
    found, waiting, running = waits(scheduling(trace, names, letters), gaps)
    by_task = defaultdict(list)
    for w in found:
        by_task[w.pid].append(w)
    table = result.table
    assert sorted(table["pid"].tolist()) == sorted(by_task)
    for i, pid in enumerate(table["pid"].tolist()):
        whole = [w for w in by_task[pid] if not w.is_lost]
        times = [max(w.ran - w.woken, 0) for w in whole]
        got = {name: table[name][i].item() for name in table if name not in ("pid", "comm", "prio")}
        assert (got["count"], got["lost"]) == (len(whole), len(by_task[pid]) - len(whole))
        if times:
            assert (got["min"], got["last"], got["max"]) == (min(times), times[-1], max(times))
            assert got["mean"] == pytest.approx(sum(times) / len(times))
            exact = sorted(times)[math.ceil(len(times) * 0.9) - 1]
            assert exact <= got["p90"] <= exact * (1 + 1 / 128)
        assert got["repeated"] == sum(w.repeated for w in whole)
        assert got["migrated"] == sum(w.from_cpu not in (-1, w.cpu) for w in whole)
    histogram = result.histogram
    assert histogram.column_names == ["pid", "low", "high", "count"]
    for pid in sorted(by_task):
        times = [max(w.ran - w.woken, 0) for w in by_task[pid] if not w.is_lost]
        own = [histogram[n][histogram["pid"] == pid].tolist() for n in ("low", "high", "count")]
        assert [(low, n) for low, high, n in zip(*own, strict=True) if n != sum(low <= t <= high for t in times)] == []
        assert sum(own[2]) == len(times)
    listed = sorted((max(w.ran - w.woken, 0), w.pid, w.comm, w.woken, w.cpu, w.waker) for w in found if not w.is_lost)
    worst = result.worst
    assert sorted(zip(*(worst[n].tolist() for n in ("latency", "pid", "comm", "woken_at", "cpu", "waker_pid")),
                      strict=True)) == listed
    opened = sorted(zip(result.open["pid"].tolist(), result.open["woken_at"].tolist(), strict=True))
    assert opened == sorted((pid, w[2]) for pid, w in waiting.items())
    assert result.running == running
    by_comm = wakeup_latency(trace, event=event, by="comm", **options).table
    counts = Counter(w.comm for w in found if not w.is_lost)
    assert {name: n for name, n in zip(by_comm["comm"].tolist(), by_comm["count"].tolist(), strict=True) if n} == counts
    by_cpu = wakeup_latency(trace, event=event, by="cpu", **options).table
    assert by_cpu["count"].sum() == len(listed)
    assert by_cpu["cpu"].tolist() == sorted({w.cpu for w in found})
    return result


def has_events(trace):
    return SWITCH in trace and any(name in trace and len(trace[name]) for name in (WAKING, WAKEUP))


def test_recordings(recording):
    with ftbuf.open(recording.path, errors="skip") as trace:
        if not has_events(trace):
            pytest.skip("no wakeups")
        for event in (None, *(name for name in (WAKEUP,) if name in trace)):
            check(trace, event)


def test_the_example():
    with ftbuf.open(EXAMPLE) as trace:
        result = check(trace)
        assert result.event == WAKING
        assert result.table["count"].sum() > 30
        assert {"ftbwork", "rcu_preempt"} <= set(result.table["comm"])


@pytest.mark.corpus
@pytest.mark.parametrize("case", [c for c in raw_cases() if WITH_SCHED.search(c.name)], ids=lambda c: c.name)
def test_sched_cases(case, corpus_layout, monkeypatch):
    with ftbuf.open(corpus_layout(case), errors="skip") as trace:
        if not has_events(trace):
            pytest.skip("no wakeups")
        for step in (wakeup.STEP, 512):
            monkeypatch.setattr(wakeup, "STEP", step)
            for event in (None, *(name for name in (WAKEUP,) if name in trace)):
                check(trace, event)


def test_small_steps_change_nothing(monkeypatch):
    with ftbuf.open(EXAMPLE) as trace:
        whole = wakeup_latency(trace)
        monkeypatch.setattr(wakeup, "STEP", 256)
        stepped = wakeup_latency(trace)
    for name in ("table", "worst", "open"):
        a, b = getattr(whole, name), getattr(stepped, name)
        assert a.column_names == b.column_names
        for column in a:
            np.testing.assert_array_equal(a[column], b[column])


def test_choices():
    with ftbuf.open(EXAMPLE) as trace:
        whole = wakeup_latency(trace, by="cpu", percentiles=[75])
        one = wakeup_latency(trace, by="cpu", cpus=[1], worst=3)
        assert "p75" in whole.table and "p50" not in whole.table
        assert one.table["cpu"].tolist() == [1]
        assert one.table["count"][0] == whole.table["count"][whole.table["cpu"] == 1][0]
        assert one.worst.num_rows == 3 and set(one.worst["cpu"].tolist()) == {1}
        assert wakeup_latency(trace, by="prio").table["count"].sum() == whole.table["count"].sum()
        with pytest.raises(ValueError, match="by is one of"):
            wakeup_latency(trace, by="colour")
        empty = wakeup_latency(trace.window(end=trace.start))
        assert empty.table.num_rows == empty.worst.num_rows == empty.open.num_rows == 0
        with pytest.raises(ftbuf.EventNotFoundError, match="needs the event nothing"):
            wakeup_latency(trace, event="nothing")


# ---- trace-cmd ----


def compare_with_trace_cmd(trace, path):
    """trace-cmd's profile (report -w) takes sched_wakeup and sched_wakeup_new, and counts as we do, but for two things.

    It also counts from a wakeup of a task that is running, and across gaps.
    """
    ftbuf.convert(trace, path, errors="skip")
    found = wakeup_latency(trace, event=WAKEUP)
    table, count = found.table, int(found.table["count"].sum())
    assert not table["lost"].any()
    text = subprocess.run(["trace-cmd", "report", "-w", str(path)], capture_output=True, check=True).stdout
    words = text.decode("utf-8", "replace")
    mean, most, least = (float(n) * 1000 for n in re.findall(
        r"(?:wakeup latency|Maximum Latency|Minimum Latency): ([\d.]+)", words)[:3])
    theirs = words.count("Latency: ") - words.count("imum Latency")
    assert count <= theirs <= count + found.running
    if theirs == count:
        assert mean == pytest.approx((table["mean"] * table["count"]).sum() / count, abs=1)
        assert (round(most), round(least)) == (table["max"].max(), table["min"].min())


def test_what_trace_cmd_said(recordings):
    """The lines with latencies of ``trace-cmd report -w`` (3.1.6) of a recording, every one of them."""
    text = (ROOT / "tests" / "data" / "trace-cmd" / "k612-sched.report-w.txt").read_text()
    theirs = [Decimal(n) * 1000 for n in re.findall(r"\] Latency: ([\d.]+) usecs", text)]
    with ftbuf.open(recordings["k612-sched"].path) as trace:
        found = wakeup_latency(trace, event=WAKEUP, worst=len(theirs) + 1)
    assert sorted(found.worst["latency"].tolist()) == sorted(map(int, theirs)) and len(theirs) == 114
    mean, most, least = (float(n) for n in re.findall(r"^(?:Average wakeup|Maximum|Minimum) [Ll]atency: ([\d.]+)", text, re.M)[:3])
    total = {name: int(found.total[name][0]) for name in ("mean", "max", "min")}
    assert [round(1000 * n) for n in (mean, most, least)] == [total["mean"], total["max"], total["min"]]
    at = re.search(r"Maximum Latency: .* at timestamp: ([\d.]+)", text)[1]
    assert f"{found.worst['ran_at'][0] / 1e9:.6f}" == at


has_trace_cmd = pytest.mark.skipif(shutil.which("trace-cmd") is None, reason="needs trace-cmd")


@has_trace_cmd
def test_against_trace_cmd(recordings, tmp_path):
    with ftbuf.open(recordings["k612-sched"].path) as trace:
        compare_with_trace_cmd(trace, tmp_path / "trace.dat")


@has_trace_cmd
@pytest.mark.corpus
@pytest.mark.parametrize("case", [c for c in raw_cases() if b"sched_wakeup" in (c.read("set_event") or b"")],
                         ids=lambda c: c.name)
def test_cases_against_trace_cmd(case, corpus_layout, tmp_path):
    with ftbuf.open(corpus_layout(case), errors="skip") as trace:
        if WAKEUP not in trace or not len(trace[WAKEUP]):
            pytest.skip("no wakeups")
        compare_with_trace_cmd(trace, tmp_path / "trace.dat")


# ---- the command ----


def called(capsys, *arguments):
    status = main(["latency", *map(str, arguments)])
    return status, capsys.readouterr().out


def test_the_command(capsys):
    with ftbuf.open(EXAMPLE) as trace:
        result = wakeup_latency(trace)
    status, out = called(capsys, EXAMPLE)
    lines = out.splitlines()
    assert status == 0
    assert lines[1].split()[:8] == ["pid", "comm", "prio", "count", "min", "act", "avg", "max"]
    first = [str(result.table[n][0]) for n in ("pid", "comm", "prio", "count")]
    assert lines[2].split() [:5] == [*first, f"{result.table['min'][0] / 1000:.3f}"]
    status, out = called(capsys, EXAMPLE, "--json", "-n", "2", "--by", "cpu")
    found = json.loads(out)
    assert (status, found["by"], len(found["worst"])) == (0, "cpu", 2)
    assert sum(row["count"] for row in found["table"]) == result.table["count"].sum()
    status, out = called(capsys, EXAMPLE, "--json", "--cpu", "1", "--start", "+0.01")
    assert {row["cpu"] for row in json.loads(out)["worst"]} == {1}
    status, out = called(capsys, EXAMPLE, "--histogram", "-n", "0")
    title, *rows = out.split("How often, from and to in us:\n")[1].splitlines()
    assert title.split()[:3] == ["from", "to", "all"] and title.endswith("3 others")
    cells = [row.split() for row in rows]
    assert sum(int(row[2]) for row in cells) == result.table["count"].sum()
    assert all(int(row[2]) == sum(map(int, row[3:11])) for row in cells)
    assert max(len(row[11]) for row in cells) == 50
    status, out = called(capsys, EXAMPLE, "--histogram", "-n", "0", "--by", "cpu")
    title, *rows = out.split("How often, from and to in us:\n")[1].splitlines()
    assert title.split() == ["from", "to", "all", "cpu", "0", "cpu", "1"]
    assert [sum(int(row.split()[i]) for row in rows) for i in (3, 4)] == wakeup_of(EXAMPLE, "cpu")


def wakeup_of(path, by):
    with ftbuf.open(path) as trace:
        return wakeup_latency(trace, by=by).table["count"].tolist()


def test_two_recordings(capsys, recordings):
    status, out = called(capsys, EXAMPLE, "--versus", recordings["k612-sched"].path)
    assert status == 0
    assert out.splitlines()[1].split("  ")[0] == "comm"
    status, out = called(capsys, EXAMPLE, "--versus", EXAMPLE, "--json")
    assert all(row["count_a"] == row["count_b"] > 0 for row in json.loads(out)["table"])


def test_what_it_cannot_do(capsys, recordings):
    assert main(["latency", str(recordings["armhf-function"].path)]) == 1
    assert "needs the event" in capsys.readouterr().err


def test_nothing_to_tell(capsys):
    status, out = called(capsys, EXAMPLE, "--end", "1")
    assert (status, out.splitlines()[1:]) == (1, ["none: no switch to a task follows a record of sched:sched_waking"])


# ---- the core ----


def arrays(n=1, **values):
    types = {"order": "i8", "ts": "i8", "cpu": "u2", "task": "i4", "from_cpu": "i4", "waker": "i4"}
    return [np.full(n, values.get(name, 0), t) for name, t in types.items()]


def switches(n=1, **values):
    types = {"order": "i8", "ts": "i8", "cpu": "u2", "prev": "i4", "asleep": "u1", "next": "i4", "prio": "i4", "name": "i4"}
    return [np.full(n, values.get(name, 0), t) for name, t in types.items()]


@pytest.mark.parametrize("number", [-1, 1, 7, (1 << 31) - 1, -(1 << 31)])
def test_a_number_that_no_task_has(number):
    core = _core.Wakeups()
    assert len(core.step(1, arrays(task=number), switches(prev=number, next=number))) == 0
    assert len(core.open()) == core.running == 0


def test_arrays_that_do_not_fit():
    core = _core.Wakeups()
    for woken, runs in (([*arrays()[:5], np.zeros(2, "i4")], switches()), (arrays(), [*switches()[:7], np.zeros(1, "i8")])):
        with pytest.raises(ValueError, match="numbers of 4 bytes"):
            core.step(1, woken, runs)
    with pytest.raises(MemoryError):
        core.step((1 << 63) - 1, arrays(), switches())
    assert len(core.step(0, arrays(0), switches(0))) == 0


# ---- kernels ----

OLD = ('REC->prev_state & (1024-1) ? __print_flags(REC->prev_state & (1024-1), "|", { 1, "S"} , { 2, "D" }, { 4, "T" }, '
       '{ 8, "t" }, { 16, "Z" }, { 32, "X" }, { 64, "x" }, { 128, "K" }, { 256, "W" }, { 512, "P" }) : "R", '
       'REC->prev_state & 1024 ? "+" : ""')
NEW = ('(REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, "|", { 0x00000001, "S" }, { 0x00000002UL, "D" }, '
       '{ 0x00000010, "X" }, { 0x00000020, "Z" }, { 0x00000080, "I" }) : "R", REC->prev_state & 0x100 ? "+" : ""')


@pytest.mark.parametrize(("print_fmt", "asleep"), [(OLD, 0b1110001111), (NEW, 0b10000011), ('"no flags"', 0b11001111)])
def test_states_that_sleep_are_those_of_the_kernels_own_format(print_fmt, asleep):
    assert sleep_mask(make_format("sched_switch", 1, [], print_fmt=print_fmt)) == asleep


def test_an_old_kernels_wakeups():
    """sched_wakeup with success=0 woke nobody; a new task's first wakeup is an event of its own."""
    fields = ["char comm[16]", "pid_t pid", "int prio", "int success", "int target_cpu"]
    wakeup_, new = make_format("sched_wakeup", 70, fields), make_format("sched_wakeup_new", 71, fields)
    switch = make_format("sched_switch", 72, ["char prev_comm[16]", "pid_t prev_pid", "long prev_state", "char next_comm[16]",
                                              "pid_t next_pid", "int next_prio"], print_fmt=OLD)
    abi = ABIS["le64"]
    pages = pages_of(abi, event(wakeup_, abi, pid=5, success=0), event(wakeup_, abi, pid=5, success=1, target_cpu=3),
                     event(switch, abi, next_pid=5, next_prio=120, next_comm="five"),
                     event(switch, abi, prev_pid=5, prev_state=1024), event(new, abi, pid=6, success=1),
                     event(switch, abi, next_pid=6, next_prio=49, next_comm="six"), ts=1000, step=1000)
    built = TraceDat(abi, formats={"sched": [format_text(f) for f in (wakeup_, new, switch)]},
                     buffers=[BufferSpec(pages={0: pages})]).build()
    with ftbuf.open(built.data) as trace:
        found = check(trace)
        assert found.event == WAKEUP
        assert found.worst["woken_at"].tolist() == [2000, 5000]
        assert found.worst["from_cpu"].tolist() == [3, 0]
        assert dict(zip(found.table["comm"], found.table["prio"], strict=True)) == {"five": 120, "six": 49}


def test_the_shape_of_cyclictest(capsys):
    with ftbuf.open(EXAMPLE) as trace:
        by_task, by_cpu = (wakeup_latency(trace, by=by).table for by in ("task", "cpu"))
    shape = re.compile(r"T:([ \d]{2,}) \(([ \d]{5,})\) P:([ \d]{2,}) I:0 C:([ \d]{7,}) Min:([ \d]{7,}) Act:([ \d]{5,}) "
                       r"Avg:([ \d]{5,}) Max:([ \d]{8,})")
    for options, expected in ((["--cyclictest"], by_task), (["--cyclictest", "--by", "cpu"], by_cpu)):
        status, out = called(capsys, EXAMPLE, *options)
        lines = [tuple(map(int, shape.fullmatch(line).groups())) for line in out.splitlines()]
        assert status == 0 and len(lines) == expected.num_rows
        assert [line[3] for line in lines] == expected["count"].tolist()
        assert [line[7] for line in lines] == (expected["max"] // 1000).tolist()
    assert [line[0] for line in lines] == [0, 1]
    assert called(capsys, EXAMPLE, "--cyclictest", "--by", "comm")[0] == 2


def test_priorities_as_cyclictest_counts_them():
    found = wakeup_result([("pid", [5, 6, 7]), ("prio", [19, 120, -1])])
    assert [line.split("P:")[1][:2] for line in cyclictest_lines(found, Clock("us", str, str))] == ["80", " 0", " 0"]


def wakeup_result(columns):
    numbers = {name: [3] * 3 for name in ("count", "min", "last", "mean", "max")}
    return SimpleNamespace(table=table({**dict(columns), **numbers}))
