"""Damage of real recordings: a named error or a result, confined to its page, with a row in ``problems``."""

from __future__ import annotations

import contextlib
import functools
import random
import resource
import signal
import warnings

import pytest
import reference as ref
from filebuilder import BufferSpec, Built, TraceDat
from hypothesis import given, settings
from hypothesis import strategies as st

import ftbuf

ROOM = 1 << 30  # bytes of address space that a read of a damaged small file may take
SECONDS = 20


def as_trace_dat(recording, **options) -> Built:
    """A recording's directory as a trace.dat."""
    formats: dict[str, list[bytes]] = {}
    for path in sorted(recording.path.glob("events/*/*/format")):
        formats.setdefault(path.parent.parent.name, []).append(path.read_bytes())
    cmdlines = recording.path / "saved_cmdlines"
    spec = TraceDat(
        recording.abi,
        formats=formats,
        buffers=[BufferSpec("", recording.streams(), subbuf_size=recording.abi.subbuf_size)],
        cmdlines=cmdlines.read_bytes() if cmdlines.exists() else b"",
        **options,
    )
    return spec.build()


@functools.cache
def file_of(recording, **options) -> Built:
    return as_trace_dat(recording, **options)


# ---------------------------------------------------------------------------------------- damage inside of pages


def page_records(abi, pages: dict[int, bytes]) -> dict[tuple[int, int], list]:
    """(cpu, page) -> its records, by the reference."""
    return {
        (cpu, i): [(r.ts, cpu, page[r.offset : r.offset + r.length]) for r in ref.walk_page(page, abi).records]
        for cpu, stream in pages.items()
        for i, (_, page) in enumerate(ref.split_pages(stream, abi))
    }


@functools.cache
def untouched(recording) -> dict[tuple[int, int], list]:
    return page_records(recording.abi, recording.streams())


@given(st.data())
def test_a_damaged_page_costs_itself(recording, data):
    """Bytes of one page overwritten: the records of all other pages are there, and the page's own as far as they go."""
    built, abi = file_of(recording), recording.abi
    cpu, page = data.draw(st.sampled_from(sorted(untouched(recording))))
    used = 64 if data.draw(st.booleans()) else abi.subbuf_size
    at = page * abi.subbuf_size + data.draw(st.integers(0, used - 1))
    junk = data.draw(st.binary(min_size=1, max_size=8))
    start, size = built.marks[f".cpu{cpu}"]
    junk = junk[: size - at]
    file = bytearray(built.data)
    file[start + at : start + at + len(junk)] = junk

    stream = bytes(file[start : start + size])
    touched = range(at // abi.subbuf_size, (at + len(junk) - 1) // abi.subbuf_size + 1)
    want = dict(untouched(recording))
    want |= {k: v for k, v in page_records(abi, {cpu: stream}).items() if k[1] in touched}
    with ftbuf.open(bytes(file), errors="skip") as trace:
        got: dict[int, list] = {}
        for e in trace.records():
            got.setdefault(e.cpu, []).append((e.ts & ref.U64, e.cpu, e.payload))
        for c in recording.streams():
            assert got.get(c, []) == [row for key, rows in sorted(want.items()) if key[0] == c for row in rows]
        problems = trace.problems
        for where, who in zip(problems["offset"].tolist(), problems["cpu"].tolist(), strict=True):
            assert who == cpu and (where - start) // abi.subbuf_size in touched
        found = set(problems["status"].tolist()) - {"record_short"}  # which can still be handed out
    if found:
        with ftbuf.open(bytes(file)) as trace, pytest.raises(ftbuf.DamageError) as caught:
            list(trace.records())
        assert caught.value.status in found


def test_a_lost_page_is_a_row(recording):
    """A page with an impossible commit: all its records are gone, and one row says where and how many bytes."""
    built, abi = file_of(recording), recording.abi
    for (cpu, page), rows in untouched(recording).items():
        start, _ = built.marks[f".cpu{cpu}"]
        at = start + page * abi.subbuf_size
        file = built.data[:at] + b"\xff" * abi.data_offset + built.data[at + abi.data_offset :]
        with ftbuf.open(file, errors="skip") as trace:
            assert sum(1 for _ in trace.records()) == sum(map(len, untouched(recording).values())) - len(rows)
            problems = trace.problems
            assert problems["status"].tolist() == ["commit_too_large"]
            assert (problems["offset"].tolist(), problems["bytes"].tolist()) == ([at], [abi.subbuf_size])
        with ftbuf.open(file, errors="warn") as trace, pytest.warns(ftbuf.DamageWarning, match="commit_too_large"):
            trace.timeline()
        if page == 1:
            break


# ------------------------------------------------------------------------------ damage anywhere, everything read


@contextlib.contextmanager
def bounded():
    """A hang or a gulp of memory is a failure."""

    def too_long(*_):
        raise TimeoutError(f"more than {SECONDS} s")

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as f:
        now = int(f.read().split()[0]) * resource.getpagesize()
    before = signal.signal(signal.SIGALRM, too_long)
    resource.setrlimit(resource.RLIMIT_AS, (now + ROOM, hard))
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, before)


def read_everything(file: bytes) -> None:
    """All that the API can be asked of a recording; errors of the family are results too."""
    for errors in ("skip", "warn", "raise"):
        with contextlib.suppress(ftbuf.FtbufError), warnings.catch_warnings():
            warnings.simplefilter("ignore", ftbuf.DamageWarning)
            with ftbuf.open(file, errors=errors) as trace:
                for ask in ASK:
                    with contextlib.suppress(ftbuf.FtbufError):
                        ask(trace)


ASK = [
    lambda t: (
        t.info,
        str(t),
        repr(t),
        t.stats.num_rows,
        dict(t.comms),
        t.problems.num_rows,
        t.lost.num_rows,
        t.events,
    ),
    lambda t: (t.start, t.end),
    lambda t: t.timeline(),
    lambda t: [table.to_dict() for table in t.tables().values()],
    lambda t: [str(e) for _, e in zip(range(200), t.records(), strict=False)],
    lambda t: t.window(t.start, t.end).timeline(threads=2),
    lambda t: [[table.to_dict() for table in t[name].iterate(step_size=4096)] for name in list(t.events)[:3]],
]

VARIANTS = [(6, "none"), (7, "none"), (7, "zlib"), (7, "zstd")]
SMALL = ["s390x-gaps", "h618-rawmarker", "mips32be-subbuf-64k", "k612abs-absolute-ts-forced"]


def mutants(built: Built, seed: int, count: int):
    """Flipped, overwritten, cut, doubled and dropped pieces; numbers of the container get their share."""
    chance = random.Random(seed)
    data, marks = built.data, sorted(m for m, (_, size) in built.marks.items() if size in (1, 2, 4, 8))
    for _ in range(count):
        at = chance.randrange(len(data))
        kind = chance.choice(["flip", "noise", "cut", "mark", "mark", "drop", "double"])
        if kind == "flip":
            yield data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
        elif kind == "noise":
            yield data[:at] + chance.randbytes(16) + data[at + 16 :]
        elif kind == "cut":
            yield data[:at]
        elif kind == "mark":
            value = chance.choice(
                [0, 1, 7, 255, 1 << 15, 1 << 31, (1 << 32) - 1, (1 << 63) + 1, -8, chance.getrandbits(64)]
            )
            yield built.patched(chance.choice(marks), value, big=chance.random() < 0.5)
        elif kind == "drop":
            yield data[:at] + data[at + chance.choice([1, 4, 100, 5000]) :]
        else:
            yield data[:at] + data[at : at + 64] + data[at:]


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(("version", "compression"), VARIANTS)
def test_any_damage_is_survived(recordings, name, version, compression):
    built = as_trace_dat(recordings[name], version=version, compression=compression)
    read_everything(built.data)  # once without limits: imports, caches
    for i, file in enumerate(mutants(built, seed=version, count=settings.default.max_examples // 4)):
        with bounded():
            try:
                read_everything(file)
            except Exception as error:
                raise AssertionError(f"mutant {i} of seed {version}: {error!r}") from error
