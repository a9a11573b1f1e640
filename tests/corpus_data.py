"""Real recordings: the small ones in ``tests/data``, and the shared corpus where it lies beside the checkout."""

from __future__ import annotations

import importlib.util
import json
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pagebuilder import Abi

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(__file__).resolve().parent / "data" / "recordings"
SHARED = ROOT.parent / "shared"
HAVE_CORPUS = (SHARED / "corpus" / "cases").is_dir()


def corpus_module() -> Any:
    """The corpus' own ``corpus.py``: ``cases()``, ``Case.read``, ``Case.lay_out``."""
    spec = importlib.util.spec_from_file_location("shared_corpus", SHARED / "conformance" / "corpus.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def corpus_cases() -> list[Any]:
    return corpus_module().cases() if HAVE_CORPUS else []


def raw_cases() -> list[Any]:
    """Cases that are the kernel's own per-CPU pages."""
    return [c for c in corpus_cases() if c.info["raw"]]


def file_cases() -> list[Any]:
    """Cases that are trace.dat files."""
    return [c for c in corpus_cases() if c.is_file]


def streams(case: Any, *, snapshot: bool = False) -> dict[int, bytes]:
    """CPU -> pages of a raw case."""
    pattern = re.compile(r"(snapshot_)?cpu(\d+)\.raw")
    found = (pattern.fullmatch(name) for name in case.names())
    return {int(m[2]): case.read(m[0]) for m in found if m and bool(m[1]) is snapshot}


def abi_of(info: dict[str, Any]) -> Abi:
    """What case.json says about the traced kernel."""
    return Abi(info["endian"] == "big", info["long_size"], info["subbuf_size"], 8 + info["long_size"])


@dataclass(frozen=True)
class Recording:
    """A small recording of ``tests/data``, unpacked."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def path(self) -> Path:
        """What ``ftbuf.open`` takes: a tracefs-shaped directory, or a trace.dat."""
        return next(p for p in (self.folder / "tracefs", *sorted(self.folder.glob("*.dat"))) if p.exists())

    @cached_property
    def info(self) -> dict[str, Any]:
        return json.loads((self.folder / "case.json").read_text())

    @property
    def abi(self) -> Abi:
        return abi_of(self.info)

    def streams(self, *, snapshot: bool = False) -> dict[int, bytes]:
        name = "snapshot_raw" if snapshot else "trace_pipe_raw"
        return {int(p.parent.name[3:]): p.read_bytes() for p in sorted(self.path.glob(f"per_cpu/cpu*/{name}"))}

    def expected(self, name: str) -> str:
        """A text that the kernel (or trace-cmd) made of the same data."""
        return (self.folder / "expected" / name).read_bytes().decode("utf-8", "surrogateescape")


def recording_names() -> list[str]:
    return sorted(p.name.removesuffix(".tar.xz") for p in DATA.glob("*.tar.xz"))


def unpack(dest: Path) -> Iterator[Recording]:
    for name in recording_names():
        with tarfile.open(DATA / f"{name}.tar.xz") as archive:
            archive.extractall(dest, filter="data")
        yield Recording(dest / name)
