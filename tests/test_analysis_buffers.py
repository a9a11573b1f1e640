"""Which buffers analyses look at: parts of one recording together, else one, and a warning that names the others."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path

import numpy as np
import pytest
from filebuilder import BufferSpec, TraceDat
from pagebuilder import ABIS, event, format_text, pages_of
from test_analysis_gaps import SWITCH

import ftbuf
from ftbuf import analysis
from ftbuf.cli.main import main

SCHED = Path(__file__).parent.parent / "examples" / "sched.dat"
ABI = ABIS["le64"]
ANALYSES = {
    "wakeup_latency": lambda trace: analysis.wakeup_latency(trace).table,
    "task_states": analysis.task_states,
    "cpu_busy": analysis.cpu_busy,
    "syscalls": analysis.syscalls,
}


def switches(n: int, ts: int) -> bytes:
    made = (event(SWITCH, ABI, prev_pid=i % 2 * 7, next_pid=(i + 1) % 2 * 7, next_comm="task") for i in range(n))
    return pages_of(ABI, *made, ts=ts)


def file_of(*buffers: BufferSpec) -> bytes:
    return TraceDat(ABI, formats={"sched": [format_text(SWITCH)]}, buffers=list(buffers)).build().data


@pytest.mark.parametrize("name", ANALYSES)
@pytest.mark.parametrize("how", ["by time", "by CPU"])
def test_parts_of_a_recording_are_one(name, how, tmp_path):
    if how == "by time":
        paths = [w.path for w in ftbuf.split(SCHED, tmp_path / "part.dat", parts=3)]
    else:
        paths = [w.path for cpu in (0, 1) for w in ftbuf.split(SCHED, tmp_path / f"cpu{cpu}.dat", cpus=[cpu])]
    with ftbuf.open(SCHED) as whole, ftbuf.open(paths) as parts:
        assert len(parts.buffers) == len(paths)
        expected, found = ANALYSES[name](whole), ANALYSES[name](parts)
    assert expected.num_rows == found.num_rows > 1
    for column in expected.column_names:
        np.testing.assert_array_equal(expected[column], found[column], column)


def test_an_instance_beside_the_top_buffer():
    data = file_of(BufferSpec(pages={0: switches(10, 1000)}), BufferSpec("inst", {0: switches(20, 1000)}))
    with ftbuf.open(data) as trace:
        with pytest.warns(ftbuf.BufferWarning, match="'inst'"):
            first = analysis.cpu_busy(trace)
        chosen = [analysis.cpu_busy(trace.window(buffer=name)) for name in trace.buffers]  # no warning: it was asked for
        assert first["switches"].tolist() == chosen[0]["switches"].tolist() == [10]
        assert chosen[1]["switches"].tolist() == [20]


def test_an_instance_without_such_events_is_not_spoken_of():
    data = file_of(BufferSpec(pages={0: switches(10, 1000)}), BufferSpec("inst", {0: b""}))
    with ftbuf.open(data) as trace, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert analysis.cpu_busy(trace)["switches"].tolist() == [10]


def test_recordings_of_two_machines(tmp_path):
    for i, n in enumerate((10, 20)):
        (tmp_path / f"{i}.dat").write_bytes(file_of(BufferSpec(pages={0: switches(n, 1000 * i)})))
    with ftbuf.open([tmp_path / "0.dat", tmp_path / "1.dat"]) as trace:
        with pytest.warns(ftbuf.BufferWarning, match=r"1\.dat"):
            assert analysis.cpu_busy(trace)["switches"].tolist() == [10]
        assert analysis.cpu_busy(trace.window(buffer="1.dat"))["switches"].tolist() == [20]


def test_windows_of_several_buffers():
    data = file_of(*(BufferSpec(name, {0: switches(n, 1000)}) for name, n in (("", 3), ("a", 4), ("b", 5))))
    with ftbuf.open(data) as trace:
        view = trace.window(buffer=["a", "b"])
        assert view["sched_switch"].table().num_rows == 9
        assert view.window(buffer=["", "a"])["sched_switch"].table().num_rows == 4  # a view of a view: what both let through
        assert sum(part.open()["sched_switch"].table().num_rows for part in view.partitions(target_bytes=4096)) == 9
        with pytest.raises(ValueError, match="nowhere"):
            trace.window(buffer=["a", "nowhere"])
        with pytest.raises(TypeError):
            trace.window(buffer=[3])


@pytest.mark.parametrize("command", ["tasks", "latency", "loss", "profile"])
def test_buffers_on_the_command_line(command, tmp_path, capsys):
    path = tmp_path / "two.dat"
    path.write_bytes(file_of(BufferSpec(pages={0: switches(10, 1000)}), BufferSpec("inst", {0: switches(20, 1000)})))
    assert main([command, "--buffer", "nowhere", str(path)]) == 2
    assert "'inst'" in capsys.readouterr().err
    status = main([command, "--buffer", "inst", str(path)])
    assert status in (0, 1) and "only the buffer" not in capsys.readouterr().err
    if command == "tasks":
        assert main([command, "--what", "cpus", str(path)]) == 0  # a choice, not damage
        assert "only the buffer ''" in capsys.readouterr().err


def test_help_of_commands_names_the_option(capsys):
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as out:
        main(["latency", "--help"])
    assert "--buffer NAME" in out.getvalue() + capsys.readouterr().out
