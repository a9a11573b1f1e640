"""The text tables of a recording that give names to numbers: tasks, kernel symbols, trace_printk formats.

A table is untrusted text: one odd line never costs the other lines.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .kallsyms import Lines, SymbolTable

TASK_COMM_LEN = 16  # K:include/linux/sched.h, with the NUL
IDLE = b"<idle>"  # what the kernel shows for pid 0, for a pid it has no name of, and for a negative one (K:trace.c)
UNKNOWN = b"<...>"
NEGATIVE = b"<XXX>"

_CMDLINE = re.compile(rb"[ \t]*(-?[0-9]{1,10})(?:$| )(.*)", re.DOTALL)
_TGID = re.compile(rb"^[ \t]*([0-9]{1,10})[ \t]+([0-9]{1,10})[ \t\r]*$", re.MULTILINE)
_PRINTK_FORMAT = re.compile(rb'^[ \t]*0x([0-9a-fA-F]{1,16}) : "(.*)"[ \t\r]*$', re.MULTILINE)
_PRINTK_ESCAPE = re.compile(rb'\\([nt"])')
_UNESCAPED = {b"n": b"\n", b"t": b"\t", b'"': b'"'}


def parse_cmdlines(data: bytes) -> dict[int, bytes]:
    """Parse ``saved_cmdlines``: pid -> name of the task.

    A name may hold any byte but NUL, also spaces, and may be empty. A line that begins with no pid is the rest of a
    name with a newline in it, as long as the two fit a name.
    """
    comms: dict[int, bytes] = {}
    last: int | None = None
    for line in data.rstrip(b"\n\0").split(b"\n"):
        match = _CMDLINE.match(line)
        if match:
            last = int(match[1])
            comms[last] = match[2]
        elif last is not None and len(comms[last]) + 1 + len(line) < TASK_COMM_LEN:
            comms[last] += b"\n" + line
    return comms


def parse_tgids(data: bytes) -> dict[int, int]:
    """Parse ``saved_tgids``: pid -> id of its thread group."""
    return {int(pid): int(tgid) for pid, tgid in _TGID.findall(data)}


def parse_printk_formats(data: bytes) -> dict[int, bytes]:
    r"""Parse ``printk_formats``: kernel address -> the string that is there.

    The kernel writes newline, tab and quote as ``\n``, ``\t`` and ``\"``, but a backslash as itself (K:trace_printk.c
    t_show), so a backslash before an n cannot be told from a newline: it is taken for one.
    """
    return {
        int(address, 16): _PRINTK_ESCAPE.sub(lambda m: _UNESCAPED[m[1]], text)
        for address, text in _PRINTK_FORMAT.findall(data)
    }


Learn = Callable[[], "Mapping[int, tuple[Any, str]]"]  # -> pid -> (what was learned, the event that told it)


class _Known:
    """Facts about pids: saved ones, and for other pids what events tell, found out when it is first asked for."""

    def __init__(self, saved: Mapping[int, Any], learn: Learn | None, table: str) -> None:
        self.saved = dict(saved)
        self._learn = learn
        self.table = table
        self._learned: Mapping[int, tuple[Any, str]] = {}
        self._lock = threading.Lock()

    @property
    def learned(self) -> Mapping[int, tuple[Any, str]]:
        with self._lock:
            if self._learn is not None:
                self._learned = self._learn()
                self._learn = None
        return self._learned

    def get(self, pid: int) -> Any:
        if pid in self.saved:
            return self.saved[pid]
        return self.learned.get(pid, (None, ""))[0]

    def origin(self, pid: int) -> str | None:
        return self.table if pid in self.saved else self.learned.get(pid, (None, None))[1]

    def pids(self) -> Iterator[int]:
        yield from self.saved
        yield from (pid for pid in self.learned if pid not in self.saved)

    def __contains__(self, pid: object) -> bool:
        return pid in self.saved or pid in self.learned

    def __len__(self) -> int:
        return len(self.saved) + sum(pid not in self.saved for pid in self.learned)


class Comms(Mapping[int, str]):
    """Names of tasks by pid.

    ``comms[pid]`` always has an answer: the name that the kernel saved; else the last one that an event of the
    recording tells (see ``origin``); else that of the kernel's own text: ``<idle>`` for pid 0, ``<...>`` for a task
    whose name is not known. ``pid in comms``, iteration and ``get`` tell of the names that are known. Events are looked
    at once, when a name is first missing.
    """

    def __init__(self, comms: Mapping[int, bytes], learn: Learn | None = None) -> None:
        self._known = _Known(comms, learn, "saved_cmdlines")

    @property
    def saved(self) -> Comms:
        """The names that the kernel saved, alone: what its own text and that of trace-cmd begin with."""
        return Comms(self._known.saved)

    def origin(self, pid: int) -> str | None:
        """Where the name of a pid is from: "saved_cmdlines", or the name of an event; None when it is not known."""
        return self._known.origin(pid)

    def raw(self, pid: int, *, kernel: bool = False) -> bytes:
        """The name's bytes; with ``kernel``, a negative pid is ``<XXX>`` as in the kernel's text."""
        if pid == 0:
            return IDLE
        if kernel and pid < 0:
            return NEGATIVE
        name: bytes | None = self._known.get(pid)
        return UNKNOWN if name is None else name

    def __getitem__(self, pid: int) -> str:
        return _text(self.raw(pid))

    def get(self, pid: int, default: str | None = None) -> str | None:  # type: ignore[override]
        return self[pid] if pid in self else default  # noqa: SIM401

    def __contains__(self, pid: object) -> bool:
        return pid in self._known

    def __iter__(self) -> Iterator[int]:
        return self._known.pids()

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"<Comms: {len(self)} tasks>"


class Tgids(Mapping[int, int]):
    """Thread group ids by pid: what the kernel saved (record-tgid), else what events tell. Others are not there."""

    def __init__(self, tgids: Mapping[int, int], learn: Learn | None = None) -> None:
        self._known = _Known(tgids, learn, "saved_tgids")

    @property
    def saved(self) -> Tgids:
        """Those that the kernel saved, alone."""
        return Tgids(self._known.saved)

    def origin(self, pid: int) -> str | None:
        """Where a thread group is from: "saved_tgids", or the name of an event; None when it is not known."""
        return self._known.origin(pid)

    def __getitem__(self, pid: int) -> int:
        tgid = self.get(pid)
        if tgid is None:
            raise KeyError(pid)
        return tgid

    def get(self, pid: int, default: int | None = None) -> int | None:  # type: ignore[override]
        tgid: int | None = self._known.get(pid)
        return default if tgid is None else tgid

    def __contains__(self, pid: object) -> bool:
        return pid in self._known

    def __iter__(self) -> Iterator[int]:
        return self._known.pids()

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"<Tgids: {len(self)} tasks>"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A kernel symbol that an address lies in."""

    name: str
    module: str  # "" for the kernel itself
    start: int
    size: int | None  # up to the next symbol, as the kernel counts it; None where no symbol follows in its module


class Symbols:
    """Kernel addresses to names, from the text of ``/proc/kallsyms``.

    The text is read at the first question. The arrays have one row for each address that has a symbol, in ascending
    order. Left out, as the kernel and trace-cmd do: absolute symbols (types A and a: per-CPU offsets, not addresses)
    and names that begin with ``$`` (mapping symbols of the assembler).

    Where several symbols share an address, the kernel prints the first of them in the order of kallsyms, and so does
    trace-cmd for an address inside a function. For exactly the function's address trace-cmd prints the one that its
    binary search meets first; ``exact_names`` has that one.

    Parameters
    ----------
    kallsyms : bytes
        The text.
    modules : bytes
        The text of ``/proc/modules``, where a recording has it: says which module an address is in without a symbol.
    """

    def __init__(self, kallsyms: bytes, modules: bytes = b"") -> None:
        self._text = kallsyms
        self._modules = parse_modules(modules)

    @cached_property
    def hidden(self) -> bool:
        """True if the recording was not allowed to see addresses (kptr_restrict): every one is zero."""
        return bool(self._text.strip(b" \t\n\0")) and _NOT_ZERO.search(self._text) is None

    @property
    def addresses(self) -> NDArray[np.uint64]:
        """First byte of each symbol, ascending, each once."""
        return self.table.addresses

    @property
    def ends(self) -> NDArray[np.uint64]:
        """Where the kernel stops to count an address to the symbol: the next symbol, or soon after a module's last."""
        return self.table.ends

    @property
    def names(self) -> list[bytes]:
        return self.table.names

    @property
    def modules(self) -> list[bytes]:
        """Module of each symbol, without brackets; empty for the kernel itself."""
        return self.table.modules

    @cached_property
    def exact_names(self) -> list[bytes]:
        """What trace-cmd prints for the addresses themselves; see the class."""
        return self.table.exact_names

    def lookup(self, address: int, *, trace_cmd: bool = False) -> Symbol | None:
        """The symbol that an address lies in, or None.

        Parameters
        ----------
        address : int
            A kernel address.
        trace_cmd : bool
            Answer as trace-cmd does: another choice among symbols of one address, no end of the kernel or of a module,
            nothing after the last symbol.
        """
        import numpy as np

        table = self.table
        if not 0 <= address < 1 << 64:
            return None
        row = int(np.searchsorted(table.addresses, np.uint64(address), side="right")) - 1
        if row < 0:
            return None
        start, end = int(table.addresses[row]), int(table.ends[row])
        is_last = row == len(table) - 1
        if address != start and (is_last if trace_cmd else address >= end):
            return None
        name = table.exact_name(row) if trace_cmd and address == start else table.name(row)
        size = end - start if table.ends_are_symbols[row] else None
        return Symbol(_text(name), _text(table.module(row)), start, size)

    def name(self, address: int) -> str | None:
        """The name of the symbol that an address lies in, or None."""
        symbol = self.lookup(address)
        return symbol.name if symbol else None

    def find(self, addresses: Any) -> NDArray[np.int64]:
        """Rows of the symbols that addresses lie in, in an array of the same shape; -1 for those in none.

        The rows are places in ``names``, ``modules`` and ``addresses``: this is ``lookup`` for many addresses at once.
        """
        import numpy as np

        table, wanted = self.table, np.asarray(addresses, dtype=np.uint64)
        rows = np.searchsorted(table.addresses, wanted, side="right").astype(np.int64) - 1
        if not len(table):
            return rows
        inside = (wanted < table.ends[rows]) | (wanted == table.addresses[rows])
        return np.where((rows >= 0) & inside, rows, -1)

    def names_of(self, addresses: Any) -> NDArray[np.object_]:
        """The names of the symbols that addresses lie in: an array of str of the same shape; None for those in none.

        Takes a column as a table gives it: numbers of any shape, or one array a row (``kernel_stack``'s ``caller``),
        for which the result has one array of names a row.
        """
        return self._taken(addresses, self.find, lambda rows: [_text(self.table.name(i)) for i in rows])

    def modules_of(self, addresses: Any) -> NDArray[np.object_]:
        """The modules that addresses lie in, as ``names_of``: "" for the kernel itself, None where it is not known.

        Where no symbol tells, the text of ``/proc/modules`` does, if the recording has it.
        """
        import numpy as np

        count = len(self.table)
        starts = np.array([m.start for m in self._modules], dtype=np.uint64)
        ends = np.array([m.end for m in self._modules], dtype=np.uint64)

        def rows(wanted: Any) -> NDArray[np.int64]:
            found = self.find(wanted)
            if not len(starts):
                return found
            at = np.searchsorted(starts, wanted, side="right") - 1
            inside = (at >= 0) & (wanted < ends[at])
            return np.where((found < 0) & inside, count + at, found)

        return self._taken(addresses, rows, lambda found: [
            _text(self.table.module(i)) if i < count else self._modules[i - count].name for i in found])

    def _taken(self, addresses: Any, find: Callable[[Any], NDArray[np.int64]],
               texts_of: Callable[[list[int]], list[str]]) -> NDArray[np.object_]:
        """Texts of addresses, each text made once."""
        import numpy as np

        if isinstance(addresses, np.ndarray) and addresses.dtype == object:
            lengths = [len(row) for row in addresses]
            flat = np.concatenate([np.empty(0, np.uint64), *addresses])
            out: NDArray[np.object_] = np.empty(len(lengths), dtype=object)
            texts, at = self._taken(flat, find, texts_of), 0
            for i, length in enumerate(lengths):
                out[i] = texts[at : at + length]
                at += length
            return out
        wanted = np.asarray(addresses, dtype=np.uint64)
        rows, places = np.unique(find(wanted), return_inverse=True)
        known = rows[rows >= 0].tolist()
        texts = np.array([None] * (len(rows) - len(known)) + texts_of(known), dtype=object)
        found: NDArray[np.object_] = texts[places.reshape(wanted.shape)]
        return found

    def by_name(self, name: str | bytes) -> int | None:
        """The address of a symbol; of several of one name, the first in the text."""
        key = name.encode("utf-8", "surrogateescape") if isinstance(name, str) else name
        return self._lines.address(key)

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        return "<Symbols: hidden>" if self.hidden else f"<Symbols: {len(self)} addresses>"

    @cached_property
    def _lines(self) -> Lines:
        from .kallsyms import read_kallsyms  # which needs numpy

        return read_kallsyms(self._text)

    @cached_property
    def table(self) -> SymbolTable:
        """The symbols as columns, for what prints them."""
        from .kallsyms import SymbolTable

        return SymbolTable(self._lines)


@dataclass(frozen=True, slots=True)
class Module:
    """Where a kernel module was loaded."""

    name: str
    start: int
    end: int


def parse_modules(data: bytes) -> list[Module]:
    """Parse ``/proc/modules``: modules in the order of their addresses; those whose address is hidden are left out."""
    found = [Module(_text(name), int(start, 16), min(int(start, 16) + int(size), (1 << 64) - 1))
             for name, size, start in _MODULE.findall(data)]
    return sorted((m for m in found if m.start), key=lambda m: m.start)


_NOT_ZERO = re.compile(rb"^[ \t]*0*[1-9a-fA-F][0-9a-fA-F]* ", re.MULTILINE)
_MODULE = re.compile(rb"^(\S+) ([0-9]{1,19}) [^\n]* 0x([0-9a-fA-F]{1,16})(?: [^\n]*)?$", re.MULTILINE)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
