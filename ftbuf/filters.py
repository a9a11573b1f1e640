"""``where=``: filters -> one program per event, which the scan runs on every record before anything is gathered.

What an event cannot answer, because it lacks a field, is unknown: neither true nor false, and its negation is unknown
too. A record matches when the whole is true, whatever the unknown parts may be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core
from .bytecode import S32, CompileError, Int
from .codegen import Compiler, Scope, Type
from .errors import FilterError
from .expression import Node
from .filtersyntax import Rule, Term, filter_error, parse_rule, plain_pattern
from .filtervalues import PSEUDO, TEXT_TESTS, EventValues, Ranges, TextTest, Unknown, Value
from .formats import EventFormat
from .recording import Pair, Recording
from .table import near_names

Verdict = bool | _core.Program  # of all records of an event, or by a program
Resolved = bool | Node


# -- filters


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """Rules, joined.

    ``parse``, ``any_of`` and ``all_of`` make them, ``~filter`` is all that it does not match.
    """

    kind: str  # "rule", "any", "all", "not"
    rule: Rule | None = None
    parts: tuple[Filter, ...] = ()

    def __invert__(self) -> Filter:
        return Filter("not", None, (self,))

    def rules(self) -> Iterator[Rule]:
        """All rules in it."""
        if self.rule is not None:
            yield self.rule
        for part in self.parts:
            yield from part.rules()


def parse(text: str) -> Filter:
    """The filter that a text means.

    Raises
    ------
    FilterError
        With the ``position`` of the character that cannot be understood.
    """
    return Filter("rule", parse_rule(text))


def any_of(parts: Sequence[Filter]) -> Filter:
    """What at least one of some filters matches."""
    return parts[0] if len(parts) == 1 else Filter("any", None, tuple(parts))


def all_of(parts: Sequence[Filter]) -> Filter:
    """What all of some filters match."""
    return parts[0] if len(parts) == 1 else Filter("all", None, tuple(parts))


def events_named(names: Iterable[str]) -> Filter:
    """The events of these names: "sched_switch", or "sched:sched_switch"."""
    parts = [name.replace("/", ":").split(":", 1) for name in names]
    return parse(",".join("/".join(plain_pattern(word) for word in part) for part in parts))


def tasks_named(names: Iterable[str]) -> Filter:
    """What tasks of these names did."""
    quoted = (name.replace('"', '\\"') for name in names)
    return parse(" || ".join(f'COMM == "{name}"' for name in quoted))


# -- a filter and a recording


class RecordFilter:
    """A filter made for one recording: what the engine asks for programs."""

    def __init__(self, recording: Recording, given: Filter | str, pairs: Sequence[Pair] | None = None) -> None:
        """Check the filter against the events asked for (None: all): a name that none of them has is an error."""
        self.filter = parse(given) if isinstance(given, str) else given
        self.files = [_FileFilter(file, self.filter) for file in recording.files]
        for rule in self.filter.rules():
            _check(rule, self.files, pairs)

    def also(self, other: RecordFilter | None) -> RecordFilter:
        """Both this filter and another one of the same recording."""
        if other is None:
            return self
        both = RecordFilter.__new__(RecordFilter)
        both.filter = all_of([self.filter, other.filter])
        both.files = [_FileFilter(f.recording, both.filter) for f in self.files]
        return both

    def select(self, file: int, slot_of: np.ndarray, n_slots: int) -> tuple[np.ndarray, list[_core.Program | None]]:
        """Narrow a file's table of event ids -> slots, and the program of each slot (None: all records)."""
        return self.files[file].select(slot_of, n_slots)


def _check(rule: Rule, files: Sequence[_FileFilter], pairs: Sequence[Pair] | None) -> None:
    known = list(dict.fromkeys(pair for f in files for pair in f.recording.format_index))
    for event in rule.events or ():
        if event.is_plain and not any(rule.applies_to(*pair) for pair in known):
            names = [name for pair in known for name in (pair[1], "/".join(pair))]
            raise filter_error(near_names("event", event.text, names), rule.text, event.position)
    open_terms: dict[Term, Unknown | None] = dict.fromkeys(_leaves(rule.term))
    for event_filter in files:
        for pair, values in event_filter.candidates(rule, pairs):
            _try(open_terms, values)
            if not open_terms:
                event_filter.verdict(pair)  # what is too complex is said now
                return
    for error in filter(None, open_terms.values()):
        message = error.message
        if error.name:
            events = (pair for f in files for pair in f.recording.format_index if pairs is None or pair in pairs)
            fields = {f.name for pair in events if rule.applies_to(*pair) for f in _any_format(files, pair).fields}
            message = near_names("field", error.name, [*sorted(fields), *PSEUDO])
        raise filter_error(message, rule.text, error.position)


def _try(open_terms: dict[Term, Unknown | None], values: EventValues) -> None:
    """Take out the comparisons that an event can answer; of the others keep the error that came nearest."""
    for term in list(open_terms):
        try:
            _Resolver(values).leaf(term)
            del open_terms[term]
        except CompileError as error:
            raise FilterError(f"the filter is too complex: {error}", position=0) from None
        except Unknown as error:
            before = open_terms[term]
            if before is None or error.known > before.known:
                open_terms[term] = error


def _any_format(files: Sequence[_FileFilter], pair: Pair) -> EventFormat:
    return next(f.recording.format(*pair) for f in files if pair in f.recording.format_index)


def _leaves(term: Term | None) -> Iterator[Term]:
    """The comparisons that a condition is made of."""
    if term is None:
        return
    if term.kind in ("&&", "||", "!"):
        for kid in term.kids:
            yield from _leaves(kid)
    else:
        yield term


def _names(term: Term | None) -> Iterator[str]:
    if term is not None:
        if term.kind == "name":
            yield term.value
        for kid in term.kids:
            yield from _names(kid)


class _FileFilter:
    """A filter and the events of one file. Formats are parsed only of events whose text mentions a name in it."""

    def __init__(self, recording: Recording, given: Filter) -> None:
        self.recording = recording
        self.filter = given
        names = {n for rule in given.rules() for n in _names(rule.term)} - {"COMM", "CPU"}
        own = sorted(re.escape(n.encode("utf-8", "surrogateescape")) for n in names if not n.startswith("common_"))
        self._mention = re.compile(rb"\b(?:" + b"|".join(own) + rb")\b") if own else None
        self._verdicts: dict[Pair | None, Verdict] = {}
        self._common: EventValues | None = None
        self._symbol_ranges: dict[TextTest, Ranges] = {}

    # -- events

    def values(self, pair: Pair | None) -> EventValues:
        """What the names of the filter mean for an event; events that mention none of them share one answer."""
        if pair is not None and self._mention is not None and self.recording.mentions(pair, self._mention):
            return EventValues(self.recording, self.recording.format_or_common(pair), self._symbol_ranges)
        if self._common is None:
            fmt = self.recording.common_format
            common = fmt.common_fields if fmt is not None else ()
            self._common = EventValues(self.recording, EventFormat("", "", -1, common, ""), self._symbol_ranges)
        return self._common

    def candidates(self, rule: Rule, pairs: Sequence[Pair] | None) -> Iterator[tuple[Pair, EventValues]]:
        """Of the events asked for, those that a rule is about."""
        given: Iterable[Pair] = self.recording.format_index if pairs is None else pairs
        seen = False
        for pair in given:
            if pair in self.recording.format_index and rule.applies_to(*pair):
                values = self.values(pair)
                if values is not self._common or not seen:
                    yield pair, values
                seen |= values is self._common

    # -- verdicts

    def select(self, slot_of: np.ndarray, n_slots: int) -> tuple[np.ndarray, list[_core.Program | None]]:
        narrowed = slot_of.copy()
        programs: list[_core.Program | None] = [None] * n_slots
        unnamed = slot_of != _core.NO_SLOT
        for event_id, pair in self.recording.id_index.items():
            if unnamed[event_id]:
                unnamed[event_id] = False
                self._settle(self.verdict(pair), narrowed, np.array([event_id]), programs)
        if unnamed.any():
            self._settle(self.verdict(None), narrowed, np.flatnonzero(unnamed), programs)
        return narrowed, programs

    def _settle(self, verdict: Verdict, slot_of: np.ndarray, ids: np.ndarray,
                programs: list[_core.Program | None]) -> None:
        if verdict is False:
            slot_of[ids] = _core.NO_SLOT
        elif not isinstance(verdict, bool):
            for slot in set(slot_of[ids].tolist()):
                programs[slot] = verdict

    def verdict(self, pair: Pair | None) -> Verdict:
        """Which records of an event match; None stands for ids without a format."""
        if pair not in self._verdicts:
            self._verdicts[pair] = self._verdict(pair)
        return self._verdicts[pair]

    def _verdict(self, pair: Pair | None) -> Verdict:
        values: EventValues | None = None

        def resolve(part: Filter) -> Resolved:
            nonlocal values
            if part.rule is not None:
                if not (pair is None and part.rule.events is None) and not (pair and part.rule.applies_to(*pair)):
                    return False
                if part.rule.term is None:
                    return True
                values = values or self.values(pair)
                return _Resolver(values).condition(part.rule.term, False)
            if part.kind == "not":
                return _negated(resolve(part.parts[0]))
            return _joined("||" if part.kind == "any" else "&&", map(resolve, part.parts))

        try:
            found = resolve(self.filter)
            if isinstance(found, bool):
                return found
            assert values is not None
            return _program(found, values.scope)
        except CompileError as error:
            raise FilterError(f"the filter is too complex: {error}", position=0) from None


def _program(node: Node, scope: Scope) -> _core.Program:
    compiler = FilterCompiler(scope)
    compiler.integer(node)
    return _core.Program(compiler.asm.finish())


# -- conditions of one event


def _negated(part: Resolved) -> Resolved:
    return not part if isinstance(part, bool) else Node("unary", "!", (part,))


def _joined(operator: str, parts: Iterable[Resolved]) -> Resolved:
    """Parts joined by && or ||, those that are constant taken out."""
    decides = operator == "||"
    kids: list[Node] = []
    for part in parts:
        if part is decides:
            return decides
        if not isinstance(part, bool):
            kids.append(part)
    return not decides if not kids else kids[0] if len(kids) == 1 else Node(operator, None, tuple(kids))


class _Resolver:
    """Turns the tree of a filter into one that can be compiled, by what names mean for one event."""

    def __init__(self, values: EventValues) -> None:
        self.values = values

    def condition(self, term: Term, negated: bool) -> Resolved:
        """Negations go down to the comparisons, so that what is unknown is no match under them either."""
        if term.kind == "!":
            return self.condition(term.kids[0], not negated)
        if term.kind in ("&&", "||"):
            operator = term.kind if not negated else "||" if term.kind == "&&" else "&&"
            return _joined(operator, (self.condition(kid, negated) for kid in term.kids))
        try:
            node = self.leaf(term)
        except Unknown:
            return False
        return _negated(node) if negated else node

    def leaf(self, term: Term) -> Node:
        """A condition without && and || on top."""
        value = self.value(term)
        if value.node is None:
            known = 0 if value.unknown_name else 2
            raise Unknown("a comparison is needed", term.position, name=value.unknown_name, known=known)
        return value.node

    def number(self, term: Term) -> Value:
        value = self.value(term)
        if value.node is None:
            raise Unknown(value.problem("a number"), term.position, name=value.unknown_name, known=value.is_known)
        return value

    def value(self, term: Term) -> Value:
        """A number, or something that only a comparison can make one of."""
        if term.kind == "compare":
            return Value(self.compare(term))
        if term.kind == "binary":
            return self.binary(term)
        if term.kind == "unary":
            value = self.number(term.kids[0])
            return Value(_node("unary", term.value, value))
        if term.kind in ("&&", "||", "!"):
            kids = [self.leaf(kid) for kid in term.kids]
            return Value(Node("unary", "!", tuple(kids)) if term.kind == "!" else Node(term.kind, None, tuple(kids)))
        return self.values.look_up(term)

    def binary(self, term: Term) -> Value:
        left, right = (self.value(kid) for kid in term.kids)
        if term.value == "AND" and (left.cpus is not None or right.cpus is not None):
            mask, other = (left, right) if left.cpus is not None else (right, left)
            return Value(self.values.mask_test("AND", other, mask, term.position))
        left, right = self.values.named(left, right), self.values.named(right, left)
        for value, kid in zip((left, right), term.kids, strict=True):
            if value.node is None:
                raise Unknown(value.problem("a number"), kid.position, name=value.unknown_name, known=value.is_known)
        masked = left.field or right.field if term.value == "AND" else None
        return Value(_node("binary", term.value, left, right), masked, is_masked=True)

    def compare(self, term: Term) -> Node:
        operation = term.value
        left, right = (self.value(kid) for kid in term.kids)
        if left.is_constant and not right.is_constant and operation not in ("~", "=~", "!~"):
            left, right = right, left
            operation = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}.get(operation, operation)
        if left.unknown_name and left.is_constant:
            raise Unknown("", term.kids[0].position, name=left.unknown_name)
        if right.cpus is not None:
            return self.values.mask_test(operation, left, right, term.position)
        if left.method == "function" and right.node is not None:
            return self.compare_function(operation, left, right, term)
        if operation == "!~":
            return Node("unary", "!", (self.compare_texts("=~", left, right, term),))
        if operation == "NE" and (left.node is None or right.node is None):
            return Node("unary", "!", (self.compare_texts("EQ", left, right, term),))
        if left.node is None or right.node is None or operation in ("~", "=~"):
            return self.compare_texts(operation, left, right, term)
        return _node("binary", operation, left, right)

    def compare_function(self, operation: str, left: Value, right: Value, term: Term) -> Node:
        """``ip.function == 0x...``, as the kernel has it."""
        if right.node is None or right.node.kind != "num" or operation not in ("EQ", "NE"):
            raise Unknown(".function needs == or != and a name or an address", term.position, known=2)
        inside = self.values.function_test(left, right.node.value[0], term.kids[1].position)
        return inside if operation == "EQ" else Node("unary", "!", (inside,))

    def compare_texts(self, operation: str, left: Value, right: Value, term: Term) -> Node:
        """What is not two numbers: a string, a name of a number, a symbol."""
        self.values.check_comparable(left, term.kids[0].position)
        if right.text is None:
            kid = term.kids[1]
            raise Unknown(right.problem("a text"), kid.position, name=right.unknown_name, known=right.is_known)
        if operation not in TEXT_TESTS:
            named = self.values.named(right, left)
            if named.node is None or left.node is None:
                raise Unknown("texts have no order", term.position, known=2)
            return _node("binary", operation, left, named)
        return self.values.text_test(TextTest(operation, right.text, term.kids[1].position), left, right, term)


def _node(kind: str, value: Any, *kids: Value) -> Node:
    return Node(kind, value, tuple(kid.node for kid in kids if kid.node is not None))


# -- code


class FilterCompiler(Compiler):
    """C expressions, and the tests of filters: field, text, mask, in."""

    def value(self, node: Node) -> Type:
        emit = _EMITTERS.get(node.kind)
        return super().value(node) if emit is None else emit(self, node)

    def _field(self, node: Node) -> Type:
        item = node.value
        kind = Int(item.size, item.signed and not item.is_pointer)
        self.asm.emit("FIELD", arg=item.offset, size=kind.code)
        return kind

    def _text(self, node: Node) -> Type:
        item, test = node.value
        self.place(item)
        test.emit(self.asm)
        return S32

    def _mask(self, node: Node) -> Type:
        item, form, bits = node.value
        self.place(item)
        self.asm.emit("MASK", size=form, arg=self.asm.intern(bits), imm=len(bits))
        return S32

    def _cast_to(self, node: Node) -> Type:
        kind: Int = node.value
        self.asm.convert(self.integer(node.kids[0]), kind)
        return kind

    def _in(self, node: Node) -> Type:
        self.integer(node.kids[0])
        self.asm.ranges(node.value)
        return S32


_EMITTERS: dict[str, Callable[[FilterCompiler, Node], Type]] = {
    "field": FilterCompiler._field,
    "text_test": FilterCompiler._text,
    "mask_test": FilterCompiler._mask,
    "in": FilterCompiler._in,
    "cast_to": FilterCompiler._cast_to,
}
