"""A protocol machine on a node: its sends go through routing, its timers by the node's clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..model.protocol import (
    EVERYBODY,
    Asked,
    CancelTimer,
    Deliver,
    Drop,
    Effect,
    Fired,
    Input,
    Peer,
    ProtocolMachine,
    Received,
    Send,
    SetTimer,
    Started,
)
from .chance import derived
from .clock import Entry
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


class Host:
    """Runs a machine; peers are the names of nodes, by default their numbers."""

    def __init__(
        self,
        node: Node,
        machine: ProtocolMachine,
        routing: Routing,
        *,
        size: Callable[[Any], int],
        deliver: Callable[[Node, Any], None] = lambda node, what: None,
        cause: str = "",
        name: Callable[[NodeId], Peer] = str,
        number: Callable[[Peer], NodeId] = int,
        kind: str = KIND,
        state: Any = None,
    ) -> None:
        self._node, self._machine, self._routing = node, machine, routing
        self._size, self._deliver, self._cause, self._kind = size, deliver, cause, kind
        self._name, self._number = name, number
        self._timers: dict[str, Entry] = {}
        self._shunned: dict[Peer, str] = {}
        self.state = machine.initial() if state is None else state
        """What the machine knows; a state that was kept from an earlier life may be given back to it."""
        routing.register_handler(kind, False, self._received)
        self._handle(Started(node.now, derived(node.seed, kind, node.boots)))

    def ask(self, request: Any) -> None:
        """The application wants something."""
        self._handle(Asked(self._node.now, request))

    def _received(self, carried: Carried) -> None:
        sender = self._name(carried.origin)
        if sender not in self._shunned:
            self._handle(Received(self._node.now, sender, carried.message))

    def _fired(self, timer: str) -> None:
        del self._timers[timer]
        self._handle(Fired(self._node.now, timer))

    def _handle(self, given: Input) -> None:
        self.state, effects = self._machine.handle(self.state, given)
        for effect in effects:
            if not self._node.alive:
                return
            self._do(effect)

    def _do(self, effect: Effect) -> None:
        match effect:
            case Send(to, message, cause):
                where = BROADCAST if to == EVERYBODY else self._number(to)
                self._routing.send(where, self._kind, message, self._size(message), cause or self._cause)
            case SetTimer(timer, at):
                self._cancel(timer)
                self._timers[timer] = self._node.at(at, self._fired, timer)
            case CancelTimer(timer):
                self._cancel(timer)
            case Deliver(what):
                self._deliver(self._node, what)
            case Drop(peer, why):
                self._shunned[peer] = why

    def _cancel(self, timer: str) -> None:
        if timer in self._timers:
            self._node.cancel(self._timers.pop(timer))


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
