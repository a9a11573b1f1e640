"""Text of events as the layers below the reports offer it: they know who writes it only by what the door provides.

``trace`` knows no text. What its classes offer of it stands here, and is written by ``ftbuf.report``, which is brought in
when it is first asked for: ``ftbuf/__init__.py``, which may know every floor, says where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np


class Writer(Protocol):
    """What writes texts."""

    def lines(self, trace: Any, style: str, options: dict[str, Any]) -> Iterator[str]: ...
    def bodies(self, trace: Any, event: str, style: str) -> np.ndarray: ...
    def event_lines(self, recording: Any, buffers: Sequence[str]) -> Callable[[Any], str]: ...


_find: list[Callable[[], Writer]] = []


def provide(find: Callable[[], Writer]) -> None:
    """Say where texts are written."""
    _find[:] = [find]


def writer() -> Writer:
    return _find[0]()


class TraceTexts:
    """The part of Trace that is text."""

    def lines(self, style: str = "trace-cmd", **options: Any) -> Iterator[str]:
        """The lines that ``ftbuf report`` prints, without their line ends, in bounded memory.

        Parameters
        ----------
        style : {"trace-cmd", "kernel"}
            The layout of trace-cmd's report, or that of the kernel's own ``trace`` file.
        **options
            ``heading=False``: without the lines above the first event. trace-cmd's style has ``latency`` (-l),
            ``nanoseconds`` (-t), ``raw`` (-R), ``raw_events`` (-r), ``plugins`` (False: -N), ``ts_diff``, ``align_ts``,
            ``raw_ts``, ``ts_offset``, ``ts2secs``, ``tail``, ``retval_skip``, ``retval_dec`` and ``retval_hex``; the
            kernel's has ``buffer`` ("main" or "snapshot") and ``options`` (a list: what -O takes).

        Returns
        -------
        iterator of str
            Bytes that are no UTF-8 are escapes (``\\xNN``): the lines are for printing.

        Raises
        ------
        TypeError
            An option is unknown, or not of its type.
        ValueError
            There is no such style, kernel option or buffer.
        """
        return writer().lines(self, style, options)


class ViewTexts:
    """The part of EventView that is text."""

    _trace: Any
    _pair: tuple[str, str]

    def text(self, style: str = "kernel") -> np.ndarray:
        """The text of each event, without the columns before it: its print format, filled in.

        Parameters
        ----------
        style : {"kernel", "trace-cmd"}
            As the kernel prints it, or as trace-cmd's report does, whose plugins print some events otherwise.

        Returns
        -------
        numpy.ndarray
            Read-only, of str: one a row of ``table()``, in the same order.
        """
        return writer().bodies(self._trace, ":".join(self._pair), style)


def printable(text: str) -> str:
    """What a terminal can show in one line: names may hold any byte."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else "".join(f"\\x{b:02x}" for b in c.encode("utf-8", "surrogateescape"))
                   for c in text)
