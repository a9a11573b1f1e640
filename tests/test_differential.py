"""The package equals the reference decoder: values, order, losses and statuses, over built and damaged recordings."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from filebuilder import BufferSpec, TraceDat
from hypothesis import given
from hypothesis import strategies as st
from pagebuilder import ABIS, Abi, event, format_text, make_abi, make_format, pack, pages_of
from strategies import abis, streams

import ftbuf
from ftbuf.formats import EventFormat, Field, Kind, Where, parse_format

# ------------------------------------------------------------------------------------------------------- helpers


def comparable(value):
    """Values of a column, of a record or of the reference in one shape: int, str, or list of ints."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return list(value) if isinstance(value, (bytes, list)) else value


def expected_value(f: Field, value):
    return value.decode("utf-8", "surrogateescape") if f.kind is Kind.STRING else comparable(value)


def signed(ts: int) -> int:
    return ts - (1 << 64) if ts >> 63 else ts


def own_and_common(fmt: EventFormat) -> list[Field]:
    return [f for f in fmt.fields if f.name != "common_type"]


def check_table(table, fmt: EventFormat, rows) -> None:
    assert table["common_ts"].tolist() == [signed(r.ts) for r in rows]
    for f in own_and_common(fmt):
        got = [comparable(v) for v in table[f.name]]
        assert got == [expected_value(f, r.values[f.name]) for r in rows], f.name


# ------------------------------------------------------------------------------------------------ every kind of field

TYPES = [
    "char",
    "u8",
    "s8",
    "bool",
    "short",
    "u16",
    "int",
    "unsigned int",
    "long",
    "unsigned long",
    "s64",
    "u64",
    "void *",
]


@st.composite
def declarations(draw) -> list[str]:
    """Fields of every kind, a flexible one last."""
    shapes = ["{t} {n}", "{t} {n}", "{t} {n}[3]", "__data_loc {t}[] {n}", "__rel_loc {t}[] {n}"]
    odd = ["__data_loc cpumask_t {n}", "__rel_loc cpumask_t {n}", "struct s {n}", "__data_loc struct s[] {n}"]
    chosen = draw(st.lists(st.tuples(st.sampled_from([*shapes, *odd]), st.sampled_from(TYPES)), max_size=6))
    fields = [shape.format(t=t, n=f"f{i}") for i, (shape, t) in enumerate(chosen)]
    tail = draw(st.sampled_from([None, "char tail[]", "u32 tail[]", "long tail[]"]))
    return [*fields, tail] if tail else fields


@st.composite
def formats(draw, abi: Abi) -> EventFormat:
    fmt = make_format(
        "ev",
        draw(st.integers(1, 0xFFFE)),
        draw(declarations()),
        long_size=abi.long_size,
        packed=draw(st.booleans()),
        sizes={f"f{i}": 5 for i in range(6) if draw(st.booleans())} if draw(st.booleans()) else None,
    )
    return parse_format(format_text(fmt), "test", long_size=abi.long_size)  # where sizes that fit no number are opaque


@st.composite
def payloads(draw, fmt: EventFormat, abi: Abi) -> bytes:
    """Noise, sometimes with locations that are true, sometimes too short."""
    fixed = ref.fixed_size(fmt)
    noise = bytearray(draw(st.binary(min_size=fixed, max_size=fixed + 40)))
    for f in fmt.fields:
        if f.where in (Where.DATA_LOC, Where.REL_LOC) and draw(st.booleans()):
            base = f.offset + 4 if f.where is Where.REL_LOC else 0
            start = draw(st.integers(min(base, len(noise)), len(noise)))
            length = draw(st.integers(0, len(noise) - start))
            noise[f.offset : f.offset + 4] = pack(abi, length << 16 | (start - base), 4)
    noise[:2] = pack(abi, fmt.id, 2)
    return bytes(noise[: draw(st.integers(2, fixed))]) if draw(st.integers(0, 9)) == 0 else bytes(noise)


@given(st.data())
def test_fields(data):
    """Columns and records of noise under any format, as the reference reads them."""
    abi = data.draw(st.sampled_from([ABIS[n] for n in ("le64", "be64", "le32", "be32")]))
    fmt = data.draw(formats(abi))
    stream = pages_of(abi, *data.draw(st.lists(payloads(fmt, abi), max_size=8)))
    want = ref.decode_stream(stream, abi, {fmt.id: fmt})
    table = ftbuf.decode_pages(stream, abi=abi, events=fmt, errors="skip")
    check_table(table, fmt, want.rows)
    short = [p.offset for p in want.problems if p.status == "record_short"]
    if short:
        with pytest.raises(ftbuf.DamageError) as caught:
            ftbuf.decode_pages(stream, abi=abi, events=fmt)
        assert (caught.value.status, caught.value.offset) == ("record_short", short[0])


@given(st.data())
def test_records(data):
    """Objects read what columns hold; a field that a short record does not reach is None."""
    abi = data.draw(st.sampled_from([ABIS[n] for n in ("le64", "be32")]))
    fmt = data.draw(formats(abi))
    stream = pages_of(abi, *data.draw(st.lists(payloads(fmt, abi), max_size=8)))
    with ftbuf.open(recording(abi, [fmt], [BufferSpec("", {0: stream})])) as trace:
        events = list(trace.records())
    rows = iter(ref.decode_stream(stream, abi, {fmt.id: fmt}).rows)
    for e in events:
        if len(e.payload) < ref.fixed_size(fmt):
            continue
        row = next(rows)
        assert e.ts == row.ts
        assert {f.name: comparable(e[f.name]) for f in fmt.fields} == {
            f.name: expected_value(f, row.values[f.name]) for f in fmt.fields
        }
    assert next(rows, None) is None


# ------------------------------------------------------------------------------------------------- whole recordings


def recording(abi: Abi, fmts, buffers, *, version: int = 7, compression: str = "none") -> bytes:
    old = {"header_page": b""} if abi.old_header else {}
    texts = {"test": [format_text(f) for f in fmts]}
    spec = TraceDat(abi, version, compression, formats=texts, buffers=buffers, cmdlines=b"7 seven\n", **old)
    return spec.build().data


def built(abi: Abi, fmts, buffers, **options):
    old = {"header_page": b""} if abi.old_header else {}
    return TraceDat(abi, formats={"test": [format_text(f) for f in fmts]}, buffers=buffers, **options, **old).build()


# small ids occur in noise, so that some records have a format
KNOWN = [make_format(f"e{i}", i, ["u8 x"], long_size=8) for i in (0, 1, 2, 256, 512)]
NAMES = {f.id: f.name for f in KNOWN}


def expected(abi: Abi, buffers, place) -> tuple[list, list, list]:
    """(timeline, losses, problems) by the reference; ``place`` gives the file offset of a CPU's data."""
    merged, losses, problems = {}, [], []
    for b, spec in enumerate(buffers):
        for cpu, stream in sorted(spec.pages.items()):
            rows, before = [], -(1 << 63)
            for start, page in ref.split_pages(stream, abi):
                at = place(spec, cpu) + start
                if len(page) <= abi.data_offset:  # a container does not hand out what holds no record
                    problems.append((cpu, spec.name, at, "truncated", len(page)))
                    continue
                result = ref.walk_page(page, abi)
                problems += [(cpu, spec.name, at + p.offset, p.status, p.bytes) for p in result.problems]
                problems += [
                    (cpu, spec.name, at + r.offset, "record_short", r.length)
                    for r in result.records
                    if r.event_id in NAMES and r.length < ref.fixed_size(KNOWN[0])
                ]
                if result.lost is not None:
                    after = result.records[0].ts if result.records else result.ts
                    losses.append((cpu, before, signed(after), result.lost))
                records = [(signed(r.ts), r.event_id, page[r.offset : r.offset + r.length]) for r in result.records]
                rows += [(ts, cpu, i, payload) for ts, i, payload in records]
                before = rows[-1][0] if rows else before
            merged[b, cpu] = [ref.Row(row[0], None, {}, row) for row in rows]
    return [row.payload for _, row in ref.merge(merged)], losses, problems


@st.composite
def recordings(draw, *, damage: bool = True):
    abi = draw(abis.filter(lambda a: not a.old_header))
    names = draw(st.sampled_from([[""], ["", "inst"]]))
    buffers = []
    for name in names:
        cpus = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True))
        pages = {cpu: draw(streams(abi, damage=damage, max_pages=3)) for cpu in sorted(cpus)}
        buffers.append(BufferSpec(name, pages, subbuf_size=abi.subbuf_size))
    return abi, buffers


def rows_of(table, *names):
    return list(zip(*(table[n].tolist() for n in names), strict=True))


@given(recordings())
def test_damaged_recordings(drawn):
    """Time line, losses and problems of any recording; nothing is raised, and nothing of the rest is lost."""
    abi, buffers = drawn
    file = built(abi, KNOWN, buffers)
    timeline, losses, problems = expected(abi, buffers, lambda b, cpu: file.marks[f"{b.name}.cpu{cpu}"][0])
    with ftbuf.open(file.data, errors="skip") as trace:
        got = [(e.ts, e.cpu, e.payload) for e in trace.records()]
        assert got == [(ts, cpu, payload) for ts, cpu, _, payload in timeline]
        assert sorted(rows_of(trace.lost, "common_cpu", "before", "after", "count")) == sorted(losses)
        assert sorted(rows_of(trace.problems, "cpu", "buffer", "offset", "status", "bytes")) == sorted(problems)
        assert trace.unknown_events == sum(i not in NAMES for _, _, i, _ in timeline)
        shown = [(ts, cpu, NAMES.get(i, "[unknown event]")) for ts, cpu, i, p in timeline if len(p) >= 8]
        assert rows_of(trace.timeline(), "common_ts", "common_cpu", "event") == shown
    damage = {p[3] for p in problems} - {"record_short"}  # a record that is short can still be handed out
    if damage:
        with ftbuf.open(file.data) as trace, pytest.raises(ftbuf.DamageError) as caught:
            list(trace.records())
        assert caught.value.status in damage


@given(recordings(damage=False), st.sampled_from([(6, "none"), (7, "none"), (7, "zlib"), (7, "zstd")]))
def test_versions_and_compression(drawn, variant):
    """The same pages give the same events, whatever the file around them."""
    abi, buffers = drawn
    version, compression = variant
    timeline, _, _ = expected(abi, buffers, lambda *_: 0)
    with ftbuf.open(recording(abi, KNOWN, buffers, version=version, compression=compression), errors="skip") as trace:
        assert [(e.ts, e.cpu, e.payload) for e in trace.records()] == [(t, c, p) for t, c, _, p in timeline]


# --------------------------------------------------------------------------------------- ways to ask for the same

STEADY = make_format("steady", 9, ["u32 n", "__data_loc char[] s"])


@st.composite
def steady(draw):
    """Streams whose clocks only go up, as nearly all do; and their file."""
    abi = make_abi(big=draw(st.booleans()), subbuf_size=256)
    pages, n = {}, 0
    for cpu in range(draw(st.integers(1, 3))):
        count, step = draw(st.integers(0, 60)), draw(st.integers(1, 50))
        values = [event(STEADY, abi, n=n + i, s=f"s{i % 3}", common_pid=i % 4) for i in range(count)]
        pages[cpu] = pages_of(abi, *values, ts=1000 + draw(st.integers(0, 500)), step=step)
        n += count
    options = draw(
        st.sampled_from([{}, {"compression": "zlib", "chunk_pages": 3}, {"compression": "zlib", "chunk_pages": 1}])
    )
    return abi, pages, options


def file_of(abi: Abi, pages: dict[int, bytes], options: dict) -> bytes:
    return built(abi, [STEADY], [BufferSpec("", pages, subbuf_size=abi.subbuf_size)], **options).data


def numbers(table) -> list[tuple]:
    return rows_of(table, "common_ts", "common_cpu", "common_pid", "n", "s")


@given(steady(), st.data())
def test_windows(drawn, data):
    """A window is what a filter of everything would keep, by tables, records and losses alike."""
    file = file_of(*drawn)
    bounds = st.one_of(st.none(), st.integers(900, 4500))
    start, end, pids = data.draw(bounds), data.draw(bounds), data.draw(st.one_of(st.none(), st.sets(st.integers(0, 5))))
    cpus = data.draw(st.one_of(st.none(), st.sets(st.integers(0, 3))))
    with ftbuf.open(file) as trace:
        want = [
            row
            for row in numbers(trace["steady"].table())
            if (start is None or row[0] >= start)
            and (end is None or row[0] < end)
            and (pids is None or row[2] in pids)
            and (cpus is None or row[1] in cpus)
        ]
        window = trace.window(start, end, pids=pids, cpus=cpus)
        assert numbers(window["steady"].table()) == want
        assert [(e.ts, e.cpu, e.pid, e["n"], e["s"]) for e in window.records()] == want
        assert window.events == ({"steady": len(want)} if want else {})
        assert (window.start, window.end) == ((want[0][0], want[-1][0]) if want else (None, None))


@given(steady(), st.data())
def test_windows_around_a_damaged_page(drawn, data):
    """A page whose time stamp lies hides no record of another page from a window, nor from threads."""
    abi, pages, options = drawn
    cpu = data.draw(st.sampled_from(sorted(pages)))
    page = data.draw(st.integers(0, len(pages[cpu]) // abi.subbuf_size - 1))
    liar = data.draw(st.one_of(st.integers(0, 5000), st.sampled_from([0, 1 << 62, (1 << 64) - 1])))
    whole = bytearray(pages[cpu])
    at = page * abi.subbuf_size
    whole[at : at + 8] = pack(abi, liar, 8)
    changed = pages | {cpu: bytes(whole)}
    file = file_of(abi, changed, options)
    start, end = sorted(data.draw(st.lists(st.integers(900, 4500), min_size=2, max_size=2)))
    honest = ref.decode_stream(bytes(whole[:at] + whole[at + abi.subbuf_size :]), abi, {STEADY.id: STEADY}).rows
    want = {r.values["n"] for r in honest if start <= r.ts < end}
    with ftbuf.open(file) as trace:
        everything = numbers(trace["steady"].table())
        found = numbers(trace.window(start, end)["steady"].table())
        assert want <= {row[3] for row in found if row[1] == cpu}
        assert set(found) <= {row for row in everything if start <= row[0] < end}
        assert sorted(numbers(trace["steady"].table(threads=3))) == sorted(everything)


@given(steady(), st.integers(1, 5), st.integers(1, 400))
def test_threads_and_steps(drawn, threads, step):
    """The number of threads and the size of steps change nothing; order="cpu" only the order."""
    file = file_of(*drawn)
    with ftbuf.open(file) as trace:
        view = trace["steady"]
        want = numbers(view.table())
        assert numbers(view.table(threads=threads)) == want
        assert numbers(trace.tables(["steady"], threads=threads)["steady"]) == want
        assert [row for t in view.iterate(step_size=step) for row in numbers(t)] == want
        by_cpu = numbers(trace.tables(["steady"], order="cpu")["steady"])
        assert by_cpu == sorted(want, key=lambda row: row[1])


# ------------------------------------------------------------------------------------------------------ real recordings


def test_real_recordings(recording):
    """Every value of every event of the small recordings, as the reference reads it."""
    if recording.path.suffix == ".dat":
        pytest.skip("not bare pages")
    with ftbuf.open(recording.path) as trace:
        by_id = {}
        for key in trace:
            fmt = trace[key].format
            by_id[fmt.id] = key, fmt
        abi = recording.abi
        streams = {
            (0, cpu): ref.decode_stream(stream, abi, {i: fmt for i, (_, fmt) in by_id.items()}).rows
            for cpu, stream in recording.streams().items()
        }
        rows: dict[str, list] = {}
        for _, row in ref.merge(streams):
            rows.setdefault(by_id[row.event.id][0], []).append(row)
        tables = trace.tables()
        assert set(tables) == set(rows)
        for name, table in tables.items():
            check_table(table, rows[name][0].event, rows[name])
