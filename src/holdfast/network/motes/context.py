"""The interface between a protocol and a run: the services a protocol finds, and the methods a run calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...model.event import Event
from ...model.instant import Duration
from ..sim.frame import NodeId
from ..sim.host import RoutingService
from ..sim.network import Network
from ..sim.node import Node
from ..sim.routing.datagram import Datagram, Destination
from ..sim.routing.ledger import MessageLedger
from ..sim.topology import Topology
from .account import NodeSubscription, Row, RunAccount
from .conditions import ScenarioDefinition


@dataclass(frozen=True)
class RunContext:
    """A network with its publishers and subscribers, as a protocol finds it."""

    network: Network
    topology: Topology
    seed: int
    airing: Duration
    """About how long a node takes to send to its neighbours, in µs."""
    room: int
    """The bytes of a message that fit into a frame."""
    definition: ScenarioDefinition
    publishers: Mapping[str, tuple[NodeId, ...]]
    """The publishers' nodes, by topic."""
    account: RunAccount
    ledger: MessageLedger

    @property
    def subscriptions(self) -> tuple[NodeSubscription, ...]:
        return tuple(self.account.expected)

    def about(self, topic: str) -> list[str]:
        """Names of the subscriptions to a topic."""
        return [sub.name for sub in self.subscriptions if topic in sub.topics]


class ProtocolNodes(ABC):
    """A protocol on the nodes of a run."""

    patience: Duration | None = None
    """The time after which a node without an answer sends again, in µs; None if no node does."""
    cycle: Duration | None = None
    """The period of its traffic without events, in µs; None if there is no such traffic."""

    def __init__(self, context: RunContext) -> None:
        self._context = context

    @abstractmethod
    def destinations(self) -> Iterable[Destination]:
        """The destinations of its messages; the run checks that routing reaches them."""

    @abstractmethod
    def boot(self, node: Node, router: RoutingService) -> None:
        """Install it on a node that starts or restarts."""

    def bury(self, node: NodeId) -> None:  # noqa: B027
        """Called when a node has gone down and lost its memory."""

    def offset(self, _node: NodeId) -> Duration | None:
        """When in a period a node should publish; None if it does not matter."""
        return None

    @abstractmethod
    def publish(self, node: Node, event: Event) -> None:
        """Publish an event of an application on a node."""

    @abstractmethod
    def fate(self, sub: NodeSubscription, event: Event) -> str:
        """Why a subscription was not notified of an event."""

    def measures(self) -> Row:
        """Measures of the protocol itself."""
        return {}


SubscriptionHandler = Callable[[NodeSubscription], None]


def schedule_subscriptions(
    node: Node,
    subscriptions: Iterable[NodeSubscription],
    subscribe: SubscriptionHandler,
    unsubscribe: SubscriptionHandler,
) -> None:
    """Call ``subscribe`` and ``unsubscribe`` for the subscriptions of a node, at their times by its clock."""

    def begin(sub: NodeSubscription) -> None:
        subscribe(sub)
        if sub.stop is not None:
            node.at(sub.stop, unsubscribe, sub)

    for sub in subscriptions:
        if sub.node == node.id and (sub.stop is None or node.now < sub.stop):
            node.at(max(sub.start, node.now), begin, sub)


class ChargingRouter:
    """A router that charges each message to the subscriptions it serves."""

    def __init__(self, router: RoutingService, cause: Callable[[Any], str]) -> None:
        self._router, self._cause = router, cause

    def send(self, destination: Any, type: str, message: Any, size: int, _cause: str = "") -> None:
        self._router.send(destination, type, message, size, self._cause(message))

    def register_handler(self, type: str, peek: bool, callback: Callable[[Datagram], Any]) -> None:
        self._router.register_handler(type, peek, callback)
