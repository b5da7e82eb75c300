"""Checked conditions become condition machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import pyarrow as pa

from ..lang.condition import Condition
from ..lang.rewrite import names
from ..machines.filter import MOST, Filters, StateFilter, word_of
from ..machines.machine import Machine
from ..machines.ordered import Ordered
from ..model.batch import AXES
from ..model.event import Notification, Transition
from ..model.instant import Instant
from ..model.topic import Topic
from . import columns, scalar
from .keys import shown


@dataclass(frozen=True)
class Group:
    """Conditions that one machine runs: they watch one topic, in the same scopes, with the same
    delivery.  ``conditions[i]`` are the names that share the machine's condition ``i``."""

    machine: Machine
    topic: Topic
    conditions: tuple[tuple[str, ...], ...]
    wait: int | None = None

    def addressed(self, passed: Iterable[Transition]) -> Iterator[Notification]:
        """Transitions of the machine, for every name that they concern."""
        for event, status, scope, since, condition in passed:
            concerned = self.conditions if condition < 0 else (self.conditions[condition],)
            for name in chain.from_iterable(concerned):
                yield Notification(name, event, status, scope, since)

    def holding(self, state: Any) -> Iterator[tuple[str, str | None, Instant]]:
        """What holds in a state of the machine: (name, scope, since)."""
        for condition, scope, since in self.machine.holding(state):
            for name in self.conditions[condition]:
                yield name, scope, since


@dataclass
class Coverage:
    """How many events each topic had, and how many of them lay in no scope of a subscription."""

    events: Counter[str] = field(default_factory=Counter)
    outside: Counter[str] = field(default_factory=Counter)

    def count(self, topic: str, batch: pa.RecordBatch, watching: Iterable[Group]) -> None:
        """Count a batch of a topic for the groups that watch it."""
        self.events[topic] += len(batch)
        for group in watching:
            if outside := group.machine.outside(batch):
                self.outside.update(dict.fromkeys(chain.from_iterable(group.conditions), outside))

    def misplaced(self, all_groups: Iterable[Group]) -> list[str]:
        """The subscriptions that not one event of their topic could concern."""
        return [
            name
            for group in all_groups
            for name in chain.from_iterable(group.conditions)
            if 0 < self.outside[name] == self.events[group.topic.name]
        ]


def decisive(conditions: Iterable[Condition]) -> dict[str, frozenset[str]]:
    """For each topic the columns that predicates and scopes need: whether an event matters depends on
    no other."""
    found: dict[str, set[str]] = {}
    for condition in conditions:
        mine = found.setdefault(condition.topic.name, set())
        mine.update(names(condition.enter), names(condition.exit), *condition.keys)
        if condition.forest is not None:
            mine.update(("place", *AXES))
    return {topic: frozenset(columns) for topic, columns in found.items()}


def groups(conditions: Iterable[Condition]) -> list[Group]:
    """As few machines as the conditions allow; equal filters become one filter.  [S7]"""
    alike: dict[object, list[Condition]] = {}
    for condition in conditions:
        setting = (condition.topic, condition.keys, condition.forest, condition.delivery)
        alike.setdefault(setting, []).append(condition)
    return [group for together in alike.values() for group in _shared(together)]


def _shared(together: Sequence[Condition]) -> list[Group]:
    equal: dict[object, list[Condition]] = {}
    for condition in together:
        meaning = repr((condition.enter, condition.exit))  # 1 == 1.0, but they compare differently
        equal.setdefault(meaning, []).append(condition)
    distinct = list(equal.values())
    return [_group(distinct[i : i + MOST]) for i in range(0, len(distinct), MOST)]


def _group(distinct: Sequence[Sequence[Condition]]) -> Group:
    first = distinct[0][0]
    sharing = tuple(tuple(condition.name for condition in equal) for equal in distinct)
    return Group(machine([equal[0] for equal in distinct]), first.topic, sharing, first.delivery.wait)


def machine(conditions: Sequence[Condition]) -> Machine:
    """The machine of conditions that share topic, scopes and delivery."""
    first = conditions[0]
    universal = not first.keys and first.forest is None
    word = word_of(len(conditions))
    filters = Filters(
        filters=tuple(map(state_filter, conditions)),
        enters=columns.words([c.enter for c in conditions], first.topic, word),
        leaves=columns.words([c.enter if c.momentary else c.exit for c in conditions], first.topic, word),
        depth=1 if universal else len(first.keys) + (first.forest.depth if first.forest else 0),
        chain=scalar.chain(first),
        scoping=columns.scoping(first),
        shown=(lambda key: None) if universal else shown,
    )
    if first.delivery.wait is None:
        return filters
    return Ordered(filters, first.topic, first.delivery.late)


def state_filter(condition: Condition) -> StateFilter:
    """The filter of a condition."""
    enter, leave = (scalar.predicate(op, condition.topic) for op in (condition.enter, condition.exit))
    return StateFilter(enter, leave, condition.momentary)
