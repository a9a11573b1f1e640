"""ftbuf convert FILE -o OUT: another version or compression; a directory to a file."""

from __future__ import annotations

import argparse
import glob
import os
from collections.abc import Iterator

from ..container.tracedat import MAGIC
from ..rewrite import convert
from . import UsageError
from .common import opened, source_of
from .progress import Progress, page_count

NAME = "convert"
HELP = "write a recording as trace.dat: another version or compression, or from a tracefs-shaped directory"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a trace.dat, or a tracefs-shaped directory")
    parser.add_argument("--snapshot", action="store_true", help="of a directory: its snapshot")
    add_output_arguments(parser)


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the file to write")
    parser.add_argument("--version", type=int, choices=(6, 7), help="of the trace.dat format")
    parser.add_argument("--compression", choices=("none", "zlib", "zstd"), help="version 7 only")


def check_output(version: int | None, options: argparse.Namespace) -> None:
    """The version that is written has to know the compression that was asked for."""
    if version == 6 and options.compression not in (None, "none"):
        raise UsageError(f"version 6 cannot be compressed: --compression {options.compression} is for version 7")
    if options.output == "-":
        raise UsageError("-o -: a trace.dat is written to a file; ./- is one of that name")
    outputs = [options.output] if not has_parts(options) else glob.glob(f"{glob.escape(options.output)}.[0-9]*")
    for path in filter(os.path.exists, outputs):
        if any(os.path.samefile(path, own) for own in files_of(source_of(options.file))):
            raise UsageError(f"{path} is what is read: give another file to write")


def has_parts(options: argparse.Namespace) -> bool:
    """Whether several files are to be written, ``OUT.1`` and so on."""
    return getattr(options, "parts", None) is not None or getattr(options, "every", None) is not None


def files_of(source: str) -> Iterator[str]:
    """The files of a recording. A trace.dat in a directory is none of them."""
    yield source
    for folder, _, names in os.walk(source):
        for path in (os.path.join(folder, name) for name in names):
            if os.path.isfile(path) and not (folder == source and is_tracedat(path)):
                yield path


def is_tracedat(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def run(options: argparse.Namespace) -> int:
    check_output(options.version, options)
    with opened(options.file) as (trace, said):
        with Progress(NAME, page_count(trace.recording.container)):
            convert(trace, options.output, version=options.version or 7, compression=options.compression,
                    snapshot=options.snapshot, errors="warn")
        return int(bool(said))
