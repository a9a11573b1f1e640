"""ftbuf events FILE: the events a recording can hold, and their fields."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import Any

from ..errors import FormatError
from ..trace import EventView, Trace
from .common import as_json, opened, print_lines, say_damage, usage_errors

NAME = "events"
HELP = "list the events that can occur, with their ids, counts and fields"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a trace.dat, or a tracefs-shaped directory")
    parser.add_argument("-e", "--event", action="append", help="only this event (may be given several times)")
    parser.add_argument("--occurring", action="store_true", help="only events that do occur")
    parser.add_argument("--fields", action="store_true", help="also the fields: type, offset, size")
    parser.add_argument("--check", action="store_true",
                        help="only events whose print format cannot be understood, and why: they print their fields")
    parser.add_argument("--where", metavar="FILTER", help="count only records that match: 'prev_pid != 0'")
    parser.add_argument("--json", action="store_true", help="a JSON list")


def run(options: argparse.Namespace) -> int:
    return check(options) if options.check else show(options)


def show(options: argparse.Namespace) -> int:
    with opened(options.file) as (whole, said):
        trace = whole.window(where=options.where)
        counts = trace.events
        say_damage(whole, said)
        rows = [describe(trace, view, counts.get(view.key, 0)) for view in chosen(trace, options)]
        if options.json:
            print(as_json(rows))
            return int(bool(said))
        for row in rows:
            print_lines([f"{row['id']:>6} {row['count']:>10} {row['system']}:{row['name']}"])
            print_lines(f"{'':>19}{field['offset']:>4} {field['size']:>4} {field['declaration']}"
                        for field in (row["fields"] if options.fields else ()))
        return int(bool(said))


def chosen(trace: Trace, options: argparse.Namespace) -> list[EventView]:
    with usage_errors():
        return [trace[name] for name in options.event or (trace.events if options.occurring else trace)]


def check(options: argparse.Namespace) -> int:
    with opened(options.file) as (trace, _):
        views = chosen(trace, options)
        rows = list(refused(trace, views))
        if options.json:
            print(as_json(rows))
            return 0
        print_lines(f"{row['system']}:{row['name']}: {row['reason']}" for row in rows)
        print(f"{len(views)} events, {len(rows)} of them with a print format that cannot be understood")
        return 0


def refused(trace: Trace, views: Iterable[EventView]) -> Iterator[dict[str, str]]:
    """The events whose print format cannot be understood, and why."""
    for view in views:
        reason = why_not(trace, view)
        if reason is not None:
            yield {"system": view.system, "name": view.name, "reason": reason}


def why_not(trace: Trace, view: EventView) -> str | None:
    """Why an event's print format cannot be understood, in the first file that has it; None where it can."""
    from ..report.texts import refusal

    pair = view.system, view.name
    recording = next(file for file in trace.recording.files if pair in file.format_index)
    try:
        return refusal(recording, recording.format(*pair))
    except FormatError as error:
        return f"the format itself: {error}"


def describe(trace: Trace, view: EventView, count: int) -> dict[str, Any]:
    fmt = trace.recording.format_or_common((view.system, view.name))
    fields = [{"name": f.name, "type": f.type, "declaration": f.declaration, "offset": f.offset, "size": f.size,
               "signed": f.signed, "kind": f.kind.value, "where": f.where.value} for f in fmt.fields]
    return {"system": fmt.system, "name": fmt.name, "id": fmt.id, "count": count, "fields": fields}
