"""The memory of dropped columns is used again, and never while anyone can see it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pagebuilder import ABIS, event, make_format, pages_of

import ftbuf
from ftbuf import _core

ABI = ABIS["le64"]
FORMAT = make_format("probe", 42, ["int number", "u64 wide"])
ROWS = 120_000  # some columns of half a megabyte and more: those are mappings


def decode(first: int, rows: int = ROWS) -> ftbuf.Table:
    payload = [event(FORMAT, ABI, number=first + i, wide=i) for i in range(64)]
    pages = bytes(pages_of(ABI, *payload)) * (rows // 64)
    return ftbuf.decode_pages(pages, abi=ABI, events=FORMAT)


@pytest.fixture(autouse=True)
def _empty():
    _core.empty_pool()
    yield
    _core.empty_pool()


def test_dropped_columns_leave_memory_to_the_next():
    table = decode(0)
    assert _core.empty_pool() == 0
    del table
    kept = _core.empty_pool()
    assert kept >= ROWS * 8
    assert _core.empty_pool() == 0
    del kept


# Columns of 40 KB to 160 KB, of malloc; of 0.5 to 4 MB, each a little less than whole huge pages, so that a guess is one more.
@pytest.mark.parametrize("rows", [20_480, 130_560, 262_016, 520_192])
def test_the_same_work_again_needs_no_new_memory(rows):
    def kept_after(times: int) -> int:
        for i in range(times):
            decode(i, rows)
        return _core.empty_pool()

    assert kept_after(6) == kept_after(2) > rows * 8


def test_memory_that_is_used_again_has_new_values():
    old = decode(0)
    wide = old["wide"]
    del old
    new = decode(5)
    assert wide[:64].tolist() == list(range(64))
    assert new["number"][:64].tolist() == list(range(5, 69))
    assert not np.shares_memory(wide, new["wide"])


def test_the_pool_is_bounded():
    tables = [decode(i) for i in range(60)]
    size = sum(t["wide"].nbytes for t in tables)
    del tables
    assert _core.empty_pool() <= min(size * 8, 128 << 20)


def test_threads_share_the_pool():
    def work(first: int) -> bool:
        return all(decode(first + i)["number"][:3].tolist() == [first + i, first + i + 1, first + i + 2] for i in range(4))

    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        assert all(pool.map(work, range(0, 800, 100)))
