"""Recordings of any size: real ones, grown by repetition with shifted time stamps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ftbuf.container import open_container
from ftbuf.container.write import write_tracedat

from .data import GAP, first_and_last, repeat, sample

SIZE = 200 << 20


def grow(name: str, folder: Path, size: int = SIZE, compression: str = "none") -> Path:
    """A v7 file of about `size` bytes of pages, by default without compression."""
    container = open_container(sample(name))
    buffer = container.buffers[0]
    own = {stream.cpu: all_pages(stream) for stream in buffer.streams}
    edges = [first_and_last(pages, buffer.subbuf_size) for pages in own.values()]
    span = max(last for _, last in edges) - min(first for first, _ in edges) + GAP
    times = max(round(size / sum(map(len, own.values()))), 1)

    def pages(_: Any, stream: Any) -> Iterator[bytes]:
        yield repeat(own[stream.cpu], buffer.subbuf_size, times, span).tobytes()

    path = folder / f"{name}.dat"
    write_tracedat(path, container, version=7, compression=compression, pages=pages)
    return path


def all_pages(stream: Any) -> np.ndarray:
    return np.concatenate([np.frombuffer(bytes(stream.load(i)), np.uint8) for i in range(len(stream.segments))])
