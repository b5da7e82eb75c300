"""Operators of checked state filters, and functions that states with minimum durations also use.

Filters with the same topic, scopes and delivery share a machine, up to 64 of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa

from ...engine.corrected import Corrected
from ...engine.machine import Machine
from ...engine.operator import Keys, Operator, digest
from ...engine.ordered import Ordered
from ...lang.expressions import batch as columns
from ...lang.expressions import event as scalar
from ...lang.expressions.key_text import readable_key
from ...lang.expressions.tables import (
    add_table_columns,
    add_table_values,
    columns_of,
    rows_without_match,
    topic_of,
)
from ...lang.rewrite import names
from ...model.batch import AXES
from ...model.qos import Correct, Delivery
from ...model.space import Forest
from ...model.topic import Topic
from .condition import AnyState, DurationCondition, StateCondition
from .toggle import MOST, StateFilter, ToggleMachine, word_of


def operators(conditions: Iterable[StateCondition], _topics: Sequence[Topic] = ()) -> list[Operator]:
    """Return as few operators as possible for filters. Equal filters share one bit. [S7]"""
    alike: dict[object, list[StateCondition]] = {}
    for condition in conditions:
        scopes = condition.topic, condition.keys, condition.forest
        alike.setdefault((scopes, condition.delivery, alone_in(condition)), []).append(condition)
    return [operator for together in alike.values() for operator in _shared(together)]


def _shared(together: Sequence[StateCondition]) -> Iterator[Operator]:
    """Yield the operators of filters with the same scopes and delivery."""
    equal: dict[object, list[StateCondition]] = {}
    for condition in together:
        meaning = repr((condition.enter, condition.exit))  # 1 == 1.0, but they compare differently
        equal.setdefault(meaning, []).append(condition)
    distinct = list(equal.values())
    for i in range(0, len(distinct), MOST):
        yield _operator(distinct[i : i + MOST])


def _operator(distinct: Sequence[Sequence[StateCondition]]) -> Operator:
    """Return the operator of filters. The names of equal filters are in one inner sequence of
    ``distinct``."""
    conditions = [equal[0] for equal in distinct]
    topic = conditions[0].topic.name
    run = filter_machine(conditions)

    def shard_keys(_topic: str, batch: pa.RecordBatch) -> Keys:
        return Keys(*run.scoping(batch)[-1])

    return Operator(
        kind="state",
        machine=with_delivery(run, conditions[0].topic, conditions[0].delivery),
        names=tuple(tuple(condition.name for condition in equal) for equal in distinct),
        meanings=tuple(map(meaning, conditions)),
        reading_topics=((topic,),) * len(conditions),
        decisive_columns={topic: decisive(conditions)},
        keyed=shard_keys,
        key=("state",),
        delay=conditions[0].delivery.wait or 0,
    )


def alone_in(condition: AnyState) -> str:
    """Return the name of a condition that corrects its notifications, otherwise an empty text.

    Such a condition has a machine of its own. A condition that joined it later would not have emitted the
    notifications that are corrected.
    """
    return condition.name if isinstance(condition.delivery.late, Correct) else ""


def decisive(conditions: Iterable[AnyState]) -> frozenset[str]:
    """Return the columns that predicates and scopes use. Only these decide whether an event is relevant."""
    found: set[str] = set()
    for condition in conditions:
        found.update(columns_of(condition), *condition.keys)
        if condition.forest is not None:
            found.update(("place", *AXES))
    return frozenset(found)


def filter_machine(conditions: Sequence[StateCondition]) -> ToggleMachine:
    """Return the machine of conditions that share topic and scopes. Their delivery is ignored."""
    first, word = conditions[0], word_of(len(conditions))
    topic, joined = topic_of(conditions), add_table_columns(conditions)
    enters = columns.words([c.enter for c in conditions], topic, word)
    leaves = columns.words([c.enter if c.momentary else c.exit for c in conditions], topic, word)
    universal = not first.keys and first.forest is None
    return ToggleMachine(
        topic=first.topic,
        filters=tuple(map(state_filter, conditions)),
        enters=enters if joined is None else lambda batch: enters(joined(batch)),
        leaves=leaves if joined is None else lambda batch: leaves(joined(batch)),
        depth=1 if universal else len(first.keys) + (first.forest.depth if first.forest else 0),
        chain=scalar.chain(first.keys, first.forest),
        scoping=columns.scoping(first.keys, first.forest),
        readable_scope=(lambda _key: None) if universal else readable_key,
        rows_without_match=rows_without_match(conditions),
    )


def with_delivery(machine: Machine[Any], topic: Topic, delivery: Delivery) -> Machine[Any]:
    """Return the machine, wrapped for ordered or corrected delivery if the condition asks for it."""
    wait, late = delivery.wait, delivery.late
    if wait is None:
        return machine
    if isinstance(late, Correct):
        return Corrected(Ordered(machine, topic, wait, "drop"), late.within)
    return Ordered(machine, topic, wait, late)


def state_filter(condition: StateCondition) -> StateFilter:
    """Return the predicates of a condition, for single events."""
    topic, momentary = condition.topic_with_rows, condition.momentary
    enter, leave = (scalar.predicate(op, topic) for op in (condition.enter, condition.exit))
    if not condition.tables:
        return StateFilter(enter, leave, momentary)
    joined = add_table_values(condition.tables)
    return StateFilter(lambda event: enter(joined(event)), lambda event: leave(joined(event)), momentary)


def meaning(condition: AnyState) -> str:
    """Return a digest that is equal for conditions with equal meaning. The name is not part of the
    meaning."""
    used = [*names(condition.enter), *names(condition.exit), *chain.from_iterable(condition.keys)]
    kinds = [condition.topic_with_rows.by_name[name] for name in used]
    scopes = condition.keys, within(condition.forest)
    parts = (condition.topic.name, kinds, condition.enter, condition.exit, *scopes, condition.delivery)
    durations = (condition.care, condition.roster) if isinstance(condition, DurationCondition) else ()
    return digest((*parts, *durations))


def within(forest: Forest | None) -> Forest | None:
    """Return the forest without the names of places and sources outside its regions."""
    if forest is None:
        return None
    return replace(
        forest,
        places=tuple((name, at) for name, at in forest.places if at >= 0),
        sources=tuple((name, at) for name, at in forest.sources if at >= 0),
    )
