"""Checked relationships become the machine of :mod:`holdfast.machines.relation`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa

from ...lang.condition import Related
from ...machines.relation.machine import Relations
from ...machines.relation.rows import Slot
from ...model.relation import Relation
from ...model.topic import Topic
from ..columns import keyed
from ..operator import FIXED, Keys, Operator, digest

FAMILY = "relations"


def operators(relations: Iterable[Related], _topics: Sequence[Topic] = ()) -> list[Operator]:
    """A machine for each relationship; those that mean the same share one."""
    alike: dict[str, list[Related]] = {}
    for one in relations:
        alike.setdefault(meaning(one), []).append(one)
    return [_operator(equal) for equal in alike.values()]


def meaning(one: Related) -> str:
    """Equal for relationships that mean the same; what they tell has the name."""
    return digest((one.name, one.relation, one.listens, one.delivery))


def _operator(equal: Sequence[Related]) -> Operator:
    one = equal[0]
    run = machine(one)
    names = (tuple(other.name for other in equal),)
    used = {slot: [name for name in (slot.attribute, slot.accuracy) if name] for slot in run.slots}
    looks_at = {
        name: frozenset((*FIXED, *(n for slot, mine in used.items() if slot.topic == name for n in mine)))
        for name in run.topics
    }
    return Operator(
        family=FAMILY,
        machine=run,
        names=names,
        meanings=(meaning(one),),
        listens=(tuple(topic.name for topic in one.listens),),
        looks_at=looks_at,
        needs=None if run.strictest is not None else looks_at,
        sources=_sources(one.relation),
        keyed=None if one.relation.ties is None else _keyed(one.relation),
        key=(FAMILY, one.name),
        reasons=((one.name, "all sources may come near one another"),) if one.relation.ties is None else (),
        behind=run.wait,
    )


def machine(one: Related) -> Relations:
    """The machine of a relationship."""
    wait = one.delivery.wait
    topics = {topic.name: topic for topic in one.listens}
    return Relations(
        one.topic.name,
        one.relation,
        topics,
        _slots(one.relation),
        wait or 0,
        one.delivery.late,
        wait is not None,
    )


def _slots(relation: Relation) -> tuple[Slot, ...]:
    """What is looked at, of which topics."""
    if relation.ties is None:
        return tuple(Slot(topic, None, relation.accuracy) for topic in dict.fromkeys(relation.roaming or ()))
    members = (member for tie in relation.ties for member in tie.members)
    return tuple(
        dict.fromkeys(
            Slot(m.topic, m.attribute, relation.accuracy if m.attribute is None else None) for m in members
        )
    )


def _sources(relation: Relation) -> dict[str, frozenset[str]]:
    """The sources that are named."""
    found: dict[str, set[str]] = {}
    for tie in relation.ties or ():
        for member in tie.members:
            found.setdefault(member.topic, set()).add(member.source)
    return {topic: frozenset(sources) for topic, sources in found.items()}


def _keyed(relation: Relation) -> Callable[[str, pa.RecordBatch], Keys]:
    """Sources that are tied to one another, over however many ties, meet in one place."""
    together = _together(relation)

    def keys(topic: str, batch: pa.RecordBatch) -> Keys:
        codes, sources = keyed(batch.column("source"), len(batch))
        places = [together.get((topic, source)) for source in sources.to_pylist()]
        own = np.array([-1 if place is None else i for i, place in enumerate(places)] + [-1], np.int64)
        return Keys(own[codes], places)

    return keys


def _together(relation: Relation) -> dict[tuple[str, str], str]:
    """For each source the first of all with which it is tied."""
    above: dict[tuple[str, str], tuple[str, str]] = {}

    def root(node: tuple[str, str]) -> tuple[str, str]:
        above.setdefault(node, node)
        while above[node] != node:
            above[node] = above[above[node]]
            node = above[node]
        return node

    for tie in relation.ties or ():
        nodes = [(member.topic, member.source) for member in tie.members]
        for node in nodes[1:]:
            low, high = sorted((root(nodes[0]), root(node)))
            above[high] = low
        root(nodes[0])
    return {node: " ".join(root(node)) for node in list(above)}
