"""What the events of a recording tell about tasks: names and thread groups, for pids that the kernel did not save.

One pass over the recording, which decodes nothing but the pids and what is said of them; of several things said of one
pid, the last holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, engine
from .engine import EventPlan, Request, Select, Window
from .formats import EventFormat, Field, Kind, Where
from .plan import PID_LIMIT, TS, field_column, fixed_length, header_op, plain_column

if TYPE_CHECKING:
    from .recording import Recording

STEP_ROWS = 1 << 20
COMM_LEN = 15  # K:include/linux/sched.h TASK_COMM_LEN, without the NUL
CLONE_THREAD = 0x10000  # include/uapi/linux/sched.h
COMMON_PID = "common_pid"

# Events that people made: what they call comm and pid is believed only where the kernel's own events are silent.
USER_MADE = frozenset({"synthetic", "kprobes", "uprobes", "eprobes", "fprobes", "user_events"})
# Events whose comm is the name of the running task, whatever other pid they have (K:include/trace/events/block.h,
# coredump.h; sched.h sched_process_wait: the one who waits).
OF_CURRENT = frozenset({("sched", "sched_process_wait"), ("coredump", "coredump")})
OF_CURRENT_SYSTEMS = frozenset({"block"})

_COMM_DECLARED = re.compile(rb"\bchar[^;]*comm(?:\[\d*\])?;")
_TGID_DECLARED = re.compile(rb"tgid;")
_COMM = re.compile(r"((?:\w+_)?)(?:old|new)?comm")
_TGID = re.compile(r"((?:\w+_)?)tgid")

Values = Any  # Plain or Encoded columns
Pid = int


@dataclass(frozen=True, slots=True)
class Lesson:
    """One thing that an event tells: a field that says something of the task that a pid field names."""

    pid: Field
    about: Field
    read: Callable[[Values, int], Any]  # (the column of `about`, row) -> what it says


@dataclass(slots=True)
class Facts:
    """What is known so far: pid -> (order of trust and time, the fact, the event that told it)."""

    told: dict[Pid, tuple[tuple[bool, int], Any, str]] = field(default_factory=dict)

    def tell(self, pid: Pid, when: tuple[bool, int], fact: Any, event: str) -> None:
        known = self.told.get(pid)
        if known is None or when >= known[0]:
            self.told[pid] = (when, fact, event)

    def result(self) -> dict[Pid, tuple[Any, str]]:
        return {pid: (fact, event) for pid, (_, fact, event) in self.told.items()}


def learn_comms(recording: Recording) -> dict[Pid, tuple[bytes, str]]:
    """Names of tasks: pid -> (name, the event that told it)."""
    formats = [f for f in _formats(recording, _COMM_DECLARED) if comm_lessons(f)]
    formats += [f for f in _named(recording, ("sched", "sched_process_exec")) if exec_lessons(f)]
    return _learn(recording, formats, lambda f: comm_lessons(f) or exec_lessons(f))


def learn_tgids(recording: Recording) -> dict[Pid, tuple[int, str]]:
    """Thread groups: pid -> (tgid, the event that told it)."""
    formats = [f for f in _formats(recording, _TGID_DECLARED) if tgid_lessons(f)]
    facts = _learn(recording, formats, tgid_lessons)
    return _new_tasks(recording, facts)


# ---- what each event can tell ----


def comm_lessons(fmt: EventFormat) -> list[Lesson]:
    """The fields of an event that are names of tasks, each with the pid that it belongs to."""
    fields = {f.name: f for f in fmt.fields if _is_number(f)}
    current = (fmt.system, fmt.name) in OF_CURRENT or fmt.system in OF_CURRENT_SYSTEMS
    found = []
    for f in fmt.own_fields:
        match = _COMM.fullmatch(f.name)
        if match is None or f.kind is not Kind.STRING:
            continue
        pid = fields.get(COMMON_PID if current else f"{match[1]}pid")
        if pid is None and (fmt.system, fmt.name) == ("task", "task_rename"):
            pid = fields.get(COMMON_PID)  # a task renames itself: newer kernels do not say it twice
        if pid is not None:
            found.append(Lesson(pid, f, _name))
    return found


def exec_lessons(fmt: EventFormat) -> list[Lesson]:
    """sched_process_exec: the task is called as the last part of the file's path (K:fs/exec.c begin_new_exec)."""
    fields = {f.name: f for f in fmt.own_fields}
    pid, filename = fields.get("pid"), fields.get("filename")
    if pid is None or filename is None or not _is_number(pid) or filename.kind is not Kind.STRING:
        return []
    return [Lesson(pid, filename, lambda column, row: _name(column, row).rpartition(b"/")[2][:COMM_LEN])]


def tgid_lessons(fmt: EventFormat) -> list[Lesson]:
    """The fields that are thread groups: user_stack's is that of the running task, others stand beside a pid."""
    if fmt.system not in ("sched", "ftrace"):  # the arguments of system calls are only what a program claims
        return []
    fields = {f.name: f for f in fmt.fields if _is_number(f)}
    found = []
    for f in fmt.own_fields:
        match = _TGID.fullmatch(f.name)
        pid = fields.get(COMMON_PID if fmt.name == "user_stack" else f"{match[1]}pid") if match else None
        if pid is not None and f.name in fields:
            found.append(Lesson(pid, f, _number))
    return found


def _is_number(f: Field) -> bool:
    return f.kind is Kind.SCALAR and f.where is Where.INLINE


def _name(column: Values, row: int) -> bytes:
    name: str = column.strings[column.codes[row]]
    return name.encode("utf-8", "surrogateescape")


def _number(column: Values, row: int) -> int:
    return int(column.values[row])


# ---- the pass ----


def _formats(recording: Recording, declared: re.Pattern[bytes]) -> list[EventFormat]:
    return _named(recording, *(pair for pair in recording.format_index if recording.mentions(pair, declared)))


def _named(recording: Recording, *pairs: tuple[str, str]) -> list[EventFormat]:
    found = (recording.readable(pair) for pair in pairs if pair in recording.format_index)
    return [fmt for fmt in found if fmt is not None]


def _learn(recording: Recording, formats: list[EventFormat], lessons_of: Callable[[EventFormat], list[Lesson]]
           ) -> dict[Pid, tuple[Any, str]]:
    formats = list({f.id: f for f in formats}.values())
    lessons = {f.id: lessons_of(f) for f in formats}
    facts = Facts()
    columns = [(f, [x for lesson in lessons[f.id] for x in (lesson.pid, lesson.about)]) for f in formats]
    for step in _steps(recording, columns):
        for fmt, table in zip(formats, step, strict=True):
            for lesson in lessons[fmt.id]:
                _attend(facts, fmt, table, lesson)
    return facts.result()


def _attend(facts: Facts, fmt: EventFormat, table: dict[str, Values], lesson: Lesson) -> None:
    """Note the last thing that a table says of each pid."""
    times, about = table[TS].values, table[lesson.about.name]
    kernel = fmt.system not in USER_MADE
    for pid, row in _last_rows(table[lesson.pid.name].values):
        facts.tell(pid, (kernel, int(times[row])), lesson.read(about, row), fmt.name)


def _last_rows(pids: np.ndarray) -> Iterator[tuple[Pid, int]]:
    """(pid, its last row) of each pid that there can be."""
    rows = np.flatnonzero((pids > 0) & (pids <= PID_LIMIT))
    if not len(rows):
        return
    valid = pids[rows].astype(np.int64)
    last = np.full(int(valid.max()) + 1, -1)
    last[valid] = rows  # of several values for one place, NumPy keeps the last
    seen = np.flatnonzero(last >= 0)
    yield from zip(seen.tolist(), last[seen].tolist(), strict=True)


def _steps(recording: Recording, wanted: Iterable[tuple[EventFormat, list[Field]]]
           ) -> Iterator[list[dict[str, Values]]]:
    """Tables of some fields of some events, in bounded memory; damage is not this pass's to report."""
    chosen = [(fmt, {f.name: f for f in fields}) for fmt, fields in wanted]
    if not chosen:
        return

    def make() -> Request:
        slot_of = np.full(_core.N_IDS, _core.NO_SLOT, np.uint16)
        plans: list[EventPlan] = []
        for slot, (fmt, fields) in enumerate(chosen):
            slot_of[fmt.id] = slot
            time = plain_column(TS, header_op(_core.OP_TS), np.int64)
            columns = [time, *(field_column(f, name) for name, f in fields.items())]
            plans.append(EventPlan(fixed_length(fmt), recording.container.big_endian, columns))
        return Request([Select(slot_of)], len(chosen), np.arange(len(chosen), dtype=np.uint16), plans)

    yield from engine.iterate(recording.sources(), Window(), make, "skip", STEP_ROWS)


def _new_tasks(recording: Recording, facts: dict[Pid, tuple[int, str]]) -> dict[Pid, tuple[int, str]]:
    """task_newtask: a new thread is in the group of the task that made it, any other new task leads its own.

    sched_process_fork tells the two apart no more than its pids do, so it tells nothing here; after
    sched_process_exec the task leads its group.
    """
    saved = recording.tgids
    told: list[tuple[int, Pid, Pid | None, str]] = []  # time, pid, the maker whose group it joins, event
    wanted: list[tuple[EventFormat, list[Field]]] = []
    for fmt in _named(recording, ("task", "task_newtask"), ("sched", "sched_process_exec")):
        fields = {f.name: f for f in fmt.fields if _is_number(f)}
        names = ("pid", COMMON_PID, "clone_flags") if fmt.name == "task_newtask" else ("pid",)
        if all(n in fields for n in names):
            wanted.append((fmt, [fields[n] for n in names]))
    for step in _steps(recording, wanted):
        for (fmt, _), table in zip(wanted, step, strict=True):
            times, pids = table[TS].values.tolist(), table["pid"].values.tolist()
            makers: list[Pid | None] = [None] * len(pids)
            if fmt.name == "task_newtask":
                threads = (table["clone_flags"].values & CLONE_THREAD).tolist()
                makers = [m if t else None for m, t in zip(table[COMMON_PID].values.tolist(), threads, strict=True)]
            told += [(t, p, m, fmt.name) for t, p, m in zip(times, pids, makers, strict=True) if 0 < p <= PID_LIMIT]
    out = dict(facts)
    for _, pid, maker, event in sorted(told, key=lambda t: t[0]):
        if maker is None:
            out[pid] = (pid, event)
        elif maker in saved or maker in out:
            out[pid] = (saved[maker] if maker in saved else out[maker][0], event)
    return out
