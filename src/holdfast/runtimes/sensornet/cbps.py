"""Content-based publish/subscribe on motes: a tree of brokers, connected over routing.  [Fulcrum]"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from ...model.event import Event, Value
from ...model.instant import Duration, Instant
from ...protocols.cbps.broker import Broker
from ...protocols.cbps.bundle import is_losable, kind_of
from ...protocols.cbps.client import (
    Client,
    Heard,
    Submit,
    Told,
    Unknown,
    Withdraw,
    advertise,
    publish,
    subscribe,
    watch,
    watch_exactly,
)
from ...protocols.cbps.condition import Condition
from ...protocols.cbps.content import Constraint, Filter
from ...protocols.cbps.event import advertised, to_content, to_event
from ...protocols.cbps.message import Bundle, Key, Message, bytes_of
from ...protocols.cbps.parts import pins
from ...sim.frame import NodeId
from ...sim.host import NodeHost, Routing
from ...sim.node import Node
from ...sim.routing import tempo
from ...sim.topology import Topology
from . import connection
from .account import LOST, ON_THE_WAY, Row, Wish
from .conditions import for_brokers, travelling
from .connection import Frame, Hello, Terms
from .family import Charged, Scene, when_wished
from .fault import Fault, at
from .mote import BROKER, PUBLISHER, SUBSCRIBER, Mote, State
from .nodes import Named, Some, node, several
from .sink import Sinks
from .spanning import Pair, best_ways, nearest, require_tree

UNSENT = "its publisher had no connection"


@dataclass(frozen=True, kw_only=True)
class Cbps:
    """Brokers on nodes.  Publishers and subscribers elsewhere have a connection to one of them; a node that
    is both has a broker of its own."""

    kind: ClassVar = "cbps"
    brokers: Literal["all"] | tuple[Named, ...] = "all"
    root: Named | None = None
    """The broker from which the tree grows; by default the first or, if all nodes have one, the first
    subscriber's."""
    links: tuple[tuple[Named, Named], ...] | None = None
    """Which brokers are connected; by default each with the first broker on its best way to the root."""
    rto: Duration | None = None
    """How long to wait for an acknowledgement; by default as long as an answer may take."""
    tries: Some = 8
    """After so many, ever farther apart, the other end of a connection is taken for gone."""
    queue: Some = 20
    """How many messages wait at an end of a connection."""

    def on(self, scene: Scene) -> Overlay:
        """Put on nodes."""
        with at("protocol"):
            return Overlay(self, scene)


class Overlay:
    """Brokers, clients and connections on the nodes of a run."""

    def __init__(self, cbps: Cbps, scene: Scene) -> None:
        self._scene = scene
        self._subscribers = {wish.node for wish in scene.wishes}
        self._publishers = set[NodeId]().union(*scene.publishers.values())
        self._brokers, self._connections = _connected(cbps, scene, self._publishers, self._subscribers)
        self._terms = Terms(
            rto=tempo.answer(scene.airing) if cbps.rto is None else cbps.rto,
            tries=cbps.tries,
            queue=cbps.queue,
            segment=scene.room - connection.HEADER,
            size=bytes_of,
            losable=is_losable,
        )
        self._texts: dict[str, str] = {}
        self._conditions: dict[str, Condition] = {}
        wanted = {wish.name for wish in scene.wishes if not wish.plain}
        for name, condition in scene.definition.filters.items():
            if name in wanted and (found := travelling(scene.definition, condition)) is not None:
                self._texts[name], self._conditions[found[0]] = found
        elsewhere = [wish for wish in scene.wishes if wish.plain or wish.name not in self._texts]
        self._sinks = Sinks(scene.definition, elsewhere, scene.account)
        self._wishes = {(w.node, submit.name): w for w in scene.wishes for submit in self._wanted(w)}
        self.hosts: dict[NodeId, NodeHost] = {}
        self._stored: dict[Key, list[str]] = {}
        """For whom a bundle is that brokers have stored."""
        self._unsent: set[tuple[str, Instant]] = set()
        self._counted: Counter[str] = Counter()

    # What happens.

    def destinations(self) -> Iterable[NodeId]:
        return [end for pair in self._connections for end in pair]

    @property
    def patience(self) -> Duration | None:
        return self._terms.rto

    @property
    def cycle(self) -> Duration | None:
        return None

    def boot(self, node: Node, router: Routing) -> None:
        self._sinks.boot(node)
        machines: dict[str, Broker | Client] = {}
        if node.id in self._brokers:
            machines[BROKER] = Broker(self._conditions.__getitem__)
        for role, nodes in ((PUBLISHER, self._publishers), (SUBSCRIBER, self._subscribers)):
            if node.id in nodes:
                name = f"{role} {self._scene.placed.names[node.id]}"
                machines[role] = Client(name, self._conditions.__getitem__)
        if not machines:
            return
        peers = [str(b if a == node.id else a) for a, b in self._connections if node.id in (a, b)]
        machine = Mote(machines, tuple(peers), self._terms)
        charged = Charged(router, self._cause)
        host = self.hosts[node.id] = NodeHost(
            node, machine, charged, size=connection.bytes_of, deliver=self._told
        )
        for name, publishers in self._scene.publishers.items():
            if node.id in publishers:
                topic = self._scene.definition.topics[name]
                source = self._scene.placed.names[node.id]
                host.ask((PUBLISHER, advertise(name, advertised(topic, source=source))))
        when_wished(node, self._scene.wishes, self._subscribe, self._unsubscribe)

    def bury(self, node: NodeId) -> None:
        if (host := self.hosts.pop(node, None)) is not None:
            self._counted += _counted(host.state)

    def offset(self, _node: NodeId) -> Duration | None:
        return None

    def publish(self, node: Node, event: Event) -> None:
        host = self.hosts[node.id]
        if host.state.machines[PUBLISHER].broker is None:
            self._unsent.add((event.source, event.time))
        host.ask((PUBLISHER, publish(to_content(event))))

    def _wanted(self, wish: Wish) -> list[Submit]:
        """What a subscriber asks for: a condition, or every event of some topics."""
        if wish.name in self._texts and not wish.plain:
            text, condition = self._texts[wish.name], self._scene.definition.filters[wish.name]
            if condition.tables:
                return [watch_exactly(wish.name, [text], for_brokers(condition))]
            return [watch(wish.name, text)]
        about = {topic: Filter((Constraint("topic", "text", "=", topic),)) for topic in wish.topics}
        return [subscribe(f"{wish.name} {topic}", filter_) for topic, filter_ in about.items()]

    def _subscribe(self, wish: Wish) -> None:
        for wanted in self._wanted(wish):
            self.hosts[wish.node].ask((SUBSCRIBER, wanted))

    def _unsubscribe(self, wish: Wish) -> None:
        for wanted in self._wanted(wish):
            self.hosts[wish.node].ask((SUBSCRIBER, Withdraw(wanted.name)))

    # The books.

    def _told(self, node: Node, what: Any) -> None:
        match what:
            case Told(name, notification) if notification.status != "known":
                self._scene.account.tell(self._wishes[node.id, name], notification)
            case Heard(name, _, content):
                topic = self._scene.definition.topics[str(content["topic"])]
                if (event := to_event(topic, content)) is not None:
                    self._sinks.take(node, self._wishes[node.id, name], event)
            case Unknown():
                self._counted["conditions unknown"] += 1

    def _cause(self, frame: Frame) -> str:
        """A frame leaves a node."""
        charge = self._scene.account.charge
        if isinstance(frame, Hello):
            return charge([wish.name for wish in self._scene.wishes], "Hello", "connection")
        message, ack = frame.message, isinstance(frame, connection.Ack)
        kind = kind_of(message) if isinstance(message, Bundle) else type(message).__name__.lower()
        return charge(self._names(message), "Ack" if ack else type(message).__name__, "ack" if ack else kind)

    def _names(self, message: Message) -> list[str]:
        """The subscriptions that a message is for."""
        match message:
            case Bundle():
                names = list(self._concerned(message))
                if not message.notifications:
                    self._stored[message.key] = names
                return names
            case _ if (of := getattr(message, "of", None)) is not None:
                return self._stored.get(of.bundle, [])
            case _ if (key := getattr(message, "bundle", None)) is not None:
                return self._stored.get(key, [])
        return [wish.name for wish in self._scene.wishes]

    def _concerned(self, bundle: Bundle) -> Iterator[str]:
        for said in bundle.notifications:
            yield from self._scene.about(str(said.content["topic"]))
        for promise in bundle.advertisements:
            yield from self._scene.about(str(pins(promise.filter)["topic"]))
        for wanted in bundle.subscriptions:
            if wanted.state is None:
                topic = str(pins(wanted.filter)["topic"])
                yield from (wish.name for wish in self._sinks.wishes if topic in wish.topics)
            else:
                yield self._conditions[wanted.state.definition].name

    # What came of it.

    def fate(self, _wish: Wish, event: Event) -> str:
        sample = event.source, event.time
        return UNSENT if sample in self._unsent else ON_THE_WAY if sample in self._carried else LOST

    @cached_property
    def _carried(self) -> set[tuple[Value, Value]]:
        """The events that wait at an end of a connection, or are not acknowledged, in the end."""
        ends = [end for host in self.hosts.values() for end in host.state.ends.values()]
        messages = [message for end in ends for message, _ in end.waiting]
        messages += [end.sent.message for end in ends if end.sent is not None]
        return {
            (said.content["source"], said.content["time"])
            for message in messages
            if isinstance(message, Bundle)
            for said in message.notifications
        }

    def measures(self) -> Row:
        counted = sum((_counted(host.state) for host in self.hosts.values()), self._counted)
        return {
            "brokers": len(self._brokers),
            "connections": len(self._connections),
            "counted": dict(counted),
        }


def _connected(
    cbps: Cbps, scene: Scene, publishers: set[NodeId], subscribers: set[NodeId]
) -> tuple[list[NodeId], list[Pair]]:
    """Where brokers are, and who is connected with whom."""
    placed = scene.placed
    with at("brokers"):
        brokers = list(range(len(placed))) if cbps.brokers == "all" else several(placed, cbps.brokers)
        if not brokers:
            raise Fault("one broker at least")
    with at("root"):
        first = scene.wishes[0].node if cbps.brokers == "all" and scene.wishes else brokers[0]
        root = first if cbps.root is None else node(placed, cbps.root)
        if root not in brokers:
            raise Fault(f"node {placed.names[root]} has no broker")
    ways = best_ways(scene.network, root)
    others = sorted((publishers | subscribers) - set(brokers))
    for each in {*brokers, *others} - ways.keys():
        raise Fault(f"no way leads from node {placed.names[each]} to node {placed.names[root]}")
    pairs = [(each, nearest(each, ways, brokers)) for each in brokers if each != root]
    if cbps.links is not None:
        pairs = _listed(cbps.links, placed, brokers)
    pairs += [(each, nearest(each, ways, brokers)) for each in others]
    return brokers + [each for each in others if each in publishers & subscribers], pairs


def _listed(links: Iterable[tuple[Named, Named]], placed: Topology, brokers: list[NodeId]) -> list[Pair]:
    pairs = []
    with at("links"):
        for i, pair in enumerate(links):
            with at(i):
                a, b = several(placed, pair)
            pairs.append((a, b))
        require_tree(pairs, brokers)
    return pairs


def _counted(state: State) -> Counter[str]:
    """What a node has done."""
    found: Counter[str] = sum((end.counted for end in state.ends.values()), Counter())
    return found + (state.machines[BROKER].counted if BROKER in state.machines else Counter())
