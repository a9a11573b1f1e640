"""Every event format of every kernel at hand can be decoded: all its columns, as the reference reads them."""

from __future__ import annotations

import lzma
import random
import tarfile
from collections.abc import Iterator

import numpy as np
import pytest
import reference as ref
from corpus_data import HAVE_CORPUS, SHARED
from pagebuilder import ABIS, event, make_abi, make_format, pages_of
from test_differential import comparable, expected_value

import ftbuf
from ftbuf import _core
from ftbuf.errors import FormatError
from ftbuf.formats import Abi, EventFormat, Field, Kind, Where, parse_format
from ftbuf.plan import field_op
from ftbuf.raw import RawPages, RawRecording
from ftbuf.trace import Trace

BIG_ENDIAN = ("s390x", "mips32be")  # kernels of the corpus


def kernels() -> list[str]:
    if not HAVE_CORPUS:
        return []
    archives = [p.name for p in (SHARED / "formats").glob("*.tar.xz")]
    return sorted([p.name for p in (SHARED / "corpus" / "kernels").iterdir()] + archives)


def texts(kernel: str) -> Iterator[tuple[str, bytes]]:
    """(system, format text) of a kernel's events."""
    if kernel.endswith(".tar.xz"):
        with tarfile.open(SHARED / "formats" / kernel) as archive:
            for member in archive:
                if member.name.endswith("/format"):
                    yield member.name.split("/")[-3], archive.extractfile(member).read()
        return
    blocks = lzma.decompress((SHARED / "corpus" / "kernels" / kernel / "all_formats.txt.xz").read_bytes())
    for block in blocks.split(b"### system: ")[1:]:
        system, text = block.split(b"\n", 1)
        yield system.decode(), text


def abi_of(kernel: str, some: bytes) -> Abi:
    long_size = 4 if b"unsigned long ip;\toffset:8;\tsize:4;" in some else 8
    return make_abi(big=kernel in BIG_ENDIAN, long_size=long_size, subbuf_size=1 << 16)


def some_value(f: Field, rng: random.Random):
    if f.kind is Kind.STRING:
        return bytes(rng.choices(b"abc/%", k=rng.randrange(f.size) if f.where is Where.INLINE else rng.randrange(9)))
    if f.kind is Kind.SCALAR:
        return rng.getrandbits(8 * f.size) if f.where is Where.INLINE else b""
    count = f.size // f.element_size if f.where is Where.INLINE else rng.randrange(4)
    return rng.randbytes(count * f.element_size)


def some_record(fmt: EventFormat, abi: Abi, rng: random.Random) -> bytes:
    own = {f.name: some_value(f, rng) for f in fmt.own_fields if f.size or f.where is not Where.INLINE}
    return event(fmt, abi, **own)


def check(formats: list[EventFormat], abi: Abi, copies: int = 2) -> None:
    rng = random.Random(len(formats))
    payloads = [some_record(fmt, abi, rng) for fmt in formats for _ in range(copies)]
    stream = pages_of(abi, *payloads)
    want: dict[int, list] = {}
    by_id = {fmt.id: fmt for fmt in formats}
    for row in ref.decode_stream(stream, abi, by_id).rows:
        want.setdefault(row.event.id, []).append(row)
    trace = Trace(RawRecording(RawPages({0: stream}, abi, formats, {})))
    tables = trace.tables()
    assert len(tables) == len(formats)
    assert trace.problems.num_rows == 0
    for fmt in formats:
        table = tables[trace[f"{fmt.system}:{fmt.name}"].key]
        for f in fmt.own_fields:
            got = [comparable(v) for v in table[f.name]]
            assert got == [expected_value(f, r.values[f.name]) for r in want[fmt.id]], f"{fmt.name}.{f.name}"


@pytest.mark.corpus
@pytest.mark.parametrize("kernel", kernels())
def test_every_format_of_a_kernel(kernel):
    all_texts = list(texts(kernel))
    abi = abi_of(kernel, next(t for s, t in all_texts if t.startswith(b"name: function\n")))
    formats: dict[int, EventFormat] = {}
    for system, text in all_texts:
        fmt = parse_format(text, system, long_size=abi.long_size)
        assert formats.setdefault(fmt.id, fmt) is fmt, "two events of one id"
    check(list(formats.values()), abi)


def test_a_field_without_bytes():
    """size:0 with others behind it (structs that a configuration leaves empty): an empty column, not an error."""
    text = (b"name: odd\nID: 77\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
            b"\tfield:struct nothing a;\toffset:8;\tsize:0;\tsigned:0;\n"
            b"\tfield:char b[];\toffset:8;\tsize:0;\tsigned:0;\n\tfield:u32 c;\toffset:8;\tsize:4;\tsigned:0;\n\n"
            b'print fmt: ""\n')
    fmt, abi = parse_format(text, "test"), make_abi()
    table = ftbuf.decode_pages(pages_of(abi, event(fmt, abi, c=5)), abi=abi, events=fmt)
    assert table["c"].tolist() == [5]
    assert [len(v) for v in table["a"]] == [len(v) for v in table["b"]] == [0]
    trace = Trace(RawRecording(RawPages({0: pages_of(abi, event(fmt, abi, c=5))}, abi, [fmt], {})))
    record = next(trace.records())
    assert (record["a"], record["b"], record["c"]) == (b"", b"", 5)


@pytest.mark.parametrize("big", [False, True])
def test_a_location_of_eight_bytes(big):
    """Synthetic events keep a string's location in eight bytes: the first four are the location."""
    abi = make_abi(big=big)
    text = (b"name: wake\nID: 77\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
            b"\tfield:__data_loc char[] comm;\toffset:8;\tsize:8;\tsigned:1;\n"
            b"\tfield:u64 lat;\toffset:16;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n")
    fmt = parse_format(text, "synthetic")
    payload = bytearray(event(fmt, abi, comm="sshd", lat=7))
    payload[12:16] = b"\xff" * 4
    table = ftbuf.decode_pages(pages_of(abi, bytes(payload)), abi=abi, events=fmt)
    assert (table["comm"].tolist(), table["lat"].tolist()) == (["sshd"], [7])


def test_two_systems_may_share_a_name():
    abi = make_abi()
    formats = [make_format("same", i, ["int a"], system=s) for i, s in ((70, "one"), (71, "two"))]
    check(formats, abi)
    with pytest.raises(FormatError):
        parse_format(b"name: x\n", "test")


STACK = (b"name: kernel_stack\nID: 4\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
         b"\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n"
         b"\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n\nprint fmt: \"\"\n")


@pytest.mark.parametrize("name", ["le64", "be64"])
@pytest.mark.parametrize(("size", "callers", "want"), [
    (3, [5, 6, 7], [5, 6, 7]),
    (2, [5, 6, 7], [5, 6]),  # junk behind the stack
    (9, [5, 6, 7], [5, 6, 7]),  # more than there is
    (-1, [5, 6, 7], [5, 6, 7]),
    (0, [5, 6, 7], []),
    (3, [5, (1 << 64) - 1, 7], [5]),  # the mark of kernels before 5.2
    (3, [], []),
])
def test_a_stack_ends_where_it_says(name, size, callers, want):
    abi = ABIS[name]
    fmt = parse_format(STACK, "ftrace")
    stream = pages_of(abi, event(fmt, abi, size=size, caller=callers))
    assert ftbuf.decode_pages(stream, abi=abi, events=fmt)["caller"][0].tolist() == want
    trace = Trace(RawRecording(RawPages({0: stream}, abi, [fmt], {})))
    assert next(trace.records())["caller"] == want
    assert ref.decode_stream(stream, abi, {4: fmt}).rows[0].values["caller"] == want


def test_a_count_outside_the_fixed_part_is_no_plan():
    fmt = parse_format(STACK, "ftrace")
    op = field_op(fmt.find("caller"))
    decoder = _core.Decoder([(4096, 16, 8, 0, 2, 0, 0)], [(0, 0, 0, 0, 0, None)], [(0, 0, 0, 0, 0)],
                            [(np.zeros(_core.N_IDS, np.uint16), None, None)], 1)
    with pytest.raises(ValueError):
        decoder.set_plans(np.zeros(1, np.uint16), [(11, 0, [op], 0)])
