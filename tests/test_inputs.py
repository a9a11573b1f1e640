"""Other inputs: copies of mapped buffers, snapshots, options that are data of a trace.dat and its quirks."""

from __future__ import annotations

import lzma
import struct
from pathlib import Path

import pytest
from corpus_data import raw_cases
from filebuilder import BTF, BufferSpec, TraceDat, guest, text_option, time_shift, trace_id, write_tracefs
from pagebuilder import ABIS, Page, event, format_text, make_format, pack, pages_of

import ftbuf
from ftbuf.container.options import Guest, Hook, LastBootInfo, Mapping, Process, TimeShift, TscToNsec

FORMAT = make_format("probe", 7, ["u32 number"])
LE = ABIS["le64"]
DATA = Path(__file__).parent / "data" / "tracedat"


def payloads(abi, first, n):
    return [event(FORMAT, abi, number=k) for k in range(first, first + n)]


def numbers(trace):
    return trace["probe"].arrays(["number"])["number"].tolist()


# ---- copies of mapped buffers ----


def image(abi, pages, *, reader=0, reader_read=0, spare=1):
    """(meta page, sub-buffers) of a mapped ring: its sub-buffers in any order, and some that are empty."""
    size = abi.subbuf_size
    empty = Page(abi, 0).finish()
    parts = [pages[i:i + size] for i in range(0, len(pages), size)] + [empty] * spare
    order = "<" if not abi.big_endian else ">"
    meta = struct.pack(order + "4IQ2I6Q", size, 80, size, len(parts), 0, reader, reader_read, 0, 0, 0, 0, 0, 0)
    turned = parts[2:] + parts[:2]  # the ring's order is not that of the mapping
    return meta + bytes(size - len(meta)), b"".join(turned)


def mapped(abi, first, n):
    return image(abi, pages_of(abi, *payloads(abi, first, n)))


@pytest.mark.parametrize("name", ["le64", "be64", "be32-8k", "le64-64k"])
def test_a_directory_of_mapped_buffers(name, tmp_path):
    abi = ABIS[name]
    write_tracefs(tmp_path, abi, [FORMAT])
    for cpu in (0, 3):
        meta, subbufs = mapped(abi, 1000 * cpu, 900)
        (tmp_path / f"cpu{cpu}.mmap_meta").write_bytes(meta)
        (tmp_path / f"cpu{cpu}.mmap_subbufs").write_bytes(subbufs)
    with ftbuf.open(tmp_path) as trace:
        assert trace.cpus == [0, 3]
        assert trace.info["byte_order"] == ("big" if abi.big_endian else "little")
        assert numbers(trace.window(cpus=[0])) == list(range(900))
        assert numbers(trace.window(cpus=[3])) == list(range(3000, 3900))
        assert trace.problems.num_rows == 0


def test_decode_mmap():
    abi = ABIS["be32-8k"]
    meta, subbufs = mapped(abi, 0, 900)
    for given in (meta + subbufs, (meta, subbufs)):
        table = ftbuf.decode_mmap({1: given}, abi=abi, events=FORMAT)
        assert table["number"].tolist() == list(range(900))
        assert set(table["common_cpu"].tolist()) == {1}
    with pytest.raises(ftbuf.FormatError, match="sub-buffers of 8192 bytes"):
        ftbuf.decode_mmap({0: meta + subbufs}, abi=ABIS["be32"], events=FORMAT)


def test_what_is_missing_of_a_mapped_buffer_is_listed(tmp_path):
    write_tracefs(tmp_path, LE, [FORMAT])
    meta, subbufs = mapped(LE, 0, 900)
    (tmp_path / "cpu0.mmap_meta").write_bytes(meta)
    (tmp_path / "cpu0.mmap_subbufs").write_bytes(subbufs[:-4096])
    with ftbuf.open(tmp_path, errors="skip") as trace:
        assert 0 < len(numbers(trace)) < 900
        assert trace.problems["bytes"].tolist() == [4096]
    (tmp_path / "cpu0.mmap_meta").write_bytes(bytes(4096))
    with pytest.raises(ftbuf.FormatError, match="meta page"):
        ftbuf.open(tmp_path)


def test_pages_that_were_read_win_over_a_mapped_copy(tmp_path):
    write_tracefs(tmp_path, LE, [FORMAT], {0: pages_of(LE, *payloads(LE, 5, 2))})
    for cpu in (0, 1):
        meta, subbufs = mapped(LE, 100, 3)
        (tmp_path / f"cpu{cpu}.mmap_meta").write_bytes(meta)
        (tmp_path / f"cpu{cpu}.mmap_subbufs").write_bytes(subbufs)
    assert sorted(numbers(ftbuf.open(tmp_path))) == [5, 6, 100, 101, 102]


@pytest.mark.corpus
@pytest.mark.parametrize("case", [c for c in raw_cases() if c.name.endswith("-mmap")], ids=lambda c: c.name)
def test_real_mapped_buffers(case, tmp_path):
    """The mapped copy and what trace_pipe_raw gave afterwards are the same events."""
    with ftbuf.open(case.lay_out(tmp_path / "read")) as trace:
        expected = [(e.ts, e.cpu, e.payload) for e in trace.records()]
    root = case.lay_out(tmp_path / "mapped")
    for path in root.glob("per_cpu/cpu*/trace_pipe_raw"):
        path.unlink()
    for name in case.names():
        if ".mmap_" in name:
            (root / name).write_bytes(case.read(name))
    with ftbuf.open(root) as trace:
        assert [(e.ts, e.cpu, e.payload) for e in trace.records()] == expected
        assert len(expected) > 0


# ---- snapshots ----


def test_a_snapshot_is_a_trace_of_its_own(tmp_path):
    main, kept = (pages_of(LE, *payloads(LE, first, 3)) for first in (0, 50))
    root = write_tracefs(tmp_path, LE, [FORMAT], {0: main}, snapshot={0: kept, 2: kept})
    with ftbuf.open(root) as trace:
        assert numbers(trace) == [0, 1, 2]
        assert numbers(trace.snapshot) == [50, 50, 51, 51, 52, 52]
        assert trace.snapshot.cpus == [0, 2]
        assert numbers(trace.window(cpus=[2]).snapshot) == [50, 51, 52]
    assert ftbuf.open(write_tracefs(tmp_path / "none", LE, [FORMAT], {0: main})).snapshot is None


def test_a_directory_of_snapshots_only(tmp_path):
    kept = pages_of(LE, *payloads(LE, 50, 3))
    with ftbuf.open(write_tracefs(tmp_path, LE, [FORMAT], snapshot={1: kept})) as trace:
        assert numbers(trace) == [50, 51, 52]
        assert trace.cpus == [1]
        assert numbers(trace.snapshot) == [50, 51, 52]


def test_snapshots_of_instances(tmp_path):
    kept = pages_of(LE, *payloads(LE, 50, 1))
    files = {"instances/i/per_cpu/cpu0/snapshot_raw": kept, "instances/i/per_cpu/cpu0/trace_pipe_raw": kept}
    with ftbuf.open(write_tracefs(tmp_path, LE, [FORMAT], {0: kept}, files=files)) as trace:
        assert trace.buffers == ["", "i"]
        assert trace.snapshot.buffers == ["i"]


def test_a_real_snapshot(recordings):
    recording = recordings["k612-snapshot"]
    with ftbuf.open(recording.path) as trace:
        counts = recording.info["snapshot_raw"]["data_events"]
        assert sum(trace.snapshot.events.values()) == counts > 0
        assert trace.snapshot.events != trace.events


# ---- options ----


def dat(options, version=7, **more):
    return TraceDat(LE, version, formats={"test": [format_text(FORMAT)]}, options=options, **more).build().data


MAPS = "2a 1 /bin/sh\n1000 2000 /lib/libc.so\n"
HOOK = "sched:sched_waking,pid/sched:sched_switch,next_pid,p"


@pytest.mark.parametrize("version", [6, 7])
def test_options_are_properties(version):
    options = [trace_id(LE, 5), guest(LE, "vm", 6, {0: 9}), text_option(6, HOOK), text_option(10, MAPS),
               text_option(24, "boot:ffff [kernel]\n"), time_shift(LE, 4, [[(0, 1, 1, 0)]]),
               (14, pack(LE, 3, 4) + pack(LE, 1, 4) + pack(LE, 0, 8)), (999, b"?")]
    with ftbuf.open(dat(options, version)) as trace:
        assert trace.trace_id == 5
        assert trace.guests == [Guest("vm", 6, {0: 9})]
        assert trace.hooks == [Hook("sched", "sched_waking", "pid", "", "sched", "sched_switch", "next_pid", True, False,
                                    False)]
        assert trace.procmaps == [Process(0x2A, "/bin/sh", (Mapping(0x1000, 0x2000, "/lib/libc.so"),))]
        assert trace.last_boot == {"boot": "ffff [kernel]\n"}
        by_name = {o.name: o for o in trace.options}
        assert isinstance(by_name["TIME_SHIFT"].value, TimeShift)
        assert by_name["TSC2NSEC"].value == TscToNsec(3, 1, 0)
        assert by_name["LAST_BOOT_INFO"].value == LastBootInfo("boot", "ffff [kernel]\n")
        assert (by_name["UNKNOWN"].id, by_name["UNKNOWN"].payload, by_name["UNKNOWN"].value) == (999, b"?", None)
        assert [o["name"] for o in trace.info["options"]] == [o.name for o in trace.options]


@pytest.mark.parametrize("version", [6, 7])
def test_options_that_are_not_there(version):
    with ftbuf.open(dat([], version)) as trace:
        assert (trace.trace_id, trace.guests, trace.hooks, trace.procmaps) == (None, [], [], [])
        assert (trace.last_boot, trace.modules, trace.btf, trace.cpustat) == ({}, None, None, {})


def test_statistics_by_buffer():
    options = [text_option(2, "CPU: 0\nentries: 4\n"), text_option(2, "\nBuffer: i\n\n"),
               text_option(2, "CPU: 1\nentries: 7\n")]
    buffers = [BufferSpec(pages={0: Page(LE).finish()}), BufferSpec("i", {1: Page(LE).finish()})]
    with ftbuf.open(dat(options, buffers=buffers)) as trace:
        assert trace.cpustat == {("", 0): "entries: 4\n", ("i", 1): "entries: 7\n"}
        assert trace.stats["entries"].tolist() == [4, 7]


def test_modules_and_btf():
    built = TraceDat(LE, formats={"test": [format_text(FORMAT)]},
                     options=[(25, pack(LE, 0, 8)), (BTF, pack(LE, 1, 8))]).build()
    data = bytearray(built.data)
    modules, btf = b"ext4 1 0 - Live 0xffff\n", b"\x9f\xeb\x01\x00"
    for mark, body, number in (("option25", modules, 25), ("option23", btf, 23)):
        struct.pack_into("<Q", data, built.marks[mark][0], len(data))
        data += struct.pack("<HHiQ", number, 0, -1, len(body)) + body
    with ftbuf.open(bytes(data)) as trace:
        assert (trace.modules, trace.btf) == (modules.decode(), btf)


def test_last_boot_and_modules_of_a_directory(tmp_path):
    files = {"last_boot_info": b"0 [kernel]\n", "modules": b"ext4 1\n", "instances/old/last_boot_info": b"10 [kernel]\n",
             "instances/old/per_cpu/cpu0/trace_pipe_raw": Page(LE).finish()}
    with ftbuf.open(write_tracefs(tmp_path, LE, [FORMAT], files=files)) as trace:
        assert trace.last_boot == {"": "0 [kernel]\n", "old": "10 [kernel]\n"}
        assert trace.modules == "ext4 1\n"


# ---- quirks of files ----


def test_cpucount_of_version_6_is_not_about_the_top_buffer():
    """With CPUCOUNT 1, trace-cmd loses CPU 1 of the top buffer."""
    buffers = [BufferSpec(pages={0: pages_of(LE, *payloads(LE, 0, 2)), 1: pages_of(LE, *payloads(LE, 10, 2))}),
               BufferSpec("i", {0: pages_of(LE, *payloads(LE, 20, 2))})]
    with ftbuf.open(dat([(8, pack(LE, 1, 4))], 6, buffers=buffers)) as trace:
        assert sorted(numbers(trace)) == [0, 1, 10, 11, 20, 21]


def test_sparse_cpus():
    buffers = [BufferSpec(pages={cpu: pages_of(LE, *payloads(LE, cpu, 1)) for cpu in (2, 700, 4095)})]
    with ftbuf.open(dat([], buffers=buffers)) as trace:
        assert trace.cpus == [2, 700, 4095]
        table = trace["probe"].table(["common_cpu", "number"])
        assert table["common_cpu"].tolist() == table["number"].tolist() == [2, 700, 4095]


@pytest.mark.parametrize("name", ["k612-tc34-instances", "k612-tc316-instances-v6"])
def test_real_instances(name):
    """Counts of each buffer and CPU are those of trace-cmd's own statistics."""
    with ftbuf.open(lzma.decompress((DATA / f"{name}.dat.xz").read_bytes())) as trace:
        assert len(trace.buffers) > 1
        stats = trace.stats
        assert stats.num_rows > 0
        for buffer, cpu, read in zip(*(stats[n].tolist() for n in ("buffer", "cpu", "read_events")), strict=True):
            view = trace.window(buffer=buffer, cpus=[cpu])
            assert sum(view.events.values()) == read or read <= 0
        whole = sum(trace.events.values())
        assert whole == sum(sum(trace.window(buffer=b).events.values()) for b in trace.buffers) > 0
        names = trace.timeline()["common_buffer"]
        assert {b: names.tolist().count(b) for b in trace.buffers} == {
            b: sum(trace.window(buffer=b).events.values()) for b in trace.buffers}
