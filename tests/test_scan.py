"""The C core's page walk and merge, built alone with sanitizers, against the reference decoder."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import reference as ref
from corpus_data import ROOT
from hypothesis import given
from hypothesis import strategies as st
from strategies import abis, streams

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
CSRC = ROOT / "csrc"
pytestmark = pytest.mark.skipif(not CC or not CSRC.is_dir(), reason="needs a C compiler")

SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


class Scanner:
    """tests/c/scan_dump.c as a process that is asked again and again."""

    def __init__(self, program: Path) -> None:
        self.program = program
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> subprocess.Popen[bytes]:
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self.process

    def scan(self, abi, data: list[bytes], pages_per_segment: int) -> list[str]:
        process = self.start()
        numbers = [abi.big_endian, abi.long_size, abi.subbuf_size, abi.data_offset, abi.old_header, pages_per_segment]
        head = " ".join(str(int(n)) for n in (*numbers, len(data), *map(len, data)))
        process.stdin.write(head.encode() + b"\n" + b"".join(data))
        process.stdin.flush()
        lines = []
        for line in process.stdout:
            if line == b"END\n":
                return lines
            lines.append(line.decode().rstrip())
        raise AssertionError(f"the scanner died, see stderr; it printed {lines}")

    def close(self) -> None:
        if self.process:
            self.process.stdin.close()
            self.process.wait(10)
            self.process.stdout.close()


@pytest.fixture(scope="session")
def scanner(tmp_path_factory):
    program = tmp_path_factory.mktemp("scan") / "scan_dump"
    sources = [str(ROOT / "tests" / "c" / "scan_dump.c"), *map(str, sorted(CSRC.glob("*.c")))]
    command = [CC, "-std=c11", "-g", "-O1", f"-I{CSRC}", *sources, "-o", str(program)]
    if subprocess.run([*command, *SANITIZERS], capture_output=True).returncode:
        subprocess.run(command, check=True)  # a compiler without sanitizers
    scanner = Scanner(program)
    yield scanner
    scanner.close()


def signed(ts: int) -> int:
    return ts - (1 << 64) if ts >= 1 << 63 else ts


def expected(abi, data: list[bytes]) -> tuple[list[str], list[str], list[str]]:
    """What scan_dump should print: records, problems and losses (the latter two in the order of each stream)."""
    per_stream, problems, losses = {}, [], []
    for k, stream in enumerate(data):
        rows, before = [], -(1 << 63)
        for start, page in ref.split_pages(stream, abi):
            result = ref.walk_page(page, abi)
            problems += [f"P {k} {p.status} {start + p.offset} {p.bytes}" for p in result.problems]
            if result.lost is not None:
                after = result.records[0].ts if result.records else result.ts
                losses.append(f"L {k} {before} {signed(after)} {result.lost}")
            rows += [
                (signed(r.ts), f"E {k} {start + r.offset} {r.length} {signed(r.ts)} {min(r.event_id, 0xFFFE)}")
                for r in result.records
            ]
            before = rows[-1][0] if rows else before
        per_stream[0, k] = [ref.Row(ts, None, {}, line) for ts, line in rows]
    return [row.payload for _, row in ref.merge(per_stream)], problems, losses


def check(scanner, abi, data, pages_per_segment):
    lines = scanner.scan(abi, data, pages_per_segment)
    records, problems, losses = expected(abi, data)
    assert [x for x in lines if x[0] == "E"] == records
    by_stream = lambda line: int(line.split()[1])  # noqa: E731
    assert sorted((x for x in lines if x[0] == "P"), key=by_stream) == problems
    assert sorted((x for x in lines if x[0] == "L"), key=by_stream) == losses
    assert [x for x in lines if x[0] == "X"] == ["X done"]


@given(st.data())
def test_one_stream(scanner, data):
    abi = data.draw(abis)
    check(scanner, abi, [data.draw(streams(abi))], data.draw(st.integers(1, 3)))


@given(st.data())
def test_merge(scanner, data):
    abi = data.draw(abis)
    many = data.draw(st.lists(streams(abi, max_pages=2), min_size=2, max_size=4))
    check(scanner, abi, many, data.draw(st.integers(1, 3)))


@given(st.data())
def test_noise(scanner, data):
    """Bytes of no meaning behind a plausible header."""
    abi = data.draw(abis)
    noise = data.draw(st.binary(min_size=0, max_size=200))
    order = "big" if abi.big_endian else "little"
    commit = data.draw(st.integers(0, 220))
    check(scanner, abi, [bytes(8) + commit.to_bytes(abi.long_size, order) + noise], 1)


def test_recordings(scanner, recording):
    if recording.path.suffix == ".dat":
        pytest.skip("not bare pages")
    check(scanner, recording.abi, list(recording.streams().values()), 4)


def test_long_streams(scanner):
    """More records than a batch holds, from several streams, with equal time stamps."""
    from pagebuilder import ABIS, pages_of

    abi = ABIS["be32"]
    payloads = [bytes([0, i % 7]) + bytes(6) for i in range(3000)]
    streams = [pages_of(abi, *payloads, ts=1000 + i, step=1 + i % 2) for i in range(5)]
    check(scanner, abi, streams, 2)
