"""The C core alone: scan and full decode of function-tracer pages against memcpy of the same bytes, without Python.

Outputs (and the copy they are compared with) go to memory that was touched before ("reused") or to fresh memory.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from .data import ROOT, workloads

SIZE = 128 << 20
ROUNDS = 15
LINE = re.compile(r"(\w+), (\w+): (\d+) events, ([\d.]+) ns an event, memcpy ([\d.]+) GB/s: ratio ([\d.]+)")


def build(folder: Path) -> Path:
    """The little program of bench/c, compiled as the extension is."""
    program = folder / "kernels"
    sources = [str(ROOT / "bench" / "c" / "kernels.c"), *map(str, sorted((ROOT / "csrc").glob("*.c")))]
    command = [os.environ.get("CC", "cc"), "-std=c11", "-O3", "-D_DEFAULT_SOURCE", f"-I{ROOT / 'csrc'}", *sources, "-o", program]
    subprocess.run(command, check=True)
    return program


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as temporary:
        program, pages = build(Path(temporary)), Path(temporary) / "pages"
        load = workloads()[0].resized(SIZE)
        load.pages.tofile(pages)
        rows = []
        for kernel in ("scan", "function"):
            for memory in ("reused", "fresh"):
                command = [program, kernel, pages, str(load.recording.abi.subbuf_size), str(ROUNDS), memory]
                match = LINE.search(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
                assert match is not None
                rows.append({"kernel": match[1], "output": match[2], "events": int(match[3]), "ns": float(match[4]),
                             "memcpy GB/s": float(match[5]), "x memcpy": float(match[6])})
        return rows
