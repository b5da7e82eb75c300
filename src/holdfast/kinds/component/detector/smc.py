"""A State Maintenance Component at one instant: examine, encapsulate, transform. [F53, F65–F69]

This defines which events a component emits. The columnar evaluation is compared with it in tests.
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
    Computations also read `beside`, the latest knowledge of queries that the predicate does not mention."""

    known: Mapping[str, Knowledge]
    last: Knowledge | None
    now: Instant
    here: Where
    beside: Mapping[str, Knowledge] = {}


Tables = Callable[[str], Table]
"""The knowledge that a query selects now, by the name of the query."""


@dataclass(frozen=True)
class Input:
    """A query, and the function that computes the key of knowledge; knowledge with the key `None` is in no
    scope.

    `encoded_keys` computes the keys of many readings at once.
    """

    query: Query
    key: Callable[[Knowledge], str | None] | None = None
    encoded_keys: Callable[[ReadingRows], Coded] | None = None


Inputs = Mapping[str, Input]


@dataclass(frozen=True)
class Rule:
    """A predicate and the computations of its event: `G = (P, A)`.

    `mentions` are the queries that the predicate names. With `hold`, it must have been satisfied at every
    evaluation for that long.
    """

    satisfied: Callable[[EvaluationContext], bool]
    mentions: tuple[str, ...]
    computes: tuple[tuple[str, Callable[[EvaluationContext], Any]], ...] = ()
    hold: Duration = 0
    optional: frozenset[str] = field(default=frozenset(), kw_only=True)
    """Those that need not show anything: the predicate says what counts instead."""
    timeless: bool = False
    """Whether the predicate depends on knowledge alone: not on ``last``, ``0^r`` or validity."""

    def detect(self, inputs: Inputs, tables: Tables, context: EvaluationContext) -> EvaluationContext | None:
        """Evaluate the rule; return the satisfying context with the most recent knowledge, or `None`.

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
    """A State Maintenance Component `m = (N, Q, G^n, G^x)`; its state has the status bit and the last event.
    [F53]

    `exit` is `None` for a momentary condition [F68]. `here` is the location of the host: a point, or the
    topic whose sources each carry a replica. `attributes` are those of its events, `floats` the ones that are
    converted to float. `part` numbers the parts of a decomposed component.
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
        """The topics that it consumes."""
        queried = [topic for input in self.inputs.values() for topic in input.query.topics]
        return tuple(dict.fromkeys([*queried, *([self.here] if isinstance(self.here, str) else [])]))

    @property
    def stationary(self) -> Point | None:
        """The location of its host, if that does not move."""
        return self.here if isinstance(self.here, tuple) else None

    @property
    def lasts(self) -> Duration:
        """How long after the latest reading there are ticks."""
        return MOST_TICKS * (self.tick or 0)

    @cached_property
    def settles(self) -> bool:
        """Whether all ticks after one that emits nothing emit nothing, until an event arrives or leaves a
        window."""
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
    """The satisfying knowledge `SK = σ_P(K_A × K_B × …)`. Queries that the predicate does not mention take no
    part. [F65]"""
    combinations = (dict(zip(tables, combined, strict=True)) for combined in product(*tables.values()))
    contexts = (context._replace(known=known) for known in combinations)
    return [context for context in contexts if rule.satisfied(context)]


def encapsulate(inputs: Inputs, tables: Mapping[str, Table], satisfying: Sequence[EvaluationContext]) -> bool:
    """Whether satisfying knowledge is a detected condition: as many values of each `multiple` as it requires.
    [F66]"""
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
    """The values that `all` requires: those present, or the given members."""
    if not isinstance(parameter.group, MemberSet):
        return {value(dimension, known) for known in table}
    origin = context.now if dimension == "time" else context.here
    given = [absolute(index, origin) for index in parameter.group.values]
    if dimension != "location":
        return set(given)
    return {(1, (), at) if isinstance(at, str) else (0, at, "") for at in given}


def rank(context: EvaluationContext) -> Any:
    """A sort key of contexts: the most recent knowledge first, then the least."""
    points = context.known.values()
    return (-max(map(_recency, points)), [order(known) for known in points])


def with_beside(context: EvaluationContext, inputs: Inputs, tables: Tables) -> EvaluationContext:
    """The context with the most recent knowledge of the queries that took no part."""
    others = {name: tables(name) for name in inputs if name not in context.known}
    beside = {name: max(table, key=_recency) for name, table in others.items() if table}
    return context._replace(beside=beside)


def _recency(known: Knowledge) -> Instant:
    return known.newest.time


# --- transform ---------------------------------------------------------------------------------


def transform(
    smc: Smc, rule: Rule, status: Status, found: EvaluationContext, signature: str | None
) -> Knowledge:
    """The event of a detected condition: attributes and location of the latest knowledge, overridden by
    computations. [F67]

    A host's location replaces that of the knowledge. A computed time counts if it is not before InfoS time
    and later than the last event.
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
