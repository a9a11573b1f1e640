"""The text tables: task names, thread groups, trace_printk formats, kernel symbols."""

from __future__ import annotations

import lzma
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ftbuf._core import read_kallsyms
from ftbuf.kallsyms import text_at
from ftbuf.names import Comms, Symbol, Symbols, parse_cmdlines, parse_printk_formats, parse_tgids

SHARED = Path(__file__).resolve().parents[2] / "shared"
needs_corpus = pytest.mark.skipif(not SHARED.exists(), reason="no corpus beside the checkout")


def test_cmdlines() -> None:
    data = b"1 init\n22 kworker/0:1 with spaces\n23 \n24\n25 \xff\xfe\n26 7 of 9\n  27 x\n-5 neg\n28  two\n"
    assert parse_cmdlines(data) == {
        1: b"init", 22: b"kworker/0:1 with spaces", 23: b"", 24: b"", 25: b"\xff\xfe", 26: b"7 of 9", 27: b"x",
        -5: b"neg", 28: b" two"}
    assert parse_cmdlines(b"") == {}
    assert parse_cmdlines(b"1 last") == {1: b"last"}
    assert parse_cmdlines(b"1 \n\0") == {1: b""}


def test_an_odd_line_stops_nothing() -> None:
    data = b"garbage\n99999999999999 x\n1 a\nthis is no line of the table at all\n12x y\n2 b\n"
    comms = parse_cmdlines(data)
    assert comms[2] == b"b" and comms[1].startswith(b"a") and set(comms) == {1, 2}


def test_a_newline_in_a_name() -> None:
    assert parse_cmdlines(b"1 a\nb\n2 c\n\nd\n3 e\n\n") == {1: b"a\nb", 2: b"c\n\nd", 3: b"e"}
    assert parse_cmdlines(b"1 fifteen bytes..\nx\n2 c\n") == {1: b"fifteen bytes..", 2: b"c"}


def test_tgids() -> None:
    assert parse_tgids(b"10 10\n11 10\nodd\n12 10 9\n  13  10 \n4194304 4194304") == {
        10: 10, 11: 10, 13: 10, 4194304: 4194304}


def test_printk_formats() -> None:
    data = (b'0xffffffff819a0459 : "Inc2"\n0xff11000000b8c100 : "a \\"%s\\"\\tb\\n"\n0x10 : "c:\\dir\\\\"\njunk\n'
            b'0x11 : ""\n0x12 : "a" : "b"\n0x13 : unquoted\n0x10 : "c:\\dir\\\\"\n0x14 : "\xff"\n')
    assert parse_printk_formats(data) == {
        0xFFFFFFFF819A0459: b"Inc2", 0xFF11000000B8C100: b'a "%s"\tb\n', 0x10: b"c:\\dir\\\\", 0x11: b"",
        0x12: b'a" : "b', 0x14: b"\xff"}
    assert parse_printk_formats(b"") == {}


def test_comms() -> None:
    comms = Comms({1: b"init", 2: b"\xff", 3: b""})
    assert (comms[0], comms[1], comms[2], comms[3], comms[9], comms[-1]) == (
        "<idle>", "init", "\udcff", "", "<...>", "<...>")
    assert comms.raw(-1, kernel=True) == b"<XXX>" and comms.raw(2) == b"\xff"
    assert 1 in comms and 0 not in comms and 9 not in comms and "x" not in comms
    assert comms.get(9) is None and comms.get(9, "?") == "?" and comms.get(1) == "init"
    assert dict(comms) == {1: "init", 2: "\udcff", 3: ""} and len(comms) == 3
    assert repr(comms) == "<Comms: 3 tasks>"


KALLSYMS = b"""\
0000000000000000 A fixed_percpu_data
0000000000001000 a cpu_debug_store
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 t one
ffffffff81000200 T two
ffffffff81000200 W two_alias
ffffffff81000200 t $x
ffffffff81000300 d three
ffffffff82000000 B _end
ffffffffc0201000 t mod_b\t[mod]
ffffffffa0002000 t other\t[other_mod]
ffffffffc0200000 t mod_a\t[mod]
"""


def test_symbols() -> None:
    symbols = Symbols(KALLSYMS)
    assert not symbols.hidden
    assert symbols.addresses.dtype == np.uint64
    assert [hex(a) for a in symbols.addresses.tolist()] == [
        "0xffffffff81000000", "0xffffffff81000100", "0xffffffff81000200", "0xffffffff81000300", "0xffffffff82000000",
        "0xffffffffa0002000", "0xffffffffc0200000", "0xffffffffc0201000"]
    assert symbols.names == [b"_stext", b"one", b"two", b"three", b"_end", b"other", b"mod_a", b"mod_b"]
    assert symbols.modules == [b"", b"", b"", b"", b"", b"other_mod", b"mod", b"mod"]
    assert symbols.lookup(0xFFFFFFFF81000123) == Symbol("one", "", 0xFFFFFFFF81000100, 0x100)
    assert symbols.lookup(0xFFFFFFFF81000200) == Symbol("two", "", 0xFFFFFFFF81000200, 0x100)
    assert symbols.lookup(0xFFFFFFFFC0200FFF) == Symbol("mod_a", "mod", 0xFFFFFFFFC0200000, 0x1000)
    assert symbols.name(0xFFFFFFFF810002FF) == "two"
    assert len(symbols) == 8 and repr(symbols) == "<Symbols: 8 addresses>"
    assert not symbols.addresses.flags.writeable


def test_addresses_in_no_symbol() -> None:
    symbols = Symbols(KALLSYMS)
    for address in (-1, 0, 0x1000, 0x7F0012345678, 0xFFFFFFFF80FFFFFF, 1 << 64, 1 << 80):
        assert symbols.lookup(address) is None and symbols.lookup(address, trace_cmd=True) is None
    assert symbols.lookup(0xFFFFFFFF82000000) == Symbol("_end", "", 0xFFFFFFFF82000000, None)
    assert symbols.lookup(0xFFFFFFFF82000001) is None  # behind the kernel
    assert symbols.name(0xFFFFFFFFA0002ABC) == "other"
    assert symbols.lookup(0xFFFFFFFFA0004000) is None  # behind a module
    assert symbols.lookup(0xFFFFFFFFC0201001) == Symbol("mod_b", "mod", 0xFFFFFFFFC0201000, None)
    # trace-cmd knows no end of the kernel or of a module, and nothing behind its last symbol
    assert symbols.lookup(0xFFFFFFFFA0004000, trace_cmd=True) == Symbol("other", "other_mod", 0xFFFFFFFFA0002000, None)
    assert symbols.lookup(0xFFFFFFFFC0201000, trace_cmd=True) is not None
    assert symbols.lookup(0xFFFFFFFFC0201001, trace_cmd=True) is None


def test_code_only_tables_end_at_etext() -> None:
    text = b"c0400000 T _stext\nc0500000 T _etext\nc1400000 T _sinittext\nc1400100 t late\n"
    assert Symbols(text).lookup(0xC0500004) is None
    assert Symbols(text).name(0xC1400004) == "_sinittext"
    assert Symbols(text + b"c1500000 d data\n").name(0xC0500004) == "_etext"


def test_by_name() -> None:
    symbols = Symbols(KALLSYMS + b"ffffffff83000000 t one\n")
    assert symbols.by_name("one") == 0xFFFFFFFF81000100
    assert symbols.by_name(b"two_alias") == 0xFFFFFFFF81000200
    assert symbols.by_name("mod_b") == 0xFFFFFFFFC0201000
    assert symbols.by_name("nosuch") is None and symbols.by_name("fixed_percpu_data") is None


def test_hidden_addresses() -> None:
    symbols = Symbols(re.sub(rb"(?m)^\w+", b"0000000000000000", KALLSYMS))
    assert symbols.hidden and len(symbols) == 0 and symbols.lookup(0) is None and symbols.exact_names == []
    assert repr(symbols) == "<Symbols: hidden>"
    assert not Symbols(b"").hidden and Symbols(b"").lookup(5) is None and Symbols(b"").exact_names == []


def test_short_addresses_and_odd_lines() -> None:
    odd = (b"c0400000 T a\n\nwhat is this\nc0400010 t b\nxyz t c\nc04000200000000000 t d\nc0400030 tt e\n"
           b"100 T f [m]\nc0400040")
    symbols = Symbols(odd)
    assert symbols.names == [b"f", b"a", b"b"] and symbols.modules == [b"m", b"", b""]
    assert Symbols(b"ffff T a\n10 T b\n").names == [b"b", b"a"]


def test_numpy_is_not_imported_with_the_module() -> None:
    code = "import sys, ftbuf.names, ftbuf.formats; sys.exit('numpy' in sys.modules)"
    package_needs_it = "import sys, ftbuf; sys.exit('numpy' in sys.modules)"
    if subprocess.run([sys.executable, "-c", package_needs_it], check=False).returncode == 0:
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def trace_cmd_search(rows: list[tuple[int, bytes]], address: int) -> bytes | None:
    """What trace-cmd does, in plain words: lines collected last first, a stable sort, bsearch() of the C library."""
    table = sorted(reversed(rows), key=lambda row: row[0])
    low, high = 0, len(table)
    while low < high:
        middle = (low + high) // 2
        here = table[middle][0]
        after = table[middle + 1][0] if middle + 1 < len(table) else 0
        if address == here or here < address < after:
            return table[middle][1]
        low, high = (low, middle) if address < here else (middle + 1, high)
    return None


@given(st.lists(st.integers(1, 30), max_size=60))
def test_the_choice_of_trace_cmd(addresses: list[int]) -> None:
    rows = [(address * 16, b"s%d" % i) for i, address in enumerate(addresses)]
    symbols = Symbols(b"".join(b"%016x T %s\n" % row for row in rows))
    for address in range(0, 31 * 16 + 2, 8):
        found = symbols.lookup(address, trace_cmd=True)
        assert (found.name.encode() if found else None) == trace_cmd_search(rows, address)


@given(st.binary(max_size=300))
def test_junk(junk: bytes) -> None:
    for data in (junk, KALLSYMS + junk, junk.replace(b"\0", b"\n").replace(b"\1", b" ")):
        symbols = Symbols(data)
        symbols.lookup(0xFFFFFFFF81000100)
        assert len(symbols.names) == len(symbols.modules) == len(symbols.exact_names) == len(symbols.ends)
        assert (symbols.ends >= symbols.addresses).all()
        symbols.by_name(junk)
        parse_cmdlines(data)
        parse_tgids(data)
        parse_printk_formats(data)


@pytest.mark.parametrize("piece", [b" ", b"\t", b"0", b'"', b'0x1 : "', b'" ', b"1 ", b"\n", b"[", b"1 T x\n", b"\\"])
def test_long_junk_takes_bounded_time(piece: bytes) -> None:
    data = piece * (300_000 // len(piece))
    start = time.perf_counter()
    for parse in (parse_cmdlines, parse_tgids, parse_printk_formats):
        parse(data)
    assert Symbols(data).lookup(1) is None or piece == b"1 T x\n"
    assert time.perf_counter() - start < 5


# What trace-cmd 3.1.6 printed for the exact address of symbols with aliases in this kernel's table.
TRACE_CMD_CHOICES = {
    0xFFFFFFFF81000000: b"_stext",
    0xFFFFFFFF81003CD0: b"__do_sys_ni_syscall",
    0xFFFFFFFF811F6C80: b"__x64_sys_munlockall",
    0xFFFFFFFF81800000: b"__func__.0",
    0xFFFFFFFF81A171B8: b"__end_ro_after_init",
    0xFFFFFFFF81A1E1A0: b"__start___ksymtab",
    0xFFFFFFFF81C09340: b"vm_numa_event",
    0xFFFFFFFF81E8FFA0: b"__initcall_start",
    0xFFFFFFFF81E90718: b"__cpu_dev_intel_cpu_dev",
    0xFFFFFFFF81EB60A0: b"__key.0",
    0xFFFFFFFF81EDAE7C: b"__key.5",
    0xFFFFFFFF81EE6B78: b"__key.0",
    0xFFFFFFFF81EEB628: b"__key.0",
    0xFFFFFFFF81EED014: b"__key.0",
    0xFFFFFFFF81EED2A0: b"__key.0",
    0xFFFFFFFF81EF1648: b"__key.3",
    0xFFFFFFFF81EF1ED0: b"pcc_chan_count",
    0xFFFFFFFF81EF3078: b"__key.0",
}


def kernel_file(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


@pytest.mark.corpus
@needs_corpus
def test_names_that_trace_cmd_printed() -> None:
    text = kernel_file(SHARED / "corpus/kernels/k612/kallsyms.xz")
    symbols = Symbols(text + b"ffffffffa0002000 t ftrace_trampoline\t[__builtin__ftrace]\n")  # as in that recording
    for address, name in TRACE_CMD_CHOICES.items():
        found = symbols.lookup(address, trace_cmd=True)
        assert found is not None and found.name.encode() == name


@pytest.mark.corpus
@needs_corpus
@pytest.mark.parametrize("kernel", ["arm64-16k", "armhf", "d61", "d72", "h618", "k612", "s390x"])
def test_names_that_the_kernel_printed(kernel: str) -> None:
    symbols = Symbols(kernel_file(SHARED / f"corpus/kernels/{kernel}/kallsyms.xz"))
    printed: dict[int, bytes] = {}
    sized: set[tuple[bytes, bytes, bytes]] = set()
    for case in (SHARED / "corpus/cases").glob(f"{kernel}-*"):
        for path in case.glob("trace.symaddr.txt*"):
            for name, address in re.findall(rb"[ -]([\w.$]+) <([0-9a-f]{8,16})>", kernel_file(path)):
                printed[int(address, 16)] = name
        for path in case.glob("trace.symoffset.txt*"):
            sized |= set(re.findall(rb"[ -]([\w.$]+)\+0x([0-9a-f]+)/0x([0-9a-f]+)\s", kernel_file(path)))
    assert len(printed) > 100
    for address, name in printed.items():
        assert (symbols.name(address) or hex(address)).encode() == name
    sizes = dict(zip(symbols.names, (symbols.ends - symbols.addresses).tolist(), strict=True))
    starts = {name: address for address, name in zip(symbols.addresses.tolist(), symbols.names, strict=True)}
    uses = Counter(symbols.names)
    for name, offset, size in sized:
        if uses[name] == 1:
            assert sizes[name] == int(size, 16) and symbols.name(starts[name] + int(offset, 16)) == name.decode()


@pytest.mark.corpus
@needs_corpus
def test_tables_of_the_corpus() -> None:
    for path in (SHARED / "corpus/cases").glob("*/saved_cmdlines*"):
        data = kernel_file(path)
        assert len(parse_cmdlines(data)) == data.count(b"\n")
    for path in (SHARED / "corpus/cases").glob("*/saved_tgids*"):
        data = kernel_file(path)
        assert len(parse_tgids(data)) == data.count(b"\n")
    for path in (SHARED / "corpus").glob("*/*/printk_formats*"):
        data = kernel_file(path)
        assert len(parse_printk_formats(data)) == len({line.partition(b" ")[0] for line in data.splitlines()})


def kallsyms_lines(text: bytes) -> list[tuple[int, bytes, bytes, bytes]]:
    """Address, type, name and module of each line that is one, in plain words."""
    joined = text.rstrip(b"\0").replace(b"\t[", b"[").replace(b" [", b"[")
    lines = []
    for address, kind, word in re.findall(rb"(?m)^([0-9a-fA-F]{1,16}) (\S) ([^\s\0]+)[ \t\r]*$", joined):
        name, bracket, module = word[:-1].rpartition(b"[") if word.endswith(b"]") else (b"", b"", b"")
        lines.append((int(address, 16), kind, *((name, module) if bracket and name else (word, b""))))
    return lines


def lines_read(text: bytes) -> list[tuple[int, bytes, bytes, bytes]]:
    addresses, kinds, names, modules, texts = read_kallsyms(text)
    numbers = [memoryview(column).cast("q").tolist() for column in (addresses, names, modules)]
    starts, places, inside = numbers
    return [(start & (1 << 64) - 1, bytes([kind]), text_at(texts, name), text_at(texts, module))
            for start, kind, name, module in zip(starts, bytes(kinds), places, inside, strict=True)]


_SCRAPS = st.sampled_from([b"0", b"ffffffff81000000", b"c0400000", b" ", b" ", b"T", b"t", b"name", b"x", b"\t", b"[", b"]", b"[m]",
                           b"\t[mod]", b"\n", b"\n", b"\r", b"\0", b"\xff", b"$", b" T a", b"10 T "])


@example(b"10 T  [")
@example(b"10 T \t[")
@given(st.lists(_SCRAPS, max_size=60).map(b"".join))
def test_lines_of_kallsyms_are_what_a_plain_reading_gives(text: bytes) -> None:
    assert lines_read(text) == kallsyms_lines(text)


@given(st.binary(max_size=200))
def test_any_text_of_kallsyms(text: bytes) -> None:
    assert lines_read(text) == kallsyms_lines(text)
    assert lines_read(KALLSYMS + text) == kallsyms_lines(KALLSYMS + text)
