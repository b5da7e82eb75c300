"""Components in shards: which run together, by what their events meet, and in how many stages.

Components that keep the same apart run in one operator: one machine in every shard, and an event's
shard is a hash of its key [law 3].  Where the key changes a component runs in a later stage, in which
the events below arrive as readings that say their status, and are made events again by a component of
that name.  Whoever runs an operator need not know what its conditions are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..lang.condition import Component, Rule
from ..lang.ops import Compare, Expression, Member, Text, Truth
from ..lang.rewrite import parts
from ..machines.detector.component import Id, signature
from ..machines.detector.knowledge import Knowledge, of_event
from ..model.batch import to_events
from ..model.event import Event, Notification, Transition
from ..model.instant import Duration, Instant
from ..model.qos import Delivery
from ..model.query import Closest, Index, Query
from ..model.topic import Attribute, Topic
from .detector import detection, key, meaning, scope
from .sites import PLACE, Site, sites, waiting

_STATUS, _KEY = "@status", "@key"
_COLUMNS = {"location": PLACE, "topic": (), "status": ()}
"""The columns that tell what is kept apart; of anything else, the column of that name."""


class Fusing(Protocol):
    """A condition machine over several topics, whose batch is one batch for each of them."""

    @property
    def waits(self) -> tuple[Duration, ...]:
        """How long each of its conditions waits for events."""

    def initial(self) -> Any:
        """The state before any event."""

    def advance(self, state: Any, until: Instant) -> tuple[Any, list[Transition]]:
        """Let event time come as far as ``until``; ``NEVER`` lets it come to the last event."""

    def step(
        self, state: Any, batches: Mapping[str, pa.RecordBatch], until: Instant
    ) -> tuple[Any, list[Transition]]:
        """Take a batch of each topic, after which event time has come as far as ``until``."""

    def matters(self, topic: str, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which events some condition looks at."""

    def outside(self, topic: str, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """For each condition, how many events lie in no scope of it."""

    def to_bytes(self, state: Any) -> bytes:
        """The state, to be kept."""

    def from_bytes(self, raw: bytes) -> Any:
        """The state that ``to_bytes`` kept."""

    def adopted(self, state: Any, was: Sequence[int | None]) -> Any:
        """The state of a machine whose condition ``i`` had the number ``was[i]``, if it had one."""


@dataclass(frozen=True)
class Operator:
    """What one machine runs in every shard, or, without a key, in the first.

    ``machine`` has conditions of which ``names[i]`` is the subscription, ``None`` for what it only
    hears; ``topics`` are what it takes, and ``columns`` what it needs of them.
    """

    stage: int
    key: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...]
    """For each component why it has no key, if it has none."""
    machine: Fusing
    names: tuple[str | None, ...]
    prints: tuple[str, ...]
    """``prints[i]`` tells condition ``i`` from all others: its name and what it means."""
    topics: Mapping[str, Topic]
    columns: Mapping[str, tuple[str, ...]]
    heard: frozenset[str]
    """The topics of components of earlier stages."""
    followed: Mapping[str, Topic]
    """The components that later stages hear, with the topics that their events become."""
    strictest: Duration | None
    """The least that a component waits that tells of late events; ``None`` if none does."""
    said_by: Callable[[int, str], str | None] = field(default=lambda condition, id: id, kw_only=True)
    """What tells whom a condition speaks of from the others, given the id in its transitions."""
    shown: Callable[[str], str | None] = field(default=lambda id: id, kw_only=True)
    """That id as people read it."""
    listens: tuple[tuple[str, ...], ...] = field(default=(), kw_only=True)
    """The topics of readings that each condition hears."""

    @cached_property
    def subscriptions(self) -> tuple[str, ...]:
        """Whom it serves."""
        return tuple(name for name in self.names if name is not None)

    def listening(self) -> dict[str, list[str]]:
        """For each subscription the topics of readings that it hears."""
        pairs = zip(self.names, self.listens, strict=True)
        return {name: list(topics) for name, topics in pairs if name is not None}

    @cached_property
    def _key(self) -> Callable[[Knowledge], str | None] | None:
        return key(self.key)

    # --- where events are read ---

    def keys(self, topic: str, batch: pa.RecordBatch) -> Keys:
        """By what the events of a batch meet others; of equal ones one is looked at."""
        names = [column for name in self.key for column in _COLUMNS.get(name, (name,))]
        codes, first = alike(batch, names)
        some = to_events(self.topics[topic], batch.take(pa.array(first)))
        return Keys(codes, [self._text(event) for event in some])

    def _text(self, event: Event) -> str | None:
        return None if self._key is None else self._key(_known(event, self.topics))

    def outside(self, topic: str, batch: pa.RecordBatch) -> dict[str, int]:
        """How many events of a topic lie in no scope or location, by subscription."""
        counts = zip(self.names, self.machine.outside(topic, batch), strict=True)
        return {name: int(count) for name, count in counts if name is not None and count}

    def needed(self, topic: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch without columns that nobody looks at."""
        return batch.select([name for name in batch.schema.names if name in self.columns[topic]])

    # --- what it says ---

    def addressed(self, said: Iterable[Transition]) -> Iterator[Notification]:
        """Transitions of the machine, for whom they concern."""
        for event, status, id, since, condition in said:
            if (name := self.names[condition]) is not None:
                yield Notification(name, event, status, None if id is None else self.shown(id), since)

    def retold(self, said: Iterable[Transition]) -> dict[str, list[Event]]:
        """Transitions of components that later stages hear, as readings."""
        found: dict[str, list[Event]] = {}
        for event, status, id, _, condition in said:
            topic = self.followed.get(self.names[condition] or "")
            if topic is not None and status != "late" and id is not None:
                own = {_STATUS: status, _KEY: self.said_by(condition, id)}
                reading = replace(event, topic=topic.name, attributes={**event.attributes, **own})
                found.setdefault(topic.name, []).append(reading)
        return found


class Keys(NamedTuple):
    """``texts[codes[i]]`` is the key of event ``i``, ``None`` if it has none."""

    codes: NDArray[np.int64]
    texts: list[str | None]


# --- the operators of components ---------------------------------------------------------------


def operators(components: Sequence[Component], topics: Iterable[Topic]) -> list[Operator]:
    """The operators of components, those of an earlier stage first."""
    where, waits = sites(components), waiting(components)
    together: dict[tuple[int, tuple[str, ...]], list[Component]] = {}
    for component in sorted(components, key=lambda one: where[one.name].stage):
        together.setdefault(where[component.name][:2], []).append(component)
    by_name = {component.name: component for component in components}
    heard = {at: _heard(mine, by_name) for at, mine in together.items()}
    followed = {one.name for some in heard.values() for one in some}
    return [_operator(where, mine, heard[at], waits, followed, list(topics)) for at, mine in together.items()]


def _heard(mine: Sequence[Component], by_name: Mapping[str, Component]) -> list[Component]:
    """The components that some build on and that are not among them."""
    own = {one.name for one in mine}
    below = dict.fromkeys(topic.name for one in mine for topic in one.listens)
    return [by_name[name] for name in below if name in by_name and name not in own]


def _operator(
    where: Mapping[str, Site],
    mine: Sequence[Component],
    heard: Sequence[Component],
    waits: Mapping[str, Duration],
    followed: set[str],
    topics: Sequence[Topic],
) -> Operator:
    stage, apart, _ = where[mine[0].name]
    echoes = [echo(one, waits[one.name]) for one in heard]
    run = [*echoes, *mine]
    told = [topic for one in echoes for topic in one.listens]
    machine = replace(detection(run, [*topics, *told]).machine, shown=_written)
    dropping = [waits[one.name] for one in mine if _drops_late(one)]
    return Operator(
        stage,
        apart,
        tuple((one.name, why) for one in mine if (why := where[one.name].reason) is not None),
        machine,
        (*(None for _ in echoes), *(one.name for one in mine)),
        tuple(f"{one.name} {meaning(one)}" for one in run),
        machine.topics,
        {t.name: _columns(t, run, whole=bool(dropping)) for t in machine.topics.values()},
        frozenset(topic.name for topic in told),
        {one.name: told_as(one.topic) for one in mine if one.name in followed},
        min(dropping, default=None),
        said_by=lambda condition, id: signature(machine.smcs[condition], _id(id)),
        shown=lambda id: scope(_id(id)),
        listens=tuple(tuple(t.name for t in one.listens if t in topics) for one in run),
    )


def _drops_late(component: Component) -> bool:
    return component.delivery.wait is not None and component.delivery.late == "drop"


def needed(
    components: Sequence[Component], topics: Iterable[Topic], *, whole: bool = False
) -> dict[str, frozenset[str]]:
    """For each topic of readings the columns that some component looks at, or all."""
    late = whole or any(map(_drops_late, components))
    heard = {topic for one in components for topic in one.listens}
    return {t.name: frozenset(_columns(t, components, whole=late)) for t in topics if t in heard}


def _columns(topic: Topic, components: Iterable[Component], *, whole: bool) -> tuple[str, ...]:
    """What components that listen to a topic look at, or publish; late events are told whole."""
    used = {name for one in components if topic in one.listens for name in _used(one)}
    own = (a.name for a in topic.attributes if whole or a.name in used)
    return ("time", "source", "sequence", *PLACE, *own)


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


def told_as(topic: Topic) -> Topic:
    """The topic of readings that events of a stage become: they say their status and their key."""
    own = (Attribute(_STATUS, "text"), Attribute(_KEY, "text"))
    return Topic(f"@{topic.name}", (*topic.attributes, *own))


def _known(event: Event, topics: Mapping[str, Topic]) -> Knowledge:
    """What an event says; one of a component as it was said."""
    known = of_event(event)
    if _STATUS not in topics[event.topic].by_name:
        return known
    own = {name: value for name, value in known.attributes.items() if name not in (_STATUS, _KEY)}
    return msgspec.structs.replace(
        known, topic=event.topic.removeprefix("@"), attributes=own, status=known.attributes[_STATUS]
    )


def echo(component: Component, wait: Duration) -> Component:
    """A component that makes of those readings the events that they were."""
    topic = told_as(component.topic)
    spawns = bool(component.keys) or isinstance(component.here, str)
    query = Query(Closest(Index(topic.name)), each=(_KEY,) if spawns else ())
    started, ended = (
        (Truth(True), Truth(True))
        if component.momentary
        else (Compare("==", Member("A", _STATUS), Text(status)) for status in ("ingress", "egress"))
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


# --- time --------------------------------------------------------------------------------------


def progress(operators: Iterable[Operator]) -> frozenset[str]:
    """The topics of readings that say how far time has come."""
    return frozenset(name for one in operators for name in one.topics if name not in one.heard)


def until(reached: Mapping[str, Instant], topics: Iterable[str], beginning: Instant) -> Instant:
    """How far time has come for components: as far as the latest reading of any of their topics."""
    return max((reached[topic] for topic in topics if topic in reached), default=beginning)
