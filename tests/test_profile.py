"""Function profiles, call trees and flame graphs: beside a slow reference, and the kernel's own profiler."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import pytest
from corpus_data import ROOT, corpus_cases
from hypothesis import given
from hypothesis import strategies as st
from pagebuilder import make_abi
from recorder import Recorder

import ftbuf
from ftbuf import _core
from ftbuf.analysis.calltree import call_tree, folded
from ftbuf.analysis.profile import function_profile, trace_stat
from ftbuf.cli.main import main

A, B, C = 0x1000, 0x2000, 0x3000
SYMBOLS = b"1000 t outer\n2000 t middle_of_a_name_longer_than_thirty\n3000 t inner\n4000 t end\n"
ENTRIES = ("funcgraph_entry", "fgraph_retaddr_entry")


# ---- the reference: one record after another ----


@dataclass
class Count:
    hit: int = 0
    times: list[int] = field(default_factory=list)
    own: int = 0
    open: int = 0
    lossy: int = 0


@dataclass
class Running:
    func: int
    depth: int
    cpu: int
    ts: int
    slept: int
    path: tuple[int, ...]


class Reference:
    """Counts calls by (function, CPU) and by path: by the rules that the documentation of function_profile states."""

    def __init__(self, trace, *, graph_time=True, sleep_time=True):
        self.graph_time, self.sleep_time = graph_time, sleep_time
        self.of_cpu, self.of_path = defaultdict(Count), defaultdict(Count)
        self.stacks, self.done = defaultdict(list), defaultdict(list)
        self.slept, self.out = defaultdict(int), {}
        self.gaps = list(zip(*(trace.lost[name].tolist() for name in ("common_cpu", "before", "after")), strict=True))
        for record in trace.records():
            if record.name in ENTRIES:
                self.enter(record)
            elif record.name == "funcgraph_exit":
                self.leave(record)
            elif record.name == "sched_switch" and not sleep_time:
                self.switch(record)
        for stack in self.stacks.values():
            while stack:
                self.drop(stack)

    def task(self, record):
        return record.pid if record.pid else ("idle", record.cpu)

    def drop(self, stack):
        call = stack.pop()
        self.of_cpu[call.func, call.cpu].open += 1
        self.of_path[call.path].open += 1

    def enter(self, r):
        task, depth, func = self.task(r), r["depth"], r["func"]
        stack = self.stacks[task]
        while stack and stack[-1].depth >= depth:
            self.drop(stack)
        self.done[task] = [(min(d, depth), time) for d, time in self.done[task]]
        path = (*(stack[-1].path if stack else ()), func)
        stack.append(Running(func, depth, r.cpu, r.ts, self.slept[task], path))
        self.of_cpu[func, r.cpu].hit += 1
        self.of_path[path].hit += 1

    def leave(self, r):
        task, depth, func = self.task(r), r["depth"], r["func"]
        stack = self.stacks[task]
        while stack and stack[-1].depth > depth:
            self.drop(stack)
        call = stack.pop() if stack and (stack[-1].depth, stack[-1].func) == (depth, func) else None
        if call is None and stack and stack[-1].depth == depth:
            self.drop(stack)
        path = call.path if call else (*(stack[-1].path if stack else ()), func)
        counts = [self.of_cpu[func, r.cpu], self.of_path[path]]
        since = call.slept if call else stack[-1].slept if stack else 0
        duration = (r["rettime"] - r["calltime"] + (1 << 63)) % (1 << 64) - (1 << 63)  # as signed as a kernel's
        time = max(max(duration, 0) - (self.slept[task] - since), 0)
        inner = min(sum(t for d, t in self.done[task] if d > depth), time)
        self.done[task] = [(d, t) for d, t in self.done[task] if d <= depth] + [(depth, time)]
        lossy = call is not None and any(cpu in (call.cpu, r.cpu) and before < r.ts and after > call.ts
                                         for cpu, before, after in self.gaps)
        for count in counts:
            count.hit += call is None
            count.times.append(time if self.graph_time else time - inner)
            count.own += time - inner
            count.lossy += lossy

    def switch(self, r):
        if r["prev_pid"]:
            self.out[r["prev_pid"]] = r.ts
        if r["next_pid"] in self.out:
            self.slept[r["next_pid"]] += r.ts - self.out.pop(r["next_pid"])


def check_profile(trace, **options):
    got = function_profile(trace, **options)
    want = Reference(trace, **options).of_cpu
    assert got.num_rows == len(want)
    columns = ("address", "cpu", "hit", "time", "self", "returned", "open", "lossy")
    for *key, hit, time, own, returned, is_open, lossy in zip(*(got[n].tolist() for n in columns), strict=True):
        count = want[tuple(key)]
        assert (hit, time, own) == (count.hit, sum(count.times), count.own)
        assert (returned, is_open, lossy) == (len(count.times), count.open, count.lossy)
    for *key, hit, avg, s2 in zip(*(got[n].tolist() for n in ("address", "cpu", "hit", "avg", "s2")), strict=True):
        times = want[tuple(key)].times
        assert avg == sum(times) / hit if hit else avg != avg
        over = max(hit * sum(t * t for t in times) - sum(times) ** 2, 0)
        assert s2 == (over / (hit * (hit - 1)) if hit > 1 else 0)


def check_tree(trace, **options):
    got = call_tree(trace, **options)
    want = Reference(trace, **options).of_path
    paths = []
    columns = ("address", "caller", "depth", "hit", "time", "self", "returned", "open", "lossy")
    for address, caller, depth, *sums in zip(*(got[n].tolist() for n in columns), strict=True):
        path = (*(paths[caller] if caller >= 0 else ()), address)
        paths.append(path)
        count = want[path]
        assert depth == len(path) - 1
        assert sums == [count.hit, sum(count.times), count.own, len(count.times), count.open, count.lossy]
    assert len(set(paths)) == len(paths) == len(want)


# ---- made recordings ----


def entry(made, ts, cpu, func, depth, pid=7, name="funcgraph_entry"):
    made.add(ts, cpu, name, pid=pid, func=func, depth=depth)


def leave(made, ts, cpu, func, depth, time, pid=7):
    made.add(ts, cpu, "funcgraph_exit", pid=pid, func=func, depth=depth, calltime=ts - time, rettime=ts)


def call(made, ts, cpu, func, depth, time, pid=7):
    entry(made, ts, cpu, func, depth, pid)
    leave(made, ts + time, cpu, func, depth, time, pid)


def rows(table, *names):
    return list(zip(*(table[n].tolist() for n in names), strict=True))


def test_the_kernel_s_text_to_the_last_digit():
    """Numbers worked out by hand: 1, 2 and 4.5 ms; 100, 101 ns; one call of 1234567.891 us."""
    made = Recorder(kallsyms=SYMBOLS)
    ts = 1_000_000
    for time in (1_000_000, 2_000_000, 4_500_000):
        call(made, ts, 0, A, 0, time)
        ts += 10_000_000
    for time in (100, 101):
        call(made, ts, 0, C, 0, time)
        ts += 1000
    call(made, ts, 0, B, 0, 1_234_567_891)
    with made.open() as trace:
        assert trace_stat(trace) == {0: (
            "  Function                               Hit    Time            Avg             s^2\n"
            "  --------                               ---    ----            ---             ---\n"
            "  middle_of_a_name_longer_than_t           1    1234567 us      1234567 us      0.000 us    \n"
            "  outer                                    3    7500.000 us     2500.000 us     3250000 us  \n"
            "  inner                                    2    0.201 us        0.100 us        0.000 us    \n")}
        # (1^2 + 2^2 + 4.5^2) * 3 - 7.5^2 = 19.5 ms^2, over 3 * 2
        assert rows(function_profile(trace), "function", "s2")[1] == ("outer", 3.25e12)
        check_profile(trace)


def test_calls_inside_others():
    made = Recorder(kallsyms=SYMBOLS)
    entry(made, 100, 0, A, 0)
    call(made, 110, 0, B, 1, 20)
    entry(made, 140, 0, B, 1)
    call(made, 150, 0, C, 2, 5)
    leave(made, 170, 0, B, 1, 30)
    leave(made, 200, 0, A, 0, 100)
    with made.open() as trace:
        assert rows(function_profile(trace), "address", "hit", "time", "self") == [
            (A, 1, 100, 50), (B, 2, 50, 45), (C, 1, 5, 5)]
        assert rows(function_profile(trace, graph_time=False), "address", "time") == [(A, 50), (B, 45), (C, 5)]
        long = "middle_of_a_name_longer_than_thirty"
        assert list(folded(trace)) == ["outer 50", f"outer;{long} 45", f"outer;{long};inner 5"]
        assert rows(call_tree(trace), "function", "depth", "caller") == [
            ("outer", 0, -1), (long, 1, 0), ("inner", 2, 1)]
        check_profile(trace)
        check_profile(trace, graph_time=False)
        check_tree(trace)


def test_a_call_is_a_hit_where_it_began_and_costs_where_it_returned():
    made = Recorder()
    entry(made, 100, 0, A, 0)
    leave(made, 200, 1, A, 0, 100)
    call(made, 300, 0, A, 0, 10)
    with made.open() as trace:
        assert rows(function_profile(trace), "cpu", "hit", "returned", "time") == [(1, 0, 1, 100), (0, 2, 1, 10)]
        assert [line.split()[1:3] for line in trace_stat(trace)[0].splitlines()[2:]] == [["2", "0.010"]]
        assert trace_stat(trace)[1].count("\n") == 2  # the kernel finds no such function there
        assert rows(function_profile(trace, cpus=[1]), "cpu", "time") == [(1, 100)]
        check_profile(trace)


def test_the_idle_tasks_of_cpus_are_different_tasks():
    made = Recorder()
    entry(made, 100, 0, A, 0, pid=0)
    entry(made, 110, 1, A, 0, pid=0)
    leave(made, 150, 1, A, 0, 40, pid=0)
    leave(made, 200, 0, A, 0, 100, pid=0)
    with made.open() as trace:
        assert rows(function_profile(trace), "cpu", "time", "open") == [(0, 100, 0), (1, 40, 0)]


def test_calls_without_a_return_and_returns_without_a_call():
    made = Recorder()
    leave(made, 100, 0, C, 2, 30)
    leave(made, 120, 0, B, 1, 60)
    entry(made, 130, 0, B, 1)
    entry(made, 140, 0, C, 2)
    leave(made, 170, 0, A, 0, 200)
    entry(made, 200, 0, C, 0)
    with made.open() as trace:
        assert rows(function_profile(trace), "address", "hit", "returned", "open", "time", "self") == [
            (A, 1, 1, 0, 200, 140), (B, 2, 1, 1, 60, 30), (C, 3, 1, 2, 30, 30)]
        check_profile(trace)
        check_tree(trace)


def test_the_time_of_calls_whose_caller_was_lost_counts_once():
    made = Recorder()
    entry(made, 100, 0, A, 0)
    call(made, 120, 0, C, 2, 10)  # the entry of B, at 110, is lost
    leave(made, 150, 0, B, 1, 40)
    leave(made, 200, 0, A, 0, 100)
    with made.open() as trace:
        assert rows(function_profile(trace), "address", "self") == [(A, 60), (B, 30), (C, 10)]


def test_losses_mark_the_calls_around_them():
    made = Recorder()
    entry(made, 100, 0, A, 0)
    entry(made, 105, 1, C, 0, pid=8)
    made.lose(0, 3)
    call(made, 150, 0, B, 1, 10)
    leave(made, 200, 0, A, 0, 100)
    leave(made, 205, 1, C, 0, 100, pid=8)
    with made.open() as trace:
        assert rows(function_profile(trace), "address", "lossy") == [(A, 1), (C, 0), (B, 0)]
        check_profile(trace)
        check_tree(trace)


def sleeper():
    made = Recorder()
    entry(made, 100, 0, A, 0)
    entry(made, 110, 0, B, 1)
    made.add(120, 0, "sched_switch", pid=7, prev_pid=7, next_pid=0)
    made.add(170, 1, "sched_switch", pid=0, prev_pid=0, next_pid=7)
    leave(made, 180, 1, B, 1, 70)
    leave(made, 200, 1, A, 0, 100)
    return made


def test_time_without_sleep():
    with sleeper().open() as trace:
        assert rows(function_profile(trace), "address", "time", "self")[:2] == [(A, 100, 30), (B, 70, 70)]
        assert rows(function_profile(trace, sleep_time=False), "address", "time", "self")[:2] == [(A, 50, 30), (B, 20, 20)]
        for graph_time in (True, False):
            check_profile(trace, sleep_time=False, graph_time=graph_time)
        check_tree(trace, sleep_time=False)


def test_sleep_needs_switches_unless_the_kernel_left_it_out(tmp_path, recordings):
    path = recordings["mips32be-graph"].path
    with ftbuf.open(path) as trace, pytest.raises(ftbuf.EventNotFoundError):
        function_profile(trace, sleep_time=False)
    copy = tmp_path / "copy"
    copy.symlink_to(path)
    with ftbuf.open(path) as trace:
        trace.recording.container.tracing_file = lambda name: b"nosleep-time\n"
        assert function_profile(trace, sleep_time=False).num_rows


def test_returns_of_a_clock_that_stands_still():
    made = Recorder()
    entry(made, 100, 0, A, 0)
    for _ in range(3):
        call(made, 100, 0, B, 1, 0)
    leave(made, 100, 0, A, 0, 0)
    call(made, 100, 0, A, 0, 0)
    with made.open() as trace:
        assert rows(call_tree(trace), "address", "caller", "hit", "open") == [(A, -1, 2, 0), (B, 0, 3, 0)]


def test_the_function_tracer_tells_hits():
    made = Recorder(kallsyms=SYMBOLS)
    for i, ip in enumerate((A, A, C)):
        made.add(100 + i, i % 2, "function", ip=ip, parent_ip=B)
    made.add(200, 0, "func_repeats", ip=A, parent_ip=B, count=5)
    with made.open() as trace:
        assert rows(function_profile(trace), "function", "cpu", "hit", "time") == [
            ("outer", 0, 6, 0), ("inner", 0, 1, 0), ("outer", 1, 1, 0)]
        assert trace_stat(trace)[1] == (
            "  Function                               Hit\n  --------                               ---\n"
            "  outer                                    1\n")
        assert list(folded(trace)) == ["outer 7", "inner 1"]


def test_entries_with_return_addresses_are_entries():
    made = Recorder()
    entry(made, 100, 0, A, 0)
    entry(made, 110, 0, B, 1, name="fgraph_retaddr_entry")
    leave(made, 120, 0, B, 1, 10)
    leave(made, 130, 0, A, 0, 30)
    with made.open() as trace:
        assert rows(call_tree(trace), "address", "caller", "time") == [(A, -1, 30), (B, 0, 10)]


def test_a_recording_without_calls():
    with Recorder().open() as trace:
        assert function_profile(trace).num_rows == call_tree(trace).num_rows == 0
        assert list(folded(trace)) == []


def test_damaged_numbers_do_no_harm():
    made = Recorder()
    for i, depth in enumerate((-1, 1 << 30, 5000, 0)):
        entry(made, 100 + i, 0, A, depth)
    for i, depth in enumerate((0, 5000, -1, -1)):
        made.add(200 + i, 0, "funcgraph_exit", pid=7, func=A, depth=depth, calltime=1 << 63, rettime=i)
    entry(made, 300, 0, A, 0, pid=-5)
    with made.open() as trace:
        for graph_time in (True, False):
            table = function_profile(trace, graph_time=graph_time)
            assert rows(table, "hit", "returned", "open") == [(8, 4, 4)]


def test_squares_of_long_calls_are_exact():
    long = (1 << 40) + 12345
    made = Recorder()
    for i in range(3):
        entry(made, 1000 + 10 * i, 0, A, 0)
        made.add(1005 + 10 * i, 0, "funcgraph_exit", pid=7, func=A, depth=0, calltime=0, rettime=long * (i + 1))
    with made.open() as trace:
        check_profile(trace)
        assert function_profile(trace)["s2"][0] == float(long) ** 2


# ---- calls in any order ----


@st.composite
def programs(draw):
    """What several tasks did on two CPUs, losses, migrations and all."""
    made, ts = Recorder(abi=make_abi(subbuf_size=draw(st.sampled_from([256, 4096])))), 1000
    for _ in range(draw(st.integers(0, 60))):
        ts += draw(st.integers(0, 50))
        cpu, pid, func = draw(st.integers(0, 1)), draw(st.integers(0, 2)), draw(st.sampled_from([A, B, C]))
        what = draw(st.sampled_from(["entry", "entry", "exit", "exit", "switch", "lose"]))
        if what == "entry":
            entry(made, ts, cpu, func, draw(st.integers(0, 3)), pid, draw(st.sampled_from(ENTRIES)))
        elif what == "exit":
            leave(made, ts, cpu, func, draw(st.integers(0, 3)), draw(st.integers(0, 200)), pid)
        elif what == "switch":
            made.add(ts, cpu, "sched_switch", pid=pid, prev_pid=pid, next_pid=draw(st.integers(0, 2)))
        else:
            made.lose(cpu, draw(st.none() | st.integers(1, 9)))
    return made.build()


@given(programs(), st.booleans(), st.booleans())
def test_any_calls(data, graph_time, sleep_time):
    with ftbuf.open(data) as trace:
        if not sleep_time and "sched_switch" not in trace.events:
            return
        check_profile(trace, graph_time=graph_time, sleep_time=sleep_time)
        check_tree(trace, sleep_time=sleep_time)


# ---- real recordings ----


def test_a_real_recording(recordings):
    with ftbuf.open(recordings["mips32be-graph"].path) as trace:
        check_profile(trace)
        check_profile(trace, graph_time=False)
        check_tree(trace)


GRAPHS = [c for c in corpus_cases() if "graph" in c.name or c.name == "k612-function-profile"]


@pytest.mark.corpus
@pytest.mark.parametrize("case", GRAPHS, ids=lambda c: c.name)
def test_graphs_of_the_corpus(case, corpus_layout):
    where = corpus_layout(case)
    path = next(iter(sorted(where.glob("*.dat"))), where)
    with ftbuf.open(path, errors="skip") as trace:
        check_profile(trace)
        check_profile(trace, graph_time=False)
        check_tree(trace)
        if "sched_switch" in trace.events:
            check_profile(trace, sleep_time=False)


PROFILED = [c for c in corpus_cases() if c.name.startswith("k612-function-profile")]


@pytest.mark.corpus
@pytest.mark.parametrize("case", PROFILED, ids=lambda c: c.name)
def test_beside_the_kernel_s_profiler(case, corpus_layout):
    """Two users of one run: the profiler ran a little longer than the records, or shorter. What both saw alike is alike."""
    compared = 0
    with ftbuf.open(corpus_layout(case)) as trace:
        timed = "funcgraph_exit" in trace.events
        for cpu, text in trace_stat(trace).items():
            own, kernel = (by_function(t) for t in (text, case.read(f"trace_stat.function{cpu}.txt").decode()))
            assert own.keys() == kernel.keys()
            for name, line in own.items():
                hits, kernel_hits = int(line.split()[1]), int(kernel[name].split()[1])
                assert abs(hits - kernel_hits) <= 3
                if timed and hits == kernel_hits:
                    assert line == kernel[name]
                    compared += 1
    assert compared == (15 if timed else 0)


def by_function(text):
    return {line.split()[0]: line for line in text.splitlines()[2:]}


# ---- the command ----


def test_the_command(tmp_path, capsys):
    path = tmp_path / "made.dat"
    path.write_bytes(sleeper().build())
    assert main(["profile", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "cpu0"
    assert "  0x1000                                   1    0.000 us        0.000 us        0.000 us    " in out
    assert main(["profile", str(path), "--cpu", "1", "--no-sleep-time"]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("  Function")
    assert main(["profile", str(path), "--folded"]) == 0
    assert capsys.readouterr().out == "0x1000 30\n0x1000;0x2000 70\n"
    assert main(["profile", str(path), "--tree"]) == 0
    assert capsys.readouterr().out.splitlines()[2] == "         1    0.070 us        0.070 us          0x2000"
    assert main(["profile", str(path), "--json"]) == 0
    parsed = json.loads(capsys.readouterr().out)
    assert {row["cpu"] for row in parsed["profile"]} == {0, 1}
    assert parsed["tree"][1]["caller"] == 0


# ---- the core's class ----


def test_what_the_core_is_given_is_checked():
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint16)
    calls = _core.Calls(False, False)
    good = [np.zeros(2, t) for t in (np.int64, np.int64, np.uint16, np.int32, np.uint64, np.uint32)]
    calls.step(good, [*good, np.zeros(2, np.int64)], None, nothing)
    with pytest.raises(ValueError, match="2 numbers of 4 bytes"):
        calls.step([*good[:5], np.zeros(2, np.int64)], None, None, nothing)
    with pytest.raises(ValueError, match="2 numbers of 8 bytes"):
        calls.step(None, [*good, np.zeros(1, np.int64)], None, nothing)
    with pytest.raises(ValueError, match="numbers"):
        calls.count(np.zeros(2, np.uint64), np.zeros(1, np.uint16), None)
    calls.finish()
    for again in (calls.finish, lambda: calls.step(None, None, None, nothing)):
        with pytest.raises(ValueError, match="finished"):
            again()


def test_a_tree_of_hits_has_no_times_and_without_records_it_is_said(capsys):
    assert main(["profile", "--tree", str(ROOT / "examples" / "function.dat")]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["Hit", "Function"]
    for options in ([], ["--tree"]):
        assert main(["profile", *options, str(ROOT / "examples" / "sched.dat")]) == 1
        out, err = capsys.readouterr()
        assert out.startswith("none: no records of the function graph")
        assert err.endswith("nothing of what was asked for is recorded\n")


@pytest.mark.parametrize("options", [[], ["--tree"]])
def test_losses_inside_of_calls_are_said(options, tmp_path, capsys):
    made = Recorder()
    made.add(100, 0, "funcgraph_entry", pid=5, func=0x1000, depth=0)
    made.lose(0, 3)
    made.add(200, 0, "funcgraph_exit", pid=5, func=0x1000, depth=0, calltime=100, rettime=200)
    path = tmp_path / "made.dat"
    path.write_bytes(made.build())
    assert main(["profile", *options, str(path)]) == 0
    assert "records were lost inside of 1 calls" in capsys.readouterr().err
