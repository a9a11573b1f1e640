"""Steps of bounded memory are together what one decode of everything gives; everything is found without being named."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from corpus_data import ROOT
from filebuilder import BufferSpec, TraceDat
from pagebuilder import ABIS, event, format_text, make_format, pages_of

import ftbuf
from ftbuf.arguments import parse_size
from ftbuf.plan import ORDER

EVENTS = ["sched_waking", "sched_switch"]
ABI = ABIS["le64"]
COMMON, RARE, NEVER = (make_format(name, i, ["int number"]) for i, name in enumerate(("common", "rare", "never"), 40))


@pytest.fixture
def trace():
    with ftbuf.open(ROOT / "examples" / "sched.dat") as trace:
        yield trace


def test_steps_of_several_events_make_up_their_tables(trace):
    whole = trace.tables(EVENTS)
    steps = list(trace.iterate(EVENTS, step_size="1 KB"))
    assert len(steps) > 1
    assert all(list(step) == EVENTS for step in steps)
    for name in EVENTS:
        assert steps[0][name].column_names == whole[name].column_names
        for column in whole[name]:
            np.testing.assert_array_equal(np.concatenate([step[name][column] for step in steps]), whole[name][column])


def test_a_step_is_later_than_the_one_before(trace):
    times = [np.concatenate([t["common_ts"] for t in step.values()]) for step in trace.iterate(EVENTS, step_size=4096)]
    assert all(before.max() <= after.min() for before, after in pairwise(t for t in times if len(t)))


def test_each_event_may_have_columns_of_its_own(trace):
    columns = {"sched_switch": ["common_ts", "next_pid"], "sched_waking": ["pid"]}
    for step in trace.iterate(EVENTS, columns):
        assert {name: table.column_names for name, table in step.items()} == columns
    step = next(trace.iterate(EVENTS, {"sched_waking": ["pid"]}))
    assert step["sched_switch"].column_names == trace["sched_switch"].columns


def test_what_is_wrong_is_told(trace):
    with pytest.raises(ftbuf.EventNotFoundError):
        next(trace.iterate(["no_such_event"]))
    with pytest.raises(TypeError, match="columns is a list"):
        next(trace.iterate(EVENTS, {"sched_switch": "next_pid"}))
    with pytest.raises(ValueError, match="size"):
        next(trace.iterate(EVENTS, step_size="many"))


@pytest.mark.parametrize(("text", "n"), [("1", 1), ("64 MB", 64 << 20), ("1 GiB", 1 << 30), ("1.5 MB", 3 << 19), ("2k", 2048),
                                         (" 10 b ", 10), (7, 7), (np.int64(8), 8)])
def test_sizes(text, n):
    assert parse_size(text) == n


@pytest.mark.parametrize(("size", "error"), [
    ("", ValueError), ("MB", ValueError), ("-1", ValueError), ("0", ValueError), (0, ValueError), ("1 XB", ValueError),
    ("1e3", ValueError), (1.5, TypeError), (None, TypeError),
])
def test_what_is_no_size(size, error):
    with pytest.raises(error, match="size"):
        parse_size(size)


def test_losses_alone_are_those_of_the_survey(recording):
    with ftbuf.open(recording.path, errors="skip") as alone, ftbuf.open(recording.path, errors="skip") as surveyed:
        views = [(t, t.window(t.start and t.start + 100_000), t.window(where="common_pid == 0")) for t in (alone, surveyed)]
        for a, b in zip(*views, strict=True):
            assert b.events is not None  # looks at every record
            for name in b.lost:
                np.testing.assert_array_equal(a.lost[name], b.lost[name])


# ---- all events that occur, without having been asked for by name ----


def pages_with_a_rare_event() -> bytes:
    """Thousands of sub-buffers of one event, and one record of another amid them."""
    common = [event(COMMON, ABI, number=i) for i in range(100)]
    pages = [bytes(pages_of(ABI, *common, ts=1000 * i)) for i in range(2000)]
    pages[777] = bytes(pages_of(ABI, event(RARE, ABI, number=5), ts=1000 * 777))
    return b"".join(pages)


def test_an_event_that_is_met_late_has_its_table():
    formats = {"test": [format_text(COMMON), format_text(RARE), format_text(NEVER)]}
    data = TraceDat(ABI, formats=formats, buffers=[BufferSpec(pages={0: pages_with_a_rare_event()})]).build().data
    with ftbuf.open(data) as trace:
        tables = trace.tables()
        assert list(tables) == ["common", "rare"]
        assert tables["rare"]["number"].tolist() == [5]
        assert {name: len(table) for name, table in tables.items()} == trace.events
        assert list(trace.window(start=5000, end=6000).tables()) == ["common"]


def many_kinds(rng: random.Random) -> tuple[list[ftbuf.EventFormat], list[bytes]]:
    """Events that are met one after another, in runs and woven into each other."""
    formats = [make_format(f"kind{k:02}", 50 + k, ["int number", "char name[16]", "__data_loc char[] text"]) for k in range(40)]
    records = []
    for i in range(6000):
        known = formats[: 1 + i // 150]
        fmt = known[-1] if i % 1000 < 500 else rng.choice(known)
        records.append(event(fmt, ABI, number=i, name=b"n%d" % (i % 9), text=b"t%d" % i, common_pid=i % 5))
    return formats, records


@pytest.mark.parametrize("options", [{}, {"threads": 3}, {"order": "cpu"}, {"columns": ["number", ORDER]}], ids=str)
def test_tables_of_all_events_are_those_of_each(options):
    formats, records = many_kinds(random.Random(7))
    halves = {cpu: pages_of(ABI, *records[cpu::2], ts=1000 + cpu) for cpu in range(2)}
    data = TraceDat(ABI, formats={"test": [format_text(f) for f in formats]}, buffers=[BufferSpec(pages=halves)]).build().data
    with ftbuf.open(data) as trace:
        tables = trace.tables(**options)
        assert list(tables) == [f.name for f in formats]
        columns = options.get("columns")
        for name, table in tables.items():
            alone = trace[name].table(columns, order=options.get("order", "time"))
            for column in alone:
                if column != ORDER:
                    np.testing.assert_array_equal(table[column], alone[column])
        if columns:  # the place among all records, not among its own
            assert sorted(n for t in tables.values() for n in t[ORDER].tolist()) == list(range(len(records)))


def test_an_event_of_several_files_has_one_table():
    """Each file numbers its events in its own way; one of them meets an event long before the other."""
    formats, records = many_kinds(random.Random(8))
    other = [replace(f, id=f.id + 7) for f in reversed(formats[:20])]
    theirs = [event(f, ABI, number=-i, name=b"x", text=b"y") for f in other for i in range(40)]
    files = [TraceDat(ABI, formats={"test": [format_text(f) for f in known]},
                      buffers=[BufferSpec(pages={0: pages_of(ABI, *made, ts=ts)})]).build().data
             for known, made, ts in ((formats, records, 1000), (other, theirs, 1200))]
    with ftbuf.open(files) as trace:
        tables = trace.tables()
        assert {name: len(t) for name, t in tables.items()} == trace.events
        for name, table in tables.items():
            alone = trace[name].table()
            assert table.column_names == alone.column_names
            for column in alone:
                np.testing.assert_array_equal(table[column], alone[column])


def test_all_events_are_the_same_whether_named_or_not(trace):
    named, found = trace.tables(list(trace.events)), trace.tables()
    assert {n: t.column_names for n, t in named.items()} == {n: t.column_names for n, t in found.items()}
    for name, table in found.items():
        for column in table:
            np.testing.assert_array_equal(np.asarray(table[column], object), np.asarray(named[name][column], object))
