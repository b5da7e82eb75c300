"""Protocol machines on nodes without radios: messages to points, and to all nodes in a rectangle.

Messages are lost only with nodes that fail. A hop takes a fixed time or, with a seed, a random time, so that
messages overtake one another. Traffic is counted in messages and hops. Machines that peek inspect every
message in transit, hop by hop.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from msgspec.structs import replace

from ...model.host import Actions, Host
from ...model.instant import MILLISECOND, Duration, Instant
from ...model.protocol import Deliver, Nearby, ProtocolMachine, Received, Route, Spread, Started
from ..sim.field import Field
from ..sim.frame import NodeId
from ..sim.routing.geographic import Course

HOP = 10 * MILLISECOND
"""The duration of a hop in µs, without a seed."""


class FieldNetwork:
    """A machine on each node of a field, with a common clock."""

    def __init__(
        self, field: Field, machine: Callable[[NodeId], ProtocolMachine], seed: int | None = None
    ) -> None:
        self.field = field
        self.now: Instant = 0
        self.messages: Counter[str] = Counter()
        """The number of messages sent, by kind."""
        self.hops: Counter[str] = Counter()
        """The number of transmissions, by kind of message."""
        self.transmitted: Counter[NodeId] = Counter()
        """Transmissions by node, where machines peek."""
        self.delivered: list[tuple[Instant, NodeId, Any]] = []
        """The machines' deliveries to their users, each with its time and node."""
        self.on_delivery: Callable[[NodeId, Any], None] | None = None
        """A function to call at each delivery; ``None`` for no call."""
        self.hosts: dict[NodeId, Host] = {}
        self._machine = machine
        self._chance = None if seed is None else random.Random(seed)
        self._due: list[tuple[Instant, int, Callable[[Any], object], Any]] = []
        self._numbers = count()
        self._cancelled: set[int] = set()
        self._on_the_way = 0
        for node in field.alive:
            self.start(node)

    # --- running ---

    def start(self, node: NodeId) -> None:
        """Start a node, or restart it without memory."""
        self.field.recover(node)
        machine = self._machine(node)
        actions: Actions = {
            Route: partial(self._walk if getattr(machine, "peeks", False) else self._route, node),
            Spread: partial(self._spread, node),
            Nearby: partial(self._nearby, node),
            Deliver: partial(self._deliver, node),
        }
        self.hosts[node] = Host(machine, machine.initial(), self, actions)
        self.hosts[node].tell(Started, node)

    def _deliver(self, node: NodeId, effect: Deliver) -> None:
        self.delivered.append((self.now, node, effect.what))
        if self.on_delivery is not None:
            self.on_delivery(node, effect.what)

    def kill(self, node: NodeId) -> None:
        """Take a node down without notice to other nodes."""
        self.field.fail(node)
        self.hosts.pop(node).stop()

    def ask(self, node: NodeId, request: Any) -> None:
        """Pass a client's request to a node."""
        self.hosts[node].ask(request)

    def run(self, length: Duration) -> None:
        """Process all events that are due within ``length`` µs."""
        until = self.now + length
        while self._due and self._due[0][0] <= until:
            self._next()
        self.now = until

    def settle(self) -> None:
        """Process events until no message is in transit. Later timers do not fire."""
        while self._on_the_way:
            self._next()

    def _next(self) -> None:
        self.now, number, action, argument = heapq.heappop(self._due)
        if number in self._cancelled:
            self._cancelled.discard(number)
        else:
            action(argument)

    # --- clock of the hosts ---

    def at(self, when: Instant, action: Callable[[Any], Any], argument: Any) -> int:
        """Schedule a call; return its number for `cancel`."""
        number = next(self._numbers)
        heapq.heappush(self._due, (max(when, self.now), number, action, argument))
        return number

    def cancel(self, timer: int) -> None:
        """Cancel a scheduled call."""
        self._cancelled.add(timer)

    # --- messages ---

    def _route(self, node: NodeId, effect: Route) -> None:
        way = self.field.path(node, effect.to)
        self._count(effect, len(way) - 1)
        self._put(way[-1], node, effect.message, len(way) - 1)

    def _spread(self, node: NodeId, effect: Spread) -> None:
        found = self.field.spread(node, effect.low, effect.high)
        self._count(effect, len(found.senders))
        self.transmitted.update(found.senders)
        for other, hops in found.hops.items():
            self._put(other, node, effect.message, hops)

    def _nearby(self, node: NodeId, effect: Nearby) -> None:
        self._count(effect, 1)
        self.transmitted[node] += 1
        for other in self.field.near(node):
            self._put(other, node, effect.message, 1)

    def _walk(self, node: NodeId, effect: Route) -> None:
        """Send a message from node to node. Each node may inspect, change or consume it."""
        self._count(effect, 0)
        self._step(node, effect, node, self.field.hop(node, effect.to, Course()))

    def _step(
        self, origin: NodeId, effect: Route, here: NodeId, onward: tuple[NodeId, Course] | None
    ) -> None:
        """Send a message one hop further; put it to its receiver if it has arrived."""
        if onward is None:
            self._put(here, origin, effect.message, 0)
        else:
            self.hops[effect.cause] += 1
            self.transmitted[here] += 1
            self._on_the_way += 1
            self.at(self.now + self._length(), self._on_hop, (origin, effect, *onward))

    def _on_hop(self, walk: tuple[NodeId, Route, NodeId, Course]) -> None:
        """Handle the end of a hop: the node may inspect, change or consume the message."""
        self._on_the_way -= 1
        origin, effect, here, course = walk
        if here not in self.hosts:
            return
        onward = self.field.hop(here, effect.to, course)
        if onward is not None:
            message = self.hosts[here].peek(effect.to, effect.message)
            if message is None:
                return
            effect = effect if message is effect.message else replace(effect, message=message)
        self._step(origin, effect, here, onward)

    def _count(self, effect: Route | Spread | Nearby, hops: int) -> None:
        self.messages[effect.cause] += 1
        self.hops[effect.cause] += hops

    def _put(self, to: NodeId, sender: NodeId, message: Any, hops: int) -> None:
        self._on_the_way += 1
        self.at(self.now + hops * self._length(), self._arrive, (to, sender, message))

    def _length(self) -> Duration:
        return HOP if self._chance is None else self._chance.randint(1, 20 * HOP)

    def _arrive(self, what: tuple[NodeId, NodeId, Any]) -> None:
        self._on_the_way -= 1
        to, sender, message = what
        if to in self.hosts:
            self.hosts[to].tell(Received, str(sender), message)
