"""Several files as one recording, merged by corrected time: a host with its guests, or parts of one long trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from .clock import Correction
from .engine import Source
from .formats import EventFormat
from .names import Comms, Tgids
from .recording import Pair, Recording, trace_id
from .requests import shared_columns


class Merged(Recording):
    """Recordings of single files behind the face of one.

    Every file's own formats, names and clock decode its own records. What a recording has once (symbols, options,
    ``comms``) is that of the first file; each file's own is in ``files``.
    """

    def __init__(self, files: Sequence[Recording]) -> None:
        self._files = tuple(files)
        self.labels = file_labels([f.container.path for f in files])
        buffers = [replace(b, name=f"{label}:{b.name}" if b.name else label)
                   for label, file in zip(self.labels, files, strict=True) for b in file.buffers]
        super().__init__(files[0].container, buffers, files[0].correction)
        self.parts = files[0].parts

    @property
    def files(self) -> Sequence[Recording]:
        return self._files

    def corrected(self, change: Callable[[Correction], Correction]) -> Recording:
        return Merged([f.corrected(change) for f in self._files])

    def joined(self, buffer: str) -> list[str]:
        """This buffer, and those of its name in other files of the same recording: parts of it, as splitting it made them."""
        own = [(i, b.name) for i, file in enumerate(self._files) for b in file.buffers]
        names = [b.name for b in self.buffers]
        file, name = own[names.index(buffer)]
        ids = [trace_id(f.container) for f in self._files]
        return [buffer, *(other for other, (i, its) in zip(names, own, strict=True)
                          if i != file and its == name and ids[i] is not None and ids[i] == ids[file])]

    def sources(self) -> list[Source]:
        """Every stream, in merge order: by file, then buffer, then CPU."""
        out: list[Source] = []
        base = 0
        for i, file in enumerate(self._files):
            for source in file.sources():
                buffer = base + source.buffer
                out.append(replace(source, buffer=buffer, buffer_name=self.buffers[buffer].name, file=i))
            base += len(file.buffers)
        return out

    @cached_property
    def format_index(self) -> Mapping[Pair, int]:
        """The events of all files; the numbers mean nothing."""
        pairs = dict.fromkeys(pair for file in self._files for pair in file.format_index)
        return {pair: i for i, pair in enumerate(pairs)}

    def format(self, system: str, event: str) -> EventFormat:
        """The event's format in the first file that has it."""
        file = next((f for f in self._files if (system, event) in f.format_index), self._files[0])
        return file.format(system, event)

    def columns(self, pair: Pair) -> list[str]:
        """Columns that the event has in every file that has it."""
        return shared_columns(self, pair)

    def snapshot(self) -> Recording | None:
        found = [s for f in self._files if (s := f.snapshot()) is not None]
        return Merged(found) if found else None

    @property
    def known_comms(self) -> Comms:
        return self._files[0].known_comms

    @property
    def known_tgids(self) -> Tgids:
        return self._files[0].known_tgids

    def close(self) -> None:
        for file in self._files:
            file.close()
        self._closed.set()


def file_labels(paths: Sequence[str]) -> list[str]:
    """A short, distinct name for each file: as much of the end of its path as no other has, else its path and a number."""
    parts = [path.rstrip("/").split("/") for path in paths]
    labels = []
    for path, own in zip(paths, parts, strict=True):
        others = [other for other in parts if other != own]
        depth = next((n for n in range(1, len(own)) if own[-n] and all(own[-n:] != other[-n:] for other in others)), len(own))
        labels.append("/".join(own[-depth:]) or path)
    count = Counter(labels)
    return [label if count[label] == 1 else f"{path}#{i}" for i, (label, path) in enumerate(zip(labels, paths, strict=True))]
