"""The C core alone, without Python: scan, decode and merge against memcpy of the same bytes and against the limit L.

Outputs (and the copy they are compared with) go to memory that was touched before ("reused") or to fresh memory. L is the time
that memcpy takes to move what a decode must move: bytes in and bytes out.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ftbuf import _core
from ftbuf.requests import events_request

from .data import ROOT, Workload, workloads

SIZE = 128 << 20
ROUNDS = 60  # on virtual machines memory becomes faster while it is used: its host puts large pages behind it
LINE = re.compile(r"(\w+), (\w+): (\d+) events, ([\d.]+) ns an event, memcpy ([\d.]+) GB/s: ratio ([\d.]+), (\d+) bytes")


def build(folder: Path) -> Path:
    """The little program of bench/c, compiled as the extension is."""
    program = folder / "kernels"
    sources = [str(ROOT / "bench" / "c" / "kernels.c"), *map(str, sorted((ROOT / "csrc").glob("*.c")))]
    command = [os.environ.get("CC", "cc"), "-std=c11", "-O3", "-D_DEFAULT_SOURCE", f"-I{ROOT / 'csrc'}", *sources, "-o", program]
    subprocess.run(command, check=True)
    return program


def plans_text(load: Workload) -> str:
    """Every column of the workload's events, as kernels.c reads it."""
    request = events_request(load.recording, [((fmt.system, fmt.name), None) for fmt in load.events])
    slot_of = request.selects[0].slot_of
    dictionaries: dict[int, int] = {0: 0}  # by identity; the plans keep them alive
    lines = [f"event {i} {slot_of[i]} {request.plan_of_slot[slot_of[i]]}" for i in np.flatnonzero(slot_of != _core.NO_SLOT)]
    for plan in request.plans:
        ops = [op for column in plan.columns for op in column.ops]
        lines += [f"plan {plan.min_len} {len(ops)}", *(op_text(op, dictionaries) for op in ops)]
    return "\n".join(lines) + "\n"


def op_text(op: Any, dictionaries: dict[int, int]) -> str:
    number = dictionaries.setdefault(0 if op[7] is None else id(op[7]), len(dictionaries))
    return " ".join(str(int(v)) for v in [*op[:7], number])


def prepare(load: Workload, folder: Path, size: int) -> list[str]:
    """Files of a workload, and the arguments of kernels.c that name them."""
    pages, plans = folder / f"{load.name}.pages", folder / f"{load.name}.plans"
    load.resized(size).pages.tofile(pages)
    plans.write_text(plans_text(load))
    return [str(pages), str(plans), str(load.recording.abi.subbuf_size)]


def measure(program: Path, kernel: str, load: Workload, files: list[str], memory: str) -> dict[str, Any]:
    command = [program, kernel, *files, str(ROUNDS), memory]
    match = LINE.search(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert match is not None
    size, out = Path(files[0]).stat().st_size, int(match[7])
    limit = (size + out) / (2 * size)
    return {"workload": load.name, "kernel": kernel, "output": memory, "events": int(match[3]), "ns": float(match[4]),
            "memcpy GB/s": float(match[5]), "x memcpy": float(match[6]), "L": limit, "x L": float(match[6]) / limit}


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        program, rows = build(folder), []
        for load in workloads():
            files = prepare(load, folder, SIZE)
            rows.append(measure(program, "scan", load, files, "reused"))
            rows += [measure(program, "decode", load, files, memory) for memory in ("reused", "fresh")]
        return rows
