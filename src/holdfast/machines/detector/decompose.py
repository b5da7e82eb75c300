"""Automatic decomposition of a component along a query, with joins that are sound.  [F73]

The values of a ``multiple`` are divided among parts.  Of ``separate`` each part is a component of its
own, and nothing need be joined.  Otherwise a part publishes, each time it is evaluated, how many
values are there and how many satisfy, and the join adds up: *one* is a sum of 1 (the thesis' XOR is
wrong where one part has two), *all* as many as are there (its AND misses parts without data).
"""

from __future__ import annotations

import math
from base64 import b85decode, b85encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from ...errors import UsageError
from ...model.event import Value
from ...model.query import (
    NOW,
    Closest,
    Dimension,
    Group,
    How,
    Index,
    Members,
    Multiple,
    Query,
    Range,
    Whole,
)
from .knowledge import Knowledge
from .query import value
from .smc import Context, Input, Inputs, Rule, Smc, Tables, examine, rank, wanted, with_beside

TALLY = "tally"


def decompose(smc: Smc, query: str, dimension: Dimension, groups: Sequence[Group]) -> tuple[Smc, ...]:
    """The parts of a component, and the one that joins them, if it needs one.

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
    for rule in divided.values():
        _require_additive(smc, rule, query, dimension)
    parts = {
        name: tuple(
            _part(smc, f"{smc.topic}_{name}{number}", rule, query, dimension, group)
            for number, group in enumerate(groups, 1)
        )
        for name, rule in divided.items()
    }
    return (*(part for some in parts.values() for part in some), _join(smc, parameter, rules, parts))


def _separate(smc: Smc, whole: Multiple, dimension: Dimension, group: Group, number: int) -> Smc:
    """The component for some of the keys: the same topic, other signatures.  Other queries that keep
    them apart need look at no more than these keys either."""
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


def _require_additive(smc: Smc, rule: Rule, query: str, dimension: Dimension) -> None:
    """Counts of parts add up only if each part can judge by itself, now and as long as nothing comes."""
    if not rule.timeless:
        raise UsageError(
            f"'{smc.topic}' cannot be decomposed: its predicate looks at last, now, here or valid, "
            "which parts do not share"
        )
    for name in rule.mentions or smc.inputs:
        for other, parameter in smc.inputs[name].query.parameters():
            counted = isinstance(parameter, Multiple) and parameter.how in ("one", "all")
            if counted and (name, other) != (query, dimension):
                raise UsageError(
                    f"'{smc.topic}' cannot be decomposed along {query}: {name} counts values of {other}, too"
                )


# --- parts count, the join adds up -------------------------------------------------------------


@dataclass(frozen=True)
class Tally(Rule):
    """A rule that always tells: how many values there are, how many satisfy, and by what."""

    query: str = ""
    dimension: Dimension = "location"

    def detect(self, inputs: Inputs, tables: Tables, moment: Context) -> Context:
        chosen = {name: tables(name) for name in self.mentions or inputs}
        satisfying = examine(self, chosen, moment)
        parameter: Any = dict(inputs[self.query].query.parameters())[self.dimension]
        here = wanted(parameter, self.dimension, chosen[self.query], moment)
        matched = {value(self.dimension, context.known[self.query]) for context in satisfying}
        found = with_beside(min(satisfying, key=rank), inputs, tables) if satisfying else None
        attributes: dict[str, Value] = {
            "matched": len(matched),
            "present": len(here),
            "by": None if found is None else _written(found),
        }
        return moment._replace(known={TALLY: Knowledge("", moment.now, "", attributes)})


class Shipped(msgspec.Struct):
    """What satisfied a part, as it travels in a text."""

    known: dict[str, Knowledge]
    beside: dict[str, Knowledge]


def _written(found: Context) -> str:
    return b85encode(msgspec.msgpack.encode(Shipped(dict(found.known), dict(found.beside)))).decode()


def _read(text: Value) -> Shipped:
    return msgspec.msgpack.decode(b85decode(str(text)), type=Shipped)


def _part(smc: Smc, topic: str, rule: Rule, query: str, dimension: Dimension, group: Group) -> Smc:
    one = smc.inputs[query]
    inputs = {**smc.inputs, query: replace(one, query=_restricted(one.query, dimension, group))}
    counting = Tally(rule.satisfied, rule.mentions, query=query, dimension=dimension)
    return replace(
        smc, topic=topic, inputs=inputs, enter=counting, exit=None, attributes=("matched", "present", "by")
    )


@dataclass(frozen=True)
class Joined(Rule):
    """A rule that adds up what parts have counted last; ``given`` are so many members, of which each
    must satisfy, whether its part has said something or not."""

    how: How = "any"
    given: int | None = None

    def detect(self, inputs: Inputs, tables: Tables, moment: Context) -> Context | None:
        tallies = [known for name in self.mentions for known in tables(name)]
        matched, present = (sum(_count(known, name) for known in tallies) for name in ("matched", "present"))
        every = present if self.given is None else self.given
        enough = {"one": matched == 1, "all": matched == every, "any": True}[self.how]
        if not matched or not enough:
            return None
        shipped = [_read(by) for known in tallies if (by := known.attributes["by"])]
        return min((moment._replace(known=s.known, beside=s.beside) for s in shipped), key=rank)


def _count(known: Knowledge, name: str) -> int:
    number = known.attributes[name]
    assert isinstance(number, int)
    return number


def _join(
    smc: Smc, parameter: Multiple, rules: Mapping[str, Rule | None], parts: Mapping[str, Sequence[Smc]]
) -> Smc:
    """The component over the parts' counts; a rule that was not divided keeps its queries."""
    whole = [rule for name, rule in rules.items() if rule is not None and name not in parts]
    inputs = dict(smc.inputs) if whole else {}
    given = len(parameter.group.values) if isinstance(parameter.group, Members) else None
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


# --- dividing a group --------------------------------------------------------------------------


def cut(group: Group, *at: float) -> tuple[Group, ...]:
    """A range, or every point, along its first coordinate, in pieces that share nothing and leave
    nothing out: each piece ends at a cut, the next begins just after it."""
    match group:
        case Whole():
            low, high = Index((-math.inf,)), Index((math.inf,))
        case Range(low, high):
            pass
        case Members(values):
            raise UsageError(f"{len(values)} members are divided by listing them, not by cutting")
        case _:
            raise UsageError("a ball cannot be cut")
    edges = sorted(at)
    begins = [low, *(_at(low, _after(low, edge)) for edge in edges)]
    ends = [*(_at(low, edge) for edge in edges), high]
    return tuple(Range(first, last) for first, last in zip(begins, ends, strict=True))


def _after(like: Index, edge: float) -> float:
    return edge + 1 if isinstance(like.value, int) else math.nextafter(edge, math.inf)


def _at(like: Index, edge: float) -> Index:
    if isinstance(like.value, int):
        return replace(like, value=int(edge))
    assert isinstance(like.value, tuple)
    return replace(like, value=(float(edge),))
