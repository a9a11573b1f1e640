"""EventFormat and column names -> ops for the C core, and what its columns become."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import _core
from .errors import ColumnNotFoundError
from .formats import EventFormat, Field, Kind, Where
from .table import ColumnData, Encoded, Lists, Plain, near_names

# Order as in csrc/ftbuf.h ftb_where.
WHERE = {Where.INLINE: 0, Where.DATA_LOC: 1, Where.REL_LOC: 2, Where.SHORT_LOC: 3, Where.TAIL: 4}
# Bytes of the fixed part of a record that a field's place takes.
LOCATION_SIZE = {Where.DATA_LOC: 4, Where.REL_LOC: 4, Where.SHORT_LOC: 2, Where.TAIL: 0}

# The header columns that every table begins with, in order; common_buffer only where there are several buffers.
TS, CPU, PID, COMM, FLAGS, PREEMPT, BUFFER = (
    "common_ts", "common_cpu", "common_pid", "common_comm", "common_flags", "common_preempt_count", "common_buffer")
EVENT = "event"  # of a timeline: the event's name
# For analyses, and no column of any table else: the place of a record among those of all events that one pass decodes, which
# tells the order of events of the same time. Passes in several threads each count anew.
ORDER = "common_order"
NOT_COLUMNS = frozenset({"common_type"})  # an event's own id says nothing in its own table

UNKNOWN_COMM, IDLE_COMM = "<...>", "<idle>"
NO_CODE = -1  # of a pid that the table has no name of
PID_LIMIT = 4 << 20  # K:include/linux/threads.h PID_MAX_LIMIT
COMM_LEN = 16  # K:include/linux/sched.h TASK_COMM_LEN

Op = tuple[int, int, int, int, int, int, int, Any]


class ColumnPlan(NamedTuple):
    """One column: the op that fills it, and how its memory becomes a column."""

    name: str
    op: Op
    finish: Callable[..., ColumnData]  # takes the two pieces of memory of each op
    more: tuple[Op, ...] = ()  # a derived column is made of what several ops give

    @property
    def ops(self) -> tuple[Op, ...]:
        return (self.op, *self.more)

    def of_nothing(self) -> ColumnData:
        """The column without rows: what it is like."""
        return self.finish(*[b""] * (2 * len(self.ops)))


class CommCodes:
    """Names of tasks as codes: those of the table that the C core looks up, and any others when they are met.

    Parameters
    ----------
    saved : mapping of pid to name
        What the table holds.
    name_of : function
        Pid -> name, for the other pids: called only for those that occur.
    """

    def __init__(self, saved: Mapping[int, str], name_of: Callable[[int], str]) -> None:
        named = {pid: comm for pid, comm in saved.items() if 0 < pid <= PID_LIMIT}
        codes = {UNKNOWN_COMM: 0, IDLE_COMM: 1}
        self.code_of_pid = np.full(max(named, default=0) + 1, NO_CODE, np.int32)
        self.code_of_pid[0] = codes[IDLE_COMM]
        for pid, comm in named.items():
            self.code_of_pid[pid] = codes.setdefault(comm, len(codes))
        self.strings = list(codes)
        self.name_of = name_of

    def encoded(self, column: np.ndarray, unnamed: bool) -> Encoded:
        """A column of codes, with those pids named that the table does not hold: `unnamed` tells whether there are any."""
        if not unnamed:
            return Encoded(column, self.strings)
        missing = column < 0
        pids, places = np.unique(column[missing] & 0x7FFFFFFF, return_inverse=True)  # the pid without its mark
        codes = {name: code for code, name in enumerate(self.strings)}
        found = np.array([codes.setdefault(self.name_of(pid), len(codes)) for pid in pids.tolist()], np.int32)
        column = column.copy()
        column[missing] = found[places]
        return Encoded(column, list(codes))


@dataclass(frozen=True, slots=True)
class Names:
    """The dictionaries that do not come from the records themselves."""

    comms: CommCodes
    buffers: list[str]
    events: list[str]
    derived: Callable[[EventFormat, str], ColumnPlan | None] = lambda fmt, name: None  # columns that no format has


def fixed_size(field: Field) -> int:
    """Bytes at the field's offset that every record of the event has."""
    return field.size if field.where is Where.INLINE else LOCATION_SIZE[field.where]


def fixed_length(fmt: EventFormat) -> int:
    """Length of the fixed part of a record: a shorter one is damaged."""
    return max((f.offset + fixed_size(f) for f in fmt.fields if fixed_size(f) > 0), default=0)


def field_op(field: Field, dictionary: Any = None) -> Op:
    """The op that reads a field, wherever its bytes are."""
    where, sign = WHERE[field.where], int(field.signed)
    width = field.element_size
    size = field.size if field.count is None else field.count[0] << 4 | field.count[1]  # as in csrc/ftbuf.h ftb_count_at
    if field.kind is Kind.SCALAR:
        out = 8 if field.is_pointer else field.size  # kernel addresses are uint64, also those of 32-bit kernels
        sign = 0 if field.is_pointer else sign
        return (_core.OP_SCALAR, where, field.size, out, sign, field.offset, field.size, None)
    if field.kind is Kind.STRING:
        return (_core.OP_STRING, where, 1, 1, 0, field.offset, size, dictionary)
    # a field of size 0 with others behind it has no bytes: an empty list in every row
    code = _core.OP_FIXED if field.where is Where.INLINE and field.size else _core.OP_LIST
    return (code, where, width, width, sign if field.kind is Kind.ARRAY else 0, field.offset, size, None)


# By sign and width of an element, as an op has them.
DTYPES = {(sign, width): np.dtype(f"{'ui'[sign]}{width}") for sign in (0, 1) for width in (1, 2, 4, 8)}


def dtype_of(op: Op) -> np.dtype[Any]:
    return DTYPES[op[4], op[3]]


def field_column(field: Field, name: str, comms: Any = None) -> ColumnPlan:
    """`comms`: the dictionary of fields that look like names of tasks; None: each has its own."""
    if field.kind is Kind.STRING:
        return string_column(field, name, comms if comms is not None and is_comm(field) else _core.Dictionary())
    op = field_op(field)
    dtype = dtype_of(op)
    if op[0] == _core.OP_LIST:
        return ColumnPlan(name, op, lambda ends, values: Lists(array(ends, np.uint64), array(values, dtype)))
    if op[0] == _core.OP_FIXED:
        per_row = field.size // dtype.itemsize
        return ColumnPlan(name, op, lambda column, _: Plain(array(column, dtype).reshape(-1, per_row)))
    return plain_column(name, op, dtype)


def is_comm(field: Field) -> bool:
    return field.kind is Kind.STRING and field.where is Where.INLINE and field.size == COMM_LEN


def string_column(field: Field, name: str, dictionary: Any) -> ColumnPlan:
    def finish(codes: Any, _: Any) -> ColumnData:
        strings = [s.decode("utf-8", "surrogateescape") for s in dictionary.strings()]
        return Encoded(array(codes, np.int32), strings)

    return ColumnPlan(name, field_op(field, dictionary), finish)


def plain_column(name: str, op: Op, dtype: Any) -> ColumnPlan:
    return ColumnPlan(name, op, lambda column, _: Plain(array(column, dtype)))


def coded_column(name: str, op: Op, dtype: Any, strings: list[str]) -> ColumnPlan:
    code_of = {s: i for i, s in enumerate(dict.fromkeys(strings))}
    if len(code_of) == len(strings):
        return ColumnPlan(name, op, lambda column, _: Encoded(array(column, dtype), strings))
    codes = np.array([code_of[s] for s in strings], dtype)  # several files have an event of the same name
    return ColumnPlan(name, op, lambda column, _: Encoded(codes[array(column, dtype)], list(code_of)))


def array(column: Any, dtype: Any) -> np.ndarray:
    """A column's memory as an array: no copy."""
    return np.frombuffer(column, dtype) if len(column) else np.empty(0, dtype)


def header_op(code: int) -> Op:
    return (code, 0, 0, 0, 0, 0, 0, None)


def header_column(name: str, fmt: EventFormat, names: Names) -> ColumnPlan | None:
    """A header column that is no field of the format; None where the event cannot have it."""
    if name == TS:
        return plain_column(name, header_op(_core.OP_TS), np.int64)
    if name == ORDER:
        return plain_column(name, header_op(_core.OP_ORDER), np.int64)
    if name == CPU:
        return plain_column(name, header_op(_core.OP_CPU), np.uint16)
    if name == BUFFER:
        return coded_column(name, header_op(_core.OP_BUFFER), np.uint16, names.buffers)
    if name == EVENT:
        return coded_column(name, header_op(_core.OP_SLOT), np.uint16, names.events)
    pid = next((f for f in fmt.common_fields if f.name == PID), None)
    if name != COMM or pid is None:
        return None
    op = (_core.OP_COMM, 0, pid.size, 4, 0, pid.offset, pid.size, None)
    return ColumnPlan(name, op, lambda column, unnamed: names.comms.encoded(array(column, np.int32), len(unnamed) > 0))


def header_names(fmt: EventFormat, names: Names) -> list[str]:
    """Header columns of an event in their order: the usual ones first, then what this kernel has besides."""
    common = [f.name for f in fmt.common_fields if f.name not in NOT_COLUMNS]
    first = [TS, CPU, *(n for n in (PID, COMM, FLAGS, PREEMPT) if n in common or (n == COMM and PID in common))]
    buffer = [BUFFER] if len(names.buffers) > 1 else []
    return [*first, *buffer, *(n for n in common if n not in first)]


def column_names(fmt: EventFormat, names: Names) -> list[str]:
    return [*header_names(fmt, names), *(f.name for f in fmt.own_fields)]


def fields_by_name(fmt: EventFormat) -> dict[str, Field]:
    return {f.name: f for f in fmt.fields}


def column_plan(fmt: EventFormat, name: str, names: Names, fields: Mapping[str, Field] | None = None,
                comms: Any = None) -> ColumnPlan:
    """`fields`: those of the format by name, for who asks for many columns; `comms` as in field_column."""
    field = (fields_by_name(fmt) if fields is None else fields).get(name)
    plan = field_column(field, name, comms) if field is not None else header_column(name, fmt, names)
    plan = names.derived(fmt, name) if plan is None else plan
    if plan is None:
        raise ColumnNotFoundError(near_names(f"column of {fmt.name}", name, column_names(fmt, names)))
    return plan


class Plans:
    """What is to be known of the columns of one file's events, found out once."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.known: dict[tuple[str, str], EventColumns] = {}

    def of(self, fmt: EventFormat) -> EventColumns:
        """The columns of an event."""
        pair = (fmt.system, fmt.name)
        if pair not in self.known:
            self.known[pair] = EventColumns(fmt, self.names)
        return self.known[pair]


class EventColumns:
    """The columns of one event: their names, and how they are decoded."""

    def __init__(self, fmt: EventFormat, names: Names) -> None:
        self.format = fmt
        self.names = names
        self.column_names = column_names(fmt, names)
        self.fixed_length = fixed_length(fmt)
        self._fields = fields_by_name(fmt)
        self._has_comms = any(map(is_comm, fmt.fields))
        self._kept: dict[str, ColumnPlan] = {}

    def plans(self, columns: Sequence[str]) -> list[ColumnPlan]:
        """Plans of the columns asked for, in the order asked for. Names of tasks share one dictionary: their codes can be compared.

        Raises
        ------
        ColumnNotFoundError
            The event has no such field; the message lists near names.
        """
        comms = _core.Dictionary() if self._has_comms else None
        return [self._kept.get(name) or self._make(name, comms) for name in columns]

    def _make(self, name: str, comms: Any) -> ColumnPlan:
        plan = column_plan(self.format, name, self.names, self._fields, comms)
        if all(op[-1] is None for op in plan.ops):  # a dictionary belongs to one decode
            self._kept[name] = plan
        return plan


def timeline_plan(fmt: EventFormat, names: Names) -> list[ColumnPlan]:
    """The header columns and the event's name; `fmt` stands for all events, which share their common fields."""
    header = header_names(fmt, names)
    return [column_plan(fmt, n, names) for n in [*header[:2], EVENT, *header[2:]]]


def reader(field: Field, big_endian: bool) -> Any:
    """What reads a field of one record (Event["field"])."""
    op = field_op(field)
    if op[0] == _core.OP_FIXED:  # one reader serves arrays inside the record and elsewhere
        op = (_core.OP_LIST, *op[1:])
    as_bytes = op[0] == _core.OP_LIST and (field.kind is Kind.OPAQUE or (field.element_size == 1 and not field.signed))
    need = field.offset + fixed_size(field) if fixed_size(field) else 0  # a tail that is not there is empty
    if field.count is not None:
        need = sum(field.count)
    return _core.FieldReader(op, need, big_endian, as_bytes)
