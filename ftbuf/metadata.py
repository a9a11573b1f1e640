"""What a recording says of itself besides its events: the part of Trace that decodes nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .clock import clock_unit
from .container.model import Buffer, Option
from .engine import Source
from .names import Comms, Symbols, Tgids
from .recording import Recording, option_values, trace_id
from .survey import stats_table
from .table import Table

if TYPE_CHECKING:
    from .container.options import Guest, Hook, LastBootInfo, Process


class Metadata:
    """The base of Trace."""

    @abstractmethod
    def _open(self) -> Recording: ...

    @abstractmethod
    def _sources(self) -> list[Source]: ...

    @property
    def comms(self) -> Comms:
        """pid -> name of the task: saved by the kernel, else told by an event (``comms.origin(pid)``), else "<...>"."""
        return self._having("saved_cmdlines").known_comms

    @property
    def tgids(self) -> Tgids:
        """pid -> thread group id: saved by the kernel, else told by an event (``tgids.origin(pid)``)."""
        return self._having("saved_tgids").known_tgids

    @property
    def symbols(self) -> Symbols:
        """Kernel symbols: ``symbols.lookup(address)``, ``symbols.name(address)``; of a column ``symbols.names_of``."""
        return self._having("kallsyms", "modules").symbols

    @property
    def buffers(self) -> list[str]:
        """Names of the buffers: "" is the top one, others instances; of several files "FILE", "FILE:INSTANCE"."""
        return [b.name for b in self._open().buffers]

    @property
    def cpus(self) -> list[int]:
        """CPUs that this view has streams of."""
        return sorted({s.stream.cpu for s in self._sources()})

    @property
    def text(self) -> str | None:
        """The text of a recording that is one (latency tracers in trace.dat); None for binary ones."""
        text = self._open().container.text
        return None if text is None else as_text(text)

    @property
    def info(self) -> dict[str, Any]:
        """What the recording says of itself, undecoded: kind, kernel, clock, byte order, CPUs, buffers, options.

        Of several files it is what the first says, ``buffers`` of all, and ``files`` has each file's own.
        """
        self._open()
        return self._info

    @cached_property
    def _info(self) -> dict[str, Any]:
        recording = self._open()
        own = [file_info(f, [b.name for b in f.buffers]) for f in recording.files]
        out = {**own[0], "cpus": self.cpus}
        if len(own) > 1:
            names = iter(self.buffers)
            out["buffers"] = [{**b, "name": next(names)} for info in own for b in info["buffers"]]
            out["clock_unit"] = one_or_mixed([b["clock_unit"] for b in out["buffers"]], out["clock_unit"])
            out["files"] = own
        return out

    @property
    def stats(self) -> Table:
        """The kernel's own counters per buffer and CPU (per_cpu/cpuN/stats, CPUSTAT); -1 where it did not say."""
        return stats_table(self._open())

    # ---- options of a trace.dat ----

    @property
    def options(self) -> Sequence[Option]:
        """The options of a trace.dat, in file order: ``id``, ``name``, ``value`` (typed), ``payload`` (its bytes)."""
        return tuple(self._open().container.options)

    def joined(self, buffer: str) -> list[str]:
        """Names of the buffers that together hold what one buffer held when it was recorded.

        Parts of one recording in several files (as ``split`` makes them) keep its ``trace_id``: they are one.
        """
        return self._open().joined(buffer)

    @property
    def trace_id(self) -> int | None:
        """The number by which recordings that were made together know each other."""
        return trace_id(self._open().container)

    @property
    def guests(self) -> list[Guest]:
        """The virtual machines that were traced together with this host: name, trace id, pids of the vCPUs' threads."""
        return self._values("GUEST")

    @property
    def hooks(self) -> list[Hook]:
        """Pairs of events that begin and end an interval (``trace-cmd record -H``)."""
        return self._values("HOOK")

    @property
    def procmaps(self) -> list[Process]:
        """Where the files of traced processes were mapped."""
        return [process for maps in self._values("PROCMAPS") for process in maps.processes]

    @property
    def cpustat(self) -> dict[tuple[str, int], str]:
        """(buffer, CPU) -> the text of its statistics, as recorded; ``stats`` has its numbers."""
        return {(b.name, cpu): as_text(text) for b in self._open().buffers for cpu, text in sorted(b.stats.items())}

    @property
    def last_boot(self) -> dict[str, str]:
        """Instance -> addresses of the boot that its persistent buffer is from."""
        found: list[LastBootInfo] = self._values("LAST_BOOT_INFO")
        texts = {info.instance: info.text for info in found}
        file = self._open().container.tracing_file
        for buffer in self._open().container.buffers:
            text = file(f"{buffer.name}/last_boot_info" if buffer.name else "last_boot_info") if not found else None
            if text is not None:
                texts[buffer.name] = as_text(text)
        return texts

    @property
    def modules(self) -> str | None:
        """/proc/modules of the traced kernel, where the recording has it."""
        text = self._having("modules").parts.read("modules")[0]
        return as_text(text) if text else None

    @property
    def btf(self) -> bytes | None:
        """/sys/kernel/btf/vmlinux of the traced kernel, where the recording has it."""
        return self._having("btf").parts.read("btf")[0] or None

    def _having(self, *parts: str) -> Recording:
        """The recording; under ``errors="raise"`` only where these parts of it are whole."""
        recording = self._open()
        recording.parts.require(*parts)
        return recording

    def _values(self, option: str) -> list[Any]:
        return option_values(self._open().container, option)


def as_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def one_or_mixed(values: Sequence[str], default: str) -> str:
    kinds = set(values) or {default}
    return kinds.pop() if len(kinds) == 1 else "mixed"


def file_info(r: Recording, names: Sequence[str]) -> dict[str, Any]:
    """Of a recording of one file."""
    clock = r.buffers[0].clock if r.buffers else ""
    buffers = [buffer_info(r, b, name) for b, name in zip(r.buffers, names, strict=True)]
    return {
        "path": r.container.path,
        "kind": r.container.kind,
        "kernel": r.container.uname,
        "clock": clock,
        "clock_unit": clock_unit(clock, r.correction),
        "ts_offset": r.container.ts_offset,
        "byte_order": "big" if r.container.big_endian else "little",
        "long_size": r.abi.long_size,
        "subbuf_size": r.abi.subbuf_size,
        "cpus": sorted({s.cpu for b in r.buffers for s in b.streams}),
        "symbols": symbols_info(r),
        "buffers": buffers,
        "options": [{"id": o.id, "name": o.name, "value": o.value} for o in r.container.options],
    }


def symbols_info(r: Recording) -> str:
    if r.symbols.hidden:
        return "hidden"
    return "present" if r.parts.read("kallsyms")[0] else "damaged" if r.parts.is_damaged("kallsyms") else "none"


def buffer_info(r: Recording, b: Buffer, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "clock": b.clock,
        "clock_unit": clock_unit(b.clock, r.correction),
        "subbuf_size": b.subbuf_size,
        "cpus": sorted(s.cpu for s in b.streams),
        "bytes": sum(sum(s.sizes) for s in b.streams),
    }
