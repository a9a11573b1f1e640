"""Reports of damaged recordings: text or a named error, in bounded time and memory."""

from __future__ import annotations

import argparse
import random
import shutil
import warnings
from pathlib import Path

import pytest

import ftbuf
from ftbuf.cli import report
from ftbuf.errors import FtbufError

OPTIONS = (
    ["--style", "kernel"],
    ["--style", "kernel", "-O", "latency-format"],
    ["--style", "kernel", "-O", "fields"],
    ["--style", "kernel", "-O", "raw"],
    ["--style", "kernel", "-O", "funcgraph-retval", "-O", "verbose", "-O", "latency-format"],
    [],
    ["-R"],
    ["-N", "-l"],
    ["--ts-diff", "-t"],
    ["--stat"],
    ["--first-event"],
)
SMALL = ("trace_options", "saved_cmdlines", "saved_tgids", "tracing_max_latency", "current_tracer", "printk_formats")


def scramble(path: Path, chance: random.Random, times: int) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(times if data else 0):
        data[chance.randrange(len(data))] = chance.randrange(256)
    path.write_bytes(data)


def damage(root: Path, chance: random.Random) -> None:
    for pages in root.glob("per_cpu/cpu*/*_raw"):
        scramble(pages, chance, chance.choice([1, 5, 50, 500]))
    scramble(chance.choice(sorted(root.glob("events/*/*/format"))), chance, chance.choice([0, 1, 3, 20]))
    for name in SMALL:
        if (root / name).exists() and chance.random() < 0.3:
            scramble(root / name, chance, 3)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["mips32be-graph", "s390x-kprobe", "k612-snapshot", "h618-rawmarker", "armhf-synth"])
def test_damage_never_surprises(recordings, tmp_path, name, seed):
    root = tmp_path / "damaged"
    shutil.copytree(recordings[name].path, root)
    damage(root, random.Random(f"{name} {seed}"))
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    for options in OPTIONS:
        chosen = parser.parse_args([*options, str(root)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with ftbuf.open(root, errors="skip") as trace:
                    size = sum(map(len, report.report(trace, chosen)))
            except FtbufError:
                continue
        assert size < 64 << 20
