"""The command line: one module a command, with NAME, HELP, add_arguments(parser) and run(options) -> exit status."""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from .. import __version__
from ..errors import FilterError, FtbufError
from ..texts import printable
from . import UsageError

OK, DATA_ERROR, USAGE = 0, 1, 2
COMMANDS = ("info", "events", "report", "stat", "check", "split", "convert", "latency", "profile", "loss", "tasks")


def build_parser(modules: Sequence[Any]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ftbuf", description="Read Linux ftrace recordings.")
    parser.add_argument("--version", action="version", version=f"ftbuf {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in modules:
        child = commands.add_parser(module.NAME, help=module.HELP, description=module.HELP)
        module.add_arguments(child)
        child.set_defaults(run=module.run, refuse=child.error)
    return parser


def load(argv: Sequence[str]) -> list[Any]:
    """Only the command that was named is imported, unless it is unknown or help is wanted."""
    named = [a for a in argv[:1] if a in COMMANDS]
    return [importlib.import_module(f"ftbuf.cli.{name}") for name in named or COMMANDS]


def prepare() -> None:
    """Arrange the process for one command, before numpy is there: no threads for a linear algebra that is not used, and a
    collector that does not look through the tables being built."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(100_000, 50, 50)
    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup, or in the background of a script
            signal.signal(number, terminate)


def terminate(number: int, _: object) -> None:
    """End, with nothing half-written left behind, and without a traceback, also while modules are brought in."""
    sys.exit(128 + number)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Exit status: 0 ok, 1 data error, 2 usage."""
    if argv is None:
        prepare()
    arguments = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None:  # started with its standard output closed
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", closefd=False)
    options, unknown = build_parser(load(arguments)).parse_known_args(arguments)
    if unknown:  # with the usage of the command that was called, not of all
        options.refuse(f"unrecognized arguments: {' '.join(unknown)}")
    try:
        status = int(options.run(options))
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader went away: nothing more to say, also not when the interpreter flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (FtbufError, OSError, UsageError) as error:
        print("\n".join(map(printable, f"ftbuf {options.command}: {error}".split("\n"))), file=sys.stderr)
        return USAGE if isinstance(error, (FilterError, UsageError)) else DATA_ERROR
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
