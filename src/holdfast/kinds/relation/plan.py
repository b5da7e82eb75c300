"""Operators of checked relations: their machine, their columns, and the keys of shards.

Sources that are tied share a shard. A relation between all sources has only one shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import repeat

import numpy as np
import pyarrow as pa

from ...engine.carry_over import CarryingOver
from ...engine.key_codes import KeyCodes as Names
from ...engine.operator import FIXED, Keys, Operator, Presentation, digest
from ...kernels.relate import together
from ...model.relation import Pairs, Relation
from ...model.topic import Topic
from .condition import RelationCondition
from .machine import RelationMachine
from .rows import Codes, RoleSlot, members_of


def operators(relations: Iterable[RelationCondition], _topics: Sequence[Topic] = ()) -> list[Operator]:
    """Return one operator for each relation. Relations with equal meaning share an operator."""
    alike: dict[str, list[RelationCondition]] = {}
    for relation in relations:
        alike.setdefault(meaning(relation), []).append(relation)
    return [_operator(equal) for equal in alike.values()]


def meaning(condition: RelationCondition) -> str:
    """Return a digest that is equal for relations with equal meaning.

    The name is part of the meaning, because it is the topic of the relation's events.
    """
    return digest((condition.name, condition.relation, condition.listens, condition.delivery))


def _operator(equal: Sequence[RelationCondition]) -> Operator:
    """Return the operator of relations with equal meaning."""
    first = equal[0]
    run = machine(first)
    used: dict[str, set[str]] = {name: set(FIXED) for name in run.topics}
    for slot in run.slots:
        used[slot.topic].update(name for name in (slot.attribute, slot.accuracy) if name)
    columns = {name: frozenset(names) for name, names in used.items()}
    roams = first.relation.ties is None
    return Operator(
        kind="relation",
        machine=CarryingOver(run, (0,), (run.wait,)),
        names=(tuple(condition.name for condition in equal),),
        meanings=(meaning(first),),
        reading_topics=(tuple(topic.name for topic in first.listens),),
        decisive_columns=columns,
        needed_columns=None if run.traits.lateness is not None else columns,
        sources=_sources(first.relation),
        keyed=None if roams else _key_function(first.relation),
        key=("relation", first.name),
        delay=run.wait,
        presentation=Presentation(
            reasons=((first.name, "all sources may come near one another"),) if roams else ()
        ),
    )


def machine(condition: RelationCondition) -> RelationMachine:
    """Return the machine of a relation."""
    relation, wait, late = condition.relation, condition.delivery.wait, condition.delivery.late
    topics, slots = {topic.name: topic for topic in condition.listens}, _slots(relation)
    return RelationMachine(condition.topic, relation, topics, slots, wait or 0, late, wait is not None)


def _slots(relation: Relation) -> tuple[RoleSlot, ...]:
    """Return the values that are read of each topic: attributes, or the location and its accuracy."""
    accuracy = relation.accuracy
    if relation.ties is None or isinstance(relation.ties, Pairs):
        topics = relation.roaming if relation.ties is None else relation.ties.topics
        slots = (RoleSlot(topic, None, accuracy) for topic in topics or ())
    else:
        members = (m for tie in relation.ties for m in tie.members)
        slots = (RoleSlot(m.topic, m.attribute, accuracy if m.attribute is None else None) for m in members)
    return tuple(dict.fromkeys(slots))


def _sources(relation: Relation) -> dict[str, frozenset[str]]:
    """Return the declared sources of each topic."""
    found: dict[str, set[str]] = {}
    sides: Iterable[tuple[str, Iterable[str]]]
    if isinstance(relation.ties, Pairs):
        sides = zip(relation.ties.topics, (relation.ties.first, relation.ties.second), strict=True)
    else:
        sides = ((m.topic, (m.source,)) for tie in relation.ties or () for m in tie.members)
    for topic, sources in sides:
        found.setdefault(topic, set()).update(sources)
    return {topic: frozenset(sources) for topic, sources in found.items()}


def _key_function(relation: Relation) -> Callable[[str, pa.RecordBatch], Keys]:
    """Return a function that computes the shard key of each event.

    Sources that are connected by any number of ties have the same key.
    """

    @cache
    def places() -> tuple[dict[str, tuple[Names, Codes]], pa.StringArray]:
        return _together(relation)

    def keys(topic: str, batch: pa.RecordBatch) -> Keys:
        of_topic, firsts = places()
        if topic not in of_topic:
            return Keys(np.full(len(batch), -1), firsts)
        names, groups = of_topic[topic]
        return Keys(members_of(0, batch, lambda _, sources: groups[names.known(sources)]), firsts)

    return keys


def _together(relation: Relation) -> tuple[dict[str, tuple[Names, Codes]], pa.StringArray]:
    """Return the sources of each topic with their groups, and the names of all groups.

    A group has all sources connected by ties and is named after its first source.
    """
    if isinstance(relation.ties, Pairs):
        sides = zip(relation.ties.topics, (relation.ties.first, relation.ties.second), strict=True)
        first, second = (list(zip(repeat(topic), sources)) for topic, sources in sides)
    else:
        tied = [[(m.topic, m.source) for m in tie.members] for tie in relation.ties or ()]
        first = [nodes[0] for nodes in tied for _ in nodes]
        second = [node for nodes in tied for node in nodes]
    nodes = sorted({*first, *second})
    number = {node: i for i, node in enumerate(nodes)}
    ends = [np.array([number[node] for node in side], np.int64) for side in (first, second)]
    above = np.arange(len(nodes))
    together(*ends, above)
    firsts, groups = np.unique(above, return_inverse=True)
    of_topic = {}
    for topic in dict.fromkeys(topic for topic, _ in nodes):
        own_nodes = [i for i, node in enumerate(nodes) if node[0] == topic]
        names = Names.of(pa.array([nodes[i][1] for i in own_nodes], pa.string()))
        of_topic[topic] = names, np.append(groups[own_nodes], -1)
    return of_topic, pa.array([" ".join(nodes[i]) for i in firsts.tolist()], pa.string())
