"""Automatic decomposition of a component along a query, with sound joins. [F73]

The values of a ``multiple`` are divided among parts. With ``separate`` each part is a component of its own,
and there is no join. Otherwise a part publishes at each evaluation how many values it has and how many
satisfy, and the join adds these up. *One* is a sum of 1 (the thesis' XOR is wrong where one part has two).
*All* is as many as there are (its AND misses parts without data).

A part cannot judge a predicate that uses ``last``, now, here or validity, nor several queries whose values
are counted. Then it publishes its selected values, and the join judges the values of all parts.
"""

from __future__ import annotations

import math
from base64 import b85decode, b85encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from holdfast.errors import UsageError
from holdfast.kinds.component.detector.knowledge import Knowledge, order
from holdfast.kinds.component.detector.query import value
from holdfast.kinds.component.detector.smc import (
    EvaluationContext,
    Input,
    Inputs,
    Rule,
    Smc,
    Tables,
    examine,
    rank,
    values_required,
    with_beside,
)
from holdfast.model.event import Value
from holdfast.model.instant import Instant
from holdfast.model.query import (
    NOW,
    Closest,
    Dimension,
    Group,
    How,
    Index,
    MemberSet,
    Multiple,
    Placeless,
    Query,
    QueryRange,
    Whole,
)

TALLY = "tally"


def decompose(smc: Smc, query: str, dimension: Dimension, groups: Sequence[Group]) -> tuple[Smc, ...]:
    """Return the parts of a component, and the component that joins them if one is needed.

    ``groups`` divide the values of the query's ``multiple`` in that dimension; see `cut`.
    """
    parameter = dict(smc.inputs[query].query.parameters())[dimension]
    if not isinstance(parameter, Multiple):
        raise UsageError(f"'{smc.topic}' cannot be decomposed: {query} has no multiple values of {dimension}")
    if isinstance(smc.here, str):
        raise UsageError(f"'{smc.topic}' cannot be decomposed: every source of {smc.here} carries it whole")
    if parameter.how == "separate":
        return tuple(_separate(smc, parameter, dimension, group, i) for i, group in enumerate(groups, 1))
    rules = {"Ent": smc.enter, "Ext": smc.exit}
    divided = {name: rule for name, rule in rules.items() if rule and query in (rule.mentions or smc.inputs)}
    if not all(_is_additive(smc, rule, query, dimension) for rule in divided.values()):
        return _gathered(smc, query, dimension, groups)
    parts = {
        name: tuple(
            _part(smc, f"{smc.topic}_{name}{number}", rule, query, dimension, group)
            for number, group in enumerate(groups, 1)
        )
        for name, rule in divided.items()
    }
    return (*(part for some in parts.values() for part in some), _join(smc, parameter, rules, parts))


def _separate(smc: Smc, whole: Multiple, dimension: Dimension, group: Group, number: int) -> Smc:
    """Return the component for a group of keys: the same topic, other signatures.

    Other queries that separate the keys are restricted to this group too.
    """
    divided = (whole, Multiple("separate"))
    inputs = {
        name: replace(one, query=_restricted(one.query, dimension, group))
        if dict(one.query.parameters())[dimension] in divided
        else one
        for name, one in smc.inputs.items()
    }
    return replace(smc, inputs=inputs, part=str(number))


def _restricted(query: Query, dimension: Dimension, group: Group) -> Query:
    parameter: Any = dict(query.parameters())[dimension]
    return replace(query, **{dimension: replace(parameter, group=group)})


def _is_additive(smc: Smc, rule: Rule, query: str, dimension: Dimension) -> bool:
    """Whether counts of parts add up: each part must be able to judge alone, also while no event comes."""
    counted = [
        (name, other)
        for name in rule.mentions or smc.inputs
        for other, parameter in smc.inputs[name].query.parameters()
        if isinstance(parameter, Multiple) and parameter.how in ("one", "all")
    ]
    return rule.timeless and all(each == (query, dimension) for each in counted)


# --- parts count, the join adds up -------------------------------------------------------------


@dataclass(frozen=True)
class Tally(Rule):
    """A rule that always emits: how many values there are, how many satisfy, and the first that does."""

    query: str = ""
    dimension: Dimension = "location"

    def detect(self, inputs: Inputs, tables: Tables, context: EvaluationContext) -> EvaluationContext:
        chosen = {name: tables(name) for name in self.mentions or inputs}
        satisfying = examine(self, chosen, context)
        parameter: Any = dict(inputs[self.query].query.parameters())[self.dimension]
        here = values_required(parameter, self.dimension, chosen[self.query], context)
        matched = {value(self.dimension, context.known[self.query]) for context in satisfying}
        found = with_beside(min(satisfying, key=rank), inputs, tables) if satisfying else None
        attributes: dict[str, Value] = {
            "matched": len(matched),
            "present": len(here),
            "by": None if found is None else _written(found),
        }
        return context._replace(known={TALLY: Knowledge("", context.now, "", attributes)})


class Shipped(msgspec.Struct):
    """The values that satisfied a part, encoded in a text."""

    known: dict[str, Knowledge]
    beside: dict[str, Knowledge]


def _written(found: EvaluationContext) -> str:
    return b85encode(msgspec.msgpack.encode(Shipped(dict(found.known), dict(found.beside)))).decode()


def _read(text: Value) -> Shipped:
    return msgspec.msgpack.decode(b85decode(str(text)), type=Shipped)


def _part(smc: Smc, topic: str, rule: Rule, query: str, dimension: Dimension, group: Group) -> Smc:
    one = smc.inputs[query]
    inputs = {**smc.inputs, query: replace(one, query=_restricted(one.query, dimension, group))}
    counting = Tally(rule.satisfied, rule.mentions, query=query, dimension=dimension)
    counts = ("matched", "present", "by")
    return replace(smc, topic=topic, inputs=inputs, enter=counting, exit=None, attributes=counts)


@dataclass(frozen=True)
class Joined(Rule):
    """A rule that adds up the last counts of the parts.

    ``given`` is a number of members that must all satisfy, whether or not their parts have emitted a count.
    """

    how: How = "any"
    given: int | None = None

    def detect(self, inputs: Inputs, tables: Tables, context: EvaluationContext) -> EvaluationContext | None:
        tallies = [known for name in self.mentions for known in tables(name)]
        matched, present = (sum(_count(known, name) for known in tallies) for name in ("matched", "present"))
        every = present if self.given is None else self.given
        enough = {"one": matched == 1, "all": matched == every, "any": True}[self.how]
        if not matched or not enough:
            return None
        shipped = [_read(by) for known in tallies if (by := known.attributes["by"])]
        return min((context._replace(known=s.known, beside=s.beside) for s in shipped), key=rank)


def _count(known: Knowledge, name: str) -> int:
    number = known.attributes[name]
    assert isinstance(number, int)
    return number


def _join(
    smc: Smc, parameter: Multiple, rules: Mapping[str, Rule | None], parts: Mapping[str, Sequence[Smc]]
) -> Smc:
    """Return the component over the parts' counts; a rule that was not divided keeps its queries."""
    whole = [rule for name, rule in rules.items() if rule is not None and name not in parts]
    inputs = dict(smc.inputs) if whole else {}
    given = len(parameter.group.values) if isinstance(parameter.group, MemberSet) else None
    key = _signature if any(one.key for one in smc.inputs.values()) else None
    inputs |= {
        part.topic: Input(Query(Closest(Index(part.topic)), Closest(NOW)), key)
        for some in parts.values()
        for part in some
    }

    def joined(name: str) -> Rule | None:
        rule = rules[name]
        if rule is None or name not in parts:
            return rule
        topics = tuple(part.topic for part in parts[name])
        return Joined(rule.satisfied, topics, rule.computes, rule.hold, how=parameter.how, given=given)

    enter, leave = joined("Ent"), joined("Ext")
    assert enter is not None
    return replace(smc, inputs=inputs, enter=enter, exit=leave)


def _signature(known: Knowledge) -> str | None:
    return known.signature


# --- parts select, the join judges -------------------------------------------------------------


class Rows(msgspec.Struct):
    """The values that a part has selected, encoded in a text."""

    rows: list[Knowledge]


@dataclass(frozen=True)
class Selected(Rule):
    """A rule that always emits the values that a query selects."""

    query: str = ""

    def detect(self, inputs: Inputs, tables: Tables, context: EvaluationContext) -> EvaluationContext:
        rows = b85encode(msgspec.msgpack.encode(Rows(list(tables(self.query))))).decode()
        return context._replace(known={TALLY: Knowledge("", context.now, "", {"rows": rows})})


@dataclass(frozen=True)
class Gathered(Rule):
    """A rule of a whole component over the last values of its parts."""

    query: str = ""
    whole: Inputs = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    rule: Rule = field(default=None)  # type: ignore[assignment]

    def detect(self, inputs: Inputs, tables: Tables, context: EvaluationContext) -> EvaluationContext | None:
        def gathered(name: str) -> list[Knowledge]:
            if name != self.query:
                return list(tables(name))
            shipped = [known for part in self.parts for known in tables(part)]
            return sorted((row for known in shipped for row in _rows(known, context.now)), key=order)

        return self.rule.detect(self.whole, gathered, context)


def _rows(shipped: Knowledge, now: Instant) -> list[Knowledge]:
    """Return the values that a part selected, as they are valid now.

    Readings were valid at their own time only. A start or an end is as valid as in its part.
    """
    rows = msgspec.msgpack.decode(b85decode(str(shipped.attributes["rows"])), type=Rows).rows
    if shipped.time == now:
        return rows
    return [msgspec.structs.replace(row, valid=row.valid and row.status != "atomic") for row in rows]


def _gathered(smc: Smc, query: str, dimension: Dimension, groups: Sequence[Group]) -> tuple[Smc, ...]:
    one = smc.inputs[query]
    parts = tuple(
        replace(
            smc,
            topic=f"{smc.topic}_{query}{number}",
            inputs={**smc.inputs, query: replace(one, query=_restricted(one.query, dimension, group))},
            enter=Selected(_always, (query,), query=query),
            exit=None,
            attributes=("rows",),
        )
        for number, group in enumerate(groups, 1)
    )
    topics = tuple(part.topic for part in parts)
    others = {name: each for name, each in smc.inputs.items() if name != query}
    key = _signature if any(each.key for each in smc.inputs.values()) else None
    inputs = others | {topic: Input(Query(Closest(Index(topic)), Closest(NOW)), key) for topic in topics}

    def gathered(rule: Rule | None) -> Rule | None:
        if rule is None or query not in (rule.mentions or smc.inputs):
            return rule
        mentions = (*(name for name in rule.mentions or smc.inputs if name != query), *topics)
        common = rule.satisfied, mentions, rule.computes, rule.hold
        return Gathered(*common, query=query, whole=smc.inputs, parts=topics, rule=rule)

    enter = gathered(smc.enter)
    assert enter is not None
    return (*parts, replace(smc, inputs=inputs, enter=enter, exit=gathered(smc.exit)))


def _always(_: EvaluationContext) -> bool:
    return True


# --- dividing a group --------------------------------------------------------------------------


def cut(group: Group, *at: float, axis: int = 0) -> tuple[Group, ...]:
    """Divide a range, or everything, along one coordinate into pieces that are disjoint and complete.

    Each piece ends at a cut, and the next begins just after it. Values of everything without a position form
    a piece of their own.
    """
    match group:
        case Whole() if axis == 0:
            low, high = Index((-math.inf,)), Index((math.inf,))
        case QueryRange(low, high) if _coordinates(low, high) > axis:
            low, high = _wide(low, high, -math.inf), _wide(high, low, math.inf)
        case MemberSet(values):
            raise UsageError(f"{len(values)} members are divided by listing them, not by cutting")
        case QueryRange() | Whole():
            raise UsageError(f"there is no coordinate {axis + 1} to cut along")
        case _:
            raise UsageError("a ball cannot be cut")
    edges = sorted(at)
    begins = [low, *(_at(low, _after(low, edge), axis) for edge in edges)]
    ends = [*(_at(high, edge, axis) for edge in edges), high]
    pieces = tuple(QueryRange(first, last) for first, last in zip(begins, ends, strict=True))
    return (*pieces, Placeless()) if isinstance(group, Whole) else pieces


def _coordinates(low: Index, high: Index) -> int:
    return max(len(each.value) if isinstance(each.value, tuple) else 1 for each in (low, high))


def _wide(index: Index, other: Index, fill: float) -> Index:
    """Return a corner with as many coordinates as the other one."""
    if not isinstance(index.value, tuple) or not isinstance(other.value, tuple):
        return index
    return replace(index, value=(*index.value, *(fill for _ in other.value[len(index.value) :])))


def _after(like: Index, edge: float) -> float:
    return edge + 1 if isinstance(like.value, int) else math.nextafter(edge, math.inf)


def _at(like: Index, edge: float, axis: int) -> Index:
    if isinstance(like.value, int):
        return replace(like, value=int(edge))
    assert isinstance(like.value, tuple)
    return replace(like, value=(*like.value[:axis], float(edge), *like.value[axis + 1 :]))
