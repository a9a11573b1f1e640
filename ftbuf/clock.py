"""Trace clocks, their units, and the correction of time stamps as a value that the C core applies.

Everything is integer arithmetic: a double has 53 bits, a time stamp 64.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .container.options import CpuShift, TimeShift

# K:trace.c trace_clocks[]: in_ns is 0 for counter, uptime and x86-tsc alone (uptime counts jiffies); ppc-tb is a
# tick counter as well. "boot" and "tai" are in ns, though TC:extract_trace_clock does not know them.
NOT_IN_NS = frozenset({"counter", "uptime", "x86-tsc", "ppc-tb"})

# What Decoder takes: mult, shift, hz, offset, interpolate, samples (int64 rows: times, offsets, scalings, fractions).
ClockSpec = tuple[int, int, int, int, int, Any]


@dataclass(frozen=True, slots=True)
class Correction:
    """From raw time stamps to common_ts, in the order of TC:timestamp_calc.

    1. ``guest``: a guest's clock to its host's, by the samples of its CPU;
    2. ``hz`` (a count of that frequency), or else ``mult`` and ``shift`` (a TSC), to ns;
    3. ``offset`` is added.
    """

    mult: int = 0
    shift: int = 0
    hz: int = 0
    offset: int = 0
    guest: TimeShift | None = None

    def spec(self, cpu: int = 0) -> ClockSpec:
        """As the C core takes it, for one CPU."""
        interpolate = int(self.guest is not None and self.guest.interpolate)
        return (self.mult, self.shift, self.hz, wrapped(self.offset), interpolate, samples_of(self.guest, cpu))


IDENTITY = Correction()


def wrapped(value: int) -> int:
    """As a 64-bit number holds it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def samples_of(shift: TimeShift | None, cpu: int) -> bytes | None:
    """Rows of one CPU's samples, sorted by time, without equal times; None where there are none.

    A CPU that has no samples of its own takes those of the first CPU that has: the vCPUs of a guest share a clock.
    """
    tables = [table for table in (shift.cpus if shift is not None else ()) if table.times]
    if shift is None or not tables:
        return None
    own = shift.cpus[cpu] if cpu < len(shift.cpus) else tables[0]
    return np.array(list(zip(*in_order(own if own.times else tables[0]), strict=True)), np.int64).tobytes()


def in_order(table: CpuShift) -> Iterable[tuple[int, int, int, int]]:
    samples: dict[int, tuple[int, int, int, int]] = {}
    for sample in zip(table.times, table.offsets, table.scalings, table.fractions, strict=True):
        samples.setdefault(sample[0], sample)
    return sorted(samples.values())


def counts_ns(clock: str, correction: Correction = IDENTITY) -> bool:
    """Whether corrected time stamps of this clock are nanoseconds."""
    return clock not in NOT_IN_NS or correction.mult != 0 or correction.hz != 0


def clock_unit(clock: str, correction: Correction = IDENTITY) -> str:
    """``"ns"`` or ``"ticks"``."""
    return "ns" if counts_ns(clock, correction) else "ticks"
