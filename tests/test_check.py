"""Checking and counting: every kind of damage is found, a whole recording is called whole."""

from __future__ import annotations

import io
import json
import random
from contextlib import suppress
from pathlib import Path

import pytest
from corpus_data import ROOT, corpus_cases
from filebuilder import BufferSpec, TraceDat, write_tracefs
from pagebuilder import Page, event, format_text, make_abi, make_format, pages_of

import ftbuf
from ftbuf.checkup import LISTED, check_up
from ftbuf.cli.main import main
from ftbuf.container import open_container
from ftbuf.percpu import cpu_counts
from ftbuf.recording import Recording

EXAMPLE = ROOT / "examples" / "sched.dat"
ABI = make_abi()
FORMAT = make_format("one", 7, ["int a", "u64 b"])


def payload(n: int = 1) -> bytes:
    return event(FORMAT, ABI, common_pid=n, a=n, b=n)


def checked(source):
    container = open_container(source)
    try:
        return check_up(container)
    finally:
        container.close()


def build(*streams: bytes, formats=(FORMAT,), **options) -> bytes:
    """A trace.dat with these CPUs."""
    texts = {"test": [f if isinstance(f, bytes) else format_text(f) for f in formats]}
    return TraceDat(ABI, formats=texts, buffers=[BufferSpec("", dict(enumerate(streams)))], **options).build().data


def test_whole(recording):
    found = checked(recording.path)
    assert not found.damaged
    with ftbuf.open(recording.path) as trace:
        assert found.events == sum(trace.events.values())
        assert found.formats == len(trace)
        assert found.losses == trace.lost.num_rows
        assert found.lost_events == sum(n for n in trace.lost["count"].tolist() if n > 0)


@pytest.mark.corpus
@pytest.mark.parametrize("case", corpus_cases()[7::15], ids=lambda case: case.name)
def test_corpus(case, corpus_layout):
    root = corpus_layout(case)
    for path in sorted(root.glob("*.dat")) or [root]:
        assert not checked(path).counts


GOOD = Page(ABI, 1000).data(0, payload()).data(5, payload())
DEFECTS = {
    "commit_too_large": GOOD.finish(size=5000),
    "length_too_small": Page(ABI, 1000).data(0, payload()).data(0, b"xxxx", length=3).finish(),
    "record_cut": Page(ABI, 1000).data(0, payload()).data(0, b"xxxx", length=9000).finish(),
    "record_short": Page(ABI, 1000).data(0, payload()).data(0, payload()[:12]).finish(),
    "unknown_event": Page(ABI, 1000).data(0, payload()).data(0, b"\x63\0\0\0").data(0, b"\x63\0\0\0").finish(),
    "time_backwards": Page(ABI, 9000).data(0, payload()).finish() + GOOD.finish(),
}


@pytest.mark.parametrize("status", DEFECTS)
def test_pages(status):
    found = checked(build(GOOD.finish(), DEFECTS[status]))
    assert found.damaged
    assert dict(found.counts) == {status: 1}
    (problem,) = found.problems
    assert problem.status == status
    if status == "unknown_event":
        assert found.unknown == {99: 2}
    else:
        assert problem.cpu == 1


def test_where_time_goes_back():
    found = checked(build(DEFECTS["time_backwards"]))
    assert found.problems[0].detail == "record 1: time goes back by 8000, from 9000 to 1000"


def test_formats_that_do_not_parse():
    found = checked(build(GOOD.finish(), formats=[FORMAT, b"name: bad\nID: 8\nformat:\n\tfield:int a;\n"]))
    assert dict(found.counts) == {"bad_metadata": 1}
    assert "format of test:bad" in found.problems[0].detail


def test_truncated():
    data = build(b"".join(Page(ABI, 1000 * n).data(0, payload()).finish() for n in range(3)))
    whole = checked(data)
    assert not whole.damaged
    six = io.BytesIO()
    ftbuf.convert(data, six, version=6)
    found = checked(six.getvalue()[:-6000])
    assert "truncated" in found.counts
    assert found.events < whole.events


@pytest.mark.parametrize("compression", ["zlib", "zstd"])
def test_compressed(compression):
    stream = b"".join(Page(ABI, 1000 * n).data(0, payload(n)).finish() for n in range(1, 40))
    data = bytearray(build(stream, compression=compression))
    assert not checked(bytes(data)).damaged
    container = open_container(bytes(data))
    offset = container.buffers[0].streams[0].segments[1].offset
    data[offset + 8:offset + 16] = b"\xff" * 8  # where the compressed data begin
    found = checked(bytes(data))
    assert dict(found.counts) == {"bad_compression": 1}
    assert found.events == 29


def test_a_damaged_section():
    file = io.BytesIO()
    ftbuf.convert(EXAMPLE, file, compression="zstd")
    data = bytearray(file.getvalue())
    container = open_container(file.getvalue())
    at = container._sections[19]  # kallsyms
    data[at + 30:at + 40] = b"\xff" * 10
    found = checked(bytes(data))
    assert any("kallsyms" in p.detail for p in found.problems)


def test_many_problems_are_counted_and_not_all_listed():
    short = pages_of(ABI, *[payload()[:12]] * (LISTED + 500))
    found = checked(build(short))
    assert found.counts["record_short"] == LISTED + 500
    assert len(found.problems) == LISTED


def test_lost():
    gaps = [GOOD.finish(missed=True, stored=30), Page(ABI, 9000).data(0, payload()).finish(missed=True)]
    found = checked(build(b"".join(gaps)))
    assert not found.damaged
    assert (found.losses, found.lost_events) == (2, 30)
    assert [(gap.before, gap.after, gap.count) for gap in found.lost] == [(None, 1000, 30), (1005, 9000, None)]


def test_nothing_there(tmp_path):
    found = checked(write_tracefs(tmp_path / "dir", ABI))
    assert (list(found.counts), found.formats, found.events) == (["bad_metadata"], 0, 0)
    assert "no buffers" in found.problems[0].detail
    found = checked(write_tracefs(tmp_path / "other", ABI, [], {0: GOOD.finish()}))
    assert found.unknown == {7: 2}


# ---- command line ----


def test_check_command(tmp_path, capsys):
    bad = tmp_path / "bad.dat"
    bad.write_bytes(build(GOOD.finish(missed=True, stored=3) + DEFECTS["record_cut"]))
    assert main(["check", str(EXAMPLE)]) == 0
    assert "whole; trace.dat v7" in capsys.readouterr().out
    assert main(["check", str(EXAMPLE), str(bad)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("damaged: CPU 0, offset ") and "[record_cut]" in line for line in lines)
    assert "lost: CPU 0: 3 events before time 1000" in lines
    assert lines[-1].startswith(f"{bad}: damaged: 1 record_cut, 1 time_backwards; ")
    assert main(["check", "--json", str(bad)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["damaged"] is True
    assert found["counts"] == {"record_cut": 1, "time_backwards": 1}
    assert found["lost"] == [{"buffer": "", "cpu": 0, "before": None, "after": 1000, "count": 3}]


@pytest.mark.parametrize("content", [b"", b"text", b"\x17\x08\x44tracing7\0"])
def test_what_cannot_be_opened(tmp_path, capsys, content):
    path = tmp_path / "x"
    path.write_bytes(content)
    assert main(["check", str(path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"ftbuf check: {path}")
    assert main(["check", "--json", str(path)]) == 1
    assert json.loads(capsys.readouterr().out)["damaged"] is True
    assert main(["check", str(tmp_path / "none")]) == 1


def test_stat(recording):
    container = open_container(recording.path)
    rows = cpu_counts(Recording(container))
    with ftbuf.open(recording.path) as trace:
        assert sum(row.events for row in rows) == sum(trace.events.values())
        assert sum(row.gaps for row in rows) == trace.lost.num_rows
        assert min((row.start for row in rows if row.events), default=None) == trace.start
        assert max((row.end for row in rows if row.events), default=None) == trace.end
        entries = trace.stats["entries"].tolist()
        assert [row.kernel["entries"] for row in rows if "entries" in row.kernel] == entries
    container.close()


def test_stat_command(capsys):
    assert main(["stat", str(EXAMPLE)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["cpu", "entries", "overrun"]
    assert len(lines) == 3
    assert main(["stat", "--json", str(Path(EXAMPLE))]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["cpu"] for row in rows] == [0, 1]
    assert all(row["events"] == row["kernel"]["entries"] and row["events_per_second"] > 0 for row in rows)


# ---- damage anywhere ----


def test_pages_are_checked_where_formats_cannot_be_read():
    data = bytearray(build(GOOD.finish(), DEFECTS["record_cut"], compression="zlib"))
    at = open_container(bytes(data))._sections[18]  # event formats
    data[at + 24:at + 32] = b"\xff" * 8
    found = checked(bytes(data))
    assert found.counts["record_cut"] == 1
    assert found.counts["bad_compression"] == 1
    assert found.unknown == {7: 3}


def test_one_bad_format_does_not_hide_the_others():
    data = build(GOOD.finish(), formats=[b"name: bad\nID: 8\nformat:\n\tfield:int a;\n", FORMAT])
    assert dict(checked(data).counts) == {"bad_metadata": 1}
    with ftbuf.open(data) as trace:
        assert trace["one"].arrays(["a"])["a"].tolist() == [1, 1]


@pytest.mark.parametrize(("version", "compression"), [(6, "none"), (7, "none"), (7, "zlib"), (7, "zstd")])
def test_random_damage_is_found_and_never_raised(version, compression):
    """What can be opened can be checked; what can be split is whole afterwards."""
    rng = random.Random(version + len(compression))
    stream = b"".join(Page(ABI, 1000 * n).data(0, payload(n)).finish(missed=n % 5 == 0, stored=n) for n in range(1, 9))
    data = build(stream, stream, version=version, compression=compression, kallsyms=b"ffff T x\n")
    for _ in range(60):
        damaged = bytearray(data)
        for _ in range(rng.randrange(1, 6)):
            damaged[rng.randrange(len(damaged))] = rng.choice((0, 255, rng.randrange(256)))
        if rng.random() < 0.3:
            del damaged[rng.randrange(len(damaged)):]
        try:
            container = open_container(bytes(damaged))
        except ftbuf.FtbufError:
            continue
        check_up(container)
        out = io.BytesIO()
        with suppress(ftbuf.FtbufError):  # metadata that cannot be read
            ftbuf.split(bytes(damaged), out, errors="skip")
            assert set(checked(out.getvalue()).counts) <= {
                "time_backwards", "unknown_event", "record_short", "bad_metadata"}
