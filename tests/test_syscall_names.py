"""Names of system calls by the numbers of the machine."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from corpus_data import ROOT, corpus_cases
from recorder import OTHERS, Recorder

import ftbuf
from ftbuf.analysis import syscalls
from ftbuf.analysis.callnames import machine_calls, machine_tables, numbered
from ftbuf.analysis.systemcalls import NUMBER, named_calls

NAMED_OTHERWISE = {"newfstat": "fstat", "newfstatat": "fstatat64", "newstat": "stat", "newlstat": "lstat", "newuname": "uname",
                   "llseek": "_llseek", "mips_mmap2": "mmap2", "umount": "umount2", "sendfile64": "sendfile",
                   "fadvise64_64": "arm_fadvise64_64"}  # functions of the kernel that serve a call of another name


def machine(uname: str = "", clocks: bytes = b"[local] global", long_size: int = 8):
    """What is asked of a trace."""
    container = SimpleNamespace(uname=uname, tracing_file={"trace_clock": clocks}.get)
    return SimpleNamespace(recording=SimpleNamespace(container=container, abi=SimpleNamespace(long_size=long_size)))


@pytest.mark.parametrize("uname, number, name", [
    ("Linux box 6.12.0-amd64 #1 SMP x86_64 GNU/Linux", 0, "read"), ("Linux box 6.12 x86_64", 1 << 30 | 1, "write"),
    ("Linux box 6.1 i686", 3, "read"), ("Linux box 6.1 aarch64", 63, "read"), ("Linux box 6.1 riscv64", 259, "riscv_flush_icache"),
    ("Linux box 6.1 armv7l", 322, "openat"), ("Linux box 6.1 s390x", 288, "openat"), ("Linux box 6.1 ppc64le", 286, "openat"),
    ("Linux box 6.1 mips", 4003, "read"), ("Linux box 6.1 mips64", 5000, "read"), ("Linux box 6.1 mips64", 6000, "read"),
    ("Linux box 6.1 mips", 4435, "clone3"), ("Linux box 6.1 s390x", 435, "clone3")])
def test_machines(uname, number, name):
    assert machine_calls(machine(uname))[number] == name


def test_a_machine_that_the_recording_does_not_name():
    assert machine_tables(machine(clocks=b"[local] x86-tsc")) == ("x86_64",)
    assert machine_tables(machine(clocks=b"[local] x86-tsc", long_size=4)) == ("i386",)
    assert machine_tables(machine("Linux x86_64-builder 6.1 sparc64")) == ()
    assert machine_calls(machine("Linux box 6.1 x86_64")).get(999) is None


def test_runs_of_numbers():
    assert dict(numbered("0: read write 5: fstat")) == {0: "read", 1: "write", 5: "fstat"}


def test_calls_of_a_recording_have_names():
    with ftbuf.open(ROOT / "examples" / "sched.dat") as trace:
        found = syscalls(trace)
        names = dict(zip(found["id"].tolist(), found["name"].tolist(), strict=True))
        assert names and "" not in names.values()
        assert {0: "read", 1: "write", 202: "futex"}.items() & names.items()


def test_without_a_machine_calls_have_numbers_alone():
    made = Recorder(OTHERS)
    made.add(100, 0, "sys_enter", pid=5, id=3)
    made.add(110, 0, "sys_exit", pid=5, id=3)
    with made.open() as trace:
        assert syscalls(trace)["name"].tolist() == [""]


@pytest.mark.corpus
@pytest.mark.parametrize("case", [c for c in corpus_cases() if c.name.endswith(("-syscalls", "-allevents"))], ids=lambda c: c.name)
def test_events_of_single_calls_agree(case, corpus_layout):
    with ftbuf.open(corpus_layout(case), errors="skip") as trace:
        table = machine_calls(trace)
        for event, name in named_calls(trace, trace.events).items():
            number = int(next(iter(trace[event].iterate([NUMBER])))[NUMBER][0])
            assert table[number] in (name, NAMED_OTHERWISE.get(name)), number
