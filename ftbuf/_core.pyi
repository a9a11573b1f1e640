"""The boundary module as type checkers see it; stubtest holds it to the real one."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, Self, TypeAlias, final

from typing_extensions import disjoint_base

from .formats import EventFormat

_Abi: TypeAlias = tuple[int, int, int, int, int, int, int]
_Clock: TypeAlias = tuple[int, int, int, int, int, Any]
_Op: TypeAlias = tuple[int, int, int, int, int, int, int, Dictionary | None]

OK: Final[int]
NEED_SEGMENT: Final[int]
DONE: Final[int]
BATCH: Final[int]
NO_SLOT: Final[int]
N_IDS: Final[int]
NO_PLAN: Final[int]
MAX_STREAMS: Final[int]
OP_TS: Final[int]
OP_CPU: Final[int]
OP_BUFFER: Final[int]
OP_SLOT: Final[int]
OP_COMM: Final[int]
OP_SCALAR: Final[int]
OP_FIXED: Final[int]
OP_STRING: Final[int]
OP_LIST: Final[int]
STATUSES: Final[tuple[str, ...]]
MESSAGES: Final[dict[str, str]]
__test__: Final[dict[str, str]]  # Cython makes it

@final
class Pages:
    def __new__(cls, source: object) -> Self: ...
    def __len__(self) -> int: ...

@final
class Column:
    def __len__(self) -> int: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Dictionary:
    def __len__(self) -> int: ...
    def strings(self) -> list[bytes]: ...

@final
class Walker:
    def __new__(cls, abi: _Abi, clock: _Clock) -> Self: ...
    def correct(self, raw: int) -> int: ...
    def page_time(self, pages: Pages, index: int) -> int: ...
    def find_page(self, pages: Pages, ts: int) -> int: ...

@final
class Decoder:
    def __new__(
        cls,
        abis: Sequence[_Abi],
        clocks: Sequence[_Clock],
        streams: Sequence[tuple[int, int, int, int, int]],
        selects: Sequence[tuple[Any, ...]],
        n_slots: int,
        window: tuple[int, int] | None = None,
        total_bytes: int = 0,
    ) -> Self: ...
    def set_plans(self, plan_of_slot: Any, plans: Sequence[tuple[int, int, Sequence[_Op], int]]) -> None: ...
    def feed(
        self, stream: int, pages: Pages | None, file_offset: int, last: bool, start: int = 0, stop: int = ...
    ) -> None: ...
    def step(self, max_records: int) -> int: ...
    @property
    def need(self) -> int: ...
    @property
    def problem_count(self) -> int: ...
    def take(self, plan: int) -> tuple[int, list[tuple[Column, Column | None]]]: ...
    def rows(self, plan: int) -> int: ...
    def outside(self, plan: int) -> int: ...
    def counts(self) -> list[int]: ...
    def take_problems(self) -> Column: ...
    def take_losses(self) -> Column: ...
    def stream_stats(self) -> list[tuple[int, int, int, int, int, int, bool, int]]: ...

@final
class Repacker:
    def __new__(
        cls,
        abi: _Abi,
        clock: _Clock,
        slot_of: Any,
        window: tuple[int, int] | None = None,
        pids: tuple[Any, int, int] | None = None,
        page_size: int = 0,
    ) -> Self: ...
    def feed(self, pages: Pages, file_offset: int, start: int = 0, stop: int = ...) -> None: ...
    def step(self, max_pages: int) -> bool: ...
    def flush(self) -> None: ...
    def take(self) -> Column: ...
    def take_problems(self) -> Column: ...
    def counts(self) -> tuple[int, int, int]: ...

@final
class FieldReader:
    def __new__(cls, spec: _Op, need: int, big_endian: bool, as_bytes: bool) -> Self: ...

@final
class EventInfo:
    def __init__(self, name: str, format: EventFormat, readers: dict[str, FieldReader], context: Any) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def format(self) -> EventFormat: ...
    @property
    def readers(self) -> dict[str, FieldReader]: ...
    @property
    def context(self) -> Any: ...

@disjoint_base
class Record:
    @property
    def ts(self) -> int: ...
    @property
    def cpu(self) -> int: ...
    @property
    def buffer(self) -> int: ...
    @property
    def lost(self) -> int | None: ...
    @property
    def info(self) -> EventInfo: ...
    @property
    def name(self) -> str: ...
    @property
    def format(self) -> EventFormat: ...
    @property
    def pid(self) -> int: ...
    @property
    def flags(self) -> int: ...
    @property
    def preempt_count(self) -> int: ...
    @property
    def payload(self) -> bytes: ...
    def missing(self, name: str) -> Any: ...
    def __getitem__(self, name: str, /) -> Any: ...

@final
class Records:
    def __init__(self, decoder: Decoder, driver: Any, make_info: Any, n_slots: int, cls: type[Record]) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...

@final
class Program:
    def __new__(cls, block: bytes) -> Self: ...
    @property
    def size(self) -> int: ...
    @property
    def emits(self) -> bool: ...
    @property
    def result(self) -> bool: ...

@final
class TextTables:
    def __new__(
        cls,
        symbols: tuple[Any, Any, Any, Any, Any] | None = None,
        strings: tuple[Any, Any, Any] | None = None,
        printk: tuple[Any, list[Program]] | None = None,
        comms: tuple[Any, Any, Any] | None = None,
        *,
        cpus: int = 0,
    ) -> Self: ...
    def supply(
        self,
        symbols: tuple[Any, Any, Any, Any, Any] | None = None,
        strings: tuple[Any, Any, Any] | None = None,
        printk: tuple[Any, list[Program]] | None = None,
        comms: tuple[Any, Any, Any] | None = None,
    ) -> None: ...

@final
class Renderer:
    def __new__(cls, tables: TextTables) -> Self: ...
    def body(
        self, program: Program, payload: Any, *, ts: int = 0, cpu: int = 0, pid: int = 0, comm: bytes = b""
    ) -> bytes | str: ...
    def value(
        self, program: Program, payload: Any, *, ts: int = 0, cpu: int = 0, pid: int = 0, comm: bytes = b""
    ) -> int | str: ...

@final
class Texts:
    pass

@final
class LineWriter:
    def __new__(
        cls,
        records: Records,
        renderer: Renderer,
        columns: Sequence[tuple[int, int, bytes]],
        flags: Sequence[bytes],
        preempt: Sequence[bytes],
        labels: Sequence[bytes],
        names: Sequence[bytes],
        comms: tuple[Any, Sequence[bytes]],
        tgids: Any,
        places: Sequence[tuple[int, int]],
        program_of: Callable[[int], Program | None],
        fallback: Callable[[Any, int, int], bytes],
        *,
        big_endian: bool,
        start: int = 0,
        max_line: int = 0,
        enough: int = ...,
    ) -> Self: ...
    @property
    def lines(self) -> int: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...
