"""Quad-PubSub on motes: by topic and place, over geographic routing.  [SPS, chapter 4]"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from ...model.event import Event
from ...model.instant import SECOND, Duration, Instant
from ...model.quantity import Metres
from ...model.space import Rectangle
from ...protocols.qps import mapping, request
from ...protocols.qps.deployment import Compliance, Deployment
from ...protocols.qps.envelope import Envelope, Seek, To, bytes_of, cause_of
from ...protocols.qps.physical import Physical
from ...protocols.qps.tree import MOST_LEVELS, Tree
from ...sim.frame import NodeId
from ...sim.host import NodeHost, Routing
from ...sim.node import Node
from ...sim.routing.datagram import Destination
from .account import LOST, ON_THE_WAY, Row, Wish
from .family import Charged, Scene, when_wished
from .fault import Fault, at
from .sink import Sinks

ENVELOPE = 12
"""Bytes that the physical layer writes before a message."""
SPREAD = 0.5
"""Over what share of a period nodes, which boot together, spread what they say again."""
REPORTS = 10 * SECOND
"""How often a node's meter tells its broker what is left."""


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Which nodes act for the logical brokers."""

    by: Literal["position", "energy"] = "position"
    """The nearest one; or one with much energy left that is not far."""
    half: Metres | None = None
    """By energy: at which distance a node suits half as well; by default a leaf's width."""
    fall: Annotated[float, Meta(ge=0, le=1)] = 0.7
    """By energy: a role is given away by who suits less than that share of what it did."""
    check: Duration = 60 * SECOND
    patience: Duration = 10 * SECOND


@dataclass(frozen=True, kw_only=True)
class Qps:
    """Quad-PubSub.  Publishers advertise where they stand; subscribers ask for a region."""

    kind: ClassVar = "qps"
    regional: ClassVar = True
    levels: Annotated[int, Meta(ge=1, le=MOST_LEVELS)] = 3
    side: Metres | None = None
    """Of the square of space, from the least coordinates of nodes; by default it just has all of them."""
    epsilon: float = 1.5
    compliance: Compliance = "best-effort"
    renewal: Duration = 20 * SECOND
    roles: Roles = field(default_factory=Roles)

    def on(self, scene: Scene) -> Quads:
        """Put on nodes."""
        with at("protocol"):
            found = Quads(self, scene)
        with at("subscribers"):
            for wish in scene.wishes:
                found.region(wish)
        return found

    def deployment(self, scene: Scene) -> Deployment:
        """What every node knows."""
        places = scene.placed.positions
        low = (min(p[0] for p in places), min(p[1] for p in places))
        extent = max(_extent(low[axis], max(p[axis] for p in places)) for axis in (0, 1))
        side = self.side or extent or 1.0
        if side < extent:
            raise Fault(f"nodes stand {extent:g} m apart", ("side",), hint="Leave it out for the least.")
        if not 1 <= self.epsilon < float("inf"):
            raise Fault(f"ε is {self.epsilon}; it is 1 (the straight way) or more, such as 1.5", ("epsilon",))
        suit: mapping.Suit = mapping.by_position
        compare: mapping.Compare = mapping.never
        if self.roles.by == "energy":
            suit = mapping.by_resources(self.roles.half or side / 2 ** (self.levels - 1))
            compare = mapping.fallen(self.roles.fall)
        return Deployment(
            tree=Tree(low, side, self.levels),
            topics=tuple(scene.definition.topics),
            compliance=self.compliance,
            renewal=self.renewal,
            spread=SPREAD,
            mapping=mapping.Mapping(
                suit=suit,
                compare=compare,
                check=self.roles.check,
                patience=self.roles.patience,
                room=scene.room - 2 * ENVELOPE,
            ),
        )


class Quads:
    """Brokers on the nodes of a run."""

    def __init__(self, qps: Qps, scene: Scene) -> None:
        self._qps, self._scene = qps, scene
        self.deployment = qps.deployment(scene)
        self._sinks = Sinks(scene.definition, scene.wishes, scene.account)
        self._wishes = {(w.node, f"{w.name} {topic}"): w for w in scene.wishes for topic in w.topics}
        self._events: dict[tuple[str, Instant], Event] = {}
        self.hosts: dict[NodeId, NodeHost] = {}
        self._counted: Counter[str] = Counter()

    def destinations(self) -> Iterable[Destination]:
        return [(0.0, 0.0)] if self._scene.wishes else []

    @property
    def patience(self) -> Duration | None:
        return None

    @property
    def cycle(self) -> Duration | None:
        return max(self._qps.renewal, self._qps.roles.check)

    def boot(self, node: Node, router: Routing) -> None:
        self._sinks.boot(node)
        charged = Charged(router, self._cause)
        host = self.hosts[node.id] = NodeHost(
            node, Physical(self.deployment, node.position), charged, size=bytes_of, deliver=self._told
        )
        name = self._scene.placed.names[node.id]
        for topic, publishers in self._scene.publishers.items():
            if node.id in publishers:
                host.ask(request.Advertise(name, topic, self._own(node)))
        when_wished(node, self._scene.wishes, self._subscribe, self._unsubscribe)
        self._report(node)

    def _own(self, node: Node) -> Rectangle:
        """The spot of a node: as wide as a thousandth of space, and in it."""
        tree = self.deployment.tree
        half = tree.side / 2000
        place = [
            min(max(p, low + half), low + tree.side - half)
            for p, low in zip(node.position, tree.low, strict=False)
        ]
        return Rectangle(tuple(p - half for p in place), tuple(p + half for p in place))

    def _report(self, node: Node) -> None:
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
            self._counted["repeated"] += host.state.broker.repeated

    def offset(self, _node: NodeId) -> Duration | None:
        return None

    def publish(self, node: Node, event: Event) -> None:
        host = self.hosts[node.id]
        host.ask(request.Publish(event.source, event.topic, self._spot(node), event.attributes))
        self._events[event.source, host.state.broker.latest] = event

    def _spot(self, node: Node) -> tuple[float, ...]:
        own = self._own(node)
        return tuple((a + b) / 2 for a, b in zip(own.low, own.high, strict=True))

    def region(self, wish: Wish) -> Rectangle:
        """What a wish is about; all of space, if it does not say."""
        tree = self.deployment.tree
        found = wish.region or Rectangle(tree.low, tuple(low + tree.side for low in tree.low))
        self.deployment.region(found)
        return found

    def _subscribe(self, wish: Wish) -> None:
        for topic in wish.topics:
            asked = request.Subscribe(f"{wish.name} {topic}", topic, self.region(wish), self._qps.epsilon)
            self.hosts[wish.node].ask(asked)

    def _unsubscribe(self, wish: Wish) -> None:
        for topic in wish.topics:
            asked = request.Unsubscribe(f"{wish.name} {topic}", topic, self.region(wish))
            self.hosts[wish.node].ask(asked)

    # The books.

    def _cause(self, given: Envelope) -> str:
        inner = given.message if isinstance(given, Seek | To) else given
        names = self._scene.about(inner.topic)
        return self._scene.account.charge(names, type(inner).__name__, cause_of(inner))

    def _told(self, node: Node, what: request.Told) -> None:
        if isinstance(what, request.Notify):
            event = self._events[what.publisher, what.time]
            self._sinks.take(node, self._wishes[node.id, what.client], event)

    def fate(self, _wish: Wish, event: Event) -> str:
        return ON_THE_WAY if (event.source, event.time) in self._carried else LOST

    @cached_property
    def _carried(self) -> set[tuple[str, Instant]]:
        """The events in the hands of routing, in the end."""
        inner = (getattr(d.message, "message", d.message) for d in self._scene.ledger.held())
        named = ((getattr(m, "publisher", ""), getattr(m, "time", 0)) for m in inner)
        return {(e.source, e.time) for key in named if (e := self._events.get(key)) is not None}

    def measures(self) -> Row:
        held = {role: node for node, host in self.hosts.items() for role in host.state.held}
        return {
            "roles": {
                f"{topic} {scope}": self._scene.placed.names[node]
                for (topic, scope), node in sorted(held.items())
            },
            "links": sum(host.state.broker.links for host in self.hosts.values()),
            "handed_over": self._scene.account.messages["Taken"],
            "repeated": self._counted["repeated"]
            + sum(host.state.broker.repeated for host in self.hosts.values()),
        }


def _extent(low: float, high: float) -> float:
    """How far it is from one to the other, rounded so that it leads from ``low`` to ``high`` at least."""
    far = high - low
    return far if low + far >= high else far + math.ulp(high)
