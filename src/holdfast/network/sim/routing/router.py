"""Router: runs a routing machine on a node, and offers its service to the layers above [F19, F20]."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from ....errors import UsageError
from ....model.host import Actions, Host
from ....model.protocol import Deliver, Started
from ..frame import ACKNOWLEDGED, AIRED, BROADCAST, NEIGHBOURS, Frame, Outcome
from ..node import Node
from .datagram import (
    TAKEN,
    Datagram,
    Destination,
    Discard,
    FrameReceived,
    RecentKeys,
    Relay,
    RoutingMachine,
    TransmissionDone,
    Transmit,
)
from .flooding import FLOODING, Flooding
from .ledger import MessageLedger

Receive = Callable[[Datagram], None]
Peek = Callable[[Datagram], Any]
"""Called with a datagram in transit; returns the message to send on in it, or ``None`` to consume it."""

TO_ALL = (BROADCAST, NEIGHBOURS)
ROUTING = "routing"
"""The cause of frames of the routing protocol itself: beacons, requests, notices."""


class Router:
    """A node's routing service.

    Messages to all nodes are flooded and messages to neighbours are sent once, whatever the machine; the
    machine routes all others.
    """

    def __init__(
        self, node: Node, machine: RoutingMachine, ledger: MessageLedger, flooding: Flooding = FLOODING
    ) -> None:
        self.node = node
        self._ledger = ledger
        self._machines: tuple[RoutingMachine, ...] = (machine, flooding)
        self._hosts = tuple(map(self._make_host, self._machines))
        self._receivers: dict[str, list[Receive]] = {}
        self._peekers: dict[str, list[Peek]] = {}
        self._on_link: dict[int, Datagram] = {}
        self._links = 0
        self._delivered = RecentKeys()
        self._boots = node.boots
        self._number = node.boots << 32  # numbers stay unique after a restart
        ledger.join(node.id, self)
        on_overheard = self._on_overheard if getattr(machine, "overhears", True) else None
        node.link.listen(self._on_frame, on_overheard)
        for host in self._hosts:
            host.tell(Started, node.random.getrandbits(63))

    def _make_host(self, machine: RoutingMachine) -> Host:
        actions: Actions = {
            Transmit: lambda effect: self._transmit(host, effect),
            Deliver: lambda effect: self._deliver(effect.what),
            Relay: lambda effect: self._relay(effect.datagram),
            Discard: lambda effect: self._ledger.end(effect.datagram, effect.why),
        }
        return (host := Host(machine, machine.initial(self.node.id), self.node, actions, punctual=True))

    # Interface for the layers above.

    def register_handler(self, type: str, peek: bool, callback: Callable[[Datagram], Any]) -> None:
        """Call ``callback`` with messages of a type: those for this node or, with ``peek``, those in
        transit.
        """
        (self._peekers if peek else self._receivers).setdefault(type, []).append(callback)

    def send(self, destination: Destination, type: str, message: Any, size: int, cause: str = "") -> None:
        """Send a message to a node, to all (``BROADCAST``), to all in range (``NEIGHBOURS``), to the node
        nearest to a point, or to all nodes in a rectangle.
        """
        if destination not in TO_ALL and (why := self._machines[0].refuses(destination)):
            raise UsageError(f"node {self.node.id} cannot send to {destination}: {why}")
        self._number += 1
        datagram = Datagram(self.node.id, self._number, destination, type, message, size, cause)
        self._ledger.send(datagram, self.node.clock.now)
        if destination == self.node.id:
            self._deliver(datagram)
        else:
            self._host_for(datagram).ask(datagram)

    @property
    def alive(self) -> bool:
        """Whether this router still runs."""
        return self.node.alive and self.node.boots == self._boots

    def held(self) -> Iterable[Datagram]:
        """The datagrams held by the link or by a machine."""
        yield from self._on_link.values()
        for machine, host in zip(self._machines, self._hosts, strict=True):
            yield from machine.held(host.state)

    # Callbacks of the link.

    def _on_frame(self, frame: Frame) -> None:
        what = frame.payload
        if isinstance(what, Datagram):
            self._ledger.visit(what, self.node.id)
        self._host_for(what).tell(FrameReceived, frame.source, what, True)

    def _on_overheard(self, frame: Frame) -> None:
        self._host_for(frame.payload).tell(FrameReceived, frame.source, frame.payload, False)

    def _host_for(self, what: Any) -> Host:
        return self._hosts[isinstance(what, Datagram) and what.destination in TO_ALL]

    # Effects of the machines.

    def _transmit(self, host: Host, effect: Transmit) -> None:
        datagram = effect.what if isinstance(effect.what, Datagram) else None
        self._links += 1
        number = self._links
        if datagram is not None:
            self._on_link[number] = datagram

        def done(outcome: Outcome) -> None:
            if datagram is not None:
                del self._on_link[number]
                if outcome == AIRED:
                    self._ledger.record_unacknowledged(datagram, effect.to)
                elif outcome != ACKNOWLEDGED:
                    self._ledger.end(datagram, outcome)
            if effect.token and self.alive:
                host.tell(TransmissionDone, effect.token, outcome)

        cause = datagram.cause if datagram is not None else ROUTING
        self.node.link.send(effect.to, effect.what, effect.size, cause, done)

    def _deliver(self, datagram: Datagram) -> None:
        self._ledger.arrive(datagram, self.node.id, self.node.clock.now)
        if self._delivered.add(datagram.key):
            for receive in self._receivers.get(datagram.type, ()):
                receive(datagram)

    def _relay(self, datagram: Datagram) -> None:
        for peek in self._peekers.get(datagram.type, ()):
            message = peek(datagram)
            if message is None:
                self._ledger.end(datagram, TAKEN)
                return
            if message is not datagram.message:
                datagram = replace(datagram, message=message)
        self._host_for(datagram).ask(datagram)
