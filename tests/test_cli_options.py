"""What commands make of odd arguments: said, never taken in silence; texts from recordings are safe to look at."""

from __future__ import annotations

import os
import pickle
import shutil

import pytest
from filebuilder import BufferSpec, TraceDat
from pagebuilder import ABIS, event, format_text, make_format, pages_of
from test_cli import EXAMPLE, called, run

import ftbuf
from ftbuf.container.options import OptionId

ABI = ABIS["le64"]
FORMAT = make_format("probe", 42, ["int number"], print_fmt='"number=%d", REC->number')


def recorded(**options) -> bytes:
    pages = pages_of(ABI, event(FORMAT, ABI, number=1), ts=5_000_000_000)
    return TraceDat(ABI, formats={"test": [format_text(FORMAT)]}, buffers=[BufferSpec(pages={0: pages})], **options).build().data


# ---- names of files ----


@pytest.fixture
def alike(tmp_path, monkeypatch):
    """Two recordings whose names differ in their folders only."""
    for folder in ("ra", "rb"):
        (tmp_path / folder).mkdir()
        shutil.copy(EXAMPLE, tmp_path / folder / "trace.dat")
    monkeypatch.chdir(tmp_path)
    return ["ra/trace.dat", "rb/trace.dat"]


@pytest.mark.parametrize("style", ["trace-cmd", "kernel"])
def test_files_are_told_apart(alike, capfdbinary, style):
    for paths in (alike, [os.path.abspath(path) for path in alike]):
        _, out, _ = called(capfdbinary, "report", "--style", style, *paths)
        for path in alike:
            heading = f"{path}: cpus=2" if style == "trace-cmd" else f"# file: {path}"
            assert heading in out.splitlines()
            assert sum(line.startswith(f"{path}: ") for line in out.splitlines()) > 500


def test_labels_are_as_long_as_they_must_be():
    from ftbuf.merged import file_labels

    assert file_labels(["/a/x/t.dat", "/a/y/t.dat", "u.dat"]) == ["x/t.dat", "y/t.dat", "u.dat"]
    assert file_labels(["x/a/t.dat", "y/a/t.dat", "y/b/t.dat"]) == ["x/a/t.dat", "y/a/t.dat", "b/t.dat"]
    assert file_labels(["t.dat", "a/t.dat"]) == ["t.dat", "a/t.dat"]
    assert file_labels(["d/t.dat", "d/t.dat"]) == ["d/t.dat#0", "d/t.dat#1"]
    assert file_labels(["/", "d/"]) == ["/", "d"]
    assert len(set(file_labels(["a//t", "a/t", "./a/t", "t", "t/"]))) == 5


# ---- options ----


@pytest.mark.parametrize(("arguments", "why"), [
    (["report", "-O", "nosuch"], "no option of a plugin named 'nosuch'"),
    (["report", "--cpu", "0-4294967295"], "CPUs have numbers below 65536"),
    (["latency", "--cpu", "0,70000"], "CPUs have numbers below 65536"),
    (["split", "-o", "out", "--cpu", "3-1"], "'3-1' is not a range"),
    (["report", "--pid", "1-1000000"], "'1-1000000' is not a range"),
    (["report", "--cpu", "1-"], "not a list of CPUs"),
    (["report", "-F", "sched_switch: nope == 1", "-T"], "no field named 'nope'"),
])
def test_wrong_values_are_wrong_usage(capfdbinary, tmp_path, monkeypatch, arguments, why):
    monkeypatch.chdir(tmp_path)
    status, out, err = called(capfdbinary, *arguments, EXAMPLE)
    assert (status, out, os.listdir(tmp_path)) == (2, "", [])
    assert why in err


def test_an_unknown_event_of_r_is_said(capfdbinary):
    status, out, err = called(capfdbinary, "report", "-r", "sched_swich", EXAMPLE)
    assert (status, out) == called(capfdbinary, "report", EXAMPLE)[:2]
    assert "did you mean sched_switch" in err


@pytest.mark.parametrize("command", ["report", "info", "tasks"])
def test_unknown_options_get_the_usage_of_their_command(capfdbinary, command):
    status, _, err = called(capfdbinary, command, "--nonsense", EXAMPLE)
    assert status == 2
    assert err.startswith(f"usage: ftbuf {command} ")
    assert err.endswith("unrecognized arguments: --nonsense\n")


def test_options_of_trace_cmd(capfdbinary, tmp_path):
    plain = called(capfdbinary, "report", EXAMPLE)
    assert called(capfdbinary, "report", "-i", EXAMPLE) == plain
    assert called(capfdbinary, "report", "-q", "-O", "ftrace:parent", "-O", "fgraph:depth=2", EXAMPLE) == plain
    assert called(capfdbinary, "report", "--nodate", EXAMPLE) == plain
    _, two, _ = called(capfdbinary, "report", EXAMPLE, EXAMPLE)
    assert called(capfdbinary, "report", "-i", EXAMPLE, "-t", EXAMPLE)[1].count("\n") == two.count("\n")
    assert called(capfdbinary, "report", "-T", "-F", "sched_switch: prev_pid != 0", EXAMPLE) == (
        0, "sched_switch: prev_pid != 0\n", "")
    assert called(capfdbinary, "report", "--check-events", EXAMPLE) == (0, "", "")
    odd = make_format("odd", 43, ["int number"], print_fmt='"%d", no_such_function(REC->number)')
    pages = pages_of(ABI, event(FORMAT, ABI, number=1))
    built = TraceDat(ABI, formats={"test": [format_text(FORMAT), format_text(odd)]}, buffers=[BufferSpec(pages={0: pages})])
    (tmp_path / "odd.dat").write_bytes(built.build().data)
    status, out, _ = called(capfdbinary, "report", "--check-events", str(tmp_path / "odd.dat"))
    assert status == 1 and out.startswith("test:odd: ")


def test_nodate_leaves_out_the_date(capfdbinary, tmp_path):
    path = tmp_path / "dated.dat"
    path.write_bytes(recorded(options=[(int(OptionId.DATE), b"0x3B9ACA00\0")]))  # 1000 s, in microseconds
    assert " 1005.000000: " in called(capfdbinary, "report", str(path))[1]
    assert " 5.000000: " in called(capfdbinary, "report", "--nodate", str(path))[1]
    _, both, _ = called(capfdbinary, "report", "--nodate", str(path), str(path))
    assert both.count(" 5.000000: ") == 2


def test_quiet_is_quiet_about_damage(capfdbinary, tmp_path):
    path = tmp_path / "short.dat"
    path.write_bytes(recorded(options=())[:-2000])
    status, out, err = called(capfdbinary, "report", str(path))
    assert (status, bool(err)) == (1, True)
    assert called(capfdbinary, "report", "-q", str(path)) == (status, out, "")


@pytest.mark.parametrize("command", ["report", "info", "check", "tasks"])
def test_a_dash_is_standard_input(command):
    with open(EXAMPLE, "rb") as file:
        whole = run(command, "-", stdin=file)
    with open(EXAMPLE, "rb") as file:
        piped = run(command, "-", input=file.read().decode("latin-1"), encoding="latin-1")
    assert (whole.returncode, piped.returncode, whole.stderr) == (0, 0, "")
    assert whole.stdout.replace("/dev/stdin", EXAMPLE) == run(command, EXAMPLE).stdout
    assert len(piped.stdout) == len(whole.stdout)


# ---- directories ----


@pytest.mark.parametrize("kind", ["pipe", "directory"])
def test_what_is_no_file_in_place_of_pages(recordings, tmp_path, capfdbinary, kind):
    root = tmp_path / "copy"
    shutil.copytree(recordings["k612-snapshot"].path, root)
    pages = root / "per_cpu/cpu0/snapshot_raw"
    pages.unlink()
    os.mkfifo(pages) if kind == "pipe" else pages.mkdir()
    with ftbuf.open(root, errors="skip") as trace:
        rows = trace.problems.to_dict()
        assert (rows["cpu"].tolist(), rows["status"].tolist()) == ([0], ["bad_metadata"])
        assert 0 not in trace.snapshot.cpus
    for command in (["report"], ["report", "--style", "kernel"], ["info"], ["check"], ["stat"]):
        status, out, err = called(capfdbinary, *command, str(root))
        assert status == 1
        assert "not a regular file" in out + err


def test_a_directory_without_buffers(recordings, tmp_path, capfdbinary):
    shutil.copytree(recordings["k612-snapshot"].path / "events", tmp_path / "events")
    for command in ("check", "stat"):
        status, out, err = called(capfdbinary, command, str(tmp_path))
        assert status == 1
        assert "there are no buffers" in out + err
    status, out, _ = called(capfdbinary, "check", str(recordings["k612-snapshot"].path))
    assert (status, "no buffers" in out) == (0, False)


# ---- terminals ----


def test_no_control_characters_reach_the_terminal(capfdbinary, tmp_path):
    path = tmp_path / "esc\x1b.dat"
    path.write_bytes(recorded(options=[(int(OptionId.UNAME), b"Linux \x1b]0;title\x07 \x9b31m\n\0")]))
    for command in ("info", "check", "stat", "events"):
        status, out, err = called(capfdbinary, command, str(path))
        assert status == 0
        assert all(line.isprintable() for line in (out + err).splitlines())
    assert r"Linux \x1b]0;title\x07 " in called(capfdbinary, "info", str(path))[1]
    with ftbuf.open(path) as trace:
        assert "\x1b" not in str(trace) + trace._repr_html_()
    _, _, err = called(capfdbinary, "info", str(path) + "x")
    assert "\x1b" not in err


# ---- the same from Python ----


def test_numbers_without_end_are_refused():
    with ftbuf.open(EXAMPLE) as trace:
        for wrong in ({"cpus": range(10**12)}, {"pids": range(10**12)}):
            with pytest.raises(ValueError, match="has more than"):
                trace.window(**wrong)
        assert trace.window(cpus=range(1 << 16)).cpus == trace.cpus


def test_a_trace_says_why_it_is_not_pickled():
    with ftbuf.open(EXAMPLE) as trace:
        for thing in (trace, trace["sched_switch"]):
            with pytest.raises(TypeError, match=r"partitions\(\)"):
                pickle.dumps(thing)


@pytest.mark.parametrize("wrong", [5, None, 1.5, [None]])
def test_what_is_no_recording_at_all(wrong):
    with pytest.raises(TypeError, match="a recording is a path"):
        ftbuf.open(wrong)


@pytest.mark.parametrize(("where", "position"), [
    ('prev_comm == "\ud800"', 14), ('sched_switch: prev_comm ~ "a\udbff*"', 28), ("\ud800 == 1", 0), ("\ud800: a", 0)])
def test_a_lone_surrogate_in_a_filter(where, position):
    with ftbuf.open(EXAMPLE) as trace, pytest.raises(ftbuf.FilterError) as found:
        trace.window(where=where)
    assert found.value.position == position


def test_columns_have_the_same_name_everywhere():
    with ftbuf.open(EXAMPLE) as trace:
        view = trace["sched_switch"]
        table = view.table()
        assert view.columns == view.column_names == table.columns == table.column_names


def test_what_a_trace_offers_is_for_users():
    with ftbuf.open(EXAMPLE) as trace:
        assert {"window", "events", "unknown_events", "tables", "iterate", "lines"} <= set(dir(trace))
        assert not {"reader", "objects", "recording", "narrowed"} & set(dir(trace))
