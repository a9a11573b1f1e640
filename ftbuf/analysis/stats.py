"""Numbers in groups, added up step by step in memory that does not grow with the trace.

A group is anything that samples are told apart by (a task, a CPU, a function), numbered from 0: see ``Keys``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core

PERCENTILES = (50.0, 90.0, 99.0, 99.9)
FINENESS = 7  # a histogram has 1 << FINENESS buckets between a power of two and the next: each below 1 % wide
_OCTAVES = 64
_BUCKETS = _OCTAVES << FINENESS
SUMS = np.dtype([(name, np.int64) for name in ("count", "total", "min", "max", "last")])  # csrc/ftb_samples.h ftb_sample_sums
CELL = np.dtype([("cell", np.int64), ("count", np.int64)])  # ftb_sample_cell: group * _BUCKETS + bucket


class Keys:
    """Numbers (pids, addresses) to groups, numbered as they are met."""

    def __init__(self) -> None:
        self._core = _core.Keys()

    def __len__(self) -> int:
        return len(self._core)

    @property
    def values(self) -> np.ndarray:
        """The key of each group, int64."""
        return np.frombuffer(self._core.values(), np.int64)

    def groups(self, keys: np.ndarray) -> np.ndarray:
        """The group of each key; a key not met before gets the next group."""
        return np.frombuffer(self._core.groups(np.ascontiguousarray(signed(keys))), np.int32)


def signed(keys: np.ndarray) -> np.ndarray:
    """As int64: addresses of the kernel's half become negative, and stay distinct."""
    return keys.view(np.int64) if keys.dtype == np.uint64 else keys.astype(np.int64, copy=False)


class Samples:
    """Count, sum, least, greatest, last and distribution of non-negative int64 samples (ns, say), by group.

    The distribution is kept in buckets less than 1 % wide; ``percentile`` tells a bucket's upper end, ``histogram`` has
    the counts.
    """

    def __init__(self) -> None:
        self._core: Any = _core.Samples()
        self._groups = 0  # at least so many
        self._rows = np.zeros(0, SUMS)
        self._cells = np.zeros(0, CELL)  # ascending
        self._is_stale = False

    def __len__(self) -> int:
        return len(self._settled()._rows)

    def add(self, groups: np.ndarray, values: np.ndarray) -> None:
        """Samples, the later of a group behind the earlier. A negative one counts as 0."""
        self._core.add(np.ascontiguousarray(groups, np.int32), np.ascontiguousarray(values, np.int64))
        self._is_stale = True

    def grow(self, groups: int) -> None:
        """Make room for so many groups: those without samples count 0."""
        self._groups = max(self._groups, groups)
        self._is_stale = self._is_stale or self._groups > len(self._rows)

    def _settled(self) -> Samples:
        if self._is_stale:
            rows = np.frombuffer(self._core.sums(), SUMS)
            self._rows = np.concatenate([rows, no_sums(self._groups - len(rows))])
            cells = np.frombuffer(self._core.cells(), CELL)
            self._cells = cells[np.argsort(cells["cell"])]
            self._is_stale = False
        return self

    @property
    def count(self) -> np.ndarray:
        return self._settled()._rows["count"]

    @property
    def total(self) -> np.ndarray:
        return self._settled()._rows["total"]

    @property
    def max(self) -> np.ndarray:
        return self._settled()._rows["max"]

    @property
    def last(self) -> np.ndarray:
        return self._settled()._rows["last"]

    def merged(self, into: np.ndarray, groups: int) -> Samples:
        """Groups put together, to be read only: ``into`` has the new group of each. Which was the last is not known then."""
        old, out = self._settled(), Samples()
        out._rows = no_sums(groups)
        for name in ("count", "total"):
            np.add.at(out._rows[name], into, old._rows[name])
        np.minimum.at(out._rows["min"], into, old._rows["min"])
        np.maximum.at(out._rows["max"], into, old._rows["max"])
        group, bucket = np.divmod(old._cells["cell"], _BUCKETS)
        cells, places = np.unique(into[group] * np.int64(_BUCKETS) + bucket, return_inverse=True)
        out._cells = np.zeros(len(cells), CELL)
        out._cells["cell"] = cells
        np.add.at(out._cells["count"], places, old._cells["count"])
        return out

    @property
    def mean(self) -> np.ndarray:
        """NaN for a group without samples."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.total / np.where(self.count, self.count, np.nan))

    @property
    def least(self) -> np.ndarray:
        """``min``, 0 for a group without samples."""
        return np.where(self.count > 0, self._settled()._rows["min"], 0)

    def percentile(self, percent: float) -> np.ndarray:
        """For each group the value that so many percent of its samples do not exceed: at most 1 % above the real one.

        By nearest rank; never above the greatest sample. 0 for a group without samples.
        """
        cells = self._settled()._cells
        upto = np.cumsum(cells["count"])
        before = np.concatenate([[0], np.cumsum(self.count)[:-1]]) if len(self.count) else np.zeros(0, np.int64)
        rank = np.clip(np.ceil(self.count * (percent / 100)).astype(np.int64), 1, None)
        if not len(cells):
            return np.zeros(len(self.count), np.int64)
        at = np.minimum(np.searchsorted(upto, before + rank), len(cells) - 1)
        _, high = bucket_bounds(cells["cell"][at] % _BUCKETS)
        return np.where(self.count > 0, np.clip(high, self.least, self.max), 0)

    def percentiles(self, percents: Sequence[float] = PERCENTILES) -> dict[str, np.ndarray]:
        """As columns: p50, p90, p99, p99.9."""
        return {f"p{percent:g}": self.percentile(percent) for percent in percents}

    def histogram(self, group: int | None = None, *, fineness: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Low end, high end (inclusive) and count of each bucket with samples, of one group or of all.

        ``fineness``: 0 for one bucket between a power of two and the next, 1 for two, ... up to FINENESS.
        """
        groups, *rest = self.histograms(fineness=fineness, together=group is None)
        low, high, count = (column[groups == (group or 0)] for column in rest)
        return low, high, count

    def histograms(self, *, fineness: int = 0, together: bool = False
                   ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Group, low end, high end and count of each bucket, by group; all groups as group 0 if ``together``."""
        groups, buckets = np.divmod(self._settled()._cells["cell"], _BUCKETS)
        coarse = buckets_of(bucket_bounds(buckets)[0], fineness) + (0 if together else groups * np.int64(_BUCKETS))
        cells, places = np.unique(coarse, return_inverse=True)
        counts = np.zeros(len(cells), np.int64)
        np.add.at(counts, places, self._cells["count"])
        return (cells // _BUCKETS, *bucket_bounds(cells % _BUCKETS, fineness), counts)


def among_longest(values: np.ndarray, most: int, least: int = 0) -> np.ndarray:
    """Rows of the values that can be among the `most` greatest, in any order; ``least``: none below it is."""
    rows = np.flatnonzero(values >= least)
    if not 0 < most < len(rows):
        return rows
    chosen = values[rows]
    longest: np.ndarray = rows[chosen >= np.partition(chosen, -most)[-most]]
    return longest


def no_sums(groups: int) -> np.ndarray:
    """Sums of groups without samples."""
    rows = np.zeros(max(groups, 0), SUMS)
    rows["min"] = np.iinfo(np.int64).max
    return rows


def buckets_of(values: np.ndarray, fineness: int = FINENESS) -> np.ndarray:
    """Numbers of the buckets that values lie in: small values have their own, then 1 << fineness a power of two."""
    _, exponent = np.frexp(values.astype(np.float64))
    shift = np.maximum(exponent.astype(np.int64) - 1 - fineness, 0)
    return (shift << fineness) + (values >> shift)


def bucket_bounds(buckets: np.ndarray, fineness: int = FINENESS) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest value of buckets."""
    shift = np.maximum((buckets >> fineness) - 1, 0)
    low = (buckets - (shift << fineness)) << shift
    return low, low + (np.int64(1) << shift) - 1
