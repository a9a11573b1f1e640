"""Ring-buffer pages of any size: real pages, repeated with shifted time stamps.

The recordings under ``../shared/recordings`` are used where they are; else the samples that the repository ships.
"""

from __future__ import annotations

import lzma
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
SHIPPED = ROOT / "tests" / "data" / "recordings"
SAMPLES = {"function": (RECORDINGS / "function.dat", ROOT / "examples" / "function.dat"),
           "mixed": (RECORDINGS / "mixed.dat", ROOT / "examples" / "sched.dat"),
           "graph": (RECORDINGS.parent / "corpus" / "cases" / "k612-tc316-graph" / "trace.dat.xz", SHIPPED / "k612-graph.tar.xz"),
           "switches": (SHIPPED / "k612-sched.tar.xz",), "all events": (SHIPPED / "k612-allevents.tar.xz",),
           "timerlat": (SHIPPED / "k612-timerlat.tar.xz",), "irqsoff": (SHIPPED / "k612-irqsoff.tar.xz",)}
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
        return replace(self, pages=repeat_to(self.pages, self.recording.abi.subbuf_size, size))


def sample(name: str, shipped: bool = False) -> Path | bytes:
    """A recording, or only one that the repository has; its bytes where it is packed."""
    for path in SAMPLES[name]:
        if path.exists() and (not shipped or path.is_relative_to(ROOT)):
            return lzma.decompress(path.read_bytes()) if path.suffixes[-2:] == [".dat", ".xz"] else path
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


def words_at(pages: np.ndarray, places: np.ndarray) -> np.ndarray:
    return pages[places[:, None] + np.arange(4)].reshape(-1, 4).copy().view("<u4")[:, 0].astype(np.int64)


def absolute_stamps(pages: np.ndarray, subbuf: int, offset: int) -> np.ndarray:
    """Where TIME_STAMP records are: all pages are walked at once, record by record (K:ring_buffer.h: types 29 to 31)."""
    starts = np.arange(0, len(pages), subbuf)
    ends = starts + offset + (words_at(pages, starts + 8) & 0xFFFFF)
    at, found = starts + offset, []
    while len(at := at[(going := at + 4 <= ends)]):
        ends = ends[going]
        word = words_at(pages, at)
        kind, delta = word & 31, word >> 5
        sized = np.where((kind == 0) | (kind == 29), words_at(pages, np.minimum(at + 4, len(pages) - 4)), 0)
        padding = np.where(delta == 0, subbuf, sized + 4)
        length = np.select([kind == 0, kind < 29, kind == 29], [sized + 4, 4 + 4 * kind, padding], 8)
        found.append(at[kind == 31])
        at = at + (length + 3) // 4 * 4
    return np.concatenate(found)


def shift(pages: np.ndarray, subbuf: int, stamps: np.ndarray, by: int) -> None:
    """Move sub-buffers in time: their own stamps, and the absolute ones in them (27 low bits in the header, 32 behind it)."""
    pages.reshape(-1, subbuf)[:, :8].view("<u8")[:] += np.uint64(by)
    value = (words_at(pages, stamps) >> 5) + (words_at(pages, stamps + 4) << 27) + by
    for place, part in ((stamps, (value & 0x7FFFFFF) << 5 | 31), (stamps + 4, value >> 27 & 0xFFFFFFFF)):
        pages[place[:, None] + np.arange(4)] = part.astype("<u4").view(np.uint8).reshape(-1, 4)


def first_and_last(pages: np.ndarray, subbuf: int) -> tuple[int, int]:
    stamps = pages.reshape(-1, subbuf)[:, :8].copy().view("<u8")[:, 0]
    return int(stamps[0]), int(stamps[-1])


def repeat(pages: np.ndarray, subbuf: int, times: int, span: int, offset: int = 16) -> np.ndarray:
    """Sub-buffers again and again, each time `span` later (little-endian)."""
    stamps = absolute_stamps(pages, subbuf, offset)
    out = np.empty((times, len(pages)), np.uint8)
    for i in range(times):
        out[i] = pages
        shift(out[i], subbuf, stamps, span * i)
    return out.reshape(-1)


def repeat_to(pages: np.ndarray, subbuf: int, size: int) -> np.ndarray:
    """About `size` bytes of one CPU's pages: repeated, or only the first of them."""
    whole = pages[: max(min(size, len(pages)) // subbuf, 1) * subbuf]
    first, last = first_and_last(whole, subbuf)
    return repeat(whole, subbuf, max(round(size / len(whole)), 1), last - first + GAP)


def only(recording: Recording, fmt: EventFormat, most: int = 1 << 16) -> np.ndarray:
    """The records of one event alone, packed into full pages (the kernel's 5/27-bit header, little-endian)."""
    abi = recording.abi
    out, page, used, last = [], bytearray(), 0, 0
    room = abi.subbuf_size - abi.data_offset
    view = Trace(recording).window(cpus=[recording.sources()[0].stream.cpu])
    for event in islice(view[f"{fmt.system}:{fmt.name}"].records(), most):
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


def workloads(shipped: bool = False) -> list[Workload]:
    """function-tracer pages, sched_switch pages, mixed pages: as short as they are, to be resized."""
    function = Recording(open_container(sample("function", shipped)))
    mixed = Recording(open_container(sample("mixed", shipped)))
    fn, switch = function.format("ftrace", "function"), mixed.format("sched", "sched_switch")
    return [
        Workload("function", function, recorded_pages(function), [fn]),
        Workload("sched_switch", mixed, only(mixed, switch), [switch]),
        Workload("mixed", mixed, recorded_pages(mixed), occurring(mixed)),
    ]


def occurring(recording: Recording) -> list[EventFormat]:
    return [recording.format(*recording.find(name)) for name in Trace(recording).events]
