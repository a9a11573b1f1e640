"""The layout of the kernel's own ``trace`` file, for every tracer whose lines stand alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from .columns import LatencyColumns
from .lineplan import Body, Column, LinePlan, Op, line_printer, literal, with_next
from .options import Options
from .record import LineRecord

MESSAGES = ("print", "bprint", "bputs")
TOO_BIG = b"[LINE TOO BIG]\n"
RAW_STEP = 3  # a byte of raw data takes " %02x"


def line_plan(options: Options, latency: LatencyColumns, start: int = 0) -> LinePlan:
    """The columns of a line under these options (K:trace.c print_trace_line)."""
    columns: list[Column]
    if "context-info" not in options or options.blk_classic:
        columns = []
    elif "hex" in options and "raw" not in options:
        columns = [
            Column(Op.PID_HEX),
            literal(b" "),
            Column(Op.CPU_HEX),
            literal(b" "),
            Column(Op.TIME_HEX),
            literal(b" "),
        ]
    elif "raw" in options:
        columns = [
            Column(Op.PID_PLAIN),
            literal(b" "),
            Column(Op.CPU_RIGHT),
            literal(b" "),
            Column(Op.TIME_RAW),
            literal(b" "),
        ]
    elif options.latency:
        columns = _verbose(options) if "verbose" in options else _latency(options)
    else:
        columns = _normal(options)
    return LinePlan((*columns, Column(Op.BODY)), latency, start)


def _normal(options: Options) -> list[Column]:
    columns = [Column(Op.COMM, 16), literal(b"-"), Column(Op.PID, 7), literal(b" ")]
    if "record-tgid" in options:
        columns += [literal(b"("), Column(Op.TGID), literal(b") ")]
    columns += [literal(b"["), Column(Op.CPU, 3), literal(b"] ")]
    if "irq-info" in options:
        columns.append(Column(Op.LATENCY))
    time = Column(Op.TIME_US, 5) if options.in_ns else Column(Op.TIME_RAW, 12)
    return [*columns, literal(b" "), time, literal(b": ")]


def _latency(options: Options) -> list[Column]:
    columns = [
        Column(Op.COMM_CUT, 8),
        literal(b"-"),
        Column(Op.PID, 7),
        literal(b" "),
        Column(Op.CPU_RIGHT, 3),
        Column(Op.LATENCY),
        literal(b" "),
    ]
    if options.in_ns:
        return [*columns, Column(Op.REL_US, 4), literal(b"us"), Column(Op.NEXT_MARK), literal(b": ")]
    return [*columns, Column(Op.TIME_RAW, 4), literal(b": ")]


def _verbose(options: Options) -> list[Column]:
    columns = [
        Column(Op.COMM, 16),
        literal(b" "),
        Column(Op.PID_RIGHT, 7),
        literal(b" "),
        Column(Op.CPU_RIGHT, 3),
        literal(b" "),
        Column(Op.FLAGS),
        literal(b" "),
        Column(Op.PREEMPT_HEX),
        literal(b" "),
        Column(Op.INDEX_HEX),
    ]
    if options.in_ns:
        return [
            *columns,
            literal(b" ["),
            Column(Op.TIME_US_HEX, 8),
            literal(b"] "),
            Column(Op.REL_MS),
            literal(b"ms (+"),
            Column(Op.NEXT_MS),
            literal(b"ms): "),
        ]
    return [*columns, literal(b" "), Column(Op.TIME_RAW), literal(b" (+"), Column(Op.NEXT_RAW), literal(b"): ")]


def line_limit(long_size: int, release: tuple[int, int]) -> int:
    """How long a record's text can be (K:trace_seq.h TRACE_SEQ_BUFFER_SIZE, less what its bookkeeping takes)."""
    if release < (6, 7):
        return 4095
    return 8192 - (36 if long_size == 8 else 20) - 1


def fit(record: LineRecord, line: bytes, body: bytes, limit: int) -> bytes:
    """What the kernel's buffer of one record holds of a long line: a piece that does not fit is left out, whole."""
    if len(line) <= limit:
        return line
    head = len(line) - len(body)
    if record.format.system == "ftrace" and record.format.name == "raw_data":
        first = head + body.index(b":") + 1
        line = line[: first + (limit - first) // RAW_STEP * RAW_STEP]
    else:
        line = line[: head + body.find(b": ") + 2]
    return line + TOO_BIG if len(line) + len(TOO_BIG) <= limit else line


class Losses:
    """What the kernel says where events were lost while it was read (K:trace.c print_trace_line).

    What was overwritten before a CPU's first record was read is no gap. It has to see each CPU's first record, and those
    that follow a loss.
    """

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def __call__(self, record: LineRecord) -> bytes:
        cpu, lost = record.cpu, record.lost
        if cpu not in self._seen:
            self._seen.add(cpu)
            return b""
        if lost is None:
            return b""
        return b"CPU:%d [LOST EVENTS]\n" % cpu if lost < 0 else b"CPU:%d [LOST %d EVENTS]\n" % (cpu, lost)


class Annotator:
    """Gives the line that tells where a CPU's records begin, once older ones were overwritten (option annotate).

    It has to see each CPU's first record.
    """

    def __init__(self, options: Options, overrun: bool) -> None:
        self._on = overrun and "annotate" in options and not {"raw", "hex", "bin"} & options.enabled
        self._seen: set[int] = set()

    def __call__(self, record: LineRecord) -> bytes:
        if not self._on or record.cpu in self._seen:
            return b""
        self._seen.add(record.cpu)
        return b"##### CPU %d buffer started ####\n" % record.cpu if len(self._seen) > 1 else b""


def is_message(record: LineRecord) -> bool:
    """Whether the record is one of the kinds that printk-msg-only is about."""
    return record.format.system == "ftrace" and record.format.name in MESSAGES


def plain_printer(
    plan: LinePlan, body: Body, options: Options, annotate: Annotator, limit: int
) -> Callable[[LineRecord, int, int], bytes]:
    """A function (record, time of the next one, number of the line) -> text. ``body``: a record's text with line end.

    Under printk-msg-only a message stands alone, without columns; ``body`` has to leave out who wrote it.
    ``limit``: see line_limit.
    """
    line = line_printer(plan, body)
    alone = messages_alone(options)
    losses = Losses()

    def printer(record: LineRecord, following: int, index: int) -> bytes:
        before = losses(record) + annotate(record)
        if alone and is_message(record):
            return before + body(record)
        text = line(record, following, index)
        return before + (text if len(text) <= limit else fit(record, text, body(record), limit))

    return printer


def plain_lines(records: Iterable[LineRecord], printer: Callable[[LineRecord, int, int], bytes]) -> Iterator[bytes]:
    """Every record's text, in the order given."""
    for index, (record, following) in enumerate(with_next(records)):
        yield printer(record, following, index)


def messages_alone(options: Options) -> bool:
    """Whether printk-msg-only is in effect."""
    return "printk-msg-only" in options and not {"raw", "hex", "bin"} & options.enabled
