"""Records that cannot be printed as a format says: said by every command, never left out in silence."""

from __future__ import annotations

import json
import shutil
import warnings

import pytest
from filebuilder import BufferSpec, TraceDat
from pagebuilder import ABIS, event, format_text, make_format, pages_of
from test_cli import EXAMPLE, called

import ftbuf

ABI = ABIS["le64"]
FORMAT = make_format("probe", 42, ["int number"], print_fmt='"number=%d", REC->number')
LONGER = make_format("probe", 42, ["int number", "long other"], print_fmt='"number=%d %ld", REC->number, REC->other')
OTHER = make_format("other", 43, ["int number"], print_fmt='"number=%d", REC->number')


def written(path, *formats):
    """Three records of probe, two of other, with some formats."""
    records = [event(FORMAT, ABI, number=i) for i in range(3)] + [event(OTHER, ABI, number=i) for i in range(2)]
    buffers = [BufferSpec(pages={0: pages_of(ABI, *records)})]
    built = TraceDat(ABI, formats={"test": [format_text(f) for f in formats]}, buffers=buffers)
    path.write_bytes(built.build().data)
    return str(path)


@pytest.fixture
def without(tmp_path):
    """A recording that lacks the format of two records."""
    return written(tmp_path / "without.dat", FORMAT)


def test_info_tells_how_many(without, capfdbinary):
    status, out, _ = called(capfdbinary, "info", without)
    assert status == 1
    assert "unknown events: 2 records have no event format\n" in out
    status, out, _ = called(capfdbinary, "info", "--json", without)
    assert (status, json.loads(out)["unknown_events"]) == (1, 2)


def test_the_summary_tells_how_many(without):
    with ftbuf.open(without) as trace:
        assert trace.unknown_events == 2
        assert "unknown events: 2 " in str(trace)
        assert "unknown events" in trace._repr_html_()
    with ftbuf.open(EXAMPLE) as trace:
        assert "unknown" not in str(trace)


@pytest.mark.parametrize("command", ["stat", "events", "check"])
def test_counting_commands_say_it(without, capfdbinary, command):
    status, out, err = called(capfdbinary, command, without)
    assert status == 1
    assert "2 records" in out + err


@pytest.mark.parametrize("options", [[], ["-l"], ["--style", "kernel"], ["--style", "kernel", "-O", "raw"]], ids=" ".join)
def test_reports_say_it(without, capfdbinary, options):
    status, out, err = called(capfdbinary, "report", *options, without)
    assert status == 1
    assert out.count("number=") == 3 or "raw" in options
    assert "2 unknown_event" in err
    status, _, err = called(capfdbinary, "report", *options, without, EXAMPLE)
    assert status == 1
    assert "2 unknown_event" in err


@pytest.mark.parametrize("options", [[], ["--style", "kernel"]], ids=" ".join)
def test_reports_say_which_records_are_too_short(tmp_path, capfdbinary, options):
    path = written(tmp_path / "short.dat", LONGER, OTHER)
    status, out, err = called(capfdbinary, "report", *options, path)
    assert status == 1
    assert out.count("[record_short]") == 3
    assert "3 record_short" in err


@pytest.mark.parametrize("options", [["--cpu", "1"], ["-F", "probe"]], ids=" ".join)
def test_records_that_are_not_shown_are_not_counted(without, capfdbinary, options):
    assert called(capfdbinary, "report", *options, without)[::2] == (0, "")


def test_a_graph_says_it(recordings, tmp_path, capfdbinary):
    root = tmp_path / "graph"
    shutil.copytree(recordings["mips32be-graph"].path, root)
    assert called(capfdbinary, "report", "--style", "kernel", str(root))[0] == 0
    with ftbuf.open(root) as trace:
        count = trace.events["funcgraph_exit"]
    shutil.rmtree(root / "events/ftrace/funcgraph_exit")
    status, _, err = called(capfdbinary, "report", "--style", "kernel", str(root))
    assert status == 1
    assert f"{count} unknown_event" in err


def test_lines_warn_once_and_only_under_warn(without):
    with ftbuf.open(without, errors="warn") as trace, pytest.warns(ftbuf.DamageWarning, match="2 unknown_event") as found:
        assert len(list(trace.lines())) == 6
    assert len(found) == 1
    for errors in ("raise", "skip"):
        with warnings.catch_warnings(), ftbuf.open(without, errors=errors) as trace:
            warnings.simplefilter("error")
            assert len(list(trace.lines())) == 6


def test_of_a_damaged_file_some_places_are_listed(capfdbinary, tmp_path):
    pages = bytearray(pages_of(ABI, *(event(FORMAT, ABI, number=i) for i in range(9000))))
    for at in range(0, len(pages), 4096):
        pages[at + 8:at + 12] = b"\xf0\xff\x0f\x00"
    built = TraceDat(ABI, formats={"test": [format_text(FORMAT)]}, buffers=[BufferSpec(pages={0: bytes(pages)})])
    (tmp_path / "bad.dat").write_bytes(built.build().data)
    status, out, _ = called(capfdbinary, "info", str(tmp_path / "bad.dat"))
    listed = [line for line in out.splitlines() if line.startswith("damaged: CPU")]
    assert (status, len(listed)) == (1, 10)
    assert out.splitlines()[-1] == f"damaged: {len(pages) // 4096 - 10} more places: see ftbuf check"
