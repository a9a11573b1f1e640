"""Instructions an event of scan, walk, gather, merge and render: steady where times are not (valgrind --tool=callgrind).

``python -m bench counts`` compares them with bench/counts.json and fails where one grew by more than the tolerance;
``python -m bench counts --write`` makes that file anew. They are of the scalar code, since valgrind knows no AVX-512, of the
shipped samples, and of one compiler: with another, the table is only shown. gather and merge are what they add to the walk.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import ftbuf

from .core import build, prepare
from .data import ROOT, Workload, workloads

BASELINE = ROOT / "bench" / "counts.json"
TOLERANCE = 0.05
SIZE = 2 << 20
TOTAL = re.compile(r"^(?:summary|totals):\s*(\d+)", re.M)


def callgrind(command: list[str], folder: Path, inside: str) -> int:
    """Instructions in a function and what it calls."""
    out = folder / "callgrind.out"
    tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", f"--toggle-collect={inside}"]
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    subprocess.run([*tool, *command], check=True, capture_output=True, env=environment)
    match = TOTAL.search(out.read_text())
    assert match is not None
    return int(match[1])


def of_kernel(program: Path, kernel: str, load: Workload, folder: Path) -> float:
    files = prepare(load, folder, SIZE)
    output = subprocess.run([program, kernel, *files, "1", "reused"], capture_output=True, text=True, check=True).stdout
    events = int(output.split(": ")[1].split()[0])
    return callgrind([str(program), kernel, *files, "1", "reused"], folder, "ftb_decode") / events


def of_report(sample: Path, folder: Path) -> float:
    with ftbuf.open(sample) as trace:
        events = sum(trace.events.values())
    return callgrind([sys.executable, "-m", "ftbuf", "report", str(sample)], folder, "ftb_render_lines") / events


def measure() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as temporary:
        folder, counts = Path(temporary), {}
        program = build(folder)
        for load in workloads(shipped=True):
            counts[f"scan {load.name}"] = round(of_kernel(program, "scan", load, folder), 1)
            walk = of_kernel(program, "walk", load, folder)
            counts[f"walk {load.name}"] = round(walk, 1)
            for name, kernel in (("gather", "decode"), ("merge", "merge")):
                counts[f"{name} {load.name}"] = round(of_kernel(program, kernel, load, folder) - walk, 1)
        for sample in sorted((ROOT / "examples").glob("*.dat")):
            counts[f"render {sample.name}"] = round(of_report(sample, folder), 1)
    return counts


def compiler() -> str:
    command = [os.environ.get("CC", "cc"), "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[0]


def compare(counts: dict[str, float], baseline: dict[str, Any]) -> list[dict[str, Any]]:
    known = baseline["instructions an event"]
    return [{"kernel": name, "instructions an event": n, "baseline": known.get(name, "-"),
             "grew by": f"{100 * (n / known[name] - 1):+.1f} %" if name in known else "new"} for name, n in counts.items()]


def too_large(counts: dict[str, float], baseline: dict[str, Any]) -> list[str]:
    known = baseline["instructions an event"]
    return [name for name, n in counts.items() if name in known and n > known[name] * (1 + TOLERANCE)]


def main(arguments: list[str]) -> int:
    if shutil.which("valgrind") is None:
        print("valgrind is not installed: no instructions were counted")
        return 0
    counts = measure()
    if arguments == ["--write"]:
        BASELINE.write_text(json.dumps({"compiler": compiler(), "instructions an event": counts}, indent=1) + "\n")
        return 0
    baseline = json.loads(BASELINE.read_text())
    from .__main__ import print_table

    print_table(compare(counts, baseline))
    if baseline["compiler"] != compiler():
        print(f"the baseline is of {baseline['compiler']}, this is {compiler()}: not compared")
        return 0
    grown = too_large(counts, baseline)
    if grown:
        print(f"more than {100 * TOLERANCE:.0f} % above the baseline: {', '.join(grown)}", file=sys.stderr)
    return 1 if grown else 0
