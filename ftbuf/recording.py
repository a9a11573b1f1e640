"""What all views of one trace share: the container, and everything parsed from it, each when first asked for."""

from __future__ import annotations

import copy
import re
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from .blktrace import BLKTRACE, USER_STACK, blktrace_format, blktrace_id
from .clock import Correction
from .container.model import Buffer, Container
from .container.parts import Parts
from .derived import Derived, Sources, derived_columns
from .engine import AbiSpec, Source
from .errors import ColumnNotFoundError, EventNotFoundError, FormatError, FtbufError
from .formats import Abi, EventFormat, parse_format, parse_header_page
from .learn import learn_comms, learn_tgids
from .names import Comms, Symbols, Tgids, parse_cmdlines, parse_printk_formats, parse_tgids
from .plan import ColumnPlan, CommCodes, Names, Plans, reader
from .table import near_names
from .texts import writer

if TYPE_CHECKING:
    from .exports import Origin

NO_TYPE = (0, 2)  # where common_type is when no format says otherwise
UNKNOWN_EVENT = "[unknown event]"
NO_KEY = -1  # of an event whose format is ours

Pair = tuple[str, str]  # (system, event)


def option_values(container: Container, name: str) -> list[Any]:
    """The values of all options of that name, in file order; what could not be understood is left out."""
    return [o.value for o in container.options if o.name == name and o.value is not None]


def trace_id(container: Container) -> int | None:
    found = option_values(container, "TRACEID")
    return int(found[-1]) if found else None


class Recording:
    """Shared by a Trace and its windows; closed by whoever opened it.

    Parameters
    ----------
    container : Container
    buffers : sequence of Buffer, optional
        Instead of the container's own.
    correction : Correction, optional
        Instead of the one that the container's options ask for.
    """

    def __init__(self, container: Container, buffers: Sequence[Buffer] | None = None,
                 correction: Correction | None = None) -> None:
        self.container = container
        self.parts = Parts(container)  # shared by variants
        self.buffers = list(container.buffers if buffers is None else buffers)
        self.correction = own_correction(container) if correction is None else correction
        self._closed = threading.Event()  # shared by variants
        self._abis: dict[tuple[bytes, int], Abi] = {}
        self._formats: dict[tuple[str, str], EventFormat] = {}
        self._substitutes: dict[Pair | None, EventFormat] = {}
        self._readers: dict[tuple[str, str], dict[str, Any]] = {}
        self._lock = threading.RLock()
        self.origin: Origin | None = None  # how it was opened, where another process can do so
        self.contexts: weakref.WeakSet[EventContext] = weakref.WeakSet()  # of events that were handed out

    # ---- layout ----

    def joined(self, buffer: str) -> list[str]:
        """The buffers that hold one recording's records together with this one: see Merged."""
        return [buffer]

    @cached_property
    def abi(self) -> Abi:
        """The ABI of the first buffer; other buffers differ in their sub-buffer size at the most."""
        return self.buffer_abi(self.buffers[0]) if self.buffers else self._parse_abi(self.container.header_page, 4096)

    def buffer_abi(self, buffer: Buffer) -> Abi:
        return self._parse_abi(buffer.header_page, buffer.subbuf_size)

    def _parse_abi(self, header_page: bytes, subbuf_size: int) -> Abi:
        if (header_page, subbuf_size) not in self._abis:
            container = self.container
            self._abis[header_page, subbuf_size] = parse_header_page(
                header_page, big_endian=container.big_endian, header_event=container.header_event,
                fallback_subbuf_size=subbuf_size, fallback_long_size=container.long_size)
        return self._abis[header_page, subbuf_size]

    @cached_property
    def common_format(self) -> EventFormat | None:
        """Any event's format that can be read: where the common fields are, which all events share."""
        for key in self.format_index:
            with suppress(FormatError):
                return self.format(*key)
        return None

    def common_place(self, name: str) -> tuple[int, int] | None:
        """(offset, size) of a common field."""
        fields = self.common_format.common_fields if self.common_format is not None else ()
        return next(((f.offset, f.size) for f in fields if f.name == name), None)

    def abi_spec(self, buffer: Buffer) -> AbiSpec:
        abi = self.buffer_abi(buffer)
        type_offset, type_size = self.common_place("common_type") or NO_TYPE
        return (abi.subbuf_size, abi.data_offset, abi.long_size, type_offset, type_size, int(abi.big_endian),
                int(abi.old_header))

    @property
    def files(self) -> Sequence[Recording]:
        """The recordings of single files that this one is made of."""
        return (self,)

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    def variant(self, buffers: Sequence[Buffer] | None = None, correction: Correction | None = None) -> Recording:
        """The same recording with other buffers, or on another clock; everything parsed so far is shared."""
        other = copy.copy(self)
        for name in ("abi", "names", "plans"):
            other.__dict__.pop(name, None)
        other.origin = None
        other.buffers = self.buffers if buffers is None else list(buffers)
        other.correction = self.correction if correction is None else correction
        return other

    def snapshot(self) -> Recording | None:
        """The snapshot buffers; None where there are none."""
        buffers = [b for b in self.container.snapshot_buffers if b.streams]
        return self.variant(buffers) if buffers else None

    # ---- time ----

    def corrected(self, change: Callable[[Correction], Correction]) -> Recording:
        """The same recording with its correction of time stamps changed."""
        return self.variant(correction=change(self.correction))

    def sources(self) -> list[Source]:
        """Every stream, in merge order: by buffer, then CPU."""
        out = []
        for position, buffer in enumerate(self.buffers):
            abi = self.abi_spec(buffer)
            out += [Source(s, position, buffer.name, abi, self.correction.spec(s.cpu))
                    for s in sorted(buffer.streams, key=lambda s: s.cpu)]
        return out

    # ---- events ----

    @cached_property
    def format_index(self) -> Mapping[tuple[str, str], int]:
        """(system, event) -> key of its text; blktrace records are known, though no format file tells of them."""
        index = self.parts.format_index()
        return index if self._blktrace_id is None else {**index, BLKTRACE: NO_KEY}

    @cached_property
    def id_index(self) -> Mapping[int, tuple[str, str]]:
        self.parts.format_index()  # which judges damage
        index = self.container.id_index()
        return index if self._blktrace_id is None else {**index, self._blktrace_id: BLKTRACE}

    @cached_property
    def event_ids(self) -> tuple[np.ndarray, list[Pair]]:
        """The same, the ids as an array: for tables with a place for each possible id."""
        return np.array(list(self.id_index), np.intp), list(self.id_index.values())

    @cached_property
    def _blktrace_id(self) -> int | None:
        return blktrace_id(self.container.id_index())

    def format_text(self, pair: Pair) -> bytes:
        key = self.format_index[pair]
        if key != NO_KEY:
            return self.container.format_text(key)
        return blktrace_format(self._blktrace_id or 0, self.format_text(USER_STACK))

    @cached_property
    def keys(self) -> dict[str, tuple[str, str]]:
        """Short names where they are unique, else "system:event"."""
        systems: dict[str, list[str]] = {}
        for system, event in self.format_index:
            systems.setdefault(event, []).append(system)
        return {e if len(systems[e]) == 1 else f"{s}:{e}": (s, e) for s, e in self.format_index}

    @cached_property
    def key_of(self) -> dict[tuple[str, str], str]:
        return {pair: key for key, pair in self.keys.items()}

    @cached_property
    def place_of(self) -> dict[Pair, int]:
        """Where an event stands among all."""
        return {pair: i for i, pair in enumerate(self.key_of)}

    def pair(self, name: str) -> Pair | None:
        """(system, event) of a short or full name; None: no such event, or two systems have one of that name."""
        if name in self.keys:
            return self.keys[name]
        system, _, event = name.replace("/", ":").partition(":")
        return (system, event) if (system, event) in self.format_index else None

    def find(self, name: str) -> tuple[str, str]:
        """(system, event) of a short or full name.

        Raises
        ------
        EventNotFoundError
            No such event, or two systems have one of that name; the message lists near names.
        """
        if not isinstance(name, str):
            raise TypeError(f"an event is named by a str, not {type(name).__name__}")
        pair = self.pair(name)
        if pair is not None:
            return pair
        full = [f"{s}:{e}" for s, e in self.format_index if e == name]
        if full:
            raise EventNotFoundError(f"more than one system has an event named {name!r}: {', '.join(full)}")
        known = [f"{s}:{e}" for s, e in self.format_index] if ":" in name else list(self.keys)
        raise EventNotFoundError(near_names("event", name, known))

    def format(self, system: str, event: str) -> EventFormat:
        """An event's format.

        Raises
        ------
        FormatError
            Its text cannot be understood; the message names the event.
        """
        with self._lock:
            known = self._formats.get((system, event))
            if known is None:
                try:
                    known = parse_format(self.format_text((system, event)), system, long_size=self.abi.long_size)
                except FormatError as error:
                    raise FormatError(f"{self.container.path}: format of {system}:{event}: {error}") from None
                self._formats[system, event] = known
            return known

    def readable(self, pair: Pair, *, quiet: bool = False) -> EventFormat | None:
        """An event's format; None, and a problem noted, where it cannot be understood."""
        try:
            return self.format(*pair)
        except FormatError as error:
            self.parts.note(f"format of {pair[0]}:{pair[1]}", error, quiet=quiet)
            return None

    def format_or_common(self, pair: Pair | None) -> EventFormat:
        """An event's format; where it has none that can be understood, one of the common fields, which all events share."""
        known = None if pair is None else self.readable(pair)
        if known is not None:
            return known
        with self._lock:  # one of each event: those who use it may know it by its identity
            if pair not in self._substitutes:
                common = self.common_format.common_fields if self.common_format is not None else ()
                number = next((n for n, other in self.id_index.items() if other == pair), -1)
                self._substitutes[pair] = EventFormat(*(pair or ("", UNKNOWN_EVENT)), number, common, "")
            return self._substitutes[pair]

    def mentions(self, pair: tuple[str, str], pattern: re.Pattern[bytes]) -> bool:
        """Whether a pattern is found in the text of an event's format: costs less than to parse it."""
        return pattern.search(self.format_text(pair)) is not None

    def readers(self, fmt: EventFormat) -> dict[str, Any]:
        with self._lock:
            key = (fmt.system, fmt.name)
            if key not in self._readers:
                self._readers[key] = {f.name: reader(f, self.container.big_endian) for f in fmt.fields}
            return self._readers[key]

    # ---- names ----

    def _learner(self, learn: Callable[[Recording], dict[int, Any]]) -> Callable[[], dict[int, Any]]:
        """What learns from this recording while it is there and open: tables of names outlive it, and make no cycle."""
        me = weakref.ref(self)

        def look() -> dict[int, Any]:
            recording = me()
            return {} if recording is None or recording.closed else learn(recording)

        return look

    @cached_property
    def known_comms(self) -> Comms:
        """Names of tasks: those that the kernel saved, then those that events tell."""
        return Comms(parse_cmdlines(*self.parts.read("saved_cmdlines")), self._learner(learn_comms))

    @cached_property
    def known_tgids(self) -> Tgids:
        return Tgids(parse_tgids(*self.parts.read("saved_tgids")), self._learner(learn_tgids))

    @property
    def comms(self) -> Comms:
        """The saved names alone: what texts of the kernel and of trace-cmd know at first."""
        return self.known_comms.saved

    @property
    def tgids(self) -> Tgids:
        return self.known_tgids.saved

    @cached_property
    def symbols(self) -> Symbols:
        return Symbols(*self.parts.read("kallsyms", "modules"))

    @cached_property
    def printk_formats(self) -> dict[int, bytes]:
        return parse_printk_formats(*self.parts.read("printk_formats"))

    @property
    def comm_codes(self) -> np.ndarray:
        return self.names.comms.code_of_pid

    @cached_property
    def names(self) -> Names:
        comms = CommCodes(self.comms, self.known_comms.__getitem__)
        return Names(comms, [b.name for b in self.buffers], [], self._derived_plan())

    def _derived_plan(self) -> Callable[[EventFormat, str], ColumnPlan | None]:
        """What makes derived columns, without holding the recording: see _learner."""
        me = weakref.ref(self)

        def plan(fmt: EventFormat, name: str) -> ColumnPlan | None:
            recording = me()
            found = recording.derived(fmt).get(name) if recording is not None else None
            return None if found is None else found.plan(name)

        return plan

    def derived(self, fmt: EventFormat) -> dict[str, Derived]:
        """The columns of an event that its format does not have."""
        return derived_columns(fmt, self.text_sources)

    @cached_property
    def text_sources(self) -> Sources:
        me = weakref.ref(self)

        def here(name: str, *needed: str) -> Any:
            self = me()
            if self is not None:
                self.parts.require(*needed)
            return getattr(self, name)

        return Sources(self.container.big_endian, self.abi.long_size, partial(here, "printk_formats", "printk_formats"),
                       partial(here, "symbols", "kallsyms", "modules"), partial(here, "correction"))

    # ---- columns and records ----

    def columns(self, pair: Pair) -> list[str]:
        """Names of the columns of an event's table."""
        return list(self.plans[0].of(self.format(*pair)).column_names)

    @cached_property
    def plans(self) -> list[Plans]:
        """What is known of the columns of each file's events."""
        return [Plans(replace(file.names, buffers=self.names.buffers)) for file in self.files]

    def event_info(self, pair: tuple[str, str] | None, context: EventContext) -> Any:
        """What all records of one event share; None stands for ids without a format. See ``format_or_common``."""
        fmt = self.format_or_common(pair)
        return _core.EventInfo(fmt.name, fmt, self.readers(fmt), context)

    def close(self) -> None:
        for context in list(self.contexts) if not self.closed else ():
            context.settle()
        self._closed.set()
        self.container.close()


def own_correction(container: Container) -> Correction:
    """What the options of a recording ask for: TIME_SHIFT, TSC2NSEC, DATE and OFFSET."""
    value = {o.name: o.value for o in container.options if o.value is not None}
    tsc, guest = value.get("TSC2NSEC"), value.get("TIME_SHIFT")
    return Correction(tsc.mult if tsc else 0, tsc.shift if tsc else 0, 0, container.ts_offset, guest)


# Columns of every table that are no fields of the record.
HEADER: dict[str, Callable[[Any], Any]] = {
    "common_ts": attrgetter("ts"), "common_cpu": attrgetter("cpu"), "common_comm": attrgetter("comm")}


class EventContext:
    """What an Event asks of the layers above the core."""

    def __init__(self, recording: Recording, buffers: Sequence[str] | None = None) -> None:
        self._recording = recording
        self._derived: dict[Pair, dict[str, Derived]] = {}
        self._comms = recording.known_comms
        self._buffers = recording.names.buffers if buffers is None else buffers
        self._print: Callable[[Any], str] | None = None
        recording.contexts.add(self)

    def comm(self, pid: int) -> str:
        return self._comms[pid]

    def no_such_field(self, fmt: EventFormat, name: str) -> ColumnNotFoundError:
        known = [*(f.name for f in fmt.fields), *self._derived.get((fmt.system, fmt.name), ())]
        return ColumnNotFoundError(near_names(f"field of {fmt.name}", name, known))

    def derived(self, record: Any, name: str) -> Any:
        """The value of a derived column of a record."""
        fmt: EventFormat = record.format
        pair = (fmt.system, fmt.name)
        if pair not in self._derived:
            self._derived[pair] = self._recording.derived(fmt)
        column = self._derived[pair].get(name)
        if column is None and name in HEADER:
            return HEADER[name](record)
        if column is None:
            raise self.no_such_field(fmt, name)
        return column.value(record)

    def line(self, event: Any) -> str:
        """The event as a line of text."""
        if self._print is None:
            self._print = writer().event_lines(self._recording, self._buffers)
        return self._print(event)

    def settle(self) -> None:
        """Read what lines of text will need, before the recording is closed."""
        recording = self._recording
        with suppress(FtbufError, OSError):
            _ = recording.symbols, recording.printk_formats, recording.comms, recording.tgids
