"""where=: against a slow evaluation in Python, and against trace-cmd's -F."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from corpus_data import file_cases
from expected_texts import TRACE_CMD, event_lines
from filebuilder import write_tracefs
from hypothesis import given
from hypothesis import strategies as st
from pagebuilder import ABIS, event, make_format, pages_of

import ftbuf
from ftbuf import FilterError, _core
from ftbuf.bytecode import Assembler
from ftbuf.cli.main import main
from ftbuf.regex import RegexError, compile_regex

ACTIONS = {1: "TIMER", 3: "SCHED", 5: "RCU"}
FLAGS = {1: "A", 2: "B", 8: "LAST"}
PROBE = make_format(
    "probe",
    42,
    ["int pid", "short tiny", "unsigned char small", "unsigned int mask", "u64 big", "long neg", "char name[8]",
     "__data_loc char[] text", "__rel_loc char[] rtext", "__data_loc cpumask_t cpus", "unsigned long ip", "int action",
     "unsigned int flags", "int list[2]"],
    print_fmt='"%s %s", __print_symbolic(REC->action, '
    + ", ".join(f'{{ {v}, "{n}" }}' for v, n in ACTIONS.items())
    + '), (REC->flags & 15) ? __print_flags(REC->flags & 15, "|", '
    + ", ".join(f'{{ {v}, "{n}" }}' for v, n in FLAGS.items())
    + ') : "NONE"',
)
OTHER = make_format("other", 43, ["int pid", "int extra", "int comm"], system="more")
KALLSYMS = b"ffff000000001000 T alpha\nffff000000001040 t beta.isra.0\nffff000000001080 T gamma\nffff0000000010c0 T end\n"
COMMS = b"7 seven\n8 eight\n9 (sd-pam)\n"
SIZES = {"pid": (4, True), "tiny": (2, True), "small": (1, False), "mask": (4, False), "big": (8, False), "neg": (8, True),
         "action": (4, True), "flags": (4, False), "common_pid": (4, True), "extra": (4, True)}
INTERESTING = [0, 1, -1, 2, 5, 127, 128, 255, 256, -128, 1 << 31, -(1 << 31), (1 << 32) - 1, 1 << 63, (1 << 64) - 1]


def wrap(value: int, size: int, signed: bool) -> int:
    value &= (1 << 8 * size) - 1
    return value - (1 << 8 * size) if signed and value >> 8 * size - 1 else value


def records() -> list[tuple[str, dict[str, Any]]]:
    rng = random.Random(1)
    out: list[tuple[str, dict[str, Any]]] = []
    for i in range(120):
        pid = rng.choice([0, 7, 8, 9, 77])
        numbers = {n: wrap(rng.choice([*INTERESTING, i]), *SIZES[n]) for n in ("pid", "tiny", "small", "mask", "big", "neg")}
        if i % 4 == 3:
            out.append(("other", {"common_pid": pid, "pid": numbers["pid"], "extra": i - 60, "comm": i % 5}))
            continue
        texts = {n: rng.choice(["", "abc", "ABCD", "kworker/0:1", "x*y", "a b"]) for n in ("name", "text", "rtext")}
        texts["name"] = texts["name"][:8]
        more = {"action": rng.choice([0, 1, 3, 5]), "flags": rng.choice([0, 1, 2, 3, 8, 11, 16]),
                "ip": 0xFFFF000000001000 + rng.randrange(0, 0xE0), "cpus": [rng.choice([0, 1, 2, 5, 6, 1 << 63])]}
        out.append(("probe", {"common_pid": pid, **numbers, **texts, **more}))
    return out


RECORDS = records()


@dataclass
class Sample:
    trace: ftbuf.Trace

    def matching(self, where: str) -> list[int]:
        """Indices of the records that a filter lets through."""
        return [(r.ts - 1000) // 1000 for r in self.trace.records(where=where)]


@pytest.fixture(scope="module", params=["le64", "be64"])
def sample(request, tmp_path_factory):
    abi = ABIS[request.param]
    formats = {"probe": PROBE, "other": OTHER}
    payloads = [event(formats[name], abi, **values) for name, values in RECORDS]
    pages = pages_of(abi, *payloads, ts=1000, step=1000)
    files = {"saved_cmdlines": COMMS, "kallsyms": KALLSYMS}
    with ftbuf.open(write_tracefs(tmp_path_factory.mktemp("filters"), abi, [PROBE, OTHER], {3: pages}, files=files)) as t:
        first = next(t.records()).ts
        assert first == 1000, first
        yield Sample(t)


def expect(test: Callable[[str, dict[str, Any]], bool]) -> list[int]:
    return [i for i, (name, values) in enumerate(RECORDS) if test(name, values)]


# ---- numbers, against an evaluation in Python ----

PRECEDENCE = {"||": 1, "&&": 2, "!": 3, "|": 4, "^": 5, "&": 6, "==": 7, "!=": 7, "<": 8, "<=": 8, ">": 8, ">=": 8, "<<": 9,
              ">>": 9, "+": 10, "-": 10, "*": 11, "/": 11, "%": 11}
COMPARE = {"==": int.__eq__, "!=": int.__ne__, "<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}

numbers = st.sampled_from([0, 1, 2, 5, 7, 8, 255, 1 << 31, (1 << 31) - 1, 1 << 32, 1 << 63, (1 << 64) - 1])
leaves = st.one_of(
    st.sampled_from(sorted(SIZES)).map(lambda n: ("field", n)), numbers.map(lambda n: ("num", n)),
    numbers.map(lambda n: ("-", ("num", n))),
)
arithmetic = st.recursive(
    leaves,
    lambda kids: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"]), kids, kids),
        st.tuples(st.sampled_from(["-", "~", "+"]), kids),
    ),
    max_leaves=4,
)
comparisons = st.tuples(st.sampled_from(sorted(COMPARE)), arithmetic, arithmetic)
conditions = st.recursive(
    comparisons,
    lambda kids: st.one_of(st.tuples(st.sampled_from(["&&", "||"]), kids, kids), st.tuples(st.just("!"), kids)),
    max_leaves=5,
)


def text_of(node: tuple, lowest: int = 0) -> str:
    """With parentheses only where C needs them (and a ! that covers the comparison after it)."""
    if node[0] == "field":
        return node[1]
    if node[0] == "num":
        return str(node[1]) if node[1] % 2 else hex(node[1])
    if len(node) == 2:
        inside = text_of(node[1], PRECEDENCE["!"] if node[0] == "!" else 12)
        text = f"{node[0]} {inside}" if inside[:1] in "-+~" else f"{node[0]}{inside}"
        return f"({text})" if node[0] == "!" and lowest > PRECEDENCE["!"] else text
    mine = PRECEDENCE[node[0]]
    text = f"{text_of(node[1], mine)} {node[0]} {text_of(node[2], mine + 1)}"
    return f"({text})" if mine < lowest else text


def literal(value: int, *, hexadecimal: bool) -> tuple[int, int, bool]:
    for size, signed in ((4, True), (4, False), (8, True), (8, False)):
        if (signed or hexadecimal) and wrap(value, size, signed) == value:
            return value, size, signed
    return value, 8, False


def number(node: tuple, values: dict[str, Any]) -> tuple[int, int, bool] | None:
    """(value, size, signed) by C11 6.3.1; None: the record has no such field."""
    if node[0] == "field":
        return (values[node[1]], *SIZES[node[1]]) if node[1] in values else None
    if node[0] == "num":
        return literal(node[1], hexadecimal=node[1] % 2 == 0)
    kids = [number(kid, values) for kid in node[1:]]
    if None in kids:
        return None
    (a, size, signed), *rest = [(v, s, g) if s >= 4 else (v, 4, True) for v, s, g in kids]
    if not rest:
        return (wrap({"-": -a, "~": ~a, "+": a}[node[0]], size, signed), size, signed)
    b, other, other_signed = rest[0]
    if node[0] in ("<<", ">>"):
        b &= 8 * size - 1
        return (wrap(a << b if node[0] == "<<" else a >> b, size, signed), size, signed)
    if size == other:
        signed = signed and other_signed
    elif other > size:
        size, signed = other, other_signed
    a, b = wrap(a, size, signed), wrap(b, size, signed)
    if node[0] in COMPARE:
        return int(COMPARE[node[0]](a, b)), 4, True
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0
    result = {"+": a + b, "-": a - b, "*": a * b, "/": quotient, "%": a - b * quotient if b else 0, "&": a & b, "|": a | b,
              "^": a ^ b}[node[0]]
    return wrap(result, size, signed), size, signed


def truth(node: tuple, values: dict[str, Any]) -> bool | None:
    """Three-valued: None is unknown."""
    if node[0] == "!":
        inner = truth(node[1], values)
        return None if inner is None else not inner
    if node[0] in ("&&", "||"):
        kids = [truth(kid, values) for kid in node[1:]]
        decides = node[0] == "||"
        return decides if decides in kids else None if None in kids else not decides
    result = number(node, values)
    return None if result is None else bool(result[0])


def answerable(node: tuple) -> bool:
    """Every comparison is one that some event can answer."""
    if node[0] in ("&&", "||", "!"):
        return all(answerable(kid) for kid in node[1:])
    return any(number(node, values) is not None for _, values in (RECORDS[0], RECORDS[3]))


@given(conditions)
def test_conditions_mean_what_c_says(sample, node):
    where = text_of(node)
    if answerable(node):
        assert sample.matching(where) == expect(lambda _, values: truth(node, values) is True), where
    else:
        with pytest.raises(FilterError):
            sample.trace.window(where=where)


@pytest.mark.parametrize(
    ("where", "test"),
    [
        ("pid > -1", lambda v: v["pid"] > -1),
        ("pid == 010", lambda v: v["pid"] == 8),
        ("tiny < 0", lambda v: v.get("tiny", 0) < 0),
        ("big == -1", lambda v: v.get("big") == (1 << 64) - 1),
        ("mask == -1", lambda v: v.get("mask") == (1 << 32) - 1),
        ("small & 0x80", lambda v: v.get("small", 0) & 0x80),
        ("!small & 0x80", lambda v: "small" in v and not v["small"] & 0x80),
        ("!pid == 5", lambda v: v["pid"] != 5),
        ("extra > 0 || tiny > 0", lambda v: v.get("extra", 0) > 0 or v.get("tiny", 0) > 0),
        ("!(extra > 0)", lambda v: "extra" in v and v["extra"] <= 0),
        ("!(extra > 0 && pid == pid)", lambda v: "extra" in v and v["extra"] <= 0),
        ("pid == 5 || pid == 1 && big == 0", lambda v: v["pid"] == 5 or (v["pid"] == 1 and v.get("big") == 0)),
        ("small == 'a'", lambda v: v.get("small") == 97),
        ("CPU == 3", lambda v: True),
        ("CPU == 2", lambda v: False),
        ("cpu & CPUS{0-2,3}", lambda v: True),
        ("pid & CPUS{1-5}", lambda v: 1 <= v["pid"] <= 5),
        ("pid == CPUS{5}", lambda v: v["pid"] == 5),
        ("common_ts >= 51000", None),
    ],
)
def test_numbers(sample, where, test):
    wanted = list(range(50, 120)) if test is None else expect(lambda _, v: bool(test(v)))
    assert sample.matching(where) == wanted


# ---- texts ----


@pytest.mark.parametrize(
    ("where", "test"),
    [
        ('name == "abc"', lambda v: v["name"] == "abc"),
        ("name == abc", lambda v: v["name"] == "abc"),
        ("'abc' == name", lambda v: v["name"] == "abc"),
        ("name != 'abc'", lambda v: v["name"] != "abc"),
        ('text ~ "a*"', lambda v: v["text"].startswith("a")),
        ('text ~ "*k*:?"', lambda v: v["text"] == "kworker/0:1"),
        ('text ~ "[A-Z]*"', lambda v: v["text"] == "ABCD"),
        ('text ~ "x\\*y"', lambda v: v["text"] == "x*y"),
        ('text == "x*y"', lambda v: v["text"] == "x*y"),
        ('rtext =~ "^ab"', lambda v: v["rtext"].lower().startswith("ab")),
        ('rtext =~ "B"', lambda v: "b" in v["rtext"].lower()),
        ('rtext !~ "b\\|k"', lambda v: not re.search("[bk]", v["rtext"].lower())),
        ('rtext =~ "^$"', lambda v: v["rtext"] == ""),
        ('text == "" && !(name == "")', lambda v: v["text"] == "" and v["name"] != ""),
        ('text.ustring == "abc"', lambda v: v["text"] == "abc"),
    ],
)
def test_strings(sample, where, test):
    assert sample.matching(where) == expect(lambda name, v: name == "probe" and test(v))


COMM_OF = {0: "<idle>", 7: "seven", 8: "eight", 9: "(sd-pam)"}


@pytest.mark.parametrize(
    ("where", "test"),
    [
        ('COMM == "seven"', lambda c: c == "seven"),
        ('COMM != "seven"', lambda c: c != "seven"),
        ('COMM =~ "^[SE]"', lambda c: c[0] in "se"),
        ('common_comm ~ "(*)"', lambda c: c == "(sd-pam)"),
        ('COMM == "<...>"', lambda c: c == "<...>"),
        ('COMM !~ "idle"', lambda c: "idle" not in c),
    ],
)
def test_tasks(sample, where, test):
    assert sample.matching(where) == expect(lambda _, v: test(COMM_OF.get(v["common_pid"], "<...>")))


def test_an_events_own_field_comes_before_what_every_record_has(sample):
    assert sample.matching("other: comm == 3") == expect(lambda n, v: v.get("comm") == 3)
    assert sample.matching("probe: comm == seven") == expect(lambda n, v: n == "probe" and v["common_pid"] == 7)


# ---- masks, names of numbers, symbols ----


@pytest.mark.parametrize(
    ("where", "test"),
    [
        ("cpus & CPUS{0}", lambda c: c & 1),
        ("cpus & CPUS{1,63}", lambda c: c & (2 | 1 << 63)),
        ("cpus == CPUS{0,2}", lambda c: c == 5),
        ("cpus != CPUS{0-1}", lambda c: c != 3),
        ("!(cpus & CPUS{0})", lambda c: not c & 1),
    ],
)
def test_masks(sample, where, test):
    assert sample.matching(where) == expect(lambda n, v: n == "probe" and bool(test(v["cpus"][0])))


@pytest.mark.parametrize(
    ("where", "test"),
    [
        ("action == SCHED", lambda v: v["action"] == 3),
        ("action != 'SCHED'", lambda v: v["action"] != 3),
        ('action =~ "^[ST]"', lambda v: v["action"] in (1, 3)),
        ("action > TIMER", lambda v: v["action"] > 1),
        ('flags == "A|B"', lambda v: v["flags"] & 15 == 3),
        ("flags == NONE", lambda v: v["flags"] & 15 == 0),
        ("flags & LAST", lambda v: v["flags"] & 8),
        ("(flags & A) == A", lambda v: v["flags"] & 1),
        ("(flags & 3) == 'B'", lambda v: v["flags"] & 3 == 2),
        ("action == 3", lambda v: v["action"] == 3),
    ],
)
def test_names_of_numbers(sample, where, test):
    assert sample.matching(where) == expect(lambda n, v: n == "probe" and bool(test(v)))


@pytest.mark.parametrize(
    ("where", "low", "high"),
    [
        ("ip == alpha", 0, 0x40),
        ("ip.function == alpha", 0, 0x40),
        ("ip == beta.isra.0", 0x40, 0x80),
        ('ip =~ "ALPHA\\|beta"', 0, 0x80),
        ('ip ~ "g*"', 0x80, 0xC0),
        ("ip.function == 0xffff000000001088", 0x80, 0xC0),
        ("ip == 0xffff000000001010", 0x10, 0x11),
    ],
)
def test_symbols(sample, where, low, high):
    wanted = expect(lambda n, v: n == "probe" and low <= v["ip"] - 0xFFFF000000001000 < high)
    assert sample.matching(where) == wanted
    assert sample.matching(f"probe: !({where})") == expect(lambda n, v: n == "probe" and len(RECORDS) > 0
                                                           and not low <= v["ip"] - 0xFFFF000000001000 < high)


# ---- events ----


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("probe", "probe"), ("PROBE", "probe"), ("test", "probe"), ("more/other", "other"), ("more:other", "other"),
        ("probe,other", "probe other"), ("pr.*", "probe"), ("\\(probe\\|other\\)", "probe other"), (".*", "probe other"),
        ("[[:alpha:]]*be : CPU == 3", "probe"), ("probe, other: CPU == 3", "probe other"), ("more/.*:", "other"),
        ("nothing.*", ""),
    ],
)
def test_events(sample, where, names):
    assert sample.matching(where) == expect(lambda n, _: n in names.split())


def test_an_event_that_a_filter_does_not_name_is_not_shown(sample):
    assert sample.matching("probe: pid == 5") == expect(lambda n, v: n == "probe" and v["pid"] == 5)


# ---- errors ----


@pytest.mark.parametrize(
    ("where", "position", "words"),
    [
        ("pid = 5", 4, "=="),
        ("pid ==", 6, "missing"),
        ("(pid == 5", 9, ")"),
        ("pid == 5)", 8, "("),
        ('name == "abc', 8, "quote"),
        ("pid == 08", 7, "number"),
        ("pid == 0x10000000000000000", 7, "64 bits"),
        ("pidd == 5", 0, "did you mean pid"),
        ("pid == 5 && smal == 1", 12, "did you mean small"),
        ("probe: extra == 5", 7, "extra"),
        ("prob: pid == 5", 0, "did you mean probe"),
        ("name < 'x'", 5, "order"),
        ("name == 5", 8, "text"),
        ("list == 5", 0, "array"),
        ("pid == foo", 7, "foo"),
        ("action == 'NOPE'", 10, "NOPE"),
        ('name =~ "a\\("', 12, "\\("),
        ('name =~ "\\(a\\)\\1"', 14, "not supported"),
        ("name =~ 5", 8, "regular expression"),
        ("cpus & CPUS{5-2}", 12, "CPUS"),
        ("cpus > CPUS{1}", 5, "CPUS"),
        ("pid.function == alpha", 0, "address"),
        ("ip.ustring == 'x'", 0, "process"),
        ("ip.function == 5", 15, "address"),
        ("a[: pid == 1", 1, "[ without ]"),
        (": pid == 1", 0, "missing"),
        ("", 0, "missing"),
        ("pid == \x01", 7, "understood"),
        ("(" * 200, None, "nested"),
        ("!" * 200 + "pid == 1", None, "nested"),
        ("1 + " * 200 + "pid == 1", None, "operators"),
        ("x" * 20000, None, "characters"),
    ],
)
def test_errors_point_at_the_character(sample, where, position, words):
    with pytest.raises(FilterError) as caught:
        sample.trace.window(where=where)
    error = caught.value
    assert words in str(error)
    if position is not None:
        assert error.position == position
        _, line, caret = str(error).split("\n")
        assert line[caret.index("^") :][:1] == where[position : position + 1].replace("\x01", " ")


def test_the_events_asked_for_decide_which_fields_there_are(sample):
    with pytest.raises(FilterError, match="extra"):
        sample.trace["probe"].window(where="extra == 1")
    with pytest.raises(FilterError, match="extra"):
        list(sample.trace.records(["probe"], where="extra == 1"))
    assert len(sample.trace["other"].window(where="extra == -57").table()) == 1


@given(st.text(alphabet='pidnamextcus=!<>&|~^()"\'{}[]:,/\\.*$ 0x19CPUS-+%', max_size=40))
def test_any_text_is_a_filter_or_an_error(sample, where):
    try:
        sample.trace.window(where=where).events  # noqa: B018
    except FilterError as error:
        assert error.position is not None


def test_time_and_size_are_bounded(sample):
    begun = time.monotonic()
    for where in ('text =~ "' + "\\(a*\\)*" * 40 + 'b"', 'text =~ "' + ".*a" * 400 + '"', "[" * 16000,
                  'text =~ "' + "\\(" * 45 + "a\\{1,255\\}" + "\\)\\{1,255\\}" * 45 + '"', 'text =~ ".*a.\\{40\\}"',
                  " || ".join(f"pid == {i}" for i in range(1000)), "probe" + ",probe" * 2000, '"' * 16000):
        try:
            sample.trace.window(where=where).events  # noqa: B018
        except FilterError:
            continue
    assert time.monotonic() - begun < 20


# ---- views ----


def test_nested_windows_are_what_all_let_through(sample):
    view = sample.trace.window(where="pid == 5 || pid == 1").window(where="probe").window(where="pid != 1")
    assert view.events == {"probe": len(sample.matching("probe: pid == 5"))}
    assert len(view["probe"].table(["pid"])) == len(view["probe"])
    assert len(view["other"].table()) == 0
    assert set(view["probe"].arrays(["pid"])["pid"].tolist()) == {5}


def test_all_ways_out_see_the_same(sample):
    where = "probe: pid >= 1"
    view, wanted = sample.trace.window(where=where), sample.matching(where)
    times = [1000 + 1000 * i for i in wanted]
    assert view["probe"].table(["common_ts"])["common_ts"].tolist() == times
    assert view.timeline()["common_ts"].tolist() == times
    assert view.tables()["probe"]["common_ts"].tolist() == times
    assert [r.ts for r in view.records()] == times
    assert (view.start, view.end) == (times[0], times[-1])
    assert [t for step in view["probe"].iterate(["common_ts"], step_size=64) for t in step["common_ts"].tolist()] == times
    path = sample.trace.info["path"]
    table = ftbuf.read_events(path, "probe", ["common_ts"], where="pid >= 1")
    assert table["common_ts"].tolist() == times


def test_a_filter_and_a_window_of_time_and_pids(sample):
    view = sample.trace.window(20_000, 90_000, pids=[7], where="pid != 0")
    wanted = [i for i in expect(lambda n, v: v["pid"] != 0 and v["common_pid"] == 7) if 20_000 <= 1000 + 1000 * i < 90_000]
    assert [(r.ts - 1000) // 1000 for r in view.records()] == wanted


# ---- regular expressions ----

atoms = st.one_of(st.sampled_from(list("abAB01")).map(lambda c: ("lit", c)), st.just(("any",)),
                  st.sampled_from(["[ab]", "[^a]", "[[:digit:]]", "[a-b]"]).map(lambda c: ("set", c)))
regexes = st.recursive(
    atoms,
    lambda kids: st.one_of(
        st.tuples(st.just("cat"), kids, kids), st.tuples(st.just("alt"), kids, kids),
        st.tuples(st.just("rep"), kids, st.sampled_from(["*", "+", "?", "{0,2}", "{2}"])),
    ),
    max_leaves=6,
)
SETS = {"[[:digit:]]": "[0-9]"}


def spelled(node: tuple, posix: bool) -> str:
    slash = "\\" if posix else ""
    if node[0] == "lit":
        return node[1]
    if node[0] == "any":
        return "."
    if node[0] == "set":
        return node[1] if posix else SETS.get(node[1], node[1])
    kids = [spelled(kid, posix) for kid in node[1:] if isinstance(kid, tuple)]
    if node[0] == "cat":
        return "".join(f"{slash}({kid}{slash})" for kid in kids)
    if node[0] == "alt":
        return f"{slash}|".join(f"{slash}({kid}{slash})" for kid in kids)
    times = node[2] if not posix or node[2] == "*" else "\\" + node[2].replace("}", "\\}")
    return f"{slash}({kids[0]}{slash}){times}"


@given(regexes, st.tuples(st.booleans(), st.booleans()), st.lists(st.text("abAB01x", max_size=6), max_size=8))
def test_regular_expressions_match_as_pythons_do(node, anchors, texts):
    begin, end = "^" * anchors[0], "$" * anchors[1]
    # an alternative would end an anchor's reach
    posix = compile_regex(f"{begin}\\({spelled(node, True)}\\){end}")
    python = re.compile(f"{begin}(?:{spelled(node, False)}){end and chr(92) + 'Z'}", re.IGNORECASE | re.DOTALL)
    for text in texts:
        assert posix.matches(text.encode()) == bool(python.search(text)), (spelled(node, True), text)
        assert compile_regex(spelled(node, True), whole=True).matches(text.encode()) == bool(
            re.fullmatch(spelled(node, False), text, re.IGNORECASE | re.DOTALL))


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a|b", "xa|bx", True), ("a|b", "a", False), ("a+", "a+", True), ("a+", "aa", False), ("*a", "*a", True),
        ("\\(*a\\)", "*a", True), ("a{2}", "a{2}", True), ("a\\{2\\}", "aa", True), ("^*a", "*a", True), ("a^b", "a^b", True),
        ("a$b", "a$b", True), ("[]a]", "]", True), ("[^]a]", "]", False), ("[a-]", "-", True), ("\\.", "x", False),
        ("[[:upper:]]", "a", True), ("\\w\\+\\s", "ab c", True), ("", "anything", True), ("^$", "", True), ("[.]", ".", True),
        ("[[.a.]b]", "b", True), ("x*", "", True), ("\\(^a\\|b$\\)", "cb", True),
    ],
)
def test_regular_expressions_are_posix_basic_ones(pattern, text, found):
    assert compile_regex(pattern).matches(text.encode()) == found


@pytest.mark.parametrize("pattern", ["\\(", "\\)", "[", "[a", "a\\{", "a\\{2,1\\}", "a\\{999\\}", "\\", "[b-a]", "[[:no:]]", "\\1",
                                     "\\(a\\)\\1", "\\bx", "\\(" * 60, "[a-", "[[.ab.]]"])
def test_bad_regular_expressions_have_a_name(pattern):
    with pytest.raises(RegexError):
        compile_regex(pattern)


# ---- real recordings and the command ----


def recorded(recordings, name: str = "k612-sched") -> Path:
    return recordings[name].path


SWITCHES = [
    ("prev_pid != 0", lambda e: e["prev_pid"] != 0),
    ("prev_pid > next_pid && prev_prio == 120", lambda e: e["prev_pid"] > e["next_pid"] and e["prev_prio"] == 120),
    ("prev_state == S", lambda e: e["prev_state"] & 0xFF == 1),
    ("prev_state == 'R'", lambda e: e["prev_state"] & 0xFF == 0),
    ('prev_comm ~ "ftb*"', lambda e: e["prev_comm"].startswith("ftb")),
    ('prev_comm =~ "^FTB" || next_comm == "swapper/0"',
     lambda e: e["prev_comm"].startswith("ftb") or e["next_comm"] == "swapper/0"),
    ("CPU == 1", lambda e: e.cpu == 1),
    ("COMM == next_pid || next_pid < 20", None),
]


@pytest.mark.parametrize(("where", "test"), SWITCHES)
def test_real_events(recordings, where, test):
    with ftbuf.open(recorded(recordings)) as trace:
        if test is None:
            assert len(list(trace.records(["sched_switch"], where=where.split("||")[1]))) > 0
            return
        events = list(trace.records(["sched_switch"]))
        wanted = [e.ts for e in events if test(e)]
        assert [e.ts for e in trace.records(["sched_switch"], where=where)] == wanted
        assert 0 < len(wanted) < len(events)
        assert len(trace["sched_switch"].window(where=where).table(["prev_pid"], threads=2)) == len(wanted)


def report(capfdbinary, *arguments: Any) -> list[str]:
    assert main(["report", *map(str, arguments)]) == 0
    return capfdbinary.readouterr().out.decode("utf-8", "surrogateescape").splitlines()


def names(lines: list[str]) -> set[str]:
    return {line.name for line in event_lines("\n".join(lines), TRACE_CMD)}


def test_the_command_filters(recordings, capfdbinary):
    path = recorded(recordings)
    whole = report(capfdbinary, path)
    switches = report(capfdbinary, "-F", "sched_switch: prev_pid != 0", path)
    rest = report(capfdbinary, "-v", "-F", "sched_switch: prev_pid != 0", path)
    assert names(switches) == {"sched_switch"}
    assert len(switches) + len(rest) == len(whole) + 1  # the line with the number of CPUs
    both = report(capfdbinary, "-F", "sched_switch: prev_pid != 0", "-F", "sched_switch: prev_pid == 0", path)
    assert both == report(capfdbinary, "--event", "sched:sched_switch", path)
    assert "sched_switch" not in names(report(capfdbinary, "-F", "sched", "-v", "-F", "sched_switch", path))
    with ftbuf.open(path) as trace:
        busy = trace.comms[max(trace["sched_switch"].arrays(["common_pid"])["common_pid"].tolist())]
    of_task = report(capfdbinary, "--comm", busy, path)
    assert 1 < len(of_task) < len(whole)
    assert all(line.lstrip().startswith(busy) for line in of_task[1:])
    assert len(report(capfdbinary, "-I", "-S", path)) <= len(whole)


def test_the_command_says_what_is_wrong(recordings, capsys):
    assert main(["report", "-F", "sched_switch: prev_pid = 0", str(recorded(recordings))]) == 2
    assert "  sched_switch: prev_pid = 0\n                         ^" in capsys.readouterr().err
    assert main(["info", "--where", "sched_swich", str(recorded(recordings))]) == 2
    assert "sched_switch" in capsys.readouterr().err


@pytest.mark.corpus
@pytest.mark.parametrize("case", [c for c in file_cases() if any(n.endswith(".F.txt") for n in c.names())],
                         ids=lambda c: c.name)
def test_trace_cmds_filter(case, corpus_layout):
    """report -F 'sched_switch: prev_pid != 0' of trace-cmd."""
    for name, text in case.texts().items():
        match = re.fullmatch(r"report\.(.+\.dat)\.F\.txt", name)
        if match:
            with ftbuf.open(corpus_layout(case) / match[1], errors="warn") as trace:
                found = list(trace.window(where="sched_switch: prev_pid != 0").records())
            wanted = event_lines(text, TRACE_CMD)
            assert [(e.name, e.cpu, e.pid) for e in found] == [(w.name, w.cpu, w.pid) for w in wanted]


@given(st.data())
def test_a_damaged_program_is_refused_or_harmless(data):
    asm = Assembler(False, 8)
    asm.emit("MTAIL", arg=0)
    automaton = compile_regex("a.*b\\|[0-9]\\+$").packed()
    asm.emit("REGEX", arg=asm.intern(automaton), imm=len(automaton))
    asm.ranges([(0, 0), (7, 9)])
    block = bytearray(asm.finish())
    for _ in range(data.draw(st.integers(1, 4))):
        block[data.draw(st.integers(0, len(block) - 1))] = data.draw(st.integers(0, 255))
    try:
        program = _core.Program(bytes(block))
    except ValueError:
        return
    if program.result and not program.emits:
        _core.Renderer(_core.TextTables()).value(program, data.draw(st.binary(max_size=20)))
