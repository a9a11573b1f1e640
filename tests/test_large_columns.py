"""Columns of millions of rows are stored otherwise than small ones (past the cache, by whole lines): the values are the same."""

from __future__ import annotations

import random

import numpy as np
import pytest
from pagebuilder import ABIS, event, make_format, pages_of

import ftbuf

DECLARED = ["u8 a", "s8 b", "u16 c", "s16 d", "u32 e", "s32 f", "u64 g", "s64 h", "void *p", "char comm[16]", "char short_name[8]",
            "unsigned long args[6]", "u32 pair[4]", "u8 odd[5]", "__data_loc char[] text"]
NAMES = [b"", b"swapper/0", b"a-name-that-fills", b"x" * 16, b"kworker/0:1", b"kworker/1:0"]
COMMS = {pid: f"task{pid}" for pid in range(1, 40)} | {4_000_000: "far"}
ROWS = 1 << 20  # bytes of the narrowest column from which stores go past the cache: csrc/ftb_gather_loops.h FTB_STREAM_FROM
# pids of the table, none, unknown ones, and what is no pid
PIDS = [0, *range(1, 60), 4_000_000, 4_000_001, -1, -(1 << 31), (1 << 31) - 1]


def records(fmt, abi, count: int) -> list[bytes]:
    rng, pid = random.Random(5), 1
    made = []
    for i in range(count):
        if i % 64 > 40:  # tasks run for a while, and take turns
            pid = rng.choice(PIDS)
        values = {f: rng.getrandbits(64) for f in "acegp"} | {"b": rng.randint(-128, 127), "d": rng.randint(-1 << 15, 1 << 15 - 1),
                  "f": rng.randint(-1 << 31, (1 << 31) - 1), "h": rng.randint(-1 << 63, (1 << 63) - 1)}
        values |= {"a": i & 0xFF, "c": values["c"] & 0xFFFF, "e": values["e"] & 0xFFFFFFFF}
        values["p"] &= (1 << 8 * abi.long_size) - 1
        values |= {"comm": rng.choice(NAMES)[:16], "short_name": b"n%d" % (i % 7), "text": b"t%d" % (i % 11),
                   "args": [rng.getrandbits(8 * abi.long_size) for _ in range(6)], "pair": [rng.getrandbits(32) for _ in range(4)],
                   "odd": [rng.getrandbits(8) for _ in range(5)]}
        made.append(event(fmt, abi, common_pid=pid, common_flags=i & 0xFF, common_preempt_count=i >> 8 & 0xFF, **values))
    return made


@pytest.mark.parametrize("name", ["le64", "be64", "le32"])
@pytest.mark.parametrize("others", [0, 3])
def test_large_columns_are_small_ones_repeated(name, others):
    """`others`: so many records of another event after each eleventh, so that refs wait in groups."""
    abi = ABIS[name]
    fmt = make_format("ev", 7, DECLARED, long_size=abi.long_size)
    other = make_format("other", 9, ["u32 n"], long_size=abi.long_size)
    made = records(fmt, abi, 1100)
    mixed = [r for i, record in enumerate(made) for r in (record, *(event(other, abi, n=k) for k in range(others * (i % 11 == 0))))]
    stream = pages_of(abi, *mixed)
    small = ftbuf.decode_pages(stream, abi=abi, events=[fmt, other], event="ev", comms=COMMS)
    times = ROWS // len(made) + 2
    large = ftbuf.decode_pages(stream * times, abi=abi, events=[fmt, other], event="ev", comms=COMMS)
    assert small.num_rows == len(made) and large.num_rows == times * len(made) > ROWS
    assert set(small.column_names) == set(large.column_names) >= {"common_comm", "args", "text", "a", "h"}
    for column in small.column_names:
        one, many = small[column], large[column]
        assert one.dtype == many.dtype
        many = many.reshape(times, *one.shape)
        assert (many == one).all(), column
    assert {"task7", "far", "<...>", "<idle>"} <= set(np.unique(small["common_comm"]))
