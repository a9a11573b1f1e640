"""What tasks and CPUs did with their time: beside slow references that look at one record after another."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import numpy as np
import pytest
from corpus_data import ROOT, corpus_cases
from hypothesis import given
from hypothesis import strategies as st
from pagebuilder import make_abi
from recorder import OTHERS, SCHED, Recorder

import ftbuf
from ftbuf.analysis import cpus, irqs, osnoise, power, profile, sched, schedtimes, systemcalls, tasks
from ftbuf.cli.main import main

EXAMPLE = ROOT / "examples" / "sched.dat"
MODULES = (irqs, osnoise, power, schedtimes, systemcalls)
KINDS = {**SCHED, **OTHERS}


@pytest.fixture(params=["64", "1 MB"])
def step(request, monkeypatch):
    """Steps of a row or two, and of all: what is carried from step to step must not matter."""
    for module in MODULES:
        monkeypatch.setattr(module, "STEP", request.param)


def rows(table, *names):
    return list(zip(*(table[n].tolist() for n in names), strict=True))


def by_key(table, *keys):
    """Rows as dictionaries, by the values of some columns."""
    names = table.column_names
    made = [dict(zip(names, values, strict=True)) for values in rows(table, *names)]
    assert len({tuple(row[k] for k in keys) for row in made}) == len(made)
    return {tuple(row[k] for k in keys): row for row in made}


class Lost:
    """The gaps of a trace, of a CPU and (None) of all."""

    def __init__(self, trace):
        found = rows(trace.lost, "common_cpu", "before", "after")
        self.gaps = {cpu: [(b, a) for c, b, a in found if cpu in (None, c)] for cpu in (None, *{c for c, _, _ in found})}

    def inside(self, start, end, cpu=None):
        return any(before < end and after > start for before, after in self.gaps.get(cpu, ()))


def of_events(trace, *kinds):
    """Records of some events in their order."""
    return list(trace.records([name for names in kinds for name in names if name in trace.events]))


def first_times(trace):
    times = {}
    for record in trace.records():
        times.setdefault(record.cpu, record.ts)
    return times


# ---- tasks ----


class TaskReference:
    def __init__(self, trace):
        self.lost, self.letters = Lost(trace), sched.task_states(trace["sched_switch"].format)
        self.now, self.times = {}, defaultdict(Counter)
        self.counts, self.cpu = defaultdict(Counter), {}
        waking = "sched_waking" if "sched_waking" in trace.events else "sched_wakeup"
        starts, first = first_times(trace), {}
        events = of_events(trace, ["sched_switch"], [waking], ["sched_wakeup_new"])
        for r in events:
            if r.name == "sched_switch":
                first.setdefault(r.cpu, r["prev_pid"])
        for cpu in sorted(first):
            if first[cpu] > 0 and first[cpu] not in self.now:
                self.now[first[cpu]] = "run", starts[cpu]
                self.cpu[first[cpu]] = cpu
        for r in events:
            if r.name == "sched_switch":
                self.leave(r)
                self.enter(r)
            elif r["pid"] > 0 and self.now.get(r["pid"], ("",))[0] not in ("run", "runnable"):
                self.change(r["pid"], "runnable", r.ts)
        self.end = {pid: state for pid, (state, _) in self.now.items()}
        for pid in list(self.now):
            self.change(pid, "ended", trace.end)

    def change(self, pid, state, ts, contradicts=False):
        if pid in self.now:
            old, since = self.now[pid]
            lost = self.lost.inside(since, ts, self.cpu.get(pid) if old == "run" else None)
            self.times[pid]["unknown" if lost or contradicts else old] += max(ts - since, 0)
        self.now[pid] = state, ts

    def leave(self, r):
        pid = r["prev_pid"]
        if pid <= 0:
            return
        state = self.state_of(r["prev_state"])
        self.change(pid, state, r.ts, self.now.get(pid, ("",))[0] != "run")
        self.counts[pid]["preempted"] += state == "runnable"
        self.cpu[pid] = r.cpu

    def enter(self, r):
        pid = r["next_pid"]
        if pid <= 0:
            return
        known = pid in self.now
        self.change(pid, "run", r.ts, self.now.get(pid, ("",))[0] == "run")
        self.counts[pid]["runs"] += 1
        self.counts[pid]["migrations"] += known and self.cpu.get(pid, r.cpu) != r.cpu
        self.cpu[pid] = r.cpu

    def state_of(self, number):
        found = {self.letters[bit] for bit in self.letters if number & bit and bit < 4096}
        for state, letters in (("ended", "XxZ"), ("disk", "DW"), ("stopped", "TtP"), ("sleep", "SIK")):
            if found & set(letters):
                return state
        return "stopped" if found else "runnable"


def check_tasks(trace):
    got, want = by_key(tasks.task_states(trace), "pid"), TaskReference(trace)
    assert {pid for pid, in got} == set(want.now)
    for (pid,), row in got.items():
        for name in ("run", "runnable", "sleep", "disk", "stopped", "unknown"):
            assert row[name] == want.times[pid][name], (pid, name)
        assert {name: row[name] for name in ("runs", "preempted", "migrations")} == {
            name: want.counts[pid][name] for name in ("runs", "preempted", "migrations")}
        assert row["state"] == want.end[pid]


def made_with(*events):
    """A recording of (ts, cpu, name, fields); "lose" before a CPU's record."""
    made = Recorder(KINDS)
    for ts, cpu, name, values in events:
        if name == "lose":
            made.lose(cpu, values)
        else:
            fields = {("common_pid" if k == "task" else k): v for k, v in values.items()}
            made.add_fields(ts, cpu, name, fields)
    return made


def sw(ts, cpu, prev, state, next, name="task"):
    return ts, cpu, "sched_switch", {"task": prev, "prev_pid": prev, "prev_state": state, "next_pid": next, "next_comm": name}


def wk(ts, cpu, pid, name="sched_waking"):
    return ts, cpu, name, {"pid": pid}


def test_a_task_s_day(step):
    """It runs from the start, is preempted, runs on another CPU, sleeps, is woken twice, runs, waits for a disk, ends."""
    events = [
        wk(100, 0, 9), sw(110, 0, 5, 0, 9), sw(150, 1, 0, 0, 5), sw(190, 1, 5, 1, 0), wk(240, 0, 5), wk(250, 0, 5),
        sw(260, 1, 0, 0, 5, "renamed"), wk(265, 0, 5), sw(270, 1, 5, 2, 0), sw(300, 1, 0, 0, 5, "renamed"),
        sw(310, 1, 5, 32, 0), sw(400, 0, 9, 0, 0)]
    with made_with(*events).open() as trace:
        found = by_key(tasks.task_states(trace), "pid")[5,]
        assert found == {"pid": 5, "comm": "renamed", "run": 10 + 40 + 10 + 10, "runnable": 40 + 20, "sleep": 50, "disk": 30,
                         "stopped": 0, "unknown": 0, "runs": 3, "preempted": 1, "migrations": 1, "state": "ended"}
        check_tasks(trace)


def test_without_wakeups_a_task_sleeps_until_it_runs(step):
    with made_with(sw(100, 0, 0, 0, 5), sw(110, 0, 5, 1, 0), sw(150, 0, 0, 0, 5), sw(160, 0, 5, 0, 0)).open() as trace:
        found = by_key(tasks.task_states(trace), "pid")[5,]
        assert (found["run"], found["sleep"], found["runnable"]) == (20, 40, 0)
        check_tasks(trace)


def test_what_records_contradict_is_unknown(step):
    with made_with(sw(100, 0, 0, 0, 5), sw(120, 1, 0, 0, 5), sw(150, 1, 5, 1, 0), sw(190, 0, 5, 1, 0)).open() as trace:
        found = by_key(tasks.task_states(trace), "pid")[5,]
        assert (found["run"], found["unknown"]) == (30, 20 + 40)
        check_tasks(trace)


def test_losses_make_time_unknown(step):
    events = [sw(100, 0, 0, 0, 5), sw(110, 0, 5, 1, 0), sw(120, 1, 0, 0, 6), (0, 1, "lose", 3), sw(150, 1, 6, 1, 0),
              sw(200, 0, 0, 0, 5), sw(210, 0, 5, 1, 0)]
    with made_with(*events).open() as trace:
        found = by_key(tasks.task_states(trace), "pid")
        assert [(found[p,]["run"], found[p,]["sleep"], found[p,]["unknown"]) for p in (5, 6)] == [
            (20, 0, 90), (0, 60, 30)]
        check_tasks(trace)


@st.composite
def sched_programs(draw):
    made, ts = Recorder(KINDS, abi=make_abi(subbuf_size=draw(st.sampled_from([512, 4096])))), 1000
    for _ in range(draw(st.integers(1, 50))):
        ts += draw(st.integers(0, 3)) * 7
        cpu, what = draw(st.integers(0, 1)), draw(st.sampled_from(["switch"] * 4 + ["wake"] * 3 + ["new", "old", "lose"]))
        pid, other = draw(st.integers(-1, 3)), draw(st.integers(0, 3))
        if what == "switch":
            state = draw(st.sampled_from([0, 1, 2, 3, 4, 16, 32, 64, 128, 130, 256, 1024]))
            fields = {"common_pid": pid, "prev_pid": pid, "prev_state": state, "next_pid": other}
            made.add_fields(ts, cpu, "sched_switch", fields)
        elif what == "lose":
            made.lose(cpu, draw(st.none() | st.integers(1, 9)))
        else:
            name = {"wake": "sched_waking", "new": "sched_wakeup_new", "old": "sched_wakeup"}[what]
            made.add_fields(ts, cpu, name, {"pid": pid})
    made.add_fields(ts + 1, 0, "sched_switch", {})
    return made.build()


@given(sched_programs(), st.sampled_from(["1", "100", "1 MB"]))
def test_any_schedule(data, size):
    with pytest.MonkeyPatch.context() as patch, ftbuf.open(data) as trace:
        for module in MODULES:
            patch.setattr(module, "STEP", size)
        check_tasks(trace)
        check_cpus(trace)


def test_a_real_recording(step):
    with ftbuf.open(EXAMPLE) as trace:
        check_tasks(trace)
        check_cpus(trace)
        check_syscalls(trace)


def test_tasks_need_switches():
    with Recorder({("ftrace", "function"): ["unsigned long ip"]}).open() as trace:
        for analysis in (tasks.task_states, cpus.cpu_busy, irqs.irq_time, systemcalls.syscalls, power.idle_residency,
                         power.frequency_residency, osnoise.noise):
            with pytest.raises(ftbuf.EventNotFoundError):
                analysis(trace)


def test_recordings_without_records_of_the_events():
    with Recorder(KINDS).open() as trace:
        for analysis in (tasks.task_states, cpus.cpu_busy, irqs.irq_time, systemcalls.syscalls, power.idle_residency,
                         power.frequency_residency):
            assert analysis(trace).num_rows == 0


# ---- CPUs ----


def check_cpus(trace):
    lost, starts = Lost(trace), first_times(trace)
    now, want, switches = {}, defaultdict(Counter), Counter()

    def close(cpu, ts, wrong=False):
        pid, since = now[cpu]
        name = "unknown" if wrong or lost.inside(since, ts, cpu) else "busy" if pid else "idle"
        want[cpu][name] += max(ts - since, 0)

    for r in trace.records(["sched_switch"]):
        now.setdefault(r.cpu, (r["prev_pid"], starts[r.cpu]))
        close(r.cpu, r.ts, now[r.cpu][0] != r["prev_pid"])
        now[r.cpu] = r["next_pid"], r.ts
        switches[r.cpu] += 1
    for cpu in now:
        close(cpu, trace.end)
    got = by_key(cpus.cpu_busy(trace), "cpu")
    assert {cpu for cpu, in got} == set(now)
    for (cpu,), row in got.items():
        assert {name: row[name] for name in ("busy", "idle", "unknown")} == {
            name: want[cpu][name] for name in ("busy", "idle", "unknown")}
        assert row["switches"] == switches[cpu]
        known = row["busy"] + row["idle"]
        assert row["busy_share"] == row["busy"] / known if known else np.isnan(row["busy_share"])


def test_how_busy_a_cpu_was(step):
    events = [wk(100, 0, 5), sw(120, 0, 5, 1, 0), sw(180, 0, 0, 0, 6), sw(190, 0, 7, 0, 0), wk(200, 1, 5)]
    with made_with(*events).open() as trace:
        assert rows(cpus.cpu_busy(trace), "cpu", "busy", "idle", "unknown", "switches") == [(0, 20, 70, 10, 3)]
        assert cpus.cpu_busy(trace)["switches_per_second"].tolist() == [3e7]
        check_cpus(trace)


# ---- interrupts ----

PAIRS = {"irq": ("irq_handler", "irq"), "softirq": ("softirq", "vec"), "tasklet": ("tasklet", "func"),
         "local_timer": ("local_timer", "vector"), "ipi": ("ipi", "reason")}


def handlers(trace):
    """[kind, number, CPU, begin, end, whether it counts, place of its begin, of its end] of each handler; end None: open."""
    lost, found, now = Lost(trace), [], {}
    names = {f"{name}_{edge}": (kind, field, edge) for kind, (name, field) in PAIRS.items() for edge in ("entry", "exit")}
    for place, r in enumerate(of_events(trace, list(names))):
        kind, field, edge = names[r.name]
        open_one = now.pop((kind, r.cpu), None)
        if open_one is not None:
            is_whole = edge == "exit" and open_one[1] == r[field] and not lost.inside(open_one[3], r.ts, r.cpu)
            open_one[4:8] = r.ts, is_whole, open_one[6], place
        if edge == "entry":
            now[kind, r.cpu] = [kind, r[field], r.cpu, r.ts, None, False, place, 1 << 60]
            found.append(now[kind, r.cpu])
    return found


def own_times(found):
    """Of each handler the time without that of others in it: those that began while nothing that began later was open."""
    inside = [0] * len(found)
    for _, _, cpu, begin, end, is_whole, first, last in found:
        around = [i for i, other in enumerate(found) if other[2] == cpu and other[6] < first < other[7]]
        if around and is_whole:
            innermost = max(around, key=lambda i: found[i][6])
            if found[innermost][7] > last:
                inside[innermost] += max(end - begin, 0)
    return [max(one[4] - one[3], 0) - hidden if one[4] is not None else 0 for one, hidden in zip(found, inside, strict=True)]


def check_irqs(trace):
    want = defaultdict(lambda: {"times": [], "self": 0, "lost": 0, "open": 0})
    joint = defaultdict(lambda: {"times": [], "self": 0, "lost": 0, "open": 0})
    found = handlers(trace)
    for (kind, number, cpu, begin, end, is_whole, _, _), own in zip(found, own_times(found), strict=True):
        for group in (want[kind, number, cpu], joint[kind, number]):
            if is_whole:
                group["times"].append(max(end - begin, 0))
                group["self"] += own
            else:
                group["open" if end is None else "lost"] += 1
    for got, groups in ((by_key(irqs.irq_time(trace, by_cpu=True), "kind", "id", "cpu"), want),
                        (by_key(irqs.irq_time(trace), "kind", "id"), joint)):
        check_samples(got, groups)
        assert {key: row["self"] for key, row in got.items()} == {key: max(group["self"], 0) for key, group in groups.items()}


def check_samples(got, want):
    assert set(got) == set(want)
    for key, row in got.items():
        times = want[key]["times"]
        assert (row["count"], row["time"], row["lost"], row["open"]) == (
            len(times), sum(times), want[key]["lost"], want[key]["open"])
        assert (row["min"], row["max"]) == (min(times, default=0), max(times, default=0))


def pair(handler, ts, cpu, took, **values):
    ends = {k: v for k, v in values.items() if k != "name"}
    return [(ts, cpu, f"{handler}_entry", values), (ts + took, cpu, f"{handler}_exit", ends)]


def test_time_in_handlers(step):
    events = [
        *pair("irq_handler", 100, 0, 10, irq=3, name="eth0"), *pair("irq_handler", 120, 0, 20, irq=3, name="eth1"),
        *pair("softirq", 150, 0, 30, vec=1), *pair("tasklet", 190, 0, 5, func=0x1000, tasklet=1),
        *pair("local_timer", 200, 0, 7, vector=236), *pair("ipi", 210, 0, 8, reason=0x5000),
        (230, 0, "softirq_entry", {"vec": 1}), (240, 0, "softirq_entry", {"vec": 7}), (250, 0, "softirq_exit", {"vec": 9}),
        (260, 0, "softirq_entry", {"vec": 7})]
    made = made_with(*events)
    made.kallsyms = b"1000 t run_me\n2000 t end\n"
    with made.open() as trace:
        found = irqs.irq_time(trace)
        assert set(rows(found, "kind", "id", "name", "count", "time", "lost", "open")) == {
            ("irq", 3, "eth0, eth1", 2, 30, 0, 0), ("softirq", 1, "", 1, 30, 1, 0), ("softirq", 7, "", 0, 0, 1, 1),
            ("tasklet", 0x1000, "run_me", 1, 5, 0, 0), ("local_timer", 236, "", 1, 7, 0, 0), ("ipi", 0x5000, "0x5000", 1, 8, 0, 0)}
        check_irqs(trace)


@st.composite
def irq_programs(draw):
    made, ts = Recorder(KINDS, abi=make_abi(subbuf_size=512)), 1000
    for _ in range(draw(st.integers(0, 40))):
        ts += draw(st.integers(0, 9))
        cpu = draw(st.integers(0, 1))
        if draw(st.integers(0, 9)) == 0:
            made.lose(cpu, 1)
        name, field = draw(st.sampled_from([("irq_handler", "irq"), ("softirq", "vec"), ("tasklet", "func")]))
        made.add_fields(ts, cpu, f"{name}_{draw(st.sampled_from(['entry', 'exit']))}", {field: draw(st.integers(0, 1))})
    return made.build()


def test_losses_around_a_moment(step):
    """Before and behind the one record of that time: nothing of the interval of no length is lost."""
    made = made_with((1000, 0, "sys_enter", {"task": 5, "id": 3}), (0, 1, "lose", 1), (1000, 1, "sys_exit", {"task": 5, "id": 3}),
                     (0, 1, "lose", 1), (1001, 1, "sys_enter", {"task": 5, "id": 3}))
    with made.open() as trace:
        assert rows(systemcalls.syscalls(trace), "count", "lost", "open") == [(1, 0, 1)]
        check_syscalls(trace)


@given(irq_programs(), st.sampled_from(["1", "100", "1 MB"]))
def test_any_interrupts(data, size):
    with pytest.MonkeyPatch.context() as patch, ftbuf.open(data) as trace:
        patch.setattr(irqs, "STEP", size)
        check_irqs(trace)


def test_time_of_handlers_in_handlers(step):
    """A softirq of 100 is interrupted for 20 (an interrupt of 5 within), and runs a tasklet of 10; another CPU does not matter."""
    events = [
        (100, 0, "softirq_entry", {"vec": 1}), (110, 0, "local_timer_entry", {"vector": 236}),
        *pair("irq_handler", 115, 0, 5, irq=3, name="eth0"), (130, 0, "local_timer_exit", {"vector": 236}),
        *pair("tasklet", 140, 0, 10, func=0x1000, tasklet=1), *pair("irq_handler", 160, 1, 30, irq=3, name="eth0"),
        (200, 0, "softirq_exit", {"vec": 1})]
    with made_with(*sorted(events, key=lambda event: event[0])).open() as trace:
        found = {(kind, cpu): (time, own) for kind, cpu, time, own in rows(
            irqs.irq_time(trace, by_cpu=True), "kind", "cpu", "time", "self")}
        assert found == {("softirq", 0): (100, 70), ("local_timer", 0): (20, 15), ("irq", 0): (5, 5), ("irq", 1): (30, 30),
                         ("tasklet", 0): (10, 10)}
        check_irqs(trace)


def test_many_vectors_on_a_cpu_of_a_large_number(step):
    names = [f"made_up_{i}" for i in range(60)]
    made = Recorder({("irq_vectors", f"{name}_{edge}"): ("int vector",) for name in names for edge in ("entry", "exit")})
    for i, name in enumerate(names):
        for cpu in (0, 60_000):
            made.add(1000 + 10 * i, cpu, f"{name}_entry", vector=i)
            made.add(1005 + 10 * i, cpu, f"{name}_exit", vector=i)
    with made.open() as trace:
        found = irqs.irq_time(trace)
        assert (found.num_rows, set(found["count"].tolist()), set(found["self"].tolist())) == (60, {2}, {10})


def test_names_of_softirqs_come_from_the_print_format(recordings):
    with ftbuf.open(EXAMPLE) as trace:
        assert irqs.symbols_of(trace["softirq_entry"])[7] == "SCHED"


# ---- system calls ----


def check_syscalls(trace, enter=("sys_enter",), leave=("sys_exit",), number="id"):
    lost, want, errors, now = Lost(trace), defaultdict(lambda: {"times": [], "lost": 0, "open": 0}), Counter(), {}
    for r in of_events(trace, enter, leave):
        call, since = now.pop(r.pid, (None, 0))
        is_end = r.name in leave
        if call is not None:
            group = want[r.pid, call]
            if is_end and call == r[number] and not lost.inside(since, r.ts):
                group["times"].append(r.ts - since)
                errors[r.pid, call] += -4095 <= r["ret"] < 0
            else:
                group["lost"] += 1
        if not is_end:
            now[r.pid] = r[number], r.ts
    for pid, (call, _) in now.items():
        want[pid, call]["open"] += 1
    got = by_key(systemcalls.syscalls(trace, by="both"), "pid", "id")
    check_samples(got, want)
    assert {key: row["errors"] for key, row in got.items() if row["errors"]} == +errors
    for by, at in (("task", 0), ("call", 1)):
        joint = defaultdict(lambda: {"times": [], "lost": 0, "open": 0})
        for key, group in want.items():
            for name in group:
                joint[key[at],][name] += group[name]
        check_samples(by_key(systemcalls.syscalls(trace, by=by), "pid" if by == "task" else "id"), joint)


def test_system_calls(step):
    events = [
        (100, 0, "sys_exit", {"task": 5, "id": 1, "ret": 0}), (110, 0, "sys_enter", {"task": 5, "id": 0}),
        (120, 1, "sys_enter", {"task": 6, "id": 0}), (150, 0, "sys_exit", {"task": 5, "id": 0, "ret": -2}),
        (160, 0, "sys_enter", {"task": 5, "id": 7}), (170, 0, "sys_enter", {"task": 5, "id": 1}),
        (180, 0, "sys_exit", {"task": 5, "id": 1, "ret": -4096})]
    with made_with(*events).open() as trace:
        found = by_key(systemcalls.syscalls(trace), "id")
        assert {k: (r["count"], r["time"], r["errors"], r["lost"], r["open"]) for (k,), r in found.items()} == {
            0: (1, 40, 1, 0, 1), 7: (0, 0, 0, 1, 0), 1: (1, 10, 0, 0, 0)}
        assert {row["name"] for row in found.values()} == {""}
        check_syscalls(trace)
        with pytest.raises(ValueError):
            systemcalls.syscalls(trace, by="cpu")


def named(ts, call, begins, pid=5, ret=0):
    name = f"sys_{'enter' if begins else 'exit'}_{call}"
    return ts, 0, name, {"task": pid, "__syscall_nr": {"read": 0, "write": 1}[call]} | ({} if begins else {"ret": ret})


def test_events_of_single_calls(step):
    events = [named(100, "read", True), named(130, "read", False), named(140, "write", True), named(141, "write", False, ret=-9)]
    with made_with(*events).open() as trace:
        assert rows(systemcalls.syscalls(trace), "id", "name", "count", "time", "errors") == [
            (0, "read", 1, 30, 0), (1, "write", 1, 1, 1)]
        check_syscalls(trace, ["sys_enter_read", "sys_enter_write"], ["sys_exit_read", "sys_exit_write"], "__syscall_nr")


def test_they_tell_the_names_of_numbers(step):
    events = [(100, 0, "sys_enter", {"task": 5, "id": 0}), named(101, "read", True), named(129, "read", False),
              (130, 0, "sys_exit", {"task": 5, "id": 0, "ret": 3})]
    with made_with(*events).open() as trace:
        assert rows(systemcalls.syscalls(trace), "id", "name", "count", "time") == [(0, "read", 1, 30)]


def test_many_tasks_with_many_calls_are_told_apart():
    machine = systemcalls.SyscallMachine(None, "both")
    pids = np.arange(70_000, dtype=np.int32)
    assert len(np.unique(machine.group_of(np.zeros(70_000, np.int64), pids))) == 70_000
    assert len(np.unique(machine.group_of(np.full(70_000, 1 << 62), pids[::-1]))) == 70_000
    assert len(machine.rows()[0]) == 140_000


@st.composite
def syscall_programs(draw):
    made, ts = Recorder(KINDS, abi=make_abi(subbuf_size=512)), 1000
    for _ in range(draw(st.integers(0, 40))):
        ts += draw(st.integers(0, 9))
        cpu = draw(st.integers(0, 1))
        if draw(st.integers(0, 9)) == 0:
            made.lose(cpu, 1)
        fields = {"common_pid": draw(st.integers(0, 2)), "id": draw(st.sampled_from([-1, 0, 1]))}
        if draw(st.booleans()):
            made.add_fields(ts, cpu, "sys_enter", fields)
        else:
            made.add_fields(ts, cpu, "sys_exit", fields | {"ret": draw(st.sampled_from([0, -1, -4095, -4096, 7]))})
    return made.build()


@given(syscall_programs(), st.sampled_from(["1", "100", "1 MB"]))
def test_any_system_calls(data, size):
    with pytest.MonkeyPatch.context() as patch, ftbuf.open(data) as trace:
        patch.setattr(systemcalls, "STEP", size)
        check_syscalls(trace)


# ---- idle states and frequencies ----


def check_residency(trace, event, analysis, name):
    lost, starts, now, want = Lost(trace), first_times(trace), {}, defaultdict(list)

    def close(cpu, ts):
        state, since = now[cpu]
        want[cpu, -2 if lost.inside(since, ts) else state].append(max(ts - since, 0))

    for r in trace.records([event]):
        cpu = r["cpu_id"]
        now.setdefault(cpu, (-2, starts.get(cpu, trace.start)))
        close(cpu, r.ts)
        now[cpu] = -1 if r["state"] == 0xFFFFFFFF else r["state"], r.ts
    for cpu in starts:
        now.setdefault(cpu, (-2, starts[cpu]))
    for cpu in now:
        close(cpu, trace.end)
    got = by_key(analysis(trace), "cpu", name)
    assert set(got) == set(want)
    for key, row in got.items():
        assert (row["count"], row["time"], row["max"]) == (len(want[key]), sum(want[key]), max(want[key]))
        whole = sum(sum(times) for (cpu, _), times in want.items() if cpu == key[0])
        assert row["share"] == row["time"] / whole if whole else np.isnan(row["share"])


def test_idle_states_and_frequencies(step):
    events = [wk(100, 0, 5), (120, 0, "cpu_idle", {"state": 2, "cpu_id": 0}),
              (150, 0, "cpu_idle", {"state": 0xFFFFFFFF, "cpu_id": 0}),
              (155, 0, "cpu_frequency", {"state": 800_000, "cpu_id": 1}), wk(160, 1, 5),
              (180, 0, "cpu_frequency", {"state": 2_400_000, "cpu_id": 1}), wk(200, 0, 5)]
    with made_with(*events).open() as trace:
        assert rows(power.idle_residency(trace), "cpu", "state", "time", "share") == [
            (0, -2, 20, 0.2), (0, -1, 50, 0.5), (0, 2, 30, 0.3), (1, -2, 40, 1.0)]
        assert rows(power.frequency_residency(trace), "cpu", "frequency", "time") == [
            (0, -2, 100), (1, -2, 0), (1, 800_000, 25), (1, 2_400_000, 20)]
        check_residency(trace, "cpu_idle", power.idle_residency, "state")
        check_residency(trace, "cpu_frequency", power.frequency_residency, "frequency")


def test_numbers_of_cpus_that_cannot_be_cost_no_memory(step):
    with made_with(*((100 + i, 0, "cpu_idle", {"state": i, "cpu_id": (1 << 32) - i - 1}) for i in range(3))).open() as trace:
        assert rows(power.idle_residency(trace), "cpu", "state", "time")[-2:] == [
            ((1 << 32) - 1, -2, 0), ((1 << 32) - 1, 0, 2)]


def test_fields_that_are_no_numbers_are_named(step):
    odd = {("raw_syscalls", "sys_enter"): ["char id[16]"], ("raw_syscalls", "sys_exit"): ["long id", "long ret"],
           ("irq", "softirq_entry"): ["char vec[16]"], ("irq", "softirq_exit"): ["unsigned int vec"],
           ("power", "cpu_idle"): ["char state[16]", "u32 cpu_id"],
           ("sched", "sched_switch"): ["char prev_pid[16]", "int next_pid"],
           ("ftrace", "hwlat"): ["char duration[8]"], ("ftrace", "function"): ["char ip[8]"]}
    made = Recorder(odd)
    for i, (_, name) in enumerate(odd):
        made.add_fields(100 + i, 0, name, {})
    with made.open() as trace:
        for analysis in (systemcalls.syscalls, irqs.irq_time, power.idle_residency, tasks.task_states, cpus.cpu_busy,
                         osnoise.noise, profile.function_profile):
            with pytest.raises(ftbuf.FormatError, match="expected to be a number"):
                analysis(trace)


@st.composite
def power_programs(draw):
    made, ts = Recorder(KINDS, abi=make_abi(subbuf_size=512)), 1000
    for _ in range(draw(st.integers(0, 30))):
        ts += draw(st.integers(0, 9))
        cpu = draw(st.integers(0, 2))
        if draw(st.integers(0, 9)) == 0:
            made.lose(cpu, 1)
        state = draw(st.sampled_from([0, 1, 2, 0xFFFFFFFF, 0xFFFFFFFE]))
        made.add_fields(ts, cpu, "cpu_idle", {"state": state, "cpu_id": draw(st.integers(0, 3))})
    return made.build()


@given(power_programs(), st.sampled_from(["1", "100", "1 MB"]))
def test_any_idle_states(data, size):
    with pytest.MonkeyPatch.context() as patch, ftbuf.open(data) as trace:
        patch.setattr(power, "STEP", size)
        check_residency(trace, "cpu_idle", power.idle_residency, "state")


# ---- noise ----

NOISE = {
    ("ftrace", "osnoise"): ("u64 noise", "u64 runtime", "u64 max_sample", "unsigned int hw_count", "unsigned int nmi_count",
                            "unsigned int irq_count", "unsigned int softirq_count", "unsigned int thread_count"),
    ("ftrace", "timerlat"): ("unsigned int seqnum", "int context", "u64 timer_latency"),
    ("ftrace", "hwlat"): ("u64 duration", "u64 outer_duration", "u64 nmi_total_ts", "s64 tv_sec", "long tv_nsec",
                          "unsigned int nmi_count", "unsigned int seqnum", "unsigned int count"),
    ("osnoise", "irq_noise"): ("u64 start", "u64 duration", "__data_loc char[] desc", "int vector"),
    ("osnoise", "thread_noise"): ("char comm[16]", "u64 start", "u64 duration", "pid_t pid"),
    ("osnoise", "sample_threshold"): ("u64 start", "u64 duration", "u64 interference"),
}


def test_noise(step):
    made = Recorder(NOISE)
    for i, (value, single) in enumerate([(1000, 400), (3000, 300)]):
        made.add_fields(100 + i, 1, "osnoise", {"noise": value, "runtime": 100_000, "max_sample": single, "irq_count": 3})
    for i, (context, latency) in enumerate([(0, 50), (1, 90), (0, 70), (1, 60)]):
        made.add_fields(200 + i, 0, "timerlat", {"context": context, "timer_latency": latency})
    for i, (inner, outer) in enumerate([(12, 9), (5, 30)]):
        made.add_fields(300 + i, 0, "hwlat", {"duration": inner, "outer_duration": outer, "count": 2})
    for i, pid in enumerate((7, 7, 8)):
        made.add_fields(400 + i, 0, "thread_noise", {"comm": "cc1", "pid": pid, "duration": 10 * (i + 1)})
    made.add_fields(500, 0, "irq_noise", {"desc": "timer", "vector": 236, "duration": 99})
    made.add_fields(501, 0, "sample_threshold", {"duration": 5})
    with made.open() as trace:
        found = osnoise.noise(trace)
        columns = ("cpu", "periods", "runtime", "noise", "available", "max_noise", "max_single", "irq", "nmi")
        assert rows(found.osnoise, *columns) == [(1, 2, 200_000, 4000, 0.98, 3000, 400, 6, 0)]
        assert rows(found.timerlat, "cpu", "context", "count", "last", "min", "mean", "max") == [
            (0, "irq", 2, 70, 50, 60, 70), (0, "thread", 2, 60, 60, 75, 90)]
        assert rows(found.hwlat, "cpu", "samples", "max_inner", "max_outer", "count") == [(0, 2, 12, 30, 4)]
        assert rows(found.sources, "kind", "id", "name", "count", "time") == [
            ("irq", 236, "timer", 1, 99), ("thread", 7, "cc1", 2, 30), ("thread", 8, "cc1", 1, 30), ("any", 0, "", 1, 5)]


def test_noise_that_was_not_recorded():
    with Recorder(NOISE).open() as trace:
        found = osnoise.noise(trace)
        assert [t.num_rows for t in (found.osnoise, found.timerlat, found.hwlat, found.sources)] == [0] * 4


# ---- the corpus ----

SCHED_CASES = [c for c in corpus_cases() if any("sched_switch" in e for e in c.info["events"]) or "sched" in c.name]
IRQ_CASES = [c for c in corpus_cases() if c.name.endswith(("-irq", "-mixed", "-allevents"))]
SYSCALL_CASES = [c for c in corpus_cases() if c.name.endswith(("-syscalls", "-mixed", "-allevents", "-mmap"))]


def recorded(case, corpus_layout):
    where = corpus_layout(case)
    return next(iter(sorted(where.glob("*.dat"))), where)


@pytest.mark.corpus
@pytest.mark.parametrize("case", SCHED_CASES, ids=lambda c: c.name)
def test_schedules_of_the_corpus(case, corpus_layout):
    with ftbuf.open(recorded(case, corpus_layout), errors="skip") as trace:
        if not sched.occurs(trace, "sched:sched_switch"):
            return
        trace = sched.one_buffer(trace, ["sched:sched_switch"])
        check_tasks(trace)
        check_cpus(trace)


@pytest.mark.corpus
@pytest.mark.parametrize("case", IRQ_CASES, ids=lambda c: c.name)
def test_interrupts_of_the_corpus(case, corpus_layout):
    with ftbuf.open(recorded(case, corpus_layout), errors="skip") as trace:
        if set(irqs.irq_time(trace)["kind"]) <= set(PAIRS):
            check_irqs(trace)
        if "cpu_idle" in trace.events:
            check_residency(trace, "cpu_idle", power.idle_residency, "state")


@pytest.mark.corpus
@pytest.mark.parametrize("case", SYSCALL_CASES, ids=lambda c: c.name)
def test_system_calls_of_the_corpus(case, corpus_layout):
    with ftbuf.open(recorded(case, corpus_layout), errors="skip") as trace:
        if "sys_enter" in trace.events:
            check_syscalls(trace)


@pytest.mark.corpus
@pytest.mark.parametrize("case", [c for c in corpus_cases() if "osnoise" in c.name or "timerlat" in c.name or "hwlat" in c.name],
                         ids=lambda c: c.name)
def test_noise_of_the_corpus(case, corpus_layout):
    with ftbuf.open(recorded(case, corpus_layout), errors="skip") as trace:
        found = osnoise.noise(trace)
        for event, table, field in (("osnoise", found.osnoise, "noise"), ("hwlat", found.hwlat, "duration"),
                                    ("timerlat", found.timerlat, "timer_latency")):
            key = f"ftrace:{event}"
            values = [r[field] for r in trace.records([key])] if trace[key].key in trace.events else []
            name = {"osnoise": "max_noise", "hwlat": "max_inner", "timerlat": "max"}[event]
            assert max(table[name].tolist(), default=0) == max(values, default=0)


# ---- the command ----


@pytest.mark.parametrize("what", ["tasks", "cpus", "syscalls"])
def test_the_command(what, capsys):
    assert main(["tasks", "--what", what, str(EXAMPLE)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 2
    assert main(["tasks", "--what", what, "--json", str(EXAMPLE)]) == 0
    assert len(json.loads(capsys.readouterr().out)[what]) >= len(lines) - 2


def test_titles_stand_over_several_tables(tmp_path, capsys):
    made = Recorder(NOISE)
    made.add_fields(100, 0, "osnoise", {"noise": 1, "runtime": 8, "irq_count": 1})
    made.add_fields(101, 0, "irq_noise", {"desc": "timer", "vector": 236, "duration": 99})
    path = tmp_path / "noise.dat"
    path.write_bytes(made.build())
    assert main(["tasks", "--what", "noise", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].strip() == "Operating System Noise" and "87.50000" in out
    assert "\n\nsources:\nkind" in out
