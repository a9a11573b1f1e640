"""Several files as one trace: hosts with guests, files of other ABIs, ids and formats; instances."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest
from corpus_data import file_cases
from filebuilder import BufferSpec, TraceDat, guest, time_shift, trace_id
from hypothesis import given
from hypothesis import strategies as st
from pagebuilder import ABIS, Page, event, format_text, make_format

import ftbuf

LE, BE = ABIS["le64"], ABIS["be32"]
PRINT = '"number=%u", REC->number'
PROBE = make_format("probe", 7, ["u32 number", "char name[8]"], print_fmt=PRINT)
PROBE_BE = make_format("probe", 1200, ["u64 extra", "char name[8]", "u16 number"], long_size=4, print_fmt=PRINT)
OTHER = make_format("other", 8, ["int value"])


def pages(fmt, abi, times, first=0, **values):
    page, last, out = Page(abi, times[0] if times else 0), None, b""
    for i, ts in enumerate(times):
        if last is None or page.room < 64:
            out += page.finish() if last is not None else b""
            page, last = Page(abi, ts), ts
        if ts - last >= 1 << 27:
            page.time_extend(ts - last)
            last = ts
        page.data(ts - last, event(fmt, abi, **{**values, **({"number": first + i} if fmt.find("number") else {})}))
        last = ts
    return out + page.finish()


def dat(abi, formats, buffers, options=(), cmdlines=b"", version=7):
    texts: dict[str, list[bytes]] = {}
    for fmt in formats:
        texts.setdefault(fmt.system, []).append(format_text(fmt))
    return TraceDat(abi, version, formats=texts, buffers=buffers, options=options, cmdlines=cmdlines).build().data


def little(times_by_cpu, **more):
    return dat(LE, [PROBE, OTHER], [BufferSpec(pages={
        cpu: pages(PROBE, LE, t, 100 * cpu, name="little", common_pid=1) for cpu, t in times_by_cpu.items()})], **more)


def big(times_by_cpu, **more):
    return dat(BE, [PROBE_BE], [BufferSpec(pages={
        cpu: pages(PROBE_BE, BE, t, 1000 + 100 * cpu, name="big", common_pid=1)
        for cpu, t in times_by_cpu.items()})], **more)


@pytest.fixture
def two(tmp_path):
    (tmp_path / "a.dat").write_bytes(little({0: [10, 30, 50], 3: [30, 40]}, cmdlines=b"1 ann\n"))
    (tmp_path / "b.dat").write_bytes(big({0: [20, 30, 60]}, cmdlines=b"1 bob\n"))
    return [tmp_path / "a.dat", tmp_path / "b.dat"]


def test_a_table_of_two_files(two):
    with ftbuf.open(two) as trace:
        assert trace.buffers == ["a.dat", "b.dat"]
        table = trace["probe"].table()
        assert table.column_names == ["common_ts", "common_cpu", "common_pid", "common_comm", "common_flags",
                                      "common_preempt_count", "common_buffer", "number", "name"]
        assert table["common_ts"].tolist() == [10, 20, 30, 30, 30, 40, 50, 60]
        assert table["common_buffer"].tolist() == [f"{x}.dat" for x in "abaabaab"]
        assert table["number"].tolist() == [0, 1000, 1, 300, 1001, 301, 2, 1002]
        assert table["number"].dtype == np.uint32  # u32 and u16
        assert table["name"].tolist() == [{"a": "little", "b": "big"}[x] for x in "abaabaab"]
        assert table["common_comm"].tolist() == [{"a": "ann", "b": "bob"}[x] for x in "abaabaab"]


def test_every_way_to_read_gives_the_same_rows(two):
    with ftbuf.open(two) as trace:
        numbers = trace["probe"].arrays(["number"])["number"].tolist()
        assert list(trace["probe"].arrays(["number"])) == ["number"]
        assert [e["number"] for e in trace.records()] == numbers
        assert [e.comm for e in trace.records()] == trace["probe"].table()["common_comm"].tolist()
        assert [n for t in trace["probe"].iterate(["number"], step_size=1) for n in t["number"].tolist()] == numbers
        assert trace.tables(["probe"], ["number"])["probe"]["number"].tolist() == numbers
        assert sorted(trace["probe"].table(["number"], order="cpu")["number"].tolist()) == sorted(numbers)
        timeline = trace.timeline()
        assert timeline["event"].tolist() == ["probe"] * 8
        assert timeline["common_ts"].tolist() == [10, 20, 30, 30, 30, 40, 50, 60]
        assert timeline.column("event").strings.count("probe") == 1
        assert timeline.to_pandas()["event"].tolist() == ["probe"] * 8
        assert trace.events == {"probe": 8}
        assert (trace.start, trace.end) == (10, 60)


def test_windows_of_two_files(two):
    with ftbuf.open(two) as trace:
        assert trace.window(20, 50)["probe"].arrays(["number"])["number"].tolist() == [1000, 1, 300, 1001, 301]
        assert trace.window(buffer="b.dat")["probe"].arrays(["number"])["number"].tolist() == [1000, 1001, 1002]
        assert trace.window(cpus=[3]).events == {"probe": 2}
        assert trace.window(pids=[1]).events == {"probe": 8}
        assert trace.window(pids=[2]).events == {}
        with pytest.raises(ValueError, match="no buffer named"):
            trace.window(buffer="c.dat")


def test_columns_that_a_file_lacks(two):
    with ftbuf.open(two) as trace:
        assert "extra" not in trace["probe"].columns
        with pytest.raises(ftbuf.ColumnNotFoundError, match=r"a\.dat.*no column of probe named 'extra'"):
            trace["probe"].table(["extra"])
        assert trace["other"].table().num_rows == 0  # one file has it
        assert set(trace) == {"probe", "other"}


@pytest.mark.parametrize(("field", "other", "dtype"), [
    ("u8 x", "s16 x", "int16"), ("u16 x", "u32 x", "uint32"), ("u32 x", "int x", "int64"), ("u8 x", "u8 x", "uint8"),
    ("u64 x", "u32 x", "uint64"), ("s64 x", "u32 x", "int64"), ("u64 x", "s64 x", None), ("u32 x", "char x[4]", None),
    ("u32 x[4]", "u8 x[4]", "uint32"), ("u32 x[4]", "u32 x[2]", None), ("u32 x[4]", "u32 x", None),
    ("char x[4]", "__data_loc char[] x", "object"), ("u32 x[2]", "__data_loc u32[] x", None),
    ("void * x", "u64 x", "uint64"),
])
def test_types_that_agree(field, other, dtype):
    def one(declaration, number):
        fmt = make_format("e", number, [declaration])
        page = Page(LE, 5).data(0, event(fmt, LE))
        return dat(LE, [fmt], [BufferSpec(pages={0: page.finish()})])

    with ftbuf.open([one(field, 4), one(other, 5)]) as trace:
        assert ("x" in trace["e"].columns) == (dtype is not None)
        if dtype is not None:
            column = trace["e"].table(["x"])["x"]
            assert (column.dtype, len(column)) == (dtype, 2)
        else:
            with pytest.raises(ftbuf.FormatError, match="'x'"):
                trace["e"].table(["x"])


def test_lists_of_two_files():
    fmt = make_format("e", 4, ["__data_loc u16[] x"])
    fmt_be = make_format("e", 9, ["u32 y", "__data_loc u16[] x"])

    def one(fmt, abi, rows):
        (first, x), (second, y) = rows
        page = Page(abi, first).data(0, event(fmt, abi, x=x)).data(second - first, event(fmt, abi, x=y))
        return dat(abi, [fmt], [BufferSpec(pages={0: page.finish()})])

    with ftbuf.open([one(fmt, LE, [(1, [1, 2]), (5, [])]), one(fmt_be, BE, [(2, [3]), (9, [4, 5, 6])])]) as trace:
        table = trace["e"].table(["x"])
        assert [row.tolist() for row in table["x"]] == [[1, 2], [3], [], [4, 5, 6]]
        assert table.column("x").offsets.tolist() == [0, 2, 3, 3, 6]


def test_names_of_files(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "trace.dat").write_bytes(little({0: [1]}))
    paths = [tmp_path / "one/trace.dat", tmp_path / "two/trace.dat"]
    assert ftbuf.open(paths).buffers == ["one/trace.dat", "two/trace.dat"]
    assert ftbuf.open([*paths, paths[0]]).buffers == [f"{paths[0]}#0", "two/trace.dat", f"{paths[0]}#2"]
    assert ftbuf.open([paths[0]]).buffers == [""]
    with pytest.raises(ftbuf.FormatError):
        ftbuf.open([])


def test_info_of_two_files(two):
    info = ftbuf.open(two).info
    assert [b["name"] for b in info["buffers"]] == ["a.dat", "b.dat"]
    assert [f["byte_order"] for f in info["files"]] == ["little", "big"]
    assert info["cpus"] == [0, 3]
    assert ftbuf.open([dat(LE, [PROBE], [BufferSpec(pages={}, clock=c)]) for c in ("local", "counter")]
                      ).info["clock_unit"] == "mixed"
    assert "a.dat" in str(ftbuf.open(two))


def test_damage_of_one_file_is_its_own(two):
    data = bytearray(two[1].read_bytes())
    at = data.index(b"big\0")
    page = at - at % 4096
    data[page + 8:page + 12] = b"\0\0\xff\xff"
    with ftbuf.open([two[0], bytes(data)], errors="skip") as trace:
        assert trace["probe"].arrays(["number"])["number"].tolist() == [0, 1, 300, 301, 2]
        problems = trace.problems
        assert problems["status"].tolist() == ["commit_too_large"]
        assert problems["buffer"].tolist() == [trace.buffers[1]]
    with ftbuf.open([two[0], bytes(data)]) as trace, pytest.raises(ftbuf.DamageError):
        trace["probe"].table()


def test_closing_closes_all(two):
    trace = ftbuf.open(two)
    raw = trace.raw
    trace.close()
    for view in (trace, raw):
        with pytest.raises(ftbuf.ClosedError):
            view.timeline()


times = st.lists(st.integers(0, 50), max_size=12).map(sorted)


@given(st.lists(st.dictionaries(st.integers(0, 3), times.filter(bool), max_size=3), min_size=1, max_size=4))
def test_merge_order(files):
    """(ts, file, cpu, position)."""
    sources = [(little if i % 2 else big)(f) for i, f in enumerate(files)]
    expected = sorted((ts, i, cpu, k) for i, f in enumerate(files) for cpu, t in f.items() for k, ts in enumerate(t))
    with ftbuf.open(sources) as trace:
        records = [(e.ts, e.buffer, e.cpu) for e in trace.records()]
        assert records == [row[:3] for row in expected]
        if len(files) > 1:
            table = trace["probe"].table(["common_ts", "common_cpu", "common_buffer"])
            order = {name: i for i, name in enumerate(trace.buffers)}
            assert [(t, order[b], c) for t, c, b in zip(*(table[n].tolist() for n in table.column_names), strict=True)
                    ] == [row[:3] for row in expected]


@given(st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=8), min_size=2, max_size=3))
def test_clocks_that_step_back_keep_each_files_order(files):
    """Every file one CPU; tables and records agree also where a clock steps back."""
    def one(stamps, abi, fmt):
        page = Page(abi, stamps[0])
        for k, ts in enumerate(stamps):
            page.time_stamp(ts).data(0, event(fmt, abi, number=k))
        return dat(abi, [fmt], [BufferSpec(pages={0: page.finish()})])

    sources = [one(f, *((LE, PROBE) if i % 2 else (BE, PROBE_BE))) for i, f in enumerate(files)]
    with ftbuf.open(sources) as trace:
        table = trace["probe"].table(["common_buffer", "number"])
        got = list(zip(table["common_buffer"].tolist(), table["number"].tolist(), strict=True))
        assert got == [(trace.buffers[e.buffer], e["number"]) for e in trace.records()]


def test_iterating_two_files_takes_bounded_memory():
    stamps = list(range(0, 400_000, 10))
    with ftbuf.open([little({0: stamps}), big({0: stamps})]) as trace:
        trace["probe"].table(["number"])
        tracemalloc.start()
        rows = sum(t.num_rows for t in trace["probe"].iterate(["common_ts", "number"], step_size="64 kB"))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert rows == 2 * len(stamps)
    assert peak < 2 << 20


# ---- hosts and guests ----


@pytest.fixture
def machines(tmp_path):
    host = little({0: [1001000, 1002500, 1004500]}, options=[trace_id(LE, 77), guest(LE, "vm", 88, {0: 100, 1: 101})])
    shift = time_shift(LE, 77, [[(0, 1000000, 1, 0)], [(0, 1000000, 1, 0)]])
    (tmp_path / "host.dat").write_bytes(host)
    (tmp_path / "host-vm.dat").write_bytes(little({0: [1000, 4000], 1: [1500]}, options=[trace_id(LE, 88), shift]))
    (tmp_path / "unrelated.dat").write_bytes(little({0: [1]}, options=[trace_id(LE, 99)]))
    (tmp_path / "broken.dat").write_bytes(b"\x17\x08\x44tracing7\0")
    (tmp_path / "notes.txt").write_bytes(b"text")
    return tmp_path


def test_a_host_lists_its_guests(machines):
    with ftbuf.open(machines / "host.dat") as trace:
        assert [(g.name, g.trace_id, g.host_pids) for g in trace.guests] == [("vm", 88, {0: 100, 1: 101})]
        assert trace.trace_id == 77
        assert trace.buffers == [""]


@pytest.mark.parametrize("arguments", ["list", "guests", "one", "auto"])
def test_a_guest_is_merged_on_its_hosts_clock(machines, arguments):
    host, vm = machines / "host.dat", machines / "host-vm.dat"
    trace = {"list": lambda: ftbuf.open([host, vm]), "guests": lambda: ftbuf.open(host, guests=[vm]),
             "one": lambda: ftbuf.open(host, guests=vm), "auto": lambda: ftbuf.open(host, guests="auto")}[arguments]()
    with trace:
        assert trace.buffers == ["host.dat", "host-vm.dat"]
        assert [(trace.buffers[e.buffer][:-4], e.ts) for e in trace.records()] == [
            ("host", 1001000), ("host-vm", 1001000), ("host-vm", 1001500), ("host", 1002500), ("host-vm", 1004000),
            ("host", 1004500)]
        assert [e.ts for e in trace.raw.records()] == [1000, 1500, 4000, 1001000, 1002500, 1004500]


def test_no_guest_beside_a_host_is_no_error(machines):
    (machines / "host-vm.dat").unlink()
    assert ftbuf.open(machines / "host.dat", guests="auto").buffers == [""]
    assert ftbuf.open((machines / "host.dat").read_bytes(), guests="auto").buffers == [""]


# ---- as a text ----


def report(capsysbinary, *arguments):
    from ftbuf.cli.main import main

    status = main(["report", *map(str, arguments)])
    return status, capsysbinary.readouterr().out.decode()


def test_a_report_of_several_files(machines, capsysbinary):
    """What trace-cmd prints for ``report -t -i host.dat -i host-vm.dat``, and the flags that it shows since 3.3."""
    status, text = report(capsysbinary, "-t", machines / "host.dat", machines / "host-vm.dat")
    assert status == 0
    expected = [("   host", 0, 1001000, 0), ("host-vm", 0, 1001000, 0), ("host-vm", 1, 1001500, 100),
                ("   host", 0, 1002500, 1), ("host-vm", 0, 1004000, 1), ("   host", 0, 1004500, 2)]
    lines = [f"{file}.dat:            <...>-1     [{cpu:03}] .....     0.00{ts}: probe:                number={n}"
             for file, cpu, ts, n in expected]
    assert text.splitlines() == [
        "   host.dat: cpus=1", "host-vm.dat: cpus=2", *lines]


def test_every_file_of_a_report_has_its_formats_and_names(two, capsysbinary):
    def bodies(text):
        return [re.sub(r"^\s*[ab]\.dat:\s*", "", line).strip() for line in text.splitlines() if "probe:" in line]

    one, other = (bodies(report(capsysbinary, "-R", path)[1]) for path in two)
    both = bodies(report(capsysbinary, "-R", *two)[1])
    assert sorted(both) == sorted(one + other) and len(both) == 8
    assert [line.split("-")[0] for line in both] == [{"a": "ann", "b": "bob"}[x] for x in "abaabaab"]


def test_the_kernels_layout_of_several_files(two, capsysbinary):
    """Each file's lines as its own report has them, behind its name, in time order; headings first."""
    status, text = report(capsysbinary, "--style", "kernel", *two)
    assert status == 0
    own = {}
    for path in two:
        alone = report(capsysbinary, "--style", "kernel", path)[1].splitlines()
        own[path.name] = [line for line in alone if not line.startswith("#")]
        heading = [line for line in alone if line.startswith("#")]
        at = text.splitlines().index(f"# file: {path.name}") + 1
        assert text.splitlines()[at : at + len(heading)] == heading
    merged = [line for line in text.splitlines() if not line.startswith("#")]
    assert sorted(merged) == sorted(f"{name}: {line}" for name, lines in own.items() for line in lines)
    assert [line[0] for line in merged] == list("abaabaab")
    assert len(report(capsysbinary, "--style", "kernel", "-O", "latency-format", *two)[1].splitlines()) > 16


def test_graphs_of_several_files_are_not_merged(two, tmp_path, capsysbinary):
    status, text = report(capsysbinary, "--style", "kernel", "--buffer", "snapshot", *two)
    assert (status, text) == (1, "")


# ---- instances ----


def instances(version):
    buffers = [BufferSpec(pages={0: pages(PROBE, LE, [10, 40], 0), 5: pages(PROBE, LE, [10], 10)}),
               BufferSpec("fast", {5: pages(PROBE, LE, [10, 20], 20)}, "mono"),
               BufferSpec("slow", {1: pages(PROBE, LE, [5], 30)})]
    return dat(LE, [PROBE], buffers, version=version)


@pytest.mark.parametrize("version", [6, 7])
def test_instances(version):
    with ftbuf.open(instances(version)) as trace:
        assert trace.buffers == ["", "fast", "slow"]
        table = trace["probe"].table(["common_ts", "common_buffer", "common_cpu", "number"])
        assert list(zip(*(table[n].tolist() for n in table.column_names), strict=True)) == [
            (5, "slow", 1, 30), (10, "", 0, 0), (10, "", 5, 10), (10, "fast", 5, 20), (20, "fast", 5, 21),
            (40, "", 0, 1)]
        assert trace.window(buffer="fast")["probe"].arrays(["number"])["number"].tolist() == [20, 21]
        assert trace.window(buffer="").events == {"probe": 3}
        assert [b["clock"] for b in trace.info["buffers"]] == ["local", "mono", "local"]


def test_instances_of_two_files():
    with ftbuf.open([instances(7), instances(6)]) as trace:
        assert trace.buffers == ["<bytes>#0", "<bytes>#0:fast", "<bytes>#0:slow", "<bytes>#1", "<bytes>#1:fast",
                                 "<bytes>#1:slow"]
        assert trace.window(buffer="<bytes>#1:fast")["probe"].arrays(["number"])["number"].tolist() == [20, 21]


def test_instances_have_sub_buffer_sizes_of_their_own():
    small, large = ABIS["le64"], ABIS["le64-64k"]
    buffers = [BufferSpec(pages={0: pages(PROBE, small, [1], 1)}),
               BufferSpec("large", {0: pages(PROBE, large, list(range(2, 1500)), 2)}, subbuf_size=65536)]
    with ftbuf.open(dat(small, [PROBE], buffers)) as trace:
        assert trace["probe"].arrays(["number"])["number"].tolist() == list(range(1, 1500))
        assert [b["subbuf_size"] for b in trace.info["buffers"]] == [4096, 65536]


INSTANCES = [case for case in file_cases() if "instance" in case.name]


@pytest.mark.corpus
@pytest.mark.parametrize("case", INSTANCES, ids=lambda c: c.name)
def test_real_instances_are_merged_as_trace_cmd_does(case):
    name = next(n for n in case.texts() if re.fullmatch(r"report\..+\.dat\.t\.txt", n))
    stamp = re.compile(r"^\s*(?:([\w.-]+):)?\s.{16}-\d+\s+\[(\d{3})\].*?\s?(\d+)\.(\d{9}): ")
    expected = [(m[1] or "", int(m[2]), int(m[3]) * 10**9 + int(m[4]))
                for line in case.texts()[name].splitlines() if (m := stamp.match(line))]
    data = case.read(re.match(r"report\.(.+\.dat)\.t\.txt", name)[1])
    with ftbuf.open(data) as trace:
        got = [(trace.buffers[e.buffer], e.cpu, e.ts) for e in trace.records()]
    assert len(got) > 0
    assert [g[1:] for g in got] == [e[1:] for e in expected]
    assert [g[0] for g in got] == [e[0] for e in expected]
