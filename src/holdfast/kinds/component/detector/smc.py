"""A State Maintenance Component at one instant: examine, encapsulate, transform. [F53, F65–F69]

This module defines which events a component emits. Tests compare the columnar evaluation with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

from ....model.event import Status, Value
from ....model.instant import Duration, Instant
from ....model.qos import Late
from ....model.query import (
    MOST_TICKS,
    Aggregate,
    Closest,
    Dimension,
    Function,
    Index,
    MemberSet,
    Multiple,
    Query,
)
from ....model.space import Point
from .knowledge import Knowledge, Where, order
from .query import Table, absolute, value
from .rows import Coded, ReadingRows


class EvaluationContext(NamedTuple):
    """The input of a predicate: one knowledge point of each query, the component's last event, now and here.

    Computations also read `beside`, the latest knowledge of queries that the predicate does not mention.
    """

    known: Mapping[str, Knowledge]
    last: Knowledge | None
    now: Instant
    here: Where
    beside: Mapping[str, Knowledge] = {}


Tables = Callable[[str], Table]
"""A function that returns the knowledge that a query selects now, given the name of the query."""


@dataclass(frozen=True)
class Input:
    """A query, and the function that computes the key of knowledge. Knowledge with the key `None` belongs to
    no scope.

    `encoded_keys` computes the keys of many readings at once and must agree with `key`.
    """

    query: Query
    key: Callable[[Knowledge], str | None] | None = None
    encoded_keys: Callable[[ReadingRows], Coded] | None = None


Inputs = Mapping[str, Input]


@dataclass(frozen=True)
class Rule:
    """A predicate and the computations of its event: `G = (P, A)`.

    `mentions` are the queries that the predicate names. With `hold`, the predicate must be satisfied at every
    evaluation for that duration.
    """

    satisfied: Callable[[EvaluationContext], bool]
    mentions: tuple[str, ...]
    computes: tuple[tuple[str, Callable[[EvaluationContext], Any]], ...] = ()
    hold: Duration = 0
    optional: frozenset[str] = field(default=frozenset(), kw_only=True)
    """The queries that may show nothing. The predicate then uses its own defaults."""
    timeless: bool = False
    """Whether the predicate depends on knowledge alone: not on ``last``, ``0^r`` or validity."""

    def detect(self, inputs: Inputs, tables: Tables, context: EvaluationContext) -> EvaluationContext | None:
        """Evaluate the rule. Return the satisfying context with the most recent knowledge, or `None`.

        Without any knowledge nothing is detected. [F69]
        """
        shown = {name: tables(name) for name in self.mentions or inputs}
        chosen = {name: table for name, table in shown.items() if table or name not in self.optional}
        satisfying = examine(self, chosen, context) if chosen else []
        if not satisfying or not encapsulate(inputs, chosen, satisfying):
            return None
        return with_beside(min(satisfying, key=rank), inputs, tables)


@dataclass(frozen=True)
class Smc:
    """A State Maintenance Component `m = (N, Q, G^n, G^x)`, without its state. [F53]

    `exit` is `None` for a momentary condition [F68]. `here` is the location of the host: a point, or a topic
    whose sources each carry a replica. `attributes` are the attributes of its events; those in `floats` are
    converted to float. `tick` is the period of additional evaluations. `part` numbers the parts of a
    decomposed component.
    """

    topic: str
    inputs: Inputs
    enter: Rule
    exit: Rule | None
    attributes: tuple[str, ...] = ()
    floats: frozenset[str] = frozenset()
    here: Point | str | None = None
    tick: Duration | None = None
    wait: Duration = 0
    late: Late = "apply"
    collide: Function = "avg"
    part: str = ""

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that the component consumes, including the topic of a moving host."""
        queried = [topic for input in self.inputs.values() for topic in input.query.topics]
        return tuple(dict.fromkeys([*queried, *([self.here] if isinstance(self.here, str) else [])]))

    @property
    def stationary(self) -> Point | None:
        """The location of the host, or `None` if the host moves."""
        return self.here if isinstance(self.here, tuple) else None

    @property
    def lasts(self) -> Duration:
        """The duration after the latest reading in which ticks occur."""
        return MOST_TICKS * (self.tick or 0)

    @cached_property
    def settles(self) -> bool:
        """Whether a tick that emits nothing makes further ticks superfluous, until an event arrives or leaves
        a window."""
        rules = [self.enter] if self.exit is None else [self.enter, self.exit]
        rests = all(_rests(input.query) for input in self.inputs.values())
        return rests and all(rule.timeless for rule in rules)

    @cached_property
    def spawns(self) -> bool:
        """Whether there is a scope for each key or host."""
        return isinstance(self.here, str) or any(input.key for input in self.inputs.values())


def _rests(query: Query) -> bool:
    """Whether the result of a query changes only when an event arrives, or enters or leaves a window."""
    match query.time:
        case Closest(Index(int(at), relative)):
            return at >= 0 or not relative
        case Aggregate() | Multiple():
            return True
    return False


# --- examine and encapsulate -------------------------------------------------------------------


def examine(rule: Rule, tables: Mapping[str, Table], context: EvaluationContext) -> list[EvaluationContext]:
    """Return the satisfying knowledge `SK = σ_P(K_A × K_B × …)` as one context for each combination.

    `tables` has the queries that take part. Queries that the predicate does not mention take no part. [F65]
    """
    combinations = (dict(zip(tables, combined, strict=True)) for combined in product(*tables.values()))
    contexts = (context._replace(known=known) for known in combinations)
    return [context for context in contexts if rule.satisfied(context)]


def encapsulate(inputs: Inputs, tables: Mapping[str, Table], satisfying: Sequence[EvaluationContext]) -> bool:
    """Whether satisfying knowledge is a detected condition: each `multiple` has as many satisfying values as
    it requires. [F66]"""
    for name, table in tables.items():
        for dimension, parameter in inputs[name].query.parameters():
            if isinstance(parameter, Multiple):
                satisfied = {value(dimension, context.known[name]) for context in satisfying}
                if parameter.how == "one" and len(satisfied) != 1:
                    return False
                if parameter.how == "all":
                    required = values_required(parameter, dimension, table, satisfying[0])
                    if not satisfied >= required:
                        return False
    return True


def values_required(
    parameter: Multiple, dimension: Dimension, table: Table, context: EvaluationContext
) -> set[Any]:
    """Return the values that `all` requires: the given members, or without members all values present."""
    if not isinstance(parameter.group, MemberSet):
        return {value(dimension, known) for known in table}
    origin = context.now if dimension == "time" else context.here
    given = [absolute(index, origin) for index in parameter.group.values]
    if dimension != "location":
        return set(given)
    return {(1, (), at) if isinstance(at, str) else (0, at, "") for at in given}


def rank(context: EvaluationContext) -> Any:
    """Return a sort key of contexts: the most recent knowledge first, then the least."""
    points = context.known.values()
    return (-max(map(_recency, points)), [order(known) for known in points])


def with_beside(context: EvaluationContext, inputs: Inputs, tables: Tables) -> EvaluationContext:
    """Return the context with the most recent knowledge of the queries that the predicate does not
    mention."""
    others = {name: tables(name) for name in inputs if name not in context.known}
    beside = {name: max(table, key=_recency) for name, table in others.items() if table}
    return context._replace(beside=beside)


def _recency(known: Knowledge) -> Instant:
    return known.newest.time


# --- transform ---------------------------------------------------------------------------------


def transform(
    smc: Smc, rule: Rule, status: Status, found: EvaluationContext, signature: str | None
) -> Knowledge:
    """Return the event of a detected condition. [F67]

    Its attributes and location are those of the latest knowledge, overridden by the rule's computations. The
    location of a host replaces that of the knowledge. A computed time is used only if it is not before the
    InfoS time and is later than the last event.
    """
    newest = max(found.known.values(), key=_recency)
    context = found._replace(known={**found.known, **found.beside}) if rule.computes else found
    computed = {name: compute(context) for name, compute in rule.computes}
    values = {**newest.attributes, **computed}
    attributes: dict[str, Value] = {
        name: float(value) if name in smc.floats and value is not None else value
        for name in smc.attributes
        for value in [values.get(name)]
    }
    at, place = newest.newest.at, newest.newest.place
    if "location" in computed or found.here is not None:  # the computed location, else that of the host
        where = computed.get("location", found.here)
        at, place = (where, None) if isinstance(where, tuple) else (None, where)
    time, wanted = found.now, computed.get("time")
    if found.last is not None:
        time = max(time, found.last.time + 1)
    if wanted is not None and wanted >= time:
        time = int(wanted)
    return Knowledge(smc.topic, time, newest.newest.source, attributes, at, place, status, signature)
