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
    Nearby,
    Peer,
    ProtocolMachine,
    Received,
    Route,
    Send,
    Spread,
    Started,
)
from ..model.space import Rectangle
from .chance import derived
from .frame import BROADCAST, NEIGHBOURS, NodeId
from .node import Node

KIND = "machine"
SPREAD, NEARBY = "/spread", "/nearby"
"""What of a machine's goes to all in a rectangle, and what only one hop far."""


class Carried(Protocol):
    """A message as routing hands it over."""

    @property
    def origin(self) -> NodeId: ...
    @property
    def message(self) -> Any: ...


class Routing(Protocol):
    """What a routing protocol offers to what runs above it [F19, F20]."""

    def send(self, destination: Any, type: str, message: Any, size: int, cause: str = "") -> None:
        """Bring a message of ``size`` bytes to a node, to all (``BROADCAST``), to the node nearest to a point
        or to all nodes in a rectangle, by any number of hops."""

    def register_handler(self, type: str, peek: bool, callback: Callable[[Any], Any]) -> None:
        """Have ``callback`` called with messages of a type: those for us; with ``peek`` those that pass."""


class Passed(Carried, Protocol):
    """One that passes: it is known where it goes."""

    @property
    def destination(self) -> Any: ...


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
        actions: Actions = {
            Send: self._send,
            Route: self._route,
            Spread: self._spread,
            Nearby: self._nearby,
            Deliver: self._delivered,
            Drop: self._drop,
        }
        self._host = Host(self.machine, state, self.node, actions, alive=lambda: self.node.alive)
        self.routing.register_handler(self.kind, False, self._received)
        if getattr(self.machine, "peeks", False):
            self.routing.register_handler(self.kind, True, self._passes)
        self.routing.register_handler(self.kind + SPREAD, False, self._received)
        self.routing.register_handler(self.kind + NEARBY, False, self._received)
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

    # To points, to rectangles, and to those near by.

    def _route(self, effect: Route) -> None:
        self._to(tuple(effect.to), "", effect.message, effect.cause)

    def _to(self, where: Any, how: str, message: Any, cause: str) -> None:
        self.routing.send(where, self.kind + how, message, self.size(message), cause or self.cause)

    def _passes(self, carried: Passed) -> Any:
        if not isinstance(carried.destination, tuple):
            return carried.message
        return self._host.peek(carried.destination, carried.message)

    def _spread(self, effect: Spread) -> None:
        self._to(Rectangle(effect.low, effect.high), SPREAD, effect.message, effect.cause)

    def _nearby(self, effect: Nearby) -> None:
        self._to(NEIGHBOURS, NEARBY, effect.message, effect.cause)

    def _delivered(self, effect: Deliver) -> None:
        self.deliver(self.node, effect.what)

    def _drop(self, effect: Drop) -> None:
        self._shunned[effect.peer] = effect.why
