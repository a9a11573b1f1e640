"""What the latency tracers found, against the kernel's own text of it."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest
from corpus_data import corpus_cases, file_cases
from filebuilder import TraceDat
from report_helpers import HEX

import ftbuf
from ftbuf.analysis import latency_report, latency_tracer
from ftbuf.cli.main import main
from ftbuf.sections import LATENCY_TRACERS

SMALL = ("k612-irqsoff", "k612-wakeup_dl-nofunc")
TEXT = """# tracer: {tracer}
#
# {tracer} latency trace v1.1.5 on 6.12.0
# latency: 42 us, #3/3, CPU#1 | (M:preempt VP:0, KP:0, SP:0 HP:0 #P:2)
#    | task: a b-c-77 (uid:0 nice:0 policy:1 rt_prio:60)
#  => started at: from
#  => ended at:   to
#
{lines}
"""
FUNCTIONS = """   a b-c-77        1d....    0us!: from <-parent
  <idle>-0         0dNh1.   40us : to <-parent
   a b-c-77        1d....   43us : tracer_hardirqs_on <-to
   a b-c-77        1d....   50us : <stack trace>
 => to
 => parent"""
GRAPH = """        0 us |   1)  a b-c-77     |  dN.1. |   0.000 us    |  from();
       40 us |   0)    <idle>-0    |  dN.1. |               |  to() {"""


def heading(text: str) -> dict[str, str]:
    """What the heading of the kernel's text says."""
    found = {}
    for name, pattern in (("tracer", r"# tracer: (\S+)"), ("latency", r"# latency: (\d+) us"), ("cpu", r"CPU#(\d+)"),
                          ("task", r"\| task: (.*) \(uid"), ("policy", r"policy:(\d+)"), ("rt_prio", r"rt_prio:(\d+)"),
                          ("started", r"=> started at: +(.*)"), ("ended", r"=> ended at: +(.*)")):
        match = re.search(pattern, text)
        found[name] = match[1] if match else ""
    return found


def compare(report, text):
    said = heading(text)
    assert (report.tracer, str(report.latency_us)) == (said["tracer"], said["latency"])
    assert str(report.cpu) == said["cpu"]
    assert (str(report.policy), str(report.rt_prio)) == (said["policy"], said["rt_prio"]) or report.policy == -1
    assert f"{report.comm}-{report.pid}" == said["task"]
    lines = [line for line in text.splitlines() if re.match(r".{8}-\d+ ", line)]
    steps = report.steps
    assert steps.num_rows == len(lines)
    for i, line in enumerate(lines):
        match = re.fullmatch(r"(.{8})-(\d+) +(\d+)\S{5} +(\d+)us.: (.*)", line)
        assert (steps["comm"][i][:8], str(steps["pid"][i]), str(steps["cpu"][i])) == (match[1].strip(), match[2], match[3])
        assert abs(steps["since_start"][i] / 1000 - int(match[4])) < 10
        assert HEX.sub("", steps["text"][i].split("\n")[0]).startswith(HEX.sub("", match[5].split(":")[-1].strip())[:8]) \
            or steps["event"][i] not in ("function", "kernel_stack")
    np.testing.assert_array_equal(steps["delay"][:-1], np.diff(steps["since_start"]))
    assert steps["delay"][-1] == 0
    return said


@pytest.mark.parametrize("name", SMALL)
def test_the_longest_latency(name, recordings):
    with ftbuf.open(recordings[name].path) as trace:
        report = latency_report(trace)
        said = compare(report, recordings[name].expected("trace.txt"))
        assert (report.started_at, report.ended_at) == (said["started"], said["ended"])
        assert report.start < report.end
        # the records alone tell the latency almost as well: the kernel looked at the clock just before and after
        assert abs((report.end - report.start) / 1000 - report.latency_us) < 5
        steps = report.steps
        assert steps["inside"][0] and steps["ts"][steps["inside"]].max() == report.end


@pytest.mark.parametrize("name", SMALL)
def test_the_command_prints_the_kernels_report(name, recordings, capfdbinary):
    assert main(["latency", str(recordings[name].path)]) == 0
    out = capfdbinary.readouterr().out.decode()
    assert plain_lines(name, out) == plain_lines(name, recordings[name].expected("trace.txt"))


def plain_lines(name: str, text: str) -> list[str]:
    """Without hashed pointers; a wakeup's time from the start on is known to a few microseconds only."""
    time = re.compile(r" +\d+us(?=.:)" if "wakeup" in name else "(?!)")
    return [time.sub("", HEX.sub("", line.rstrip())) for line in text.splitlines()]


def test_json(recordings, capsys):
    assert main(["latency", "--json", str(recordings["k612-irqsoff"].path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["tracer"], found["latency_us"], len(found["steps"])) == ("irqsoff", 36071, 7)
    assert set(found["steps"][0]) == {"ts", "since_start", "delay", "cpu", "pid", "comm", "event", "text", "inside"}


def test_options_that_say_nothing(recordings, capsys):
    for option in (["--by", "cpu"], ["--versus", "other"], ["--start", "0"], ["--cpu", "1"]):
        assert main(["latency", str(recordings["k612-irqsoff"].path), *option]) == 2
    assert main(["latency", "--of", "irq", "--by", "task", str(recordings["k612-sched"].path)]) == 2
    assert "--by task" in capsys.readouterr().err


def of_text(tracer: str, lines: str):
    text = TEXT.format(tracer=tracer, lines=lines)
    with ftbuf.open(TraceDat(version=6, latency_text=text.encode()).build().data) as trace:
        return latency_report(trace)


def test_a_recording_that_is_text():
    report = of_text("irqsoff", FUNCTIONS)
    assert (report.latency_us, report.cpu, report.comm, report.pid, report.rt_prio) == (42, 1, "a b-c", 77, 60)
    assert (report.started_at, report.ended_at, report.start, report.end) == ("from", "to", -1, -1)
    steps = report.steps
    assert steps["comm"].tolist() == ["a b-c", "<idle>", "a b-c", "a b-c"]
    assert steps["since_start"].tolist() == [0, 40_000, 43_000, 50_000]
    assert steps["text"].tolist()[-1] == "<stack trace>\n => to\n => parent"
    assert steps["inside"].tolist() == [True, True, False, False]
    graph = of_text("wakeup", GRAPH).steps
    assert (graph["comm"].tolist(), graph["cpu"].tolist()) == (["a b-c", "<idle>"], [1, 0])
    assert of_text("wakeup", "").steps.num_rows == 0


def test_other_recordings(recordings):
    with ftbuf.open(recordings["k612-sched"].path) as trace:
        assert latency_tracer(trace) is None
        with pytest.raises(ftbuf.UnsupportedError, match="no latency tracer"):
            latency_report(trace)


def cases():
    return [c for c in corpus_cases() if not c.is_file and (c.read("current_tracer") or b"").decode().strip() in LATENCY_TRACERS]


@pytest.mark.corpus
@pytest.mark.parametrize("case", cases(), ids=lambda c: c.name)
def test_corpus(case, corpus_layout):
    text = case.texts()["trace.txt"]
    with ftbuf.open(corpus_layout(case)) as trace:
        report = latency_report(trace)
        assert report.latency_us == int(case.read("tracing_max_latency"))
        if "graph" not in case.name:
            said = compare(report, text)
            assert (report.started_at, report.ended_at) == (said["started"], said["ended"])
        assert abs((report.end - report.start) / 1000 - report.latency_us) < 15


@pytest.mark.corpus
@pytest.mark.parametrize("case", [c for c in file_cases() if "-latency-" in c.name], ids=lambda c: c.name)
def test_corpus_texts(case, corpus_layout):
    with ftbuf.open(corpus_layout(case) / "trace.dat") as trace:
        compare(latency_report(trace), trace.text)


@pytest.mark.parametrize("said", [b"", b"x", b"-5", b"9" * 15, b"9" * 5000, b"1 2", "\u0665".encode()])
def test_what_the_kernel_says_may_be_nonsense(said, recordings, tmp_path):
    path = shutil.copytree(recordings["k612-irqsoff"].path, tmp_path / "copy")
    (path / "tracing_max_latency").write_bytes(said)
    with ftbuf.open(path) as trace:
        report = latency_report(trace)
        assert report.comm == "rcu_preempt"
        assert report.latency_us in (int("9" * 15), 36071)  # what it says, or measured
        assert list(trace.lines("kernel"))


@pytest.mark.parametrize("line", ["-1 " * 50_000, " " * 200_000, "a-1 1d.... 1us : " * 20_000, "1 us | 0) " * 20_000,
                                  "9" * 100_000 + "-1 1d.... 1us : x", "x-1 1d.... " + "9" * 5000 + "us : x"])
def test_texts_may_be_nonsense(line):
    assert of_text("irqsoff", line).steps.num_rows <= 1


def test_a_latency_tracer_that_recorded_nothing(recordings, tmp_path):
    path = shutil.copytree(recordings["k612-irqsoff"].path, tmp_path / "copy")
    for pages in path.glob("per_cpu/cpu*/*_raw"):
        pages.write_bytes(b"")
    with ftbuf.open(path) as trace:
        report = latency_report(trace)
        assert (report.steps.num_rows, report.latency_us) == (0, 36071)
