"""Open time on a large header, and import time beyond numpy's own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import ftbuf

from .data import sample
from .measure import side_by_side

IMPORTS = 15


def import_seconds(code: str) -> float:
    """Least time of several fresh interpreters, which find compiled modules as an installed package has them."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    timer = f"import time; t = time.thread_time(); {code}; print(time.thread_time() - t)"  # BLAS threads spin
    command = [sys.executable, "-c", timer]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True, env=environment) for _ in range(IMPORTS)]
    return min(float(r.stdout) for r in runs)


def large_header(folder: Path) -> Path:
    """A v7 file with some 7 MB of metadata: 2,300 formats and 120,000 symbols, uncompressed."""
    from ftbuf.container import open_container
    from ftbuf.container.write import write_tracedat

    source = open_container(sample("mixed"))

    class Large:
        """The same recording with more formats and symbols."""

        def __getattr__(self, name: str) -> Any:
            return getattr(source, name)

        def format_index(self) -> dict[tuple[str, str], int]:
            return {(f"system{i % 50}", f"event{i}"): i for i in range(2300)}

        def format_text(self, key: int) -> bytes:
            text = source.format_text(next(iter(source.format_index().values())))
            name = text.split(b"\n", 1)[0]
            return text.replace(name, b"name: event%d" % key, 1).replace(b"\nID: ", b"\nID: 1%d" % key, 1)

        def kallsyms(self) -> bytes:
            return b"".join(b"%016x t some_kernel_function_%d\n" % (0xFFFFFFFF81000000 + 64 * i, i) for i in range(120_000))

    path = folder / "large.dat"
    write_tracedat(path, Large(), version=7, compression="none")  # type: ignore[arg-type]
    return path


def run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = large_header(Path(folder))

        def open_close() -> None:
            with ftbuf.open(path):
                pass

        def first_event() -> object:
            with ftbuf.open(path) as trace:
                return next(trace.records(), None)

        seconds = side_by_side({"open": open_close, "first event": first_event}, 15)
        size = path.stat().st_size
    numpy_alone = import_seconds("import numpy")
    return {"file MB": size / 1e6, "open ms": seconds["open"] * 1e3, "first event ms": seconds["first event"] * 1e3,
            "import ms beyond numpy": (import_seconds("import numpy, ftbuf") - numpy_alone) * 1e3, "numpy ms": numpy_alone * 1e3}
