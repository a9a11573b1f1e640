"""One trace, many threads: equal results, and the interpreter is free while C decodes."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from corpus_data import ROOT
from filebuilder import BufferSpec, TraceDat
from pagebuilder import ABIS, event, format_text, make_format, pages_of

import ftbuf
from ftbuf import engine

EXAMPLE = ROOT / "examples" / "sched.dat"
ABI = ABIS["le64"]
FORMAT = make_format("probe", 42, ["int number", "char name[8]", "__data_loc char[] text", "__data_loc int[] list"])
OTHER = make_format("other", 43, ["u64 value"])


def file(compression: str, *, cpus: int = 3, n: int = 4000) -> bytes:
    """Two kinds of events on some CPUs, with equal time stamps across them, in one buffer and an instance."""
    pages = {}
    for cpu in range(cpus):
        records = [event(FORMAT, ABI, number=i, name=f"n{i % 5}", text=f"text {i % 7 + cpu}", list=[i] * (i % 4))
                   if i % 3 else event(OTHER, ABI, value=i * cpu) for i in range(n)]
        pages[cpu] = pages_of(ABI, *records, ts=1_000_000 + cpu, step=1 + cpu)
    spec = TraceDat(ABI, compression=compression, formats={"test": [format_text(FORMAT), format_text(OTHER)]},
                    buffers=[BufferSpec(pages=pages), BufferSpec("inst", pages={1: pages[0]})])
    return spec.build().data


FILES = {"plain": file("none"), "compressed": file("zlib")}


@pytest.fixture(params=FILES)
def trace(request) -> Iterator[ftbuf.Trace]:
    with ftbuf.open(FILES[request.param]) as trace:
        yield trace


@pytest.fixture(autouse=True)
def small_shares(monkeypatch):
    """Small recordings are cut for threads too."""
    monkeypatch.setattr(engine, "THREAD_BYTES", 4096)


def same(a: ftbuf.Table, b: ftbuf.Table) -> None:
    assert a.column_names == b.column_names and a.num_rows == b.num_rows
    for name in a.column_names:
        x, y = a[name], b[name]
        assert x.dtype == y.dtype and x.shape == y.shape, name
        if x.dtype == object and len(x) and isinstance(x[0], np.ndarray):
            assert all(np.array_equal(p, q) for p, q in zip(x, y, strict=True)), name
        else:
            assert np.array_equal(x, y), name


def at_once(n: int, call: Callable[[int], object]) -> list[object]:
    """Call from n threads that start together."""
    start = threading.Barrier(n)

    def one(i: int) -> object:
        start.wait()
        return call(i)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(one, range(n)))


# ---- threads= ----


@pytest.mark.parametrize("threads", [2, 3, 7, None])
def test_any_number_of_threads_gives_the_same(trace, threads):
    for name in trace:
        same(trace[name].table(threads=threads), trace[name].table(threads=1))
    same(trace.timeline(threads=threads), trace.timeline(threads=1))
    ours, theirs = trace.tables(threads=threads), trace.tables(threads=1)
    assert ours.keys() == theirs.keys()
    for name in ours:
        same(ours[name], theirs[name])


@pytest.mark.parametrize("threads", [2, 5])
def test_windows_are_cut_for_threads_too(trace, threads):
    start, end = trace.start, trace.end
    for view in (trace.window(start + 500, end - 700), trace.window(cpus=[1]), trace.window(buffer="inst"),
                 trace.window(end, end), trace.window(start, start + 1), trace.window(pids=[0])):
        same(view["probe"].table(threads=threads), view["probe"].table(threads=1))


def test_a_clock_that_steps_back_is_no_trouble():
    """Such a stream cannot be cut by time: it is decoded by one thread, in the order of the stream."""
    records = [event(OTHER, ABI, value=i) for i in range(300)]
    pages = b"".join(pages_of(ABI, *records, ts=ts) for ts in (9000, 1000, 5000))
    built = TraceDat(ABI, formats={"test": [format_text(OTHER)]}, buffers=[BufferSpec(pages={0: pages})]).build()
    with ftbuf.open(built.data) as trace:
        same(trace["other"].table(threads=4), trace["other"].table(threads=1))
        assert trace["other"].table(threads=4).num_rows == 900


def test_damage_is_the_same_for_any_number_of_threads():
    data = bytearray(FILES["plain"])
    first = data.find((1_000_000).to_bytes(8, "little"))
    for page in (3, 11):
        at = first + 4096 * page + 8
        data[at:at + 4] = b"\xff\xff\x0f\x00"
    with ftbuf.open(bytes(data), errors="skip") as trace:
        same(trace["probe"].table(threads=4), trace["probe"].table(threads=1))
        assert trace.problems.num_rows == 2
    with ftbuf.open(bytes(data)) as trace:
        said = []
        for threads in (1, 4):
            with pytest.raises(ftbuf.DamageError) as caught:
                trace["probe"].table(threads=threads)
            said.append((caught.value.status, caught.value.cpu, caught.value.offset))
        assert said[0] == said[1]
    with ftbuf.open(bytes(data), errors="warn") as trace, pytest.warns(ftbuf.DamageWarning):
        trace["probe"].table(threads=4)


def test_threads_must_be_a_number_that_makes_sense(trace):
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="threads"):
            trace["probe"].table(threads=wrong)


# ---- one trace in many threads ----


def test_many_threads_share_one_trace(trace):
    with ftbuf.open(FILES["plain"]) as alone:
        want = alone["probe"].table(), alone.timeline(), [str(e) for e in alone.records()], alone.events, alone.start

    def use(i: int) -> tuple[object, ...]:
        view = trace.window()
        return (trace["probe"].table(threads=1 + i % 2), view.timeline(), [str(e) for e in view.records()], view.events,
                view.start)

    for got in at_once(8, use):
        same(got[0], want[0])
        same(got[1], want[1])
        assert got[2:] == want[2:]


def test_what_is_parsed_when_first_asked_for_is_parsed_safely():
    """Formats, names and surveys are made by whichever thread comes first."""
    for _ in range(5):
        with ftbuf.open(EXAMPLE) as trace:
            results = at_once(8, lambda i, t=trace: (t["sched_switch"].columns, dict(t.comms), t.events,
                                                     [b for b in t.info["buffers"]]))
            assert all(r == results[0] for r in results)


def test_threads_share_one_table():
    """Batches are joined by whoever asks first."""
    with ftbuf.open(FILES["plain"]) as trace:
        want = trace["probe"].arrays(threads=1)
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            for _ in range(20):
                table = trace["probe"].table(threads=4)
                for got in at_once(4, lambda _, t=table: t.to_dict()):
                    assert {n: len(values) for n, values in got.items()} == dict.fromkeys(want, len(want["number"]))
        finally:
            sys.setswitchinterval(before)
        assert table.num_rows == len(want["number"])
        assert all(np.array_equal(table[name], want[name]) for name in ("number", "text", "common_ts"))


def test_threads_open_the_same_file():
    counts = at_once(8, lambda _: ftbuf.read_events(EXAMPLE, "sched_switch").num_rows)
    assert len(set(counts)) == 1


def test_one_iterator_in_many_threads_gives_each_record_once():
    """Not promised to be fast, but neither a crash nor a record twice."""
    with ftbuf.open(FILES["plain"]) as trace:
        records = trace.records()
        lock = threading.Lock()

        def take(_: int) -> list[tuple[int, int]]:
            out = []
            while True:
                with lock:
                    record = next(records, None)
                if record is None:
                    return out
                out.append((record.ts, record["value"] if record.name == "other" else record["number"]))

        seen = [r for part in at_once(4, take) for r in part]
        assert sorted(seen) == sorted((e.ts, e["value"] if e.name == "other" else e["number"]) for e in trace.records())


def test_closing_in_another_thread():
    """Whoever decodes either ends, or is told; results that are there stay."""
    for _ in range(10):
        trace = ftbuf.open(bytearray(FILES["compressed"]))

        def use(i: int, trace: ftbuf.Trace = trace) -> object:
            if i == 0:
                trace.close()
                return None
            try:
                return trace["probe"].arrays()["number"].sum()
            except ftbuf.ClosedError:
                return None

        sums = {int(s) for s in at_once(4, use) if s is not None}
        assert len(sums) <= 1


# ---- the interpreter is free ----


@contextmanager
def patient_switching() -> Iterator[None]:
    """A thread that holds the interpreter keeps it, unless it lets go by itself."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(100)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def test_other_threads_run_while_c_decodes():
    page = pages_of(ABI, *(event(OTHER, ABI, value=i) for i in range(100)))
    data = page[:4096] * 20_000  # 80 MB: some tens of milliseconds
    stop, ticks, during = threading.Event(), [0], []

    def count() -> None:
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0.0002)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        with patient_switching():
            for _ in range(5):
                before = ticks[0]
                table = ftbuf.decode_pages(data, abi=ABI, events=OTHER, columns=["value"])
                during.append(ticks[0] - before)
    finally:
        stop.set()
        thread.join()
    assert table.num_rows > 1_000_000
    assert max(during) >= 5
