"""Checked relationships become the machine of :mod:`holdfast.machines.relation`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import repeat

import numpy as np
import pyarrow as pa

from ...kernels.relate import together
from ...lang.condition import Related
from ...machines.inherited import Inheriting
from ...machines.keys import Keys as Names
from ...machines.relation.machine import Relations
from ...machines.relation.rows import Codes, Slot, members_of
from ...model.relation import Pairs, Relation
from ...model.topic import Topic
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
        machine=Inheriting(run, (0,), (run.wait,)),
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
        one.topic,
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
    if isinstance(relation.ties, Pairs):
        return tuple(Slot(topic, None, relation.accuracy) for topic in dict.fromkeys(relation.ties.topics))
    members = (member for tie in relation.ties for member in tie.members)
    return tuple(
        dict.fromkeys(
            Slot(m.topic, m.attribute, relation.accuracy if m.attribute is None else None) for m in members
        )
    )


def _sources(relation: Relation) -> dict[str, frozenset[str]]:
    """The sources that are named."""
    found: dict[str, set[str]] = {}
    if isinstance(relation.ties, Pairs):
        sides = zip(relation.ties.topics, (relation.ties.first, relation.ties.second), strict=True)
        for topic, sources in sides:
            found.setdefault(topic, set()).update(sources)
        return {topic: frozenset(sources) for topic, sources in found.items()}
    for tie in relation.ties or ():
        for member in tie.members:
            found.setdefault(member.topic, set()).add(member.source)
    return {topic: frozenset(sources) for topic, sources in found.items()}


def _keyed(relation: Relation) -> Callable[[str, pa.RecordBatch], Keys]:
    """Sources that are tied to one another, over however many ties, meet in one place."""

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
    """For each topic its sources, and the group of each: all with which it is tied; groups by their first."""
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
        mine = [i for i, node in enumerate(nodes) if node[0] == topic]
        names = Names.of(pa.array([nodes[i][1] for i in mine], pa.string()))
        of_topic[topic] = names, np.append(groups[mine], -1)
    return of_topic, pa.array([" ".join(nodes[i]) for i in firsts.tolist()], pa.string())
