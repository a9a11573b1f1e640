"""What analyses share: tables of columns, samples in groups, text of tables."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftbuf.analysis.stats import FINENESS, Keys, Samples, bucket_bounds, buckets_of
from ftbuf.analysis.tables import beside, coarse_histogram, histogram_table, rows_of, stacked, table, total_table
from ftbuf.cli.tables import (
    Column,
    microseconds,
    percent,
    print_json,
    printable,
    rows,
    seconds,
    table_lines,
)
from ftbuf.table import Encoded, Lists, Plain

SAMPLE = st.integers(0, (1 << 62) - 1)


def test_columns_of_every_kind():
    made = table({"n": [1, 2], "x": [1.5, math.nan], "name": ["a", "b"], "yes": [True, False],
                  "own": np.array([3, 4], np.uint16), "parts": [np.array([1]), np.array([2, 3])]})
    kinds = [type(made.column(name)) for name in made]
    assert kinds == [Plain, Plain, Encoded, Plain, Plain, Lists]
    assert [made[n].dtype for n in ("n", "x", "yes", "own")] == [np.int64, np.float64, bool, np.uint16]
    assert made["parts"][1].tolist() == [2, 3]
    assert not made["own"].flags.writeable
    assert table({"n": [], "m": np.empty(0)}).num_rows == 0
    with pytest.raises(ValueError, match="different lengths"):
        table({"a": [1], "b": []})
    with pytest.raises(TypeError):
        table({"a": [object()]})


def test_what_is_given_stays_writeable():
    own = np.array([3, 1, 2])
    table({"n": own})
    own[0] = 5


def test_rows_and_stacks():
    made = table({"n": [3, 1, 2], "name": ["c", "a", "b"]})
    assert rows_of(made, np.argsort(made["n"]))["name"].tolist() == ["a", "b", "c"]
    assert rows_of(made, made["n"] > 1)["n"].tolist() == [3, 2]
    assert stacked([made, rows_of(made, np.array([0]))])["name"].tolist() == ["c", "a", "b", "c"]
    assert stacked([made]) is made


def test_tables_side_by_side():
    a = table({"comm": ["x", "y"], "count": [1, 2], "max": [7, 8]})
    b = table({"comm": ["z", "y"], "count": [5, 6], "max": [9, 10]})
    both = beside(a, b, "comm", ["count", "max"])
    assert [both[n].tolist() for n in ("comm", "count_a", "count_b")] == [["x", "y", "z"], [1, 2, 0], [0, 6, 5]]
    np.testing.assert_array_equal(both["max_b"], [math.nan, 10, 9])
    assert beside(rows_of(a, np.zeros(0, int)), b, "comm", ["count"])["count_b"].tolist() == [5, 6]


@given(st.lists(st.lists(st.one_of(st.integers(0, 50), st.integers(-(1 << 63), (1 << 63) - 1)), max_size=20), max_size=5))
def test_a_key_keeps_its_group(steps):
    keys = Keys()
    met = [(k, g) for step in steps for k, g in
           zip(step, keys.groups(np.array(step, np.int64)).tolist(), strict=True)]
    assert len(set(met)) == len({k for k, _ in met}) == len({g for _, g in met}) == len(keys)
    assert all(keys.values[g] == k for k, g in met)
    assert not met or max(g for _, g in met) == len(keys) - 1


def test_groups_are_numbered_as_keys_are_met():
    keys = Keys()
    assert keys.groups(np.array([1 << 40, 3, 1 << 40])).tolist() == [0, 1, 0]
    assert keys.groups(np.array([3, 7], np.uint16)).tolist() == [1, 2]
    assert keys.groups(np.array([1 << 63], np.uint64)).tolist() == [3]
    assert keys.groups(np.zeros(0, np.int64)).tolist() == []
    assert keys.values.tolist() == [1 << 40, 3, 7, -1 << 63]


@given(SAMPLE, st.integers(0, 7))
def test_a_bucket_holds_its_values(value, fineness):
    bucket = buckets_of(np.array([value]), fineness)
    low, high = bucket_bounds(bucket, fineness)
    assert low[0] <= value <= high[0]
    assert high[0] - low[0] <= max(low[0] >> fineness, 0)
    after, _ = bucket_bounds(bucket + 1, fineness)
    assert after[0] == high[0] + 1


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1 << 40)), max_size=30), max_size=4),
       st.sampled_from([50, 90, 99, 99.9, 100]))
def test_samples_against_sorting(steps, q):
    samples = Samples()
    for step in steps:
        samples.add(np.array([g for g, _ in step], np.int64), np.array([v for _, v in step], np.int64))
    for group in range(len(samples)):
        own = [v for step in steps for g, v in step if g == group]
        assert samples.count[group] == len(own)
        if not own:
            assert (samples.least[group], samples.percentile(q)[group]) == (0, 0)
            assert np.isnan(samples.mean[group])
            continue
        assert (samples.least[group], samples.max[group], samples.last[group]) == (min(own), max(own), own[-1])
        assert samples.mean[group] == pytest.approx(sum(own) / len(own))
        exact = sorted(own)[max(math.ceil(len(own) * q / 100), 1) - 1]
        assert exact <= samples.percentile(q)[group] <= exact * (1 + 1 / 128)
        low, high, count = samples.histogram(group)
        assert count.sum() == len(own)
        assert all(((low <= v) & (v <= high)).sum() == 1 for v in own)
    if len(samples):
        low, high, count = samples.histogram()
        assert count.sum() == sum(map(len, steps))
        assert (low[1:] > high[:-1]).all()


def test_text_of_a_table():
    made = table({"task": ["a\n", "long name"], "took": [1_234_567, 5], "share": [0.25, math.nan]})
    shown = {"task": Column(), "took": Column("took us", microseconds), "share": Column("%", percent)}
    assert list(table_lines(made, shown)) == ["task        took us     %", "a\\x0a      1234.567  25.0",
                                              "long name     0.005     -"]
    assert list(table_lines(made, most=1))[-1] == "... and 1 more"
    assert list(table_lines(table({"n": []}))) == ["n"]
    assert printable("ok \udcff") == "ok \\xff"
    assert seconds(-1_500_000_000) == "-1.500000000"


def test_json_of_a_table(capsys):
    made = table({"task": ["a"], "mean": [math.nan]})
    assert rows(made)[0]["task"] == "a"
    print_json({"tasks": made, "kind": "x"})
    assert json.loads(capsys.readouterr().out) == {"tasks": [{"task": "a", "mean": None}], "kind": "x"}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1 << 40)), max_size=60), st.integers(0, FINENESS))
def test_fine_histograms_hold_the_coarse_ones(values, fineness):
    samples, groups = Samples(), np.array([group for group, _ in values], np.int64)
    samples.grow(4)
    samples.add(groups, np.array([value for _, value in values], np.int64))
    headings, order = table({"name": ["a", "b", "c", "d"]}), np.array([2, 0, 3, 1])
    fine, coarse = (histogram_table(headings, samples, order, n) for n in (fineness, 0))
    made = coarse_histogram(fine)
    assert {name: made[name].tolist() for name in made} == {name: coarse[name].tolist() for name in coarse}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1000)), min_size=1, max_size=60))
def test_the_row_of_all(values):
    samples = Samples()
    samples.add(np.array([group for group, _ in values], np.int64), np.array([value for _, value in values], np.int64))
    own = np.arange(len(samples))
    row = {name: column[0] for name, column in total_table(samples, [50.0], lost=own).to_dict().items()}
    numbers = sorted(value for _, value in values)
    median = numbers[-(-len(numbers) // 2) - 1]
    assert (row["count"], row["min"], row["max"], row["total"]) == (len(numbers), numbers[0], numbers[-1], sum(numbers))
    assert median <= row["p50"] <= median * 1.01 and row["lost"] == own.sum()
