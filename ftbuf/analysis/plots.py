"""Pictures of what analyses found: each function takes a result and gives a ``matplotlib.figure.Figure`` (extra ``plot``).

Figures are made without pyplot: they need no display, belong to nobody else, and are written by ``figure.savefig``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..durations import seconds_text
from ..table import Table, require
from .critical import CriticalSections
from .drawing import (
    Histogram,
    draw_bars,
    draw_histograms,
    finish,
    height_of,
    new_figure,
    number_text,
    shortened,
    stacked_bars,
    time_bars,
    unit_of,
)
from .loss import Losses
from .osnoise import Noise
from .power import NOT_IDLE, NOT_KNOWN
from .tables import rows_of
from .tracers import LatencyReport
from .wakeup import WakeupLatency

MOST = 20  # bars
MOST_LINES = 8  # of one picture: more cannot be told apart
MARKED = ("p50", "p99", "p99.9", "max")
STYLES = ("--", "-.", ":", "-")
RUN, WAIT, SLEEP, DISK, STOPPED, UNKNOWN, PLAIN, INSIDE = (
    "tab:green", "tab:orange", "lightsteelblue", "tab:red", "tab:purple", "lightgray", "tab:blue", "lightsteelblue")
LOST = "tab:red"
FLAMES = ("#f4a261", "#e9c46a", "#f6bd60", "#f08a5d", "#e76f51", "#f9c784", "#fcaf58", "#ee9b7a")
LEAST_SHARE, DEEPEST = 1000, 50  # of a tree: the narrowest call is one LEAST_SHARE-th of all
LETTERS, LEAST_LETTERS = 125, 4  # letters that fit into the width of a picture; a label of fewer says nothing
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
    histograms = []
    for i, found in enumerate(results):
        parts = {names[i]: found.histogram} if together else parts_of(found)
        for j, (name, rows) in enumerate(parts.items()):
            low, high, counts = summed(rows, scale)
            histograms.append(Histogram(
                low, high, 100 * counts / max(counts.sum(), 1) if together else counts,
                {"color": f"C{(i + j) % 10}", "label": shortened(f"{name} (n={counts.sum()})")}, is_filled=len(parts) == 1))
    zero = draw_histograms(axes, histograms, unit)
    for i, found in enumerate(results):
        mark_percentiles(axes, found.total, scale, unit, zero=zero, color=f"C{i % 10}" if together else "black")
    kind = "wakeup latency" if isinstance(result, WakeupLatency) else f"{result.kind} off"
    axes.set(xlabel=f"{kind} ({unit})", ylabel="share (%)" if together else "count")
    finish(figure, axes, kind.capitalize())
    return figure


def parts_of(found: WakeupLatency | CriticalSections) -> dict[str, Table]:
    """The histograms of CPUs, if the result has so few; else of all as one."""
    if found.by != "cpu" or not 1 < found.table.num_rows <= MOST_LINES:
        return {"all": found.histogram}
    return {f"CPU {cpu}": rows_of(found.histogram, found.histogram["cpu"] == cpu) for cpu in found.table["cpu"].tolist()}


def summed(histogram: Table, scale: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where buckets begin and end, and their counts, over all rows."""
    low, places = np.unique(histogram["low"], return_inverse=True)
    high, counts = np.zeros(len(low), np.int64), np.zeros(len(low), np.int64)
    high[places] = histogram["high"]
    np.add.at(counts, places, histogram["count"])
    return low / scale, (high + 1.0) / scale, counts  # the greatest int64 is one, too


def mark_percentiles(axes: Any, total: Table, scale: int, unit: str, *, zero: float, color: str) -> None:
    """Lines where percentiles and the maximum are."""
    if not int(total["count"][0]):
        return
    for name, style in zip(MARKED, STYLES, strict=True):
        if name in total:
            value = float(total[name][0]) / scale
            axes.axvline(value or zero, color=color, linestyle=style, linewidth=1, label=f"{name} {number_text(value)} {unit}")


def noise(found: Noise) -> Any:
    """How often each latency of timerlat, or sample of osnoise, was: a line for each CPU and context.

    Where there are neither, what the noise came from, or how much of it CPUs had.

    Parameters
    ----------
    found : Noise

    Returns
    -------
    matplotlib.figure.Figure
    """
    if not found.timerlat.num_rows and not found.samples.num_rows:
        return noise_sources(found.sources) if found.sources.num_rows else noise_of_cpus(found.osnoise)
    figure, axes = new_figure()
    is_timer = bool(found.timerlat.num_rows)
    tool, sums = ("timerlat", found.timerlat) if is_timer else ("osnoise", found.samples)
    rows = rows_of(found.distribution, found.distribution["tool"] == tool)
    is_by_cpu = sums.num_rows <= MOST_LINES
    of_sums, of_rows = noise_names(sums, is_by_cpu), noise_names(rows, is_by_cpu)
    contexts = list(dict.fromkeys(sums["context"].tolist()))
    histograms = []
    for i, name in enumerate(dict.fromkeys(of_sums)):
        own = np.array([n == name for n in of_sums], bool)
        low, high, counts = summed(rows_of(rows, np.array([n == name for n in of_rows], bool)), 1000)
        label = f"{name} (n={counts.sum()}, max {number_text(sums['max'][own].max() / 1000)} us)"
        color = f"C{sums['cpu'][own][0] % 10}" if is_by_cpu else f"C{i % 10}"
        style = STYLES[-1 - contexts.index(sums["context"][own][0]) % len(STYLES)]
        histograms.append(Histogram(low, high, counts, {"color": color, "linestyle": style, "label": label}))
    draw_histograms(axes, histograms, "us")
    axes.set(xlabel="timer latency (us)" if is_timer else "noise (us)", ylabel="count")
    finish(figure, axes, "Timer latency (timerlat)" if is_timer else "Samples of noise above the threshold (osnoise)")
    return figure


def noise_sources(found: Table) -> Any:
    columns = (found[name][:MOST].tolist() for name in ("kind", "id", "name", "count"))
    labels = [f"{kind} {name or number} ({count})" for kind, number, name, count in zip(*columns, strict=True)]
    return time_bars(labels, {"time": (PLAIN, found["time"][:MOST])}, "Sources of noise (how often)", in_ns=True)


def noise_of_cpus(found: Table) -> Any:
    labels = [f"CPU {cpu} ({periods})" for cpu, periods in zip(found["cpu"].tolist(), found["periods"].tolist(), strict=True)]
    parts = {"noise": (LOST, 1000 * found["noise"]), "without": (RUN, 1000 * (found["runtime"] - found["noise"]))}
    return time_bars(labels, parts, "Noise of CPUs (periods)", in_ns=True)


def noise_names(found: Table, is_by_cpu: bool) -> list[str]:
    """What each row is of: CPU and context; of many CPUs the context alone."""
    pairs = zip(found["cpu"].tolist(), found["context"].tolist(), strict=True)
    return [f"CPU {cpu} {context}".rstrip() if is_by_cpu else context or "all CPUs" for cpu, context in pairs]


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
    figure, axes = new_figure(nrows=2, sharex=True, height_ratios=(3, 1)) if has_lost else new_figure()
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
    axes.set(ylabel="events lost", ylim=(0, 1.25 * lost.max(initial=0) or 1))


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


def call_tree(found: Table, *, in_ns: bool = True) -> Any:
    """The calls of ``analysis.call_tree``, each below its caller and as wide as the time that it took, in all.

    Of the function tracer's records, which tell no times: as wide as there were calls. What is narrower than a thousandth of
    the picture is left out, and so is what lies deeper than 50 calls.

    Parameters
    ----------
    found : Table
    in_ns : bool
        Whether the recording's clock counts ns.

    Returns
    -------
    matplotlib.figure.Figure
    """
    timed = bool(found["time"].any())
    start, width = spans(found["depth"], found["caller"], found["time" if timed else "hit"])
    total = round(width[found["depth"] == 0].sum())
    rows = np.flatnonzero((width >= total / LEAST_SHARE) & (width > 0) & (found["depth"] < DEEPEST))
    scale, unit = unit_of(total, in_ns) if timed else (1, "calls")
    levels = int(found["depth"][rows].max(initial=0)) + 1
    figure, axes = new_figure(height_of(levels))
    depth, names = found["depth"][rows], [found["function"][i] for i in rows.tolist()]
    for level in range(levels):
        of_level = np.flatnonzero(depth == level).tolist()
        spots = [(start[rows[i]] / scale, width[rows[i]] / scale) for i in of_level]
        colors = [FLAMES[sum(names[i].encode("utf-8", "replace")) % len(FLAMES)] for i in of_level]
        axes.broken_barh(spots, (level, 1), facecolors=colors, edgecolors="white", linewidths=0.5)
        for i, (left, wide) in zip(of_level, spots, strict=True):
            room = int(LETTERS * wide * scale / total)
            if room >= LEAST_LETTERS:
                text = f"{names[i]} ({number_text(wide)} {unit})"
                axes.text(left, level + 0.5, " " + shortened(text if len(text) <= room else names[i], room), va="center",
                          fontsize="x-small", clip_on=True)
    axes.set(xlabel=f"time ({unit})" if timed else unit, xlim=(0, total / scale or 1), ylim=(levels, 0), yticks=[])
    left_out = found.num_rows - len(rows)
    less = f" ({left_out} of {found.num_rows} paths left out: too short, or too deep)" if left_out else ""
    finish(figure, axes, f"Calls by their callers{less}")
    axes.grid(visible=False)
    return figure


def spans(depth: np.ndarray, caller: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each row begins and how wide it is: below its caller, as wide as its value and at least as all below it."""
    width, below, start = value.astype(np.float64), np.zeros(len(value)), np.zeros(len(value))
    order = np.argsort(depth, kind="stable")  # callers come in the same order as those they call
    levels = np.split(order, np.searchsorted(depth[order], np.arange(1, int(depth.max(initial=0)) + 1)))
    for rows in levels[::-1]:
        width[rows] = np.maximum(width[rows], below[rows])
        inner = rows[caller[rows] >= 0]
        np.add.at(below, caller[inner], width[inner])
    for rows in levels:
        before = np.cumsum(width[rows]) - width[rows]
        is_first = np.concatenate([[True], caller[rows][1:] != caller[rows][:-1]])[: len(rows)]
        group = np.cumsum(is_first) - 1
        start[rows] = np.where(caller[rows] >= 0, start[caller[rows]], 0) + before - before[is_first][group]
    return start, width


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
    figure, (axes, places) = new_figure(height_of(len(rows)), ncols=2, sharey=True, width_ratios=(3, 2))
    share = delay[rows].sum() / max(int(delay[inside].sum()), 1)
    which = [f"the {len(rows)} longest of {len(inside)} steps: {share:.1%} of the time"] if len(rows) < len(inside) else []
    draw_bars(axes, labels, {"delay until the next step": (PLAIN, delay[rows] / scale)}, f"time ({unit})")
    draw_places(places, since[rows] / scale, delay[rows] / scale, float((since + delay)[inside].max(initial=0)) / scale)
    for one in (axes, places):
        one.tick_params("x", labelsize="small")
    places.set_xlabel(f"when ({unit} since the start)")
    finish(figure, axes, f"{found.tracer}: {found.latency_us} us, {found.comm}-{found.pid} on CPU {found.cpu}", *which,
           legend=False)
    return figure


def draw_places(axes: Any, start: np.ndarray, length: np.ndarray, end: float) -> None:
    """When, out of a whole, each bar's time was; short ones can be seen, too."""
    rows = np.arange(len(start))
    axes.barh(rows, np.full(len(rows), end), color=UNKNOWN, height=0.1)
    axes.barh(rows, length, left=start, color=PLAIN, edgecolor=PLAIN, linewidth=1.5, height=0.6)
    axes.set_xlim(-0.02 * end, 1.02 * end or 1)


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
