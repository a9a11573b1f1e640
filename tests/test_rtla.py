"""Noise and timer latencies in rtla's layout: as its documentation shows it, to the column."""

from __future__ import annotations

import json

import pytest
from recorder import Recorder
from test_tasks import NOISE, rows

from ftbuf.analysis import osnoise
from ftbuf.analysis.tables import table
from ftbuf.cli.main import main
from ftbuf.cli.rtlatext import available, duration_text, osnoise_lines

MINUTE = 60_000_000_000


def timers() -> Recorder:
    """Two seconds of timerlat on CPUs 0 and 3: 1.9 us count as 1, and the mean of 1 and 2 as 1."""
    made = Recorder(NOISE)
    latencies = [(0, 0, 1_900), (0, 1, 12_999), (3, 0, 400), (0, 0, 2_000), (0, 1, 300_000)]
    for i, (cpu, context, ns) in enumerate(latencies):
        made.add_fields(500_000_000 * i, cpu, "timerlat", {"context": context, "timer_latency": ns})
    return made


def printed(made: Recorder, tmp_path, capsys, *options: str, status: int = 0) -> str:
    path = tmp_path / "made.dat"
    path.write_bytes(made.build())
    assert main(["tasks", "--what", "noise", *options, str(path)]) == status
    return capsys.readouterr().out


def test_timerlat_top(tmp_path, capsys):
    assert printed(timers(), tmp_path, capsys) == """\
                                   Timer Latency
  0 00:00:02   |          IRQ Timer Latency (us)        |         Thread Timer Latency (us)
CPU COUNT      |      cur       min       avg       max |      cur       min       avg       max
  0 #2         |        2         1         1         2 |      300        12       156       300
  3 #1         |        0         0         0         0 |        -         -         -         -
"""


def test_timerlat_of_user_threads(tmp_path, capsys):
    made = timers()
    made.add_fields(2_100_000_000, 0, "timerlat", {"context": 2, "timer_latency": 310_000})
    out = printed(made, tmp_path, capsys).splitlines()
    assert out[1].endswith("Thread Timer Latency (us)      |    Ret user Timer Latency (us)")
    assert out[3].endswith(" |      310       310       310       310")


def test_timerlat_hist(tmp_path, capsys):
    assert printed(timers(), tmp_path, capsys, "--histogram") == """\
# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:00:02
Index   IRQ-000   Thr-000   IRQ-003
0             0         0         1
1             1         0         0
2             1         0         0
12            0         1         0
over:         0         1         0
count:        2         2         1
min:          1        12         0
avg:          1       156         0
max:          2       300         0
"""


def test_timerlat_hist_of_other_buckets(tmp_path, capsys):
    assert printed(timers(), tmp_path, capsys, "--histogram", "-b", "10", "-E", "40").splitlines()[3:7] == [
        "Index   IRQ-000   Thr-000   IRQ-003", "0             2         0         1", "10            0         1         0",
        "300           0         1         0"]
    assert printed(timers(), tmp_path, capsys, "--histogram", "-b", "10", "--entries", "30").splitlines()[6] == \
        "over:         0         1         0"
    assert '"us": 300' in printed(timers(), tmp_path, capsys, "--json", "--bucket-size", "100")


@pytest.mark.parametrize("options", [["-b", "1000000", "--histogram"], ["-E", "10000000", "--histogram"], ["-b", "5"], ["-E", "9"]],
                         ids=" ".join)
def test_buckets_have_limits(options, tmp_path, capsys):
    assert main(["tasks", "--what", "noise", *options, str(tmp_path / "absent.dat")]) == 2
    assert capsys.readouterr().err
    with timers().open() as trace, pytest.raises(ValueError, match="from 1 to"):
        osnoise.noise(trace, entries=0)


def test_the_distribution_goes_up_to_the_longest():
    with timers().open() as trace:
        found = osnoise.noise(trace, entries=1).distribution
        assert rows(found, "cpu", "context", "low", "count") == [
            (0, "irq", 1792, 1), (0, "irq", 1920, 1), (0, "thread", 12288, 1), (0, "thread", 294912, 1), (3, "irq", 384, 1)]
        assert (found["high"] >= [1_900, 2_000, 12_999, 300_000, 400]).all()


def noisy() -> Recorder:
    made = Recorder(NOISE)
    for i, (noise, single) in enumerate([(7, 4), (5, 5)]):
        values = {"noise": noise, "runtime": 900_000, "max_sample": single, "hw_count": 2, "irq_count": 900, "softirq_count": 30,
                  "thread_count": 1}
        made.add_fields(1_000_000_000 * i, 1, "osnoise", values)
    return made


def test_osnoise_top(tmp_path, capsys):
    assert printed(noisy(), tmp_path, capsys) == """\
                                        Operating System Noise
duration:   0 00:00:01 | time is in us
CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW          NMI          IRQ      \
Softirq       Thread
  1 #2           1800000           12    99.99933           7            5           4            0         1800           \
60            2
"""


def test_osnoise_hist(tmp_path, capsys):
    made = noisy()
    for i, ns in enumerate((1_500, 1_999, 7_000)):
        made.add_fields(1_000_000_001 + i, 1, "sample_threshold", {"duration": ns})
    assert printed(made, tmp_path, capsys, "--histogram") == """\
# RTLA osnoise histogram
# Time unit is microseconds (us)
# Duration:   0 00:00:01
Index   CPU-001
1             2
7             1
over:         0
count:        3
min:          1
avg:          3
max:          7
"""


def test_hardware_noise_has_no_interrupts():
    names = ("cpu", "periods", "runtime", "noise", "max_noise", "max_single", "hw", "nmi", "irq", "softirq", "thread")
    found = table(dict(zip(names, [[n] for n in (1, 599, 599_000_000, 138, 3, 3, 4, 74, 0, 0, 0)], strict=True)))
    assert list(osnoise_lines(found, 10 * MINUTE)) == [
        f"{'':40}Hardware-related Noise", "duration:   0 00:10:00 | time is in us",
        "CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW          NMI",
        "  1 #599       599000000          138    99.99997           3            3           4           74"]


def test_what_is_left_is_cut_off_not_rounded():
    assert available({"runtime": 53_100_000, "noise": 304_896}) == "99.42580"  # 99.425808
    assert available({"runtime": 100, "noise": 0}) == "100.00000"
    assert available({"runtime": 0, "noise": 0}) == "-"


@pytest.mark.parametrize("ns, text", [(0, "  0 00:00:00"), (59 * MINUTE, "  0 00:59:00"), (-1, "  0 00:00:00"),
                                      (26 * 60 * MINUTE + 1_500_000_000, "  1 02:00:01")])
def test_durations(ns, text):
    assert duration_text(ns) == text


def test_counts_of_microseconds():
    made = timers()
    made.add_fields(2_500_000_000, 0, "sample_threshold", {"duration": 1_000_000})
    with made.open() as trace:
        found = osnoise.noise(trace)
        assert rows(found.histogram, "tool", "cpu", "context", "us", "count") == [
            ("timerlat", 0, "irq", 1, 1), ("timerlat", 0, "irq", 2, 1), ("timerlat", 0, "thread", 12, 1),
            ("timerlat", 0, "thread", 256, 1), ("timerlat", 3, "irq", 0, 1), ("osnoise", 0, "", 256, 1)]
        assert rows(found.samples, "cpu", "context", "count", "total_us") == [(0, "", 1, 1000)]


def test_without_measurements(tmp_path, capsys):
    assert printed(Recorder(NOISE), tmp_path, capsys, status=1) == "none: nothing was measured\n"
    text = printed(noisy(), tmp_path, capsys, "--histogram", status=1)
    assert text == "none: nothing was measured, of which there are histograms\n"
    assert json.loads(printed(Recorder(NOISE), tmp_path, capsys, "--json", status=1))["timerlat"] == []


def test_histograms_are_of_noise(tmp_path, capsys):
    assert main(["tasks", "--histogram", str(tmp_path / "absent.dat")]) == 2
    assert "--what noise" in capsys.readouterr().err
