"""Time stamps: each step of the correction by hand, the C code against Python integers, and real recordings."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from corpus_data import file_cases, raw_cases
from filebuilder import DATE, OFFSET, TSC2NSEC, BufferSpec, TraceDat, text_option, time_shift
from hypothesis import example, given
from hypothesis import strategies as st
from pagebuilder import ABIS, Page, event, format_text, make_abi, make_format, pack

import ftbuf
from ftbuf import _core
from ftbuf.clock import IDENTITY, Correction, clock_unit
from ftbuf.container.options import CpuShift, TimeShift

ABI = make_abi()
FORMAT = make_format("probe", 7, ["u32 number"])
TIMES = [1000, 2000, 3000, 4000, 5000, 9000]
U64 = 1 << 64


def pages(times: list[int], abi=ABI, first: int = 0) -> bytes:
    page, last = Page(abi, times[0]), times[0]
    for i, ts in enumerate(times):
        if ts - last >= 1 << 27:
            page.time_extend(ts - last)
            last = ts
        page.data(ts - last, event(FORMAT, abi, number=first + i))
        last = ts
    return page.finish()


def recording(options=(), times=TIMES, *, clock="local", version=7, abi=ABI, cpus=(0,)) -> bytes:
    buffers = [BufferSpec(pages={cpu: pages(times, abi) for cpu in cpus}, clock=clock)]
    spec = TraceDat(abi, version, formats={"test": [format_text(FORMAT)]}, options=options, buffers=buffers)
    return spec.build().data


def times_of(trace: Any) -> list[int]:
    return trace["probe"].arrays(["common_ts"])["common_ts"].tolist()


def tsc(mult: int, shift: int, offset: int = 0, abi=ABI) -> tuple[int, bytes]:
    return TSC2NSEC, pack(abi, mult, 4) + pack(abi, shift, 4) + pack(abi, offset, 8)


# ---- each step by hand ----


@pytest.mark.parametrize("version", [6, 7])
@pytest.mark.parametrize(("options", "expected"), [
    ([], [1000, 2000, 3000, 4000, 5000, 9000]),
    ([text_option(OFFSET, "7")], [1007, 2007, 3007, 4007, 5007, 9007]),
    ([text_option(OFFSET, "-0x10")], [984, 1984, 2984, 3984, 4984, 8984]),
    ([text_option(DATE, "0x2")], [3000, 4000, 5000, 6000, 7000, 11000]),  # microseconds
    ([text_option(DATE, "1"), text_option(OFFSET, "5")], [2005, 3005, 4005, 5005, 6005, 10005]),
    ([tsc(3, 1)], [1500, 3000, 4500, 6000, 7500, 13500]),
    ([tsc(3, 1, offset=1 << 40)], [1500, 3000, 4500, 6000, 7500, 13500]),  # its offset is not applied
    ([tsc(3, 1), text_option(OFFSET, "1")], [1501, 3001, 4501, 6001, 7501, 13501]),
    ([tsc(0, 10)], [1000, 2000, 3000, 4000, 5000, 9000]),  # mult 0: no TSC
])
def test_options(version, options, expected):
    with ftbuf.open(recording(options, version=version)) as trace:
        assert times_of(trace) == expected
        assert times_of(trace.raw) == TIMES


def test_arguments_of_open():
    data = recording([tsc(3, 1), text_option(OFFSET, "1")], clock="x86-tsc")
    assert times_of(ftbuf.open(data, raw_ts=True)) == TIMES
    assert times_of(ftbuf.open(data, ts_offset=100)) == [1601, 3101, 4601, 6101, 7601, 13601]
    assert times_of(ftbuf.open(data, hz=1_000_000)) == [1000 * ts + 1 for ts in TIMES]  # instead of the TSC
    assert times_of(ftbuf.open(data, hz=3, ts_offset=-1)) == [ts * 10**9 // 3 for ts in TIMES]
    units = {"raw_ts": "ticks", "hz": "ns", "ts_offset": "ns"}
    for name, value in (("raw_ts", True), ("hz", 7), ("ts_offset", 1)):
        assert ftbuf.open(data, **{name: value}).info["clock_unit"] == units[name]


@pytest.mark.parametrize(("arguments", "error"), [
    ({"hz": 0}, ValueError), ({"hz": -1}, ValueError), ({"hz": 1.5}, TypeError), ({"ts_offset": 1.0}, TypeError),
    ({"raw_ts": True, "hz": 5}, ValueError), ({"raw_ts": True, "ts_offset": 5}, ValueError), ({"hz": True}, TypeError),
])
def test_arguments_that_cannot_be(arguments, error):
    with pytest.raises(error):
        ftbuf.open(recording(), **arguments)


def test_a_window_is_on_corrected_times():
    with ftbuf.open(recording([tsc(3, 1)])) as trace:
        assert times_of(trace.window(3000, 7500)) == [3000, 4500, 6000]
        assert (trace.start, trace.end) == (1500, 13500)
        with pytest.raises(ValueError, match="take raw first"):
            _ = trace.window(3000).raw
        assert times_of(trace.raw.window(3000, 5000)) == [3000, 4000]
        assert [e.ts for e in trace.window(3000, 7500).records()] == [3000, 4500, 6000]


def test_times_beyond_63_bits_wrap_and_stay_exact():
    data = recording([text_option(OFFSET, "-1")], [(1 << 62) + 1])
    assert times_of(ftbuf.open(data)) == [1 << 62]
    assert times_of(ftbuf.open(data, ts_offset=(1 << 62) - 1)) == [(1 << 63) - 1]  # a larger one is refused: test_faces


# ---- a guest's clock ----

# What trace-cmd 3.1.6 prints for the same files, but for the last digit of what lies before the first sample: there
# it rounds -50.5 to -50 and -25.25 to -24.
THREE = [(2000, 1000000, 1, 0), (4000, 1000101, 1, 0), (5000, 1000200, 1, 0)]


@pytest.mark.parametrize(("samples", "interpolate", "expected"), [
    ([(0, 1000000, 2, 0)], False, [1001000, 1002000, 1003000, 1004000, 1005000, 1009000]),  # one: not scaled
    ([(0, 1000000, 2, 0)], True, [1001000, 1002000, 1003000, 1004000, 1005000, 1009000]),
    (THREE, False, [1001000, 1002000, 1003000, 1004101, 1005101, 1009101]),
    (THREE, True, [1000949, 1002000, 1003051, 1004101, 1005200, 1009596]),
    (THREE[::-1], True, [1000949, 1002000, 1003051, 1004101, 1005200, 1009596]),  # sorted
    ([(4000, 1000300, 1, 0), (2000, 1000100, 1, 0), (2000, 1000100, 1, 0)], False,
     [1001100, 1002100, 1003100, 1004100, 1005100, 1009100]),  # equal times count once
    ([(2000, 1000000, 3, 1), (4000, 1000101, 5, 2)], True, [1001449, 1003000, 1004551, 1006101, 1007652, 1013854]),
])
@pytest.mark.parametrize("abi", ["le64", "be64", "be32"])
def test_a_guest(samples, interpolate, expected, abi):
    abi = ABIS[abi]
    data = recording([time_shift(abi, 77, [samples], interpolate=interpolate)], abi=abi)
    with ftbuf.open(data) as trace:
        assert times_of(trace) == expected
        assert times_of(trace.raw) == TIMES


def test_a_guest_without_fractions():
    samples = [(2000, 1000000, 3, 1), (4000, 1000101, 5, 2)]
    data = recording([time_shift(ABI, 77, [samples], fractions=False)])
    assert times_of(ftbuf.open(data))[:2] == [1003000, 1006000]


def test_every_cpu_of_a_guest_has_its_samples():
    option = time_shift(ABI, 77, [[(0, 1000, 1, 0)], [], [(0, 3000, 1, 0)]])
    with ftbuf.open(recording([option], [5], cpus=(0, 1, 2, 9))) as trace:
        by_cpu = {e.cpu: e.ts for e in trace.records()}
    assert by_cpu == {0: 1005, 1: 1005, 2: 3005, 9: 1005}  # without samples: those of the first CPU that has


def test_samples_are_counted_by_cpu_whatever_the_writer_did():
    """TC:tracecmd_write_guest_time_shift gives every CPU as many fractions as the last CPU has samples."""
    first, last = [(0, 10, 1, 4), (9, 20, 1, 4)], [(0, 30, 1, 0)]
    number, payload = time_shift(ABI, 77, [first, last], fractions=False)
    payload += pack(ABI, 4, 8) + pack(ABI, 0, 8)  # one for each CPU
    trace = ftbuf.open(recording([(number, payload)], [160]))
    assert times_of(trace) == [160 // 16 + 10]


def test_a_guest_on_a_tsc():
    options = [time_shift(ABI, 77, [[(0, 1000, 1, 0)]]), tsc(3, 1), text_option(OFFSET, "1")]
    assert times_of(ftbuf.open(recording(options, [500]))) == [(1500 * 3 >> 1) + 1]


# ---- the C code against integer arithmetic ----


def wrap(value: int) -> int:
    return (value + (1 << 63)) % U64 - (1 << 63)


def nearest(a: int, b: int) -> int:
    """a / b, halves away from zero."""
    exact = Fraction(abs(a), b)
    return int(math.copysign(1, a)) * math.floor(exact + Fraction(1, 2)) if a else 0


def shifted(ts: int, table: CpuShift, interpolate: bool) -> int:
    samples = sorted({s[0]: s for s in reversed(list(zip(table.times, table.offsets, table.scalings, table.fractions,
                                                         strict=True)))}.values())
    if not samples:
        return ts
    if len(samples) == 1:
        return ts + samples[0][1]
    i = max([k for k, s in enumerate(samples[:-1]) if s[0] <= ts], default=0)
    (t0, offset, scaling, fraction), (t1, right, _, _) = samples[i], samples[i + 1]
    if interpolate:
        offset += nearest((right - offset) * (ts - t0), t1 - t0)
    return (ts * scaling >> fraction) + offset


def corrected(raw: int, c: Correction, cpu: int = 0) -> int:
    """TC:timestamp_calc, in integers."""
    ts = raw
    if c.guest is not None and c.guest.cpus:
        ts = shifted(wrap(ts), c.guest.cpus[cpu], c.guest.interpolate) % U64
    if c.hz:
        ts = ts * 10**9 // c.hz
    elif c.mult:
        ts = ts * c.mult >> c.shift
    return wrap(ts + c.offset)


u64 = st.integers(0, U64 - 1)
near = st.integers(-(1 << 50), 1 << 50)
sample = st.tuples(near, near, st.integers(-(1 << 20), 1 << 40), st.integers(0, 40))


def table(samples) -> CpuShift:
    return CpuShift(*(tuple(column) for column in zip(*samples, strict=True))) if samples else CpuShift((), (), (), ())


guests = st.builds(lambda samples, flag: TimeShift(1, flag, (table(samples),)), st.lists(sample, max_size=6),
                   st.booleans())
corrections = st.builds(Correction, st.integers(0, (1 << 32) - 1), st.integers(0, 63), st.one_of(st.just(0), u64),
                        st.integers(-(1 << 63), (1 << 63) - 1), st.one_of(st.none(), guests))


@given(st.lists(st.one_of(u64, st.integers(0, 1 << 51)), min_size=1, max_size=20), corrections)
@example([0, U64 - 1, 1 << 63, (1 << 63) - 1], Correction(1, 0))
@example([0, U64 - 1], Correction(0xFFFFFFFF, 63, 0, -1))
@example([U64 - 1], Correction(0, 0, U64 - 1, -(1 << 63)))
def test_c_computes_what_integers_do(raws, correction):
    walker = _core.Walker((4096, 16, 8, 0, 2, 0, 0), correction.spec())
    assert [walker.correct(raw) for raw in raws] == [corrected(raw, correction) for raw in raws]


extreme = st.sampled_from([-(1 << 63), (1 << 63) - 1, -1, 0, 1])


@given(u64, st.lists(st.tuples(extreme, extreme, extreme, extreme), min_size=2, max_size=4), st.booleans())
def test_samples_that_cannot_be_are_no_crash(raw, samples, interpolate):
    spec = Correction(guest=TimeShift(1, interpolate, (table(samples),))).spec()
    assert -(1 << 63) <= _core.Walker((4096, 16, 8, 0, 2, 0, 0), spec).correct(raw) < 1 << 63


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=60).map(sorted), corrections)
def test_pages_are_corrected_as_single_times_are(times, correction):
    data = b"".join(pages([t]) for t in times)
    trace = ftbuf.open(recording(times=times))
    view = ftbuf.Trace(trace._recording.corrected(lambda _: correction))
    assert len(data) == 4096 * len(times)
    assert times_of(view) == [corrected(t, correction) for t in times]


# ---- clocks and units ----


@pytest.mark.parametrize(("clock", "unit"), [
    ("local", "ns"), ("global", "ns"), ("perf", "ns"), ("mono", "ns"), ("mono_raw", "ns"), ("boot", "ns"),
    ("tai", "ns"), ("uptime", "ticks"), ("counter", "ticks"), ("x86-tsc", "ticks"), ("ppc-tb", "ticks"),
])
@pytest.mark.parametrize("version", [6, 7])
def test_units_of_clocks(clock, unit, version):
    assert clock_unit(clock, IDENTITY) == unit
    info = ftbuf.open(recording(clock=clock, version=version)).info
    assert (info["clock"], info["clock_unit"], info["buffers"][0]["clock_unit"]) == (clock, unit, unit)


def test_every_buffer_has_its_clock():
    buffers = [BufferSpec(pages={0: pages(TIMES)}), BufferSpec("ticks", {0: pages(TIMES)}, "counter")]
    spec = TraceDat(ABI, formats={"test": [format_text(FORMAT)]}, buffers=buffers)
    info = ftbuf.open(spec.build().data).info
    assert [(b["name"], b["clock"], b["clock_unit"]) for b in info["buffers"]] == [
        ("", "local", "ns"), ("ticks", "counter", "ticks")]


# ---- real recordings ----

FLAGS = r"(?:[dDbX.][nNpLBbl.][hHsZz.][0-9a-f.][0-9a-f.]?)?"
STAMP = re.compile(rf"\[(\d{{3}})\] {FLAGS}\s*(\d+)(?:\.(\d{{9}}))?: ")


def report_times(text: str) -> list[tuple[int, int]]:
    """(cpu, time) of every event's line of ``trace-cmd report -t`` (or --ts2secs, in microseconds)."""
    found = []
    for line in text.splitlines():
        match = STAMP.search(line)
        if match:
            found.append((int(match[1]), int(match[2]) * 10**9 + int(match[3]) if match[3] else int(match[2])))
    return found


def dat_of(case: Any, text: str) -> bytes:
    return case.read(re.match(r"report\.(.+\.dat)\.\w+\.txt", text)[1])


OTHER_CLOCKS = [case for case in file_cases() if re.search("date|tsc|clock", case.name)]


@pytest.mark.corpus
@pytest.mark.parametrize("case", OTHER_CLOCKS, ids=lambda c: c.name)
def test_times_are_those_of_trace_cmd(case):
    texts = [n for n in case.texts() if re.fullmatch(r"report\..+\.dat\.t\.txt", n)]
    assert texts
    for name in texts:
        expected = report_times(case.texts()[name])
        with ftbuf.open(dat_of(case, name)) as trace:
            timeline = trace.timeline()
            got = list(zip(timeline["common_cpu"].tolist(), timeline["common_ts"].tolist(), strict=True))
        assert got == expected


@pytest.mark.corpus
@pytest.mark.parametrize("case", OTHER_CLOCKS, ids=lambda c: c.name)
def test_ts2secs_is_that_of_trace_cmd(case):
    """--ts2secs 1000000: the time stamps count microseconds. Shown in seconds, rounded to microseconds."""
    texts = [n for n in case.texts() if n.endswith(".ts2secs.txt")]
    for name in texts:
        expected = re.findall(r"\s(\d+)\.(\d{6}): ", case.texts()[name])
        with ftbuf.open(dat_of(case, name), hz=1_000_000) as trace:
            got = (trace.timeline()["common_ts"] + 500) // 1000
        assert got.tolist() == [int(s) * 10**6 + int(us) for s, us in expected]


@pytest.mark.corpus
@pytest.mark.parametrize("case", [c for c in raw_cases() if "-clock-" in c.name], ids=lambda c: c.name)
def test_units_of_real_clocks(case, tmp_path):
    """The kernel shows seconds for clocks that count ns, and the number itself for the others."""
    text = case.texts()["trace.txt"]
    in_seconds = re.search(r"\s\d+\.\d{6}: ", text) is not None
    with ftbuf.open(case.lay_out(tmp_path)) as trace:
        assert trace.info["clock"] == case.info["clock"]
        assert trace.info["clock_unit"] == ("ns" if in_seconds else "ticks")
        assert isinstance(trace.start, int) and np.all(trace.timeline()["common_ts"] >= trace.start)
