"""What a record alone does not say: names of tasks, symbols, messages, stacks, the kernel's own record types."""

from __future__ import annotations

import re

import numpy as np
import pytest
from corpus_data import raw_cases
from expected_texts import KERNEL, event_lines
from pagebuilder import event, make_abi, make_format, pages_of
from test_corpus_engine import is_long, printed_events, text_of

import ftbuf
from ftbuf.blktrace import ACTIONS, blktrace_format, blktrace_id
from ftbuf.formats import EventFormat, parse_format
from ftbuf.names import Symbols, parse_modules
from ftbuf.raw import RawPages, RawRecording
from ftbuf.trace import Trace

ABI = make_abi()


def trace_of(records: list[tuple[EventFormat, dict]], *, comms: dict[int, str] | None = None) -> Trace:
    formats = list({fmt.id: fmt for fmt, _ in records}.values())
    stream = pages_of(ABI, *(event(fmt, ABI, **values) for fmt, values in records))
    return Trace(RawRecording(RawPages({0: stream}, ABI, formats, comms or {})))


# ------------------------------------------------------------------------------------------------- names of tasks

SWITCH = make_format("sched_switch", 300, ["char prev_comm[16]", "pid_t prev_pid", "char next_comm[16]",
                                           "pid_t next_pid"], system="sched")
WAKING = make_format("sched_waking", 301, ["__data_loc char[] comm", "pid_t pid"], system="sched")
RENAME = make_format("task_rename", 302, ["pid_t pid", "char oldcomm[16]", "char newcomm[16]"], system="task")
WAIT = make_format("sched_process_wait", 303, ["char comm[16]", "pid_t pid"], system="sched")
EXEC = make_format("sched_process_exec", 304, ["__data_loc char[] filename", "pid_t pid", "pid_t old_pid"],
                   system="sched")
MADE = make_format("wakeup_lat", 305, ["char comm[16]", "pid_t pid"], system="synthetic")
NEWTASK = make_format("task_newtask", 306, ["pid_t pid", "char comm[16]", "unsigned long clone_flags"], system="task")
PLAIN = make_format("plain", 307, ["int a"], system="test")
USER_STACK = make_format("user_stack", 12, ["unsigned int tgid", "unsigned long caller[8]"], system="ftrace")
ISSUE = make_format("block_rq_issue", 308, ["char comm[16]", "u32 bytes"], system="block")


def test_names_are_learned_and_say_where_from():
    trace = trace_of([
        (SWITCH, dict(common_pid=7, prev_comm="seven", prev_pid=7, next_comm="eight", next_pid=8)),
        (WAKING, dict(common_pid=8, comm="nine", pid=9)),
        (PLAIN, dict(common_pid=9)),
        (PLAIN, dict(common_pid=10)),
        (PLAIN, dict(common_pid=3)),
    ], comms={3: "saved", 8: "better"})
    assert [trace.comms[p] for p in (0, 3, 7, 8, 9, 10)] == ["<idle>", "saved", "seven", "better", "nine", "<...>"]
    origins = [trace.comms.origin(p) for p in (3, 7, 8, 9, 10)]
    assert origins == ["saved_cmdlines", "sched_switch", "saved_cmdlines", "sched_waking", None]
    assert dict(trace.comms.saved) == {3: "saved", 8: "better"}
    assert set(trace.comms) == {3, 7, 8, 9} and len(trace.comms) == 4 and 9 in trace.comms and 10 not in trace.comms
    assert trace["plain"].arrays()["common_comm"].tolist() == ["nine", "<...>", "saved"]
    assert trace.timeline()["common_comm"].tolist() == ["seven", "better", "nine", "<...>", "saved"]
    assert [r.comm for r in trace.records()] == ["seven", "better", "nine", "<...>", "saved"]


def test_names_do_not_depend_on_what_was_looked_at():
    records = [(PLAIN, dict(common_pid=9)), (WAKING, dict(common_pid=8, comm="nine", pid=9))]
    assert next(trace_of(records).records()).comm == "nine"
    trace = trace_of(records)
    assert trace.window(end=trace.start + 1)["plain"].arrays()["common_comm"].tolist() == ["nine"]


def test_the_last_name_holds():
    trace = trace_of([
        (WAKING, dict(comm="old", pid=9)), (RENAME, dict(pid=9, oldcomm="old", newcomm="new")),
        (WAKING, dict(comm="sh", pid=11)), (EXEC, dict(pid=11, filename="/usr/bin/a-very-long-program-name")),
    ])
    assert (trace.comms[9], trace.comms.origin(9)) == ("new", "task_rename")
    assert (trace.comms[11], trace.comms.origin(11)) == ("a-very-long-pro", "sched_process_exec")


def test_a_comm_that_is_not_the_name_of_the_pid_beside_it():
    """sched_process_wait has the waiting task's name and the awaited task's pid; block events have no pid at all."""
    trace = trace_of([(WAIT, dict(common_pid=5, comm="waiter", pid=6)), (ISSUE, dict(common_pid=4, comm="dd"))])
    assert (trace.comms[5], trace.comms[6], trace.comms[4]) == ("waiter", "<...>", "dd")


def test_the_kernels_events_are_believed_before_those_that_people_made():
    trace = trace_of([(WAKING, dict(comm="nine", pid=9)), (MADE, dict(comm="other", pid=9)),
                      (MADE, dict(comm="ten", pid=10))])
    assert (trace.comms[9], trace.comms[10], trace.comms.origin(10)) == ("nine", "ten", "wakeup_lat")


def test_nothing_is_learned_when_all_names_are_saved(monkeypatch):
    trace = trace_of([(SWITCH, dict(common_pid=7, prev_comm="x", prev_pid=7))], comms={7: "seven"})
    monkeypatch.setattr("ftbuf.recording.learn_comms", lambda recording: pytest.fail("it looked"))
    assert trace["sched_switch"].arrays()["common_comm"].tolist() == ["seven"]
    assert [r.comm for r in trace.records()] == ["seven"]


def test_pids_that_cannot_be():
    trace = trace_of([(WAKING, dict(common_pid=-5, comm="x", pid=-5)), (WAKING, dict(comm="y", pid=1 << 30))])
    assert trace["sched_waking"].arrays()["common_comm"].tolist() == ["<...>", "<idle>"]
    assert (trace.comms[-5], trace.comms[1 << 30]) == ("<...>", "<...>")


def test_thread_groups_are_learned():
    thread = 0x10000
    trace = trace_of([
        (NEWTASK, dict(common_pid=5, pid=20, comm="a", clone_flags=0)),
        (NEWTASK, dict(common_pid=20, pid=21, comm="a", clone_flags=thread)),
        (NEWTASK, dict(common_pid=99, pid=22, comm="a", clone_flags=thread)),  # of a task that nothing is known of
        (USER_STACK, dict(common_pid=30, tgid=29)),
    ])
    assert dict(trace.tgids) == {20: 20, 21: 20, 30: 29}
    assert (trace.tgids.origin(21), trace.tgids.origin(30)) == ("task_newtask", "user_stack")
    assert trace.tgids.origin(22) is None and 22 not in trace.tgids
    with pytest.raises(KeyError):
        trace.tgids[22]


# -------------------------------------------------------------------------------------------------------- symbols

KALLSYMS = (b"ffffffff81000000 T _stext\nffffffff81000100 T alpha\nffffffff81000200 t beta\n"
            b"ffffffff81000300 T _etext\nffffffffc0000000 t gamma\t[mod]\nffffffffc0000040 t delta\t[mod]\n")


def test_names_of_columns():
    symbols = Symbols(KALLSYMS)
    addresses = np.array([[0xFFFFFFFF81000100, 0xFFFFFFFF810001FF], [0xFFFFFFFFC0000044, 0x10]], np.uint64)
    assert symbols.names_of(addresses).tolist() == [["alpha", "alpha"], ["delta", None]]
    assert symbols.modules_of(addresses).tolist() == [["", ""], ["mod", None]]
    for row in addresses:
        assert symbols.names_of(row).tolist() == [symbols.name(int(a)) for a in row]
    ragged = np.empty(3, object)
    ragged[:] = [addresses[0], np.empty(0, np.uint64), addresses[1][1:]]
    assert [row.tolist() for row in symbols.names_of(ragged)] == [["alpha", "alpha"], [], [None]]
    assert symbols.names_of(np.empty(0, np.uint64)).tolist() == []
    assert Symbols(b"").names_of(addresses).tolist() == [[None, None], [None, None]]


def test_modules_of_addresses_without_symbols():
    modules = (b"zfs 4096 2 a,b, Live 0xffffffffc0100000 (POE)\next4 8192 0 - Live 0xffffffffc0200000\n"
               b"hidden 10 0 - Live 0x0000000000000000\n")
    assert [m.name for m in parse_modules(modules)] == ["zfs", "ext4"]
    symbols = Symbols(KALLSYMS, modules)
    wanted = np.array([0xFFFFFFFFC0100FFF, 0xFFFFFFFFC0101000, 0xFFFFFFFFC0200000, 0xFFFFFFFF81000100], np.uint64)
    assert symbols.modules_of(wanted).tolist() == ["zfs", None, "ext4", ""]
    assert Symbols(b"", modules).modules_of(wanted).tolist() == ["zfs", None, "ext4", None]


def test_hidden_symbols():
    hidden = b"0000000000000000 T _stext\n0000000000000000 A fixed\n0000000000000000 t a\t[m]\n"
    assert Symbols(hidden).hidden
    assert not Symbols(KALLSYMS).hidden and not Symbols(b"").hidden
    assert not Symbols(hidden + b"0000000000000010 T last\n").hidden


# ------------------------------------------------------------------------------------------------ record types

BLK = parse_format(blktrace_format(13, b"name: user_stack\nID: 12\nformat:\n\tfield:unsigned short common_type;\t"
                                       b"offset:0;\tsize:2;\tsigned:0;\n\n\tfield:unsigned int tgid;\toffset:8;\t"
                                       b"size:4;\tsigned:0;\n\nprint fmt: \"\"\n"), "ftrace")


@pytest.mark.parametrize("pdu", [b"", b"abc", b"\xff" * 8])
def test_blktrace_record(pdu):
    payload = event(BLK, ABI, sector=8, bytes=4096, action=1, device=0xFE00010, pdu_len=len(pdu), pdu=pdu + b"\0\0\0")
    table = ftbuf.decode_pages(pages_of(ABI, payload), abi=ABI, events=BLK)
    assert table["pdu"][0].tobytes() == pdu
    assert (table["sector"][0], table["bytes"][0]) == (8, 4096)


def test_blktrace_is_known_where_no_format_has_its_id():
    assert blktrace_id({12: ("ftrace", "user_stack"), 14: ("ftrace", "bputs")}) == 13
    assert blktrace_id({12: ("ftrace", "user_stack"), 13: ("ftrace", "bputs")}) is None
    assert blktrace_id({13: ("sched", "sched_switch")}) is None
    assert "blktrace" not in trace_of([(USER_STACK, dict(tgid=1))])  # formats that are given are all there are


# ------------------------------------------------------------------------------- against the kernel's own texts


class Speller:
    """Texts of the kernel's own record types from columns and values of the public API."""

    def __init__(self, trace: Trace, long_size: int) -> None:
        self.trace = trace
        self.digits = 2 * long_size
        self._known: dict[int, str] = {}

    def ip(self, address: int) -> str:
        if address not in self._known:
            symbol = self.trace.symbols.lookup(address)
            if symbol is not None and symbol.module.startswith("__builtin__"):
                symbol = None  # trampolines: kallsyms lists them, %ps does not know them
            name = f"0x{address:x}" if symbol is None else symbol.name
            self._known[address] = f"{name} [{symbol.module}]" if symbol is not None and symbol.module else name
        return self._known[address]

    def function(self, e) -> str:
        return f"{self.ip(e['ip'])} <-{self.ip(e['parent_ip'])}"

    def func_repeats(self, e) -> str:
        last = (e["last_ts"] + 500) // 1000
        return f"{self.function(e)} (repeats: {e['count']}, last_ts: {last // 10**6:5}.{last % 10**6:06})"

    def message(self, e) -> str:
        name = self.trace.symbols.name(e["ip"])
        return f"{'?' if name is None else self.ip(e['ip'])}: {e['text']}"  # the module may have gone before kallsyms

    def raw_data(self, e) -> str:
        return f"# {e['id']:x} buf:" + "".join(f" {b:02x}" for b in bytes(e["buf"]))

    def kernel_stack(self, e) -> list[str]:
        return ["[FTRACE TRAMPOLINE]" if a == 0x7FFFFFFF else self.ip(a) for a in e["caller"]]

    def user_stack(self, e) -> list[str]:
        callers = list(e["caller"])
        end = callers.index(0) if 0 in callers else len(callers)
        return [f" <{a:0{self.digits}x}>" for a in callers[:end]]

    def hwlat(self, e) -> str:
        nmi = f" nmi-total:{e['nmi_total_ts']} nmi-count:{e['nmi_count']}" if e["nmi_count"] else ""
        return (f"#{e['seqnum']:<5} inner/outer(us): {e['duration']:4}/{e['outer_duration']:<5} "
                f"ts:{e['tv_sec']}.{e['tv_nsec']:09} count:{e['count']}{nmi}")

    def timerlat(self, e) -> str:
        where = ("irq", "thread", "user-ret")[e["context"]]
        return f"#{e['seqnum']:<5} context {where:>6} timer_latency {e['timer_latency']:9} ns"


TEXTS = {
    "function": Speller.function, "func_repeats": Speller.func_repeats, "print": Speller.message,
    "bprint": Speller.message, "bputs": Speller.message, "raw_data": Speller.raw_data, "hwlat": Speller.hwlat,
    "timerlat": Speller.timerlat,
}
STACKS = {"kernel_stack": Speller.kernel_stack, "user_stack": Speller.user_stack}


def stacks_of(text: str) -> list[list[str]]:
    """The lines behind each line that begins a stack."""
    found: list[list[str]] = []
    for line in text.split("\n"):
        if line.endswith("stack trace>"):
            found.append([])
        elif found and line.startswith(" => "):
            found[-1].append(line.removeprefix(" => "))
    return found


def cases() -> list:
    wanted = re.compile("function|stack|marker|repeats|printk|hwlat|osnoise|timerlat|mixed|allevents|wakeup")
    return [pytest.param(c, id=c.name) for c in raw_cases() if wanted.search(c.name) and "trace.txt" in c.names()]


@pytest.mark.corpus
@pytest.mark.parametrize("case", cases())
def test_kernel_text(case, corpus_layout):
    text = text_of(case, "trace.txt")
    options = (text_of(case, "trace_options") or "").split()
    if "sym-offset" in options or "sym-addr" in options or "noprint-parent" in options:
        pytest.skip("spelled in another way")
    lines = event_lines(text, KERNEL)
    if not lines:
        pytest.skip("a text of another layout")
    stacks, seen = stacks_of(text), 0
    with ftbuf.open(corpus_layout(case)) as trace:
        spell = Speller(trace, case.info["long_size"])
        for e, line in printed_events(list(trace.records()), lines):
            if make := TEXTS.get(e.name) if e.format.system == "ftrace" else None:
                ours, body = make(spell, e).split("\n")[0].rstrip(), line.body.rstrip()
                if ours.startswith("?: "):
                    ours, body = ours[3:], body.partition(": ")[2]
                whole = 4000 if is_long(e) else None  # the kernel cuts a line of 4 KB or more, and may lose its end
                assert ours[:whole] == body[:whole], line
            elif stack := STACKS.get(e.name) if e.format.system == "ftrace" else None:
                assert stack(spell, e) == stacks[seen], line
                seen += 1
        assert seen == len(stacks)


@pytest.mark.corpus
@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in raw_cases() if c.info["tracer"] == "blk"])
def test_blktrace_text(case, corpus_layout):
    found = re.findall(r"^.*?(\d+),(\d+)(?: +\d+ +[\d.]+ +\d+|) +([A-Z]+) +\w+(?: (\d+) \+ (\d+))?", re.sub(
        r"^.*\d: (?=\d+,)", "", text_of(case, "trace.txt"), flags=re.M), re.M)
    with ftbuf.open(corpus_layout(case)) as trace:
        table = trace["blktrace"].table()
        assert trace.unknown_events == 0 and table.num_rows == len(found)
        for i, (major, minor, action, sector, sectors) in enumerate(found):
            device = int(table["device"][i])
            assert (device >> 20, device & 0xFFFFF) == (int(major), int(minor))
            assert ACTIONS[int(table["action"][i]) & 0xFFFF] == action
            if sectors:
                assert (table["sector"][i], table["bytes"][i] >> 9) == (int(sector), int(sectors))
            assert len(table["pdu"][i]) == table["pdu_len"][i]


@pytest.mark.corpus
@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in raw_cases() if "sched" in c.name])
def test_learned_names_are_the_saved_ones(case, corpus_layout):
    """What the events tell is what the kernel saved, but for tasks that changed their name in between."""
    from ftbuf.learn import learn_comms

    with ftbuf.open(corpus_layout(case)) as trace:
        learned, saved = learn_comms(trace.recording), trace.comms.saved
        both = [pid for pid in learned if pid in saved]
        same = sum(learned[pid][0] == saved.raw(pid) for pid in both)
        assert both and same >= len(both) - 2


def test_derived_columns_are_listed_and_only_made_when_asked_for():
    fmt = make_format("print", 5, ["unsigned long ip", "char buf[]"], system="ftrace")
    trace = trace_of([(fmt, dict(buf="hello\n\0")), (fmt, dict(buf="there\0"))])
    view = trace["print"]
    assert view.derived == ["text"] and "text" not in view.columns and "text" not in view.table()
    assert view.arrays(["text", "common_cpu"])["text"].tolist() == ["hello", "there"]
    assert [e["text"] for e in view.records()] == ["hello", "there"]
    assert [t["text"].tolist() for t in view.iterate(["text"])] == [["hello", "there"]]
    with pytest.raises(ftbuf.ColumnNotFoundError):
        view.arrays(["last_ts"])
    with pytest.raises(ftbuf.ColumnNotFoundError):
        next(view.records())["last_ts"]
