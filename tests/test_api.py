"""The public face: the newcomer's example, names, signatures, docstrings, and what views and errors promise."""

from __future__ import annotations

import inspect
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from corpus_data import ROOT

import ftbuf
from ftbuf.table import near_names

EXAMPLE = ROOT / "examples" / "sched.dat"
HEADER = ["common_ts", "common_cpu", "common_pid", "common_comm", "common_flags", "common_preempt_count"]
PUBLIC = {
    "STATUSES", "Abi", "BufferWarning", "ClosedError", "ColumnNotFoundError", "CompressionError", "DamageError", "DamageWarning",
    "Event", "EventFormat", "EventNotFoundError", "EventView", "Field", "FilterError", "FormatError", "FtbufError",
    "MissingDependencyError", "Table", "Trace", "TruncatedError", "UnsupportedError", "decode_mmap", "decode_pages",
    "iterate", "open",
    "read_events", "scan_trace", "from_dask", "Written", "convert", "split",
}


@pytest.fixture
def trace():
    with ftbuf.open(EXAMPLE) as trace:
        yield trace


def readme_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)


# ---- the newcomer ----


def test_the_newcomers_example(tmp_path, monkeypatch, capsys):
    """The README's example, word for word."""
    pytest.importorskip("pandas")
    (tmp_path / "trace.dat").write_bytes(EXAMPLE.read_bytes())
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(readme_blocks("python")[0], "README.md", "exec"), names)
    out = capsys.readouterr().out
    assert "sched_switch" in out
    assert out.startswith("recording: trace.dat")
    cols, df = names["cols"], names["df"]
    assert list(cols) == ["common_ts", "common_cpu", "prev_pid"]
    assert cols["common_ts"].dtype == np.int64
    assert len(cols["prev_pid"]) == len(df) > 0
    assert list(df.columns)[:6] == HEADER
    lines = [line for line in out.splitlines() if re.search(r" \[\d{3}\] .*\d+\.\d{6}: \w+: ", line)]
    assert lines
    with ftbuf.open("trace.dat") as trace:
        ts = trace.timeline()["common_ts"]
    assert len(lines) == (ts < ts[0] + 1_000_000).sum()


# ---- names, signatures, docstrings ----


def test_public_names():
    assert set(ftbuf.__all__) == PUBLIC
    assert all(hasattr(ftbuf, name) for name in ftbuf.__all__)


def test_analyses_come_when_they_are_asked_for():
    code = ("import sys, ftbuf; assert 'ftbuf.analysis' not in sys.modules and 'analysis' in dir(ftbuf); "
            "print(ftbuf.analysis.noise.__name__, ftbuf.analysis.plots.rates.__name__)")
    environment = os.environ | {"PYTHONPATH": str(Path(ftbuf.__file__).parent.parent)}
    command = [sys.executable, "-c", code]
    assert subprocess.check_output(command, text=True, cwd="/", env=environment).split() == ["noise", "rates"]
    with pytest.raises(AttributeError, match="analyses"):
        ftbuf.analyses  # noqa: B018


SIGNATURES = {
    "open": "(source, *, errors='raise', storage_options=None)",
    "read_events": "(source, event, columns=None, *, start=None, end=None, cpus=None, where=None, threads=None, "
                   "errors='raise')",
    "iterate": "(sources, event, columns=None, *, step_size='64 MB', errors='raise')",
    "from_dask": "(sources, event, columns=None, *, target_bytes=64 << 20)",
    "scan_trace": "(sources, event, *, start=None, end=None, cpus=None)",
    "Trace.partitions": "(self, target_bytes=64 << 20)",
    "Trace.window": "(self, start=None, end=None, *, cpus=None, pids=None, buffer=None, where=None)",
    "Trace.records": "(self, events=None, *, where=None)",
    "Trace.tables": "(self, events=None, columns=None, *, threads=None, order='time')",
    "Trace.timeline": "(self, events=None, *, threads=None, order='time')",
    "EventView.arrays": "(self, columns=None, *, threads=None, order='time')",
    "EventView.table": "(self, columns=None, *, threads=None, order='time')",
    "EventView.iterate": "(self, columns=None, *, step_size='64 MB')",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_may_grow_but_not_change(name):
    """Every parameter of the design is there, in its order, of its kind, with its default."""
    target = ftbuf
    for part in name.split("."):
        target = getattr(target, part)
    namespace: dict[str, object] = {}
    exec(f"def wanted{SIGNATURES[name]}: ...", namespace)
    wanted = inspect.signature(namespace["wanted"]).parameters.values()
    real = inspect.signature(target).parameters
    assert [(p.name, p.kind, p.default) for p in wanted] == [(n, real[n].kind, real[n].default)
                                                             for n in (p.name for p in wanted)]
    positional = [p.name for p in real.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional == [p.name for p in wanted if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert all(p.default is not p.empty for n, p in real.items() if n not in {w.name for w in wanted}
               and p.kind is not p.VAR_KEYWORD)


def public_members() -> dict[str, object]:
    """Functions, classes, methods and properties that users see."""
    out: dict[str, object] = {}
    for name in sorted(ftbuf.__all__):
        thing = getattr(ftbuf, name)
        if callable(thing):
            out[name] = thing
        if inspect.isclass(thing):
            out |= {f"{name}.{n}": m for n, m in vars(thing).items()
                    if not n.startswith("_") and (callable(m) or isinstance(m, property) or hasattr(m, "func"))}
    return out


@pytest.mark.parametrize("name", sorted(public_members()))
def test_docstrings(name):
    member = public_members()[name]
    doc = inspect.getdoc(member) or ""
    assert doc.strip(), "no docstring"
    assert len(doc.splitlines()[0]) <= 120
    sections = re.findall(r"^(\w+)\n(-+)$", doc, re.M)
    assert all(len(title) == len(rule) for title, rule in sections)
    titles = [title for title, _ in sections]
    assert set(titles) <= {"Parameters", "Returns", "Yields", "Raises", "Attributes", "Examples", "Notes", "Warns"}
    if name in SIGNATURES or name == "decode_pages":
        assert "Parameters" in titles and {"Returns", "Yields"} & set(titles)
        listed = doc.split("Parameters\n", 1)[1].split("\n\n", 1)[0]
        for parameter in inspect.signature(member).parameters:
            assert parameter == "self" or re.search(rf"\b{parameter}\b", listed), parameter


def test_every_error_is_one_of_ours_and_a_builtin():
    errors = [e for e in vars(ftbuf).values() if inspect.isclass(e) and issubclass(e, ftbuf.FtbufError)]
    assert len(errors) >= 9
    for error in errors:
        bases = set(error.__mro__) - {error, ftbuf.FtbufError, Exception, BaseException, object}
        assert error is ftbuf.FtbufError or any(b.__module__ == "builtins" for b in bases), error


def test_version_is_the_packages():
    assert re.search(rf'^version = "{re.escape(ftbuf.__version__)}"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert f"## {ftbuf.__version__}" in (ROOT / "CHANGES.md").read_text()


# ---- the mapping ----


def test_a_trace_is_a_mapping(trace):
    assert "sched_switch" in trace and "sched:sched_switch" in trace and "sched/sched_switch" in trace
    assert "no_such" not in trace and 7 not in trace
    assert len(trace) == len(list(trace)) == len(set(trace))
    assert trace["sched_switch"].name == trace["sched:sched_switch"].name == "sched_switch"
    assert trace.get("no_such") is None
    assert set(trace.events) <= set(trace)
    assert all(len(trace[name]) == n for name, n in trace.events.items())


def test_a_name_that_is_not_there_is_answered_with_near_ones(trace):
    with pytest.raises(ftbuf.EventNotFoundError, match="sched_switch") as caught:
        trace["sched_swich"]
    assert isinstance(caught.value, KeyError)
    with pytest.raises(ftbuf.ColumnNotFoundError, match="common_cpu"):
        trace["sched_switch"].arrays(["cpu"])
    with pytest.raises(ftbuf.ColumnNotFoundError, match="prev_pid"):
        trace["sched_switch"].arrays(["prev_pd"])
    with pytest.raises(TypeError, match="list"):
        trace["sched_switch"].arrays("prev_pid")
    for wrong in ("sched_switch", [1]):
        with pytest.raises(TypeError, match="list"):
            trace.timeline(wrong)
        with pytest.raises(TypeError, match="columns is a list"):
            trace["sched_switch"].table(wrong)


def test_names_may_come_in_any_collection(trace):
    for make in (list, tuple, set, iter, dict.fromkeys, np.array):
        assert list(trace["sched_switch"].arrays(make(["prev_pid"]))) == ["prev_pid"]
        assert list(next(trace["sched_switch"].iterate(make(["prev_pid"])))) == ["prev_pid"]
        assert list(trace.tables(make(["sched_switch"]), make(["common_ts"]))["sched_switch"]) == ["common_ts"]
        assert len(set(trace.timeline(make(["sched_switch"]))["event"])) == 1
    fmt = trace["sched_switch"].format
    abi = ftbuf.Abi(False, 8, 4096, 16)
    table = ftbuf.decode_pages(bytes(4096), abi=abi, events=iter([fmt]), columns=iter(["prev_pid"]))
    assert table.column_names == ["prev_pid"]
    for cpu in (-1, 1 << 16):
        with pytest.raises(ValueError, match="CPU"):
            ftbuf.decode_pages(bytes(4096), abi=abi, events=fmt, cpu=cpu)


def test_header_columns_come_first_then_the_fields(trace):
    view = trace["sched_waking"]
    own = [f.name for f in view.fields]
    table = view.table()
    assert table.column_names == view.columns
    assert view.columns[:6] == HEADER and view.columns[-len(own):] == own
    assert "pid" in own and "comm" in own  # these are the woken task's, not the running one's
    event = next(trace.window().records(["sched_waking"]))
    assert (event.pid, event.comm) == (table["common_pid"][0], table["common_comm"][0])
    assert (event["pid"], event["comm"]) == (table["pid"][0], table["comm"][0])
    assert dict(event.items()).keys() == set(own)


# ---- sources ----


def test_every_kind_of_source_gives_the_same(tmp_path, trace):
    want = trace["sched_switch"].arrays()
    data = EXAMPLE.read_bytes()
    copy = tmp_path / "copy"
    copy.write_bytes(data)
    with copy.open("rb") as file:
        for source in (str(copy), copy, data, bytearray(data), memoryview(data), io.BytesIO(data), file):
            got = ftbuf.read_events(source, "sched_switch").to_dict()
            assert got.keys() == want.keys()
            assert all(np.array_equal(got[name], want[name]) for name in want)


def test_what_is_no_recording_is_said_by_name(tmp_path):
    for content, name in ((b"", "empty"), (b"PERFILE2", "perf.data"), (b"hello\n", "text")):
        path = tmp_path / "x"
        path.write_bytes(content)
        with pytest.raises(ftbuf.FormatError, match=name):
            ftbuf.open(path)
    with pytest.raises(FileNotFoundError):
        ftbuf.open(tmp_path / "absent")
    with pytest.raises(ftbuf.FormatError):
        ftbuf.open(tmp_path)
    with pytest.raises(TypeError):
        ftbuf.open(7)
    with pytest.raises(ValueError, match="errors"):
        ftbuf.open(EXAMPLE, errors="ignore")


# ---- windows ----


def test_a_window_lets_through_what_it_says(trace):
    whole = trace.timeline()
    ts = whole["common_ts"]
    start, end = int(ts[len(ts) // 4]), int(ts[len(ts) // 2])
    narrowed = trace.window(start).window(end=end), trace.window(end=end).window(start, 1 << 62)
    for view in (trace.window(start, end), *narrowed):
        got = view.timeline()
        inside = (ts >= start) & (ts < end)
        for name in whole.column_names:
            assert np.array_equal(got[name], whole[name][inside]), name
        assert (view.start, view.end) == (ts[inside].min(), ts[inside].max())
        assert sum(view.events.values()) == inside.sum()


def test_windows_by_cpu_and_pid_narrow_each_other(trace):
    whole = trace.timeline()
    for cpus in ([0], [1], [0, 1], [], [99]):
        assert trace.window(cpus=cpus).timeline().num_rows == np.isin(whole["common_cpu"], cpus).sum()
    assert trace.window(cpus=[0]).window(cpus=[1]).cpus == []
    assert trace.window(cpus=[0]).window(cpus=[1]).window(cpus=[1]).cpus == []
    pids = whole["common_pid"][:2].tolist()
    assert trace.window(pids=pids).timeline().num_rows == np.isin(whole["common_pid"], pids).sum()
    assert trace.window(pids=pids[:1]).window(pids=[123456]).window(pids=pids).timeline().num_rows == 0


@pytest.mark.parametrize("order", ["time", "cpu"])
@pytest.mark.parametrize("narrow", [{"cpus": [99]}, {"cpus": []}, {"start": 1, "end": 1}, {"pids": []}], ids=str)
def test_an_empty_view_has_empty_columns_of_the_same_types(trace, narrow, order):
    view, whole = trace.window(**narrow), trace["sched_switch"].table()
    table = view["sched_switch"].table(order=order)
    assert table.num_rows == 0 and table.column_names == whole.column_names
    assert {name: table[name].dtype for name in table} == {name: whole[name].dtype for name in whole}
    assert view.timeline(order=order).num_rows == 0
    assert view.tables(order=order) == {} and view.events == {}
    assert (view.start, view.end, list(view.records()), list(view["sched_switch"].iterate())) == (None, None, [], [])
    assert "events:    0" in str(view)


def test_a_table_of_batches_is_one_table():
    """Looking at one column changes neither the others nor the number of rows."""
    from ftbuf.table import Encoded, Plain, Table

    def batch(*values: int) -> dict[str, object]:
        return {"x": Plain(np.array(values)), "s": Encoded(np.arange(len(values)), [f"s{v}" for v in values])}

    table = Table([batch(1, 2), batch(), batch(2, 3, 4)])
    for _ in range(2):
        assert table.num_rows == len(table) == 5
        assert table["x"].tolist() == [1, 2, 2, 3, 4]
    assert table["s"].tolist() == ["s1", "s2", "s2", "s3", "s4"]
    assert table.column("s").strings == ["s1", "s2", "s3", "s4"]
    empty = Table([], ["x"])
    assert (empty.num_rows, empty.column_names) == (0, ["x"])


def test_times_are_ints(trace):
    for wrong in (1.5, np.float64(2), float(trace.start)):
        with pytest.raises(TypeError, match="float"):
            trace.window(wrong)
    for wrong in ("1", b"1", [1]):
        with pytest.raises(TypeError, match="start is an int"):
            trace.window(wrong)
    assert trace.window(np.int64(trace.start)).start == trace.start
    assert trace.window(-1 << 70, 1 << 70).timeline().num_rows == trace.timeline().num_rows
    assert trace.window(1 << 70).start is None and trace.window(end=-1 << 70).end is None
    assert trace.window(pids=[1 << 40, -1 << 40]).timeline().num_rows == 0
    for wrong in (1, "01", [0.5], None.__class__):
        with pytest.raises(TypeError, match="cpus"):
            trace.window(cpus=wrong)
    with pytest.raises(ValueError, match="no buffer"):
        trace.window(buffer="nowhere")


# ---- the ways out agree ----


def test_all_ways_out_agree(trace):
    view = trace["sched_switch"]
    arrays = view.arrays()
    events = list(view.records())
    assert len(events) == len(view) == len(arrays["common_ts"])
    assert [e.ts for e in events] == arrays["common_ts"].tolist()
    assert [e["next_comm"] for e in events] == arrays["next_comm"].tolist()
    assert [e["prev_state"] for e in events] == arrays["prev_state"].tolist()
    joined = {name: np.concatenate([t[name] for t in view.iterate(step_size=1000)]) for name in view.columns}
    tables = trace.tables(["sched_switch", "sched_waking"])
    again = ftbuf.read_events(EXAMPLE, "sched_switch")
    stepped = list(ftbuf.iterate([EXAMPLE, EXAMPLE], "sched_switch", step_size="1 kB"))
    assert sum(t.num_rows for t in stepped) == 2 * len(view)
    for name, values in arrays.items():
        assert np.array_equal(values, joined[name]), name
        assert np.array_equal(values, tables["sched_switch"][name]), name
        assert np.array_equal(values, again[name]), name
    by_cpu = view.arrays(order="cpu")
    order = np.lexsort((np.arange(len(view)), arrays["common_cpu"]))
    assert all(np.array_equal(by_cpu[name], arrays[name][order]) for name in arrays)


def test_rows_come_in_time_order_over_cpus(trace):
    timeline = trace.timeline()
    assert (np.diff(timeline["common_ts"]) >= 0).all()
    assert [e.name for e in trace.records()] == timeline["event"].tolist()
    assert (trace.start, trace.end) == (timeline["common_ts"][0], timeline["common_ts"][-1])


def test_pandas_polars_and_arrow_agree(trace):
    pandas, polars, pyarrow = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    view = trace["sched_switch"]
    arrays = view.arrays()
    frames = view.to_pandas(), view.to_polars(), view.to_arrow(), pyarrow.table(view), polars.DataFrame(view.table())
    assert isinstance(frames[0], pandas.DataFrame) and isinstance(frames[1], polars.DataFrame)
    for name, values in arrays.items():
        for frame in frames:
            column = frame[name]
            listed = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
            assert listed == values.tolist(), (type(frame), name)
    assert view.to_pandas(["prev_pid"]).columns.tolist() == ["prev_pid"]
    for wrong in (pandas.DataFrame, np.asarray):  # which would make an array of the names
        with pytest.raises(TypeError, match="to_pandas"):
            wrong(view.table())


def test_near_names_are_said_once(trace):
    with pytest.raises(ftbuf.EventNotFoundError, match="did you mean sched_switch, sched_waking, context_switch"):
        trace["sched_swich"]
    for name, names in (("anotate", ["annotate", "annotate"]), ("pid", ["common_pid", "pids", "common_pid"])):
        hint = near_names("option", name, names).partition("did you mean ")[2].rstrip("?").split(", ")
        assert len(hint) == len(set(hint)) > 0


def test_a_missing_package_is_named_with_its_extra(trace, monkeypatch):
    import sys

    table = trace["sched_switch"].table()
    for module, extra, call in (("pandas", "pandas", table.to_pandas), ("pyarrow", "arrow", table.to_arrow),
                                ("polars", "polars", table.to_polars)):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ftbuf.MissingDependencyError, match=re.escape(f"ftbuf[{extra}]")):
            call()
    assert issubclass(ftbuf.MissingDependencyError, ImportError)


def test_texts_about_a_trace(trace):
    text = str(trace)
    for word in ("recording", "kernel", "clock", "CPUs", "sched_switch", "lost"):
        assert word in text
    assert "<table>" in trace._repr_html_()
    assert "sched:sched_switch" in repr(trace["sched_switch"])
    assert str(Path("examples") / "sched.dat") in repr(trace)
    assert "rows" in repr(trace["sched_switch"].table())
    assert trace.info["clock"] == "local" and trace.info["clock_unit"] == "ns"


def test_what_is_wrong_is_said_at_the_call(trace):
    """Not at the first step of what is iterated."""
    for call in (trace.records, trace.iterate, trace.tables):
        with pytest.raises(ftbuf.EventNotFoundError):
            call(["nope"])
        with pytest.raises(TypeError, match="list of names"):
            call("sched_switch")
    with pytest.raises(ftbuf.FilterError):
        trace.records(where="nope ==")
    with pytest.raises(ftbuf.ColumnNotFoundError):
        trace["sched_switch"].iterate(["nope"])
    for wrong in ({"step_size": "x"}, {"step_size": 0}, {"errors": "x"}):
        with pytest.raises(ValueError):
            ftbuf.iterate(EXAMPLE, "sched_switch", **wrong)
    with pytest.raises(TypeError):
        ftbuf.iterate(EXAMPLE, "sched_switch", "common_ts")


def test_a_table_of_some_columns(trace):
    table = trace["sched_switch"].table()
    some = table[["next_comm", "common_ts"]]
    assert some.column_names == ["next_comm", "common_ts"] and some.num_rows == table.num_rows
    assert some["next_comm"] is table["next_comm"]
    assert table[[]].column_names == []
    with pytest.raises(ftbuf.ColumnNotFoundError):
        table[["common_ts", "nope"]]
    with pytest.raises(TypeError):
        table[3]


@pytest.mark.parametrize(("wrong", "name"), [
    ({"abi": None}, "abi"), ({"abi": {"long_size": 8}}, "abi"), ({"events": None}, "events"), ({"events": [3]}, "events"),
    ({"buffer": None}, "buffer"), ({"buffer": {0: "text"}}, "buffer"), ({"cpu": "0"}, "cpu"), ({"comms": [1]}, "comms"),
    ({"comms": {1: 2}}, "comms"), ({"event": 3}, "event"), ({"start": 1.5}, "start"), ({"columns": "x"}, "columns"),
    ({"abi": ftbuf.Abi(False, 8, "4096", 16)}, "subbuf_size"),
], ids=str)
def test_arguments_of_decode_pages_are_named(trace, wrong, name):
    given = {"buffer": bytes(4096), "abi": ftbuf.Abi(False, 8, 4096, 16), "events": trace["sched_switch"].format, **wrong}
    with pytest.raises(TypeError, match=name):
        ftbuf.decode_pages(given.pop("buffer"), **given)
    with pytest.raises(TypeError, match=r"abi|images"):
        ftbuf.decode_mmap(bytes(4096), abi=None, events=[])
