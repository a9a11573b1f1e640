"""The family of exceptions. Each also derives from the builtin that callers already catch for that situation."""

from __future__ import annotations


class FtbufError(Exception):
    """Base of everything ftbuf raises on purpose."""


class FormatError(FtbufError, ValueError):
    """The input is not a trace, or its metadata cannot be understood. The message says what was found, and where."""


class UnsupportedError(FtbufError, NotImplementedError):
    """The input is well-formed, but of a kind that ftbuf does not read."""


class ClosedError(FtbufError, ValueError):
    """The trace was closed."""


class DamageError(FtbufError, ValueError):
    """A place in the data is damaged.

    Attributes
    ----------
    status : str
        Name of the defect (see ``ftbuf.STATUSES``).
    cpu : int or None
        The CPU whose stream it was met in.
    offset : int or None
        Byte offset in the file, or in the CPU's stream where there is no file.
    """

    def __init__(self, message: str, *, status: str, cpu: int | None = None, offset: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.cpu = cpu
        self.offset = offset


class TruncatedError(DamageError, EOFError):
    """The input ends before the data that its own tables promise."""


class CompressionError(DamageError):
    """A compressed chunk does not decompress to what its header promises."""


class DamageWarning(UserWarning):
    """Damage that was stepped over under ``errors="warn"``."""


class BufferWarning(UserWarning):
    """An analysis looks at one of several buffers that have the events it needs: those of instances, or of several machines."""


class EventNotFoundError(FtbufError, KeyError):
    """The trace has no such event; the message lists near names."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ColumnNotFoundError(FtbufError, KeyError):
    """The event has no such field; the message lists near names."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class FilterError(FtbufError, ValueError):
    """A ``where=`` expression cannot be understood; ``position`` is the index of the offending character."""

    def __init__(self, message: str, *, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class MissingDependencyError(FtbufError, ImportError):
    """An optional package is needed; the message names the extra to install."""
