"""Noise and latencies of timers in the layout of ``rtla`` (K:Documentation/tools/rtla: top, and hist)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..table import Table
from .tables import rows

SECOND = 1_000_000_000
CONTEXTS = {"irq": ("IRQ", "          IRQ Timer Latency (us)        "), "thread": ("Thr", "         Thread Timer Latency (us)"),
            "user": ("Usr", "    Ret user Timer Latency (us)")}
BLOCK = "      cur       min       avg       max"
NONE = "-"
OSNOISE = "CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW          NMI"
INTERRUPTS = "          IRQ      Softirq       Thread"


def duration_text(ns: int) -> str:
    """Days, hours, minutes, seconds: "  0 00:01:00"."""
    minutes, seconds = divmod(max(ns, 0) // SECOND, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days:3d} {hours:02d}:{minutes:02d}:{seconds:02d}"


# ---- top ----


def osnoise_lines(found: Table, ns: int) -> Iterator[str]:
    """Of osnoise with interrupts off (rtla hwnoise) nothing can interfere but hardware and NMIs."""
    is_hardware = not any(found[name].any() for name in ("irq", "softirq", "thread"))
    title = "Hardware-related Noise" if is_hardware else "Operating System Noise"
    yield f"{'':40}{title}"
    yield f"duration: {duration_text(ns)} | time is in us"
    yield OSNOISE if is_hardware else OSNOISE + INTERRUPTS
    for row in rows(found):
        line = (f"{row['cpu']:3d} #{row['periods']:<6d} {row['runtime']:12d} {row['noise']:12d} {available(row):>11} "
                f"{row['max_noise']:11d} {row['max_single']:12d} {row['hw']:11d} {row['nmi']:12d}")
        yield line if is_hardware else line + f" {row['irq']:12d} {row['softirq']:12d} {row['thread']:12d}"


def available(row: dict[str, Any]) -> str:
    """The share of the time that was free, in percent: five digits, cut off."""
    if row["runtime"] <= 0:
        return NONE
    whole, rest = divmod(10_000_000 * (row["runtime"] - row["noise"]) // row["runtime"], 100_000)
    return f"{whole}.{rest:05d}"


def timerlat_lines(found: Table, ns: int) -> Iterator[str]:
    contexts = [name for name in CONTEXTS if name in found["context"].tolist() or name != "user"]
    by_place = {(row["cpu"], row["context"]): row for row in rows(found)}
    yield f"{'':35}Timer Latency"
    yield f"{duration_text(ns)}   |" + "|".join(f"{CONTEXTS[name][1]:40}" for name in contexts).rstrip()
    yield "CPU COUNT      |" + " |".join([BLOCK] * len(contexts))
    for cpu in np.unique(found["cpu"]).tolist():
        own = [by_place.get((cpu, name)) for name in contexts]
        count = max(row["count"] for row in own if row)
        yield f"{cpu:3d} #{count:<9d} |" + " |".join(" ".join(f"{value:>9}" for value in whole(row)) for row in own)


def whole(row: dict[str, Any] | None) -> Sequence[Any]:
    """Last, least, mean and greatest in whole microseconds."""
    if row is None or not row["count"]:
        return [NONE] * 4
    return [row["last"] // 1000, row["min"] // 1000, row["total_us"] // row["count"], row["max"] // 1000]


# ---- hist ----


def histogram_lines(sums: Table, histogram: Table, tool: str, ns: int, over_us: int) -> Iterator[str]:
    """A column for each CPU (and context), a line for each bucket that has occurred; those from ``over_us`` on are one."""
    columns = {(row["cpu"], row["context"]): row for row in rows(sums)}
    counts: dict[int, dict[tuple[int, str], int]] = {over_us: {}}
    for row in rows(histogram):
        if row["tool"] == tool:
            counts.setdefault(row["us"], {})[row["cpu"], row["context"]] = row["count"]
    over = counts.pop(over_us)
    yield from (f"# RTLA {tool} histogram", "# Time unit is microseconds (us)", f"# Duration: {duration_text(ns)}")
    yield line("Index", [f"{CONTEXTS[context][0] if context in CONTEXTS else 'CPU'}-{cpu:03d}" for cpu, context in columns])
    for us in sorted(counts):
        yield line(us, [counts[us].get(place, 0) for place in columns])
    yield line("over:", [over.get(place, 0) for place in columns])
    yield line("count:", [row["count"] for row in columns.values()])
    last_to_max = [whole(row) for row in columns.values()]
    for at, name in ((1, "min:"), (2, "avg:"), (3, "max:")):
        yield line(name, [values[at] for values in last_to_max])


def line(heading: Any, values: Sequence[Any]) -> str:
    return f"{heading:<6}" + " ".join(f"{value:>9}" for value in values)
