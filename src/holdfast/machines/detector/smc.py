"""A State Maintenance Component at one instant: examine, encapsulate, transform.  [F53, F65–F69]"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

from ...model.event import Status, Value
from ...model.instant import Duration, Instant
from ...model.qos import Late
from ...model.query import (
    MOST_TICKS,
    Aggregate,
    Closest,
    Dimension,
    Function,
    Index,
    Members,
    Multiple,
    Query,
)
from ...model.space import Point
from .knowledge import Knowledge, Where, order
from .query import Table, absolute, value
from .rows import Coded, Rows


class Context(NamedTuple):
    """What a predicate may look at: one knowledge point of each query, the component's last event,
    and ``0^r`` of time and place; a computation also what other queries show last, ``beside``."""

    known: Mapping[str, Knowledge]
    last: Knowledge | None
    now: Instant
    here: Where
    beside: Mapping[str, Knowledge] = {}


Tables = Callable[[str], Table]
"""What a query selects now, by its name."""


@dataclass(frozen=True)
class Input:
    """A query and, where it is to be kept apart, the key of knowledge; ``None`` is in no scope.

    ``coded`` finds the keys of many readings at once.
    """

    query: Query
    key: Callable[[Knowledge], str | None] | None = None
    coded: Callable[[Rows], Coded] | None = None


Inputs = Mapping[str, Input]


@dataclass(frozen=True)
class Rule:
    """A conditional mapping ``G = (P, A)``.  ``mentions`` are the queries that the predicate names;
    with ``hold``, it must have been satisfied at every evaluation for so long."""

    satisfied: Callable[[Context], bool]
    mentions: tuple[str, ...]
    computes: tuple[tuple[str, Callable[[Context], Any]], ...] = ()
    hold: Duration = 0
    optional: frozenset[str] = field(default=frozenset(), kw_only=True)
    """Those that need not show anything: the predicate says what counts instead."""
    timeless: bool = False
    """Whether the predicate depends on knowledge alone: not on ``last``, ``0^r`` or validity."""

    def detect(self, inputs: Inputs, tables: Tables, moment: Context) -> Context | None:
        """What satisfies the rule, if a condition is to be told: the representative of its DK.

        Detection is assertive: without knowledge there is nothing that could satisfy.  [F69]
        """
        shown = {name: tables(name) for name in self.mentions or inputs}
        chosen = {name: table for name, table in shown.items() if table or name not in self.optional}
        satisfying = examine(self, chosen, moment) if chosen else []
        if not satisfying or not encapsulate(inputs, chosen, satisfying):
            return None
        return with_beside(min(satisfying, key=rank), inputs, tables)


@dataclass(frozen=True)
class Smc:
    """``m = (N, Q, G^n, G^x)``; status bit and last event are the component's state.  [F53]

    ``exit is None`` is *true*: a momentary condition [F68].  ``here`` is where the host is: a point,
    or the topic whose sources carry a replica each.  ``attributes`` are those of its events, ``floats``
    those of them that are floats, whatever they come from; ``part`` tells the parts of a decomposed
    component from one another.
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
        """What it listens to."""
        looked_at = [topic for one in self.inputs.values() for topic in one.query.topics]
        return tuple(dict.fromkeys([*looked_at, *([self.here] if isinstance(self.here, str) else [])]))

    @property
    def lasts(self) -> Duration:
        """How long after a reading there are ticks."""
        return MOST_TICKS * (self.tick or 0)

    @cached_property
    def settles(self) -> bool:
        """Whether a tick that says nothing is like every later one, until something comes or leaves."""
        rules = [self.enter] if self.exit is None else [self.enter, self.exit]
        return all(rule.timeless for rule in rules) and all(_rests(one.query) for one in self.inputs.values())

    @cached_property
    def spawns(self) -> bool:
        """Whether there is a component of its own for each key or host."""
        return isinstance(self.here, str) or any(one.key for one in self.inputs.values())


def _rests(query: Query) -> bool:
    """Whether what a query shows changes only when something comes, or comes into a window or leaves it."""
    match query.time:
        case Closest(Index(int(at), relative)):
            return at >= 0 or not relative
        case Aggregate() | Multiple():
            return True
    return False


# --- examine and encapsulate -------------------------------------------------------------------


def examine(rule: Rule, tables: Mapping[str, Table], moment: Context) -> list[Context]:
    """The satisfying knowledge ``SK = σ_P(K_A × K_B × …)``; a query that the predicate does not
    mention takes no part.  [F65]"""
    combinations = (dict(zip(tables, combined, strict=True)) for combined in product(*tables.values()))
    contexts = (moment._replace(known=known) for known in combinations)
    return [context for context in contexts if rule.satisfied(context)]


def encapsulate(inputs: Inputs, tables: Mapping[str, Table], satisfying: Sequence[Context]) -> bool:
    """Whether the satisfying knowledge of one key is a detected condition: as many values of every
    ``multiple`` as it asks for.  [F66]"""
    for name, table in tables.items():
        for dimension, parameter in inputs[name].query.parameters():
            if isinstance(parameter, Multiple):
                satisfied = {value(dimension, context.known[name]) for context in satisfying}
                if parameter.how == "one" and len(satisfied) != 1:
                    return False
                if parameter.how == "all" and not satisfied >= wanted(
                    parameter, dimension, table, satisfying[0]
                ):
                    return False
    return True


def wanted(parameter: Multiple, dimension: Dimension, table: Table, moment: Context) -> set[Any]:
    """*All*: the values that are there; of given members, these."""
    if not isinstance(parameter.group, Members):
        return {value(dimension, known) for known in table}
    origin = moment.now if dimension == "time" else moment.here
    given = [absolute(index, origin) for index in parameter.group.values]
    if dimension != "location":
        return set(given)
    return {(1, (), at) if isinstance(at, str) else (0, at, "") for at in given}


def rank(context: Context) -> Any:
    """Least for the combination with the most recent knowledge, and of several the least."""
    points = context.known.values()
    return (-max(map(_recency, points)), [order(known) for known in points])


def with_beside(context: Context, inputs: Inputs, tables: Tables) -> Context:
    """The context with the most recent knowledge of queries that took no part."""
    others = {name: tables(name) for name in inputs if name not in context.known}
    return context._replace(
        beside={name: max(table, key=_recency) for name, table in others.items() if table}
    )


def _recency(known: Knowledge) -> Instant:
    return known.newest.time


# --- transform ---------------------------------------------------------------------------------


def transform(smc: Smc, rule: Rule, status: Status, found: Context, signature: str | None) -> Knowledge:
    """The event that tells of a condition: defaults, and what the computations override.  [F67]"""
    newest = max(found.known.values(), key=_recency)
    context = found._replace(known={**found.known, **found.beside}) if rule.computes else found
    computed = {name: compute(context) for name, compute in rule.computes}
    values = {**newest.attributes, **computed}
    attributes: dict[str, Value] = {
        name: float(value) if name in smc.floats and value is not None else value
        for name in smc.attributes
        for value in [values.get(name)]
    }
    at, place = _location(found, newest.newest, computed)
    time = _time(found, computed.get("time"))
    return Knowledge(smc.topic, time, newest.newest.source, attributes, at, place, status, signature)


def _location(
    found: Context, newest: Knowledge, computed: Mapping[str, Any]
) -> tuple[Point | None, str | None]:
    """Where the host is; without a host, where the event that contributed last was."""
    if "location" not in computed and found.here is None:
        return newest.at, newest.place
    at = computed.get("location", found.here)
    return (at, None) if isinstance(at, tuple) else (None, at)


def _time(found: Context, wanted: Any) -> Instant:
    """InfoS time or just after the last event; a computed time must be later than that event and
    not before InfoS time, else the default stands."""
    after = found.now if found.last is None else max(found.now, found.last.time + 1)
    return after if wanted is None or wanted < after else int(wanted)
