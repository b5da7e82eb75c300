"""The interface between a protocol and a run: the services for a protocol, and the methods that a run
calls.
"""

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
    """The network of a run with its publishers and subscribers, as a protocol uses it."""

    network: Network
    topology: Topology
    seed: int
    airing: Duration
    """The approximate time in µs that a node takes to send to all its neighbours."""
    room: int
    """The number of bytes of a message that fit into a frame."""
    definition: ScenarioDefinition
    publishers: Mapping[str, tuple[NodeId, ...]]
    """The publishers' nodes, by topic."""
    account: RunAccount
    ledger: MessageLedger

    @property
    def subscriptions(self) -> tuple[NodeSubscription, ...]:
        return tuple(self.account.expected)

    def about(self, topic: str) -> list[str]:
        """Return the names of the subscriptions to a topic."""
        return [sub.name for sub in self.subscriptions if topic in sub.topics]


class ProtocolNodes(ABC):
    """The base class of a protocol on the nodes of a run. A protocol implements the abstract methods.

    The run calls `destinations` once, `boot` at each start of a node, and `measures` at the end.
    """

    patience: Duration | None = None
    """The time in µs after which a node without an answer sends again; ``None`` if no node does."""
    cycle: Duration | None = None
    """The period in µs of the protocol's traffic without events; ``None`` if there is no such traffic."""

    def __init__(self, context: RunContext) -> None:
        self._context = context

    @abstractmethod
    def destinations(self) -> Iterable[Destination]:
        """Return the destinations of the protocol's messages. The run checks that routing reaches them."""

    @abstractmethod
    def boot(self, node: Node, router: RoutingService) -> None:
        """Install the protocol on a node that starts or restarts."""

    def bury(self, node: NodeId) -> None:  # noqa: B027
        """Collect the counters of a node that has gone down and lost its memory."""

    def offset(self, _node: NodeId) -> Duration | None:
        """Return the time in µs within a period at which a node should publish; ``None`` if any time is
        suitable.
        """
        return None

    @abstractmethod
    def publish(self, node: Node, event: Event) -> None:
        """Publish an event of an application on a node."""

    @abstractmethod
    def fate(self, sub: NodeSubscription, event: Event) -> str:
        """Return why a subscription was not notified of an event."""

    def measures(self) -> Row:
        """Return the measures of the protocol itself, at the end of the run."""
        return {}


SubscriptionHandler = Callable[[NodeSubscription], None]


def schedule_subscriptions(
    node: Node,
    subscriptions: Iterable[NodeSubscription],
    subscribe: SubscriptionHandler,
    unsubscribe: SubscriptionHandler,
) -> None:
    """Call ``subscribe`` and ``unsubscribe`` for the subscriptions of a node, at their times by the node's
    clock.
    """

    def begin(sub: NodeSubscription) -> None:
        subscribe(sub)
        if sub.stop is not None:
            node.at(sub.stop, unsubscribe, sub)

    for sub in subscriptions:
        if sub.node == node.id and (sub.stop is None or node.now < sub.stop):
            node.at(max(sub.start, node.now), begin, sub)


class ChargingRouter:
    """A routing service that charges each message to the subscriptions that the message serves."""

    def __init__(self, router: RoutingService, cause: Callable[[Any], str]) -> None:
        self._router, self._cause = router, cause

    def send(self, destination: Any, type: str, message: Any, size: int, _cause: str = "") -> None:
        self._router.send(destination, type, message, size, self._cause(message))

    def register_handler(self, type: str, peek: bool, callback: Callable[[Datagram], Any]) -> None:
        self._router.register_handler(type, peek, callback)
