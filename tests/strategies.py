"""Hypothesis strategies: pages with every kind of record and every kind of damage, and whole streams."""

from __future__ import annotations

from hypothesis import strategies as st
from pagebuilder import ABIS, Abi, Page, make_abi

U32 = (1 << 32) - 1

# small sub-buffers find ends of pages sooner
SMALL = [make_abi(big=b, long_size=n, subbuf_size=256) for b in (False, True) for n in (4, 8)]
abis = st.sampled_from([*SMALL, *SMALL, *ABIS.values(), make_abi(subbuf_size=256, old_header=True)])

deltas = st.one_of(st.integers(0, 3), st.integers(0, (1 << 27) - 1))
stamps = st.one_of(st.integers(0, 1 << 40), st.integers(0, (1 << 64) - 1))
words = st.one_of(st.sampled_from([0, 1, 3, 4, 5, 7, 8, 12, 64, U32 - 3, U32]), st.integers(0, U32))
payloads = st.one_of(st.binary(min_size=2, max_size=40), st.binary(min_size=100, max_size=130))


def _good(page: Page, draw: st.DrawFn) -> None:
    kind = draw(st.sampled_from(["data"] * 6 + ["long", "extend", "padding", "stamp", "end"]))
    if kind == "data":
        page.data(draw(deltas), draw(payloads))
    elif kind == "long":
        page.data(draw(deltas), draw(payloads), long=True)
    elif kind == "extend":
        page.time_extend(draw(st.integers(0, (1 << 59) - 1)))
    elif kind == "end":
        page.end_padding()
    elif page.abi.old_header:
        page.old_header(draw(st.integers(0, 3)), draw(st.integers(0, 7)), draw(deltas))
    elif kind == "padding":
        page.padding(draw(st.integers(1, 5)), draw(st.sampled_from([8, 12, 16, 64])))
    else:
        page.time_stamp(draw(stamps))


def _bad(page: Page, draw: st.DrawFn) -> None:
    kind = draw(st.sampled_from(["header", "length", "padding", "junk"]))
    if kind == "junk":
        page.raw(draw(st.binary(max_size=24)))
    elif page.abi.old_header:
        page.old_header(draw(st.integers(0, 3)), draw(st.integers(0, 7)), draw(deltas)).word(draw(words))
    elif kind == "header":
        page.header(draw(st.integers(0, 31)), draw(deltas))
    elif kind == "length":
        page.data(draw(deltas), draw(st.binary(max_size=16)), length=draw(words))
    else:
        page.padding(draw(deltas), 8, length=draw(words))


@st.composite
def pages(draw: st.DrawFn, abi: Abi, *, damage: bool = True) -> bytes:
    """One sub-buffer, with damage in a good part of the draws."""
    page = Page(abi, draw(stamps), align8=draw(st.booleans()) and not abi.old_header)
    for _ in range(draw(st.integers(0, 8))):
        _good(page, draw)
    if damage and draw(st.booleans()):
        _bad(page, draw)
        for _ in range(draw(st.integers(0, 2))):
            _good(page, draw)
    size = (
        draw(st.one_of(st.none(), st.integers(0, abi.subbuf_size), words)) if damage and draw(st.booleans()) else None
    )
    return page.finish(
        missed=draw(st.booleans()),
        stored=draw(st.one_of(st.none(), st.integers(0, 1 << 31))),
        sign_extend=draw(st.booleans()),
        size=size,
        junk=draw(st.sampled_from([b"", b"\xff" * 16, b"\x01\x02\x03"])),
    )


@st.composite
def streams(draw: st.DrawFn, abi: Abi, *, damage: bool = True, max_pages: int = 4) -> bytes:
    """Sub-buffers one after another; damage may flip bytes anywhere and cut the end."""
    data = bytearray(b"".join(draw(st.lists(pages(abi, damage=damage), max_size=max_pages))))
    if damage and data:
        for _ in range(draw(st.integers(0, 2))):
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
        if draw(st.booleans()):
            del data[draw(st.integers(0, len(data))) :]
    return bytes(data)
