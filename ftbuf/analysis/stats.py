"""Numbers in groups, added up step by step in memory that does not grow with the trace.

A group is anything that samples are told apart by (a task, a CPU, a function), numbered from 0: see ``Keys``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

PERCENTILES = (50.0, 90.0, 99.0, 99.9)
FINENESS = 7  # a histogram has 1 << FINENESS buckets between a power of two and the next: each below 1 % wide
_OCTAVES = 64
_BUCKETS = _OCTAVES << FINENESS
MOST_WAITING = 1 << 16
LOOKUP_LIMIT = 1 << 22  # keys below it (pids, CPUs) are looked up in an array


class Keys:
    """Numbers (pids, addresses) to groups, numbered as they are met."""

    def __init__(self) -> None:
        self._values: list[np.ndarray] = []
        self._count = 0
        self._small = np.empty(0, np.int32)  # key -> group, -1: none yet
        self._large = np.empty(0, np.int64)  # other keys, ascending
        self._large_groups = np.empty(0, np.int32)

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> np.ndarray:
        """The key of each group."""
        return np.concatenate(self._values) if self._values else np.empty(0, np.int64)

    def groups(self, keys: np.ndarray) -> np.ndarray:
        """The group of each key; a key not met before gets the next group."""
        if not len(keys):
            return np.empty(0, np.int32)
        if int(keys.min()) >= 0 and int(keys.max()) < LOOKUP_LIMIT:
            return self._of_small(keys)
        found = self._of_large(keys)
        missing = found < 0
        if missing.any():
            new = np.unique(keys[missing])
            small = (new >= 0) & (new < LOOKUP_LIMIT)
            if small.any():
                self._of_small(new[small])
            self._add_large(new[~small])
            found[missing] = self.groups(keys[missing])
        return found

    def _of_small(self, keys: np.ndarray) -> np.ndarray:
        most = int(keys.max(initial=0))
        if most >= len(self._small):
            more = max(most + 1 - len(self._small), len(self._small))
            self._small = np.concatenate([self._small, np.full(more, -1, np.int32)])
        groups: np.ndarray = self._small[keys]
        unknown = groups < 0
        if unknown.any():
            new = np.unique(keys[unknown])
            self._small[new] = self._add(new)
            groups = self._small[keys]
        return groups

    def _of_large(self, keys: np.ndarray) -> np.ndarray:
        """The groups of keys that are known and too large for the table; -1 for others."""
        if not len(self._large):
            return np.full(len(keys), -1, np.int32)
        wanted = signed(keys)
        at = np.minimum(np.searchsorted(self._large, wanted), len(self._large) - 1)
        return np.where(self._large[at] == wanted, self._large_groups[at], np.int32(-1))

    def _add_large(self, new: np.ndarray) -> None:
        both = np.concatenate([self._large, signed(new)])
        groups = np.concatenate([self._large_groups, self._add(new)])
        order = np.argsort(both, kind="stable")
        self._large, self._large_groups = both[order], groups[order]

    def _add(self, new: np.ndarray) -> np.ndarray:
        """The groups of so many new keys."""
        self._values.append(new)
        self._count += len(new)
        return np.arange(self._count - len(new), self._count, dtype=np.int32)


def signed(keys: np.ndarray) -> np.ndarray:
    """As int64: addresses of the kernel's half become negative, and stay distinct."""
    return keys.view(np.int64) if keys.dtype == np.uint64 else keys.astype(np.int64, copy=False)


class Samples:
    """Count, sum, least, greatest, last and distribution of non-negative int64 samples (ns, say), by group.

    The distribution is kept in buckets less than 1 % wide; ``percentile`` tells a bucket's upper end, ``histogram`` has
    the counts.
    """

    def __init__(self) -> None:
        self.count = np.zeros(0, np.int64)
        self.total = np.zeros(0, np.int64)
        self.min = np.zeros(0, np.int64)
        self.max = np.zeros(0, np.int64)
        self.last = np.zeros(0, np.int64)
        self._cells = np.zeros(0, np.int64)  # group * _BUCKETS + bucket, ascending
        self._counts = np.zeros(0, np.int64)
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []  # cells and counts that are still to be added

    def __len__(self) -> int:
        return len(self.count)

    def add(self, groups: np.ndarray, values: np.ndarray) -> None:
        """Samples, the later of a group behind the earlier. A negative one counts as 0."""
        if not len(groups):
            return
        self.grow(int(groups.max()) + 1)
        values = np.maximum(values, 0).astype(np.int64)
        np.add.at(self.count, groups, 1)
        np.add.at(self.total, groups, values)
        np.minimum.at(self.min, groups, values)
        np.maximum.at(self.max, groups, values)
        self.last[groups] = values  # of several with one group the last one stays
        self._merge(*counted(groups, buckets_of(values)))

    def grow(self, groups: int) -> None:
        """Make room for so many groups: those without samples count 0."""
        more = groups - len(self.count)
        if more > 0:
            zeros = np.zeros(more, np.int64)
            self.min = np.concatenate([self.min, np.full(more, np.iinfo(np.int64).max)])
            for name in ("count", "total", "max", "last"):
                setattr(self, name, np.concatenate([getattr(self, name), zeros]))

    def _merge(self, cells: np.ndarray, counts: np.ndarray) -> None:
        self._waiting.append((cells, counts))
        if sum(len(c) for c, _ in self._waiting) > max(2 * len(self._cells), MOST_WAITING):
            self._settle()

    def _settle(self) -> None:
        """Add the cells that wait: many at a time, since it costs a sort."""
        if self._waiting:
            parts = [(self._cells, self._counts), *self._waiting]
            cells, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
            self._cells, places = np.unique(cells, return_inverse=True)
            self._counts = np.zeros(len(self._cells), np.int64)
            np.add.at(self._counts, places, counts)
            self._waiting = []

    def merged(self, into: np.ndarray, groups: int) -> Samples:
        """Groups put together: ``into`` has the new group of each. Which sample was the last is then not known."""
        self._settle()
        out = Samples()
        out.grow(groups)
        np.add.at(out.count, into, self.count)
        np.add.at(out.total, into, self.total)
        np.minimum.at(out.min, into, self.min)
        np.maximum.at(out.max, into, self.max)
        cells = into[self._cells // _BUCKETS] * np.int64(_BUCKETS) + self._cells % _BUCKETS
        out._merge(cells, self._counts)
        return out

    @property
    def mean(self) -> np.ndarray:
        """NaN for a group without samples."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.total / np.where(self.count, self.count, np.nan))

    @property
    def least(self) -> np.ndarray:
        """``min``, 0 for a group without samples."""
        return np.where(self.count > 0, self.min, 0)

    def percentile(self, percent: float) -> np.ndarray:
        """For each group the value that so many percent of its samples do not exceed: at most 1 % above the real one.

        By nearest rank; never above the greatest sample. 0 for a group without samples.
        """
        self._settle()
        groups = self._cells // _BUCKETS
        upto = np.cumsum(self._counts)
        before = np.concatenate([[0], np.cumsum(self.count)[:-1]]) if len(self.count) else np.zeros(0, np.int64)
        rank = np.clip(np.ceil(self.count * (percent / 100)).astype(np.int64), 1, None)
        if not len(groups):
            return np.zeros(len(self.count), np.int64)
        at = np.minimum(np.searchsorted(upto, before + rank), len(groups) - 1)
        _, high = bucket_bounds(self._cells[at] % _BUCKETS)
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
        self._settle()
        groups, buckets = np.divmod(self._cells, _BUCKETS)
        coarse = buckets_of(bucket_bounds(buckets)[0], fineness) + (0 if together else groups * np.int64(_BUCKETS))
        cells, places = np.unique(coarse, return_inverse=True)
        counts = np.zeros(len(cells), np.int64)
        np.add.at(counts, places, self._counts)
        return (cells // _BUCKETS, *bucket_bounds(cells % _BUCKETS, fineness), counts)


def among_longest(values: np.ndarray, most: int, least: int = 0) -> np.ndarray:
    """Rows of the values that can be among the `most` greatest, in any order; ``least``: none below it is."""
    rows = np.flatnonzero(values >= least)
    if not 0 < most < len(rows):
        return rows
    chosen = values[rows]
    longest: np.ndarray = rows[chosen >= np.partition(chosen, -most)[-most]]
    return longest


def counted(groups: np.ndarray, buckets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cells (group * _BUCKETS + bucket) that occur, ascending, and how often."""
    low, width = int(buckets.min()), int(buckets.max() - buckets.min()) + 1
    size = (int(groups.max()) + 1) * width
    if size > max(4 * len(groups), 1 << 16):  # a table of all cells would be mostly empty
        return np.unique(groups * np.int64(_BUCKETS) + buckets, return_counts=True)
    counts = np.bincount(groups * width + (buckets - low), minlength=size)
    found = np.flatnonzero(counts)
    return found // width * np.int64(_BUCKETS) + found % width + low, counts[found]


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
