"""What ``trace-cmd report -w`` adds: how long each task waited from its wakeup to the switch to it, and a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ..durations import seconds_text
from .columns import microseconds
from .record import LineRecord, number

Body = Callable[[LineRecord], bytes]
SWITCH, WAKEUPS = "sched_switch", ("sched_wakeup", "sched_wakeup_new")
RT_PRIOS = 100  # K:include/linux/sched/prio.h MAX_RT_PRIO


@dataclass(slots=True)
class _Waits:
    count: int = 0
    total: int = 0
    longest: tuple[int, int] = (0, 0)  # ns, and when it ended; of several the first
    shortest: tuple[int, int] = (0, 0)

    def add(self, ns: int, end: int) -> None:
        if not self.count or ns > self.longest[0]:
            self.longest = ns, end
        if not self.count or ns < self.shortest[0]:
            self.shortest = ns, end
        self.count += 1
        self.total += ns


def _usecs(ns: int) -> bytes:
    return (b"-" if ns < 0 else b"") + b"%d.%03d usecs" % divmod(abs(ns), 1000)


@dataclass(slots=True)
class Wakeups:
    """Waits of the records that are shown, in the order shown. ``seconds``: whether times are."""

    seconds: bool
    _all: _Waits = field(default_factory=_Waits)
    _rt: _Waits = field(default_factory=_Waits)

    @staticmethod
    def watches(system: str, name: str) -> bool:
        return system == "sched" and (name == SWITCH or name in WAKEUPS)

    def noting(self, body: Body) -> Body:
        """Prints as ``body`` does, and tells behind a switch how long its task had waited; for the tasks of one machine."""
        woken: dict[int, tuple[int, bool]] = {}  # pid: when, and whether to run by a real-time policy

        def text(record: LineRecord) -> bytes:
            if not self.watches(record.format.system, record.format.name):
                return body(record)
            return body(record).removesuffix(b"\n") + self._note(record, woken)

        return text

    def _note(self, record: LineRecord, woken: dict[int, tuple[int, bool]]) -> bytes:
        if record.format.name != SWITCH:
            if record.format.find("success") is None or number(record, "success"):  # older kernels have it
                woken[number(record, "pid")] = record.ts, number(record, "prio") < RT_PRIOS
            return b""
        start, is_rt = woken.pop(number(record, "next_pid"), (None, False))
        if start is None:
            return b""
        ns = record.ts - start
        self._all.add(ns, record.ts)
        if is_rt:
            self._rt.add(ns, record.ts)
        return b" Latency: " + _usecs(ns)

    def summary(self) -> Iterator[bytes]:
        """The lines at the end; none where no wait was seen."""
        if self._all.count:
            yield b"\n" + self._lines(self._all)
        if self._rt.count:
            yield b"\nRT task timings:\n\n" + self._lines(self._rt)
        if self._all.count:
            yield b"\n"

    def _lines(self, waits: _Waits) -> bytes:
        lines = [b"Average wakeup latency: " + _usecs(waits.total // waits.count)]
        for word, (ns, end) in ((b"Maximum", waits.longest), (b"Minimum", waits.shortest)):
            at = seconds_text(microseconds(end), 6) if self.seconds else str(end)
            lines.append(word + b" Latency: " + _usecs(ns) + b" at timestamp: " + at.encode())
        return b"\n".join(lines) + b"\n"
