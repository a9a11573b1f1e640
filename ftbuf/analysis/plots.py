"""Pictures of what analyses found: each function takes a result and gives a ``matplotlib.figure.Figure`` (extra ``plot``).

Figures are made without pyplot: they need no display, belong to nobody else, and are written by ``figure.savefig``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..durations import seconds_text
from ..table import Table, require
from .critical import CriticalSections
from .loss import Losses
from .osnoise import ENTRIES, Noise
from .power import NOT_IDLE, NOT_KNOWN
from .tables import rows_of
from .tracers import LatencyReport
from .wakeup import WakeupLatency

MOST = 20  # bars
ROOM = 1.25  # of an axis, for what stands at the ends of bars
MOST_LINES = 8  # of one picture: more cannot be told apart
DPI = 120
MUCH = 20  # an axis of numbers that differ by more is logarithmic
WIDTH, HEIGHT, BAR, AROUND = 9.0, 5.0, 0.3, 1.6  # inches: of a picture; of a bar and of what is around bars
UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us"), (1, "ns"))
MARKED = ("p50", "p99", "p99.9", "max")
STYLES = ("--", "-.", ":", "-")
RUN, WAIT, SLEEP, DISK, STOPPED, UNKNOWN, PLAIN, INSIDE = (
    "tab:green", "tab:orange", "lightsteelblue", "tab:red", "tab:purple", "lightgray", "tab:blue", "lightsteelblue")
LOST = "tab:red"
STATES = ("tab:blue", "tab:orange", "tab:purple", "tab:cyan", "tab:pink", "tab:olive", "tab:brown", "lightsteelblue")

# ---- latencies ----


def latency(result: WakeupLatency | CriticalSections, *others: WakeupLatency | CriticalSections, labels: Sequence[str] = (),
            in_ns: bool = True) -> Any:
    """How often each latency was: of one result, by CPU if its rows are CPUs, or of several, one over the other.

    Make the results with ``fineness=3`` or so. Of several, which may differ in length, shares are shown instead of counts.

    Parameters
    ----------
    result, *others : WakeupLatency or CriticalSections
    labels : list of str
        What each of several results is called.
    in_ns : bool
        Whether the recording's clock counts ns (else: ticks).

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_figure()
    scale, unit = (1000, "us") if in_ns else (1, "ticks")
    results, together = (result, *others), bool(others)
    names = [*labels, *(f"{i + 1}" for i in range(len(labels), len(results)))]
    for i, found in enumerate(results):
        parts = {names[i]: found.histogram} if together else parts_of(found)
        for j, (name, rows) in enumerate(parts.items()):
            low, high, counts = summed(rows)
            values = 100 * counts / max(counts.sum(), 1) if together else counts
            draw_steps(axes, low / scale, (high + 1) / scale, values, color=f"C{(i + j) % 10}", is_filled=len(parts) == 1,
                       label=shortened(f"{name} (n={counts.sum()})"))
        mark_percentiles(axes, found.total, scale, unit, color=f"C{i % 10}" if together else "black")
    kind = "wakeup latency" if isinstance(result, WakeupLatency) else f"{result.kind} off"
    axes.set(xlabel=f"{kind} ({unit})", ylabel="share (%)" if together else "count")
    finish(figure, axes, kind.capitalize())
    spread_out(axes)
    return figure


def parts_of(found: WakeupLatency | CriticalSections) -> dict[str, Table]:
    """The histograms of CPUs, if the result has so few; else of all as one."""
    if found.by != "cpu" or not 1 < found.table.num_rows <= MOST_LINES:
        return {"all": found.histogram}
    return {f"CPU {cpu}": rows_of(found.histogram, found.histogram["cpu"] == cpu) for cpu in found.table["cpu"].tolist()}


def summed(histogram: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Low and high ends and counts of buckets, over all rows."""
    low, places = np.unique(histogram["low"], return_inverse=True)
    high, counts = np.zeros(len(low), np.int64), np.zeros(len(low), np.int64)
    high[places] = histogram["high"]
    np.add.at(counts, places, histogram["count"])
    return low, high, counts


def draw_steps(axes: Any, low: np.ndarray, high: np.ndarray, values: np.ndarray, *, is_filled: bool, **how: Any) -> None:
    """A histogram of buckets that need not meet: where there is none, it is zero."""
    if not len(low):
        return
    edges = np.unique(np.concatenate([low, high]))
    heights = np.zeros(len(edges) - 1)
    heights[np.searchsorted(edges, low)] = values
    axes.stairs(heights, edges, fill=is_filled, alpha=0.5 if is_filled else 1, **how)


def spread_out(axes: Any) -> None:
    """Logarithmic axes where values differ by much, with plain numbers on them."""
    patches = [patch.get_data() for patch in axes.patches]
    if not patches:
        return
    edges = np.concatenate([data.edges for data in patches])
    values = np.concatenate([data.values[data.values > 0] for data in patches])
    for axis, numbers in (("x", edges[edges > 0]), ("y", values)):
        if len(numbers) and numbers.max() > MUCH * numbers.min():
            axes.set(**{f"{axis}scale": "log"})
            getattr(axes, f"{axis}axis").set_major_formatter("{x:g}")
            getattr(axes, f"{axis}axis").set_minor_formatter("")
    axes.set_ylim(bottom=values.min(initial=values.max()) / 2 if axes.get_yscale() == "log" else 0)


def mark_percentiles(axes: Any, total: Table, scale: int, unit: str, *, color: str) -> None:
    """Lines where percentiles and the maximum are."""
    if not int(total["count"][0]):
        return
    for name, style in zip(MARKED, STYLES, strict=True):
        if name in total:
            value = float(total[name][0]) / scale
            axes.axvline(value, color=color, linestyle=style, linewidth=1, label=f"{name} {number_text(value)} {unit}")


def number_text(value: float) -> str:
    """Four digits, or all of them before the point."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def noise(found: Noise) -> Any:
    """How often each latency of timerlat, or sample of osnoise, was: a line for each CPU and context.

    Parameters
    ----------
    found : Noise

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_figure()
    tool = "timerlat" if found.timerlat.num_rows else "osnoise"
    rows = rows_of(found.histogram, found.histogram["tool"] == tool)
    keys = list(dict.fromkeys(zip(rows["cpu"].tolist(), rows["context"].tolist(), strict=True)))
    contexts = list(dict.fromkeys(context for _, context in keys))
    for cpu, context in keys:
        own = rows_of(rows, (rows["cpu"] == cpu) & (rows["context"] == context))
        us = own["us"]
        draw_steps(axes, us, us + 1, own["count"], is_filled=False, color=f"C{cpu % 10}", label=f"CPU {cpu} {context}".rstrip(),
                   linestyle=STYLES[-1 - contexts.index(context) % len(STYLES)])
    axes.set(xlabel="timer latency (us)" if tool == "timerlat" else "noise (us)", ylabel="count")
    finish(figure, axes, f"{tool} (256 us: so many or more)" if rows["us"].max(initial=0) >= ENTRIES else tool)
    spread_out(axes)
    return figure


# ---- over time ----


def rates(found: Table, losses: Losses | None = None, *, lost: Table | None = None, in_ns: bool = True) -> Any:
    """Events, and what was lost, over time.

    Parameters
    ----------
    found : Table
        As ``analysis.rates`` gives it, of all, of CPUs, or of events (the most frequent ones).
    losses : Losses, optional
        For the title: how much was lost in all.
    lost : Table, optional
        As ``analysis.lost_rates`` gives it, of the same stretches: rates of events do not have it.
    in_ns : bool
        Whether the recording's clock counts ns.

    Returns
    -------
    matplotlib.figure.Figure
    """
    gone = found if lost is None else lost
    has_lost = "lost" in gone and bool(gone["gaps"].any())
    figure, axes = new_figure(rows=2 if has_lost else 1)
    above, below = axes if has_lost else (axes, axes)
    starts, at = np.unique(found["start"], return_inverse=True)
    width = int((found["end"] - found["start"]).max(initial=1))
    scale, unit = unit_of(width * len(starts), in_ns)
    edges = np.arange(len(starts) + 1) * (width / scale)
    lines = by_name(found, at, len(starts))
    for i, (label, values) in enumerate(lines.items()):
        per_second = values * (1e9 / width if in_ns else 1)
        above.stairs(per_second, edges, label=shortened(label), color=f"C{i % 10}", fill=len(lines) == 1, linewidth=1)
    above.set(ylabel="events per second" if in_ns else "events", ylim=(0, None))
    if has_lost:
        draw_lost(below, gone, edges)
    first = int(starts[0]) if len(starts) else 0
    below.set_xlabel(f"{unit} since {seconds_text(first)} s" if in_ns else f"ticks since {first}")
    finish(figure, above, rates_title(losses), legend=len(lines) > 1)
    return figure


def by_name(found: Table, at: np.ndarray, bins: int) -> dict[str, np.ndarray]:
    """Counts over time of all, of each CPU or of each event; of many the largest, and the others together."""
    column = next((name for name in ("common_cpu", "event") if name in found), None)
    names = found[column].tolist() if column else ["all"] * found.num_rows
    out: dict[Any, np.ndarray] = {}
    for name in dict.fromkeys(names):
        own = np.fromiter((n == name for n in names), bool, len(names))
        counts = np.zeros(bins, np.int64)
        np.add.at(counts, at[own], found["events"][own])
        out[f"CPU {name}" if column == "common_cpu" else name] = counts
    largest = sorted(out, key=lambda name: -int(out[name].sum()))
    if len(out) <= MOST_LINES:
        return out
    shown = {name: out[name] for name in largest[: MOST_LINES - 1]}
    others = [out[name] for name in largest[MOST_LINES - 1 :]]
    return shown | {f"{len(others)} others": np.sum(others, axis=0)}


def draw_lost(axes: Any, found: Table, edges: np.ndarray) -> None:
    """Losses as bars; one that may be longer, for some gap does not say how many, has an arrow on its top."""
    at = np.unique(found["start"], return_inverse=True)[1]
    lost, unknown = (np.bincount(at, weights=found[name], minlength=len(edges) - 1) for name in ("lost", "unknown_gaps"))
    axes.stairs(lost, edges, color=LOST, fill=True, linewidth=1)
    some = unknown > 0
    if some.any():
        above = require("matplotlib.transforms", "plot").offset_copy(axes.transData, axes.figure, y=4, units="points")
        axes.plot((edges[1:] + edges[:-1])[some] / 2, lost[some], "^", color=LOST, markersize=6, transform=above,
                  label="so many or more: a gap does not say how many")
        axes.legend(fontsize="small")
    axes.set(ylabel="events lost", ylim=(0, ROOM * lost.max(initial=0) or 1))


def rates_title(losses: Losses | None) -> str:
    if losses is None:
        return "Events over time"
    total = losses.total
    share = float(total["lost_share"][0])
    text = f"{int(total['events'][0])} events"
    return text + (f", {int(total['lost'][0])} lost ({100 * share:.1f} %)" if share > 0 else ", none known to be lost")


# ---- bars ----


def profile(found: Table, *, most: int = MOST, in_ns: bool = True) -> Any:
    """The functions that took the most time, all CPUs together; of the function tracer's records, the most frequent.

    Parameters
    ----------
    found : Table
        As ``analysis.function_profile`` gives it.
    most : int
        How many.
    in_ns : bool
        Whether the recording's clock counts ns.

    Returns
    -------
    matplotlib.figure.Figure
    """
    timed, title = bool(found["time"].any()), "Functions (how often called)"
    sums = grouped(found, "function", ("time", "self", "hit"))
    names = sorted(sums, key=lambda name: sums[name]["time" if timed else "hit"], reverse=True)[:most]
    labels = [f"{name} ({sums[name]['hit']:g})" for name in names]
    if not timed:
        calls = np.array([sums[name]["hit"] for name in names])
        return stacked_bars(labels, {"calls": (PLAIN, calls)}, title, "calls")
    own = np.array([sums[name]["self"] for name in names])
    inside = np.array([sums[name]["time"] for name in names]) - own
    return time_bars(labels, {"self": (PLAIN, own), "calls inside": (INSIDE, inside)}, title, in_ns)


def tasks(found: Table, *, most: int = MOST, in_ns: bool = True) -> Any:
    """What the tasks that ran longest did with their time, of ``analysis.task_states``."""
    parts = {"run": RUN, "runnable": WAIT, "disk": DISK, "sleep": SLEEP, "stopped": STOPPED, "unknown": UNKNOWN}
    labels = [f"{comm} {pid}" for comm, pid in zip(found["comm"][:most].tolist(), found["pid"][:most].tolist(), strict=True)]
    return time_bars(labels, {name: (color, found[name][:most]) for name, color in parts.items()}, "Tasks", in_ns)


def cpus(found: Table, *, in_ns: bool = True) -> Any:
    """How busy CPUs were, of ``analysis.cpu_busy``."""
    labels = [f"CPU {cpu}" for cpu in found["cpu"].tolist()]
    parts = {"busy": RUN, "idle": SLEEP, "unknown": UNKNOWN}
    return time_bars(labels, {name: (color, found[name]) for name, color in parts.items()}, "CPUs", in_ns)


def residency(found: Table, *, in_ns: bool = True) -> Any:
    """In which state, or at which frequency, CPUs were: of ``analysis.idle_residency``, ``frequency_residency``."""
    name = "state" if "state" in found else "frequency"
    labels = {cpu: f"CPU {cpu}" for cpu in found["cpu"].tolist()}
    texts = {NOT_IDLE: "busy", NOT_KNOWN: "unknown"}
    colors = {NOT_IDLE: RUN, NOT_KNOWN: UNKNOWN}
    parts = {}
    for i, state in enumerate(sorted(set(found[name].tolist()), reverse=True)):
        own = found[name] == state
        times = dict(zip(found["cpu"][own].tolist(), found["time"][own].tolist(), strict=True))
        text = texts.get(state, f"state {state}" if name == "state" else f"{state / 1000:g} MHz")
        parts[text] = (colors.get(state, STATES[i % len(STATES)]), np.array([times.get(cpu, 0) for cpu in labels]))
    return time_bars(list(labels.values()), parts, "Idle states" if name == "state" else "Frequencies", in_ns)


def handlers(found: Table, *, most: int = MOST, in_ns: bool = True) -> Any:
    """The interrupt handlers that took the most time, of ``analysis.irq_time``."""
    order = np.argsort(-found["time"], kind="stable")[:most]
    columns = [found[name][order].tolist() for name in ("kind", "id", "name", "count")]
    cpu = [f" CPU {cpu}" for cpu in found["cpu"][order].tolist()] if "cpu" in found else [""] * len(order)
    labels = [f"{kind} {name or number}{on} ({count})" for kind, number, name, count, on in zip(*columns, cpu, strict=True)]
    own, time = found["self"][order], found["time"][order]
    parts = {"self": (PLAIN, own), "handlers inside": (INSIDE, time - own)}
    return time_bars(labels, parts, "Interrupt handlers (how often run)", in_ns)


def report(found: LatencyReport, *, most: int = MOST, in_ns: bool = True) -> Any:
    """Where the time of a latency tracer's longest latency went: the longest delays behind its steps, in their order.

    Parameters
    ----------
    found : LatencyReport
    most : int
        How many.
    in_ns : bool
        Whether the recording's clock counts ns.

    Returns
    -------
    matplotlib.figure.Figure
    """
    inside = np.flatnonzero(found.steps["inside"])
    delay, since = found.steps["delay"], found.steps["since_start"]
    rows = np.sort(inside[np.argsort(-delay[inside], kind="stable")[:most]])
    texts = [" ".join(found.steps["text"][i].split("\n")[0].split()) for i in rows.tolist()]
    scale, unit = (1000, "us") if in_ns else (1, "ticks")
    labels = [f"{at / scale:.10g} {unit}: {text}" for at, text in zip(since[rows].tolist(), texts, strict=True)]
    title = f"{found.tracer}: {found.latency_us} us, {found.comm}-{found.pid} on CPU {found.cpu}"
    figure = stacked_bars(labels, {"delay until the next step": (PLAIN, delay[rows] / scale)}, title, f"time ({unit})")
    if len(rows) and delay[rows].max() > MUCH * max(int(delay[rows].min()), 1):
        least = np.maximum(delay[rows].min(), 1) / scale / 2
        figure.axes[0].set(xscale="log", xlim=(least, None))
        figure.axes[0].xaxis.set_major_formatter("{x:g}")
    return figure


def syscalls(found: Table, *, most: int = MOST, in_ns: bool = True) -> Any:
    """The system calls, or tasks, that took the most time in calls, of ``analysis.syscalls``."""
    words = []
    for name, number in (("comm", "pid"), ("name", "id")):
        if number in found:
            pairs = zip(found[name][:most].tolist(), found[number][:most].tolist(), strict=True)
            words.append([f"{text} {n}" if number == "pid" else text or str(n) for text, n in pairs])
    counts = found["count"][:most].tolist()
    labels = [f"{' '.join(parts)} ({count})" for *parts, count in zip(*words, counts, strict=True)]
    return time_bars(labels, {"time": (PLAIN, found["time"][:most])}, "System calls (how often made)", in_ns)


def grouped(found: Table, key: str, columns: Sequence[str]) -> dict[str, dict[str, float]]:
    """Sums of columns over the rows of each key."""
    names = found[key].tolist()
    out: dict[str, dict[str, float]] = {name: dict.fromkeys(columns, 0) for name in names}
    for column in columns:
        for name, value in zip(names, found[column].tolist(), strict=True):
            out[name][column] += value
    return out


Parts = Mapping[str, tuple[str, np.ndarray]]  # what a part of a bar is -> its color, its length in each bar


def time_bars(labels: Sequence[str], parts: Parts, title: str, in_ns: bool) -> Any:
    """Bars of times, in a unit that suits the longest."""
    longest = int(np.sum([values for _, values in parts.values()], axis=0).max(initial=0))
    scale, unit = unit_of(longest, in_ns)
    return stacked_bars(labels, {name: (color, values / scale) for name, (color, values) in parts.items()}, title, f"time ({unit})")


def unit_of(longest: int, in_ns: bool) -> tuple[int, str]:
    """What to divide times by, and what they are then."""
    return next(((n, unit) for n, unit in UNITS if longest >= n), UNITS[-1]) if in_ns else (1, "ticks")


def stacked_bars(labels: Sequence[str], parts: Parts, title: str, axis: str) -> Any:
    """A bar for each label, the first one on top."""
    figure, axes = new_figure(height=max(AROUND + BAR * len(labels), 2.5))
    places, left = np.arange(len(labels)), np.zeros(len(labels))
    for name, (color, values) in parts.items():
        if np.any(values):
            axes.barh(places, values, left=left, color=color, label=name, height=0.8)
            left = left + values
    axes.set_yticks(places, [shortened(label) for label in labels])
    axes.set(xlabel=axis, ylim=(max(len(labels), 1) - 0.5, -0.5), xlim=(0, 1.05 * left.max(initial=0) or 1))
    finish(figure, axes, title, legend=False)
    if axes.get_legend_handles_labels()[0]:  # above the bars, which may be anywhere
        axes.legend(fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=6, frameon=False)
    return figure


# ---- what all share ----


def shortened(text: str, most: int = 48) -> str:
    """A label that leaves room for the picture; names may hold anything, and a dollar would begin a formula."""
    printable = "".join(c if c.isprintable() else "?" for c in text)
    cut = printable if len(printable) <= most else f"{printable[: most - 1]}…"
    return cut.replace("$", r"\$")


def new_figure(rows: int = 1, height: float = HEIGHT) -> tuple[Any, Any]:
    figure = require("matplotlib.figure", "plot").Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
    share = {"sharex": True, "height_ratios": (3, 1)} if rows > 1 else {}
    return figure, figure.subplots(rows, **share)


def finish(figure: Any, axes: Any, title: str, *, legend: bool = True) -> None:
    figure.suptitle(shortened(title, 100), fontsize="medium")
    for one in figure.axes:
        one.grid(visible=True, which="major", linewidth=0.4, alpha=0.6)
        one.set_axisbelow(True)
    if legend and axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")
