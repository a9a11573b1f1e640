"""What pictures are made of: figures, histograms, bars, and the labels on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..table import require

DPI = 120
WIDTH, HEIGHT, BAR, AROUND = 9.0, 5.0, 0.3, 1.6  # inches: of a picture; of a bar and of what is around bars
MUCH = 20  # an axis of numbers that differ by more is logarithmic
BEHIND = 0.2  # of an axis: room for what stands at the ends of bars
ZERO = 0.02  # of a logarithmic axis: the bar of zeros, for which such an axis has no place of its own
UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us"), (1, "ns"))

# ---- figures ----


def new_figure(height: float = HEIGHT, **grid: Any) -> tuple[Any, Any]:
    """A figure and its axes; ``grid`` is for ``Figure.subplots``."""
    figure = require("matplotlib.figure", "plot").Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
    return figure, figure.subplots(**grid)


def finish(figure: Any, axes: Any, *titles: str, legend: bool = True) -> None:
    """With a line of title for each."""
    figure.suptitle("\n".join(shortened(title, 100) for title in titles), fontsize="medium")
    for one in figure.axes:
        one.grid(visible=True, which="major", linewidth=0.4, alpha=0.6)
        one.set_axisbelow(True)
    if legend and axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")


def make_log(axes: Any, axis: str) -> None:
    """With plain numbers on it."""
    axes.set(**{f"{axis}scale": "log"})
    getattr(axes, f"{axis}axis").set_major_formatter("{x:g}")
    getattr(axes, f"{axis}axis").set_minor_formatter("")


# ---- labels ----


def shortened(text: str, most: int = 48) -> str:
    """A label that leaves room for the picture; names may hold anything, and a dollar would begin a formula."""
    printable = "".join(c if c.isprintable() else "?" for c in text)
    cut = printable if len(printable) <= most else f"{printable[: most - 1]}…"
    return cut.replace("$", r"\$")


def number_text(value: float) -> str:
    """Four digits, or all of them before the point."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def unit_of(longest: int, in_ns: bool) -> tuple[int, str]:
    """What to divide times by, and what they are then."""
    return next(((n, unit) for n, unit in UNITS if longest >= n), UNITS[-1]) if in_ns else (1, "ticks")


# ---- histograms ----


@dataclass(frozen=True, slots=True)
class Histogram:
    """Buckets from ``low`` to below ``high``, which need not meet, their heights, and how they look."""

    low: np.ndarray
    high: np.ndarray
    heights: np.ndarray
    look: Mapping[str, Any]
    is_filled: bool = False


def draw_histograms(axes: Any, all_of: Sequence[Histogram], unit: str) -> float:
    """Histograms over each other, the axes as far as they reach, logarithmic where that is far: where zeros are drawn."""
    found = [one for one in all_of if len(one.low)]
    if not found:
        return 0.0
    low, high, heights = (np.concatenate([getattr(one, name) for one in found]) for name in ("low", "high", "heights"))
    is_log, limits, zero = horizontal(low, high)
    for one in found:
        draw_steps(axes, moved(one, zero))
    if is_log:
        make_log(axes, "x")
    axes.set_xlim(limits)
    some = heights[heights > 0]
    if len(some) and some.max() > MUCH * some.min():
        make_log(axes, "y")
    axes.set_ylim(bottom=some.min() / 2 if axes.get_yscale() == "log" else 0)
    at = (zero[0] * zero[1]) ** 0.5 if is_log else sum(zero) / 2
    if is_log and not low.all():
        axes.annotate(f"0 {unit}", (at, heights[low == 0].max()), ha="center", va="bottom", fontsize="small")
    return at


def horizontal(low: np.ndarray, high: np.ndarray) -> tuple[bool, tuple[float, float], tuple[float, float]]:
    """Whether the axis is logarithmic, its limits, and the ends of the bar of zeros."""
    has_zeros, most, above = bool((low == 0).any()), float(high.max()), low[low > 0]
    least = float(above.min(initial=most))
    if most > MUCH * least:
        step = (most / least) ** ZERO
        return True, (least / step ** (3 if has_zeros else 1), most * step), (least / step**2, least / step)
    width = float((high - low).min())
    left = 0.0 if has_zeros else least
    margin = ZERO * (most - left)
    return False, (left - margin, most + margin), (0.0, max(width, margin) if len(above) else width)


def moved(one: Histogram, zero: tuple[float, float]) -> Histogram:
    """With the bucket of zeros where they are drawn."""
    is_zero = one.low == 0
    return Histogram(np.where(is_zero, zero[0], one.low), np.where(is_zero, zero[1], one.high), one.heights, one.look,
                     one.is_filled)


def draw_steps(axes: Any, one: Histogram) -> None:
    """Where there is no bucket, it is zero."""
    edges = np.unique(np.concatenate([one.low, one.high]))
    heights = np.zeros(len(edges) - 1)
    heights[np.searchsorted(edges, one.low)] = one.heights
    axes.stairs(heights, edges, fill=one.is_filled, alpha=0.5 if one.is_filled else 1, **one.look)


# ---- bars ----

Parts = Mapping[str, tuple[str, np.ndarray]]  # what a part of a bar is -> its color, its length in each bar


def time_bars(labels: Sequence[str], parts: Parts, title: str, in_ns: bool) -> Any:
    """Bars of times, in a unit that suits the longest."""
    longest = int(np.sum([values for _, values in parts.values()], axis=0).max(initial=0))
    scale, unit = unit_of(longest, in_ns)
    scaled = {name: (color, values / scale) for name, (color, values) in parts.items()}
    return stacked_bars(labels, scaled, title, f"time ({unit})", lambda value: time_text(round(value * scale), in_ns))


def time_text(time: int, in_ns: bool) -> str:
    scale, unit = unit_of(time, in_ns)
    return f"{number_text(time / scale)} {unit}"


def stacked_bars(labels: Sequence[str], parts: Parts, title: str, axis: str, text: Callable[[float], str] = number_text) -> Any:
    """A bar for each label, the first one on top."""
    figure, axes = new_figure(height_of(len(labels)))
    draw_bars(axes, labels, parts, axis, text)
    finish(figure, axes, title, legend=False)
    return figure


def height_of(bars: int) -> float:
    return max(AROUND + BAR * bars, 2.5)


def draw_bars(axes: Any, labels: Sequence[str], parts: Parts, axis: str, text: Callable[[float], str] = number_text) -> None:
    """Bars with their values behind them. Parts of a bar can be compared on a linear axis only."""
    places, ends = np.arange(len(labels)), np.zeros(len(labels))
    shown = {name: part for name, part in parts.items() if np.any(part[1])}
    for name, (color, values) in shown.items():
        axes.barh(places, values, left=ends, color=color, label=name, height=0.8)
        ends = ends + values
    axes.set_yticks(places, [shortened(label) for label in labels])
    axes.set(xlabel=axis, ylim=(max(len(labels), 1) - 0.5, -0.5))
    least, most = ends[ends > 0].min(initial=np.inf), ends.max(initial=0)
    if len(shown) == 1 and most > MUCH * least:
        make_log(axes, "x")
        axes.set_xlim(least / 2, most * (2 * most / least) ** BEHIND)
    else:
        axes.set_xlim(0, (1 + BEHIND) * most or 1)
    for place, end in zip(places.tolist(), ends.tolist(), strict=True):
        axes.annotate(text(end), (max(end, axes.get_xlim()[0]), place), (3, 0), textcoords="offset points", va="center",
                      fontsize="x-small")
    if shown:  # above the bars, which may be anywhere
        axes.legend(fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=6, frameon=False)
