"""A trace in a few lines: what print(trace) and a notebook show."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from .durations import seconds_text
from .texts import printable

if TYPE_CHECKING:
    from .trace import Trace

TOP = 12  # events named in the summary


def seconds(ts: int | None) -> str:
    return "-" if ts is None else seconds_text(ts)


def rows(trace: Trace) -> list[tuple[str, str]]:
    info, events = trace.info, trace.events
    in_ns = info["clock_unit"] == "ns"
    start, end = trace.start, trace.end
    show: Any = seconds if in_ns else lambda ts: "-" if ts is None else str(ts)
    counts = trace.lost["count"]
    known, unknown = int(counts[counts >= 0].sum()), int((counts < 0).sum())
    most = sorted(events.items(), key=lambda item: -item[1])
    more = [f"and {len(most) - TOP} more"] if len(most) > TOP else []
    named = ", ".join([*(f"{name} {n}" for name, n in most[:TOP]), *more])
    out = [
        ("recording", f"{info['path']} ({info['kind']})"),
        ("kernel", info["kernel"] or "-"),
        ("clock", f"{info['clock']} ({info['clock_unit']})"),
        ("CPUs", ", ".join(map(str, info["cpus"])) or "none"),
        ("time", f"{show(start)} to {show(end)}"),
        ("events", f"{sum(events.values())}: {named}" if events else "0"),
        ("lost", f"{known}" + (f", and {unknown} gaps of unknown size" if unknown else "")),
    ]
    if trace.unknown_events:
        out.insert(-1, ("unknown events", f"{trace.unknown_events} records have no event format"))
    names = [b["name"] for b in info["buffers"]]
    if len(names) > 1:
        out.insert(4, ("buffers", ", ".join(n or "(top)" for n in names)))
    if info["symbols"] == "hidden":
        out.append(("symbols", "hidden from the one who recorded: every address is zero"))
    if trace.problems.num_rows:
        out.append(("damaged", f"{trace.problems.num_rows} places: see problems"))
    if trace.text is not None:
        out.append(("text", f"{len(trace.text.splitlines())} lines"))
    return out


def summary_text(trace: Trace) -> str:
    return "\n".join(f"{name + ':':<10} {printable(value)}" for name, value in rows(trace))


def summary_html(trace: Trace) -> str:
    body = "".join(f"<tr><th>{html.escape(n)}</th><td>{html.escape(printable(v))}</td></tr>" for n, v in rows(trace))
    return f"<table>{body}</table>"
