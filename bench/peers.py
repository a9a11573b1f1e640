"""ftbuf beside trace-cmd on one recording: CPU and wall time of a report, and of file to arrays; peak memory of the report.

Without a file, recordings of about 200 MB are grown from real ones by repetition with shifted time stamps.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import ftbuf

from .grow import grow

PIPED = 200_000  # lines that scripts turn into a DataFrame: all would not fit into memory


def as_installed(folder: Path) -> dict[str, str]:
    """An environment in which Python finds compiled modules, as an installed package has them; they are kept in a folder."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return environment | {"PYTHONPYCACHEPREFIX": str(folder)}


def run_command(command: list[str], output: Path = Path(os.devnull), env: dict[str, str] | None = None) -> dict[str, float]:
    """CPU and wall seconds and peak memory in MB of a command that prints."""
    with output.open("wb") as to:
        started = time.perf_counter()
        child = subprocess.Popen(command, stdout=to, stderr=subprocess.DEVNULL, env=env)
        _, _, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
    return {"cpu": usage.ru_utime + usage.ru_stime, "wall": wall, "MB": usage.ru_maxrss / 1024}


def count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


def arrays(path: Path) -> dict[str, float]:
    """Every event's every column, open included: least seconds of wall time with all threads, and of CPU time."""
    wall, cpu = [], []
    for _ in range(5):
        started, used = time.perf_counter(), time.process_time()
        with ftbuf.open(path) as trace:
            trace.tables()
        wall.append(time.perf_counter() - started)
        cpu.append(time.process_time() - used)
    return {"wall": min(wall), "cpu": min(cpu)}


def raw_and_pandas(peer: str, path: Path, lines: int) -> dict[str, Any]:
    """trace-cmd without plugins and formats, and what scripts do with its text: both beside every column as a DataFrame."""
    start = time.process_time()
    with ftbuf.open(path) as trace:
        for table in trace.tables(threads=1).values():
            table.to_pandas()
    frames = time.process_time() - start
    raw = run_command([peer, "report", "-N", "-R", str(path)])
    script = Path(__file__).with_name("pandas_pipe.py")
    pipe = f"{peer} report {path} 2>/dev/null | head -n {PIPED} | {sys.executable} {script}"
    piped = run_command(["sh", "-c", pipe])
    return {"report -N -R / arrays": raw["cpu"] / frames, "pipe into pandas us/line": piped["cpu"] / min(PIPED, lines) * 1e6,
            "to_pandas us/row": frames / lines * 1e6}


def compare(path: Path, folder: Path, decoded: dict[str, float]) -> dict[str, Any]:
    command = [sys.executable, "-m", "ftbuf", "report", str(path)]
    run_command(command, folder / "ours", env=as_installed(folder / "compiled"))
    ours = run_command(command, env=as_installed(folder / "compiled"))
    fresh = run_command(command)
    lines = count_lines(folder / "ours")
    row = {"file": path.name, "MB": path.stat().st_size / 1e6, "lines": lines, "report cpu s": ours["cpu"],
           "report us/line": ours["cpu"] / lines * 1e6, "not compiled cpu s": fresh["cpu"],
           "peak MB": ours["MB"], "arrays s": decoded["wall"]}
    peer = shutil.which("trace-cmd")
    if peer is not None:
        theirs = run_command([peer, "report", str(path)])
        run_command([peer, "report", str(path)], folder / "theirs")
        row |= {"trace-cmd cpu s": theirs["cpu"], "cpu ratio": theirs["cpu"] / ours["cpu"],
                "same lines": count_lines(folder / "theirs") == lines,
                "arrays cpu ratio": theirs["cpu"] / decoded["cpu"], "arrays wall ratio": theirs["wall"] / decoded["wall"]}
        row |= raw_and_pandas(peer, path, lines)
    return row


def run(files: list[str] | None = None) -> list[dict[str, Any]]:
    # Each step in a process of its own: a child's peak memory would count what its parent had when it forked.
    with (tempfile.TemporaryDirectory() as temporary,
          ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool):
        folder = Path(temporary)
        paths = [Path(f) for f in files or ()] or list(pool.map(grow, ("mixed", "function"), (folder, folder)))
        os.sync()  # what is still to be written would slow down all that follows
        decoded = list(pool.map(arrays, paths))
        return list(pool.map(compare, paths, [folder] * len(paths), decoded))
