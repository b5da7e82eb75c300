"""Run the journey planner on nodes without radios, and on nodes with radios."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, cast

from holdfast.model.event import Event
from holdfast.model.instant import HOUR, MINUTE, SECOND, Duration, Instant
from holdfast.network.motes.account import NodeSubscription, Row
from holdfast.network.motes.case import resolve_files
from holdfast.network.motes.context import ProtocolNodes
from holdfast.network.motes.context import RunContext as Nodes
from holdfast.network.motes.field import FieldNetwork
from holdfast.network.motes.nodes import Grid
from holdfast.network.motes.routing import Geographic
from holdfast.network.motes.run import SimulationRun
from holdfast.network.motes.scenario import Energy, Scenario
from holdfast.network.protocols.qps import envelope
from holdfast.network.protocols.qps.broker import QpsBroker
from holdfast.network.protocols.qps.deployment import QpsDeployment
from holdfast.network.protocols.qps.mapping import RoleMapping
from holdfast.network.protocols.qps.physical import PhysicalNode
from holdfast.network.protocols.qps.tree import ScopeTree
from holdfast.network.protocols.sps import proxy
from holdfast.network.protocols.sps.node import LivingSign, ReviveRequest, SpsNode
from holdfast.network.protocols.sps.proxy import ArriveRequest, ProxyNode
from holdfast.network.sim import node as mote
from holdfast.network.sim.chance import stream
from holdfast.network.sim.field import Field
from holdfast.network.sim.frame import NodeId
from holdfast.network.sim.host import NodeHost, RoutingService
from holdfast.network.sim.propagation import UnitDisk
from holdfast.network.sim.routing.datagram import Destination
from holdfast.network.sim.topology import Topology

from .city import REACH, City
from .definition import Limits
from .riding import TOPICS, Ride, manager
from .scene import JourneyScene, user_name

LEVELS = 4
RENEWAL = 2 * MINUTE
"""With radios: the period after which nodes repeat advertisements, subscriptions and positions."""
WAIT = 20 * SECOND
BEACONS = 10 * SECOND
WITHIN = MINUTE
"""With radios: the time over which nodes boot, and within which a user connects to the next node."""


def on_field(scene: JourneyScene, city: City, limits: Limits) -> tuple[Ride, FieldNetwork]:
    """Run a day without radios: no message is lost, and a hop takes 10 ms."""
    deployment = QpsDeployment(tree=ScopeTree((0.0, 0.0), city.side, LEVELS), topics=TOPICS)

    def machine(node: NodeId) -> ProxyNode:
        at = city.places[node]
        inner = SpsNode(QpsBroker(deployment, at), manager(limits, city, node), at, city.space, every=HOUR)
        return ProxyNode(inner, at)

    network = FieldNetwork(Field(city.places, REACH), machine)
    ride = Ride(scene, city, limits, network.ask)
    network.on_delivery = lambda node, what: ride.on_delivery(node, what, network.now)
    ride.begin(control=0)
    for time in ride.moments:
        network.run(time - ride.start - network.now)
        ride.publish_at(time)
    network.run(ride.length - network.now)
    ride.end()
    return ride, network


@dataclass(frozen=True, kw_only=True)
class OnAir:
    """The planner as a protocol of the simulator."""

    kind: ClassVar = "journey planner"
    scene: JourneyScene
    city: City
    limits: Limits

    def on(self, nodes: Nodes) -> Motes:
        """Set up the protocol for a run."""
        return Motes(self, nodes)


class Motes(ProtocolNodes):
    """The nodes of the planner in the simulator."""

    def __init__(self, given: OnAir, nodes: Nodes) -> None:
        super().__init__(nodes)
        self._given, self._nodes = given, nodes
        self._deployment = QpsDeployment(
            tree=ScopeTree((0.0, 0.0), given.city.side, LEVELS - 1),
            topics=TOPICS,
            renewal=RENEWAL,
            mapping=RoleMapping(check=RENEWAL, patience=WAIT, room=nodes.room - 24),
        )
        self._hosts: dict[NodeId, NodeHost] = {}
        self.ride = Ride(given.scene, given.city, given.limits, self._ask)
        network = nodes.network
        network.at(2 * WITHIN, partial(self.ride.begin, 0))
        for time in self.ride.moments:
            network.at(time - self.ride.start, partial(self.ride.publish_at, time))
        for user in range(len(given.scene.users)):
            first = 3 * WITHIN + self._phase("again", user)
            for at in range(first, self.ride.length, RENEWAL):
                network.at(at, partial(self.ride.again, user_name(user)))

    def _phase(self, *of: Any) -> Duration:
        """Return a random offset within a minute, so that nodes do not act at the same time and collide."""
        return stream(self._nodes.seed, *of).randrange(WITHIN)

    def _ask(self, node: NodeId, request: Any) -> None:
        if isinstance(request, ArriveRequest):
            after = self._phase("arrive", request.ticket.client)
            self._nodes.network.at(self._nodes.network.now + after, partial(self._hosts[node].ask, request))
        else:
            self._hosts[node].ask(request)

    def destinations(self) -> Iterable[Destination]:
        return [(0.0, 0.0)]

    def boot(self, node: mote.Node, router: RoutingService) -> None:
        node.after(self._phase("boot", node.id), partial(self._begins, node), router)

    def _begins(self, node: mote.Node, router: RoutingService) -> None:
        city = self._given.city
        at = city.places[node.id]
        components = manager(self._given.limits, city, node.id)
        inner = SpsNode(PhysicalNode(self._deployment, at), components, at, city.space, HOUR)
        machine = ProxyNode(inner, at, RENEWAL)
        host = NodeHost(node, machine, router, size=bytes_of, deliver=self._on_delivery)
        self._hosts[node.id] = host

    def _on_delivery(self, node: mote.Node, what: Any) -> None:
        self.ride.on_delivery(node.id, what, node.now)

    def bury(self, node: NodeId) -> None:
        self._hosts.pop(node, None)

    def publish(self, _node: mote.Node, _event: Event) -> None:
        """Do nothing: the ride publishes all events."""

    def fate(self, _wish: NodeSubscription, _event: Event) -> str:
        return "lost"


def bytes_of(given: Any) -> int:
    """Return the size of a message of any layer on a mote, in bytes."""
    match given:
        case proxy.SubscriberMoved() | proxy.RedirectedEvent() | proxy.EventArrived():
            return proxy.bytes_of(given)
        case LivingSign() | ReviveRequest():
            return 4 + len(given.names)
    return envelope.bytes_of(given)


def on_air(scene: JourneyScene, city: City, limits: Limits, seed: int) -> tuple[Ride, Row]:
    """Simulate some hours with radios; return the ride and the measures of the network."""
    protocol = OnAir(scene=scene, city=city, limits=limits)
    until: Instant = Ride(scene, city, limits, lambda *_: None).length
    case = resolve_files(
        Scenario(
            nodes=Grid(rows=1, columns=len(city.places), spacing=1.0),
            duration=until,
            links=UnitDisk(REACH),
            routing=Geographic(beacons=BEACONS),
            energy=Energy(platform="micaz"),
        )
    )
    names = tuple(map(str, range(len(city.places))))
    scenario = replace(case.scenario, protocol=cast(Any, protocol))
    case = replace(case, topology=Topology(names, city.places), scenario=scenario)
    run = SimulationRun(case, seed)
    outcome = run.finish()
    ride = cast(Motes, run.family).ride
    ride.end()
    return ride, outcome.measures
