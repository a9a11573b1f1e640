"""What analyses, and their commands, are asked that cannot be."""

from __future__ import annotations

import sys

import pytest
from corpus_data import ROOT

import ftbuf
from ftbuf import analysis
from ftbuf.cli.main import main

EXAMPLE = ROOT / "examples" / "sched.dat"
FUNCTIONS = [name for name in analysis.__all__ if not isinstance(getattr(analysis, name), type)]
WITH_PERCENTILES = ("critical_sections", "irq_time", "noise", "syscalls", "wakeup_latency")
WITH_WORST = ("critical_sections", "wakeup_latency")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("given", [str(EXAMPLE), EXAMPLE, None, 7, {}])
def test_a_trace_is_needed(name, given):
    with pytest.raises(TypeError, match=rf"trace is a Trace, as ftbuf\.open\(path\) gives it, not {type(given).__name__}"):
        getattr(analysis, name)(given)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_neither_is_a_view_of_one_event_a_trace(name):
    with ftbuf.open(EXAMPLE) as trace, pytest.raises(TypeError, match="trace is a Trace"):
        getattr(analysis, name)(trace["sched_switch"])


@pytest.mark.parametrize("name", WITH_PERCENTILES)
@pytest.mark.parametrize(("given", "error"), [([101], ValueError), ([50, -1], ValueError), ([float("nan")], ValueError),
                                              ([float("inf")], ValueError), (["50"], TypeError), (50, TypeError)])
def test_percentiles_that_none_are(name, given, error):
    with ftbuf.open(EXAMPLE) as trace, pytest.raises(error, match="percentile"):
        getattr(analysis, name)(trace, percentiles=given)


def test_percentiles_from_end_to_end():
    with ftbuf.open(EXAMPLE) as trace:
        found = analysis.wakeup_latency(trace, by="cpu", percentiles=(0, 100)).table
        assert (found["p0"] >= found["min"]).all()
        assert found["p100"].tolist() == found["max"].tolist()


@pytest.mark.parametrize("name", WITH_WORST)
@pytest.mark.parametrize(("given", "error"), [(-1, ValueError), (1.5, TypeError), ("3", TypeError)])
def test_no_such_number_of_worst_cases(name, given, error):
    with ftbuf.open(EXAMPLE) as trace, pytest.raises(error, match="worst is"):
        getattr(analysis, name)(trace, worst=given)


@pytest.mark.parametrize(("given", "error"), [(-1, ValueError), (0, ValueError), (1.5, TypeError), (1 << 80, ValueError)])
def test_no_such_number_of_bins(given, error):
    with ftbuf.open(EXAMPLE) as trace, pytest.raises(error, match="bins"):
        analysis.rates(trace, bins=given)


@pytest.mark.parametrize("arguments", [["loss", "--bins", "99999999999"], ["loss", "--bins", "2000000"], ["loss", "--by", "event"]])
def test_commands_say_what_a_recording_does_not_allow(arguments, capsys):
    assert main([*arguments, str(EXAMPLE)]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("ftbuf loss: ") and "bins" in said.err and not said.out


@pytest.mark.parametrize("arguments", [["loss", "--bins", "0"], ["loss", "--bins", "-5"], ["loss", "--bins", "x"],
                                       ["latency", "-n", "-3"], ["latency", "-n", "9" * 5000]])
def test_commands_refuse_numbers_that_none_are(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, str(EXAMPLE)])
    assert stopped.value.code == 2
    assert "is not a number from" in capsys.readouterr().err


@pytest.mark.parametrize("name", WITH_WORST)
@pytest.mark.parametrize(("given", "error"), [(-1, ValueError), (8, ValueError), (0.5, TypeError), ("3", TypeError)])
def test_a_fineness_that_is_none(name, given, error):
    with ftbuf.open(EXAMPLE) as trace, pytest.raises(error, match="fineness"):
        getattr(analysis, name)(trace, fineness=given)


@pytest.mark.parametrize("command", ["latency", "loss", "profile", "tasks"])
def test_without_matplotlib(command, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main([command, str(EXAMPLE), "--plot", str(tmp_path / "a.png")]) == 1
    assert "ftbuf[plot]" in capsys.readouterr().err
