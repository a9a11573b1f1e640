"""What leaves a trace: partitions for other processes, Parquet files, lazy frames."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context

import numpy as np
import pytest
from corpus_data import ROOT

import ftbuf

EXAMPLE = ROOT / "examples" / "sched.dat"


@pytest.fixture
def trace():
    with ftbuf.open(EXAMPLE) as trace:
        yield trace


# ---- partitions ----


def joined(tables: list[ftbuf.Table], name: str) -> list[object]:
    return np.concatenate([t[name] for t in tables]).tolist()


@pytest.mark.parametrize("size", [1, 1 << 12, 1 << 13, "1 GB"])
def test_partitions_together_are_the_whole(trace, size):
    parts = [pickle.loads(pickle.dumps(p)) for p in trace.partitions(size)]
    whole = trace["sched_switch"].table()
    assert len(parts) > 1 or size in (1 << 13, "1 GB")
    for name in whole.column_names:
        assert joined([p.table("sched_switch") for p in parts], name) == whole[name].tolist()
    assert all(a.end == b.start for a, b in pairwise(parts))
    assert (parts[0].start, parts[-1].end) == (None, None)


def test_partitions_of_every_kind_of_recording(recording):
    with ftbuf.open(recording.path, errors="skip") as trace:
        if trace.text is not None:
            pytest.skip("a text")
        parts = trace.partitions(1 << 14)
        times = trace.timeline()["common_ts"].tolist() if trace else []
        found = []
        for part in parts:
            with part.open() as piece:
                found += piece.timeline()["common_ts"].tolist()
    assert found == times or sorted(found) == sorted(times)  # a clock that steps back


def test_partitions_keep_what_the_view_has_chosen(trace):
    view = trace.window(trace.start + 1_000_000, trace.end, cpus=[0], pids=[0], where="sched_switch: next_pid != 0")
    parts = view.partitions(1 << 12)
    assert joined([p.table("sched_switch", ["common_ts"]) for p in parts], "common_ts") == view["sched_switch"].arrays(
        ["common_ts"])["common_ts"].tolist()
    assert parts[0].start == trace.start + 1_000_000 and parts[-1].end == trace.end
    assert set(parts[0].tables()) <= {"sched_switch"}


def test_partitions_in_other_processes(trace):
    parts = trace.partitions(1 << 13)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        counts = list(pool.map(count, parts))
    assert sum(counts) == len(trace["sched_switch"])


def count(part) -> int:
    return part.table("sched_switch", ["common_ts"]).num_rows


def test_what_another_process_cannot_open(trace):
    with EXAMPLE.open("rb") as file, ftbuf.open(file) as other, pytest.raises(ftbuf.UnsupportedError):
        other.partitions()
    with pytest.raises(ftbuf.UnsupportedError):
        trace.raw.partitions()
    with pytest.raises(ValueError):
        trace.partitions(0)
    with ftbuf.open(EXAMPLE.read_bytes(), ts_offset=5) as other:
        (part,) = other.partitions()
        with part.open() as again:
            assert again.start == trace.start + 5
    trace.close()
    with pytest.raises(ftbuf.ClosedError):
        trace.partitions()


# ---- Parquet ----


def test_parquet(trace, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    paths = trace.to_parquet(tmp_path / "new" / "folder", step_size="1 KB")
    assert set(paths) == set(trace.events)
    for name, path in paths.items():
        assert parquet.read_table(path).to_pydict() == trace[name].to_arrow().to_pydict()
        assert path == tmp_path / "new" / "folder" / f"{name}.parquet"
    paths = trace.window(cpus=[0]).to_parquet(tmp_path, ["sched:sched_switch"], compression="none")
    assert parquet.read_table(paths["sched_switch"]).num_rows == len(trace["sched_switch"].window(cpus=[0]))
    with pytest.raises(ftbuf.EventNotFoundError):
        trace.to_parquet(tmp_path, ["nope"])


# ---- lazy frames ----


@pytest.fixture
def pl():
    return pytest.importorskip("polars")


def test_a_lazy_frame_is_the_table(trace, pl):
    lazy = ftbuf.scan_trace(EXAMPLE, "sched_switch")
    assert lazy.collect_schema() == trace["sched_switch"].to_polars().schema
    assert lazy.collect().to_dicts() == trace["sched_switch"].to_polars().to_dicts()
    twice = ftbuf.scan_trace([EXAMPLE, EXAMPLE], "sched:sched_switch", cpus=[1], where="next_pid != 0")
    one = trace["sched_switch"].window(cpus=[1], where="next_pid != 0")
    assert len(twice.collect()) == 2 * one.table().num_rows
    with pytest.raises(ftbuf.EventNotFoundError):
        ftbuf.scan_trace(EXAMPLE, "nope")
    with pytest.raises(TypeError):
        ftbuf.scan_trace(EXAMPLE, "sched_switch", start=1.5)


def test_queries_are_those_of_the_whole_frame(trace, pl):
    frame = trace["sched_switch"].to_polars()
    start, middle = trace.start, (trace.start + trace.end) // 2
    ts, cpu, pid = pl.col("common_ts"), pl.col("common_cpu"), pl.col("next_pid")
    for predicate in (ts < middle, (ts >= middle) & (cpu == 1), pl.lit(middle) > ts, ts.is_between(start, middle), ts == start,
                      (ts < middle) | (cpu == 1), ~(ts < middle), (ts > middle) & (pid > 0), pid.is_in([0, 1]), ts > 1.5,
                      pl.col("next_comm") == "ftbwork", (cpu == 0) & (cpu == 1), ts + 1 > middle):
        for columns in (["next_pid", "next_comm"], ["common_ts"]):
            lazy = ftbuf.scan_trace(EXAMPLE, "sched_switch").filter(predicate).select(columns)
            assert lazy.collect().to_dicts() == frame.filter(predicate).select(columns).to_dicts(), str(predicate)
    assert ftbuf.scan_trace(EXAMPLE, "sched_switch").head(5).collect().to_dicts() == frame.head(5).to_dicts()
    assert ftbuf.scan_trace(EXAMPLE, "sched_switch").select(pl.len()).collect().item() == len(frame)


def test_only_what_a_query_needs_is_decoded(trace, pl, monkeypatch):
    asked = []
    iterate, window = ftbuf.EventView.iterate, ftbuf.EventView.window
    monkeypatch.setattr(ftbuf.EventView, "iterate", lambda v, c=None, **o: (asked.append(c), iterate(v, c, **o))[1])
    monkeypatch.setattr(ftbuf.EventView, "window", lambda v, *a, **o: (asked.append((a, o)), window(v, *a, **o))[1])
    lazy = ftbuf.scan_trace(EXAMPLE, "sched_switch", cpus=[0, 1])
    asked.clear()
    middle = (trace.start + trace.end) // 2
    lazy.filter((pl.col("common_ts") >= middle) & (pl.col("common_cpu") == 1)).select("next_pid").collect()
    ((start, end), options), columns = asked
    assert (start, end, options["cpus"]) == (middle, None, {1})
    assert set(columns) == {"next_pid", "common_ts", "common_cpu"}


def test_dask(trace):
    """Not among what the tests need: run where Dask is installed."""
    pytest.importorskip("dask.dataframe")
    whole = trace["sched_switch"].to_pandas()
    frame = ftbuf.from_dask([EXAMPLE, EXAMPLE], "sched_switch", target_bytes=1 << 12)
    assert frame.npartitions > 2 and list(frame.columns) == list(whole.columns)
    found = frame.compute(scheduler="threads")
    assert found["common_ts"].tolist() == whole["common_ts"].tolist() * 2
    assert found["next_comm"].tolist() == whole["next_comm"].tolist() * 2
    some = ftbuf.from_dask(EXAMPLE, "sched_switch", ["next_comm"]).groupby("next_comm").size().compute(scheduler="threads")
    assert some.sum() == len(whole)
    with pytest.raises(ftbuf.EventNotFoundError):
        ftbuf.from_dask(EXAMPLE, "nope")
