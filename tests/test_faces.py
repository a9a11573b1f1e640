"""What a user meets at the edges: names that are no UTF-8, arguments beyond reason, events as mappings, exit codes."""

from pathlib import Path

import numpy as np
import pytest

import ftbuf
from ftbuf import _core
from ftbuf.cli.main import main

EXAMPLE = Path(__file__).parent.parent / "examples" / "sched.dat"


@pytest.fixture(scope="module")
def odd_names(tmp_path_factory):
    """The example with a task whose name is no UTF-8."""
    path = tmp_path_factory.mktemp("odd") / "odd.dat"
    ftbuf.convert(EXAMPLE, path, version=6)
    path.write_bytes(path.read_bytes().replace(b"ftbchild", b"ft\xffch\xe9ld"))
    return path


def test_names_that_are_no_utf8_reach_pandas_and_print(odd_names):
    pandas = pytest.importorskip("pandas")
    with ftbuf.open(odd_names) as trace:
        column = trace["sched_switch"].to_pandas(["next_comm"])["next_comm"]
        assert isinstance(column.dtype, pandas.CategoricalDtype)
        assert "ft\udcffch\udce9ld" in set(column)
        lines = [str(e) for e in trace["sched_switch"].records()]
    assert any("ft\\xffch\\xe9ld" in line for line in lines)
    assert all(line.encode() for line in lines)


def test_an_event_is_like_a_mapping():
    with ftbuf.open(EXAMPLE) as trace:
        event = next(trace["sched_switch"].records())
    assert "prev_pid" in event and "nope" not in event and 5 not in event
    assert list(event) == event.keys()
    assert event.get("prev_pid") == event["prev_pid"] and event.get("nope", 7) == 7
    assert (event["common_ts"], event["common_cpu"], event["common_comm"]) == (event.ts, event.cpu, event.comm)


@pytest.mark.parametrize("threads", [1.5, "2", True])
def test_threads_are_an_int(threads):
    with ftbuf.open(EXAMPLE) as trace, pytest.raises(TypeError, match="threads"):
        trace["sched_switch"].table(threads=threads)


def test_any_number_of_threads_ends():
    with ftbuf.open(EXAMPLE) as trace:
        one, many = (trace["sched_switch"].table(threads=n) for n in (1, 10**9))
    assert np.array_equal(one["common_ts"], many["common_ts"])


@pytest.mark.parametrize("offset", [1 << 62, -(1 << 62), 1 << 70])
def test_an_offset_beyond_64_bits_is_refused(offset):
    with pytest.raises(ValueError, match="ts_offset"):
        ftbuf.open(EXAMPLE, ts_offset=offset)
    with pytest.raises(SystemExit, match="2"):
        main(["report", str(EXAMPLE), f"--ts-offset={offset}"])


@pytest.mark.parametrize("hz", ["-1", "0", str(1 << 63)])
def test_a_frequency_is_positive(hz):
    with pytest.raises(SystemExit, match="2"):
        main(["report", str(EXAMPLE), f"--ts2secs={hz}"])


@pytest.mark.parametrize("command", ["stat", "events", "info", "report"])
def test_every_command_says_that_a_recording_is_damaged(command, tmp_path, capsys):
    path = tmp_path / "damaged.dat"
    ftbuf.convert(EXAMPLE, path, version=7, compression="none")
    with ftbuf.open(path) as trace:
        page = trace.recording.buffers[0].streams[0].segments[0].offset
    data = bytearray(path.read_bytes())
    data[page + 8 : page + 12] = b"\xff\xff\x0f\x00"  # a commit larger than any page
    path.write_bytes(data)
    assert main([command, str(path)]) == 1
    printed = capsys.readouterr()
    assert "amaged" in printed.out + printed.err or "commit" in printed.err


@pytest.mark.parametrize("where", [5, b"prev_pid == 1", 1.5])
def test_a_filter_is_text(where):
    with ftbuf.open(EXAMPLE) as trace, pytest.raises(TypeError, match="filter"):
        trace.window(where=where)


@pytest.mark.parametrize(
    "abi", [(0, 16, 8, 0, 2, 0, 0), (4096, 4, 8, 0, 2, 0, 0), (4096, 16, 3, 0, 2, 0, 0), (16, 16, 8, 0, 2, 0, 0)]
)
def test_an_abi_that_cannot_be_is_refused(abi):
    with pytest.raises(ValueError, match="no sub-buffer"):
        _core.Walker(abi, (0, 0, 0, 0, 0, None))


def test_guest_samples_of_one_time_are_no_division_by_zero():
    samples = np.array([[5, 5], [1, 9], [1, 1], [0, 0]], np.int64)
    walker = _core.Walker((4096, 16, 8, 0, 2, 0, 0), (0, 0, 0, 0, 1, samples))
    assert walker.correct(7) in (8, 16)
