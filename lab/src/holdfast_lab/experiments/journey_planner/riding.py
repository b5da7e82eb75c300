"""The journey planner on a network: components at sensor nodes, and users whose devices change nodes.

`scheduled` drives it, on nodes with or without radios: it advances time and passes deliveries to devices. A
device has a map, so it recognizes a road by the position of its sensors.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from msgspec.structs import replace

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
"""The time that the network has to settle before the first reading."""
PATIENCE = MINUTE
"""How long a device waits for delayed events before it evaluates a time."""
TOPICS = (LOOP, SPEED, HIGH, SLOW, CONGESTION)
CONTROL = "control"
"""The name of a subscriber that does not move and receives every congestion."""


@dataclass(eq=False)
class Device:
    """The device of a user: its component and its connection to a node."""

    traveller: Traveller
    node: NodeId | None = None
    state: InstantState = field(default_factory=InstantState)


@dataclass(eq=False)
class Ride:
    """A scene in a city; ``ask`` passes a request to a node."""

    scene: JourneyScene
    city: City
    limits: Limits
    ask: Callable[[NodeId, Any], None]
    received: list[tuple[Instant, QpsNotify]] = field(default_factory=list)
    """The notifications of the control room, with their times."""
    reports: list[Notice] = field(default_factory=list)
    brought: Counter[str] = field(default_factory=Counter)
    """The number of congestion events that each device received."""
    moves: int = 0

    def __post_init__(self) -> None:
        self._near = smcs(self.limits)[NEAR]
        self._roads = {self.city.spot(road): road for road in self.scene.roads}
        self._devices: dict[str, Device] = {}
        for user, junctions in enumerate(self.scene.users.tolist()):
            home, wanted = self.city.junctions[junctions[0]], wish(CONGESTION, self.city.space, EPSILON)
            ticket = Ticket(user_name(user), self.city.places[home], (wanted,))
            self._devices[user_name(user)] = Device(Traveller(ticket))
        self._readings: dict[Instant, list[Event]] = defaultdict(list)
        for event in self.scene.events():
            self._readings[event.time].append(event)
        self._road_of = {road.name: i for i, road in enumerate(self.scene.map.roads)}

    @property
    def start(self) -> Instant:
        """The time of the scene at which the network's clock is 0."""
        return int(min(self._readings)) - BEFORE

    @property
    def length(self) -> Duration:
        return self.scene.last + 3 * PATIENCE - self.start

    @property
    def moments(self) -> list[Instant]:
        """The times of readings."""
        return sorted(self._readings)

    def begin(self, control: NodeId) -> None:
        """Place components at the nodes of their sensors, subscribe the control room, and connect the
        devices.
        """
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
        """Publish the readings and positions of a time, and let the devices evaluate."""
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
        spot = self.city.spot(road)
        published = QpsPublishRequest(f"{event.topic} {road}", event.topic, spot, values)
        self.ask(self.city.sensors[road], published)

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
        self.reports += [
            to_compared(published) for published in component.advance(self._near, device.state, until)
        ]

    def again(self, name: str) -> None:
        """Announce a user's position to its node again."""
        device = self._devices[name]
        if device.node is not None:
            self.ask(device.node, ArriveRequest(device.traveller.ticket))

    def on_delivery(self, node: NodeId, what: Any, now: Instant) -> None:
        """Process a delivery of a node; a device receives it only while it is at that node."""
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
        """Convert an event for a device, which takes the road and its position from its map."""
        found = knowledge(event)
        road = self.scene.map.roads[self._roads[(event.location[0], event.location[1])]]
        place = {"at": self.scene.points[road.start], "place": road.name}
        return replace(found, time=found.time + self.start, signature=f"{CONGESTION} {road.name}", **place)

    def end(self) -> None:
        """Evaluate the remaining events of all devices."""
        for device in self._devices.values():
            self._looks(device, self.scene.last + 1)

    def delays(self) -> list[float]:
        """Return the delays from congestions to the control room's notifications, in seconds."""
        return [(now - int(str(what.values[TIME]))) / SECOND for now, what in self.received]


@cache
def smcs(limits: Limits, by: str = "place") -> dict[str, Smc]:
    """Compile the components; on nodes, which know positions but not names of roads, they are keyed by
    location.
    """
    text = definition(limits).replace("each place", f"each {by}")
    return {each.name: smc(each) for each in check(parse(text)).of(ComponentCondition)}


def manager(limits: Limits, city: City, node: NodeId) -> Components:
    """Return the components that can run on a node."""
    some = {name: one for name, one in smcs(limits, "location").items() if name in COMPONENTS[:3]}
    return Components(some, city.space, city.places[node])
