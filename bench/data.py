"""Ring-buffer pages of any size: real pages, repeated with shifted time stamps.

The recordings under ``../shared/recordings`` are used where they are; else the samples that the repository ships.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from ftbuf.container import open_container
from ftbuf.engine import Source
from ftbuf.formats import EventFormat
from ftbuf.raw import RawStream
from ftbuf.recording import Recording
from ftbuf.trace import Trace

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS = ROOT.parent / "shared" / "recordings"
SAMPLES = {"function": (RECORDINGS / "function.dat", ROOT / "examples" / "function.dat"),
           "mixed": (RECORDINGS / "mixed.dat", ROOT / "examples" / "sched.dat")}
GAP = 1_000_000_000  # ns between two repetitions: longer than what is recorded in the last page


@dataclass(frozen=True)
class Workload:
    """Pages of one CPU, and what is to be decoded of them."""

    name: str
    recording: Recording
    pages: np.ndarray  # uint8
    events: list[EventFormat]

    @property
    def source(self) -> Source:
        first = self.recording.sources()[0]
        return replace(first, stream=RawStream(memoryview(self.pages), 0))

    def resized(self, size: int) -> Workload:
        return replace(self, pages=repeat(self.pages, self.recording.abi.subbuf_size, size))


def sample(name: str) -> Path:
    for path in SAMPLES[name]:
        if path.exists():
            return path
    raise FileNotFoundError(f"no recording for {name!r}: looked for {', '.join(map(str, SAMPLES[name]))}")


def recorded_pages(recording: Recording, most: int = 8 << 20) -> np.ndarray:
    """Whole sub-buffers of the first CPU, up to `most` bytes."""
    stream = recording.sources()[0].stream
    parts, size = [], 0
    for i in range(len(stream.segments)):
        parts.append(np.frombuffer(bytes(stream.load(i)), np.uint8))
        size += len(parts[-1])
        if size >= most:
            break
    pages = np.concatenate(parts)
    return pages[: min(len(pages), most) // recording.abi.subbuf_size * recording.abi.subbuf_size]


def repeat(pages: np.ndarray, subbuf: int, size: int) -> np.ndarray:
    """About `size` bytes: the pages again and again (or only the first of them), each time later (little-endian)."""
    whole = pages.reshape(-1, subbuf)
    whole = whole[: max(size // subbuf, 1)]
    times = max(round(size / whole.nbytes), 1)
    base = whole[:, :8].copy().view("<u8")[:, 0]
    span = np.uint64(int(base[-1]) - int(base[0]) + GAP)
    out = np.empty((times, *whole.shape), np.uint8)
    for i in range(times):
        out[i] = whole
        out[i, :, :8] = (base + span * np.uint64(i)).view(np.uint8).reshape(-1, 8)
    return out.reshape(-1)


def only(recording: Recording, fmt: EventFormat, most: int = 1 << 16) -> np.ndarray:
    """The records of one event alone, packed into full pages (the kernel's 5/27-bit header, little-endian)."""
    abi = recording.abi
    out, page, used, last = [], bytearray(), 0, 0
    room = abi.subbuf_size - abi.data_offset
    for event in islice(Trace(recording)[f"{fmt.system}:{fmt.name}"].records(), most):
        ts, payload = event.ts, event.payload
        if not page or used + 4 + len(payload) > room:
            out.append(close(page, used, abi.subbuf_size, abi.data_offset))
            page, used, last = bytearray(ts.to_bytes(8, "little") + bytes(abi.data_offset - 8)), 0, ts
        delta = min(ts - last, (1 << 27) - 1)
        page += (len(payload) // 4 | delta << 5).to_bytes(4, "little") + payload
        used, last = used + 4 + len(payload), last + delta
    out.append(close(page, used, abi.subbuf_size, abi.data_offset))
    return np.frombuffer(b"".join(out), np.uint8)


def close(page: bytearray, used: int, subbuf: int, offset: int) -> bytes:
    if not page:
        return b""
    page[8:offset] = used.to_bytes(offset - 8, "little")
    return bytes(page) + bytes(subbuf - len(page))


def workloads() -> list[Workload]:
    """function-tracer pages, sched_switch pages, mixed pages: as short as they are, to be resized."""
    function = Recording(open_container(sample("function")))
    mixed = Recording(open_container(sample("mixed")))
    fn, switch = function.format("ftrace", "function"), mixed.format("sched", "sched_switch")
    return [
        Workload("function", function, recorded_pages(function), [fn]),
        Workload("sched_switch", mixed, only(mixed, switch), [switch]),
        Workload("mixed", mixed, recorded_pages(mixed), occurring(mixed)),
    ]


def occurring(recording: Recording) -> list[EventFormat]:
    return [recording.format(*recording.find(name)) for name in Trace(recording).events]
