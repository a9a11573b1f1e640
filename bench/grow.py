"""Recordings of any size: real ones, grown by repetition with shifted time stamps."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ftbuf
from ftbuf.container import open_container
from ftbuf.container.write import write_tracedat

from .data import GAP, first_and_last, repeat, sample

SIZE = 200 << 20


def grow(name: str, folder: Path, size: int = SIZE, compression: str = "none", events: Sequence[str] | None = None) -> Path:
    """A v7 file of about `size` bytes of pages, by default without compression; ``events``: of these alone."""
    container = open_container(source(name, folder, events))
    pages = grown(container, size)
    path = folder / f"{name}.dat"
    write_tracedat(path, container, version=7, compression=compression, pages=lambda _, stream: iter([pages(stream)]))
    return path


def grow_directory(name: str, folder: Path, size: int = SIZE) -> Path:
    """A tracefs-shaped directory without a snapshot: what a trace.dat does not keep is there, such as the name of the tracer."""
    path = source(name, folder, None)
    container = open_container(path)
    pages = grown(container, size)
    own = {stream.cpu: pages(stream) for stream in container.buffers[0].streams}
    for cpu, data in own.items():
        (path / "per_cpu" / f"cpu{cpu}" / "trace_pipe_raw").write_bytes(data)
        (path / "per_cpu" / f"cpu{cpu}" / "snapshot_raw").unlink(missing_ok=True)
    return path


def grown(container: Any, size: int) -> Callable[[Any], bytes]:
    """Stream of the first buffer -> its pages, again and again, so that all have about `size` bytes."""
    buffer = container.buffers[0]
    own = {stream.cpu: all_pages(stream) for stream in buffer.streams}
    edges = [first_and_last(pages, buffer.subbuf_size) for pages in own.values() if len(pages)]
    span = max(last for _, last in edges) - min(first for first, _ in edges) + GAP
    times = max(round(size / sum(map(len, own.values()))), 1)
    return lambda stream: repeat(own[stream.cpu], buffer.subbuf_size, times, span).tobytes() if len(own[stream.cpu]) else b""


def source(name: str, folder: Path, events: Sequence[str] | None) -> Any:
    """A sample, unpacked, with some events alone."""
    found = sample(name)
    if isinstance(found, Path) and found.suffixes[-2:] == [".tar", ".xz"]:
        with tarfile.open(found) as archive:
            archive.extractall(folder / "unpacked", filter="data")
        found = folder / "unpacked" / found.name.removesuffix(".tar.xz") / "tracefs"
    if events is None:
        return found
    part = folder / "part.dat"
    ftbuf.split(found, part, events=events, version=7, compression="none")
    return part


def all_pages(stream: Any) -> np.ndarray:
    return np.concatenate([np.empty(0, np.uint8), *(np.frombuffer(bytes(stream.load(i)), np.uint8)
                                                    for i in range(len(stream.segments)))])
