"""A line on the terminal that says how far a command is."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ..progress import Passages, watched

if TYPE_CHECKING:
    from ..container.model import Container

EVERY = 0.5  # seconds


def page_count(container: Container) -> int:
    """The sub-buffers of a recording."""
    return sum(size // buffer.subbuf_size for buffer in container.buffers if buffer.subbuf_size
               for stream in buffer.streams for size in stream.sizes)


class Progress:
    """Says every half second how much was read; where standard error is no terminal, nothing.

    Parameters
    ----------
    what : str
        The command.
    expected : int
        Sub-buffers that it will read in all; 0: those of each pass, as it begins.
    prints : bool
        It prints while it reads: then, where that goes to the terminal, too, nothing is said.
    """

    def __init__(self, what: str, expected: int = 0, *, prints: bool = False) -> None:
        self._what, self._expected = what, expected
        self._on = sys.stderr is not None and sys.stderr.isatty() and not (prints and sys.stdout.isatty())
        self._text, self._most = 0, 0
        self._end = threading.Event()
        self._stack = ExitStack()

    def __enter__(self) -> Progress:
        if self._on:
            self._passages = self._stack.enter_context(watched(self._expected))
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def add(self, size: int) -> None:
        """So many more bytes were printed."""
        self._text += size

    def _watch(self) -> None:
        while not self._end.wait(EVERY):
            self._say(self._line(self._passages))

    def _line(self, passages: Passages) -> str:
        self._most = max(self._most, int(100 * passages.share()))
        text = f", {self._text / 1e6:.0f} MB of text" if self._text else ""
        return f"ftbuf {self._what}: {self._most} %{text}"

    def _say(self, text: str) -> None:
        sys.stderr.write(f"\r{text}\x1b[K")  # and clear the rest of the line
        sys.stderr.flush()

    def __exit__(self, *exc: object) -> None:
        if self._on:
            self._end.set()
            self._thread.join()
            self._stack.close()
            self._say("")
