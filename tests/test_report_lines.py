"""Plain layouts: the columns of a line under each option, of the kernel and of trace-cmd."""

from __future__ import annotations

import pytest
from report_helpers import EVENT, MESSAGE, FakeRecord

from ftbuf.report import kernel, tracecmd
from ftbuf.report.columns import kernel_columns, trace_cmd_columns
from ftbuf.report.lineplan import Op, line_printer
from ftbuf.report.options import make_options

RECORD = FakeRecord(ts=14_768_800_022, cpu=1, pid=57, comm=b"a task of sixteen", tgid=56, flags=1, preempt_count=1)


def kernel_line(
    *changes: str,
    record: FakeRecord = RECORD,
    following: int = 14_768_900_022,
    start: int = 14_768_000_000,
    index: int = 3,
    clock: str = "local",
) -> bytes:
    options = make_options(None, b"nop\n", clock, changes)
    plan = kernel.line_plan(options, kernel_columns((6, 12)), start)
    return line_printer(plan, lambda r: b"body\n")(record, following, index)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ([], b"a task of sixteen-57      [001] d..1.    14.768800: body\n"),
        (["record-tgid"], b"a task of sixteen-57      (     56) [001] d..1.    14.768800: body\n"),
        (["noirq-info"], b"a task of sixteen-57      [001]     14.768800: body\n"),
        (["nocontext-info"], b"body\n"),
        (["latency-format"], b"a task o-57        1d..1.  800us+: body\n"),
        (
            ["latency-format", "verbose"],
            b"a task of sixteen      57   1 1 00000001 00000003 [00e15aa0] 0.800ms (+0.100ms): body\n",
        ),
        (["raw"], b"57 1 14768800022 body\n"),
        (["hex"], b"00000039 00000001 00000003704a0116 body\n"),
    ],
)
def test_kernel_layouts(changes, line):
    assert kernel_line(*changes) == line


def test_clocks_that_count_no_nanoseconds():
    record = FakeRecord(ts=42, comm=b"x")
    assert kernel_line(record=record, clock="counter") == b"               x-1       [000] .....           42: body\n"
    assert kernel_line("latency-format", record=record, clock="counter") == b"       x-1         0.....   42: body\n"


def test_unknown_tgid():
    record = FakeRecord(ts=0, comm=b"x")
    assert b"(-------)" in kernel_line("record-tgid", record=record)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, b"a task of sixteen-57    [001] d..1.    14.768800: sched_switch:         body\n"),
        ({"nanoseconds": True}, b"a task of sixteen-57    [001] d..1.    14.768800022: sched_switch:         body\n"),
        ({"latency": True}, b"a task o-57      1d..1.    14.768800: sched_switch:         body\n"),
        ({"raw": True}, b"a task of sixteen-57    [001]-0x1    14.768800: sched_switch:         body\n"),
        ({"seconds": False}, b"a task of sixteen-57    [001] d..1. 14768800022: sched_switch:         body\n"),
        ({"ts_diff": True}, b"a task of sixteen-57    [001] d..1.    14.768800: (+54)    sched_switch:         body\n"),
    ],
)
def test_trace_cmd_layouts(options, line):
    plan = tracecmd.line_plan(tracecmd.Options(**options), trace_cmd_columns())
    assert line_printer(plan, lambda r: b"body")(RECORD, RECORD.ts - 53_549, 1) == line


def test_trace_cmd_names_buffers():
    assert tracecmd.buffer_labels(["", "one", "second"]) == (b"        ", b"   one: ", b"second: ")
    plan = tracecmd.line_plan(tracecmd.Options(), trace_cmd_columns(), buffers=["", "one"])
    assert plan.columns[0].op is Op.BUFFER
    plan = tracecmd.line_plan(tracecmd.Options(), trace_cmd_columns(), buffers=[""])
    assert plan.columns[0].op is Op.COMM


@pytest.mark.parametrize(
    ("lost", "line"), [(None, b""), (-1, b"CPU:0 [EVENTS DROPPED]\n"), (7, b"CPU:0 [7 EVENTS DROPPED]\n")]
)
def test_trace_cmd_lost(lost, line):
    assert tracecmd.lost_line(FakeRecord(lost=lost)) == line


def plain(records, *changes, overrun=False, limit=8155, body=lambda r: b"body\n"):
    options = make_options(None, b"nop", "local", changes)
    plan = kernel.line_plan(options, kernel_columns((6, 12)))
    printer = kernel.plain_printer(plan, body, options, kernel.Annotator(options, overrun), limit)
    return b"".join(kernel.plain_lines(records, printer)).decode().splitlines()


def test_kernel_tells_of_gaps_but_not_before_the_first_record():
    records = [FakeRecord(lost=5), FakeRecord(ts=1, lost=6), FakeRecord(ts=2, lost=-1), FakeRecord(ts=3, cpu=1, lost=9)]
    lines = plain(records, "nocontext-info")
    assert lines == ["body", "CPU:0 [LOST 6 EVENTS]", "body", "CPU:0 [LOST EVENTS]", "body", "body"]


def test_kernel_tells_where_a_cpu_begins_once_records_were_overwritten():
    records = [FakeRecord(), FakeRecord(cpu=1), FakeRecord(cpu=1), FakeRecord(cpu=0)]
    note = "##### CPU 1 buffer started ####"
    assert plain(records, "nocontext-info", overrun=True) == ["body", note, "body", "body", "body"]
    assert note not in plain(records, "nocontext-info", overrun=False)
    assert note not in plain(records, "noannotate", overrun=True)
    assert note not in plain(records, "raw", overrun=True)


def test_printk_msg_only():
    records = [FakeRecord(MESSAGE), FakeRecord(EVENT)]
    lines = plain(records, "printk-msg-only", "noirq-info", body=lambda r: b"what\n")
    assert lines[0] == "what"
    assert lines[1].endswith(": what")


def test_a_line_that_is_too_long_for_the_kernel():
    lines = plain([FakeRecord(MESSAGE)], "nocontext-info", limit=40, body=lambda r: b"who: " + b"x" * 50 + b"\n")
    assert lines == ["who: [LINE TOO BIG]"]
