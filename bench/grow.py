"""Recordings of any size: real ones, grown by repetition with shifted time stamps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ftbuf.container import open_container
from ftbuf.container.write import write_tracedat

from .data import repeat, sample

SIZE = 200 << 20


def grow(name: str, folder: Path, size: int = SIZE, compression: str = "none") -> Path:
    """A v7 file of about `size` bytes of pages, by default without compression."""
    container = open_container(sample(name))
    buffer = container.buffers[0]
    share = size // max(len(buffer.streams), 1)

    def pages(_: Any, stream: Any) -> Iterator[bytes]:
        own = np.concatenate([np.frombuffer(bytes(stream.load(i)), np.uint8) for i in range(len(stream.segments))])
        yield repeat(own, buffer.subbuf_size, share).tobytes()

    path = folder / f"{name}.dat"
    write_tracedat(path, container, version=7, compression=compression, pages=pages)
    return path
