"""An event's own text: compiled once per event, run by the core on every record."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from .. import _core
from ..codegen import Scope
from ..errors import DamageWarning
from ..formats import EventFormat
from ..lookups import Lookups
from ..printfmt import TRACE_CMD, Style, compile_print_fmt
from ..recording import UNKNOWN_EVENT, Recording
from .plugins import TraceCmdOptions, compile_trace_cmd_text
from .record import LineRecord

if TYPE_CHECKING:
    from .options import Options

# CONFIG_HZ is not in a recording: most distributions' kernels have 250; trace-cmd takes ticks for milliseconds.
_KERNEL_HZ, _TRACE_CMD_HZ = 250, 1000
_CPUS_MAX = 1 << 12

Compile = Callable[[Scope], bytes]
_NO_FORMAT = "unknown_event"  # as a checkup calls it


class EventTexts:
    """Prints the bodies of records.

    Parameters
    ----------
    compile : function
        Makes the program of one event.
    unknown : bytes
        The text of types without format.
    like : EventTexts, optional
        Another of the same recording and style, whose tables are used.
    """

    def __init__(
        self, recording: Recording, style: Style, compile: Compile, unknown: bytes, like: EventTexts | None = None
    ) -> None:
        self._recording, self._compile, self._unknown = recording, compile, unknown
        self._order: Literal["big", "little"] = "big" if recording.container.big_endian else "little"
        self._style = style
        self._programs: dict[int, _core.Program] = {}  # by id() of the format, which the recording keeps
        self.unprinted: Counter[str] = like.unprinted if like is not None else Counter()  # records, by what was wrong
        self._lookups: Lookups = like._lookups if like is not None else self._make_lookups()

    def _make_lookups(self) -> Lookups:
        recording = self._recording
        cpus = max((stream.cpu for buffer in recording.buffers for stream in buffer.streams), default=0) + 1
        return Lookups(lambda: recording.symbols, lambda: recording.printk_formats,
                       self._scope(EventFormat("", "", -1, (), "")), self._style, lambda: recording.comms,
                       cpus=min(cpus, _CPUS_MAX))

    def _scope(self, fmt: EventFormat) -> Scope:
        recording = self._recording
        hz = _KERNEL_HZ if self._style.kernel else _TRACE_CMD_HZ
        return Scope(
            fmt, recording.container.big_endian, recording.abi.long_size, hz=hz,
            address=lambda name: recording.symbols.by_name(name),
        )

    @property
    def renderer(self) -> _core.Renderer:
        """What runs the programs, with what it keeps between records."""
        return self._lookups.renderer

    def program(self, fmt: EventFormat) -> _core.Program:
        program = self._programs.get(id(fmt))
        if program is None:
            program = self._programs[id(fmt)] = self._lookups.program(self._compile(self._scope(fmt)))
        return program

    def compiled(self, fmt: EventFormat, text: str) -> _core.Program:
        """A program for records of an event that prints another print fmt than the event's own."""
        return self._lookups.program(compile_print_fmt(self._scope(fmt), self._style, text))

    def __call__(self, record: LineRecord) -> bytes:
        """The body of one record; of a damaged one, what is wrong with it."""
        fmt = record.format
        if fmt.name == UNKNOWN_EVENT:
            self.unprinted[_NO_FORMAT] += 1
            return self._unknown.replace(b"%d", b"%d" % int.from_bytes(record.payload[:2], self._order))
        text = self.renderer.body(
            self.program(fmt), record.payload, ts=record.ts, cpu=record.cpu, pid=record.pid, comm=record.comm
        )
        if isinstance(text, bytes):
            return text
        self.unprinted[text] += 1
        return b"[%s]\n" % text.encode()


def say_unprinted(texts: Sequence[EventTexts], errors: str) -> None:
    """Under ``errors="warn"`` a warning, where records were printed without what they say."""
    counts = sum((each.unprinted for each in texts), Counter[str]())
    if errors == "warn" and counts:
        listed = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        warnings.warn(f"records that could not be printed as their events' formats say: {listed}", DamageWarning,
                      stacklevel=2)


def kernel_texts(
    recording: Recording,
    options: Options,
    release: tuple[int, int],
    *,
    messages_alone: bool = False,
    title: bool = True,
    like: EventTexts | None = None,
) -> EventTexts:
    """Bodies as the kernel prints them under these options, with their line ends; after the event's ``title``."""
    from .kernelbodies import KernelOptions, compile_kernel_text

    chosen = KernelOptions(
        raw="raw" in options,
        hex="hex" in options,
        fields="fields" in options,
        verbose="verbose" in options,
        sym_offset="sym-offset" in options,
        sym_addr="sym-addr" in options,
        print_parent="print-parent" in options,
        printk_msg_only=messages_alone,
        title=title,
        version=release,
    )
    unknown = b"%d ?\n" if {"raw", "hex"} & options.enabled else b"Unknown type %d\n"  # K:trace.c print_trace_line
    return EventTexts(recording, chosen.style, lambda scope: compile_kernel_text(scope, chosen), unknown, like)


def trace_cmd_texts(
    recording: Recording, *, plugins: bool = True, is_raw: Callable[[str], bool] = lambda name: False
) -> EventTexts:
    """Bodies as trace-cmd prints them, without line end. ``is_raw``: whether an event is printed field by field."""

    def compile_text(scope: Scope) -> bytes:
        return compile_trace_cmd_text(scope, TraceCmdOptions(raw=is_raw(scope.event.name), plugins=plugins))

    return EventTexts(recording, TRACE_CMD, compile_text, b"[UNKNOWN EVENT]")
