"""Calls drawn by the core look as those drawn record by record: trace-cmd's layout of the function graph."""

from __future__ import annotations

import random

import pytest
from filebuilder import BufferSpec, TraceDat
from pagebuilder import ABIS, event, format_text, make_format, pages_of

import ftbuf
from ftbuf.report import render, tracecmd

OPTIONS = [{}, {"ts_diff": True, "tail": True, "retval_dec": True},
           {"latency": True, "nanoseconds": True, "ts_diff": True, "retval_skip": True}]
EXIT_FIELDS = ["unsigned long func", "unsigned long retval", "int depth", "unsigned int overrun", "u64 calltime", "u64 rettime"]


def drawn(path, options, monkeypatch, *, by_core: bool) -> bytes:
    with monkeypatch.context() as patch, ftbuf.open(path, errors="skip") as trace:
        if not by_core:
            patch.setattr(render, "can_write", lambda *_: False)
        return b"".join(render.trace_cmd_report(trace, render.TraceCmdRequest(tracecmd.Options(**options))))


def check(path, monkeypatch) -> bytes:
    for options in OPTIONS:
        text = drawn(path, options, monkeypatch, by_core=True)
        assert text == drawn(path, options, monkeypatch, by_core=False)
    return text


def made(abi_name: str, rng: random.Random, exit_fields: list[str], n: int = 1500, kallsyms: bytes = b"") -> bytes:
    """Calls and returns in any order, of two CPUs: most calls are followed by their return."""
    abi = ABIS[abi_name]
    entry = make_format("funcgraph_entry", 11, ["unsigned long func", "int depth"], system="ftrace", long_size=abi.long_size)
    leave = make_format("funcgraph_exit", 10, exit_fields, system="ftrace", long_size=abi.long_size)
    other = make_format("probe", 42, ["int number"], print_fmt='"n=%d", REC->number', long_size=abi.long_size)
    names = {field.name for field in leave.own_fields}
    pages = {}
    for cpu in (0, 1):
        records = []
        while len(records) < n:
            func, pid, depth = rng.randrange(1, 4), rng.choice([7, 8, -1]), rng.choice([0, 1, 2, 3, 60, -3, 1 << 30])
            took = rng.choice([0, 5, 999, 1000, 12_345, 999_999, 123_456_789, 2_000_000_000, -1, -1500, -1_000_000])
            values = {"func": func, "depth": depth + (rng.random() < 0.05), "retval": rng.choice([0, 1, (1 << 31) + 5]),
                      "calltime": 1 << 40, "rettime": (1 << 40) + took, "overrun": 1}
            returned = event(leave, abi, common_pid=pid, **{k: v for k, v in values.items() if k in names})
            kind = rng.random()
            if kind < 0.8:
                records.append(event(entry, abi, common_pid=pid if kind < 0.75 else 9, func=func, depth=depth))
            if kind > 0.1:
                records.append(returned if rng.random() < 0.99 else returned[: 4 * rng.randrange(2, len(returned) // 4)])
            if rng.random() < 0.1:
                records.append(event(other, abi, common_pid=pid, number=5))
        pages[cpu] = pages_of(abi, *records, ts=1000 + 50 * cpu)
    return TraceDat(abi, formats={"ftrace": [format_text(entry), format_text(leave)], "test": [format_text(other)]},
                    buffers=[BufferSpec(pages=pages)], kallsyms=kallsyms).build().data


@pytest.mark.parametrize("abi", ["be32", "be32-old", "be64", "le32", "le64"])
@pytest.mark.parametrize("fields", [EXIT_FIELDS, EXIT_FIELDS[:1] + EXIT_FIELDS[2:3], EXIT_FIELDS[:1], EXIT_FIELDS[1:],
                                    ["unsigned long func", "long retval", *EXIT_FIELDS[2:]]], ids=len)
def test_any_calls_and_returns(abi, fields, monkeypatch):
    text = check(made(abi, random.Random(f"{abi}{len(fields)}"), fields), monkeypatch)
    assert (b"();" in text) == (EXIT_FIELDS[0] in fields) and b"() {" in text


def test_real_recordings(recording, monkeypatch):
    with ftbuf.open(recording.path, errors="skip") as trace:
        if not any("graph" in name for name in trace.events):
            pytest.skip("no calls are drawn")
    check(recording.path, monkeypatch)


def test_the_last_call_waits_for_nothing(monkeypatch):
    data = made("le64", random.Random(1), EXIT_FIELDS, 2)
    abi = ABIS["le64"]
    entry = make_format("funcgraph_entry", 11, ["unsigned long func", "int depth"], system="ftrace")
    only = [event(entry, abi, common_pid=7, func=1, depth=0)] * 3
    data = TraceDat(abi, formats={"ftrace": [format_text(entry)]}, buffers=[BufferSpec(pages={0: pages_of(abi, *only, ts=5)})])
    assert check(data.build().data, monkeypatch).count(b"() {") == 3
