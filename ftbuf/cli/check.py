"""ftbuf check FILE: is a recording whole?"""

from __future__ import annotations

import argparse
import sys

from ..checkup import Checkup, Loss, check_up
from ..container import open_container
from ..engine import describe
from ..errors import FtbufError
from .common import as_json, print_lines, source_of
from .progress import Progress, page_count

NAME = "check"
HELP = "verify a recording page by page: what is damaged, what was lost; exit status 1 where it is damaged"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="+", help="a trace.dat, or a tracefs-shaped directory")
    parser.add_argument("--json", action="store_true", help="one JSON object per file")
    parser.add_argument("-q", "--quiet", action="store_true", help="only the last line of each file")


def run(options: argparse.Namespace) -> int:
    damaged = False
    for path in options.file:
        try:
            container = open_container(source_of(path))
        except (FtbufError, OSError) as error:
            damaged = True
            print(f"ftbuf check: {error}", file=sys.stderr)
            if options.json:
                print(as_json({"path": path, "damaged": True, "error": str(error)}))
            continue
        try:
            with Progress(NAME, page_count(container)):
                found = check_up(container)
        finally:
            container.close()
        damaged |= found.damaged
        show(found, options)
    return int(damaged)


def show(found: Checkup, options: argparse.Namespace) -> None:
    if options.json:
        print(as_json(found.to_dict()))
        return
    if not options.quiet:
        print_lines(f"damaged: {describe(problem)}" + (f", {problem.bytes} bytes" if problem.bytes else "")
                    for problem in found.problems)
        print_lines(f"lost: {describe_loss(loss)}" for loss in found.lost)
    print_lines([f"{found.path}: {summary(found)}"])


def describe_loss(loss: Loss) -> str:
    buffer = f"buffer {loss.buffer!r}, " if loss.buffer else ""
    count = "an unknown number of events" if loss.count is None else f"{loss.count} events"
    return f"{buffer}CPU {loss.cpu}: {count} before time {loss.after}"


def summary(found: Checkup) -> str:
    damage = ", ".join(f"{count} {status}" for status, count in sorted(found.counts.items()))
    lost = f"; {found.lost_events} events lost in {found.losses} gaps" if found.losses else ""
    return (f"{f'damaged: {damage}' if damage else 'whole'}; {found.kind}, {found.streams} streams, {found.pages} "
            f"sub-buffers, {found.events} events, {found.formats} formats{lost}")
