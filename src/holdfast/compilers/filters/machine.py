"""Checked state filters become machines and operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from ...lang.condition import Condition, Guarded
from ...lang.rewrite import names
from ...machines.corrected import Corrected
from ...machines.filter import MOST, Filters, StateFilter, word_of
from ...machines.machine import Machine
from ...machines.ordered import Ordered
from ...model.batch import AXES
from ...model.qos import Correct, Delivery
from ...model.space import Forest
from ...model.topic import Topic
from .. import columns, scalar
from ..keys import shown
from ..operator import Keys, Operator, digest
from ..tables import lacking, looked_at, looking_up, looking_up_one, topic_of

FAMILY = "filters"


def operators(conditions: Iterable[Condition], _topics: Sequence[Topic] = ()) -> list[Operator]:
    """As few machines as the conditions allow; equal filters become one filter.  [S7]"""
    alike: dict[object, list[Condition]] = {}
    for condition in conditions:
        setting = (
            condition.topic, condition.keys, condition.forest, condition.delivery, alone_in(condition)
        )  # fmt: skip
        alike.setdefault(setting, []).append(condition)
    return [operator for together in alike.values() for operator in _shared(together)]


def _shared(together: Sequence[Condition]) -> Iterator[Operator]:
    equal: dict[object, list[Condition]] = {}
    for condition in together:
        meaning = repr((condition.enter, condition.exit))  # 1 == 1.0, but they compare differently
        equal.setdefault(meaning, []).append(condition)
    distinct = list(equal.values())
    for i in range(0, len(distinct), MOST):
        yield _operator(distinct[i : i + MOST])


def _operator(distinct: Sequence[Sequence[Condition]]) -> Operator:
    conditions = [equal[0] for equal in distinct]
    topic = conditions[0].topic.name
    run = filters(conditions)

    def keyed(_topic: str, batch: pa.RecordBatch) -> Keys:
        return Keys(*run.scoping(batch)[-1])

    return Operator(
        family=FAMILY,
        machine=delivered(run, conditions[0].topic, conditions[0].delivery),
        names=tuple(tuple(condition.name for condition in equal) for equal in distinct),
        meanings=tuple(map(meaning, conditions)),
        listens=((topic,),) * len(conditions),
        looks_at={topic: decisive(conditions)},
        keyed=keyed,
        key=(FAMILY,),
        behind=conditions[0].delivery.wait or 0,
    )


def alone_in(condition: Condition | Guarded) -> str:
    """Who corrects what it has told has a machine of its own: none that begins later was told what it was."""
    return condition.name if isinstance(condition.delivery.late, Correct) else ""


def decisive(conditions: Iterable[Condition | Guarded]) -> frozenset[str]:
    """The columns that predicates and scopes need: whether an event matters depends on no other."""
    found: set[str] = set()
    for condition in conditions:
        found.update(looked_at(condition), *condition.keys)
        if condition.forest is not None:
            found.update(("place", *AXES))
    return frozenset(found)


def filters(conditions: Sequence[Condition]) -> Filters:
    """The machine of conditions that share topic, scopes and delivery, whatever the delivery."""
    first = conditions[0]
    topic, joined = topic_of(conditions), looking_up(conditions)
    enters = columns.words([c.enter for c in conditions], topic, word_of(len(conditions)))
    leaves = columns.words(
        [c.enter if c.momentary else c.exit for c in conditions], topic, word_of(len(conditions))
    )
    universal = not first.keys and first.forest is None
    return Filters(
        topic=first.topic,
        filters=tuple(map(state_filter, conditions)),
        enters=enters if joined is None else lambda batch: enters(joined(batch)),
        leaves=leaves if joined is None else lambda batch: leaves(joined(batch)),
        depth=1 if universal else len(first.keys) + (first.forest.depth if first.forest else 0),
        chain=scalar.chain(first),
        scoping=columns.scoping(first),
        shown=(lambda _key: None) if universal else shown,
        lacking=lacking(conditions),
    )


def delivered(machine: Machine, topic: Topic, delivery: Delivery) -> Machine:
    """The machine of a topic, fed as it is to be."""
    wait, late = delivery.wait, delivery.late
    if wait is None:
        return machine
    if isinstance(late, Correct):
        return Corrected(Ordered(machine, topic, wait, "drop"), late.within)
    return Ordered(machine, topic, wait, late)


def state_filter(condition: Condition) -> StateFilter:
    """The filter of a condition."""
    enter, leave = (scalar.predicate(op, condition.looked) for op in (condition.enter, condition.exit))
    if not condition.tables:
        return StateFilter(enter, leave, condition.momentary)
    joined = looking_up_one(condition.tables)
    return StateFilter(
        lambda event: enter(joined(event)), lambda event: leave(joined(event)), condition.momentary
    )


def meaning(condition: Condition) -> str:
    """Equal for conditions that mean the same, whatever their names."""
    used = [*names(condition.enter), *names(condition.exit), *chain.from_iterable(condition.keys)]
    kinds = condition.looked.by_name
    return digest(
        (
            condition.topic.name,
            [kinds[name] for name in used],
            condition.enter,
            condition.exit,
            condition.keys,
            within(condition.forest),
            condition.delivery,
        )
    )


def within(forest: Forest | None) -> Forest | None:
    """The forest without names of places that lie in none of its regions."""
    if forest is None:
        return None
    return replace(
        forest,
        places=tuple((name, at) for name, at in forest.places if at >= 0),
        sources=tuple((name, at) for name, at in forest.sources if at >= 0),
    )
