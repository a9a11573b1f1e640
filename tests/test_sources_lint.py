"""Rules that the sources keep: what the C core may use, and how long files and functions may grow."""

from __future__ import annotations

import ast
import re
import shutil
import statistics
import subprocess
from pathlib import Path

import pytest
from corpus_data import ROOT

CSRC = sorted((ROOT / "csrc").glob("*.[ch]"))
CYTHON = sorted((ROOT / "ftbuf").glob("*.p[yx][xdi]"))
PYTHON = sorted((ROOT / "ftbuf").rglob("*.py"))
LONGEST_FILE = 700
CC, NM = shutil.which("cc") or shutil.which("gcc"), shutil.which("nm")

# All that the C core takes from outside: memory, and nothing that reads, writes, prints or keeps state.
ALLOWED_HEADERS = frozenset({
    "emmintrin.h", "immintrin.h", "limits.h", "stdalign.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h",
    "stdlib.h", "string.h", "sys/mman.h"})
ALLOWED_CALLS = frozenset({
    "calloc", "free", "madvise", "mmap", "munmap", "malloc", "memchr", "memcmp", "memcpy", "memmove", "memset",
    "realloc", "strchr", "strcmp", "strlen", "strncmp"})
EMPTY_BARRIER = re.compile(r'(?:\s+(?:volatile|__volatile__))?\s*\(\s*""')


def name_of(path: Path) -> str:
    return path.name


def without_comments(text: str) -> str:
    """Comments, strings and characters blanked; lines stay."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def function_lengths(text: str) -> dict[str, int]:
    """Lines between the braces of each function of a C file; definitions have both braces in the first column."""
    lengths = {}
    lines = without_comments(text).splitlines()
    start = None
    for i, line in enumerate(lines):
        if line == "{":
            start = i
        elif line == "}" and start is not None:
            head = " ".join(lines[max(0, start - 4):start])
            lengths[re.findall(r"(\w+)\s*\(", head)[-1] + f":{start}"] = i - start - 1
            start = None
    return lengths


@pytest.mark.parametrize("path", [*CSRC, *CYTHON, *PYTHON], ids=name_of)
def test_no_file_is_too_long(path):
    assert len(path.read_text().splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("path", CSRC, ids=name_of)
def test_c_uses_memory_and_nothing_else(path):
    text = path.read_text()
    headers = set(re.findall(r"^\s*#\s*include\s+<([^>]+)>", text, re.M))
    assert headers <= ALLOWED_HEADERS
    code = without_comments(text)
    assert not re.search(r"\b(?:\w*printf|fopen|fwrite|puts|getenv|exit|abort|assert|setjmp|longjmp|alloca)\s*\(", code)
    assert not re.search(r"\bPy\w*|\bgoto\s+\*", code)
    assert all(EMPTY_BARRIER.match(text, found.end()) for found in re.finditer(r"\b(?:asm|__asm__)\b", text))


@pytest.mark.skipif(not CC or not NM, reason="needs a C compiler and nm")
@pytest.mark.parametrize("path", [p for p in CSRC if p.suffix == ".c"], ids=name_of)
def test_c_files_compile_alone_and_keep_no_data(path, tmp_path):
    target = tmp_path / "object.o"
    flags = ["-std=c11", "-O1", "-fno-pic", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([CC, *flags, "-c", str(path), "-o", str(target)], check=True)
    symbols = [line.split() for line in subprocess.run([NM, str(target)], check=True, capture_output=True, text=True)
               .stdout.splitlines()]
    written = [s[-1] for s in symbols if s[-2] in "BbDdCGgSs"]
    assert not written, "variables that can change"
    wanted = {s[-1] for s in symbols if s[-2] == "U"}
    assert {w for w in wanted if not w.startswith(("ftb_", "_"))} <= ALLOWED_CALLS


@pytest.mark.skipif(not CC, reason="needs a C compiler")
@pytest.mark.parametrize("path", [p for p in CSRC if p.suffix == ".h"], ids=name_of)
def test_headers_stand_alone(path, tmp_path):
    source = tmp_path / "only.c"
    source.write_text(f'#include "{path.name}"\nint ftb_nothing;\n')
    subprocess.run([CC, "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{path.parent}", "-c", str(source), "-o",
                    str(tmp_path / "only.o")], check=True)


def test_c_functions_are_short():
    lengths = {f"{p.name}:{name}": n for p in CSRC for name, n in function_lengths(p.read_text()).items()}
    assert len(lengths) > 50
    values = sorted(lengths.values())
    longest = max(lengths, key=lengths.__getitem__)
    assert values[-1] <= 120, longest
    assert statistics.quantiles(values, n=10)[-1] <= 45
    assert statistics.median(values) <= 20


def test_python_functions_are_short():
    lengths = {}
    for path in PYTHON:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                lengths[f"{path.name}:{node.name}"] = node.end_lineno - node.body[0].lineno + 1
    values = sorted(lengths.values())
    assert statistics.median(values) <= 10
    assert statistics.quantiles(values, n=10)[-1] <= 30


@pytest.mark.parametrize("path", CYTHON, ids=name_of)
def test_cython_only_converts(path):
    """No NumPy at compile time, no typed memoryviews; directives stand in setup.py, externs in the .pxd."""
    text = path.read_text()
    assert "cimport numpy" not in text
    assert not re.search(r"#\s*cython\s*:", text)
    assert not re.search(r"\b(?:int|float|double|char|u?int\d+_t)(?:\s+const)?\s*\[\s*:", text)
    assert path.suffix == ".pxd" or "cdef extern" not in text
