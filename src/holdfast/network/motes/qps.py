"""Quad-PubSub on motes: publish/subscribe by topic and place, over geographic routing. [SPS, chapter 4]"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from ...model.event import Event
from ...model.instant import SECOND, Duration, Instant
from ...model.quantity import Metres
from ...model.space import Rectangle
from ..protocols.qps import mapping, request
from ..protocols.qps.deployment import Compliance, QpsDeployment
from ..protocols.qps.envelope import Envelope, NodeEnvelope, SeekEnvelope, bytes_of, cause_of
from ..protocols.qps.physical import PhysicalNode
from ..protocols.qps.tree import MOST_LEVELS, ScopeTree
from ..protocols.wire_name import wire_name
from ..sim.frame import NodeId
from ..sim.host import NodeHost, RoutingService
from ..sim.node import Node
from ..sim.routing.datagram import Destination
from .account import LOST, ON_THE_WAY, NodeSubscription, Row
from .context import ChargingRouter, ProtocolNodes, RunContext, schedule_subscriptions
from .fault import ScenarioError, at
from .sink import Sinks

ENVELOPE = 12
"""The bytes that the physical layer writes before a message."""
SPREAD = 0.5
"""The share of a period over which nodes that start together distribute their renewals."""
REPORTS = 10 * SECOND
"""The period in µs in which a node reports its remaining energy to its broker."""


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Settings for the choice of the nodes that act for the logical brokers."""

    by: Literal["position", "energy"] = "position"
    """The choice by position takes the nearest node; the choice by energy, a nearby node with much remaining
    energy.
    """
    half: Metres | None = None
    """For ``energy``: the distance at which a node's suitability halves; ``None`` for the width of a leaf."""
    fall: Annotated[float, Meta(ge=0, le=1)] = 0.7
    """For ``energy``: a node hands over its role when its suitability falls below this share of the original
    value.
    """
    check: Duration = 60 * SECOND
    patience: Duration = 10 * SECOND


@dataclass(frozen=True, kw_only=True)
class Qps:
    """Settings of Quad-PubSub. Publishers advertise their position; subscribers request a region."""

    kind: ClassVar = "qps"
    regional: ClassVar = True
    levels: Annotated[int, Meta(ge=1, le=MOST_LEVELS)] = 3
    side: Metres | None = None
    """The side of the square of space, which begins at the least coordinates of the nodes. By default, the
    square just contains them.
    """
    epsilon: float = 1.5
    compliance: Compliance = "best-effort"
    renewal: Duration = 20 * SECOND
    roles: Roles = field(default_factory=Roles)

    def on(self, context: RunContext) -> QpsNodes:
        """Set up Quad-PubSub for a run. Raise a `ScenarioError` if the settings do not fit the network."""
        with at("protocol"):
            found = QpsNodes(self, context)
        with at("subscribers"):
            for sub in context.subscriptions:
                found.region(sub)
        return found

    def deployment(self, context: RunContext) -> QpsDeployment:
        """Return the configuration that is common to all nodes."""
        places = context.topology.positions
        low = (min(p[0] for p in places), min(p[1] for p in places))
        extent = max(_extent(low[axis], max(p[axis] for p in places)) for axis in (0, 1))
        side = self.side or extent or 1.0
        if side < extent:
            hint = "Leave it out for the least."
            raise ScenarioError(f"nodes stand {extent:g} m apart", ("side",), hint=hint)
        if not 1 <= self.epsilon < float("inf"):
            why = f"ε is {self.epsilon}; it is 1 (the straight way) or more, such as 1.5"
            raise ScenarioError(why, ("epsilon",))
        suit: mapping.Suit = mapping.by_position
        compare: mapping.Compare = mapping.never
        if self.roles.by == "energy":
            suit = mapping.by_resources(self.roles.half or side / 2 ** (self.levels - 1))
            compare = mapping.fallen_below(self.roles.fall)
        times = {"check": self.roles.check, "patience": self.roles.patience}
        room = context.room - 2 * ENVELOPE
        return QpsDeployment(
            tree=ScopeTree(low, side, self.levels),
            topics=tuple(context.definition.topics),
            compliance=self.compliance,
            renewal=self.renewal,
            spread=SPREAD,
            mapping=mapping.RoleMapping(suit=suit, compare=compare, room=room, **times),
        )


class QpsNodes(ProtocolNodes):
    """Quad-PubSub on the nodes of a run."""

    def __init__(self, qps: Qps, context: RunContext) -> None:
        super().__init__(context)
        self._qps, self.cycle = qps, max(qps.renewal, qps.roles.check)
        self.deployment = qps.deployment(context)
        self._sinks = Sinks(context.definition, context.subscriptions, context.account)
        subs = context.subscriptions
        self._subscriptions = {(w.node, f"{w.name} {topic}"): w for w in subs for topic in w.topics}
        self._events: dict[tuple[str, Instant], Event] = {}
        self.hosts: dict[NodeId, NodeHost] = {}
        self._repeated_by_lost = 0

    def destinations(self) -> Iterable[Destination]:
        return [(0.0, 0.0)] if self._context.subscriptions else []

    def boot(self, node: Node, router: RoutingService) -> None:
        self._sinks.boot(node)
        charged = ChargingRouter(router, self._cause)
        machine = PhysicalNode(self.deployment, node.position)
        host = NodeHost(node, machine, charged, size=bytes_of, deliver=self._on_delivery)
        self.hosts[node.id] = host
        name = self._context.topology.names[node.id]
        for topic, publishers in self._context.publishers.items():
            if node.id in publishers:
                host.ask(request.QpsAdvertiseRequest(name, topic, self._own(node)))
        schedule_subscriptions(node, self._context.subscriptions, self._subscribe, self._unsubscribe)
        self._report(node)

    def _own(self, node: Node) -> Rectangle:
        """Return the area of a node: a square around it whose side is a thousandth of the side of space."""
        tree = self.deployment.tree
        half = tree.side / 2000
        axes = zip(node.position, tree.low, strict=False)
        place = [min(max(p, low + half), low + tree.side - half) for p, low in axes]
        return Rectangle(tuple(p - half for p in place), tuple(p + half for p in place))

    def _report(self, node: Node) -> None:
        """Report the node's remaining energy to its broker."""
        now, meter = node.clock.now, node.energy
        left = meter.residual(now)
        if left is None:
            share = 1 / (1 + meter.joules(now))
        else:
            share = left / (left + meter.joules(now)) if left > 0 else 0.0
        if node.id in self.hosts:
            self.hosts[node.id].ask(mapping.Resources(energy=share))
            node.after(REPORTS, self._report, node)

    def bury(self, node: NodeId) -> None:
        if (host := self.hosts.pop(node, None)) is not None:
            self._repeated_by_lost += host.state.broker.repeated

    def publish(self, node: Node, event: Event) -> None:
        host = self.hosts[node.id]
        host.ask(request.QpsPublishRequest(event.source, event.topic, self._spot(node), event.attributes))
        self._events[event.source, host.state.broker.latest] = event

    def _spot(self, node: Node) -> tuple[float, ...]:
        own = self._own(node)
        return tuple((a + b) / 2 for a, b in zip(own.low, own.high, strict=True))

    def region(self, sub: NodeSubscription) -> Rectangle:
        """Return the region of a subscription, by default the whole space. Raise a `UsageError` if it is
        outside of space.
        """
        tree = self.deployment.tree
        found = sub.region or Rectangle(tree.low, tuple(low + tree.side for low in tree.low))
        self.deployment.region(found)
        return found

    def _subscribe(self, sub: NodeSubscription) -> None:
        for topic in sub.topics:
            about = f"{sub.name} {topic}", topic, self.region(sub)
            self.hosts[sub.node].ask(request.QpsSubscribeRequest(*about, self._qps.epsilon))

    def _unsubscribe(self, sub: NodeSubscription) -> None:
        for topic in sub.topics:
            about = f"{sub.name} {topic}", topic, self.region(sub)
            self.hosts[sub.node].ask(request.QpsUnsubscribeRequest(*about))

    # The account.

    def _cause(self, given: Envelope) -> str:
        inner = given.message if isinstance(given, SeekEnvelope | NodeEnvelope) else given
        names = self._context.about(inner.topic)
        return self._context.account.charge(names, wire_name(inner), cause_of(inner))

    def _on_delivery(self, node: Node, what: request.QpsDelivery) -> None:
        if isinstance(what, request.QpsNotify):
            event = self._events[what.publisher, what.time]
            self._sinks.take(node, self._subscriptions[node.id, what.client], event)

    def fate(self, _wish: NodeSubscription, event: Event) -> str:
        return ON_THE_WAY if (event.source, event.time) in self._in_transit else LOST

    @cached_property
    def _in_transit(self) -> set[tuple[str, Instant]]:
        """The events in transit at the end of the run, as source and time."""
        inner = (getattr(d.message, "message", d.message) for d in self._context.ledger.held())
        named = ((getattr(m, "publisher", ""), getattr(m, "time", 0)) for m in inner)
        return {(e.source, e.time) for key in named if (e := self._events.get(key)) is not None}

    def measures(self) -> Row:
        held = {role: node for node, host in self.hosts.items() for role in host.state.own_roles}
        names, brokers = self._context.topology.names, [h.state.broker for h in self.hosts.values()]
        roles = {f"{topic} {scope}": names[node] for (topic, scope), node in sorted(held.items())}
        return {
            "roles": roles,
            "links": sum(broker.links for broker in brokers),
            "handed_over": self._context.account.messages["Taken"],
            "repeated": self._repeated_by_lost + sum(broker.repeated for broker in brokers),
        }


def _extent(low: float, high: float) -> float:
    """Return ``high - low``, rounded up so that ``low`` plus the result is at least ``high``."""
    extent = high - low
    return extent if low + extent >= high else extent + math.ulp(high)
