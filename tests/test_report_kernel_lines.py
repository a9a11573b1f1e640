"""Lines of the kernel's layouts by the core look as those printed record by record."""

from __future__ import annotations

import pytest
from corpus_data import ROOT
from recorder import Recorder

import ftbuf
from ftbuf.report import kernelreport

LAYOUTS = [(), ("latency-format",), ("latency-format", "verbose"), ("latency-format", "record-tgid"), ("raw",), ("hex",),
           ("latency-format", "nocontext-info"), ("noirq-info",), ("fields", "latency-format")]
WAITS = [0, 1, 499, 500, 999, 1000, 10_000, 10_499, 10_500, 10_501, 99_999, 100_500, 999_999, 1_000_500, 10_000_501, 100_000_501,
         1_000_000_501, 12_345_678_901]


def printed(source, options, monkeypatch, *, by_core: bool) -> bytes:
    with monkeypatch.context() as patch, ftbuf.open(source, errors="skip") as trace:
        if not by_core:
            patch.setattr(kernelreport, "can_write", lambda *_: False)
        return b"".join(kernelreport.kernel_report(trace, kernelreport.KernelRequest(options=options)))


@pytest.mark.parametrize("options", LAYOUTS, ids="+".join)
def test_real_recordings(options, recordings, monkeypatch):
    for path in (ROOT / "examples" / "sched.dat", recordings["k612-sched"].path, recordings["d61-overwrite"].path,
                 recordings["s390x-lost-consumer"].path):
        text = printed(path, options, monkeypatch, by_core=True)
        assert text.count(b"\n") > 100
        assert text == printed(path, options, monkeypatch, by_core=False)


@pytest.mark.parametrize("options", LAYOUTS, ids="+".join)
def test_every_length_of_waits(options, monkeypatch):
    """Among them those that a mark begins at; of two CPUs, in many batches."""
    made = Recorder()
    ts = 5_000_000_000
    for n in range(700):
        made.add_fields(ts, n % 3 // 2, "sched_switch", {"common_pid": n * 37, "prev_pid": n, "common_flags": n % 256,
                                                         "common_preempt_count": n % 251})
        ts += WAITS[n % len(WAITS)]
    data = made.build()
    text = printed(data, options, monkeypatch, by_core=True)
    assert text == printed(data, options, monkeypatch, by_core=False)
    if options == ("latency-format",):
        marks = {line.split(b"us", 1)[1][:1] for line in text.splitlines() if not line.startswith(b"#")}
        assert marks == set(map(bytes, zip(b" +!#*@$")))
