"""Which part of a snapshot a latency tracer's text shows."""

from __future__ import annotations

from report_helpers import FUNCTION, FakeRecord, FakeSymbols, entry, event_format, func, leave

from ftbuf.sections import END_MOST, GRAPH_START_COST, START_COST, Section, longest_section

SYMBOLS = FakeSymbols()
WAKEUP = event_format("ftrace", "wakeup", "next_pid", "next_prio")
STACK = event_format("ftrace", "kernel_stack", "size")
INSIDE = 0x20  # of a function: an address that a call returns to


def call(ts, ip, **more):
    return FakeRecord(FUNCTION, ts, {"ip": ip, "parent_ip": func(9)}, **more)


def test_the_section_is_between_the_tracers_own_records():
    older = [call(0, func(0) + INSIDE), call(5_000, func(1)), call(9_000, func(0) + INSIDE)]
    other_cpu = [call(15_000, func(4) + INSIDE, cpu=1)]
    section = [
        call(20_000, func(2) + INSIDE, pid=7),
        call(21_000, func(3), pid=7),
        call(90_000, func(2) + INSIDE, pid=7),
        call(91_000, func(5) + INSIDE, pid=7),
        FakeRecord(STACK, 95_000, {"size": 0}, pid=7),
    ]
    records = [*older, *other_cpu, *section]
    found = longest_section("irqsoff", records, 70, SYMBOLS)
    assert records[found.begin:] == section
    assert records[found.end] is section[2]
    assert found.start == 20_000 - START_COST
    assert (found.task, found.started_at, found.ended_at) == (7, func(9), func(9))
    # 71 us before the report's own record the section had begun: something came between
    assert longest_section("irqsoff", records, 73, SYMBOLS).start == 91_000 + 500 - 73_000
    assert longest_section("irqsoff", records, 9_000, SYMBOLS).start == 20_000 - START_COST  # of another section


def test_in_a_graph_they_are_calls_that_take_no_time():
    def mark(ts, number):
        return [entry(ts, func(number)), leave(ts + 100, func(number), 0, 0)]

    section = [*mark(20_000, 1), entry(30_000, func(2)), leave(31_000, func(2)), *mark(60_000, 1), *mark(61_000, 3)]
    records = [*mark(0, 1), *mark(9_000, 1), *section]
    found = longest_section("preemptoff", records, 40, SYMBOLS)
    assert records[found.begin:] == section
    assert found.start == 20_000 - GRAPH_START_COST


def test_a_function_in_the_graph_returns_to_the_tracer():
    def mark(ts, number):
        at = func(number) + INSIDE
        return [entry(ts, at), leave(ts + 100, at, 0, 0)]

    inside = [entry(25_000, func(5)), entry(26_000, func(6)), leave(27_000, func(6))]
    records = [*mark(20_000, 1), *inside, *mark(60_000, 5), *mark(61_000, 3)]
    found = longest_section("irqsoff", records, 40, SYMBOLS)
    assert (found.started_at, found.ended_at) == (func(1) + INSIDE, SYMBOLS.by_name("return_to_handler"))
    found = longest_section("irqsoff", [*mark(20_000, 1), *inside, *mark(60_000, 6), *mark(61_000, 3)], 40, SYMBOLS)
    assert found.ended_at == func(6) + INSIDE
    assert longest_section("preemptoff", records, 40, SYMBOLS).ended_at == func(5) + INSIDE


def test_without_such_records_the_latency_itself_tells():
    records = [call(ts, func(1)) for ts in (0, 50_000, 60_000, 100_000)]
    assert longest_section("irqsoff", records, 45, SYMBOLS).begin == 2


def test_a_wakeup_shows_everything_and_the_task_that_woke():
    woken = FakeRecord(WAKEUP, 1_000, {"next_pid": 78, "next_prio": 39})
    records = [woken, call(500_000, func(1))]
    found = longest_section("wakeup_rt", records, 507, SYMBOLS)  # 8 us outside of the records
    assert (found.begin, found.end) == (0, 1)
    assert found.start == 1_000 - 6_000
    assert longest_section("wakeup_rt", records, 599, SYMBOLS).start == 1_000 - 100_000 + END_MOST
    assert longest_section("wakeup_rt", records, 0, SYMBOLS).start == 1_000
    assert (found.task, found.policy, found.rt_prio) == (78, 1, 60)


def test_nothing_recorded():
    assert longest_section("wakeup", [], 0, SYMBOLS) == longest_section("irqsoff", [], 0, SYMBOLS) == Section()
