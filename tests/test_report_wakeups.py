"""report -w: how long tasks waited, in trace-cmd's words."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from corpus_data import SHARED
from recorder import DEFAULT, OTHERS, Recorder

import ftbuf
from ftbuf.cli.main import main

WOKEN = {"sched": ("char comm[16]", "pid_t pid", "int prio", "int success", "int target_cpu")}


def recorded(declared=None):
    return Recorder({**DEFAULT, **OTHERS} if declared is None else declared)


def lines(made, **options):
    with ftbuf.open(made.build()) as trace:
        return list(trace.lines(wakeups=True, heading=False, **options))


def switch(made, ts, cpu, prev, following):
    made.add_fields(ts, cpu, "sched_switch", {"common_pid": prev, "prev_pid": prev, "next_pid": following, "prev_comm": b"a",
                                              "next_comm": b"b", "next_prio": 120})


def wake(made, ts, cpu, pid, prio=120, name="sched_wakeup", **more):
    made.add_fields(ts, cpu, name, {"common_pid": 9, "pid": pid, "prio": prio, "comm": b"b", **more})


def waits(text):
    return [match[1] if (match := re.search(r" Latency: (\S+) usecs$", line)) else "" for line in text if "sched_switch" in line]


def test_waits_and_their_summary():
    made = recorded()
    wake(made, 1_000, 0, 5)
    wake(made, 2_000, 0, 5)  # the later one counts
    switch(made, 5_500, 0, 0, 5)
    switch(made, 6_000, 0, 5, 6)  # nobody saw it woken
    wake(made, 7_000, 1, 6, name="sched_wakeup_new")
    wake(made, 7_100, 1, 7, prio=50)
    switch(made, 1_007_000, 1, 0, 7)
    switch(made, 1_008_000, 1, 7, 6)
    switch(made, 1_009_000, 1, 6, 6)  # was told before
    text = lines(made)
    assert waits(text) == ["3.500", "", "999.900", "1001.000", ""]
    assert text[text.index(""):] == [
        "", "Average wakeup latency: 668.133 usecs", "Maximum Latency: 1001.000 usecs at timestamp: 0.001008",
        "Minimum Latency: 3.500 usecs at timestamp: 0.000006", "", "RT task timings:", "",
        "Average wakeup latency: 999.900 usecs", "Maximum Latency: 999.900 usecs at timestamp: 0.001007",
        "Minimum Latency: 999.900 usecs at timestamp: 0.001007", ""]
    assert waits(lines(made, raw=True)) == waits(text) == waits(lines(made, latency=True))
    assert lines(made, raw_ts=True)[-2].endswith("at timestamp: 1007000")


def test_without_waits_there_is_no_summary():
    made = recorded()
    switch(made, 5_500, 0, 0, 5)
    assert len(lines(made)) == 1


def test_wakeups_that_failed_are_none():
    made = recorded({**DEFAULT, ("sched", "sched_wakeup"): WOKEN["sched"]})
    wake(made, 1_000, 0, 5, success=1)
    wake(made, 2_000, 0, 5, success=0)
    switch(made, 5_500, 0, 0, 5)
    assert waits(lines(made)) == ["4.500"]


def test_tasks_of_two_files_are_not_mixed(tmp_path):
    """A task of the one is woken, one of the same pid runs on the other."""
    for name, offset in (("a", 0), ("b", 100)):
        made = recorded()
        if name == "a":
            wake(made, 1_000, 0, 5)
        switch(made, 5_000 + offset, 0, 0, 5)
        (tmp_path / name).write_bytes(made.build())
    with ftbuf.open([tmp_path / "a", tmp_path / "b"]) as trace:
        assert waits(trace.lines(wakeups=True)) == ["4.000", ""]


@pytest.mark.corpus
@pytest.mark.skipif(not SHARED.exists() or shutil.which("trace-cmd") is None, reason="needs the corpus and trace-cmd")
@pytest.mark.parametrize("case", ["k612-tc316-all", "k612-tc34-all"])
@pytest.mark.parametrize("options", [[], ["-t"], ["-R"], ["--cpu", "0"]])
def test_what_trace_cmd_prints(case, options, tmp_path, capsysbinary):
    import lzma

    path = tmp_path / "trace.dat"
    path.write_bytes(lzma.decompress((SHARED / f"corpus/cases/{case}/trace.dat.xz").read_bytes()))
    theirs = subprocess.run(["trace-cmd", "report", "-w", *options, str(path)], capture_output=True, check=False).stdout
    assert main(["report", "-w", *options, str(path)]) == 0
    ours = capsysbinary.readouterr().out
    told = re.compile(rb"(?m)^.* timings:$|^Average.*$|(?:Maximum |Minimum )?Latency: .*$")
    assert told.findall(ours) == told.findall(theirs) != []
