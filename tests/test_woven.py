"""Records of many kinds in turns, of one CPU, go straight to their columns, as long as all is as usual (csrc/ftb_straight.c)."""

from __future__ import annotations

from functools import cache

import pytest
import reference as ref
from filebuilder import BufferSpec, TraceDat
from hypothesis import given
from hypothesis import strategies as st
from pagebuilder import ABIS, Abi, Page, event, format_text, make_abi, make_format, pack, pages_of
from strategies import _bad, _good, deltas
from test_differential import check_table

import ftbuf

BATCHES = 6  # of 256 records: so many are looked at before any goes straight (csrc/ftb_decode.c WOVEN_FROM)
MANY = BATCHES * 256
LAYOUTS = {"small": make_abi(subbuf_size=256), "le64": ABIS["le64"], "be64": ABIS["be64"], "le32": ABIS["le32"]}
KINDS = [["u8 x"], ["u32 n", "u64 wide"], ["char name[16]"], ["__data_loc char[] text"], ["u16 a[8]", "s32 b"], ["u16 c"]]
RARE = len(KINDS) - 1  # a record in forty


def formats_of(abi: Abi) -> list:
    return [make_format(f"kind{i}", 40 + i, fields, long_size=abi.long_size) for i, fields in enumerate(KINDS)]


def record(abi: Abi, i: int) -> bytes:
    fmt = formats_of(abi)[RARE if i % 41 == 0 else i % RARE]
    values = {"x": i & 255, "c": i & 0xFFFF, "n": i, "wide": i << 20, "name": b"n%d" % (i % 7),
              "text": b"t" * (i % 5), "a": [i & 3] * 8, "b": -i}
    return event(fmt, abi, common_pid=i % 9, **{f.name: values[f.name] for f in fmt.own_fields})


@cache
def woven(name: str) -> bytes:
    """Pages of records that change with each."""
    abi = LAYOUTS[name]
    return pages_of(abi, *(record(abi, i * i % 97 + i) for i in range(MANY)), ts=1000, step=3)


@cache
def rows_of_woven(name: str, event_id: int) -> list:
    return [row for row in decoded_woven(name) if row.event.id == event_id]


@cache
def decoded_woven(name: str) -> list:
    abi = LAYOUTS[name]
    return ref.decode_stream(woven(name), abi, {f.id: f for f in formats_of(abi)}).rows


@st.composite
def odd_pages(draw: st.DrawFn, abi: Abi) -> bytes:
    """Records of known kinds, of any length, with some of every other kind of record, and damage, among them."""
    made = []
    for _ in range(draw(st.integers(1, 5))):
        page = Page(abi, draw(st.integers(1_000_000, 1 << 60)))
        for _ in range(draw(st.integers(0, 12))):
            kind = draw(st.sampled_from(["data"] * 7 + ["short", "unknown", "other"]))
            if kind == "data":
                page.data(draw(deltas), record(abi, draw(st.integers(0, 255))) + bytes(draw(st.sampled_from([0, 0, 3, 120]))))
            elif kind == "short":
                page.data(draw(deltas), record(abi, draw(st.integers(0, 9)))[: draw(st.integers(2, 9))])
            elif kind == "unknown":
                page.data(draw(deltas), pack(abi, draw(st.integers(0, 30)), 2) + bytes(6))
            else:
                _good(page, draw)
        if draw(st.integers(0, 3)) == 0:
            _bad(page, draw)
        made.append(page.finish(missed=draw(st.integers(0, 3)) == 0, stored=draw(st.sampled_from([None, None, 5]))))
        if draw(st.booleans()):
            made.append(pages_of(abi, *(record(abi, i) for i in range(draw(st.integers(1, 60))))))
    return b"".join(made)


@given(st.data(), st.sampled_from(sorted(LAYOUTS)), st.sampled_from([None, [0, 2, 3, 4, RARE], [RARE], [1]]))
def test_what_is_unusual_changes_nothing(data, name, kinds):
    """`kinds`: those asked for, all, most or few; None: whatever occurs."""
    abi = LAYOUTS[name]
    odd = data.draw(odd_pages(abi))
    stream, formats = woven(name) + odd + woven(name), formats_of(abi)
    want = ref.decode_stream(odd, abi, {f.id: f for f in formats})
    file = TraceDat(abi, formats={"test": [format_text(f) for f in formats]},
                    buffers=[BufferSpec(pages={0: stream}, subbuf_size=abi.subbuf_size)]).build().data
    with ftbuf.open(file, errors="skip") as trace:
        names = None if kinds is None else [formats[i].name for i in kinds]
        tables = trace.tables(names)
        assert list(tables) == [f.name for f in formats if names is None or f.name in names]
        for fmt in formats:
            if fmt.name in tables:
                own = [row for row in want.rows if row.event.id == fmt.id]
                check_table(tables[fmt.name], fmt, [*rows_of_woven(name, fmt.id), *own, *rows_of_woven(name, fmt.id)])
    damage = [p for p in want.problems if p.status not in ("unknown_event", "field_outside")]
    if damage:
        with ftbuf.open(file) as trace, pytest.raises(ftbuf.DamageError):
            trace.tables()


@pytest.mark.parametrize("cpus", [2, 3, 5])
@pytest.mark.parametrize("kinds", [None, [RARE], [0, 1]], ids=str)
def test_cpus_are_merged_as_the_reference_merges_them(cpus, kinds):
    """Records of several CPUs in turns, in runs, and all at the same time; one CPU ends early, one has nothing."""
    abi = LAYOUTS["small"]
    formats = formats_of(abi)
    made: dict[int, bytes] = {0: b""}
    for cpu in range(1, cpus):
        own = [record(abi, i * i % 89 + i + cpu) for i in range(MANY // cpu)]
        made[cpu] = pages_of(abi, *own[:400], ts=1000, step=3) + pages_of(abi, *own[400:], ts=2200 + cpu, step=cpu)
    want = ref.merge({(0, cpu): ref.decode_stream(pages, abi, {f.id: f for f in formats}).rows for cpu, pages in made.items()})
    file = TraceDat(abi, formats={"test": [format_text(f) for f in formats]},
                    buffers=[BufferSpec(pages=made, subbuf_size=abi.subbuf_size)]).build().data
    with ftbuf.open(file) as trace:
        for name, table in trace.tables(kinds and [formats[i].name for i in kinds]).items():
            fmt = next(f for f in formats if f.name == name)
            rows = [(cpu, row) for (_, cpu), row in want if row.event.id == fmt.id]
            check_table(table, fmt, [row for _, row in rows])
            assert table["common_cpu"].tolist() == [cpu for cpu, _ in rows]


@pytest.mark.parametrize("step", ["20 kB", "1 MB"])
def test_steps_are_the_whole(step):
    abi = LAYOUTS["le64"]
    formats = formats_of(abi)
    stream = woven("le64") * 3
    file = TraceDat(abi, formats={"test": [format_text(f) for f in formats]}, buffers=[BufferSpec(pages={0: stream})]).build().data
    with ftbuf.open(file) as trace:
        whole = trace.tables()
        steps = list(trace.iterate(step_size=step))
        for name, table in whole.items():
            for column in table:
                assert [v for s in steps for v in s[name][column].tolist()] == table[column].tolist()
        assert sum(map(len, whole.values())) == 3 * MANY
