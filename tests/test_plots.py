"""Pictures of results: what is in them, and the files that commands write."""

from __future__ import annotations

import numpy as np
import pytest
from corpus_data import ROOT
from recorder import DEFAULT, OTHERS, Recorder
from test_rtla import noisy, timers
from test_tasks import KINDS, NOISE

import ftbuf
from ftbuf import analysis
from ftbuf.analysis import plots
from ftbuf.analysis.tables import table
from ftbuf.cli.main import main

pytest.importorskip("matplotlib")
EXAMPLE, FUNCTIONS = ROOT / "examples" / "sched.dat", ROOT / "examples" / "function.dat"
SECTIONS = {("preemptirq", f"irq_{name}"): ("s32 caller_offs", "s32 parent_offs") for name in ("disable", "enable")}


def drawn(figure, tmp_path):
    """The axes of a figure that can be written."""
    figure.savefig(tmp_path / "drawn.png")
    assert (tmp_path / "drawn.png").read_bytes().startswith(b"\x89PNG")
    return figure.axes


def legend(axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def bars(axes) -> list[str]:
    return [text.get_text() for text in axes.get_yticklabels()]


def test_latencies_of_one_recording(tmp_path):
    with ftbuf.open(EXAMPLE) as trace:
        found = analysis.wakeup_latency(trace, fineness=3)
    axes, = drawn(plots.latency(found), tmp_path)
    assert axes.get_xlabel() == "wakeup latency (us)" and axes.get_ylabel() == "count" and axes.get_xscale() == "log"
    names = legend(axes)
    assert names[0] == f"all (n={int(found.total['count'][0])})" and names[1].startswith("p50") and names[-1].startswith("max")
    steps, = axes.patches
    assert steps.get_data().values.sum() == found.total["count"][0]


def test_latencies_of_cpus(tmp_path):
    with ftbuf.open(EXAMPLE) as trace:
        found = analysis.wakeup_latency(trace, by="cpu", fineness=3)
    axes, = drawn(plots.latency(found), tmp_path)
    assert [steps.get_data().values.sum() for steps in axes.patches] == found.table["count"].tolist()
    assert [name.split(" (")[0] for name in legend(axes)[:2]] == ["CPU 0", "CPU 1"]


def test_two_recordings_one_over_the_other(tmp_path):
    with ftbuf.open(EXAMPLE) as trace:
        whole = analysis.wakeup_latency(trace, fineness=3)
        part = analysis.wakeup_latency(trace.window(end=trace.start + 20_000_000), fineness=3)
    axes, = drawn(plots.latency(whole, part, labels=["whole", "$part$"]), tmp_path)
    assert axes.get_ylabel() == "share (%)" and len(axes.patches) == 2
    assert all(steps.get_data().values.sum() == pytest.approx(100) for steps in axes.patches)
    assert legend(axes)[0].startswith("whole") and r"\$part\$ (n=" in " ".join(legend(axes))


def test_a_latency_of_nothing(tmp_path):
    made = Recorder({**DEFAULT, **SECTIONS})
    for ts, name in ((100, "disable"), (100, "enable"), (200, "disable"), (900, "enable")):
        made.add(ts, 0, f"irq_{name}")
    with made.open() as trace:
        axes, = drawn(plots.latency(analysis.critical_sections(trace, "irq", fineness=3)), tmp_path)
        assert axes.get_xlabel() == "irq off (us)"


def test_rates_and_losses(tmp_path):
    made = Recorder(KINDS)
    for i in range(20):
        if i in (7, 12):
            made.lose(0, 30 if i == 7 else None)
        made.add(1_000_000_000 + i * 1_000_000, i % 2, "sched_waking")
    with made.open() as trace:
        losses = analysis.losses(trace)
        above, below = drawn(plots.rates(analysis.rates(trace, bins=20), losses), tmp_path)
        assert above.patches[0].get_data().values.sum() == pytest.approx(20 * 1e9 / 950_001, rel=0.01)
        assert below.get_ylabel() == "events lost" and below.get_xlabel() == "ms since 1.000000000 s"
        assert below.patches[0].get_data().values.sum() == 30 and len(legend(below)) == 1
        assert below.lines[0].get_xdata().tolist() == [pytest.approx(11.9, abs=0.5)] and below.lines[0].get_ydata().tolist() == [0]
        assert "20 events, 30 lost (60.0 %)" in above.figure.get_suptitle()
        above, _ = drawn(plots.rates(analysis.rates(trace, bins=20, by="cpu")), tmp_path)
        assert legend(above) == ["CPU 0", "CPU 1"]
        _, below = drawn(plots.rates(analysis.rates(trace, bins=1)), tmp_path)
        assert below.lines[0].get_ydata().tolist() == [30] and below.get_ylim()[1] > 30
        by_event = analysis.rates(trace, bins=20, by="event")
        _, below = drawn(plots.rates(by_event, losses, lost=analysis.lost_rates(trace, bins=20)), tmp_path)
        assert below.patches[0].get_data().values.sum() == 30
        drawn(plots.rates(by_event, losses), tmp_path)


def test_rates_of_many_kinds_of_events(tmp_path):
    made = Recorder(OTHERS)
    names = list(made.formats)[:11]
    for i, name in enumerate(names):
        for k in range(i + 1):
            made.add_fields(1000 * i + k, 0, name, {})
    with made.open() as trace:
        axes, = drawn(plots.rates(analysis.rates(trace, bins=5, by="event")), tmp_path)
        assert legend(axes) == [*names[:3:-1], "4 others"]


def test_profiles(tmp_path):
    with ftbuf.open(FUNCTIONS) as trace:
        axes, = drawn(plots.profile(analysis.function_profile(trace), most=5), tmp_path)
        assert len(bars(axes)) == 5 and axes.get_xlabel() == "calls"
    names, times = ["inner", "outer", "inner"], [2000, 9000, 3000]
    found = table({"function": names, "cpu": [0, 0, 1], "hit": [1, 1, 2], "time": times, "self": [2000, 4000, 3000]})
    axes, = drawn(plots.profile(found), tmp_path)
    assert bars(axes) == ["outer (1)", "inner (3)"] and axes.get_xlabel() == "time (us)"
    assert [bar.get_width() for bar in axes.patches] == [4, 5, 5, 0] and legend(axes) == ["self", "calls inside"]


def test_tasks_and_cpus(tmp_path):
    with ftbuf.open(EXAMPLE) as trace:
        states, busy = analysis.task_states(trace), analysis.cpu_busy(trace)
    axes, = drawn(plots.tasks(states, most=3), tmp_path)
    assert bars(axes)[0] == f"{states['comm'][0]} {states['pid'][0]}" and len(bars(axes)) == 3
    assert legend(axes)[:2] == ["run", "runnable"] and axes.get_xlabel() == "time (ms)"
    axes, = drawn(plots.cpus(busy), tmp_path)
    assert bars(axes) == ["CPU 0", "CPU 1"]
    assert axes.patches[0].get_width() == pytest.approx(busy["busy"][0] / 1e6)


def test_system_calls(tmp_path):
    with ftbuf.open(EXAMPLE) as trace:
        for by in ("call", "task", "both"):
            found = analysis.syscalls(trace, by=by)
            axes, = drawn(plots.syscalls(found, most=4), tmp_path)
            assert len(bars(axes)) == 4 and f"({found['count'][0]})" in bars(axes)[0]


def test_handlers_and_residencies(tmp_path):
    made = Recorder(KINDS)
    for ts, name, values in [(100, "softirq_entry", {"vec": 1}), (110, "irq_handler_entry", {"irq": 3, "name": "eth0"}),
                             (130, "irq_handler_exit", {"irq": 3}), (200, "softirq_exit", {"vec": 1}),
                             (210, "cpu_idle", {"state": 2}), (300, "cpu_idle", {"state": 0xFFFFFFFF}),
                             (310, "cpu_frequency", {"state": 1_800_000}), (400, "cpu_idle", {"state": 2})]:
        made.add_fields(ts, 0, name, values)
    with made.open() as trace:
        axes, = drawn(plots.handlers(analysis.irq_time(trace)), tmp_path)
        assert bars(axes) == ["softirq 1 (1)", "irq eth0 (1)"] and legend(axes) == ["self", "handlers inside"]
        axes, = drawn(plots.handlers(analysis.irq_time(trace, by_cpu=True)), tmp_path)
        assert bars(axes)[1] == "irq eth0 CPU 0 (1)"
        axes, = drawn(plots.residency(analysis.idle_residency(trace)), tmp_path)
        assert legend(axes) == ["state 2", "busy", "unknown"]
        axes, = drawn(plots.residency(analysis.frequency_residency(trace)), tmp_path)
        assert legend(axes) == ["1800 MHz", "unknown"]


def test_a_latency_tracer_s_report(tmp_path, recordings, capsys):
    with ftbuf.open(recordings["k612-irqsoff"].path) as trace:
        found = analysis.latency_report(trace)
    axes, places = drawn(plots.report(found, most=4), tmp_path)
    assert axes.figure.get_suptitle().endswith("\nthe 4 longest of 5 steps: 100.0% of the time")
    assert "longest of" not in plots.report(found).get_suptitle()
    when = [bar.get_x() for bar in places.patches[4:]]
    assert when[:2] == [1.026, 3.75] and when == sorted(when) and places.get_xlim()[1] > 36_000
    assert len(bars(axes)) == 4 and axes.get_xlabel() == "time (us)" and "36071 us, rcu_preempt" in axes.figure.get_suptitle()
    inside = found.steps["inside"]
    assert max(bar.get_width() for bar in axes.patches) * 1000 == found.steps["delay"][inside].max()
    assert bars(axes)[0].startswith("1.026 us: preempt_count_add <-") and axes.get_xscale() == "log"
    assert main(["latency", str(recordings["k612-irqsoff"].path), "--plot", str(tmp_path / "a.svg")]) == 0
    assert "<svg" in (tmp_path / "a.svg").read_text() and "irqsoff" in capsys.readouterr().out


def test_noise(tmp_path):
    with timers().open() as trace:
        axes, = drawn(plots.noise(analysis.noise(trace)), tmp_path)
        assert legend(axes) == ["CPU 0 irq (n=2, max 2 us)", "CPU 0 thread (n=2, max 300 us)", "CPU 3 irq (n=1, max 0.4 us)"]
        assert axes.get_xscale() == "log" and axes.get_xlim()[0] < 0.4 < 300 < axes.get_xlim()[1] < 400
        assert [steps.get_data().values.sum() for steps in axes.patches] == [2, 2, 1]


def test_sources_of_noise(tmp_path):
    made = Recorder(NOISE)
    made.add_fields(1000, 0, "irq_noise", {"duration": 5_000, "vector": 3, "desc": "timer"})
    made.add_fields(2000, 0, "thread_noise", {"duration": 7_000, "pid": 9, "comm": "cc"})
    with made.open() as trace:
        axes, = drawn(plots.noise(analysis.noise(trace)), tmp_path)
        assert bars(axes) == ["thread cc (1)", "irq timer (1)"] and [bar.get_width() for bar in axes.patches] == [7, 5]
    with noisy().open() as trace:
        axes, = drawn(plots.noise(analysis.noise(trace)), tmp_path)
        assert bars(axes) == ["CPU 1 (2)"] and legend(axes) == ["noise", "without"] and axes.get_xlabel() == "time (s)"
        assert [text.get_text() for text in axes.texts] == ["1.8 s"]


def test_noise_of_many_cpus(tmp_path):
    made = Recorder(NOISE)
    for cpu in range(9):
        for context in (0, 1):
            made.add_fields(1000 * cpu, cpu, "timerlat", {"context": context, "timer_latency": 1000 + cpu})
    with made.open() as trace:
        axes, = drawn(plots.noise(analysis.noise(trace)), tmp_path)
        assert legend(axes) == ["irq (n=9, max 1.008 us)", "thread (n=9, max 1.008 us)"]


def test_zeros_stand_beside_the_least_latency(tmp_path):
    def of(*latencies: int):
        made = Recorder({**DEFAULT, **SECTIONS})
        for i, latency in enumerate(latencies):
            made.add(1_000_000 * i, 0, "irq_disable")
            made.add(1_000_000 * i + latency, 0, "irq_enable")
        with made.open() as trace:
            return drawn(plots.latency(analysis.critical_sections(trace, "irq", fineness=3)), tmp_path)[0]

    axes = of(0, 0, 0, 10_000, 20_000, 900_000)
    steps, (left, right) = axes.patches[0].get_data(), axes.get_xlim()
    assert axes.get_xscale() == "log" and 5 < left < steps.edges[0] < steps.edges[1] < 9.4 and 900 < right < 1200
    assert steps.values[:2].tolist() == [3, 0] and [text.get_text() for text in axes.texts] == ["0 us"]
    axes = of(0, 10_000, 20_000)
    steps = axes.patches[0].get_data()
    assert axes.get_xscale() == "linear" and steps.edges[0] == 0 and steps.values[0] == 1 and not axes.texts
    axes = of(0, 0)
    assert axes.get_xscale() == "linear" and axes.patches[0].get_data().values.tolist() == [2]
    axes = of(5, (1 << 63) - 10_000_000)
    assert axes.get_xlim()[1] > 9.2e15 and axes.patches[0].get_data().values.sum() == 2
    axes = of(10_000, 900_000)
    assert axes.get_xlim()[0] > 8


def test_bars_of_many_sizes_can_all_be_seen(tmp_path):
    found = table({"name": ["a", "b", "c"], "id": [1, 2, 3], "count": [1, 1, 1], "time": [5_000_000_000, 7_000, 0]})
    axes, = drawn(plots.syscalls(found), tmp_path)
    assert axes.get_xscale() == "log" and axes.get_xlim()[0] < 7e-6
    assert [text.get_text() for text in axes.texts] == ["5 s", "7 us", "0 ns"]


def test_a_tree_of_calls(tmp_path):
    names, depth, caller = ["a", "b", "c", "d", "$e"], [0, 1, 1, 2, 0], [-1, 0, 0, 2, -1]
    found = table({"function": names, "depth": depth, "caller": caller, "time": [10_000, 4_000, 5_000, 6_000, 3_000],
                   "hit": [1] * 5})
    axes, = drawn(plots.call_tree(found), tmp_path)
    assert [text.get_text() for text in axes.texts] == [" a (10 us)", r" \$e (3 us)", " b (4 us)", " c (6 us)", " d (6 us)"]
    places = [(box.x0, box.y0, box.x1) for level in axes.collections for box in (p.get_extents() for p in level.get_paths())]
    assert places == [(0, 0, 10), (10, 0, 13), (0, 1, 4), (4, 1, 10), (4, 2, 10)]
    assert axes.get_xlabel() == "time (us)" and "left out" not in axes.figure.get_suptitle()


def test_a_tree_leaves_out_what_cannot_be_seen(tmp_path):
    depth = np.arange(60)
    found = table({"function": ["f"] * 60, "depth": depth, "caller": depth - 1, "time": [1000] * 60, "hit": [1] * 60})
    axes, = drawn(plots.call_tree(found), tmp_path)
    assert len(axes.collections) == 50 and "10 of 60 paths left out" in axes.figure.get_suptitle()
    found = table({"function": ["f", "g"], "depth": [0, 1], "caller": [-1, 0], "time": [0, 0], "hit": [3, 3]})
    axes, = drawn(plots.call_tree(found), tmp_path)
    assert axes.get_xlabel() == "calls"


def test_nothing_to_draw(tmp_path):
    with Recorder({**KINDS, **SECTIONS, **NOISE}).open() as trace:
        for figure in (plots.latency(analysis.wakeup_latency(trace)), plots.latency(analysis.critical_sections(trace, "irq")),
                       plots.rates(analysis.rates(trace)), plots.profile(analysis.function_profile(trace)),
                       plots.tasks(analysis.task_states(trace)), plots.cpus(analysis.cpu_busy(trace)),
                       plots.residency(analysis.idle_residency(trace)), plots.handlers(analysis.irq_time(trace)),
                       plots.syscalls(analysis.syscalls(trace)), plots.call_tree(analysis.call_tree(trace)),
                       plots.noise(analysis.noise(trace))):
            drawn(figure, tmp_path)


def test_any_name_can_be_drawn(tmp_path):
    names = ["$x_{", "a\nb", "\udcff\udcfe", "\\frac", "x" * 100]
    columns = {name: np.arange(1, 6) * 1000 for name in ("run", "runnable", "disk", "sleep", "stopped", "unknown")}
    axes, = drawn(plots.tasks(table({"comm": names, "pid": range(5), **columns})), tmp_path)
    assert max(map(len, bars(axes))) < 50


# ---- commands ----


@pytest.mark.parametrize("command", [
    ["latency", EXAMPLE], ["latency", EXAMPLE, "--by", "cpu"], ["latency", EXAMPLE, "--versus", EXAMPLE], ["loss", EXAMPLE],
    ["loss", EXAMPLE, "--bins", "5", "--by", "event"],
    ["latency", EXAMPLE, "--json"], ["latency", EXAMPLE, "--histogram"], ["profile", FUNCTIONS], ["profile", FUNCTIONS, "--tree"],
    ["tasks", EXAMPLE],
    ["tasks", EXAMPLE, "--what", "syscalls"],
    ["tasks", EXAMPLE, "--what", "cpus", "--json"]], ids=lambda command: "-".join(map(str, command[::2])).replace("/", "."))
def test_commands_draw_beside_what_they_print(command, tmp_path, capsys):
    words = list(map(str, command))
    assert main(words) == 0
    plain = capsys.readouterr().out
    assert main([*words, "--plot", str(tmp_path / "a.svg")]) == 0
    assert capsys.readouterr().out == plain
    assert "<svg" in (tmp_path / "a.svg").read_text()


def test_a_tree_has_a_picture_of_its_own(tmp_path, recordings, capsys):
    path, picture = str(recordings["mips32be-graph"].path), tmp_path / "a.svg"
    titles = {}
    for option in ("--tree", "--folded", "--json"):
        assert main(["profile", path, option, "--plot", str(picture)]) == 0
        titles[option] = "Calls by their callers" in picture.read_text()
    assert titles == {"--tree": True, "--folded": True, "--json": False}


def test_a_picture_of_a_kind_that_there_is_not(tmp_path, capsys):
    for name in ("picture.xyz", "picture"):
        assert main(["loss", str(EXAMPLE), "--plot", str(tmp_path / name)]) == 2
        assert ".png" in capsys.readouterr().err
    assert main(["loss", str(EXAMPLE), "--plot", str(tmp_path / "absent" / "a.png")]) == 1
