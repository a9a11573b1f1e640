"""What to ask of the engine: event ids of every file -> slots -> plans -> tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from . import _core
from .arguments import check_names
from .engine import EventPlan, Request, Select, TableParts
from .errors import ColumnNotFoundError, FormatError, UnsupportedError
from .formats import EventFormat
from .plan import (
    TS,
    ColumnPlan,
    EventColumns,
    Names,
    fixed_length,
    header_op,
    plain_column,
    timeline_plan,
)
from .recording import UNKNOWN_EVENT, Pair, Recording

Columns = Sequence[str] | None
Slot = tuple[int, Pair | None]  # (file, event); None: ids without a format
VARYING, CODE = 64, 8  # bytes of a row that a list, and any other column, are taken to need


def check_slots(n: int) -> int:
    if n >= _core.NO_SLOT:
        raise UnsupportedError(f"{n} kinds of events at once: open fewer files together")
    return n


def new_select(file: Recording, fill: int = _core.NO_SLOT) -> Select:
    return Select(np.full(_core.N_IDS, fill, np.uint16), file.common_place("common_pid"))


def set_comms(recording: Recording, selects: Sequence[Select]) -> None:
    for file, select in zip(recording.files, selects, strict=True):
        select.comm_codes = file.comm_codes


# ---- tables of events ----


def events_request(recording: Recording, wanted: Sequence[tuple[Pair, Columns]]) -> Request:
    """One table per event asked for, each with its columns.

    Raises
    ------
    ColumnNotFoundError
        The event has no such column; with several files, the message says in which.
    FormatError
        Files disagree about what a column is.
    """
    request = Request([new_select(f) for f in recording.files], 0, np.empty(0, np.uint16), [], [])
    set_comms(recording, request.selects)
    for pair, columns in wanted:
        for i, number, plan in add_table(request, recording, pair, columns):
            request.selects[i].slot_of[number] = plan
    request.n_slots = check_slots(len(request.plans))
    request.plan_of_slot = np.arange(request.n_slots, dtype=np.uint16)
    return request


@dataclass(slots=True)
class EveryEvent(Request):
    """A table for each event that occurs, made when the first record of it is met."""

    meets: ClassVar[bool] = True
    recording: Recording = field(kw_only=True)
    columns: Columns = field(kw_only=True)
    understood: Callable[[Pair], bool] = field(kw_only=True)
    slots: list[Slot] = field(kw_only=True)

    def meet(self, slot: int) -> None:
        pair = self.slots[slot][1]
        assert pair is not None  # ids without a format wait for nothing
        self.plan_of_slot[slot] = _core.NO_PLAN
        if self.understood(pair):
            for i, number, plan in add_table(self, self.recording, pair, self.columns):
                self.plan_of_slot[self.selects[i].slot_of[number]] = plan


def every_event_request(recording: Recording, columns: Columns, understood: Callable[[Pair], bool]) -> EveryEvent:
    """`understood`: tells whether an event's format can be read; if not, its records are left out."""
    counted, slots = slots_request(recording)
    set_comms(recording, counted.selects)
    plan_of_slot = np.array([_core.NO_PLAN if pair is None else _core.NEW_PLAN for _, pair in slots], np.uint16)
    return EveryEvent(counted.selects, counted.n_slots, plan_of_slot, [], [], recording=recording, columns=columns,
                      understood=understood, slots=slots)


def add_table(request: Request, recording: Recording, pair: Pair, columns: Columns) -> list[tuple[int, int, int]]:
    """Add an event's plans, one for each file that has it, and the table of them all: (file, event id, plan) of each."""
    names = recording.columns(pair) if columns is None else check_names(columns, "columns")
    added = []
    for i, file in enumerate(recording.files):
        if pair in file.format_index:
            known = recording.plans[i].of(file.format(*pair))
            added.append((i, known.format.id, len(request.plans)))
            own = file_plans(recording, i, known, names)
            request.plans.append(EventPlan(known.fixed_length, file.container.big_endian, own, i))
    assert request.tables is not None
    request.tables.append(joint_table([plan for _, _, plan in added], request.plans, names))
    request.met.append(pair)
    return added


def file_plans(recording: Recording, i: int, known: EventColumns, names: Sequence[str]) -> list[ColumnPlan]:
    """An event's columns in one file."""
    try:
        return known.plans(names)
    except ColumnNotFoundError as error:
        if len(recording.files) == 1:
            raise
        raise ColumnNotFoundError(f"{recording.files[i].container.path}: {error}") from None


def joint_table(places: list[int], plans: list[EventPlan], names: list[str]) -> TableParts:
    """Check that the files agree on every column; rows of several files need their times to be put in order."""
    if len(places) == 1:
        return TableParts(places, names)
    parts = [plans[p] for p in places]
    for columns in zip(*(p.columns for p in parts), strict=True):
        if not agree(columns):
            raise FormatError(f"files disagree about the type of column {columns[0].name!r}: open them one by one, or "
                              "leave it out")
    if TS not in names:
        for part in parts:
            part.columns.append(plain_column(TS, header_op(_core.OP_TS), np.int64))
    return TableParts(places, names)


def agree(columns: Sequence[ColumnPlan]) -> bool:
    first, *others = [c.of_nothing() for c in columns]
    return all(first.agrees(other) for other in others)


def shared_columns(recording: Recording, pair: Pair) -> list[str]:
    """Columns that an event has in all files that have it, and of the same kind."""
    known = [plans.of(file.format(*pair)) for file, plans in zip(recording.files, recording.plans, strict=True)
             if pair in file.format_index]
    first, *others = [own.column_names for own in known]
    shared = [n for n in first if all(n in other for other in others)]
    return [n for n in shared if agree([plan for own in known for plan in own.plans([n])])]


def row_bytes(recording: Recording, pair: Pair, columns: Columns) -> int:
    """About how much memory a row takes: columns of varying length count with a guess."""
    sizes = {_core.OP_FIXED: 6, _core.OP_SCALAR: 3}  # places in an op where its size stands
    plans = events_request(recording, [(pair, columns)]).plans
    ops = [op for c in plans[0].columns for op in c.ops]
    return sum(op[sizes[op[0]]] if op[0] in sizes else VARYING if op[0] == _core.OP_LIST else CODE for op in ops) or 1


# ---- all events ----


def slots_request(recording: Recording, pairs: Sequence[Pair] | None = None) -> tuple[Request, list[Slot]]:
    """Count or reference records of all events, or of `pairs`, with no columns; also what each slot stands for.

    The last slot of each file is for ids without a format.
    """
    wanted = None if pairs is None else set(pairs)
    slots: list[Slot] = []
    selects = []
    for i, file in enumerate(recording.files):
        ids, pairs_of_ids = file.event_ids
        if wanted is not None:
            chosen = [k for k, pair in enumerate(pairs_of_ids) if pair in wanted]
            ids, pairs_of_ids = ids[chosen], [pairs_of_ids[k] for k in chosen]
        unknown = check_slots(len(slots) + len(ids))
        select = new_select(file, unknown if wanted is None else _core.NO_SLOT)
        select.slot_of[ids] = np.arange(len(slots), unknown)
        slots += [(i, pair) for pair in pairs_of_ids]
        slots.append((i, None))
        selects.append(select)
    return Request(selects, len(slots), np.full(len(slots), _core.NO_PLAN, np.uint16), []), slots


def times_request(recording: Recording) -> Request:
    """Nothing but the time of every record."""
    request, slots = slots_request(recording)
    request.plan_of_slot = np.zeros(len(slots), np.uint16)
    request.plans = [EventPlan(0, recording.container.big_endian, [plain_column(TS, header_op(_core.OP_TS), np.int64)])]
    return request


def timeline_request(recording: Recording, pairs: Sequence[Pair] | None = None) -> Request:
    """One table for all events (or some): header columns and the event's name."""
    request, slots = slots_request(recording, pairs)
    events = [UNKNOWN_EVENT if pair is None else recording.key_of[pair] for _, pair in slots]
    plans: list[EventPlan] = []
    plan_of_file: dict[int, int] = {}
    for i, file in enumerate(recording.files):
        fmt = file.common_format
        if fmt is None:
            continue
        plan_of_file[i] = len(plans)
        common = EventFormat(fmt.system, fmt.name, fmt.id, fmt.common_fields, "")
        columns = timeline_plan(fmt, Names(file.names.comms, recording.names.buffers, events))
        plans.append(EventPlan(fixed_length(common), file.container.big_endian, columns, i))
    if not plans:
        raise FormatError("the recording has no event formats")
    by_name = [{c.name: c for c in p.columns} for p in plans]
    names = [n for n in by_name[0] if all(n in b for b in by_name) and agree([b[n] for b in by_name])]
    for plan, known in zip(plans, by_name, strict=True):
        plan.columns = [known[n] for n in names]
    request.plan_of_slot = np.array([plan_of_file.get(i, _core.NO_PLAN) for i, _ in slots], np.uint16)
    request.plans = plans
    set_comms(recording, request.selects)
    request.tables = [TableParts(list(range(len(plans))), names)]
    return request
