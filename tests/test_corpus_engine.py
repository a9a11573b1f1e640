"""Every recording of the corpus through the public API, against the kernel's and trace-cmd's texts of the same data."""

from __future__ import annotations

import collections
import functools
import re
from pathlib import Path

import pytest
from corpus_data import file_cases, raw_cases
from expected_texts import (
    KERNEL,
    RAW,
    TRACE_CMD,
    Line,
    dropped,
    event_lines,
    field_numbers,
    kernel_numbers,
    printed_plainly,
    raw_numbers,
    same_time,
)

import ftbuf
from ftbuf.formats import Kind

pytestmark = pytest.mark.corpus

LONG = 1000  # bytes of a marker that is too long for a line of the kernel's text


def text_of(case, name: str) -> str | None:
    data = case.read(name)
    return None if data is None else data.decode("utf-8", "surrogateescape")


def with_text(name: str) -> list:
    return [pytest.param(c, id=c.name) for c in raw_cases() if name in c.names()]


@functools.lru_cache(maxsize=1)
def events_of(path: Path) -> list:
    with ftbuf.open(path) as trace:
        return list(trace.records())


def is_long(event) -> bool:
    return event.name in ("print", "raw_data") and len(event.payload) > LONG


def printed_events(events: list, lines: list[Line]):
    """(event, line) pairs: the text has all events in our order, but for markers too long for a line and their next."""
    at = 0
    for line in lines:
        while not is_same(events[at], line):
            assert is_long(events[at]) or is_long(events[at - 1]), f"{events[at]!r} is not in the text: {line}"
            at += 1
        yield events[at], line
        at += 1
    assert all(map(is_long, events[at:]))


def is_same(event, line: Line) -> bool:
    return (event.cpu, event.pid) == (line.cpu, line.pid) and same_time(event.ts, line.ts)


def scalars(event) -> dict:
    return {f.name: f for f in event.format.fields if f.kind is Kind.SCALAR}


def same_bits(value: int, printed: int, bits: int) -> bool:
    return (value ^ printed) & ((1 << bits) - 1) == 0


# ------------------------------------------------------------------------------------------------------ raw cases


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in raw_cases()])
def test_counts(case, corpus_layout):
    """As many events, losses and problems as the recording has; tables have a row for each event."""
    raw = case.info["raw"]
    with ftbuf.open(corpus_layout(case)) as trace:
        timeline = trace.timeline()
        assert timeline.num_rows == raw["data_events"]
        assert trace.lost.num_rows == raw["missed_pages"]
        assert sum(n >= 0 for n in trace.lost["count"].tolist()) == raw["missed_with_count"]
        assert trace.problems.num_rows == 0
        counted = collections.Counter(timeline["event"].tolist())
        tables = trace.tables()
        assert {name: t.num_rows for name, t in tables.items()} == trace.events
        assert {n: c for n, c in counted.items() if n in tables} == trace.events


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in raw_cases()])
def test_tables_are_the_records(case, corpus_layout):
    """Columns and objects are two ways to the same values."""
    path = corpus_layout(case)
    rows = collections.defaultdict(list)
    for event in events_of(path):
        rows[event.name].append(event)
    with ftbuf.open(path) as trace:
        for name, table in trace.tables().items():
            events = rows[name.rpartition(":")[2]]
            events = [e for e in events if ":" not in name or e.format.system == name.partition(":")[0]]
            assert table["common_ts"].tolist() == [e.ts for e in events]
            assert table["common_cpu"].tolist() == [e.cpu for e in events]
            for field in events[0].format.own_fields if events else ():
                column = table[field.name].tolist()
                values = [e[field.name] for e in events]
                assert [plain(v) for v in column] == [plain(v) for v in values], f"{name}.{field.name}"


def plain(value):
    """Arrays, bytes and lists as lists of ints."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return list(value) if isinstance(value, (bytes, list)) else value


@pytest.mark.parametrize("case", with_text("trace.txt"))
def test_kernel_text(case, corpus_layout):
    """Order, CPU, task, time and event name of every line, and the numbers that it prints as they are."""
    lines = event_lines(text_of(case, "trace.txt"), KERNEL)
    if not lines:
        pytest.skip("a text of another layout")
    plain_of = functools.cache(lambda fmt: printed_plainly(fmt, case.info["long_size"]))
    for event, line in printed_events(events_of(corpus_layout(case)), lines):
        fmt = event.format
        if line.comm != "<...>":
            assert event.comm == line.comm
        if fmt.system not in ("ftrace", "syscalls", ""):  # "": an event without a format, as those of blktrace
            assert line.body.startswith(f"{event.name}: ")
        if fmt.system == "synthetic" and case.info["endian"] == "big":
            continue  # before 6.4 a big-endian kernel prints the wrong half of small fields, K:trace_events_synth.c
        fields = scalars(event)
        for printed, number in kernel_numbers(line.body, plain_of(fmt)):
            if printed.field in fields:
                bits = min(printed.bits, 8 * fields[printed.field].size)
                assert same_bits(event[printed.field], number, bits), f"{printed.field} of {line}"


@pytest.mark.parametrize("case", with_text("trace.raw.txt"))
def test_raw_text(case, corpus_layout):
    """Time stamps to the nanosecond, and event ids."""
    lines = event_lines(text_of(case, "trace.raw.txt"), RAW)
    if not lines:
        pytest.skip("a text of another layout")
    for event, line in printed_events(events_of(corpus_layout(case)), lines):
        if match := re.fullmatch(r"type: (\d+)", line.body):
            order = "big" if case.info["endian"] == "big" else "little"
            assert int.from_bytes(event.payload[:2], order) == int(match[1])
            assert event.format.id in (int(match[1]), -1)


@pytest.mark.parametrize("case", with_text("trace.fields.txt"))
def test_fields_text(case, corpus_layout):
    """The kernel's own dump of every field."""
    numbers = 0
    for event, line in printed_events(
        events_of(corpus_layout(case)), event_lines(text_of(case, "trace.fields.txt"), KERNEL)
    ):
        fields = scalars(event)
        for name, number in field_numbers(line.body.partition(": ")[2]):
            if name in fields:
                assert same_bits(event[name], number, 8 * fields[name].size), f"{name} of {line}"
                numbers += 1
        for field in event.format.own_fields:
            shown = field.kind is Kind.STRING and f"{field.name}=" in line.body
            if shown and event[field.name].isprintable():  # else the kernel shows it in hex
                assert f"{field.name}={event[field.name]}" in line.body
    assert numbers > 0


# ------------------------------------------------------------------------------------------------- trace.dat cases

DAT = re.compile(r"report\.(?P<file>.+\.dat)\.R\.txt")
REPORTS = [
    pytest.param(case, match["file"], id=f"{case.name}-{match['file']}")
    for case in file_cases()
    for match in map(DAT.fullmatch, case.names())
    if match
]


@pytest.mark.parametrize(("case", "file"), REPORTS)
def test_trace_dat(case, file, corpus_layout):
    """One event for each line of ``report -R``, with its numbers; times to the nanosecond from ``report -t``."""
    path = corpus_layout(case) / file
    with ftbuf.open(path) as trace:
        if trace.text is not None:
            pytest.skip("a recording that is a text")
        assert trace.problems.num_rows == 0
        assert trace.timeline().num_rows == sum(trace.events.values())
        buffers = trace.buffers
    events = events_of(path)
    text = text_of(case, f"report.{file}.R.txt")
    lines = event_lines(text, TRACE_CMD)
    assert [(e.cpu, e.lost) for e in events if e.lost is not None] == dropped(text)
    exact = event_lines(text_of(case, f"report.{file}.t.txt"), TRACE_CMD)
    assert len(events) == len(lines)
    exact = exact if len(exact) == len(lines) else lines  # function graph: -t shows a call and its return as one line
    for event, line, timed in zip(events, lines, exact, strict=True):
        assert (event.cpu, event.pid, event.name) == (line.cpu, line.pid, line.name)
        assert event.comm == line.comm or line.comm == "<...>"
        assert same_time(event.ts, line.ts) and same_time(event.ts, timed.ts)
        if len(buffers) > 1:
            assert buffers[event.buffer] == line.buffer
        fields = scalars(event)
        for name, meanings in raw_numbers(line.body):
            if name in fields:
                bits = 8 * fields[name].size
                assert any(same_bits(event[name], n, bits) for n in meanings), f"{name}: {event[name]} in {line}"
