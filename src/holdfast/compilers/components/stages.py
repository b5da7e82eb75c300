"""Components as operators: in one process all of them, in shards by what their events meet and in stages.

Components that keep the same apart run in one operator: one machine in every shard, and an event's
shard is a hash of its key [law 3].  Where the key changes a component runs in a later stage, in which
the events below arrive as readings that say their status, and are made events again by a component of
that name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...lang.condition import Component, Rule
from ...lang.ops import Compare, Expression, Member, Text, Truth
from ...lang.rewrite import parts
from ...machines.detector.component import Id, signature
from ...machines.detector.detector import Detector
from ...machines.detector.knowledge import Knowledge, of_event
from ...machines.inherited import Inheriting
from ...model.batch import to_events
from ...model.event import Event
from ...model.instant import Duration
from ...model.qos import Delivery
from ...model.query import Closest, Index, Query
from ...model.topic import Topic
from ..anew import looks_back
from ..operator import FIXED, KEY, RETOLD, STATUS, Keys, Operator, is_retold, told_as
from .machine import detector, key, meaning, scope
from .sites import PLACE, Site, sites, waiting

FAMILY = "components"
_COLUMNS = {"location": PLACE, "topic": (), "status": ()}
"""The columns that tell what is kept apart; of anything else, the column of that name."""


# --- in one process ----------------------------------------------------------------------------


def operators(components: Sequence[Component], topics: Sequence[Topic]) -> list[Operator]:
    """One machine runs them all, as they build on one another."""
    if not components:
        return []
    machine = detector(components, topics)
    return [_operator(machine, components, topics, {one.name for one in components})]


def _operator(
    machine: Detector, run: Sequence[Component], topics: Sequence[Topic], served: Collection[str]
) -> Operator:
    """The operator of a machine that runs components; those that are not served are only heard."""
    whole = machine.strictest is not None  # late events are told as they are
    columns = {topic.name: _columns(topic, run, whole=whole) for topic in machine.topics.values()}
    return Operator(
        family=FAMILY,
        machine=Inheriting(machine, tuple(map(looks_back, run)), machine.waits),
        names=tuple((one.name,) if one.name in served else () for one in run),
        meanings=tuple(map(meaning, run)),
        listens=tuple(tuple(t.name for t in one.listens if t in topics) for one in run),
        looks_at=columns,
        needs=columns,
        joins=True,
        behind=max(machine.waits),
    )


# --- in shards and stages ----------------------------------------------------------------------


def sharded(components: Sequence[Component], topics: Sequence[Topic]) -> list[Operator]:
    """The operators of components, those of an earlier stage first."""
    where, waits = sites(components), waiting(components)
    together: dict[tuple[int, tuple[str, ...]], list[Component]] = {}
    for component in sorted(components, key=lambda one: where[one.name].stage):
        together.setdefault(where[component.name][:2], []).append(component)
    by_name = {component.name: component for component in components}
    heard = {at: _heard(mine, by_name) for at, mine in together.items()}
    followed = {one.name for some in heard.values() for one in some}
    clock = frozenset(topic.name for one in components for topic in one.listens if topic in topics)
    return [
        replace(_staged(mine, heard[at], where, waits, topics, followed=followed), told_time_by=clock)
        for at, mine in together.items()
    ]


def _heard(mine: Sequence[Component], by_name: Mapping[str, Component]) -> list[Component]:
    """The components that some build on and that are not among them."""
    own = {one.name for one in mine}
    below = dict.fromkeys(topic.name for one in mine for topic in one.listens)
    return [by_name[name] for name in below if name in by_name and name not in own]


def _staged(
    mine: Sequence[Component],
    heard: Sequence[Component],
    where: Mapping[str, Site],
    waits: Mapping[str, Duration],
    topics: Sequence[Topic],
    *,
    followed: set[str],
) -> Operator:
    """The operator of components that keep the same apart, and hear some of earlier stages."""
    stage, apart, _ = where[mine[0].name]
    echoes = [echo(one, waits[one.name]) for one in heard]
    told = [topic for one in echoes for topic in one.listens]
    run = [*echoes, *mine]
    machine = replace(detector(run, [*topics, *told]), shown=_written)
    return replace(
        _operator(machine, run, topics, {one.name for one in mine}),
        keyed=_keyed(apart, machine.topics) if apart else None,
        key=apart,
        stage=stage,
        heard=frozenset(topic.name for topic in told),
        followed={one.name: told_as(one.topic) for one in mine if one.name in followed},
        said_by=lambda condition, id: signature(machine.smcs[condition], _id(id)),
        shown=lambda id: scope(_id(id)),
        reasons=tuple((one.name, why) for one in mine if (why := where[one.name].reason) is not None),
    )


def _keyed(apart: tuple[str, ...], topics: Mapping[str, Topic]) -> Callable[[str, pa.RecordBatch], Keys]:
    """By what events meet others; of equal ones one is looked at."""
    find, names = key(apart), [column for name in apart for column in _COLUMNS.get(name, (name,))]
    assert find is not None

    def keyed(topic: str, batch: pa.RecordBatch) -> Keys:
        codes, first = alike(batch, names)
        some = to_events(topics[topic], batch.take(pa.array(first)))
        return Keys(codes, [find(_known(event, topics[topic])) for event in some])

    return keyed


def _columns(topic: Topic, components: Iterable[Component], *, whole: bool) -> frozenset[str]:
    """What components that listen to a topic look at, or publish; late events are told whole."""
    used = {name for one in components if topic in one.listens for name in _used(one)}
    return frozenset((*FIXED, *(a.name for a in topic.attributes if whole or a.name in used)))


def _used(component: Component) -> Iterator[str]:
    yield from component.keys
    yield from (attribute.name for attribute in component.topic.attributes)
    for rule in (component.enter, component.exit):
        for op in (rule.when, *(op for _, op in rule.sets)):
            yield from _members(op)


def _members(op: Expression) -> Iterator[str]:
    if isinstance(op, Member):
        yield op.name
    for part in parts(op):
        yield from _members(part)


def _written(id: Id) -> str:
    return msgspec.json.encode(id).decode()


def _id(text: str) -> Id:
    return msgspec.json.decode(text, type=Id)


# --- events that reach a later stage -----------------------------------------------------------


def _known(event: Event, topic: Topic) -> Knowledge:
    """What an event says; one of a component as it was said."""
    known = of_event(event)
    if not is_retold(topic):
        return known
    own = {name: value for name, value in known.attributes.items() if name not in RETOLD}
    return msgspec.structs.replace(
        known, topic=event.topic.removeprefix("@"), attributes=own, status=known.attributes[STATUS]
    )


def echo(component: Component, wait: Duration) -> Component:
    """A component that makes of those readings the events that they were."""
    topic = told_as(component.topic)
    spawns = bool(component.keys) or isinstance(component.here, str)
    query = Query(Closest(Index(topic.name)), each=(KEY,) if spawns else ())
    started, ended = (
        (Truth(True), Truth(True))
        if component.momentary
        else (Compare("==", Member("A", STATUS), Text(status)) for status in ("ingress", "egress"))
    )
    return replace(
        component,
        inputs=(("A", query),),
        listens=(topic,),
        enter=Rule(started),
        exit=Rule(ended),
        keys=query.separate,
        here=None,
        tick=None,
        delivery=Delivery(wait, "apply"),
        level=1,
    )


# --- rows that are alike -----------------------------------------------------------------------


def alike(batch: pa.RecordBatch, names: Iterable[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A number for each row, equal where rows agree in some columns, and the first row of each number."""
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
