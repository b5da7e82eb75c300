"""Components as operators: one operator in a single process, and several operators by key and stage in
shards.

Components with the same key run in one operator, whose machine is the graph of their operators. A reading
that several of them consume is shuffled only once, and events between them stay in the shard. An event's
shard is a hash of its key [law 3]. Where the key changes, a component runs in a later stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...engine.carry_over import CarryingOver
from ...engine.operator import FIXED, Keys, Links, Operator, Presentation, is_derived, topic_of_condition
from ...model.batch import to_events
from ...model.instant import Duration
from ...model.query import Aggregate, Closest, Index, MemberSet, Multiple, Query, QueryRange
from ...model.topic import Topic
from .compile import component_group, key, meaning
from .condition import ComponentCondition, Components
from .detector.knowledge import of_event
from .group import ComponentGroup, readable_scope
from .machine import of_derived
from .members import members_in
from .sites import PLACE, sites

_COLUMNS = {"location": PLACE, "topic": (), "status": ()}
"""The columns that determine a part of the key. Any other part is the column of the same name."""


# --- in one process ----------------------------------------------------------------------------


def operators(components: Components, topics: Sequence[Topic]) -> list[Operator]:
    """Return one operator for all components; no operator without components."""
    return [_operator(component_group(components, topics), components, topics)] if components else []


def _operator(group: ComponentGroup, components: Components, topics: Sequence[Topic]) -> Operator:
    """Return the operator of a component group."""
    whole = group.traits.lateness is not None  # late events are emitted as they are
    columns = {topic.name: _columns(topic, components, whole=whole) for topic in group.topics.values()}
    return Operator(
        kind="component",
        machine=CarryingOver(group, tuple(map(looks_back, components)), group.waits),
        names=tuple((component.name,) for component in components),
        meanings=tuple(map(meaning, components)),
        reading_topics=tuple(tuple(t.name for t in c.listens if t in topics) for c in components),
        decisive_columns=columns,
        needed_columns=columns,
        joins=True,
        delay=max(group.waits),
    )


# --- in shards and stages ----------------------------------------------------------------------


def sharded(components: Components, topics: Sequence[Topic]) -> list[Operator]:
    """Return the operators of components for shards, sorted by stage. Components with the same stage and key
    share an operator."""
    where = sites(components)
    places: dict[tuple[int, tuple[str, ...]], list[ComponentCondition]] = {}
    for component in sorted(components, key=lambda component: where[component.name].stage):
        places.setdefault(where[component.name][:2], []).append(component)
    clock = frozenset(topic.name for c in components for topic in c.listens if topic in topics)
    found = []
    for (stage, apart), own in places.items():
        group = component_group(own, topics, components, label=lambda signature: signature)
        operator = replace(
            _operator(group, own, topics),
            keyed=_key_finder(apart, group.topics) if apart else None,
            key=apart,
            upstream_topics=frozenset(name for name, topic in group.topics.items() if is_derived(topic)),
            links=Links(stage=stage, clock_topics=clock),
            presentation=Presentation(
                label=readable_scope,
                reasons=tuple((c.name, why) for c in own if (why := where[c.name].reason) is not None),
            ),
        )
        found.append(operator)
    consumed = frozenset[str]().union(*(operator.upstream_topics for operator in found))
    derived = {component.name: topic_of_condition(component.topic) for component in components}
    derived = {name: topic for name, topic in derived.items() if topic.name in consumed}
    for i, operator in enumerate(found):
        consumed_of = {name: topic for name, topic in derived.items() if operator.serves((name,))}
        found[i] = replace(operator, links=replace(operator.links, derived_topics=consumed_of))
    return found


def _key_finder(apart: tuple[str, ...], topics: Mapping[str, Topic]) -> Callable[[str, pa.RecordBatch], Keys]:
    """Return a function that computes the keys of a batch, once for each distinct row."""
    find, names = key(apart), [column for name in apart for column in _COLUMNS.get(name, (name,))]
    assert find is not None

    def keyed(topic: str, batch: pa.RecordBatch) -> Keys:
        codes, first = alike(batch, names)
        known = of_derived if is_derived(topics[topic]) else of_event
        events = to_events(topics[topic], batch.take(pa.array(first)))
        return Keys(codes, [find(known(event)) for event in events])

    return keyed


def _columns(topic: Topic, components: Iterable[ComponentCondition], *, whole: bool) -> frozenset[str]:
    """Return the columns of a topic that components use or publish; all columns if late events are emitted
    (`whole`)."""
    used = {name for c in components if topic in c.listens for name in _columns_used_by(c)}
    whole = whole or is_derived(topic)
    return frozenset((*FIXED, *(a.name for a in topic.attributes if whole or a.name in used)))


def _columns_used_by(component: ComponentCondition) -> Iterator[str]:
    """Yield the attributes that a component uses or publishes."""
    yield from component.keys
    yield from (attribute.name for attribute in component.topic.attributes)
    for rule in (component.enter, component.exit):
        for op in (rule.when, *(op for _, op in rule.sets)):
            yield from (member.name for member in members_in(op))


# --- rows that are alike -----------------------------------------------------------------------


def alike(batch: pa.RecordBatch, names: Iterable[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return numbers for rows, such that rows with equal values in the columns `names` have equal numbers.

    The first result is the number of each row, the second the first row of each number.
    """
    codes = np.zeros(len(batch), np.int64)
    count = min(len(batch), 1)
    for name in dict.fromkeys(names):
        if name in batch.schema.names:
            column = batch.column(name)
            coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            own = np.asarray(coded.indices.cast(pa.int64()).fill_null(len(coded.dictionary)))
            both = pa.array(codes * (len(coded.dictionary) + 1) + own).dictionary_encode()
            codes, count = np.asarray(both.indices).astype(np.int64), len(both.dictionary)
    first = np.empty(count, np.int64)
    first[codes[::-1]] = np.arange(len(batch))[::-1]
    return codes, first


def looks_back(component: ComponentCondition) -> Duration:
    """Return how far back the windows of a component reach, in microseconds.

    The result is 0 if the component consumes only latest values, or values over all time.
    """
    return max((_looks_back(query) for _, query in component.inputs), default=0)


def _looks_back(query: Query) -> Duration:
    match query.time:
        case Closest(Index(int(at), True)):
            return max(0, -at)
        case Aggregate(_, QueryRange(Index(int(low), True))) | Multiple(_, QueryRange(Index(int(low), True))):
            return max(0, -low)
        case Aggregate(_, MemberSet(members)) | Multiple(_, MemberSet(members)):
            ago = (-at.value for at in members if at.relative and isinstance(at.value, int))
            return max([0, *ago])
    return 0
