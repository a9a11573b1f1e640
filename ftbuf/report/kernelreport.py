"""The kernel's own ``trace`` file: which layout, which records, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..sections import LATENCY_TRACERS, Section, longest_section, max_latency_us
from . import blk, graph, graphlines, kernel
from .banner import Facts, banner
from .bodies import EventTexts, kernel_texts, say_unprinted
from .columns import kernel_columns, kernel_release
from .lineplan import Body, LinePlan, line_printer, literal
from .lines import Names, lines
from .options import Options, make_options
from .record import LineRecord
from .symbols import Spelling
from .writer import can_write, written

if TYPE_CHECKING:
    from ..recording import Recording
    from ..trace import Trace


BUFFERS = ("", "main", "snapshot")


@dataclass(frozen=True, slots=True)
class KernelRequest:
    """What a report in the kernel's style shows."""

    buffer: str = ""  # "main", "snapshot"; "": as the tracer does
    options: tuple[str, ...] = ()  # -O


def kernel_report(trace: Trace, request: KernelRequest) -> Iterator[bytes]:
    """What the kernel's ``trace`` file would show.

    Raises
    ------
    ValueError
        There is no such option, or no such buffer.
    """
    recording = trace.recording
    if request.buffer not in BUFFERS:
        raise ValueError(f"no buffer named {request.buffer!r}: it is one of {', '.join(BUFFERS[1:])}")
    if recording.container.text is not None:
        return iter([recording.container.text])
    options = options_of(recording, request)
    wants_snapshot = request.buffer == "snapshot" or (not request.buffer and options.tracer in LATENCY_TRACERS)
    snapshot = trace.snapshot if wants_snapshot else None
    if request.buffer == "snapshot" and snapshot is None:
        raise ValueError("no buffer named 'snapshot': the recording has no snapshot")
    if snapshot is not None:
        trace = snapshot
    elif len(recording.buffers) > 1:  # an instance has a trace file of its own
        trace = trace.window(buffer=recording.buffers[0].name)
    return _all_lines(Kernel(trace, options, is_snapshot=snapshot is not None), trace.errors)


def _all_lines(kernel: Kernel, errors: str) -> Iterator[bytes]:
    yield from kernel.lines()
    say_unprinted([kernel.texts], errors)


def options_of(recording: Recording, request: KernelRequest) -> Options:
    """The trace options of a recording's own, as the request changes them."""
    clock = recording.buffers[0].clock if recording.buffers else "local"
    file = recording.container.tracing_file
    return make_options(file("trace_options"), file("current_tracer"), clock, request.options)


class Kernel:
    """The text of one recording's trace file."""

    def __init__(self, trace: Trace, options: Options, *, is_snapshot: bool = False) -> None:
        self._trace, self._options, self._is_snapshot = trace, options, is_snapshot
        recording = self._recording = trace.recording
        self._uname = recording.container.uname
        self._release = kernel_release(self._uname)
        self._columns = kernel_columns(self._release)
        self.names = Names(recording.comms, recording.tgids, kernel=True)
        self._alone = kernel.messages_alone(options)
        self.texts = kernel_texts(recording, options, self._release, messages_alone=self._alone)
        self._body: Body = self.texts
        if options.tracer == "blk" and (options.blk_classic or not {"raw", "hex"} & options.enabled):
            big_endian = recording.container.big_endian
            comm = self.names.comm
            self._body = blk.printer(comm, classic=options.blk_classic, big_endian=big_endian, other=self.texts)

    @cached_property
    def _spell(self) -> Spelling:
        recording, options = self._recording, self._options
        return Spelling(recording.symbols, recording.abi.long_size, "sym-offset" in options, "sym-addr" in options)

    def lines(self) -> Iterator[bytes]:
        options = self._options
        records: Iterable[LineRecord] = lines(self._trace, self.names)
        facts = self._facts()
        start = 0
        is_section = options.tracer in LATENCY_TRACERS
        if is_section:
            listed = list(lines(self._trace, self.names))
            section = longest_section(options.tracer, listed, self._max_latency, self._recording.symbols)
            records, start = listed[section.begin :], section.start
            facts = self._section_facts(facts, section, len(listed) - section.begin)
        elif options.latency:
            records, start = _with_start(records)
        flags = graph.graph_flags(options) if options.draws_graph else None
        yield from banner(options, facts, flags)
        plan = self._plan(start)
        if flags is not None:
            yield from self._drawn(flags, plan, start, None if is_section else self._trace, records)
            return
        printer, limit = self._printer(plan, facts), self._limit
        if is_section or self._body is not self.texts or not can_write(self._trace):
            yield from kernel.plain_lines(records, printer)
            return
        yield from written(self._trace, self.names, plan, self._program_of, self.texts.renderer, printer, limit)

    def heading(self) -> Iterator[bytes]:
        """The lines above those of the records."""
        return banner(self._options, self._facts())

    def printer(self, label: bytes) -> Callable[[LineRecord, int, int], bytes]:
        """Prints records one by one, each line behind a label; for options that draw no graph."""
        plan = self._plan(self._trace.start or 0 if self._options.latency else 0)
        return self._printer(replace(plan, columns=(literal(label), *plan.columns)), self._facts())

    def _facts(self) -> Facts:
        entries, overrun = self._counts
        return Facts(self._uname, self._cpus, entries, entries + overrun, max(self._cpus - 1, 0))

    def _plan(self, start: int) -> LinePlan:
        return kernel.line_plan(self._options, self._columns, start)

    @property
    def _limit(self) -> int:
        return kernel.line_limit(self._recording.abi.long_size, self._release)

    def _printer(self, plan: LinePlan, facts: Facts) -> Callable[[LineRecord, int, int], bytes]:
        annotate = kernel.Annotator(self._options, facts.written > facts.entries)
        return kernel.plain_printer(plan, self._body, self._options, annotate, self._limit)

    def _program_of(self, pair: tuple[str, str]) -> Any:
        """What prints an event's body; None where its lines have no columns."""
        is_alone = self._alone and pair[0] == "ftrace" and pair[1] in kernel.MESSAGES
        return None if is_alone else self.texts.program(self._recording.format_or_common(pair))

    def _drawn(self, flags: graph.GraphFlags, plan: LinePlan, start: int, trace: Trace | None,
               records: Iterable[LineRecord]) -> Iterator[bytes]:
        """The graph of all records of a trace, or of some records."""
        options = replace(self._options, enabled=self._options.enabled - {"raw", "hex"})
        texts = kernel_texts(self._recording, options, self._release, messages_alone=True, like=self.texts)
        drawn = self._graph(flags, plan, start, texts)
        if trace is None or not graphlines.can_draw(flags) or not can_write(trace):
            return drawn.draw(records)
        return graphlines.written(trace, self.names, flags, self._columns, drawn, texts,
                                  graph.irq_entry_range(self._recording.symbols.by_name), len(str(max(self._cpus - 1, 0))))

    def _graph(self, flags: graph.GraphFlags, plan: LinePlan, start: int, texts: EventTexts) -> graph.Graph:
        plain = line_printer(plan, self._body)
        return graph.Graph(
            flags,
            self._columns,
            self._spell,
            self.names.comm,
            texts,
            lambda r: plain(r, r.ts, 0),
            big_endian=self._recording.container.big_endian,
            cpus=self._cpus,
            start=start,
            irq_entry=graph.irq_entry_range(self._recording.symbols.by_name),
        )

    @property
    def _cpus(self) -> int:
        """How many CPUs the kernel had: those that have files, at least."""
        cpus = {s.cpu for b in self._recording.buffers for s in b.streams}
        cpus |= {cpu for b in self._recording.container.buffers for cpu in b.stats}
        return max(cpus, default=0) + 1

    @cached_property
    def _counts(self) -> tuple[int, int]:
        """(records in the buffer, records overwritten)."""
        entries = sum(self._trace.events.values()) + self._trace.unknown_events
        if self._is_snapshot:
            return entries, 0
        overrun = 0
        for buffer in self._recording.buffers:
            for text in buffer.stats.values():
                overrun += sum(
                    int(line.split()[1])
                    for line in text.splitlines()
                    if line.startswith(b"overrun:") and line.split()[1:2] and line.split()[1].isdigit()
                )
        return entries, overrun

    def _caller(self, address: int) -> str:
        return self._spell.name(address).decode("utf-8", "surrogateescape") if address else ""

    @property
    def _max_latency(self) -> int:
        return max_latency_us(self._recording.container.tracing_file("tracing_max_latency"))

    def _section_facts(self, facts: Facts, section: Section, count: int) -> Facts:
        task = self.names.comm(section.task).decode("utf-8", "surrogateescape")
        return replace(
            facts,
            entries=count,
            written=count,
            cpu=section.cpu,
            max_latency=self._max_latency,
            task=task,
            pid=section.task,
            policy=section.policy,
            rt_prio=section.rt_prio,
            started_at=self._caller(section.started_at),
            ended_at=self._caller(section.ended_at),
        )


def _with_start(records: Iterable[LineRecord]) -> tuple[Iterable[LineRecord], int]:
    """The records, and the time of the first: when the buffer was last emptied is not in a recording."""
    iterator = iter(records)
    first = next(iterator, None)
    if first is None:
        return (), 0

    def again() -> Iterator[LineRecord]:
        yield first
        yield from iterator

    return again(), first.ts
