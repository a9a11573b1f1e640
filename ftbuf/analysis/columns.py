"""Columns of one length, as the attributes of an object: rows on their way through an analysis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TypeVar

import numpy as np

C = TypeVar("C", bound="Columns")


class Columns:
    """The base of dataclasses whose fields are arrays of one length."""

    __slots__ = ()

    def taken(self: C, rows: np.ndarray) -> C:
        return type(self)(*(getattr(self, f.name)[rows] for f in fields(self)))  # type: ignore[arg-type]

    @classmethod
    def joined(cls: type[C], parts: Sequence[C]) -> C:
        names = [f.name for f in fields(cls)]  # type: ignore[arg-type]
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))  # type: ignore[arg-type]
