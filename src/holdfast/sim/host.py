"""A protocol machine on a node: its sends go through routing, its timers by the node's clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Any, Protocol

from ..model.host import Actions, Host
from ..model.protocol import (
    EVERYBODY,
    Deliver,
    Drop,
    Peer,
    ProtocolMachine,
    Received,
    Send,
    Started,
)
from .chance import derived
from .frame import BROADCAST, Frame, NodeId
from .node import Node

KIND = "machine"


class Carried(Protocol):
    """A message as routing hands it over."""

    @property
    def origin(self) -> NodeId: ...
    @property
    def message(self) -> Any: ...


class Routing(Protocol):
    """What a routing protocol offers to what runs above it [F19, F20]."""

    def send(self, destination: Any, type: str, message: Any, size: int, cause: str = "") -> None:
        """Bring a message of ``size`` bytes to a node, or to all (``BROADCAST``), by any number of hops."""

    def register_handler(self, type: str, peek: bool, callback: Callable[[Any], Any]) -> None:
        """Have ``callback`` called with messages of a type: those for us; with ``peek`` those that pass."""


def _ignore(*_: Any) -> None:
    """What is for nobody."""


@dataclass(eq=False, slots=True)
class NodeHost:
    """Runs a machine on a node.  Peers are the numbers of nodes; one that is dropped is not heard again."""

    node: Node
    machine: ProtocolMachine
    routing: Routing
    _: KW_ONLY
    size: Callable[[Any], int]
    deliver: Callable[[Node, Any], None] = _ignore
    cause: str = ""
    kind: str = KIND
    kept: InitVar[Any] = None
    """What the machine knew in an earlier life, if it gets that back."""
    _host: Host = field(init=False)
    _shunned: dict[Peer, str] = field(default_factory=dict, init=False)

    def __post_init__(self, kept: Any) -> None:
        state = self.machine.initial() if kept is None else kept
        actions: Actions = {Send: self._send, Deliver: self._delivered, Drop: self._drop}
        self._host = Host(self.machine, state, self.node, actions, alive=lambda: self.node.alive)
        self.routing.register_handler(self.kind, False, self._received)
        self._host.tell(Started, derived(self.node.seed, self.kind, self.node.boots))

    @property
    def state(self) -> Any:
        """What the machine knows."""
        return self._host.state

    def ask(self, request: Any) -> None:
        """The application wants something."""
        self._host.ask(request)

    def _received(self, carried: Carried) -> None:
        sender = str(carried.origin)
        if sender not in self._shunned:
            self._host.tell(Received, sender, carried.message)

    def _send(self, effect: Send) -> None:
        where = BROADCAST if effect.to == EVERYBODY else int(effect.to)
        message = effect.message
        self.routing.send(where, self.kind, message, self.size(message), effect.cause or self.cause)

    def _delivered(self, effect: Deliver) -> None:
        self.deliver(self.node, effect.what)

    def _drop(self, effect: Drop) -> None:
        self._shunned[effect.peer] = effect.why


class OneHop:
    """Routing for neighbours only: a message goes over one link or not at all."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._handlers: dict[str, Callable[[Any], Any]] = {}
        node.link.listen(self._received)

    def send(self, destination: Any, type: str, message: Any, size: int, cause: str = "") -> None:
        self._node.link.send(destination, Hop(self._node.id, type, message), size, cause)

    def register_handler(self, type: str, peek: bool, callback: Callable[[Any], Any]) -> None:
        if not peek:
            self._handlers[type] = callback

    def _received(self, frame: Frame) -> None:
        hop: Hop = frame.payload
        if hop.type in self._handlers:
            self._handlers[hop.type](hop)


class Hop:
    """A message between neighbours."""

    __slots__ = ("message", "origin", "type")

    def __init__(self, origin: NodeId, type: str, message: Any) -> None:
        self.origin, self.type, self.message = origin, type, message
