"""Two names of tasks in one event: who comes next on a CPU is who goes in the next record, mostly."""

from __future__ import annotations

import random

import pytest
from pagebuilder import ABIS, event, make_format, pages_of

import ftbuf

NAMES = [b"swapper/0", b"a-name-that-fills", b"kworker/0:1", b"", *(b"task-%d" % i for i in range(300))]
ROWS = 3000


def switches(rng: random.Random, broken: float) -> list[tuple[bytes, bytes]]:
    """(prev, next) of each record; `broken`: the share of records whose prev is not the next of the record before."""
    pairs, last = [], rng.choice(NAMES)
    for _ in range(ROWS):
        prev = rng.choice(NAMES) if rng.random() < broken else last
        last = rng.choice(NAMES)
        pairs.append((prev, last))
    return pairs


def decoded(pairs: list[tuple[bytes, bytes]], fields: list[str], junk: random.Random | None = None, **options) -> ftbuf.Table:
    abi = ABIS["le64"]
    fmt = make_format("switch", 7, fields)

    def padded(name: bytes) -> bytes:
        name = name[:16]
        rest = 15 - len(name)
        return name if junk is None or rest < 1 else name + b"\0" + junk.randbytes(rest)

    made = [event(fmt, abi, prev=padded(a), next=padded(b)) for a, b in pairs]
    return ftbuf.decode_pages(pages_of(abi, *made), abi=abi, events=[fmt], event="switch", **options)


def texts(pairs: list[tuple[bytes, bytes]], place: int) -> list[str]:
    return [pair[place][:16].decode() for pair in pairs]


@pytest.mark.parametrize("broken", [0, 0.001, 0.05, 1])
@pytest.mark.parametrize("order", [("prev", "next"), ("next", "prev")])
def test_names_are_those_of_their_own_records(broken, order):
    pairs = switches(random.Random(1), broken)
    table = decoded(pairs, [f"char {name}[16]" for name in order])
    assert table["prev"].tolist() == texts(pairs, 0)
    assert table["next"].tolist() == texts(pairs, 1)


def test_what_follows_the_nul_is_no_part_of_a_name():
    pairs = switches(random.Random(2), 0.01)
    table = decoded(pairs, ["char prev[16]", "char next[16]"], random.Random(3))
    assert table["prev"].tolist() == texts(pairs, 0)
    assert table["next"].tolist() == texts(pairs, 1)
    assert len(set(table.column("prev").strings)) == len(table.column("prev").strings)


def test_names_of_one_event_share_their_codes():
    pairs = switches(random.Random(4), 0.3)
    table = decoded(pairs, ["char prev[16]", "char next[16]", "char other[8]"])
    prev, following = table.column("prev"), table.column("next")
    assert prev.strings == following.strings
    assert set(prev.strings) == {*texts(pairs, 0), *texts(pairs, 1)}
    assert ((prev.codes == following.codes) == (table["prev"] == table["next"])).all()
    assert table.column("other").strings == [""]
