"""Content-based publish/subscribe on motes: a tree of brokers, connected over routing.  [Fulcrum]"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from ...model.event import Event, Value
from ...model.instant import Duration, Instant
from ..protocols.cbps.broker import CbpsBroker
from ..protocols.cbps.bundle import is_droppable, main_kind
from ..protocols.cbps.client import (
    CbpsClient,
    ConditionChange,
    ConditionUnknown,
    ReceivedNotification,
    Submit,
    WithdrawSubmission,
    advertise,
    publish,
    subscribe,
    watch,
    watch_exactly,
)
from ..protocols.cbps.condition import NetworkCondition
from ..protocols.cbps.content import Constraint, Filter
from ..protocols.cbps.event import advertisement_for, to_content, to_event
from ..protocols.cbps.message import Bundle, BundleKey, CbpsMessage, bytes_of
from ..protocols.cbps.parts import pins
from ..protocols.wire_name import wire_name
from ..sim.frame import NodeId
from ..sim.host import NodeHost, RoutingService
from ..sim.node import Node
from ..sim.routing import tempo
from ..sim.topology import Topology
from . import connection
from .account import LOST, ON_THE_WAY, NodeSubscription, Row
from .conditions import broker_form, for_brokers
from .connection import ConnectionHello, Frame, Terms
from .context import ChargingRouter, ProtocolNodes, RunContext, schedule_subscriptions
from .fault import ScenarioError, at
from .mote import BROKER, PUBLISHER, SUBSCRIBER, Mote, MoteState
from .nodes import AtLeastOne, NodeName, find_node, find_nodes
from .sink import Sinks
from .spanning import Pair, best_next_hops, nearest, require_tree

UNSENT = "its publisher had no connection"


@dataclass(frozen=True, kw_only=True)
class Cbps:
    """Settings of brokers on nodes.

    A publisher or subscriber on a node without a broker connects to one of the brokers. A node with both a
    publisher and a subscriber gets a broker of its own.
    """

    kind: ClassVar = "cbps"
    brokers: Literal["all"] | tuple[NodeName, ...] = "all"
    root: NodeName | None = None
    """The root of the tree of brokers. By default it is the first broker or, if all nodes have one, the first
    subscriber's.
    """
    links: tuple[tuple[NodeName, NodeName], ...] | None = None
    """Connected pairs of brokers. By default, each broker is connected with the first broker on its best path
    to the root.
    """
    rto: Duration | None = None
    """The time in µs to wait for an acknowledgement. By default it is the time that an answer may take."""
    tries: AtLeastOne = 8
    """The number of tries, at growing intervals, after which a connection counts as lost."""
    queue: AtLeastOne = 20
    """The number of messages that may wait at an end of a connection."""

    def on(self, context: RunContext) -> CbpsNodes:
        """Set up the protocol for a run. Raise a `ScenarioError` if the settings do not fit the network."""
        with at("protocol"):
            return CbpsNodes(self, context)


class CbpsNodes(ProtocolNodes):
    """The brokers, clients and connections on the nodes of a run."""

    def __init__(self, cbps: Cbps, context: RunContext) -> None:
        super().__init__(context)
        self._subscribers = {sub.node for sub in context.subscriptions}
        self._publishers = set[NodeId]().union(*context.publishers.values())
        nodes = self._publishers, self._subscribers
        self._brokers, self._connections = _plan_connections(cbps, context, *nodes)
        self._terms = Terms(
            rto=tempo.answer(context.airing) if cbps.rto is None else cbps.rto,
            tries=cbps.tries,
            queue=cbps.queue,
            segment=context.room - connection.HEADER,
            size=bytes_of,
            losable=is_droppable,
        )
        self.patience = self._terms.rto
        self._texts: dict[str, str] = {}
        self._conditions: dict[str, NetworkCondition] = {}
        wanted = {sub.name for sub in context.subscriptions if not sub.plain}
        for name, condition in context.definition.filters.items():
            if name in wanted and (found := broker_form(context.definition, condition)) is not None:
                self._texts[name], self._conditions[found[0]] = found
        elsewhere = [sub for sub in context.subscriptions if sub.plain or sub.name not in self._texts]
        self._sinks = Sinks(context.definition, elsewhere, context.account)
        subs = context.subscriptions
        self._subscriptions = {(w.node, r.name): w for w in subs for r in self._requests_of(w)}
        self.hosts: dict[NodeId, NodeHost] = {}
        self._stored: dict[BundleKey, list[str]] = {}
        """The names of the subscriptions for which brokers have stored a bundle, by the key of the bundle."""
        self._unsent: set[tuple[str, Instant]] = set()
        self._counts: Counter[str] = Counter()

    # During the run.

    def destinations(self) -> Iterable[NodeId]:
        return [end for pair in self._connections for end in pair]

    def boot(self, node: Node, router: RoutingService) -> None:
        self._sinks.boot(node)
        machines: dict[str, CbpsBroker | CbpsClient] = {}
        if node.id in self._brokers:
            machines[BROKER] = CbpsBroker(self._conditions.__getitem__)
        for role, nodes in ((PUBLISHER, self._publishers), (SUBSCRIBER, self._subscribers)):
            if node.id in nodes:
                name = f"{role} {self._context.topology.names[node.id]}"
                machines[role] = CbpsClient(name, self._conditions.__getitem__)
        if not machines:
            return
        peers = [str(b if a == node.id else a) for a, b in self._connections if node.id in (a, b)]
        machine = Mote(machines, tuple(peers), self._terms)
        charged = ChargingRouter(router, self._cause)
        size = connection.bytes_of
        host = NodeHost(node, machine, charged, size=size, deliver=self._on_delivery)
        self.hosts[node.id] = host
        for name, publishers in self._context.publishers.items():
            if node.id in publishers:
                topic = self._context.definition.topics[name]
                source = self._context.topology.names[node.id]
                host.ask((PUBLISHER, advertise(name, advertisement_for(topic, source=source))))
        schedule_subscriptions(node, self._context.subscriptions, self._subscribe, self._unsubscribe)

    def bury(self, node: NodeId) -> None:
        if (host := self.hosts.pop(node, None)) is not None:
            self._counts += _counts_of(host.state)

    def publish(self, node: Node, event: Event) -> None:
        host = self.hosts[node.id]
        if host.state.machines[PUBLISHER].broker is None:
            self._unsent.add((event.source, event.time))
        host.ask((PUBLISHER, publish(to_content(event))))

    def _requests_of(self, sub: NodeSubscription) -> list[Submit]:
        """Return the requests of a subscriber: for a condition, or for every event of its topics."""
        if sub.name in self._texts and not sub.plain:
            text, condition = self._texts[sub.name], self._context.definition.filters[sub.name]
            if condition.tables:
                return [watch_exactly(sub.name, [text], for_brokers(condition))]
            return [watch(sub.name, text)]
        about = {topic: Filter((Constraint("topic", "text", "=", topic),)) for topic in sub.topics}
        return [subscribe(f"{sub.name} {topic}", filter_) for topic, filter_ in about.items()]

    def _subscribe(self, sub: NodeSubscription) -> None:
        for request in self._requests_of(sub):
            self.hosts[sub.node].ask((SUBSCRIBER, request))

    def _unsubscribe(self, sub: NodeSubscription) -> None:
        for request in self._requests_of(sub):
            self.hosts[sub.node].ask((SUBSCRIBER, WithdrawSubmission(request.name)))

    # The account.

    def _on_delivery(self, node: Node, what: Any) -> None:
        match what:
            case ConditionChange(name, notification) if notification.status != "known":
                self._context.account.notify(self._subscriptions[node.id, name], notification)
            case ReceivedNotification(name, _, content):
                topic = self._context.definition.topics[str(content["topic"])]
                if (event := to_event(topic, content)) is not None:
                    self._sinks.take(node, self._subscriptions[node.id, name], event)
            case ConditionUnknown():
                self._counts["conditions unknown"] += 1

    def _cause(self, frame: Frame) -> str:
        """Record a frame that leaves a node; return the cause to which its energy is charged."""
        charge = self._context.account.charge
        if isinstance(frame, ConnectionHello):
            return charge([sub.name for sub in self._context.subscriptions], "Hello", "connection")
        message, ack = frame.message, isinstance(frame, connection.ConnectionAck)
        kind = main_kind(message) if isinstance(message, Bundle) else wire_name(message).lower()
        return charge(self._names(message), "Ack" if ack else wire_name(message), "ack" if ack else kind)

    def _names(self, message: CbpsMessage) -> list[str]:
        """Return the names of the subscriptions that a message serves."""
        match message:
            case Bundle():
                names = list(self._names_in_bundle(message))
                if not message.notifications:
                    self._stored[message.key] = names
                return names
            case _ if (of := getattr(message, "of", None)) is not None:
                return self._stored.get(of.bundle, [])
            case _ if (key := getattr(message, "bundle", None)) is not None:
                return self._stored.get(key, [])
        return [sub.name for sub in self._context.subscriptions]

    def _names_in_bundle(self, bundle: Bundle) -> Iterator[str]:
        """Yield the names of the subscriptions that a bundle serves."""
        for notification in bundle.notifications:
            yield from self._context.about(str(notification.content["topic"]))
        for advertisement in bundle.advertisements:
            yield from self._context.about(str(pins(advertisement.filter)["topic"]))
        for request in bundle.subscriptions:
            if request.state is None:
                topic = str(pins(request.filter)["topic"])
                yield from (sub.name for sub in self._sinks.subscriptions if topic in sub.topics)
            else:
                yield self._conditions[request.state.definition].name

    # After the run.

    def fate(self, _wish: NodeSubscription, event: Event) -> str:
        sample = event.source, event.time
        return UNSENT if sample in self._unsent else ON_THE_WAY if sample in self._in_transit else LOST

    @cached_property
    def _in_transit(self) -> set[tuple[Value, Value]]:
        """The events that are still in transit at the end of the run: they wait at a connection or are
        unacknowledged.
        """
        ends = [end for host in self.hosts.values() for end in host.state.ends.values()]
        messages = [message for end in ends for message, _ in end.waiting]
        messages += [end.sent.message for end in ends if end.sent is not None]
        bundles = [message for message in messages if isinstance(message, Bundle)]
        contents = [notification.content for bundle in bundles for notification in bundle.notifications]
        return {(content["source"], content["time"]) for content in contents}

    def measures(self) -> Row:
        counts = sum((_counts_of(host.state) for host in self.hosts.values()), self._counts)
        connections = len(self._connections)
        return {"brokers": len(self._brokers), "connections": connections, "counted": dict(counts)}


def _plan_connections(
    cbps: Cbps, context: RunContext, publishers: set[NodeId], subscribers: set[NodeId]
) -> tuple[list[NodeId], list[Pair]]:
    """Return the nodes with brokers, and the connected pairs of nodes."""
    topology = context.topology
    with at("brokers"):
        brokers = list(range(len(topology))) if cbps.brokers == "all" else find_nodes(topology, cbps.brokers)
        if not brokers:
            raise ScenarioError("one broker at least")
    with at("root"):
        subscribed = cbps.brokers == "all" and context.subscriptions
        first = context.subscriptions[0].node if subscribed else brokers[0]
        root = first if cbps.root is None else find_node(topology, cbps.root)
        if root not in brokers:
            raise ScenarioError(f"node {topology.names[root]} has no broker")
    next_hops = best_next_hops(context.network, root)
    others = sorted((publishers | subscribers) - set(brokers))
    for broker in {*brokers, *others} - next_hops.keys():
        raise ScenarioError(f"no way leads from node {topology.names[broker]} to node {topology.names[root]}")
    pairs = [(broker, nearest(broker, next_hops, brokers)) for broker in brokers if broker != root]
    if cbps.links is not None:
        pairs = _explicit_links(cbps.links, topology, brokers)
    pairs += [(broker, nearest(broker, next_hops, brokers)) for broker in others]
    return brokers + [broker for broker in others if broker in publishers & subscribers], pairs


def _explicit_links(
    links: Iterable[tuple[NodeName, NodeName]], topology: Topology, brokers: list[NodeId]
) -> list[Pair]:
    """Return the connections in the settings; raise a `ScenarioError` unless they form a tree of brokers."""
    pairs = []
    with at("links"):
        for i, pair in enumerate(links):
            with at(i):
                a, b = find_nodes(topology, pair)
            pairs.append((a, b))
        require_tree(pairs, brokers)
    return pairs


def _counts_of(state: MoteState) -> Counter[str]:
    """Return the counts of the connections and the broker on a node."""
    found: Counter[str] = sum((end.counts for end in state.ends.values()), Counter())
    return found + (state.machines[BROKER].counted if BROKER in state.machines else Counter())
