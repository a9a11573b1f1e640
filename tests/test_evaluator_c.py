"""The evaluator alone, built with sanitizers, on cut and damaged records and programs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from corpus_data import ROOT
from expr_helpers import sample

from ftbuf.codegen import compile_value
from ftbuf.printfmt import KERNEL, TRACE_CMD, Style, compile_print_fmt

SOURCES = ["ftb_expr.c", "ftb_verify.c", "ftb_text.c", "ftb_render.c", "ftb_pointer.c", "ftb_symbol.c"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
CC = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler")

PRINT_FMT = (
    r'"%d %5.3x %-8s|%*d %pS %ps %pM %pI4 %pI6c %pISpc %pU %*ph %*pbl %c %s %s %s %s %s %s", REC->pid, REC->mask, REC->comm,'
    " REC->tiny, REC->neg, REC->ptr, REC->big, REC->bytes, REC->bytes, REC->bytes, __get_dynamic_array(ds), REC->bytes, 7,"
    ' REC->bytes, REC->port, REC->cpus, REC->small, __get_str(ds), __print_flags(REC->mask, "|", {1, "one"}, {4, "four"}),'
    ' __print_symbolic(REC->prio, {119, "x"}, {120, "y"}), __print_array(REC->list, 3, 2), __get_bitmask(cpus),'
    ' __print_hex_dump("dump ", 2, 16, 4, REC->bytes, 16, 1)'
)


@pytest.fixture(scope="module", params=["", "-U__SSE2__"], ids=["", "without-simd"])
def driver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("driver") / "test_expr"
    command = [CC, "-std=c11", "-O1", "-g", *request.param.split(), "-I", str(ROOT / "csrc")]
    command += [str(ROOT / "tests" / "c" / "test_expr.c"), *(str(ROOT / "csrc" / name) for name in SOURCES), "-o", str(path)]
    if subprocess.run(command + SANITIZERS, capture_output=True, check=False).returncode:
        subprocess.run(command, check=True)  # a compiler without sanitizers
    return path


def run(driver: Path, tmp_path: Path, program: bytes, record: bytes, rounds: int) -> str:
    (tmp_path / "program").write_bytes(program)
    (tmp_path / "record").write_bytes(record)
    command = [str(driver), str(tmp_path / "program"), str(tmp_path / "record"), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("style", [TRACE_CMD, KERNEL])
def test_text(driver: Path, tmp_path: Path, style: Style, big_endian: bool) -> None:
    made = sample(big_endian=big_endian)
    block = compile_print_fmt(made.scope(PRINT_FMT), style)
    assert run(driver, tmp_path, block, made.payload, 3000).startswith("599 f0000001 dpkg-deb|")


def test_value(driver: Path, tmp_path: Path) -> None:
    made = sample()
    block = compile_value(
        made.scope(),
        "REC->pid / REC->tiny + REC->list[REC->small] % REC->neg ? __get_str(ds)[REC->tiny] << REC->prio : 7",
    )
    assert run(driver, tmp_path, block, made.payload, 3000) == ""
