"""Time stamps before zero, as an offset makes them: the sign stands for the whole number."""

from __future__ import annotations

from decimal import Decimal

import pytest
from corpus_data import ROOT
from hypothesis import given
from hypothesis import strategies as st

import ftbuf
from ftbuf.cli.main import main
from ftbuf.durations import seconds_text

EXAMPLE = ROOT / "examples" / "sched.dat"


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.sampled_from([6, 9]), st.integers(0, 12))
def test_seconds_are_the_number(time, digits, width):
    text = seconds_text(time, digits, width)
    assert Decimal(text.strip()) == Decimal(time).scaleb(-digits)
    assert len(text.partition(".")[0]) >= width
    assert len(text.partition(".")[2]) == digits


@pytest.mark.parametrize(("option", "digits"), [([], 6), (["-t"], 9)])
def test_reports_of_times_around_zero(capsys, option, digits):
    with ftbuf.open(EXAMPLE) as trace:
        offset = -(trace.start + trace.end) // 2
    with ftbuf.open(EXAMPLE, ts_offset=offset) as trace:
        times = trace.timeline()["common_ts"].tolist()
        assert times[0] < 0 < times[-1]
        assert f"{seconds_text(times[0])} to" in str(trace)
    assert main(["report", *option, f"--ts-offset={offset}", str(EXAMPLE)]) == 0
    printed = [Decimal(line.split("] ")[1].split()[1].rstrip(":")) for line in capsys.readouterr().out.splitlines() if "] " in line]
    exact = [Decimal(t).scaleb(-9) for t in times]
    assert len(printed) == len(exact)
    assert all(abs(a - b) <= Decimal(5).scaleb(-digits - 1) for a, b in zip(printed, exact, strict=True))
