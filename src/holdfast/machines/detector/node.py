"""A node of State-based Publish/Subscribe: the interfaces of the thesis' Tables 5.1 to 5.3.  [F50, F51]

Publish/subscribe is the only part that clients see; an information space (an internal subscriber)
and the components (internal publishers) stand beside it.  ``insert_smc`` gives a component to the
manager and its queries to the information space, ``publish`` notifies whoever listens, and as the
clock advances each component is evaluated as far as the InfoS time of its level.  The node reads no
clock: it is told the time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ...errors import UsageError
from ...model.instant import BEGINNING, Instant
from ...model.query import WHOLE, Group
from . import component
from .dag import levels
from .knowledge import Knowledge
from .query import contains
from .smc import Smc
from .stability import Stability, info_time, observed

Name = tuple[str, str]
"""The topic of a component and, of one that was decomposed, its part."""


class Delivery(NamedTuple):
    """An event for a subscriber."""

    subscriber: str
    event: Knowledge


@dataclass
class Node:
    """What a node knows: components, adverts, subscriptions, and the latest event of every publisher."""

    stability: Stability = field(default_factory=Stability)
    clock: Instant = BEGINNING
    components: dict[Name, tuple[Smc, component.State]] = field(default_factory=dict)
    adverts: dict[tuple[str, str], Group] = field(default_factory=dict)
    subscriptions: dict[tuple[str, str], Group] = field(default_factory=dict)
    latest: dict[tuple[str, str], Knowledge] = field(default_factory=dict)


def advertise(node: Node, publisher: str, topic: str, region: Group = WHOLE) -> None:
    """A publisher says what it will publish, and about where."""
    node.adverts[topic, publisher] = region


def subscribe(node: Node, subscriber: str, topic: str, region: Group = WHOLE) -> list[Delivery]:
    """From now on, and first the latest event of every publisher: whoever comes in the middle of a
    condition knows of its start.  [F75]"""
    node.subscriptions[topic, subscriber] = region
    known = [event for (of, _), event in node.latest.items() if of == topic]
    return [Delivery(subscriber, event) for event in known if contains(region, "location", event, None)]


def unsubscribe(node: Node, subscriber: str, topic: str) -> None:
    """Hear no more."""
    node.subscriptions.pop((topic, subscriber), None)


def publish(node: Node, publisher: str, event: Knowledge, clock: Instant) -> list[Delivery]:
    """An event has come, at this time of the clock; how long it took adjusts the stabilization."""
    region = node.adverts.get((event.topic, publisher))
    if region is None or not contains(region, "location", event, None):
        raise UsageError(f"'{publisher}' publishes {event.topic} where it has not advertised it")
    node.stability = observed(node.stability, max(clock - event.time, 0))
    return [*_disseminate(node, publisher, event), *advance(node, clock)]


def insert_smc(node: Node, smc: Smc) -> None:
    """A component; one of the same name is replaced, by one that knows the latest events.  [F53, F75]"""
    known = {name: one for name, (one, _) in node.components.items()} | {(smc.topic, smc.part): smc}
    levels(known.values())  # a circle is refused before anything changes
    infos = [state.until for _, state in node.components.values()]
    state = component.State(max(infos, default=BEGINNING))
    node.components[smc.topic, smc.part] = (smc, state)
    advertise(node, smc.topic, smc.topic)
    for (topic, _), event in node.latest.items():
        if topic in smc.topics:
            component.take(smc, state, event)


def advance(node: Node, clock: Instant) -> list[Delivery]:
    """Let the clock come so far: each level is evaluated as far as its InfoS time.  [F76]"""
    node.clock = max(node.clock, clock)
    level = levels(smc for smc, _ in node.components.values())
    out: list[Delivery] = []
    for smc, state in sorted(node.components.values(), key=lambda one: level[one[0].topic]):
        until = info_time(node.stability, node.clock, level[smc.topic]) + 1
        for told in component.advance(smc, state, until):
            out += _disseminate(node, told.event.signature or smc.topic, told.event)
    return out


def _disseminate(node: Node, publisher: str, event: Knowledge) -> list[Delivery]:
    """Keep an event as its publisher's latest, give it to components and to whoever subscribed."""
    before = node.latest.get((event.topic, publisher))
    if before is None or before.time <= event.time:
        node.latest[event.topic, publisher] = event
    for smc, state in node.components.values():
        if event.topic in smc.topics:
            component.take(smc, state, event)
    return [
        Delivery(subscriber, event)
        for (topic, subscriber), region in node.subscriptions.items()
        if topic == event.topic and contains(region, "location", event, None)
    ]
