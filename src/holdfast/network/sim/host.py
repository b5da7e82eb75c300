"""A protocol machine on a simulated node: sends use the node's routing, and timers use the node's clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Any, Protocol

from ...model.host import Actions, Host
from ...model.protocol import (
    EVERYBODY,
    Deliver,
    Drop,
    Nearby,
    Peer,
    ProtocolMachine,
    Received,
    Route,
    Send,
    Spread,
    Started,
)
from ...model.space import Rectangle
from .chance import derive_seed
from .frame import BROADCAST, NEIGHBOURS
from .node import Node
from .routing.datagram import Datagram

KIND = "machine"
SPREAD, NEARBY = "/spread", "/nearby"
"""Suffixes of message types, for messages to all nodes in a rectangle and to all nodes one hop away."""


class RoutingService(Protocol):
    """The interface that routing offers to the layers above it. [F19, F20]"""

    def send(self, destination: Any, type: str, message: Any, size: int, cause: str = "") -> None:
        """Send a message of ``size`` bytes over any number of hops.

        The destination is a node, all nodes (``BROADCAST``), the node nearest to a point, or all nodes in a
        rectangle. ``cause`` names the purpose of the message in accounts.
        """

    def register_handler(self, type: str, peek: bool, callback: Callable[[Any], Any]) -> None:
        """Call ``callback`` with each message of a type: messages for this node or, with ``peek``, messages
        in transit.
        """


def _ignore(*_: Any) -> None:
    """Discard a delivery. This is the default of `NodeHost.deliver`."""


@dataclass(eq=False, slots=True)
class NodeHost:
    """Runs a protocol machine on a node. Peers are node numbers. Messages from a dropped peer are ignored."""

    node: Node
    machine: ProtocolMachine
    routing: RoutingService
    _: KW_ONLY
    size: Callable[[Any], int]
    deliver: Callable[[Node, Any], None] = _ignore
    cause: str = ""
    kind: str = KIND
    stored_state: InitVar[Any] = None
    """The machine's state from before a restart; ``None`` to start without state."""
    _host: Host = field(init=False)
    _dropped: dict[Peer, str] = field(default_factory=dict, init=False)

    def __post_init__(self, stored_state: Any) -> None:
        state = self.machine.initial() if stored_state is None else stored_state
        actions: Actions = {
            Send: self._send,
            Route: lambda effect: self._to(tuple(effect.to), "", effect),
            Spread: lambda effect: self._to(Rectangle(effect.low, effect.high), SPREAD, effect),
            Nearby: lambda effect: self._to(NEIGHBOURS, NEARBY, effect),
            Deliver: lambda effect: self.deliver(self.node, effect.what),
            Drop: self._drop,
        }
        self._host = Host(self.machine, state, self.node, actions, alive=lambda: self.node.alive)
        self.routing.register_handler(self.kind, False, self._on_message)
        if getattr(self.machine, "peeks", False):
            self.routing.register_handler(self.kind, True, self._on_transit)
        self.routing.register_handler(self.kind + SPREAD, False, self._on_message)
        self.routing.register_handler(self.kind + NEARBY, False, self._on_message)
        self._host.tell(Started, derive_seed(self.node.seed, self.kind, self.node.boots))

    @property
    def state(self) -> Any:
        """The current state of the machine."""
        return self._host.state

    def ask(self, request: Any) -> None:
        """Pass a request of the application to the machine."""
        self._host.ask(request)

    def _on_message(self, message: Datagram) -> None:
        sender = str(message.origin)
        if sender not in self._dropped:
            self._host.tell(Received, sender, message.message)

    def _send(self, effect: Send) -> None:
        self._to(BROADCAST if effect.to == EVERYBODY else int(effect.to), "", effect)

    def _to(self, destination: Any, suffix: str, effect: Send | Route | Spread | Nearby) -> None:
        message, cause = effect.message, effect.cause or self.cause
        self.routing.send(destination, self.kind + suffix, message, self.size(message), cause)

    def _on_transit(self, message: Datagram) -> Any:
        if not isinstance(message.destination, tuple):
            return message.message
        return self._host.peek(message.destination, message.message)

    def _drop(self, effect: Drop) -> None:
        self._dropped[effect.peer] = effect.why
