"""Converting: what is written has the same events, for ftbuf and for trace-cmd."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from corpus_data import ROOT, corpus_cases, file_cases
from filebuilder import BufferSpec, TraceDat, write_tracefs
from pagebuilder import event, format_text, make_abi, make_format, pages_of

import ftbuf
from ftbuf.cli.main import main
from ftbuf.container import open_container

EXAMPLE = ROOT / "examples" / "sched.dat"
TARGETS = [(6, "none"), (7, "none"), (7, "zlib"), (7, "zstd")]
TRACE_CMD = shutil.which("trace-cmd")


def records(source):
    with ftbuf.open(source) as trace:
        return [(e.ts, e.cpu, trace.buffers[e.buffer], e.name, e.payload, e.lost) for e in trace.records()]


def lost(source):
    with ftbuf.open(source) as trace:
        return {name: column.tolist() for name, column in trace.lost.to_dict().items()}


def report(path: Path) -> list[str] | None:
    """What trace-cmd shows; None where it cannot read the file."""
    done = subprocess.run([TRACE_CMD, "report", "-N", "--nodate", path], capture_output=True, check=False)
    if done.returncode or not done.stdout:
        return None
    return [line for line in done.stdout.decode("utf-8", "replace").splitlines() if not line.startswith("version = ")]


def check(path: Path, out: Path, targets=TARGETS) -> None:
    whole, gaps = records(path), lost(path)
    told = report(path) if TRACE_CMD and path.is_file() else None
    for version, compression in targets:
        written = ftbuf.convert(path, out, version=version, compression=compression)
        assert records(out) == whole
        assert lost(out) == gaps
        assert written.records == len(whole)
        assert not written.problems
        if told is not None and compression != "zlib":  # many trace-cmds are built without it
            assert report(out) == told
        with ftbuf.open(path) as before, ftbuf.open(out) as after:
            assert after.info["kind"] == f"trace.dat v{version}"
            assert after.info["kernel"].split()[:3] == before.info["kernel"].split()[:3]
            assert [b["clock"] for b in after.info["buffers"] if b["bytes"]] == [
                b["clock"] for b in before.info["buffers"] if b["bytes"]]
            assert dict(after.comms) == dict(before.comms)
            assert set(after) == set(before)
            assert after.text == before.text


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_real_recordings(recording, tmp_path, target):
    check(recording.path, tmp_path / "out.dat", [target])


@pytest.mark.corpus
@pytest.mark.parametrize("case", corpus_cases()[::20], ids=lambda case: case.name)
def test_corpus(case, corpus_layout, tmp_path):
    root = corpus_layout(case)
    for path in sorted(root.glob("*.dat")) or [root]:
        check(path, tmp_path / "out.dat", TARGETS[::3])


@pytest.mark.corpus
@pytest.mark.parametrize("case", file_cases()[1::8], ids=lambda case: case.name)
def test_corpus_files(case, corpus_layout, tmp_path):
    for path in sorted(corpus_layout(case).glob("*.dat")):
        check(path, tmp_path / "out.dat", TARGETS[:2])


def test_snapshot(recordings, tmp_path):
    path, out = recordings["k612-snapshot"].path, tmp_path / "out.dat"
    ftbuf.convert(path, out, snapshot=True)
    container = open_container(path)
    expected = {s.cpu: b"".join(bytes(s.load(i)) for i in range(len(s.segments)))
                for b in container.snapshot_buffers for s in b.streams if s.segments}
    written = {s.cpu: b"".join(bytes(s.load(i)) for i in range(len(s.segments)))
               for b in open_container(out).buffers for s in b.streams if s.segments}
    assert any(expected.values())
    assert written == expected
    with pytest.raises(ftbuf.FormatError, match="no snapshot"):
        ftbuf.convert(recordings["k612-sched"].path, out, snapshot=True)


def test_compression_is_kept(tmp_path):
    with ftbuf.open(EXAMPLE) as trace:
        compression = trace._recording.container.compression
        ftbuf.convert(trace, tmp_path / "out.dat")
    assert open_container(tmp_path / "out.dat").compression == compression
    ftbuf.convert(EXAMPLE, tmp_path / "six.dat", version=6)
    assert open_container(tmp_path / "six.dat").version == 6
    ftbuf.split(tmp_path / "six.dat", tmp_path / "again.dat")
    assert open_container(tmp_path / "again.dat").version == 6


FORMAT = make_format("one", 7, ["int a"])


def payloads(count):
    return [event(FORMAT, make_abi(), common_pid=n, a=n * n) for n in range(count)]


def two_sizes() -> bytes:
    small, large = make_abi(), make_abi(subbuf_size=8192)
    buffers = [BufferSpec("", {0: pages_of(small, *payloads(200)), 1: pages_of(small, *payloads(500), ts=1_000_500)}),
               BufferSpec("large", {1: pages_of(large, *payloads(900), ts=1_000_100)}, subbuf_size=8192)]
    return TraceDat(small, formats={"test": [format_text(FORMAT)]}, buffers=buffers).build().data


def test_version_6_has_one_sub_buffer_size(tmp_path):
    """An instance with larger sub-buffers: the smaller ones are packed into larger."""
    data, out = two_sizes(), tmp_path / "out.dat"
    ftbuf.convert(data, out, version=6)
    assert records(out) == records(data)
    assert {b.subbuf_size for b in open_container(out).buffers} == {8192}
    ftbuf.convert(data, out, version=7)
    assert [b.subbuf_size for b in open_container(out).buffers] == [4096, 8192]


def test_one_buffer_of_another_size(tmp_path):
    data, out = two_sizes(), tmp_path / "out.dat"
    for version in (6, 7):
        ftbuf.split(data, out, buffers=["large"], version=version)
        assert records(out) == [r for r in records(data) if r[2] == "large"]


@pytest.mark.parametrize("cut", [1, 100, 4096 - 20, 4096 + 50])
def test_a_sub_buffer_that_was_cut(tmp_path, cut):
    """Its first records are kept."""
    abi = make_abi()
    pages = pages_of(abi, *payloads(400))
    source = write_tracefs(tmp_path / "dir", abi, [FORMAT], {0: pages[:-cut]})
    out = tmp_path / "out.dat"
    with ftbuf.open(source, errors="skip") as trace:
        whole = [(e.ts, e.payload) for e in trace.records()]
    ftbuf.convert(source, out, errors="skip")
    assert [(r[0], r[4]) for r in records(out)] == whole


def test_text_recordings(tmp_path):
    text = b"# tracer: irqsoff\n\nlatency: 5 us\n"
    data = TraceDat(make_abi(), version=6, latency_text=text).build().data
    file = io.BytesIO()
    ftbuf.convert(data, file, version=7)
    with ftbuf.open(file.getvalue()) as trace:
        assert trace.text == text.decode()
    with pytest.raises(ftbuf.UnsupportedError, match="text"):
        ftbuf.split(data, file, start=1)


def test_command(recordings, tmp_path, capsys):
    out = tmp_path / "out.dat"
    assert main(["convert", str(EXAMPLE), "-o", str(out), "--version", "6"]) == 0
    assert records(out) == records(EXAMPLE)
    for command, file, more in (("convert", EXAMPLE, "--version=6"), ("split", EXAMPLE, "--version=6"), ("split", out, "--cpu=0")):
        assert main([command, str(file), "-o", str(tmp_path / "no"), "--compression", "zlib", more]) == 2
        assert "version 6 cannot be compressed" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()
    path = recordings["k612-snapshot"].path
    assert main(["convert", str(path), "-o", str(out), "--snapshot"]) == 0
    with ftbuf.open(path, errors="warn") as trace:
        assert trace.text is None
    (tmp_path / "no").write_bytes(b"nothing")
    assert main(["convert", str(tmp_path / "no"), "-o", str(out)]) == 1


def test_links_and_devices_stay(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    ftbuf.convert(EXAMPLE, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert records(tmp_path / "real") == records(EXAMPLE)
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises((ftbuf.UnsupportedError, OSError)):
        ftbuf.convert(EXAMPLE, tmp_path / "pipe")
    os.close(reader)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "pipe", "real"]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_memory_is_bounded(tmp_path, compression):
    """A recording of 48 MB takes a few MB to convert and to split."""
    abi = make_abi()
    page = bytearray(pages_of(abi, *payloads(170))[:4096])
    source = write_tracefs(tmp_path / "dir", abi, [FORMAT], {0: b""})
    with open(source / "per_cpu" / "cpu0" / "trace_pipe_raw", "wb") as file:
        for n in range(12_000):
            page[:8] = (1_000_000 * n).to_bytes(8, "little")
            file.write(page)
    code = f"""
import ftbuf
def peak():
    return sum(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith(("RssAnon:",)))
most = 0
from ftbuf import rewrite
run = rewrite._Packer.run
def watched(self, *arguments):
    global most
    for pages in run(self, *arguments):
        most = max(most, peak())
        yield pages
rewrite._Packer.run = watched
before = peak()
ftbuf.convert({str(source)!r}, {str(tmp_path / "out")!r}, compression={compression!r})
ftbuf.split({str(source)!r}, {str(tmp_path / "out")!r}, pids=range(0, 200, 2), compression={compression!r})
print(most - before)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(ftbuf.__file__).parent.parent)}
    # elsewhere than in the checkout, whose ftbuf has no extension module where the package is installed
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
    )
    assert int(done.stdout) < 24 << 10  # kB
