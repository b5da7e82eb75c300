"""Without a middleware: publishers send everything straight to those who want to know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from ...model.event import Event
from ...model.instant import Duration
from ...protocols.dds.message import Data, Name, Stream, bytes_of
from ...sim.frame import NodeId
from ...sim.host import KIND, Routing
from ...sim.node import Node
from .account import LOST, ON_THE_WAY, Row, Wish
from .conditions import Watch, why_not_alone
from .family import Scene
from .sink import Sinks


@dataclass(frozen=True, kw_only=True)
class Direct:
    """Readings go straight to the subscribers' nodes; conditions are evaluated there."""

    kind: ClassVar = "direct"
    filters: Literal["sink", "source"] = "sink"
    """At the source: publishers send only what starts or ends a condition that they can evaluate alone."""

    def on(self, scene: Scene) -> Straight:
        """Put on nodes."""
        return Straight(scene, at_source=self.filters == "source")


class Straight:
    """Routers alone, and what subscribers make of readings."""

    def __init__(self, scene: Scene, at_source: bool) -> None:
        self._scene = scene
        alone = {name for name, each in scene.definition.filters.items() if why_not_alone(each) is None}
        self._filtered = [w for w in scene.wishes if at_source and not w.plain and w.name in alone]
        self._watches: dict[tuple[NodeId, Wish], Watch] = {}
        self._routers: dict[NodeId, Routing] = {}
        self._sinks = Sinks(scene.definition, scene.wishes, scene.account)

    def destinations(self) -> Iterable[NodeId]:
        return [wish.node for wish in self._scene.wishes]

    def boot(self, node: Node, router: Routing) -> None:
        self._routers[node.id] = router
        self._sinks.boot(node)
        served = self._scene.definition.operators() if self._filtered else {}
        for wish in self._filtered:
            self._watches[node.id, wish] = Watch(served[wish.name], wish.name)
        router.register_handler(KIND, False, lambda datagram: self._sinks.came(node, datagram.message))

    @property
    def patience(self) -> Duration | None:
        return None

    @property
    def cycle(self) -> Duration | None:
        return None

    def bury(self, _node: NodeId) -> None:
        """Nothing to be done: what it knew is gone when it boots again."""

    def offset(self, _node: NodeId) -> Duration | None:
        return None

    def publish(self, node: Node, event: Event) -> None:
        """To each node that subscribes, once; as long as a sample of DDS is."""
        wanted: dict[NodeId, list[str]] = {}
        for wish in self._scene.wishes:
            if event.topic in wish.topics and self._matters(node, wish, event) and wish.at(event.time):
                wanted.setdefault(wish.node, []).append(wish.name)
        data = Data(Name(event.source, Stream(0), 0, event.sequence), False, event.attributes, event.time)
        for subscriber, names in wanted.items():
            cause = self._scene.account.charge(names, "Data", "data")
            self._routers[node.id].send(subscriber, KIND, event, bytes_of(data), cause)

    def _matters(self, node: Node, wish: Wish, event: Event) -> bool:
        watch = self._watches.get((node.id, wish))
        return watch is None or bool(watch.react(event))

    def fate(self, _wish: Wish, event: Event) -> str:
        held = (datagram.message for datagram in self._scene.ledger.held())
        return ON_THE_WAY if event in held else LOST

    def measures(self) -> Row:
        return {}
