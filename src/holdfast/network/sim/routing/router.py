"""The router of a node: it runs a routing machine, and offers its service to the layers above. [F19, F20]"""

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
"""A function to call with a datagram in transit. It returns the message to forward, or ``None`` to consume
it.
"""

TO_ALL = (BROADCAST, NEIGHBOURS)
ROUTING = "routing"
"""The cause of the routing protocol's own frames: beacons, requests, notices."""


class Router:
    """A node's routing service.

    Messages to all nodes are flooded and messages to neighbours are sent once, whatever the machine. The
    machine routes all other messages.
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
        """Call ``callback`` with messages of a type: messages for this node or, with ``peek``, messages in
        transit.
        """
        (self._peekers if peek else self._receivers).setdefault(type, []).append(callback)

    def send(self, destination: Destination, type: str, message: Any, size: int, cause: str = "") -> None:
        """Send a message of ``size`` bytes.

        The destination is a node, all nodes (``BROADCAST``), all nodes in range (``NEIGHBOURS``), the node
        nearest to a point, or all nodes in a rectangle. Raise a `UsageError` if the machine cannot route to
        it.
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
        """Whether the node still runs this router."""
        return self.node.alive and self.node.boots == self._boots

    def held(self) -> Iterable[Datagram]:
        """Yield the datagrams that wait at the link or in a machine."""
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
        """Send a frame for a machine, and record the outcome of the datagram that it carries."""
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
