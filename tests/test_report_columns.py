"""Latency columns and marks against the tables of the format description."""

from __future__ import annotations

import pytest

from ftbuf.report.columns import kernel_columns, kernel_release, mark, microseconds, trace_cmd_columns


@pytest.mark.parametrize(
    ("release", "flags", "preempt", "text"),
    [
        ((6, 12), 0x00, 0x00, b"....."),
        ((6, 12), 0x01, 0x01, b"d..1."),
        ((6, 12), 0x81, 0x10, b"D...1"),
        ((6, 12), 0x80, 0x00, b"b...."),
        ((6, 12), 0x02, 0x00, b"X...."),
        ((6, 12), 0x24, 0x00, b".N..."),
        ((6, 12), 0x04, 0x00, b".n..."),
        ((6, 12), 0x20, 0x00, b".p..."),
        ((6, 12), 0x08, 0x2F, b"..hf2"),
        ((6, 12), 0x18, 0x00, b"..H.."),
        ((6, 12), 0x10, 0x00, b"..s.."),
        ((6, 12), 0x40, 0x00, b"..z.."),
        ((6, 12), 0x48, 0x00, b"..Z.."),
        ((6, 13), 0x02, 0x00, b".l..."),
        ((6, 13), 0x06, 0x00, b".b..."),
        ((6, 13), 0x22, 0x00, b".L..."),
        ((7, 2), 0x26, 0x00, b".B..."),
        ((7, 2), 0x24, 0x00, b".N..."),
        ((5, 10), 0x00, 0x03, b"...3"),
    ],
)
def test_kernel_columns(release, flags, preempt, text):
    assert kernel_columns(release).text(flags, preempt) == text


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (0, b"....."),
        (0x01, b"d...."),
        (0x02, b".L..."),
        (0x06, b".N..."),
        (0x24, b".N..."),
        (0x20, b"....."),
        (0x18, b"..H.."),
        (0x40, b"....."),
    ],
)
def test_trace_cmd_columns(flags, text):
    assert trace_cmd_columns().text(flags, 0) == text


@pytest.mark.parametrize(
    ("ns", "character"),
    [
        (0, b" "),
        (10_000, b" "),
        (10_001, b"+"),
        (100_001, b"!"),
        (1_000_001, b"#"),
        (10_000_001, b"*"),
        (100_000_001, b"@"),
        (1_000_000_000, b"@"),
        (1_000_000_001, b"$"),
    ],
)
def test_marks_begin_above_their_limit(ns, character):
    assert mark(ns) == character


@pytest.mark.parametrize(
    ("uname", "release"),
    [
        ("Linux (none) 6.1.0-57-cloud-amd64 #1 SMP Debian 6.1.192-3 x86_64", (6, 1)),
        ("Linux vm 6.18.44-fc #1 SMP", (6, 18)),
        ("Linux box 5.10-rc1 #2", (5, 10)),
        ("", (6, 12)),
    ],
)
def test_release(uname, release):
    assert kernel_release(uname) == release


def test_microseconds_are_rounded():
    assert [microseconds(n) for n in (0, 499, 500, 1499, 1500)] == [0, 0, 1, 1, 2]
