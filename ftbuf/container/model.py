"""What every container offers to the layers above: metadata texts, and per buffer and CPU the sub-buffers as segments.

A container knows no events and no Python tables. Everything is read when first asked for; nothing is copied that can be
borrowed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..errors import DamageError, FormatError

TRUNCATED = "truncated"  # the input ends before the data that its tables promise
COMPRESSION = "bad_compression"  # a chunk does not decompress to what its header promises
METADATA = "bad_metadata"  # a section, option or table of the container is damaged


@dataclass(frozen=True, slots=True)
class Problem:
    """One damaged or missing place: a row of ``Trace.problems``."""

    cpu: int  # -1: not in a CPU's stream
    offset: int  # in the file, or in the CPU's own file of a directory
    status: str  # a name from ftbuf.STATUSES
    bytes: int  # how many bytes could not be used
    buffer: str = ""
    detail: str = ""


class Segment(NamedTuple):
    """A run of whole sub-buffers that can be had as one contiguous piece of memory.

    Where the input was cut short, the last segment of a stream may hold the readable part of one sub-buffer
    (``size`` is then less than the sub-buffer size).
    """

    offset: int  # of its first byte in the file (of the compressed chunk, where there is one)
    size: int  # bytes of sub-buffers it holds (uncompressed)


class Stream(ABC):
    """The sub-buffers of one CPU of one buffer, oldest first."""

    cpu: int
    segments: Sequence[Segment]
    problems: Sequence[Problem]  # what opening already knows: a stream cut short, a chunk table that lies

    @abstractmethod
    def load(self, index: int) -> memoryview:
        """Bytes of segment ``index``: borrowed from the source where possible, else read or decompressed.

        Raises DamageError (or TruncatedError, CompressionError) with CPU and offset when they cannot be had.
        Safe to call from several threads.
        """

    @property
    def sizes(self) -> Sequence[int]:
        """The sizes of the segments: where there are many, quicker than the segments themselves."""
        return [segment.size for segment in self.segments]

    @property
    def compressed(self) -> bool:
        return False

    def forget(self, index: int) -> None:  # noqa: B027 (most have nothing to forget)
        """Segment ``index`` will not be looked at soon: its memory may go. What load() gave stays valid."""


@dataclass(slots=True)
class Buffer:
    """The top buffer (name "") or an instance."""

    name: str
    clock: str  # the selected clock: "local", "mono", "x86-tsc", ...
    header_page: bytes  # of this buffer: its own sub-buffer size
    subbuf_size: int
    streams: list[Stream]
    stats: dict[int, bytes] = field(default_factory=dict)  # cpu -> text of per_cpu/cpuN/stats


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a trace.dat, as found: known ones decoded into ``value``, unknown ones left as bytes."""

    id: int
    name: str  # "DATE", "BUFFER", ...; "UNKNOWN" for ids that are not known
    offset: int
    payload: bytes
    value: Any = None


class Container(ABC):
    """A recording: trace.dat, a tracefs-shaped directory, live tracefs, raw pages."""

    kind: str  # "trace.dat v7", "tracefs directory", ...
    path: str
    big_endian: bool
    long_size: int  # of the recording user space; the kernel's own comes from header_page
    cpu_count: int = 0  # of the recorded machine, where the container tells apart from its streams
    header_page: bytes
    header_event: bytes
    buffers: list[Buffer]  # the top buffer first where it has pages
    options: Sequence[Option]
    problems: Sequence[Problem]  # damage of the container itself

    @property
    def snapshot_buffers(self) -> Sequence[Buffer]:
        """The snapshots (what a latency tracer kept), named like the buffers they belong to. Directories only."""
        return ()

    @property
    def text(self) -> bytes | None:
        """A recording that is a text (latency tracers, BUFFER_TEXT); None for binary ones."""
        return None

    @property
    def format_errors(self) -> Sequence[DamageError | FormatError]:
        """Why there may be more formats than ``format_index``, once that was asked for."""
        return ()

    @abstractmethod
    def format_index(self) -> Mapping[tuple[str, str], int]:
        """(system, event) -> key for format_text, in file order, without parsing more than the names."""

    @abstractmethod
    def format_text(self, key: int) -> bytes:
        """The format text of one event."""

    @abstractmethod
    def id_index(self) -> Mapping[int, tuple[str, str]]:
        """Event id -> (system, event), from the ``ID:`` lines alone."""

    @abstractmethod
    def kallsyms(self) -> bytes: ...

    @abstractmethod
    def printk_formats(self) -> bytes: ...

    @abstractmethod
    def saved_cmdlines(self) -> bytes: ...

    @abstractmethod
    def saved_tgids(self) -> bytes: ...

    @abstractmethod
    def tracing_file(self, name: str) -> bytes | None:
        """A small file of the tracing directory ("trace_options", "current_tracer", "tracing_max_latency", ...)."""

    def btf(self) -> bytes:
        """/sys/kernel/btf/vmlinux of the traced kernel; empty where it was not recorded."""
        return b""

    @property
    def uname(self) -> str:
        return ""

    @property
    def ts_offset(self) -> int:
        """Nanoseconds to add to every time stamp (DATE and OFFSET options)."""
        return 0

    def close(self) -> None:  # noqa: B027 (raw pages in memory have nothing to release)
        """Release the source. Memory handed out by load() stays valid for those who hold it."""

    def __iter__(self) -> Iterator[Buffer]:
        return iter(self.buffers)
