"""Splitting: sub-buffers are repacked without loss, parts together are the whole, metadata stays."""

from __future__ import annotations

import argparse
import io
import os
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import reference as ref
from corpus_data import ROOT, corpus_cases
from hypothesis import given
from hypothesis import strategies as st
from pagebuilder import Abi, Page, make_abi, pack
from strategies import abis, streams

import ftbuf
from ftbuf import _core
from ftbuf.cli import windows
from ftbuf.cli.main import main

EXAMPLE = ROOT / "examples" / "sched.dat"
IDENTITY = (0, 0, 0, 0, 0, None)
ALL = np.zeros(_core.N_IDS, np.uint16)


# ------------------------------------------------------------------------------------------------ sub-buffers


@dataclass(frozen=True)
class Kept:
    """A record, and what was lost before it."""

    ts: int
    payload: bytes
    lost: int | None


def add(a: int | None, b: int) -> int:
    return b if a is None else -1 if -1 in (a, b) else a + b


def signed(ts: int) -> int:
    return ts - (1 << 64) if ts >> 63 else ts


def kept(stream: bytes, abi: Abi, ids=None, window=None, subbuf_size: int | None = None) -> list[Kept]:
    """The records wanted, by the reference decoder; a loss whose end is in the window goes with the next of them."""
    start, end = window or (-(1 << 63), 1 << 63)
    out, lost = [], None
    size = subbuf_size or abi.subbuf_size
    layout = Abi(abi.big_endian, abi.long_size, size, abi.data_offset, abi.old_header)
    for _, page in ref.split_pages(stream, layout):
        result = ref.walk_page(page, layout)
        after = result.records[0].ts if result.records else result.ts
        if result.lost is not None and start <= signed(after) < end:
            lost = add(lost, result.lost)
        for r in result.records:
            if (ids is None or r.event_id in ids) and start <= signed(r.ts) < end:
                out.append(Kept(r.ts, page[r.offset:r.offset + r.length], lost))
                lost = None
    return out


def repack(stream: bytes, abi: Abi, ids=None, window=None, subbuf_size: int = 0, cut: int | None = None) -> bytes:
    """The same by the package; `cut`: the stream comes in two segments."""
    slot_of = ALL
    if ids is not None:
        slot_of = np.full(_core.N_IDS, _core.NO_SLOT, np.uint16)
        slot_of[list(ids)] = 0
    spec = (abi.subbuf_size, abi.data_offset, abi.long_size, 0, 2, int(abi.big_endian), int(abi.old_header))
    core = _core.Repacker(spec, IDENTITY, slot_of, window, None, subbuf_size)
    out = []
    for segment in (stream,) if cut is None else (stream[:cut], stream[cut:]):
        core.feed(_core.Pages(segment), 0)
        more = True
        while more:
            more = core.step(1)
            out.append(bytes(memoryview(core.take())))
    core.flush()
    out.append(bytes(memoryview(core.take())))
    return b"".join(out)


def without_counts(records: list[Kept]) -> list[Kept]:
    return [Kept(r.ts, r.payload, None if r.lost is None else 0) for r in records]


def check(stream: bytes, abi: Abi, **wanted) -> None:
    size = wanted.get("subbuf_size") or abi.subbuf_size
    out = repack(stream, abi, **wanted)
    wanted.pop("cut", None)
    wanted.pop("subbuf_size", None)
    layout = Abi(abi.big_endian, abi.long_size, size, abi.data_offset, abi.old_header)
    assert len(out) % size == 0
    assert not [p for _, page in ref.split_pages(out, layout) for p in ref.walk_page(page, layout).problems
                if p.status != "lost_count_cut"]
    expected, got = kept(stream, abi, **wanted), kept(out, layout)
    assert without_counts(got) == without_counts(expected)
    most = (1 << 8 * abi.long_size) - 1 if abi.long_size == 4 else (1 << 63) - 1
    for e, g in zip(expected, got, strict=True):
        full = len(e.payload) + 8 + abi.long_size > size - abi.data_offset  # no room beside such a record
        assert g.lost == (e.lost if e.lost is None else min(e.lost, most)) or (full and g.lost == -1)


@st.composite
def cases(draw: st.DrawFn):
    abi = draw(abis)
    return draw(streams(abi)), abi


@given(cases())
def test_all_records_stay(case):
    check(*case)


@given(cases(), st.integers(0, 3))
def test_segments_do_not_matter(case, pages):
    stream, abi = case
    check(stream, abi, cut=min(pages * abi.subbuf_size, len(stream)))


@given(cases(), st.data())
def test_events_are_chosen(case, data):
    stream, abi = case
    there = sorted({r.event_id for _, page in ref.split_pages(stream, abi) for r in ref.walk_page(page, abi).records})
    check(stream, abi, ids=set(data.draw(st.lists(st.sampled_from(there)))) if there else set())


@given(cases(), st.data())
def test_windows(case, data):
    stream, abi = case
    times = [signed(r.ts) for _, page in ref.split_pages(stream, abi) for r in ref.walk_page(page, abi).records] or [0]
    edges = sorted(data.draw(st.sampled_from(times)) + data.draw(st.integers(-1, 1)) for _ in range(2))
    edges = [max(-(1 << 63), min((1 << 63) - 1, edge)) for edge in edges]
    check(stream, abi, window=tuple(edges))


@given(cases())
def test_larger_sub_buffers(case):
    stream, abi = case
    check(stream, abi, subbuf_size=2 * abi.subbuf_size)


def test_whole_pages_are_copied_byte_for_byte():
    abi = make_abi()
    page = Page(abi, 1000).data(5, b"\1\0abcdef").padding(3, 16).data(7, b"\2\0")
    stream = page.finish(missed=True, stored=7, junk=b"\xff" * 16)
    assert repack(stream * 3, abi) == stream * 3


@pytest.mark.parametrize("abi", [make_abi(), make_abi(big=True, long_size=4), make_abi(old_header=True)],
                         ids=["new", "big32", "old"])
def test_long_gaps_become_time_extends(abi):
    one, two = (pack(abi, i, 2) + b"ab" for i in (1, 2))
    page = Page(abi, 1 << 40).data(0, one)
    for i in range(40):
        page.time_extend(1 << (i % 30 + 20)).data(3, two if i % 3 else one)
    stream = page.finish()
    for ids in ({1}, {2}):
        out = repack(stream, abi, ids=ids)
        assert len(out) == abi.subbuf_size
        assert kept(out, abi) == kept(stream, abi, ids=ids)
        assert ref.walk_page(out, abi).extends > 0


def test_a_loss_waits_for_the_next_record_kept():
    abi = make_abi()
    gap = Page(abi, 2000).data(0, b"\2\0\0\0").data(9, b"\2\0\0\0").finish(missed=True, stored=40)
    again = Page(abi, 3000).data(0, b"\2\0\0\0").data(1, b"\1\0\0\0").finish(missed=True, stored=2)
    stream = Page(abi, 1000).data(0, b"\1\0\0\0").finish() + gap + again
    out = repack(stream, abi, ids={1})
    assert [(r.ts, r.lost) for r in kept(out, abi)] == [(1000, None), (3001, 42)]
    assert len(out) == 2 * abi.subbuf_size


def test_random_bytes_do_no_harm():
    rng = random.Random(5)
    for abi in (make_abi(subbuf_size=256), make_abi(big=True, subbuf_size=256), make_abi(old_header=True)):
        for _ in range(200):
            stream = bytearray(rng.randbytes(3 * abi.subbuf_size + rng.randrange(20)))
            stream[8:16] = (200).to_bytes(8, "big" if abi.big_endian else "little")
            check(bytes(stream), abi)


# ------------------------------------------------------------------------------------------------ files


def records(path, **options):
    with ftbuf.open(path, **options) as trace:
        return [(e.ts, e.cpu, trace.buffers[e.buffer], e.name, e.payload, e.lost) for e in trace.records()]


def check_parts(path: Path, tmp_path: Path) -> None:
    """Parts together are the whole; windows, CPUs and events are what they say."""
    whole = records(path)
    parts = ftbuf.split(path, tmp_path / "part", parts=3)
    assert [r for part in parts for r in records(part.path)] == whole
    assert sum(part.records for part in parts) == len(whole)
    if not whole:
        return
    start, end = whole[len(whole) // 3][0], whole[2 * len(whole) // 3][0]
    cpu = whole[-1][1]
    out = tmp_path / "out.dat"
    ftbuf.split(path, out, start=start, end=end, cpus=[cpu])
    assert records(out) == [r for r in whole if start <= r[0] < end and r[1] == cpu]
    names = sorted({r[3] for r in whole if not r[3].startswith("[")})[::2]
    ftbuf.split(path, out, events=[f"*:{name}" for name in names], version=7, compression="zlib")
    assert [r[:5] for r in records(out)] == [r[:5] for r in whole if r[3] in names]


def test_real_recordings(recording, tmp_path):
    check_parts(recording.path, tmp_path)


@pytest.mark.corpus
@pytest.mark.parametrize("case", corpus_cases()[5::15], ids=lambda case: case.name)
def test_corpus(case, corpus_layout, tmp_path):
    root = corpus_layout(case)
    for path in sorted(root.glob("*.dat")) or [root]:
        with ftbuf.open(path) as trace:
            is_text = trace.text is not None
        if not is_text:
            check_parts(path, tmp_path)


def test_metadata_stays(tmp_path):
    out = tmp_path / "out.dat"
    ftbuf.split(EXAMPLE, out, events=["sched_switch"])
    with ftbuf.open(EXAMPLE) as before, ftbuf.open(out) as after:
        assert dict(after.comms) == dict(before.comms)
        assert list(after) == list(before)
        assert after.info["kernel"] == before.info["kernel"]
        assert after.info["kind"] == before.info["kind"]
        names = {"DATE", "OFFSET", "UNAME", "VERSION", "TRACEID", "TRACECLOCK", "CPUSTAT", "CPUCOUNT", "TSC2NSEC"}
        options = [[(o["name"], o["value"]) for o in t.info["options"] if o["name"] in names] for t in (before, after)]
        assert sorted(options[0], key=str) == sorted(options[1], key=str)
        assert after.stats.to_dict()["entries"].tolist() == before.stats.to_dict()["entries"].tolist()
        assert set(after.events) == {"sched_switch"}


def test_pids_and_every(tmp_path):
    whole = records(EXAMPLE)
    with ftbuf.open(EXAMPLE) as trace:
        pid = next(e.pid for e in trace.records() if e.pid)
        wanted = [e.ts for e in trace.window(pids=[pid]).records()]
        parts = ftbuf.split(trace, tmp_path / "p", every=10_000_000)  # an open trace will do
        assert list(trace)
    assert len(parts) == -(-(whole[-1][0] - whole[0][0] + 1) // 10_000_000)
    assert [r for part in parts for r in records(part.path)] == whole
    ftbuf.split(EXAMPLE, tmp_path / "pid", pids=[pid])
    assert [r[0] for r in records(tmp_path / "pid")] == wanted


def test_wrong_arguments(tmp_path):
    out = tmp_path / "out.dat"
    with pytest.raises(ftbuf.EventNotFoundError):
        ftbuf.split(EXAMPLE, out, events=["sched_swich"])
    with pytest.raises(ftbuf.EventNotFoundError):
        ftbuf.split(EXAMPLE, out, events=["nothing*"])
    with pytest.raises(ValueError, match="no buffer"):
        ftbuf.split(EXAMPLE, out, buffers=["other"])
    with pytest.raises(TypeError):
        ftbuf.split(EXAMPLE, out, start=1.5)
    with pytest.raises(ValueError, match="parts"):
        ftbuf.split(EXAMPLE, out, parts=0)
    with pytest.raises(ValueError, match="parts"):
        ftbuf.split(EXAMPLE, out, every=1)
    with pytest.raises(TypeError):
        ftbuf.split(EXAMPLE, io.BytesIO(), parts=2)
    with pytest.raises(ftbuf.UnsupportedError):
        ftbuf.split(EXAMPLE, out, version=6, compression="zstd")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("where", ["prev_pid == 0", "sched_switch,sched_waking: common_pid != 0", "common_cpu == 1"])
def test_filters(tmp_path, where):
    """What a split keeps is what a window with the same filter has; whole sub-buffers are copied only where all of it matches."""
    with ftbuf.open(EXAMPLE) as trace:
        wanted = [(e.ts, e.cpu, e.name) for e in trace.window(where=where).records()]
        later = trace.start + 5_000_000
        ftbuf.split(trace, tmp_path / "part", where=where, start=later, cpus=[1])
        ftbuf.split(trace, tmp_path / "named", where="prev_pid == 0", events=["sched_*"])
        with pytest.raises(ftbuf.FilterError, match="prev_pid"):
            ftbuf.split(trace, tmp_path / "none", where="prev_pid == 0", events=["sched_waking"])
        names = trace["sched_switch"].window(where="prev_pid == 0").records()
        assert [r[0] for r in records(tmp_path / "named")] == [e.ts for e in names]
    (written,) = ftbuf.split(EXAMPLE, tmp_path / "all", where=where)
    assert written.records == len(wanted) > 0
    assert [(r[0], r[1], r[3]) for r in records(tmp_path / "all")] == wanted
    assert [(r[0], r[1], r[3]) for r in records(tmp_path / "part")] == [w for w in wanted if w[0] >= later and w[1] == 1]
    assert len(ftbuf.split(EXAMPLE, tmp_path / "parts", where=where, parts=2)) == 2


def test_devices_stay():
    (written,) = ftbuf.split(EXAMPLE, "/dev/null", cpus=[0])
    assert written.records and not os.path.isfile("/dev/null")


def test_pids_that_no_task_has(tmp_path):
    (written,) = ftbuf.split(EXAMPLE, tmp_path / "none", pids=[99999999999, -(1 << 40)])
    assert written.records == 0


def test_a_file_object_and_the_source_itself(tmp_path):
    file = io.BytesIO()
    ftbuf.split(EXAMPLE, file, cpus=[0])
    assert records(file.getvalue()) == [r for r in records(EXAMPLE) if r[1] == 0]
    path = tmp_path / "same.dat"
    path.write_bytes(EXAMPLE.read_bytes())
    ftbuf.split(path, path, cpus=[1])
    assert records(path) == [r for r in records(EXAMPLE) if r[1] == 1]


def test_damage_costs_one_sub_buffer(tmp_path):
    plain = io.BytesIO()
    ftbuf.convert(EXAMPLE, plain, compression="none")
    data = bytearray(plain.getvalue())
    with ftbuf.open(plain.getvalue()) as trace:
        offset = trace._recording.buffers[0].streams[0].segments[0].offset
    data[offset + 4096 + 8:offset + 4096 + 12] = b"\xff\xff\xff\x0f"
    out = tmp_path / "out.dat"
    with pytest.raises(ftbuf.DamageError):
        ftbuf.split(bytes(data), out)
    assert not out.exists()
    with pytest.warns(ftbuf.DamageWarning):
        (written,) = ftbuf.split(bytes(data), out, errors="warn")
    assert [p.status for p in written.problems] == ["commit_too_large"]
    assert records(out) == records(bytes(data), errors="skip")


# ------------------------------------------------------------------------------------------------ views


def of_view(view) -> list[tuple[int, int, str]]:
    return [(e.ts, e.cpu, e.name) for e in view.records()]


VIEWS = {
    "time": lambda t: t.window(t.start + 1_000_000, t.end - 1_000_000),
    "cpu": lambda t: t.window(cpus=[1]),
    "pid": lambda t: t.window(pids=[157]),
    "where": lambda t: t.window(where="common_pid != 0"),
    "buffer": lambda t: t.window(buffer=""),
    "all": lambda t: t.window(t.start + 1_000_000, cpus=[0, 1], pids=[157, 34], where="common_pid != 34"),
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_written_as_what_it_looks_at(tmp_path, view):
    out = tmp_path / "out.dat"
    with ftbuf.open(EXAMPLE) as trace:
        part = VIEWS[view](trace)
        want = of_view(part)
        assert want
        for write in (ftbuf.split, ftbuf.convert):
            write(part, out)
            with ftbuf.open(out) as written:
                assert of_view(written) == want
        ftbuf.split(part, out, cpus=[0], events=["sched_switch"], end=trace.end - 2_000_000)
        with ftbuf.open(out) as written:
            assert of_view(written) == [w for w in want if w[1:] == (0, "sched_switch") and w[0] < trace.end - 2_000_000]
        ftbuf.split(part, out, parts=3)
        pieces = []
        for n in (1, 2, 3):
            with ftbuf.open(f"{out}.{n}") as written:
                pieces += of_view(written)
        assert pieces == want


def test_a_view_of_one_buffer(tmp_path):
    with ftbuf.open(instances_file(tmp_path)) as trace:
        name = trace.buffers[-1]
        ftbuf.split(trace.window(buffer=name), tmp_path / "out.dat")
        with ftbuf.open(tmp_path / "out.dat") as written:
            assert of_view(written) == of_view(trace.window(buffer=name))
        assert ftbuf.split(trace.window(buffer=name), tmp_path / "out.dat", buffers=[trace.buffers[0]])[0].records == 0
        with pytest.raises(ValueError, match="no buffer named 'other'"):
            ftbuf.split(trace.window(buffer=name), tmp_path / "out.dat", buffers=["other"])


def instances_file(folder):
    import lzma

    packed = Path(__file__).parent / "data/tracedat/k612-tc34-instances.dat.xz"
    path = folder / "instances.dat"
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    return path


# ------------------------------------------------------------------------------------------------ command line


def test_command(tmp_path, capsys):
    whole = records(EXAMPLE)
    out = tmp_path / "out.dat"
    assert main(["split", str(EXAMPLE), "-o", str(out), "--start", "+0.001", "--end", str(whole[-1][0]), "--cpu", "0-1",
                 "-e", "sched_*", "--compression", "zstd"]) == 0
    got = records(out)
    assert got
    assert got == [r for r in whole if whole[0][0] + 1_000_000 <= r[0] < whole[-1][0] and r[3].startswith("sched_")]
    assert main(["split", str(EXAMPLE), "-o", str(out), "-n", "2"]) == 0
    assert records(f"{out}.1") + records(f"{out}.2") == whole
    assert main(["split", str(EXAMPLE), "-o", str(out), "-B", "other"]) == 2
    assert main(["split", str(EXAMPLE), "-o", str(out), "-e", "other"]) == 2
    assert main(["split", str(tmp_path / "none"), "-o", str(out)]) == 1
    assert main(["split", str(EXAMPLE), "-o", str(out), "--every", "0.000000001"]) == 2
    assert main(["split", str(EXAMPLE), "-o", str(out), "--where", "prev_pid ="]) == 2
    assert main(["split", str(EXAMPLE), "-o", str(out), "--where", "sched_waking"]) == 0
    assert {r[3] for r in records(out)} == {"sched_waking"}
    assert "no buffer named 'other'" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "time"), [
    ("123", (123, False)), ("1.5", (1_500_000_000, False)), ("+0.000000001", (1, True)), ("+7", (7, True)),
    ("5134.123456789", (5134123456789, False))])
def test_times(text, time):
    assert windows.parse_time(text) == time


@pytest.mark.parametrize("text", ["", "+", "x", "1.x", "nan.", "1e99999999.", "."])
def test_no_times(text):
    with pytest.raises(argparse.ArgumentTypeError):
        windows.parse_time(text)


def test_cpu_lists():
    assert windows.cpu_list("0,2-4") == [0, 2, 3, 4]
    for text in ("", "a", "1-", "1-x", "0-9999999"):
        with pytest.raises(argparse.ArgumentTypeError):
            windows.cpu_list(text)
