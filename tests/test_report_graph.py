"""The function graph: pairs of call and return, columns, comments, switches of tasks, hidden interrupts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_helpers import EVENT, EXIT, FUNCTION, FakeRecord, FakeSymbols, entry, func, leave

from ftbuf.report import calls, graph, tracecmd
from ftbuf.report.columns import kernel_columns, trace_cmd_columns
from ftbuf.report.options import make_options
from ftbuf.report.symbols import Spelling

NAMES = {1: b"init", 2: b"second-task"}


def draw(records, *changes, irq_entry=(0, 0), body=lambda r: b"name: text\n"):
    options = make_options(None, b"function_graph", "local", changes)
    spell = Spelling(FakeSymbols())
    drawing = graph.Graph(
        graph.graph_flags(options),
        kernel_columns((6, 12)),
        spell,
        lambda pid: NAMES.get(pid, b"<...>"),
        body,
        lambda r: b"plain\n",
        cpus=2,
        irq_entry=irq_entry,
    )
    return b"".join(drawing.draw(records)).decode().splitlines()


def test_a_call_and_its_return():
    records = [
        entry(0, func(0)),
        entry(10, func(1), 1),
        leave(1312, func(1), 1, 1302),
        leave(20_000, func(0), 0, 11_928),
    ]
    assert draw(records) == [" 0)               |  f0() {", " 0)   1.302 us    |    f1();", " 0) + 11.928 us   |  }"]


def test_a_return_without_its_call_is_named():
    assert draw([leave(5000, func(3))]) == [" 0)   1.000 us    |  } /* f3 */"]


def test_a_return_of_another_task_is_none_of_the_call():
    lines = draw([entry(0, func(0)), leave(1000, func(0), pid=2)])
    assert lines[0].endswith("f0() {")


def test_a_leaf_is_found_behind_records_of_other_cpus():
    records = [entry(0, func(0)), entry(1, func(1), cpu=1), FakeRecord(EVENT, 2, cpu=1), leave(1000, func(0), 0, 1000)]
    assert draw(records) == [
        " 0)   1.000 us    |  f0();",
        " 1)               |  f1() {",
        " 1)               |  /* name: text */",
    ]


def test_an_event_between_call_and_return():
    lines = draw([entry(0, func(0)), entry(1, func(1), 1), FakeRecord(EVENT, 2), leave(1000, func(1), 1)])
    assert lines[1:] == [
        " 0)               |    f1() {",
        " 0)               |      /* name: text */",
        " 0)   1.000 us    |    }",
    ]


def test_stacks_and_functions_keep_their_own_lines():
    assert draw([FakeRecord(FUNCTION)]) == ["plain"]


def test_a_switch_of_tasks():
    lines = draw([entry(0, func(0)), entry(1, func(1), pid=2)])
    rule = " ------------------------------------------"
    assert lines[1:5] == [rule, " 0)     init-1     =>   second--2   ", rule, ""]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (["nofuncgraph-cpu"], "  1.302 us    |  f0();"),
        (["nofuncgraph-duration"], " 0) f0();"),
        (["funcgraph-abstime"], "    1.000000 |   0)   1.302 us    |  f0();"),
        (["funcgraph-proc"], " 0)     init-1     |   1.302 us    |  f0();"),
        (["latency-format"], " 0)  ..... |   1.302 us    |  f0();"),
        (["funcgraph-retval"], " 0)   1.302 us    |  f0(); /* = 0x7 */"),
    ],
)
def test_columns(changes, line):
    start = 1_000_000_500
    records = [entry(start, func(0)), leave(start + 1302, func(0), 0, 1302, 7)]
    assert draw(records, *changes) == [line]


def test_tail_and_overhead():
    records = [entry(0, func(0)), FakeRecord(EVENT, 1), leave(500_000, func(0), 0, 500_000)]
    assert draw(records, "funcgraph-tail")[-1] == " 0) ! 500.000 us  |  } /* f0 */"
    assert draw(records, "nofuncgraph-overhead")[-1] == " 0)   500.000 us  |  }"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0x0"),
        (0xFFFFFFFFFFFFFFF4, "-12"),
        (0xFFFFFFFF, "-1"),
        (0x9B, "0x9b"),
        (0x80000000, "0x80000000"),
        (0xFFFFFFFFFFFFF000, "0xfffffffffffff000"),
    ],
)
def test_return_values(value, text):
    records = [entry(0, func(0)), leave(1000, func(0), 0, 1000, value)]
    assert draw(records, "funcgraph-retval")[0].endswith(f"f0(); /* = {text} */")
    assert draw(records, "funcgraph-retval", "funcgraph-retval-hex")[0].endswith(f"/* = {value:#x} */")


def test_interrupts_are_marked_or_left_out():
    records = [
        entry(0, func(0)),
        entry(1, func(2), 1),
        entry(2, func(1), 2),
        leave(9, func(1), 2),
        leave(10, func(2), 1),
        leave(20, func(0)),
    ]
    entries = (func(2), func(3))
    marked = draw(records, irq_entry=entries)
    assert [line for line in marked if "===" in line] == [" 0)   ==========> |", " 0)   <========== |"]
    assert len(draw(records, "nofuncgraph-irqs", irq_entry=entries)) == 2


@pytest.mark.parametrize("depth", [-5, 1 << 31, (1 << 64) - 1])
def test_a_damaged_depth_costs_no_memory(depth):
    records = [entry(0, func(0), depth), FakeRecord(EVENT, 1), leave(1000, func(0), depth)]
    assert max(map(len, draw(records))) <= calls.MAX_INDENT + 100
    assert max(map(len, trace_cmd(records))) <= calls.MAX_INDENT + 100


@given(st.integers(0, 10**16))
def test_the_duration_column_is_as_wide_as_its_head(ns):
    text = graph.duration_text(ns).decode()
    digits, unit = text.split(" us ")
    assert len(digits) + len(unit) == max(8, len(str(ns // 1000)))
    assert digits.startswith(str(ns // 1000))
    assert unit.strip() == ""


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from("eox")), max_size=40))
def test_no_record_is_lost_or_moved(kinds):
    make = {
        "e": lambda i, f, c: entry(i, func(f), cpu=c),
        "o": lambda i, f, c: FakeRecord(EVENT, i, cpu=c),
        "x": lambda i, f, c: leave(i, func(f), cpu=c),
    }
    records = [make[kind](i, f, cpu) for i, (f, cpu, kind) in enumerate(kinds)]
    for pairs in (calls.with_leaves, calls.with_returns):
        shown = list(pairs(iter(records), calls.CallReader()))
        taken = {leaf.rettime for _, _, leaf in shown if leaf is not None}  # the time of a return is its own
        assert [r.ts for r, _, _ in shown] == [r.ts for r in records if r.format is not EXIT or r.ts not in taken]
        assert all(call.func == leaf.func for _, call, leaf in shown if leaf is not None)


def test_what_waits_for_a_return_is_bounded(monkeypatch):
    monkeypatch.setattr(calls, "PENDING", 10)
    records = [entry(0, func(0))] + [FakeRecord(EVENT, i, cpu=1) for i in range(1, 50)]
    seen = []
    for count, record in enumerate(calls.with_leaves(records, calls.CallReader())):
        seen.append((count, record))
    assert len(seen) == 50


def trace_cmd(records, **options):
    chosen = tracecmd.Options(**options)
    bodies = tracecmd.GraphBodies(chosen, Spelling(FakeSymbols(), trace_cmd=True), calls.CallReader())
    plan = tracecmd.line_plan(chosen, trace_cmd_columns())
    printer = tracecmd.Lines(chosen, plan, lambda r: b"text", bodies)
    return [line.split(b": ", 1)[1].decode() for line in printer.print(records)]


def test_trace_cmd_style():
    records = [
        entry(0, func(0)),
        entry(10, func(1), 1),
        leave(80_000, func(1), 1, 70_084),
        leave(19_000_000, func(0), 0, 18_874_141, 5),
    ]
    assert [line.rstrip("\n") for line in trace_cmd(records)] == [
        "funcgraph_entry:                   |  f0() {",
        "funcgraph_entry:      + 70.084 us  |    f1(); (ret=0x0)",
        "funcgraph_exit:       # 18874.141 us |  } (ret=0x5)",
    ]
    assert trace_cmd(records, tail=True)[-1] == "funcgraph_exit:       # 18874.141 us |  } /* f0 */ (ret=0x5)\n"


def test_trace_cmd_merges_only_what_follows_at_once():
    records = [entry(0, func(0)), FakeRecord(EVENT, 1, cpu=1), leave(1000, func(0), 0, 1000)]
    assert trace_cmd(records)[0].startswith("funcgraph_entry:                   |  f0() {")
