"""Packs small recordings out of the shared corpus into tests/data/recordings: ``python tests/data/make_recordings.py``.

Each archive holds NAME/tracefs (a tracefs-shaped directory) or NAME/*.dat, NAME/case.json and NAME/expected (the
kernel's or trace-cmd's texts). kallsyms is thinned out to the symbols around numbers that occur in the pages.
"""

from __future__ import annotations

import bisect
import io
import json
import lzma
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from corpus_data import DATA, abi_of, corpus_cases, streams

NAMES = [
    "k612-sched",
    "k612-snapshot",
    "k612-irqsoff",
    "k612-wakeup_dl-nofunc",
    "k612-graph",
    "k612-timerlat",
    "k612-allevents",
    "k612abs-absolute-ts-forced",
    "h618-subbuf-8k",
    "h618-rawmarker",
    "d61-overwrite",
    "arm64-16k-uprobe",
    "arm64-16k-subbuf-64k",
    "armhf-function",
    "armhf-synth",
    "s390x-gaps",
    "s390x-kprobe",
    "s390x-lost-consumer",
    "mips32be-graph",
    "mips32be-subbuf-64k",
]
TEXTS = ("trace.txt", "snapshot.txt", "trace.raw.txt", "trace.fields.txt")


def near_symbols(kallsyms: bytes, pages: list[bytes], abi) -> bytes:
    """The lines of kallsyms around every long in the pages, and their neighbours."""
    lines = sorted(kallsyms.splitlines(keepends=True), key=lambda line: int(line.split(b" ", 1)[0], 16))
    starts = [int(line.split(b" ", 1)[0], 16) for line in lines]
    order = "big" if abi.big_endian else "little"
    numbers = {int.from_bytes(p[i : i + abi.long_size], order) for p in pages for i in range(0, len(p), 4)}
    # the bounds of the interrupt entry functions decide what a function graph shows
    keep: set[int] = {i for i, line in enumerate(lines) if b" __irqentry_text_" in line}
    for n in numbers:
        if starts and starts[0] <= n <= starts[-1] + 65536:
            at = bisect.bisect_right(starts, n)
            first = bisect.bisect_left(starts, starts[at - 1])
            last = bisect.bisect_right(starts, starts[at]) if at < len(starts) else at
            keep.update(range(first, last))
    return b"".join(lines[i] for i in sorted(keep))


def pack(case) -> None:
    files: dict[str, bytes] = {"case.json": json.dumps(case.info, indent=1).encode()}
    with tempfile.TemporaryDirectory() as scratch:
        layout = case.lay_out(Path(scratch) / case.name)
        for path in sorted(p for p in layout.rglob("*") if p.is_file()):
            name = str(path.relative_to(layout))
            files[name if case.is_file else f"tracefs/{name}"] = path.read_bytes()
    if "tracefs/kallsyms" in files:
        pages = [*streams(case).values(), *streams(case, snapshot=True).values()]
        files["tracefs/kallsyms"] = near_symbols(files["tracefs/kallsyms"], pages, abi_of(case.info))
    for name in case.names():
        if name in TEXTS:
            files[f"expected/{name}"] = case.read(name)
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"{case.name}/{name}")
            member.size, member.mode = len(data), 0o644
            archive.addfile(member, io.BytesIO(data))
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / f"{case.name}.tar.xz").write_bytes(lzma.compress(raw.getvalue(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    for case in corpus_cases():
        if case.name in NAMES:
            pack(case)
