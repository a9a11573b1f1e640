"""ftbuf report FILE: a recording as text, one line an event."""

from __future__ import annotations

import argparse
import sys

from .common import opened

NAME = "report"
HELP = "print a recording as text, one line an event"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a trace.dat, or a tracefs-shaped directory")


def run(options: argparse.Namespace) -> int:
    with opened(options.file) as (trace, said):
        write = sys.stdout.buffer.write
        for event in trace.records():
            write(str(event).encode("utf-8", "surrogateescape") + b"\n")
        return int(bool(said))
