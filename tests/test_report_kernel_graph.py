"""The kernel's graph by the core looks as the one drawn record by record."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from filebuilder import BufferSpec, TraceDat
from pagebuilder import ABIS, event, format_text, make_format, pages_of
from test_report_drawn import EXIT_FIELDS, made

import ftbuf
from ftbuf.report import graphlines, kernelreport

OPTIONS = [(), ("funcgraph-tail", "nofuncgraph-overhead"), ("funcgraph-abstime", "latency-format"), ("nofuncgraph-duration",),
           ("nofuncgraph-cpu",), ("nofuncgraph-irqs",), ("funcgraph-proc",), ("funcgraph-retval",), ("nocontext-info",)]
IRQS = b"0000000000000002 T __irqentry_text_start\n0000000000000003 T __irqentry_text_end\n0000000000000004 T other\n"


def drawn(source, options, monkeypatch, *, by_core: bool) -> bytes:
    with monkeypatch.context() as patch, ftbuf.open(source, errors="skip") as trace:
        own = kernelreport.options_of
        patch.setattr(kernelreport, "options_of", lambda *a: replace(own(*a), tracer="function_graph"))
        if not by_core:
            patch.setattr(graphlines, "can_draw", lambda flags: False)
        return b"".join(kernelreport.kernel_report(trace, kernelreport.KernelRequest(options=options)))


def check(source, monkeypatch, options=OPTIONS) -> bytes:
    for some in options:
        text = drawn(source, some, monkeypatch, by_core=True)
        assert text == drawn(source, some, monkeypatch, by_core=False)
    return text


@pytest.mark.parametrize("abi", ["be32", "be32-old", "be64", "le32", "le64"])
@pytest.mark.parametrize("fields", [EXIT_FIELDS, EXIT_FIELDS[:1] + EXIT_FIELDS[2:3], EXIT_FIELDS[:1], EXIT_FIELDS[1:]], ids=len)
@pytest.mark.parametrize("symbols", [b"", IRQS], ids=["", "irqs"])
def test_any_calls_and_returns(abi, fields, symbols, monkeypatch):
    check(made(abi, random.Random(f"{abi}{len(fields)}"), fields, 800, symbols), monkeypatch)


def test_real_recordings(recordings, monkeypatch):
    for name in ("mips32be-graph", "k612-sched", "s390x-lost-consumer"):
        check(recordings[name].path, monkeypatch)


def nested(rng: random.Random, cpus: int, n: int) -> bytes:
    """Calls inside of calls as a kernel makes them, of some tasks, with events among them."""
    abi = ABIS["le64"]
    entry = make_format("funcgraph_entry", 11, ["unsigned long func", "int depth"], system="ftrace")
    leave = make_format("funcgraph_exit", 10, EXIT_FIELDS, system="ftrace")
    other = make_format("probe", 42, ["int number"], print_fmt='"n=%d\\n", REC->number')
    plain = make_format("function", 1, ["unsigned long ip", "unsigned long parent_ip"], system="ftrace")
    pages = {}
    for cpu in range(cpus):
        records, stack, pid = [], [], 7 + cpu
        while len(records) < n:
            kind = rng.random()
            if kind < 0.5 and len(stack) < 60:
                stack.append(rng.randrange(1, 9))
                records.append(event(entry, abi, common_pid=pid, func=stack[-1], depth=len(stack) - 1))
            elif kind < 0.97 and stack:
                took = rng.choice([0, 999, 1000, 9_999_999, 10_000_001, 99_999_999, 100_000_000, 999_999_999, 1_000_000_001,
                                   9_999_999_999, 10_000_000_000, -1, -999, -1000, -999_000, -1_000_000, -10_000_000, -10**10])
                records.append(event(leave, abi, common_pid=pid, func=stack.pop(), depth=len(stack), calltime=1 << 40,
                                     rettime=(1 << 40) + took * rng.choice([1, 1, 1, 3])))
            elif kind < 0.985:
                records.append(event(other, abi, common_pid=pid, number=len(records)))
            elif kind < 0.99:
                records.append(event(plain, abi, common_pid=pid, ip=3, parent_ip=4))
            elif kind < 0.993:
                pid, stack = rng.choice([7, 8, 9]), []
        pages[cpu] = pages_of(abi, *records, ts=1000 + rng.randrange(n) * cpu)
    formats = {"ftrace": [format_text(f) for f in (entry, leave, plain)], "test": [format_text(other)]}
    return TraceDat(abi, formats=formats, buffers=[BufferSpec(pages=pages)], kallsyms=IRQS).build().data


@pytest.mark.parametrize("cpus", [1, 2, 5])
def test_calls_inside_of_calls(cpus, monkeypatch):
    text = check(nested(random.Random(cpus), cpus, 2500), monkeypatch)
    assert text.count(b"();") > 100


@pytest.mark.parametrize("cpus", [1, 16])
def test_most_lines_are_the_cores(cpus, monkeypatch):
    left = []
    own = graphlines.FallBack.__call__
    monkeypatch.setattr(graphlines.FallBack, "__call__", lambda self, *a: left.append(1) or own(self, *a))
    drawn(nested(random.Random(5), cpus, 8000 // cpus), ("funcgraph-tail",), monkeypatch, by_core=True)
    assert 0 < len(left) < 2700  # interrupts, returns that nobody called, switches of tasks, and the ends of batches
