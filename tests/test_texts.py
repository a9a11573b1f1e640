"""Text from Python: lines of a trace, the line of an event, the text of each event."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from corpus_data import ROOT
from filebuilder import BufferSpec, TraceDat
from pagebuilder import ABIS, event, format_text, make_format, pages_of

import ftbuf
from ftbuf.cli.main import main
from ftbuf.report import texts

EXAMPLE = ROOT / "examples" / "sched.dat"
ABI = ABIS["le64"]
FORMAT = make_format("probe", 42, ["int number", "char text[12]"], print_fmt='"n=%d %s%c%c%c", REC->number, REC->text, 0, 1, 0')
REFUSED = make_format("odd", 43, ["int number"], print_fmt='"n=%d", nobody_knows(REC->number)')


def made(*texts: bytes) -> bytes:
    """A recording of probes, and one event whose print format is refused."""
    records = [event(FORMAT, ABI, number=i, text=text) for i, text in enumerate(texts)] + [event(REFUSED, ABI, number=7)]
    return TraceDat(ABI, formats={"test": [format_text(FORMAT), format_text(REFUSED)]},
                    buffers=[BufferSpec(pages={0: pages_of(ABI, *records, ts=1000)})]).build().data


def reported(capfdbinary, *arguments: str) -> list[str]:
    assert main(["report", *arguments]) == 0
    sys.stdout.flush()
    return capfdbinary.readouterr()[0].decode("utf-8", "backslashreplace").removesuffix("\n").split("\n")


@pytest.fixture
def trace():
    with ftbuf.open(EXAMPLE) as trace:
        yield trace


# ---- lines ----


@pytest.mark.parametrize(("style", "options", "arguments"), [
    ("trace-cmd", {}, []),
    ("trace-cmd", {"latency": True, "nanoseconds": True, "ts_diff": True}, ["-l", "-t", "--ts-diff"]),
    ("trace-cmd", {"raw": True, "ts_offset": 5}, ["-R", "--ts-offset", "5"]),
    ("trace-cmd", {"plugins": False, "raw_events": ["sched_switch"]}, ["-N", "-r", "sched_switch"]),
    ("kernel", {}, []),
    ("kernel", {"options": ["latency-format", "nocontext-info"]}, ["-O", "latency-format", "-O", "nocontext-info"]),
], ids=str)
def test_lines_are_those_of_the_report(trace, capfdbinary, style, options, arguments):
    lines = list(trace.lines(style, **options))
    assert lines == reported(capfdbinary, "--style", style, *arguments, str(EXAMPLE))


def test_lines_of_every_kind_of_recording(recording, capfdbinary):
    for style in ("trace-cmd", "kernel"):
        with ftbuf.open(recording.path, errors="warn") as trace:
            assert list(trace.lines(style=style)) == reported(capfdbinary, "--style", style, str(recording.path))


def test_lines_of_a_view_and_without_heading(trace):
    view = trace.window(cpus=[0], where="sched_switch")
    assert list(view.lines())[1:] == list(view.lines(heading=False)) == [str(event) for event in view.records()]
    assert all("sched_switch:" in line for line in view.lines("kernel", heading=False))
    assert len(list(view.lines("kernel", heading=False))) == len(view["sched_switch"])


def test_lines_stream(trace):
    lines = trace.lines()
    assert next(lines) == "cpus=2"
    trace.close()
    with pytest.raises(ftbuf.ClosedError):
        list(lines)
    with pytest.raises(ftbuf.ClosedError):
        trace.lines()


def test_lines_of_several_files(recordings, capfdbinary):
    with ftbuf.open([EXAMPLE, EXAMPLE]) as both:
        lines = list(both.lines())
        assert lines == reported(capfdbinary, str(EXAMPLE), str(EXAMPLE))
        assert list(both.lines(heading=False)) == lines[2:]
        assert [str(event) for event in both.records()] == lines[2:]
        assert len(both["sched_switch"].text()) == len(both["sched_switch"])
        assert len(list(both.lines("kernel", heading=False))) == len(lines) - 2
    with ftbuf.open([recordings["mips32be-graph"].path, EXAMPLE]) as both, pytest.raises(ftbuf.UnsupportedError, match="graph"):
        both.lines("kernel")


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"style": "nope"}, ValueError, "style"),
    ({"nanosecond": True}, TypeError, "nanoseconds"),
    ({"seconds": True}, TypeError, "seconds"),
    ({"latency": 1}, TypeError, "latency is a bool"),
    ({"ts_offset": True}, TypeError, "ts_offset is an int"),
    ({"raw_events": "sched_switch"}, TypeError, "list of str"),
    ({"style": "kernel", "latency": True}, TypeError, "latency"),
    ({"style": "kernel", "options": ["sym-ofset"]}, ValueError, "sym-offset"),
    ({"style": "kernel", "buffer": "snapshot"}, ValueError, "'snapshot'"),
    ({"style": "kernel", "buffer": "other"}, ValueError, "'other'"),
], ids=str)
def test_wrong_options_are_refused_at_the_call(trace, options, error, message):
    with pytest.raises(error, match=message):
        trace.lines(**options)


# ---- one event ----


def test_the_line_of_an_event_is_that_of_the_report(recording):
    with ftbuf.open(recording.path, errors="skip") as trace:
        if any("graph" in name for name in trace.events):
            pytest.skip("calls are drawn with their returns")
        lines = [line for line in trace.lines(heading=False) if not line.startswith("CPU:")]
        own = [str(event) for event in trace.records()]
        assert "\n".join(own) == "\n".join(lines)


def test_an_event_prints_itself_after_the_trace_is_closed(recordings):
    path = next(r for r in recordings.values() if "function" in r.name).path
    with ftbuf.open(path) as trace:
        lines = [line for line in trace.lines(heading=False) if not line.startswith("CPU:")]
        events = list(trace.records())
    assert [str(event) for event in events] == lines


# ---- bodies ----


def test_the_text_of_each_event(trace):
    text = trace["sched_switch"].text()
    table = trace["sched_switch"].table()
    assert text.dtype == object and not text.flags.writeable
    assert len(text) == len(table)
    assert [t.split(" prev_pid=")[0] for t in text] == [f"prev_comm={comm}" for comm in table["prev_comm"]]
    lines = [line for line in trace.lines("kernel", heading=False) if ": sched_switch: " in line]
    assert list(text) == [line.split(": sched_switch: ", 1)[1] for line in lines]
    lines = [line for line in trace.window(where="sched_switch").lines(heading=False)]
    assert list(trace["sched_switch"].text("trace-cmd")) == [line.split("sched_switch:", 1)[1].lstrip() for line in lines]
    with pytest.raises(ValueError, match="style"):
        trace["sched_switch"].text("nope")


def test_text_of_views_without_events(trace):
    assert len(trace["sched_switch"].window(end=trace.start).text()) == 0


def test_text_of_the_kernels_own_events(recording):
    with ftbuf.open(recording.path, errors="skip") as trace:
        for name in trace.events:
            assert len(trace[name].text()) == trace[name].table(["common_ts"]).num_rows


def test_a_body_may_hold_anything():
    with ftbuf.open(made(b"plain", b"\xff\n", b"\n")) as trace:
        assert list(trace["probe"].text()) == ["n=0 plain\0\1\0", "n=1 \\xff\n\0\1\0", "n=2 \n\0\1\0"]
    fmt = make_format("probe", 42, ["int number"], print_fmt='"%c%c%c%cx", 0, 1, 1, 1')
    data = TraceDat(ABI, formats={"test": [format_text(fmt)]},
                    buffers=[BufferSpec(pages={0: pages_of(ABI, event(fmt, ABI, number=1), ts=1000)})]).build().data
    with ftbuf.open(data) as trace:
        assert list(trace["probe"].text()) == [texts.SEPARATOR + "x"]


def test_names_need_not_be_utf8(capfdbinary, tmp_path):
    """Those of events and of buffers: a damaged recording may have any bytes."""
    pages = {0: pages_of(ABI, *(event(FORMAT, ABI, number=i, text=b"x") for i in range(3)), ts=1000)}
    text = format_text(FORMAT).replace(b"name: probe", b"name: proXXbe")
    built = TraceDat(ABI, formats={"test": [text]}, buffers=[BufferSpec(pages=pages), BufferSpec("iYYd", pages=pages)]).build()
    (tmp_path / "odd.dat").write_bytes(built.data.replace(b"XX", b"\xff\xc3").replace(b"YY", b"\xfc\xfd"))
    with ftbuf.open(tmp_path / "odd.dat") as trace:
        for style in ("trace-cmd", "kernel"):
            lines = list(trace.lines(style))
            assert lines == reported(capfdbinary, "--style", style, str(tmp_path / "odd.dat"))
            assert "pro\\xff\\xc3be: " in lines[-1]
        assert [str(event) for event in trace.records()] == list(trace.lines(heading=False))
        assert "i\\xfc\\xfdd: " in str(list(trace.records())[-1])


# ---- print formats that are refused ----


def test_events_check(tmp_path, capsys):
    (tmp_path / "made.dat").write_bytes(made(b"x"))
    assert main(["events", "--check", str(tmp_path / "made.dat")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("test:odd: ") and "nobody_knows" in lines[0]
    assert lines[1:] == ["2 events, 1 of them with a print format that cannot be understood"]
    assert main(["events", "--check", "--json", str(tmp_path / "made.dat")]) == 0
    out = capsys.readouterr().out
    assert '"name": "odd"' in out and '"reason"' in out and "probe" not in out
    with ftbuf.open(tmp_path / "made.dat") as trace:
        assert list(trace["odd"].text()) == ["number=0x7 (7)"]


# ---- what the command says ----


def test_a_snapshot_that_is_not_there_is_named(capfdbinary):
    assert main(["report", "--style", "kernel", "--buffer", "snapshot", str(EXAMPLE)]) == 2
    assert b"snapshot" in capfdbinary.readouterr()[1]


@pytest.mark.parametrize("options", [["--buffer", "main"], ["--style", "kernel", "-O", "nosuch"]], ids=" ".join)
def test_wrong_options_of_the_report_are_2(capfdbinary, options):
    assert main(["report", *options, str(EXAMPLE)]) == 2
    assert capfdbinary.readouterr()[0] == b""


def test_tables_are_made_for_programs_that_read_them(recordings, monkeypatch):
    """Symbols are not sorted for a report that names none."""
    def refuse(*_: object) -> None:
        raise AssertionError("symbols were asked for")

    monkeypatch.setattr("ftbuf.lookups.symbol_columns", refuse)
    with ftbuf.open(EXAMPLE) as trace:
        assert len(list(trace.lines())) > 1
        assert len(trace["sched_switch"].text()) > 1


@pytest.mark.parametrize(("arguments", "said"), [
    (["report"], rb"\rftbuf report: [0-9]+ %, [0-9]+ MB of text\x1b\[K"),
    (["check"], rb"\rftbuf check: 100 %\x1b\[K"),
    (["stat"], rb"\rftbuf stat: 100 %\x1b\[K"),
    (["convert", "-o", "other"], rb"\rftbuf convert: 100 %\x1b\[K"),
    (["split", "-o", "other", "-n", "2"], rb"\rftbuf split: 100 %\x1b\[K")], ids=lambda a: a[0] if isinstance(a, list) else "")
def test_progress_is_for_terminals(tmp_path, arguments, said):
    """A command says on the terminal how far it is, a report also how much it wrote; nothing where there is none."""
    pty = pytest.importorskip("pty")
    code = ("import sys; from ftbuf.cli import progress\n"
            "class Patient(progress.Progress):\n"  # at the end it says once more
            "    def __exit__(self, *exc):\n"
            "        if self._on: self._say(self._line(self._passages))\n"
            "        super().__exit__(*exc)\n"
            "progress.Progress = Patient\n"
            f"from ftbuf.cli.main import main; sys.exit(main({[*arguments, str(EXAMPLE)]!r}))")
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(Path(ftbuf.__file__).parent.parent)}
    ours, theirs = pty.openpty()
    with (tmp_path / "out").open("wb") as out:
        assert subprocess.run(command, stdout=out, stderr=theirs, cwd=tmp_path, env=environment).returncode == 0
    os.close(theirs)
    shown = os.read(ours, 1 << 16)
    os.close(ours)
    assert re.search(said, shown) and shown.endswith(b"\r\x1b[K")
    quiet = subprocess.run(command, capture_output=True, cwd=tmp_path, env=environment)
    assert quiet.stderr == b"" and quiet.stdout == (tmp_path / "out").read_bytes()
