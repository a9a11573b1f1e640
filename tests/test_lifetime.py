"""What is handed out stays valid and never changes; what is borrowed is given back, once and in time."""

from __future__ import annotations

import contextlib
import copy
import gc
import os
import pickle
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
from corpus_data import ROOT
from filebuilder import BufferSpec, TraceDat
from pagebuilder import ABIS, event, format_text, make_format, pages_of

import ftbuf

EXAMPLE = ROOT / "examples" / "sched.dat"
ABI = ABIS["le64"]
FORMAT = make_format("probe", 42, ["int number", "char name[8]", "__data_loc char[] text", "__data_loc int[] list"])


def payloads(n: int) -> list[bytes]:
    return [event(FORMAT, ABI, number=i, name=f"n{i % 5}", text=f"text {i % 7}", list=[i, i + 1]) for i in range(n)]


def plain_file(n: int = 2000) -> bytes:
    """An uncompressed recording: its pages are borrowed from the file's own memory."""
    pages = {cpu: pages_of(ABI, *payloads(n), ts=1_000_000 + cpu) for cpu in range(2)}
    return TraceDat(ABI, formats={"test": [format_text(FORMAT)]}, buffers=[BufferSpec(pages=pages)]).build().data


def resizable(buffer: bytearray) -> bool:
    try:
        buffer.append(0)
    except BufferError:
        return False
    del buffer[-1:]
    return True


def checksum(arrays: dict[str, np.ndarray]) -> list[object]:
    """The values as plain lists."""
    return [[v.tolist() if isinstance(v, np.ndarray) else v for v in a] for a in arrays.values()]


# ---- what is handed out ----


@pytest.mark.parametrize("compressed", [False, True])
def test_results_outlive_the_trace(tmp_path, compressed):
    path = tmp_path / "trace.dat"
    path.write_bytes(EXAMPLE.read_bytes() if compressed else plain_file())
    name = "sched_switch" if compressed else "probe"
    with ftbuf.open(path) as trace:
        arrays, table = trace[name].arrays(), trace[name].table()
        events = list(trace.records([name]))
        want = checksum(arrays), [str(e) for e in events], [e.payload for e in events]
    del trace
    gc.collect()
    path.write_bytes(bytes(path.stat().st_size))  # the mapping shows the file as it is now: arrays must not
    assert checksum(arrays) == checksum(table.to_dict()) == want[0]
    if compressed:  # records of a mapped file look into the file itself
        assert ([str(e) for e in events], [e.payload for e in events]) == want[1:]


def test_events_outlive_the_trace_and_the_iterator():
    trace = ftbuf.open(plain_file())
    records = trace.records()
    events = [next(records) for _ in range(10)]
    want = [(e.ts, e.cpu, e.pid, e.comm, e["number"], e["text"], e["list"], str(e)) for e in events]
    trace.close()
    del trace, records
    gc.collect()
    assert [(e.ts, e.cpu, e.pid, e.comm, e["number"], e["text"], e["list"], str(e)) for e in events] == want


def test_arrays_outlive_their_table():
    arrays = ftbuf.read_events(EXAMPLE, "sys_enter").to_dict()
    again = ftbuf.read_events(EXAMPLE, "sys_enter").to_dict()
    gc.collect()
    assert checksum(arrays) == checksum(again)


def test_results_are_read_only():
    with ftbuf.open(plain_file(100)) as trace:
        tables = [trace["probe"].table(), trace.timeline(), *trace["probe"].iterate(step_size=100), trace.lost,
                  trace.problems, trace.stats, pickle.loads(pickle.dumps(trace["probe"].table()))]
    for table in tables:
        for name, values in table.to_dict().items():
            assert not values.flags.writeable, name
            if len(values):
                with pytest.raises(ValueError, match="read-only"):
                    values[0] = values[0]
            with pytest.raises(ValueError, match="WRITEABLE"):
                values.flags.writeable = True
    first = tables[0]["list"][0]
    assert not first.flags.writeable


def test_columns_cannot_be_exported_for_writing():
    from ftbuf import _core

    column = ftbuf.read_events(EXAMPLE, "sched_switch")["prev_pid"]
    while isinstance(column, np.ndarray):
        column = column.base
    assert isinstance(column, _core.Column)
    view = memoryview(column)
    assert view.readonly
    with pytest.raises(TypeError):
        view[0] = 1


def test_decoding_again_does_not_touch_what_was_handed_out():
    with ftbuf.open(plain_file()) as trace:
        first = trace["probe"].arrays()
        want = checksum(first)
        for _ in range(3):
            assert checksum(trace["probe"].arrays()) == want
        assert checksum(first) == want


# ---- closing ----


def test_closing_twice_is_fine_and_using_after_is_an_error():
    trace = ftbuf.open(EXAMPLE)
    view, window = trace["sched_switch"], trace.window(cpus=[0])
    trace.close()
    trace.close()
    for use in (lambda: trace["sched_switch"], lambda: list(trace), lambda: len(trace), lambda: view.arrays(),
                lambda: window.timeline(), lambda: trace.start, lambda: trace.events, lambda: trace.info,
                lambda: trace.comms, lambda: list(trace.records()), lambda: trace.problems, lambda: trace.stats,
                lambda: view.columns):
        with pytest.raises(ftbuf.ClosedError):
            use()
    assert "closed" in repr(trace)
    assert isinstance(ftbuf.ClosedError("x"), ValueError)


def test_nothing_of_a_closed_trace_answers():
    """Whatever was asked for before; only its repr stays."""
    trace = ftbuf.open(plain_file())
    view = trace["probe"]
    asked = [trace.events, trace.info, trace.lost, trace.unknown_events, trace.problems, len(trace)]
    assert asked
    trace.close()
    for name in dir(type(trace)):
        if not name.startswith("_") and not callable(getattr(type(trace), name)) and name not in ("errors", "selection"):
            with pytest.raises(ftbuf.ClosedError):
                getattr(trace, name)
    calls = [lambda: list(trace.keys()), trace.__len__, lambda: "probe" in trace, lambda: trace["probe"],
             lambda: trace.get("probe"),
             trace.window, trace.records, trace.tables, trace.timeline, trace.iterate, trace.lines, view.table, view.iterate,
             view.records, view.text, view.window, lambda: view.columns, lambda: len(view)]
    for call in calls:
        with pytest.raises(ftbuf.ClosedError):
            call()
    assert "closed" in repr(trace) and "closed" in repr(view)


@pytest.mark.parametrize("make", [plain_file, EXAMPLE.read_bytes], ids=["plain", "compressed"])
def test_closing_while_records_iterates(make):
    trace = ftbuf.open(make())
    records = trace.records()
    first = next(records)
    want = str(first)
    trace.close()
    with contextlib.suppress(ftbuf.ClosedError):  # what is in memory already may still come
        assert all(str(event_) for event_ in records)
    assert str(first) == want


def test_closing_while_iterate_steps():
    trace = ftbuf.open(plain_file())
    steps = trace["probe"].iterate(step_size="1 kB")
    first = next(steps)
    trace.close()
    with contextlib.suppress(ftbuf.ClosedError):  # what is in memory already may still come
        assert all(step.num_rows for step in steps)
    assert first.num_rows == len(first["number"]) > 0


# ---- borrowing ----


def test_a_borrowed_bytearray_keeps_its_size_until_the_trace_is_closed():
    data = bytearray(plain_file())
    trace = ftbuf.open(data)
    assert not resizable(data)
    arrays = trace["probe"].arrays()
    table = trace.timeline()
    assert not resizable(data)
    trace.close()
    assert resizable(data)
    assert len(arrays["number"]) == 4000 and table.num_rows == 4000


def test_an_event_holds_the_buffer_it_looks_into():
    data = bytearray(plain_file())
    trace = ftbuf.open(data)
    records = trace.records()
    kept = next(records)
    trace.close()
    del trace, records
    assert not resizable(data)
    assert kept["number"] == 0
    del kept
    assert resizable(data)


def test_pages_borrowed_by_decode_pages_are_free_afterwards():
    data = bytearray(pages_of(ABI, *payloads(100)))
    table = ftbuf.decode_pages(data, abi=ABI, events=FORMAT)
    assert resizable(data)
    assert table["number"].tolist() == list(range(100))
    data[:] = bytes(len(data))
    assert table["number"].tolist() == list(range(100))


def test_a_buffer_is_not_resized_under_a_step():
    """While a decode is under way the buffer is held."""
    data = bytearray(plain_file())
    with ftbuf.open(data) as trace:
        steps = trace["probe"].iterate(step_size="1 kB")
        next(steps)
        assert not resizable(data)
        steps.close()
    assert resizable(data)


def test_errors_do_not_keep_the_buffer():
    good = plain_file(200)
    for damage in (slice(None, 40), slice(None, len(good) // 2), slice(None, len(good) - 5000)):
        data = bytearray(good[damage])
        try:
            with ftbuf.open(data) as trace:
                trace["probe"].arrays()
        except ftbuf.FtbufError as error:
            assert str(error)
        assert resizable(data)


@pytest.mark.parametrize("view", [
    lambda b: memoryview(b)[::2], lambda b: np.frombuffer(b, np.uint8)[::2], lambda b: np.zeros((4, 4)).T,
], ids=["memoryview", "numpy", "transposed"])
def test_a_buffer_must_be_contiguous(view):
    with pytest.raises((ftbuf.FormatError, BufferError)):
        ftbuf.open(view(bytes(4096)))


# ---- collection ----


def test_nothing_of_a_trace_is_left_in_a_cycle():
    """Dropping a trace frees it at once, without the help of the collector."""
    gc.collect()
    gc.disable()
    try:
        trace = ftbuf.open(EXAMPLE)
        trace["sched_switch"].arrays()
        list(trace.records())
        trace.window(cpus=[0]).timeline()
        gone = weakref.ref(trace._recording)
        trace.close()
        del trace
        assert gone() is None
    finally:
        gc.enable()


def test_a_cycle_through_a_trace_is_collected():
    class Holder:
        pass

    data = bytearray(plain_file(50))
    holder = Holder()
    holder.trace = ftbuf.open(data)
    holder.records = holder.trace.records()
    holder.event = next(holder.records)
    holder.self = holder
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None
    assert resizable(data)


# ---- copies ----


def test_tables_and_formats_can_be_pickled():
    with ftbuf.open(plain_file(50)) as trace:
        table, fmt = trace["probe"].table(), trace["probe"].format
    for again in (pickle.loads(pickle.dumps(table)), copy.copy(table), copy.deepcopy(table)):
        assert again.column_names == table.column_names
        assert checksum(again.to_dict()) == checksum(table.to_dict())
    assert pickle.loads(pickle.dumps(fmt)) == fmt


def test_what_borrows_cannot_be_pickled():
    with ftbuf.open(EXAMPLE) as trace:
        for thing in (trace, trace["sched_switch"], next(trace.records())):
            with pytest.raises(TypeError, match="pickle"):
                pickle.dumps(thing)


def test_objects_of_the_core_cannot_be_made_from_nothing():
    from ftbuf import _core

    for cls in (_core.Pages, _core.Decoder, _core.Walker, _core.FieldReader):
        with pytest.raises(TypeError):
            cls()
    record = ftbuf.Event.__new__(ftbuf.Event)  # nothing in it, and no crash either
    for use in (lambda: record.name, lambda: record.pid, lambda: record["x"], lambda: str(record)):
        with pytest.raises((AttributeError, TypeError)):
            use()
    assert record.payload == b""
    assert np.frombuffer(_core.Column(), np.uint8).size == 0


# ---- memory ----

CYCLES = """
import gc, sys
import ftbuf

data = open(sys.argv[1], "rb").read()

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

def cycle(i):
    with ftbuf.open(sys.argv[1] if i % 2 else data) as trace:
        if i % 20 == 0:
            trace["sched_switch"].arrays()
            next(trace.records())
            trace.window(cpus=[1]).timeline()
            trace.lost

def sizes(n, at):
    for i in range(n):
        cycle(i)
    gc.collect()
    return resident()

sizes(500, 0)
before = sizes(500, 0)
after = sizes(10_000, 0)
print(after - before)
import os
print(len(os.listdir("/proc/self/fd")))
"""


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer keeps freed memory")
def test_ten_thousand_cycles_do_not_grow(tmp_path):
    done = subprocess.run([sys.executable, "-c", CYCLES, str(EXAMPLE)], capture_output=True, text=True, check=True,
                          cwd=tmp_path, env=child_environment())
    grown, descriptors = map(int, done.stdout.split())
    assert grown < 1 << 20
    assert descriptors < 12


def child_environment() -> dict[str, str]:
    """A child finds the same ftbuf that this process has."""
    return {**os.environ, "PYTHONPATH": str(Path(ftbuf.__file__).parent.parent)}
