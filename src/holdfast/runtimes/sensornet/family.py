"""How a protocol is put on nodes: what it finds there, and what a run asks of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ...model.event import Event
from ...model.instant import Duration
from ...sim.frame import NodeId
from ...sim.host import Routing
from ...sim.network import Network
from ...sim.node import Node
from ...sim.routing.datagram import Datagram, Destination
from ...sim.routing.ledger import Ledger
from ...sim.topology import Topology
from .account import Account, Row, Wish
from .conditions import Definition


@dataclass(frozen=True)
class Scene:
    """A network and those who publish and subscribe in it."""

    network: Network
    placed: Topology
    seed: int
    airing: Duration
    """How long it takes a node, about, to say something."""
    room: int
    """The bytes of a message that fit into a frame."""
    definition: Definition
    publishers: Mapping[str, tuple[NodeId, ...]]
    """By topic."""
    account: Account
    ledger: Ledger

    @property
    def wishes(self) -> tuple[Wish, ...]:
        return tuple(self.account.expected)

    def about(self, topic: str) -> list[str]:
        """The subscriptions to a topic, by name."""
        return [wish.name for wish in self.wishes if topic in wish.topics]


class Family(Protocol):
    """A protocol on the nodes of a run."""

    def destinations(self) -> Iterable[Destination]:
        """To whom its nodes send messages: routing must lead there."""

    @property
    def patience(self) -> Duration | None:
        """How long somebody waits for an answer until it sends again; nothing if nobody does."""

    @property
    def cycle(self) -> Duration | None:
        """After how long it says again what it says when nothing happens; nothing if it says nothing then."""

    def boot(self, node: Node, router: Routing) -> None:
        """Install it on a node that starts, or starts again, for the applications there."""

    def bury(self, node: NodeId) -> None:
        """A node is down, with all it remembered."""

    def offset(self, node: NodeId) -> Duration | None:
        """When in a period a node should publish, if it minds."""

    def publish(self, node: Node, event: Event) -> None:
        """An application on a node has an event."""

    def fate(self, wish: Wish, event: Event) -> str:
        """What became of an event that a wish should have been told of, and was not."""

    def measures(self) -> Row:
        """What else there is to say of a run."""


Asking = Callable[[Wish], None]


def when_wished(node: Node, wishes: Iterable[Wish], subscribe: Asking, unsubscribe: Asking) -> None:
    """Let the applications on a node ask for what they want, and say when they no longer do, by its clock."""

    def begin(wish: Wish) -> None:
        subscribe(wish)
        if wish.stop is not None:
            node.at(wish.stop, unsubscribe, wish)

    for wish in wishes:
        if wish.node == node.id and (wish.stop is None or node.now < wish.stop):
            node.at(max(wish.start, node.now), begin, wish)


class Charged:
    """Routing for a host whose messages are charged to the subscriptions that they are for."""

    def __init__(self, router: Routing, cause: Callable[[Any], str]) -> None:
        self._router, self._cause = router, cause

    def send(self, destination: Any, type: str, message: Any, size: int, _cause: str = "") -> None:
        self._router.send(destination, type, message, size, self._cause(message))

    def register_handler(self, type: str, peek: bool, callback: Callable[[Datagram], Any]) -> None:
        self._router.register_handler(type, peek, callback)
