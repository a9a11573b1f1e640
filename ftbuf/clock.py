"""Trace clocks, their units, and the correction of time stamps as a value that the C core applies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# K:trace.c trace_clocks[]: in_ns is 0 for counter, uptime and x86-tsc alone.
NOT_IN_NS = frozenset({"counter", "uptime", "x86-tsc", "ppc-tb"})

# What Decoder takes: mult, shift, hz, offset, interpolate, samples (int64 rows: times, offsets, scalings, fractions).
ClockSpec = tuple[int, int, int, int, int, Any]


@dataclass(frozen=True, slots=True)
class Correction:
    """From raw time stamps to common_ts, in this order: guest shift, TSC or ts2secs to ns, offset."""

    mult: int = 0  # in the order of TC:timestamp_calc
    shift: int = 0
    hz: int = 0
    offset: int = 0

    def spec(self) -> ClockSpec:
        offset = (self.offset + (1 << 63)) % (1 << 64) - (1 << 63)
        return (self.mult, self.shift, self.hz, offset, 0, None)


IDENTITY = Correction()


def counts_ns(clock: str, correction: Correction = IDENTITY) -> bool:
    """Whether corrected time stamps of this clock are nanoseconds."""
    return clock not in NOT_IN_NS or correction.mult != 0 or correction.hz != 0
