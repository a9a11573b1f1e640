"""What ``trace-cmd report`` prints instead of events: counters, kernel, events, strings, first and last times."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..container.model import Buffer
from ..durations import seconds_text
from ..recording import Recording
from .columns import microseconds
from .record import encoded
from .render import TraceCmdRequest, cpu_count, with_clock

if TYPE_CHECKING:
    from ..trace import Trace

_PRINTK = re.compile(rb'^0x([0-9a-f]+) : "(.*)"$', re.M)
_STAT_HEAD = b"""
Kernel buffer statistics:
  Note: "entries" are the entries left in the kernel ring buffer and are not
        recorded in the trace data. They should all be zero.

"""


def _cpus_line(recording: Recording) -> bytes:
    return b"cpus=%d\n" % cpu_count(recording)


def stat_text(trace: Trace) -> Iterator[bytes]:
    """--stat: the kernel's counters, and where each CPU's pages are."""
    recording = trace.recording
    yield _cpus_line(recording)
    if any(buffer.stats for buffer in recording.container.buffers):
        yield _STAT_HEAD
    for buffer in recording.container.buffers:
        if buffer.name:
            yield b"Buffer: %s\n\n\n" % encoded(buffer.name)
        for cpu, text in sorted(buffer.stats.items()):
            yield b"CPU: %d\n%s\n" % (cpu, text)
        if buffer.stats:
            yield b"\n"
    if recording.buffers:
        yield from _places(recording, recording.buffers[0])


def _places(recording: Recording, buffer: Buffer) -> Iterator[bytes]:
    """Offset and size of each CPU's pages. Those of a compressed file are counted as if it were not, from the first page on."""
    streams = {stream.cpu: stream for stream in buffer.streams}
    position = buffer.subbuf_size
    for cpu in range(cpu_count(recording)):
        stream = streams.get(cpu)
        size = sum(stream.sizes) if stream is not None else 0
        offset = 0
        if stream is not None and stream.segments:
            offset = position if stream.compressed else stream.segments[0].offset
        position += size
        yield b"CPU%d data recorded at offset=0x%x\n    %d bytes in size\n" % (cpu, offset, size)


def uname_text(trace: Trace) -> Iterator[bytes]:
    """--uname: the traced kernel, and what recorded it."""
    recording = trace.recording
    yield _cpus_line(recording)
    for name in ("UNAME", "VERSION"):
        for option in recording.container.options:
            if option.name == name:
                yield encoded(str(option.value)) + b"\n"


def events_text(trace: Trace) -> Iterator[bytes]:
    """-E: every event that the recording describes."""
    for system, name in sorted(trace.recording.container.format_index()):
        yield encoded(f"{system}:{name}\n")


def printk_text(trace: Trace) -> Iterator[bytes]:
    """-P: the strings that trace_printk formats and tracepoints refer to."""
    found = [(int(address, 16), text) for address, text in _PRINTK.findall(trace.recording.parts.read("printk_formats")[0])]
    for address, text in sorted(found, key=lambda pair: pair[0]):
        yield b"%016x %s\n" % (address, text.removesuffix(b"\\n"))


def first_and_last_text(
    trace: Trace, request: TraceCmdRequest, path: str, *, first: bool, last: bool
) -> Iterator[bytes]:
    """--first-event, --last-event: of every CPU with data."""
    trace, options = with_clock(trace, request)
    top = trace.window(buffer=trace.buffers[0]) if trace.buffers else trace

    def time(ts: int) -> bytes:
        if not options.seconds:
            return b"%12d" % ts
        if options.nanoseconds:
            return seconds_text(ts, 9, 5).encode()
        return seconds_text(microseconds(ts), 6, 5).encode()

    yield b"List of CPUs in %s with data:\n" % encoded(path)
    for cpu in top.cpus:
        view = top.window(cpus=[cpu])
        begin, end = view.start, view.end
        if begin is None or end is None:
            continue
        line = b"  %d" % cpu
        if first:
            line += b"\tFirst event:" + time(begin)
        if last:
            line += b"\tLast event:" + time(end)
        yield line + b"\n"
