"""The commands: what they print, their exit status, and how they bear damage, closed pipes and full disks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from corpus_data import ROOT
from filebuilder import BufferSpec, TraceDat
from pagebuilder import ABIS, event, format_text, make_format, pages_of

import ftbuf
from ftbuf.cli.main import COMMANDS, main

EXAMPLE = str(ROOT / "examples" / "sched.dat")
ABI = ABIS["le64"]
CALLS = str(ROOT / "examples" / "function.dat")
FORMAT = make_format("probe", 42, ["int number"], print_fmt='"number=%d", REC->number')


def damaged_file() -> bytes:
    """CPU 0 is whole, of CPU 1 the second of three pages promises more data than it can hold."""
    pages = {cpu: pages_of(ABI, *(event(FORMAT, ABI, number=i) for i in range(400)), ts=1000 + cpu) for cpu in (0, 1)}
    bad = bytearray(pages[1])
    bad[4096 + 8:4096 + 12] = b"\xf0\xff\x0f\x00"
    built = TraceDat(ABI, formats={"test": [format_text(FORMAT)]}, buffers=[BufferSpec(pages={**pages, 1: bytes(bad)})])
    return built.build().data


@pytest.fixture(scope="module")
def damaged(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("damaged") / "trace.dat"
    path.write_bytes(damaged_file())
    return str(path)


def with_output(command: str, path: object) -> list[str]:
    """The command with its output file, where it writes one."""
    return [command, "-o", str(path)] if command in ("split", "convert") else [command]


def example_of(command: str) -> str:
    """A recording that has what the command shows."""
    return CALLS if command == "profile" else EXAMPLE


def run(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(ftbuf.__file__).parent.parent), "PYTHONWARNINGS": "error"}
    return subprocess.run([sys.executable, "-m", "ftbuf", *arguments], cwd="/", env=environment,
                          **{"capture_output": True, "text": True, **options})


def called(capfdbinary, *arguments: str) -> tuple[int, str, str]:
    """Status, stdout and stderr of a command run in this process."""
    try:
        status = main(arguments)
    except SystemExit as stop:
        status = stop.code
    sys.stdout.flush()
    out, err = capfdbinary.readouterr()
    return status, out.decode("utf-8", "surrogateescape"), err.decode()


# ---- what they print ----


def test_info(capfdbinary):
    status, out, err = called(capfdbinary, "info", EXAMPLE)
    assert (status, err) == (0, "")
    with ftbuf.open(EXAMPLE) as trace:
        counts = trace.events
        assert out.startswith(str(trace))
    listed = {line.split()[1]: int(line.split()[0]) for line in out.splitlines()[-len(counts):]}
    assert listed == counts


def test_info_of_several_files(capfdbinary):
    status, out, _ = called(capfdbinary, "info", EXAMPLE, EXAMPLE)
    assert status == 0
    assert out.count("recording:") == 2


def test_info_json(capfdbinary):
    status, out, _ = called(capfdbinary, "info", "--json", EXAMPLE)
    details = json.loads(out)
    with ftbuf.open(EXAMPLE) as trace:
        assert details["events"] == trace.events
        assert (details["start"], details["end"], details["clock"]) == (trace.start, trace.end, "local")
        assert details["cpus"] == trace.cpus
    assert status == 0
    assert details["problems"]["cpu"] == []


def test_events(capfdbinary):
    status, out, _ = called(capfdbinary, "events", EXAMPLE)
    with ftbuf.open(EXAMPLE) as trace:
        assert len(out.splitlines()) == len(trace)
        counts = trace.events
    row = next(line.split() for line in out.splitlines() if line.endswith(" sched:sched_switch"))
    assert int(row[1]) == counts["sched_switch"]
    assert status == 0
    _, occurring, _ = called(capfdbinary, "events", "--occurring", EXAMPLE)
    assert len(occurring.splitlines()) == len(counts)
    _, fields, _ = called(capfdbinary, "events", "-e", "sched_switch", "--fields", EXAMPLE)
    assert "prev_state" in fields and "common_pid" in fields


def test_events_json(capfdbinary):
    _, out, _ = called(capfdbinary, "events", "--json", "-e", "sched_switch", "-e", "sched_waking", EXAMPLE)
    rows = json.loads(out)
    assert [r["name"] for r in rows] == ["sched_switch", "sched_waking"]
    pid = next(f for f in rows[0]["fields"] if f["name"] == "common_pid")
    assert (pid["offset"], pid["size"]) == (4, 4)


def test_report(capfdbinary):
    status, out, err = called(capfdbinary, "report", EXAMPLE)
    assert (status, err) == (0, "")
    with ftbuf.open(EXAMPLE) as trace:
        names = [e.name for e in trace.records()]
    lines = [line for line in out.splitlines() if "[0" in line]
    assert len(lines) == len(names)
    assert all(f" {name}:" in line for name, line in zip(names, lines, strict=True))


def test_help_and_version(capfdbinary):
    for arguments in (["--help"], *([c, "--help"] for c in COMMANDS)):
        status, out, _ = called(capfdbinary, *arguments)
        assert status == 0
        assert out.startswith("usage: ftbuf")
    assert called(capfdbinary, "--version")[1].split() == ["ftbuf", ftbuf.__version__]


def test_readme_names_every_command():
    text = (ROOT / "README.md").read_text()
    assert all(f"`ftbuf {command} " in text for command in COMMANDS)


def test_installed_command_and_module_are_the_same():
    done = run("info", EXAMPLE)
    script = Path(sys.executable).with_name("ftbuf")
    assert done.returncode == 0 and done.stderr == ""
    if script.exists():
        assert subprocess.check_output([script, "info", EXAMPLE], text=True) == done.stdout


# ---- exit status ----


@pytest.mark.parametrize("arguments", [
    [], ["nope"], ["info"], ["report"], ["report", "--style", "nope", EXAMPLE], ["events", "--no-such", EXAMPLE],
    ["report", "--cpu", "x", EXAMPLE], ["report", "--pid", "-1", EXAMPLE],
], ids=" ".join)
def test_wrong_usage_is_2(capfdbinary, arguments):
    status, out, err = called(capfdbinary, *arguments)
    assert (status, out) == (2, "")
    assert "ftbuf" in err and "Traceback" not in err


@pytest.mark.parametrize("command", COMMANDS)
def test_what_cannot_be_read_is_1(capfdbinary, tmp_path, command):
    (tmp_path / "text").write_text("hello\n")
    (tmp_path / "cut").write_bytes(Path(EXAMPLE).read_bytes()[:1000])
    for name in ("absent", "text", "cut", "."):
        status, out, err = called(capfdbinary, *with_output(command, tmp_path / "out"), str(tmp_path / name))
        assert (status, out) == (1, "")
        assert len(err.splitlines()) == 1 and err.startswith(f"ftbuf {command}: ")


@pytest.mark.parametrize("command", [
    "events -e", "events --check -e", "split -o out.dat -e", "latency -e", "report --event"])
def test_an_unknown_event_is_wrong_usage(capfdbinary, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    status, out, err = called(capfdbinary, *command.split(), "sched_swich", os.path.abspath(EXAMPLE))
    assert (status, out, os.listdir(tmp_path)) == (2, "", [])
    assert "sched_switch" in err


@pytest.mark.parametrize(("options", "same"), [
    (["--cpu", "0", "--cpu", "1"], ["--cpu", "0,1"]), (["--pid", "157", "--pid", "34,39"], ["--pid", "157,34,39"])])
@pytest.mark.parametrize("style", ["kernel", "trace-cmd"])
def test_lists_add_up(capfdbinary, style, options, same):
    _, out, _ = called(capfdbinary, "report", "--style", style, *options, EXAMPLE)
    _, want, _ = called(capfdbinary, "report", "--style", style, *same, EXAMPLE)
    _, less, _ = called(capfdbinary, "report", "--style", style, *options[2:], EXAMPLE)
    assert out == want
    assert out.count("\n") > less.count("\n")


@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_the_latency_of_no_latency_tracer(capfdbinary, json_too):
    status, out, err = called(capfdbinary, "latency", "--of", "tracer", *json_too, EXAMPLE)
    assert (status, out) == (1, "")
    assert "no latency tracer made this recording" in err


@pytest.mark.parametrize("command", [
    "tasks --what noise", "tasks --what frequency", "latency --of irq", "latency --end 1", "latency --cyclictest --cpu 9",
    "profile", "profile --tree", "profile --folded", "profile --json", "profile --cpu 1", "loss --end 1", "tasks --end 1 --json",
    f"latency --versus {CALLS}"])
def test_nothing_to_analyse_is_1(capfdbinary, command):
    """Whether the recording cannot hold what was asked for, or only does not."""
    status, _, err = called(capfdbinary, *command.split(), EXAMPLE)
    assert status == 1
    assert len(err.splitlines()) == 1 and ("nothing of what was asked for" in err or "does not have" in err)


# ---- damage ----


@pytest.mark.parametrize("command", ["info", "report"])
def test_damage_is_said_and_the_rest_is_printed(capfdbinary, damaged, command):
    status, out, err = called(capfdbinary, command, damaged)
    assert status == 1
    assert "CPU 1" in out + err
    if command == "report":
        with ftbuf.open(damaged, errors="skip") as trace:
            assert out.count(" probe:") == trace.timeline().num_rows > 400
        assert "commit" in err or "damaged" in err or "[" in err
    else:
        assert "damaged" in out


def test_damage_in_json(capfdbinary, damaged):
    status, out, _ = called(capfdbinary, "info", "--json", damaged)
    assert status == 1
    problems = json.loads(out)["problems"]
    assert problems["cpu"] == [1]
    assert problems["status"][0] in ftbuf.STATUSES


# ---- the world around ----


@pytest.mark.parametrize("arguments", [["report"], ["info"], ["info", "--json"], ["events", "--fields"]], ids=" ".join)
def test_a_closed_pipe_is_silent(arguments):
    """As in ``ftbuf report FILE | head -1``: nothing on stderr, also not when the interpreter ends."""
    read, write = os.pipe()
    os.close(read)
    done = run(*arguments, EXAMPLE, capture_output=False, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_head_gets_its_line():
    command = f'"{sys.executable}" -m ftbuf report "{EXAMPLE}" | head -n 1; echo "${{PIPESTATUS[*]}}"'
    environment = {**os.environ, "PYTHONPATH": str(Path(ftbuf.__file__).parent.parent)}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, env=environment, cwd="/")
    assert len(done.stdout.splitlines()) == 2
    assert (done.stdout.splitlines()[1], done.stderr) == ("0 0", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_1(command):
    with open("/dev/full", "w") as full:
        done = run(*with_output(command, "/dev/full"), example_of(command), capture_output=False, stdout=full,
                   stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [f"ftbuf {command}: [Errno 28] No space left on device"]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_standard_output_at_all(command, tmp_path):
    done = run(*with_output(command, tmp_path / "out"), example_of(command), preexec_fn=lambda: os.close(1), capture_output=False,
               stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, "")


def test_text_that_is_no_utf8_is_printed_as_it_is(tmp_path, capfdbinary):
    """Names come out as the bytes they are; JSON, which must be UTF-8, escapes them."""
    fmt = make_format("probe", 42, ["char name[8]"], print_fmt='"name=%s", REC->name')
    pages = {0: pages_of(ABI, event(fmt, ABI, name=b"\xff\xfe!"))}
    data = TraceDat(ABI, formats={"test": [format_text(fmt)]}, buffers=[BufferSpec(pages=pages)]).build().data
    path = tmp_path / "trace.dat"
    path.write_bytes(data)
    done = run("report", str(path), text=False)
    assert done.returncode == 0
    assert b"\xff\xfe!" in done.stdout
    for locale in ("C", "C.UTF-8"):
        for command in ("info", "events"):
            environment = {**os.environ, "PYTHONPATH": str(Path(ftbuf.__file__).parent.parent), "LC_ALL": locale}
            done = subprocess.run([sys.executable, "-m", "ftbuf", command, "--json", str(path)], capture_output=True,
                                  env=environment, cwd="/", check=True)
            json.loads(done.stdout)
