"""Without a middleware: publishers send everything straight to those who want to know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ...model.event import Event, Notification
from ...model.instant import Duration
from ...protocols.dds.message import Data, Name, Stream, bytes_of
from ...sim.frame import NodeId
from ...sim.host import KIND
from ...sim.node import Node
from ...sim.routing.datagram import Datagram
from ...sim.routing.router import Router
from .account import LOST, ON_THE_WAY, Row, Wish
from .conditions import Watch
from .family import Scene


@dataclass(frozen=True)
class Direct:
    """Readings go straight to the subscribers' nodes; conditions are evaluated there."""

    kind: ClassVar = "direct"

    def on(self, scene: Scene) -> Straight:
        """Put on nodes."""
        return Straight(scene)


class Straight:
    """Routers alone, and what subscribers make of readings."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._routers: dict[NodeId, Router] = {}
        self._watches: dict[Wish, Watch | None] = {}

    def destinations(self) -> Iterable[NodeId]:
        return [wish.node for wish in self._scene.wishes]

    def boot(self, node: Node, router: Router) -> None:
        self._routers[node.id] = router
        router.register_handler(KIND, False, partial(self._came, node.id))
        for wish in self._scene.wishes:
            if wish.node == node.id:
                self._watches[wish] = Watch.of(wish.condition)

    def bury(self, _node: NodeId) -> None:
        """Nothing to be done: what it knew is gone when it boots again."""

    def offset(self, _node: NodeId) -> Duration | None:
        return None

    def publish(self, node: Node, event: Event) -> None:
        """To each node that subscribes, once; as long as a sample of DDS is."""
        wanted: dict[NodeId, list[str]] = {}
        for wish in self._scene.wishes:
            if wish.topic.name == event.topic and wish.at(event.time):
                wanted.setdefault(wish.node, []).append(wish.name)
        data = Data(Name(event.source, Stream(0), 0, event.sequence), False, event.attributes, event.time)
        for subscriber, names in wanted.items():
            cause = self._scene.account.charge(names, "Data", "data")
            self._routers[node.id].send(subscriber, KIND, event, bytes_of(data), cause)

    def _came(self, node: NodeId, datagram: Datagram) -> None:
        event: Event = datagram.message
        for wish, watch in self._watches.items():
            if wish.node == node and wish.topic.name == event.topic and wish.at(event.time):
                for what in _told(wish, watch, event):
                    self._scene.account.tell(wish, what)

    def fate(self, _wish: Wish, event: Event) -> str:
        held = (
            datagram.message
            for router in self._routers.values()
            if router.alive
            for datagram in router.held()
        )
        return ON_THE_WAY if event in held else LOST

    def measures(self) -> Row:
        return {}


def _told(wish: Wish, watch: Watch | None, event: Event) -> Iterator[Notification]:
    if watch is None:
        yield Notification(wish.name, event, "atomic", None, None)
        return
    for told in watch.react(event):
        yield Notification(wish.name, told.event, told.status, told.scope, told.since)
