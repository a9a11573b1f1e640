"""Ring-buffer pages without a container: bytes in, columns out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from .arguments import check_columns, check_ints, check_type
from .container.model import Buffer, Container, Problem, Segment, Stream
from .engine import decode
from .errors import FormatError
from .formats import Abi, EventFormat, check_header, parse_format
from .recording import Recording
from .requests import events_request, timeline_request
from .selection import Selection
from .table import Table

CPUS = 1 << 16  # common_cpu is a uint16


class RawStream(Stream):
    """One buffer of bytes as one segment."""

    def __init__(self, data: memoryview, cpu: int) -> None:
        self.cpu = cpu
        self.data = data
        self.segments: Sequence[Segment] = [Segment(0, data.nbytes)] if data.nbytes else []
        self.problems: Sequence[Problem] = ()

    def load(self, index: int) -> memoryview:
        return self.data


class RawPages(Container):
    """Pages of one or several CPUs with an explicit ABI and explicit formats."""

    kind = "raw pages"
    path = "<pages>"

    def __init__(self, pages: Mapping[int, Any], abi: Abi, formats: Sequence[EventFormat],
                 comms: Mapping[int, bytes | str]) -> None:
        self.big_endian = abi.big_endian
        self.long_size = abi.long_size
        self.header_page = header_page_text(abi)
        self.header_event = b"\tlen : 3 bits\n" if abi.old_header else b""
        streams: list[Stream] = [RawStream(memoryview(data).cast("B"), cpu) for cpu, data in sorted(pages.items())]
        self.buffers = [Buffer("", "local", self.header_page, abi.subbuf_size, streams)]
        self.options = ()
        self.problems = ()
        self.formats = list(formats)
        self.comms = comms

    def format_index(self) -> Mapping[tuple[str, str], int]:
        return {(f.system, f.name): i for i, f in enumerate(self.formats)}

    def format_text(self, key: int) -> bytes:
        raise NotImplementedError("formats are given parsed")

    def id_index(self) -> Mapping[int, tuple[str, str]]:
        return {f.id: (f.system, f.name) for f in self.formats}

    def kallsyms(self) -> bytes:
        return b""

    def printk_formats(self) -> bytes:
        return b""

    def saved_cmdlines(self) -> bytes:
        return b"".join(b"%d %s\n" % (pid, as_bytes(comm)) for pid, comm in self.comms.items())

    def saved_tgids(self) -> bytes:
        return b""

    def tracing_file(self, name: str) -> bytes | None:
        return None


class RawRecording(Recording):
    """A Recording whose formats are given parsed, all of them."""

    _blktrace_id = None

    def format(self, system: str, event: str) -> EventFormat:
        container: Any = self.container
        found: EventFormat = container.formats[self.format_index[system, event]]
        return found

    def mentions(self, pair: tuple[str, str], pattern: re.Pattern[bytes]) -> bool:
        return any(pattern.search(as_bytes(f"{f.declaration};")) for f in self.format(*pair).fields)


def header_page_text(abi: Abi) -> bytes:
    """What events/header_page says of such an ABI."""
    size = abi.subbuf_size - abi.data_offset
    return (f"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
            f"\tfield: local_t commit;\toffset:8;\tsize:{abi.long_size};\tsigned:1;\n"
            f"\tfield: char data;\toffset:{abi.data_offset};\tsize:{size};\tsigned:1;\n").encode()


def as_bytes(text: bytes | str) -> bytes:
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text


def as_formats(events: Any, abi: Abi) -> list[EventFormat]:
    kinds, what = (str, bytes, EventFormat), "an EventFormat, the text of a format, or a list of them"
    if isinstance(events, kinds):
        events = [events]
    check_type("events", events, Iterable, what)
    parse = partial(parse_format, system="raw", long_size=abi.long_size)
    out = [check_header(e) if isinstance(check_type("events", e, kinds, what), EventFormat) else parse(as_bytes(e))
           for e in events]
    if not out:
        raise FormatError("no event formats were given")
    return out


def check_abi(abi: Any) -> Abi:
    checked: Abi = check_type("abi", abi, Abi, "a ftbuf.Abi")
    for name in ("long_size", "subbuf_size", "data_offset"):
        check_type(f"abi.{name}", getattr(checked, name), int, "an int")
    return checked


def as_pages(buffers: Mapping[Any, Any]) -> dict[int, memoryview]:
    """Views of the buffers, by CPU."""
    cpus, pages = check_ints("cpu", buffers), {}
    for cpu, data in zip(cpus, buffers.values(), strict=True):
        try:
            pages[cpu] = memoryview(data)
        except TypeError:
            what = "buffer is bytes-like, or a mapping of CPU to bytes-like"
            raise TypeError(f"{what}, not {type(data).__name__}") from None
    return pages


def decode_pages(buffer: Any, *, abi: Abi, events: Any, event: str | None = None, columns: Sequence[str] | None = None,
                 cpu: int = 0, comms: Mapping[int, bytes | str] | None = None, start: int | None = None,
                 end: int | None = None, pids: Iterable[int] | None = None, errors: str = "raise", order: str = "time"
                 ) -> Table:
    """Decode raw ring-buffer pages: what per_cpu/cpuN/trace_pipe_raw gave, or what was found in a crash dump.

    Parameters
    ----------
    buffer : bytes-like, or mapping of CPU to bytes-like
        Whole sub-buffers, one after another.
    abi : Abi
        How the kernel lays them out: see ``ftbuf.Abi``.
    events : EventFormat, format text (str or bytes), or a list of them
        The formats of the events that may occur.
    event : str, optional
        The event to decode. None: the one format given, or, of several, a timeline of all of them.
    columns, start, end, pids, errors, order
        As in ``EventView.table`` and ``Trace.window``.
    cpu : int
        The CPU of a single buffer.
    comms : mapping of pid to name, optional

    Returns
    -------
    Table

    Raises
    ------
    TypeError
        An argument is not what it has to be; the message names it.
    DamageError
        A page is damaged and ``errors="raise"``: with status, CPU and offset in the buffer.
    """
    formats = as_formats(events, check_abi(abi))
    pages = as_pages(buffer if isinstance(buffer, Mapping) else {cpu: buffer})
    comms = check_type("comms", comms or {}, Mapping, "a mapping of pid to name")
    for name in comms.values():
        check_type("comms", name, (str, bytes), "a mapping of pid to str or bytes")
    if not all(0 <= number < CPUS for number in pages):
        raise ValueError(f"a CPU is a number from 0 to {CPUS - 1}")
    recording = RawRecording(RawPages(pages, abi, formats, comms))
    window = Selection().narrowed(start, end, None, pids, None).window
    if event is None and len(formats) > 1:
        decoded = decode(recording.sources(), window, partial(timeline_request, recording), errors, order=order)
        return Table([part[0] for part in decoded.batches])
    pair = (formats[0].system, formats[0].name) if event is None else recording.find(event)
    columns = check_columns(columns)
    names = recording.columns(pair) if columns is None else columns
    request = partial(events_request, recording, [(pair, columns)])
    decoded = decode(recording.sources(), window, request, errors, order=order)
    return Table([part[0] for part in decoded.batches], names)


def decode_mmap(images: Mapping[int, Any], *, abi: Abi, events: Any, **options: Any) -> Table:
    """Decode copies of a memory-mapped ring buffer (Linux 6.10 and later).

    Parameters
    ----------
    images : mapping of CPU to bytes-like, or to a pair of them
        The whole mapping, meta page first; or the meta page and the sub-buffers.
    abi, events
        As in ``decode_pages``.
    **options
        The others of ``decode_pages``.

    Returns
    -------
    Table

    Raises
    ------
    FormatError
        An image is none, or its sub-buffers are not of the size that ``abi`` says.
    """
    from .container.mmapimage import MmapImage

    check_abi(abi)
    pages = {}
    for cpu, parts in check_type("images", images, Mapping, "a mapping of CPU to bytes-like").items():
        image = MmapImage(*(parts if isinstance(parts, tuple) else (parts,)), long_size=abi.long_size)
        if image.meta.subbuf_size != abi.subbuf_size:
            raise FormatError(f"CPU {cpu}: sub-buffers of {image.meta.subbuf_size} bytes, not {abi.subbuf_size}")
        pages[cpu] = b"".join(image.pages())
    return decode_pages(pages, abi=abi, events=events, **options)
