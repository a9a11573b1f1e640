"""Steps of bounded memory are together what one decode of everything gives; everything is found without being named."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from corpus_data import ROOT
from filebuilder import BufferSpec, TraceDat
from pagebuilder import ABIS, event, format_text, make_format, pages_of

import ftbuf
from ftbuf.arguments import parse_size
from ftbuf.engine import clip
from ftbuf.survey import likely_events, sample_pieces

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
    """Thousands of sub-buffers of one event, and one record of another where no sample looks."""
    common = [event(COMMON, ABI, number=i) for i in range(100)]
    pages = [bytes(pages_of(ABI, *common, ts=1000 * i)) for i in range(2000)]
    pages[777] = bytes(pages_of(ABI, event(RARE, ABI, number=5), ts=1000 * 777))
    return b"".join(pages)


def test_an_event_that_no_sample_has_is_found_all_the_same():
    formats = {"test": [format_text(COMMON), format_text(RARE), format_text(NEVER)]}
    data = TraceDat(ABI, formats=formats, buffers=[BufferSpec(pages={0: pages_with_a_rare_event()})]).build().data
    with ftbuf.open(data) as trace:
        tables = trace.tables()
        assert list(tables) == ["common", "rare"]
        assert tables["rare"]["number"].tolist() == [5]
        assert {name: len(table) for name, table in tables.items()} == trace.events
        assert list(trace.window(start=5000, end=6000).tables()) == ["common"]


def test_all_events_are_the_same_whether_named_or_not(trace):
    named, found = trace.tables(list(trace.events)), trace.tables()
    assert {n: t.column_names for n, t in named.items()} == {n: t.column_names for n, t in found.items()}
    for name, table in found.items():
        for column in table:
            np.testing.assert_array_equal(np.asarray(table[column], object), np.asarray(named[name][column], object))


def test_samples_are_of_the_window():
    """What a window of one long segment is sampled at lies in it: else its events would be met in a second pass."""
    data = b"".join(bytes(pages_of(ABI, event(COMMON, ABI, number=i), ts=1000 * i)) for i in range(2000))
    file = TraceDat(ABI, formats={"test": [format_text(COMMON)]}, buffers=[BufferSpec(pages={0: data})]).build().data
    with ftbuf.open(file) as trace:
        for start, end in ((None, None), (1_500_000, 1_510_000), (0, 3000), (1_999_000, None)):
            view = trace.window(start, end)
            sources, window = view.recording.sources(), view.selection.window
            assert likely_events(trace.recording, sources, window) == [("test", "common")]
            piece = clip(sources[0], window)
            for sample in sample_pieces(sources[0], piece):
                assert piece.start <= sample.start < (sample.stop or len(data)) <= (piece.stop or len(data))
