"""The texts beside the events: one that is damaged costs itself alone. It counts as absent, and is remembered."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

from ..errors import DamageError, DamageWarning, FormatError, FtbufError
from .model import METADATA, Container, Problem

PARTS: dict[str, Callable[[Container], bytes | None]] = {
    "kallsyms": lambda c: c.kallsyms(),
    "printk_formats": lambda c: c.printk_formats(),
    "saved_cmdlines": lambda c: c.saved_cmdlines(),
    "saved_tgids": lambda c: c.saved_tgids(),
    "modules": lambda c: c.tracing_file("modules"),
    "btf": lambda c: c.btf(),
}


def problem_of(error: FtbufError, what: str, path: str) -> Problem:
    """The row of ``problems`` for a part of a recording that cannot be read."""
    status, offset = (error.status, error.offset or 0) if isinstance(error, DamageError) else (METADATA, 0)
    text = str(error).removeprefix(f"{path}: ")
    return Problem(-1, offset, status, 0, "", text if text.startswith(what) else f"{what}: {text}")


class Parts:
    """Reads a container's texts; shared by all views of a recording.

    Attributes
    ----------
    errors : {"raise", "warn", "skip"}
        What the trace was opened with: whether a damaged part is warned of when something goes on without it ("raise" and
        "warn"), and whether ``require`` raises.
    """

    def __init__(self, container: Container, errors: str = "skip") -> None:
        self._container = container
        self.errors = errors
        self._noted: dict[str, DamageError | FormatError] = {}
        self._told: set[str] = set()
        self._whole: set[str] = set()  # parts that were read: not read again to find damage

    def read(self, *names: str) -> list[bytes]:
        """The texts of some parts; what is absent or damaged is empty."""
        return [self._read(name, quiet=False) for name in names]

    def require(self, *names: str) -> None:
        """Raise under ``errors="raise"`` where one of the parts is damaged: for who asks for just that part."""
        for name in names:
            self._read(name, quiet=self.errors == "raise")
            if self.errors == "raise" and name in self._noted:
                raise self._noted[name]

    def is_damaged(self, name: str) -> bool:
        """Whether a part that was read is damaged."""
        return name in self._noted

    def format_index(self, *, quiet: bool = False) -> Mapping[tuple[str, str], int]:
        """Of the container; where a part of it is damaged, that is raised under ``errors="raise"``, else noted."""
        index = self._container.format_index()
        for number, error in enumerate(self._container.format_errors, 1):
            if self.errors == "raise" and not quiet:
                raise error
            self.note(f"event formats ({number})", error, quiet=quiet)
        return index

    def problems(self) -> list[Problem]:
        """What of all parts is damaged, and what else was noted."""
        for name in [name for name in PARTS if name not in self._whole]:
            self._read(name, quiet=True)
        self.format_index(quiet=True)
        return [problem_of(error, name, self._container.path) for name, error in self._noted.items()]

    def note(self, what: str, error: DamageError | FormatError, *, quiet: bool = False) -> None:
        """Remember what cannot be read; say so once, unless nobody wants to hear."""
        self._noted.setdefault(what, error)
        if not quiet and self.errors != "skip" and what not in self._told:
            self._told.add(what)
            problem = problem_of(error, what, self._container.path)
            warnings.warn(f"{problem.detail} [{problem.status}]", DamageWarning, stacklevel=4)

    def _read(self, name: str, quiet: bool) -> bytes:
        known = self._noted.get(name)
        if known is None:
            try:
                text = PARTS[name](self._container) or b""
                self._whole.add(name)
                return text
            except (DamageError, FormatError) as error:
                known = error
        self.note(name, known, quiet=quiet)
        return b""
