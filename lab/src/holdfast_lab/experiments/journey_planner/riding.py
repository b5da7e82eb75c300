"""The planner in a network: sensors' nodes with components, and users whose devices go from node to node.

Whoever schedules it (nodes with or without radios) says when a moment has come, and what nodes tell devices.
A device knows the map: the place of a road's sensors is that road for it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.kinds.component.compile import smc
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.component.detector import component
from holdfast.kinds.component.detector.component import InstantState
from holdfast.kinds.component.detector.knowledge import Knowledge, of_event
from holdfast.kinds.component.detector.manager import TIME, Components, knowledge
from holdfast.kinds.component.detector.smc import Smc
from holdfast.model.event import Event
from holdfast.model.instant import MINUTE, SECOND, Duration, Instant
from holdfast.network.protocols.qps.request import (
    QpsAdvertiseRequest,
    QpsNotify,
    QpsPublishRequest,
    QpsSubscribeRequest,
)
from holdfast.network.protocols.sps.node import InsertComponent
from holdfast.network.protocols.sps.proxy import ArriveRequest, GotRequest
from holdfast.network.protocols.sps.traveller import BroughtEvent, Ticket, Traveller, wish
from holdfast.network.sim.frame import NodeId

from .central import Notice
from .city import City
from .count import to_compared
from .definition import COMPONENTS, CONGESTION, HIGH, LOOP, NEAR, SLOW, SPEED, USER, Limits, definition
from .scene import JourneyScene, user_name

EPSILON = 2.0
BEFORE = 5 * MINUTE
"""How long the network has to settle before the first reading."""
PATIENCE = MINUTE
"""How long a device waits for what may be on its way, before it looks at a moment."""
TOPICS = (LOOP, SPEED, HIGH, SLOW, CONGESTION)
CONTROL = "control"
"""Who stands still and hears of every congestion."""


@dataclass(eq=False)
class Device:
    """A user's: the component that it carries, and what it is told."""

    traveller: Traveller
    node: NodeId | None = None
    state: InstantState = field(default_factory=InstantState)


@dataclass(eq=False)
class Ride:
    """A scene in a city; ``ask`` brings a request to a node."""

    scene: JourneyScene
    city: City
    limits: Limits
    ask: Callable[[NodeId, Any], None]
    received: list[tuple[Instant, QpsNotify]] = field(default_factory=list)
    """What the control room was told, and when."""
    reports: list[Notice] = field(default_factory=list)
    brought: Counter[str] = field(default_factory=Counter)
    """How often each device was told of a congestion."""
    moves: int = 0

    def __post_init__(self) -> None:
        self._near = smcs(self.limits)[NEAR]
        self._roads = {self.city.spot(road): road for road in self.scene.roads}
        self._devices = {
            user_name(user): Device(self._traveller(user)) for user in range(len(self.scene.users))
        }
        self._readings: dict[Instant, list[Event]] = defaultdict(list)
        for event in self.scene.events():
            self._readings[event.time].append(event)
        self._road_of = {road.name: i for i, road in enumerate(self.scene.map.roads)}

    def _traveller(self, user: int) -> Traveller:
        home = self.city.junctions[int(self.scene.users[user, 0])]
        wanted = wish(CONGESTION, self.city.space, EPSILON)
        return Traveller(Ticket(user_name(user), self.city.places[home], (wanted,)))

    @property
    def start(self) -> Instant:
        """The moment that is the network's first."""
        return int(min(self._readings)) - BEFORE

    @property
    def length(self) -> Duration:
        return self.scene.last + 3 * PATIENCE - self.start

    @property
    def moments(self) -> list[Instant]:
        """When something is measured."""
        return sorted(self._readings)

    def begin(self, control: NodeId) -> None:
        """Place the components, each part on its sensors' node; and somebody listens."""
        for road, node in self.city.sensors.items():
            about = self.city.about(road)
            for topic in (LOOP, SPEED):
                self.ask(node, QpsAdvertiseRequest(f"{topic} {road}", topic, about))
            for name in (HIGH, SLOW, CONGESTION):
                self.ask(node, InsertComponent(name, local=True, region=about))
        self.ask(control, QpsSubscribeRequest(CONTROL, CONGESTION, self.city.space, EPSILON))
        for user, name in enumerate(self._devices):
            self._comes(name, self.city.junctions[int(self.scene.users[user, 0])])

    def publish_at(self, at: Instant) -> None:
        """Everything that is measured at that time; and users say where they are."""
        for event in self._readings[at]:
            if event.topic == USER:
                self._on_position(event)
            else:
                self._on_measurement(event)
        for device in self._devices.values():
            self._looks(device, at - PATIENCE)

    def _on_measurement(self, event: Event) -> None:
        assert event.place is not None
        road = self._road_of[event.place]
        values = {**event.attributes, TIME: event.time - self.start}
        self.ask(
            self.city.sensors[road],
            QpsPublishRequest(f"{event.topic} {road}", event.topic, self.city.spot(road), values),
        )

    def _on_position(self, event: Event) -> None:
        component.take(self._near, self._devices[event.source].state, of_event(event))
        user = int(event.source.removeprefix("user-")) - 1
        step = int((event.time - self.scene.times[0]) // (self.scene.times[1] - self.scene.times[0]))
        self._comes(event.source, self.city.junctions[int(self.scene.users[user, step])])

    def _comes(self, name: str, node: NodeId) -> None:
        device = self._devices[name]
        if device.node != node:
            self.moves += device.node is not None
            device.node = node
            self.ask(node, ArriveRequest(device.traveller.next_ticket()))

    def _looks(self, device: Device, until: Instant) -> None:
        self.reports += [to_compared(told) for told in component.advance(self._near, device.state, until)]

    def again(self, name: str) -> None:
        """A user says again where he is."""
        device = self._devices[name]
        if device.node is not None:
            self.ask(device.node, ArriveRequest(device.traveller.ticket))

    def on_delivery(self, node: NodeId, what: Any, now: Instant) -> None:
        """What a node has for somebody: a device hears it if it is there."""
        if isinstance(what, QpsNotify) and what.client == CONTROL:
            self.received.append((now, what))
        if not isinstance(what, BroughtEvent) or self._devices[what.client].node != node:
            return
        device = self._devices[what.client]
        if (event := device.traveller.accept(what)) is not None:
            self.brought[what.client] += 1
            component.take(self._near, device.state, self._known(event))
        self.ask(node, GotRequest(device.traveller.ticket, what))

    def _known(self, event: QpsNotify) -> Knowledge:
        """As the device knows it: of which road, and where that is in its map."""
        found = knowledge(event)
        road = self.scene.map.roads[self._roads[(event.location[0], event.location[1])]]
        return Knowledge(
            found.topic,
            found.time + self.start,
            found.source,
            found.attributes,
            self.scene.points[road.start],
            road.name,
            found.status,
            f"{CONGESTION} {road.name}",
        )

    def end(self) -> None:
        """Devices look at all that is left."""
        for device in self._devices.values():
            self._looks(device, self.scene.last + 1)

    def delays(self) -> list[float]:
        """Seconds from the moment of a congestion until the control room knew."""
        return [(now - int(str(what.values[TIME]))) / SECOND for now, what in self.received]


@cache
def smcs(limits: Limits, by: str = "place") -> dict[str, Smc]:
    """The components; of nodes, which know where a road is and not how it is called, by location."""
    text = definition(limits).replace("each place", f"each {by}")
    return {each.name: smc(each) for each in check(parse(text)).of(ComponentCondition)}


def manager(limits: Limits, city: City, node: NodeId) -> Components:
    """What a node has of them."""
    some = {name: one for name, one in smcs(limits, "location").items() if name in COMPONENTS[:3]}
    return Components(some, city.space, city.places[node])
