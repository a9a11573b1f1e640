"""What commands share."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..engine import Judge
from ..errors import BufferWarning, DamageWarning, EventNotFoundError, FtbufError
from ..texts import printable
from ..trace import Trace, open
from . import UsageError


@contextmanager
def opened(path: str | list[str], *, quiet: bool = False) -> Iterator[tuple[Trace, list[str]]]:
    """A trace read with errors="warn": all that can be read is; what was damaged is said on stderr.

    Yields the trace and the list of what was said, so that a command can exit with 1.
    """
    said: list[str] = []
    path = [source_of(one) for one in path] if isinstance(path, list) else source_of(path)
    name = path if isinstance(path, str) else ", ".join(path)
    with warnings.catch_warnings():
        warnings.simplefilter("always", DamageWarning)
        warnings.simplefilter("always", BufferWarning)
        warnings.showwarning = lambda message, kind, *_, **__: say([] if kind is BufferWarning else said, f"{name}: {message}",
                                                                quiet=quiet)
        with open(path, errors="warn") as trace:
            judge = Judge("warn")
            for problem in (p for file in trace.recording.files for p in file.container.problems):
                judge.note(problem)
            judge.finish()
            yield trace, said


def source_of(path: str) -> str:
    """The file of a name: - is standard input."""
    return "/dev/stdin" if path == "-" else path


def at_least(least: int) -> Callable[[str], int]:
    """The type of an option that is a number, and not below another."""
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} on")
        return number
    return parse


@contextmanager
def usage_errors() -> Iterator[None]:
    """A value that an option cannot have, as a recording shows, is wrong usage; so is an event that it does not have."""
    try:
        yield
    except EventNotFoundError as error:
        raise UsageError(str(error)) from None
    except FtbufError:
        raise
    except ValueError as error:
        raise UsageError(str(error)) from None


def say_damage(trace: Trace, said: list[str]) -> None:
    """For commands that count without decoding: what is damaged is listed, so say that it is."""
    if trace.unknown_events:
        say(said, f"{trace.unknown_events} records have no event format")
    damaged = trace.problems.num_rows
    if damaged:
        say(said, f"{damaged} damaged places: see ftbuf check")


def say_nothing(said: list[str], path: str, rows: int) -> None:
    """For analyses: where the recording has nothing of what was asked for, say so, and exit with 1."""
    if not rows:
        say(said, f"{path}: nothing of what was asked for is recorded")


def say(said: list[str], message: str, *, quiet: bool = False) -> None:
    if message not in said:
        said.append(message)
        if not quiet:
            print(printable(f"ftbuf: {message}"), file=sys.stderr)


def as_json(value: Any) -> str:
    return json.dumps(value, default=plain, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace").decode()


def plain(value: Any) -> Any:
    """What json does not know: numpy numbers and arrays, dataclasses, bytes."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value)


def print_lines(lines: Iterable[str]) -> None:
    """As a terminal can show them. A line may begin with an empty one."""
    for line in lines:
        sys.stdout.write("\n".join(map(printable, line.split("\n"))) + "\n")
