"""From what ``open`` is given to a Recording: one file or several, their clocks, the guests of a host."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .clock import IDENTITY, Correction
from .container import open_container
from .container.model import Container
from .errors import FormatError, FtbufError
from .merged import Merged
from .recording import Recording, option_values, trace_id

if TYPE_CHECKING:
    from .container.options import Guest

MAX_NEIGHBOURS = 1024  # files beside a host's that are looked at


def open_recording(source: Any, *, storage_options: dict[str, Any] | None = None, guests: Any = None,
                   raw_ts: bool = False, hz: int | None = None, ts_offset: int = 0) -> Recording:
    """What ``ftbuf.open`` wraps; its parameters are described there."""
    sources = list(source) if isinstance(source, (list, tuple)) else [source]
    if not sources:
        raise FormatError("no recording: the list of sources is empty")
    opened: list[Recording] = []
    try:
        for one in sources:
            opened.append(new_recording(open_container(one, storage_options=storage_options)))
        for one in guest_sources(sources, opened, guests):
            opened.append(new_recording(open_container(one, storage_options=storage_options)))
        return together(opened).corrected(clock_change(raw_ts, hz, ts_offset))
    except BaseException:
        for recording in opened:
            recording.close()
        raise


def new_recording(container: Container) -> Recording:
    """Where there is nothing but a snapshot, the snapshot is the recording."""
    if not any(b.streams for b in container.buffers):
        snapshots = [b for b in container.snapshot_buffers if b.streams]
        if snapshots:
            return Recording(container, snapshots)
    return Recording(container)


def together(recordings: Sequence[Recording]) -> Recording:
    return recordings[0] if len(recordings) == 1 else Merged(recordings)


def clock_change(raw_ts: bool, hz: int | None, ts_offset: int) -> Callable[[Correction], Correction]:
    """What the arguments of ``open`` make of a file's own correction."""
    if hz is not None and (isinstance(hz, bool) or not isinstance(hz, int)):
        raise TypeError(f"hz is an int, not {type(hz).__name__}")
    if isinstance(ts_offset, bool) or not isinstance(ts_offset, int):
        raise TypeError(f"ts_offset is an int, not {type(ts_offset).__name__}")
    if hz is not None and not 0 < hz < 1 << 63:
        raise ValueError("hz must be positive")
    if not -(1 << 62) < ts_offset < 1 << 62:
        raise ValueError("ts_offset would take time stamps out of 64 bits")
    if raw_ts and (hz is not None or ts_offset):
        raise ValueError("raw_ts leaves time stamps as recorded: hz and ts_offset would change them")

    def change(own: Correction) -> Correction:
        if raw_ts:
            return IDENTITY
        if hz is not None:
            own = replace(own, mult=0, shift=0, hz=hz)
        return replace(own, offset=own.offset + ts_offset)

    return change


# ---- guests ----


def guest_sources(sources: Sequence[Any], opened: Sequence[Recording], guests: Any) -> list[Any]:
    """The sources of guests to open beside those that are open already."""
    if guests is None:
        return []
    if guests != "auto":
        return list(guests) if isinstance(guests, (list, tuple)) else [guests]
    found = []
    known = {trace_id(r.container) for r in opened}
    for source, recording in zip(sources, opened, strict=True):
        wanted: list[Guest] = option_values(recording.container, "GUEST")
        missing = {g.trace_id for g in wanted} - known
        if missing and isinstance(source, (str, os.PathLike)):
            found += list(neighbours(os.fsdecode(source), missing))
            known |= missing
    return found


def neighbours(path: str, wanted: set[int]) -> Iterator[str]:
    """Files beside one whose TRACEID is wanted: the first of each."""
    folder = os.path.dirname(path) or "."
    names = sorted(n for n in os.listdir(folder) if n.endswith(".dat"))[:MAX_NEIGHBOURS]
    wanted = set(wanted)
    for name in names:
        other = os.path.join(folder, name)
        if not wanted or os.path.samefile(other, path) or not os.path.isfile(other):
            continue
        try:
            container = open_container(other)
        except (FtbufError, OSError):
            continue
        number = trace_id(container)
        container.close()
        if number in wanted:
            wanted.discard(number)
            yield other
