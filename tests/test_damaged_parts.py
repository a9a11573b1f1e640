"""A damaged text beside the events, or a damaged format of one event, costs itself alone."""

from __future__ import annotations

import functools
import os
import re
import warnings
from pathlib import Path

import pytest

import ftbuf
from ftbuf import analysis
from ftbuf.cli.main import main
from ftbuf.container import open_container
from ftbuf.container.options import OptionId

SCHED = Path(__file__).parent.parent / "examples/sched.dat"
EVENTS = ("sched_switch", "sched_waking", "sys_enter", "sys_exit", "softirq_entry")
PARTS = {OptionId.KALLSYMS: "kallsyms", OptionId.PRINTK: "printk_formats", OptionId.CMDLINES: "saved_cmdlines"}
COMMANDS = ("info", "report", "report --style kernel", "tasks", "loss", "latency", "profile", "events", "stat")


@functools.cache
def whole(compression: str) -> bytes:
    import io

    out = io.BytesIO()
    ftbuf.convert(SCHED, out, compression=compression)
    return out.getvalue()


def damaged_part(number: OptionId, compression: str = "zstd") -> bytes:
    """The example with one bit of a section flipped."""
    data = bytearray(whole(compression))
    container = open_container(bytes(data))
    at = container._sections[number]
    data[at + 16 + 8] ^= 0x10  # the first byte of the frame: not all others are noticed
    return bytes(data)


def run(capfd, command: str, path: Path) -> tuple[int, str, str]:
    status = main([*command.split(), os.fspath(path)])
    return (status, *capfd.readouterr())


@pytest.mark.parametrize("compression", ["zstd", "zlib"])
@pytest.mark.parametrize("number", PARTS)
def test_a_damaged_text_counts_as_absent(number, compression):
    data = damaged_part(number, compression)
    with ftbuf.open(data, errors="skip") as trace, ftbuf.open(SCHED) as good:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert [(e.ts, e.name) for e in trace.records()] == [(e.ts, e.name) for e in good.records()]
            assert trace.events == good.events
            assert len(list(trace.lines())) == len(list(good.lines()))
            assert analysis.wakeup_latency(trace).table.num_rows == analysis.wakeup_latency(good).table.num_rows
            for name, table in good.tables().items():
                assert trace[name].table().to_dict()["common_ts"].tolist() == table["common_ts"].tolist()
            len(trace.symbols), len(trace.comms), str(trace)
        (row,) = zip(*trace.problems.to_dict().values(), strict=True)
        _, _, offset, status, _, detail = row
        assert (status, offset > 0) == ("bad_compression", True)
        assert detail.startswith(PARTS[number])
        assert trace.info["symbols"] == ("damaged" if number == OptionId.KALLSYMS else "present")


@pytest.mark.parametrize(("number", "ask"), [
    (OptionId.KALLSYMS, lambda t: t.symbols), (OptionId.CMDLINES, lambda t: t.comms)])
def test_who_asks_for_a_damaged_text(number, ask):
    data = damaged_part(number)
    with ftbuf.open(data) as trace:
        with pytest.raises(ftbuf.CompressionError, match=str(open_container(data)._sections[number])):
            ask(trace)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that names of tasks are missing
            assert trace["sched_switch"].table(["prev_pid"]).num_rows
    with ftbuf.open(data, errors="warn") as trace, pytest.warns(ftbuf.DamageWarning, match=PARTS[number]) as said:
        ask(trace), ask(trace)
        list(trace.lines())
    assert len(said) == 1


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("number", [OptionId.KALLSYMS, OptionId.CMDLINES])
def test_commands_go_on_without_a_damaged_text(capfd, tmp_path, number, command):
    path = tmp_path / "damaged.dat"
    path.write_bytes(damaged_part(number))
    status, out, err = run(capfd, command, path)
    _, want, _ = run(capfd, command, SCHED)
    assert status == int((number, command) != (OptionId.KALLSYMS, "report --style kernel"))  # which needs no symbol here
    assert len(out.splitlines()) >= len(want.splitlines())
    assert not status or ("damaged" in out if command == "info" else err)


@pytest.mark.parametrize("command", ["convert", "split"])
def test_writing_without_a_damaged_text(capfd, tmp_path, command):
    path, out = tmp_path / "damaged.dat", tmp_path / "out.dat"
    path.write_bytes(damaged_part(OptionId.KALLSYMS))
    status, _, err = run(capfd, f"{command} -o {out}", path)
    assert (status, "kallsyms" in err) == (1, True)
    with ftbuf.open(out) as trace, ftbuf.open(SCHED) as good:
        assert trace.events == good.events
        assert len(trace.symbols) == 0 and not trace.problems.num_rows
    with pytest.raises(ftbuf.errors.DamageError):
        ftbuf.convert(path, out)


# ---- formats ----


def damaged_format(event: str, pattern: bytes, by: bytes) -> bytes:
    """The example with text of one event's format replaced by text of the same length."""
    data = whole("none")
    start = data.index(b"name: %b\n" % event.encode())
    found = re.compile(pattern).search(data, start)
    assert found is not None and len(found[0]) == len(by)
    return data[: found.start()] + by + data[found.end() :]


NO_PLACE = (b"offset:24;", b"offzet:24;")


def cut_directory(recordings, dest: Path, event: str, length: int) -> Path:
    import shutil

    shutil.copytree(recordings["k612-sched"].path, dest)
    (place,) = dest.glob(f"events/*/{event}/format")
    place.write_bytes(place.read_bytes()[:length])
    return dest


@pytest.mark.parametrize("length", [0, 10, 60, 300, 420, 500])
def test_a_cut_format_costs_its_event(recordings, capfd, tmp_path, length):
    path = cut_directory(recordings, tmp_path / "cut", "sched_switch", length)
    with ftbuf.open(path, errors="skip") as trace, ftbuf.open(recordings["k612-sched"].path) as good:
        assert sum(trace.events.values()) + trace.unknown_events == sum(good.events.values())
        assert len(list(trace.lines())) == len(list(good.lines()))
        names = set(trace.tables())
        assert names >= set(good.events) - {"sched_switch"}
        if "sched_switch" not in names and "sched_switch" in trace.events:
            with pytest.raises(ftbuf.FormatError, match="sched:sched_switch"):
                trace["sched_switch"].table()
            assert any("sched:sched_switch" in detail for detail in trace.problems["detail"])
    for command in ("info", "report", "report -R", "report --style kernel", "loss", "events"):
        _, out, _ = run(capfd, command, path)
        assert out.count("\n") > 3, command


def test_records_of_an_event_whose_format_is_damaged(capfd, tmp_path):
    data = damaged_format("sched_switch", *NO_PLACE)
    path = tmp_path / "damaged.dat"
    path.write_bytes(data)
    with ftbuf.open(data, errors="skip") as trace:
        event = next(trace.records(["sched_switch"]))
        assert (event.name, event["common_pid"], list(event.keys())) == ("sched_switch", event.pid, [])
        assert list(trace.problems["status"]) == ["bad_metadata"]
        steps = list(trace.iterate())
        assert "sched_switch" not in steps[0] and "sched_waking" in steps[0]
    with ftbuf.open(data) as trace, pytest.raises(ftbuf.FormatError, match="sched:sched_switch"):
        trace.tables()
    with ftbuf.open(data, errors="warn") as trace, pytest.warns(ftbuf.DamageWarning, match="sched:sched_switch") as said:
        assert len(list(trace.records())) == sum(trace.events.values())
        assert "sched_switch" not in trace.tables()
    assert len(said) == 1
    _, out, _ = run(capfd, "events --check", path)
    assert "sched:sched_switch: the format itself" in out
    for command in ("tasks", "latency"):
        status, _, err = run(capfd, command, path)
        assert (status, "sched:sched_switch" in err) == (1, True)


def test_a_filter_on_a_field_of_a_damaged_format():
    with ftbuf.open(damaged_format("sched_switch", *NO_PLACE), errors="skip") as trace:
        assert not trace.window(where="prev_pid == 0").events
        assert len(trace.window(where="pid > 0").events)


@pytest.mark.parametrize("field", ["common_type", "common_flags", "common_preempt_count", "common_pid"])
@pytest.mark.parametrize("size", [b"0", b"3", b"9"])
def test_a_common_field_that_is_no_number(capfd, tmp_path, field, size):
    data = whole("none")
    start = data.index(b"name: sched_switch\n")
    at = data.index(b"size:", data.index(field.encode(), start)) + 5
    data = data[:at] + size + data[at + 1 :]
    with ftbuf.open(data, errors="skip") as trace:
        with pytest.raises(ftbuf.FormatError, match=f"sched:sched_switch: {field} of {size.decode()} bytes"):
            trace["sched_switch"].table()
        assert "sched_waking" in trace.tables() and trace.timeline().num_rows == sum(trace.events.values())
        assert len(list(trace.lines())) > len(list(trace.records()))
    path = tmp_path / "damaged.dat"
    path.write_bytes(data)
    status, _, err = run(capfd, "tasks", path)
    assert (status, "sched:sched_switch" in err) == (1, True)


# ---- chunks ----


@pytest.mark.parametrize("cpu", [0, 1])
def test_a_count_of_chunks_that_is_too_small(capfd, tmp_path, cpu):
    data = bytearray(whole("zstd"))
    stream = next(s for s in open_container(bytes(data)).buffers[0].streams if s.cpu == cpu)
    data[stream._offset : stream._offset + 4] = bytes(4)
    with ftbuf.open(bytes(data), errors="skip") as trace:
        (row,) = zip(*trace.problems.to_dict().values(), strict=True)
        assert row[:5] == (cpu, "", stream._offset + 4, "bad_metadata", stream._size - 4)
    with ftbuf.open(bytes(data)) as trace, pytest.raises(ftbuf.errors.DamageError, match="left over"):
        trace.tables()
    path = tmp_path / "damaged.dat"
    path.write_bytes(data)
    for command in ("check", "report", "info"):
        assert run(capfd, command, path)[0] == 1


# ---- sections of formats ----


@pytest.mark.parametrize("number", [OptionId.FTRACE_EVENTS, OptionId.EVENT_FORMATS])
def test_a_damaged_section_of_formats_costs_itself(capfd, tmp_path, number):
    data = damaged_part(number)
    with ftbuf.open(data, errors="skip") as trace, ftbuf.open(SCHED) as good:
        left = {pair for pair in good.recording.format_index if (pair[0] == "ftrace") != (number == OptionId.FTRACE_EVENTS)}
        assert set(trace.recording.format_index) == left
        assert sum(trace.events.values()) + trace.unknown_events == sum(good.events.values())
        (row,) = zip(*trace.problems.to_dict().values(), strict=True)
        assert (row[3], number.name in row[5], row[2] > 0) == ("bad_compression", True, True)
    with ftbuf.open(data) as trace, pytest.raises(ftbuf.CompressionError, match=number.name):
        trace.tables()
    with ftbuf.open(data, errors="warn") as trace, pytest.warns(ftbuf.DamageWarning, match=f"{number.name}|unknown_event") as said:
        trace.tables(), list(trace.lines())
        unknown = trace.unknown_events
    assert len(said) == 1 + bool(unknown)  # of the section, and of lines that lack what it described
    path = tmp_path / "damaged.dat"
    path.write_bytes(data)
    for command in ("info", "report", "events", "loss", "check"):
        status, out, _ = run(capfd, command, path)
        assert status == 1 and out, command
    with pytest.raises(ftbuf.errors.DamageError):
        ftbuf.convert(path, tmp_path / "out.dat")
    ftbuf.convert(path, tmp_path / "out.dat", errors="skip")
    with ftbuf.open(tmp_path / "out.dat") as trace:
        assert set(trace.recording.format_index) == left


def test_formats_before_a_damaged_size_stay():
    data = bytearray(whole("none"))
    at = data.index(b"name: sched_waking\n") - 8
    data[at + 7] ^= 0x40  # the text's size
    with ftbuf.open(bytes(data), errors="skip") as trace, ftbuf.open(SCHED) as good:
        known = list(good.recording.container.format_index())
        assert list(trace.recording.container.format_index()) == known[: known.index(("sched", "sched_waking"))]
        assert [*trace.problems["status"]] == ["truncated"]


def test_files_of_a_directory_that_have_no_end(recordings, tmp_path):
    import shutil

    root = tmp_path / "odd"
    shutil.copytree(recordings["k612-sched"].path, root)
    with ftbuf.open(root) as trace:
        good = trace.events
    for name in ("saved_cmdlines", "saved_tgids", "printk_formats", "kallsyms", "trace_clock", "uname"):
        (root / name).unlink(missing_ok=True)
    os.mkfifo(root / "saved_cmdlines")
    for name in ("saved_tgids", "printk_formats", "kallsyms", "trace_clock", "uname"):
        os.symlink("/dev/zero", root / name)
    with ftbuf.open(root) as trace:
        assert trace.events == good and not trace.problems.num_rows
        assert len(trace.comms.saved) == 0
