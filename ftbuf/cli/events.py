"""ftbuf events FILE: the events a recording can hold, and their fields."""

from __future__ import annotations

import argparse
from typing import Any

from ..trace import EventView
from .common import as_json, opened, say_damage

NAME = "events"
HELP = "list the events that can occur, with their ids, counts and fields"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a trace.dat, or a tracefs-shaped directory")
    parser.add_argument("-e", "--event", action="append", help="only this event (may be given several times)")
    parser.add_argument("--occurring", action="store_true", help="only events that do occur")
    parser.add_argument("--fields", action="store_true", help="also the fields: type, offset, size")
    parser.add_argument("--where", metavar="FILTER", help="count only records that match: 'prev_pid != 0'")
    parser.add_argument("--json", action="store_true", help="a JSON list")


def run(options: argparse.Namespace) -> int:
    with opened(options.file) as (whole, said):
        trace = whole.window(where=options.where)
        counts = trace.events
        say_damage(whole, said)
        names = options.event or list(counts if options.occurring else trace)
        rows = [describe(trace[name], counts.get(trace[name].key, 0)) for name in names]
        if options.json:
            print(as_json(rows))
            return int(bool(said))
        for row in rows:
            print(f"{row['id']:>6} {row['count']:>10} {row['system']}:{row['name']}")
            for field in row["fields"] if options.fields else ():
                print(f"{'':>19}{field['offset']:>4} {field['size']:>4} {field['declaration']}")
        return int(bool(said))


def describe(view: EventView, count: int) -> dict[str, Any]:
    fmt = view.format
    fields = [{"name": f.name, "type": f.type, "declaration": f.declaration, "offset": f.offset, "size": f.size,
               "signed": f.signed, "kind": f.kind.value, "where": f.where.value} for f in fmt.fields]
    return {"system": fmt.system, "name": fmt.name, "id": fmt.id, "count": count, "fields": fields}
