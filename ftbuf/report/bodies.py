"""An event's own text."""

from __future__ import annotations

from ..recording import Recording
from .record import LineRecord, Value


class EventTexts:
    """Prints events by their print fmt, as the kernel or as trace-cmd does."""

    def __init__(self, recording: Recording, *, kernel: bool, plugins: bool = True) -> None:
        self._recording = recording

    def text(self, record: LineRecord) -> bytes:
        return self.fields(record).lstrip()

    def fields(self, record: LineRecord) -> bytes:
        return b"".join(b" %s=%s" % (f.name.encode(), _plain(record.value(f.name))) for f in record.format.own_fields)


def _plain(value: Value) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
