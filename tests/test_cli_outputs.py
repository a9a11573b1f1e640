"""What split and convert write, and what they must not write over."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from test_cli import EXAMPLE, called

import ftbuf


@pytest.fixture
def source(tmp_path):
    """A recording, also under the names of a symbolic and a hard link."""
    path = tmp_path / "source.dat"
    shutil.copy(EXAMPLE, path)
    (tmp_path / "symbolic.dat").symlink_to(path)
    os.link(path, tmp_path / "hard.dat")
    return path


@pytest.mark.parametrize("command", ["split", "convert"])
@pytest.mark.parametrize("output", ["source.dat", "symbolic.dat", "hard.dat", "./source.dat"])
def test_what_is_read_is_not_written_over(source, capfdbinary, command, output):
    before = source.read_bytes()
    status, out, err = called(capfdbinary, command, str(source), "-o", str(source.parent / output))
    assert (status, out) == (2, "")
    assert "is what is read" in err
    assert source.read_bytes() == before and len(os.listdir(source.parent)) == 3


@pytest.mark.parametrize("options", [["-n", "2"], ["-s", "0.05"]])
def test_nor_by_a_part(source, capfdbinary, options):
    part = source.rename(source.parent / "part.dat.2")
    before = part.read_bytes()
    assert called(capfdbinary, "split", str(part), *options, "-o", str(source.parent / "part.dat"))[0] == 2
    assert part.read_bytes() == before and len(os.listdir(source.parent)) == 3


@pytest.mark.parametrize("command", ["split", "convert"])
def test_nor_are_the_files_of_a_directory(recordings, tmp_path, capfdbinary, command):
    root = tmp_path / "copy"
    shutil.copytree(recordings["k612-snapshot"].path, root)
    pages = next(root.glob("per_cpu/cpu*/*_raw"))
    before = pages.read_bytes()
    (tmp_path / "link").symlink_to(pages)
    for output in (pages, tmp_path / "link", next(root.glob("events/*/*/format")), root):
        assert called(capfdbinary, command, str(root), "-o", str(output))[0] == 2
    assert pages.read_bytes() == before
    for _ in range(2):  # a trace.dat in it is none of them
        assert called(capfdbinary, command, str(root), "-o", str(root / "out.dat")) == (0, "", "")


@pytest.mark.parametrize("command", ["split", "convert"])
def test_errors_name_what_was_asked_for(tmp_path, capfdbinary, command):
    output = str(tmp_path / "no" / "out.dat")
    status, _, err = called(capfdbinary, command, EXAMPLE, "-o", output)
    assert (status, err) == (1, f"ftbuf {command}: [Errno 2] No such file or directory: {output!r}\n")
    status, _, err = called(capfdbinary, command, EXAMPLE, "-o", "-")
    assert status == 2 and "-o -" in err and not Path("-").exists()


SLOW = """
import sys, time
from ftbuf.cli.main import main
from ftbuf.container import write
write._Writer.write_v7 = lambda self: (print("writing", flush=True), time.sleep(60))
sys.exit(main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_is_ended_leaves_nothing(tmp_path, number):
    environment = {**os.environ, "PYTHONPATH": str(Path(ftbuf.__file__).parent.parent)}
    command = [sys.executable, "-c", SLOW, "convert", EXAMPLE, "-o", str(tmp_path / "out.dat")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                          cwd="/") as child:
        assert child.stdout.readline() == b"writing\n"
        assert len(os.listdir(tmp_path)) == 1
        child.send_signal(number)
        assert child.communicate(timeout=20) == (b"", b"")
    assert child.returncode == 128 + number
    assert os.listdir(tmp_path) == []
