"""A rehearsal: a run of a protocol's machines in which every message arrives complete and almost at once.

It shows which messages a protocol sends end to end, for readings that change a condition, for other readings,
and without readings. `hop` and `routes` estimate what these messages cost.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np

from ...model.event import Event
from ...model.instant import MILLISECOND, SECOND, Duration, Instant
from ...model.space import Rectangle
from ..motes.case import SimulationCase
from ..motes.connection import ConnectionAck, ConnectionSegment
from ..motes.play import cast
from ..motes.run import SimulationRun
from ..protocols.dds.message import DataMessage, SampleAck
from ..sim.frame import BROADCAST, NodeId
from ..sim.host import RoutingService
from ..sim.mac import Csma
from ..sim.node import Node
from ..sim.routing.datagram import Datagram, Destination
from ..sim.routing.router import TO_ALL
from .hop import Floats, RadioModel
from .rates import Example
from .routes import NodePath, Routes

LATENCY = MILLISECOND
SLOT = 2 * SECOND
"""The least time in µs for each reading. The slot must contain all messages that the reading causes."""
SETTLED = 60 * SECOND
"""The time in µs before the first reading, in which discovery completes."""
QUIET = 1050 * SECOND
"""The time in µs after the last reading, to observe traffic without readings. Readings are distributed over
the same time, so that a rotating role visits several nodes.
"""

INEXHAUSTIBLE = 1e9
"""The battery capacity in joules for a rehearsal, so that no node dies."""

EVENTS = frozenset(("data", "ack", "notification", "publication"))
"""Causes of messages that a reading triggers. All other messages are sent without readings too."""


SETTLING, CYCLES = 2, 3
"""The number of cycles before the measurement, and the least number of cycles to measure."""
MESSAGES, FRAMES = 1500, 20_000
"""The numbers of messages or frames after which the measurement may end."""


@dataclass(frozen=True)
class SentMessage:
    """A message that a protocol sends from one node to another, or to all."""

    at: Instant
    path: NodePath
    """The nodes on its path; for a flood, the nodes that send it."""
    flood: bool
    size: int
    word: str
    more: tuple[int, ...]
    """The bytes that routing adds at each hop; empty if it adds none."""
    exchange: Any
    """A key that a message shares with its answers; ``None`` for a message without answers."""

    @property
    def ends(self) -> tuple[NodeId, ...]:
        """The nodes at which the message arrives for its handlers."""
        return self.path[1:] if self.flood else self.path[-1:]


@dataclass(frozen=True)
class RehearsalResult:
    """The messages sent in a rehearsal, and the notifications of subscribers."""

    start: list[SentMessage]
    """The messages that are sent before the first reading."""
    by_reading: list[list[SentMessage]]
    """The messages that each reading triggers."""
    notified: list[dict[tuple[str, NodeId], Instant]]
    """For each reading, the times of the notifications that it triggers, by subscription and node."""
    idle: list[SentMessage]
    """The messages since the first reading that no reading triggers."""
    seconds: float
    """The duration in seconds in which the ``idle`` messages were sent."""
    patience: float | None
    """The seconds after which a node without an answer sends again; ``None`` if the protocol does not repeat.
    """
    cycle: Duration | None
    """The period in µs of traffic without readings; ``None`` if that traffic is not periodic."""

    @property
    def a_second(self) -> float:
        """The number of messages per second that no reading triggers."""
        return len(self.idle) / self.seconds

    @property
    def together(self) -> int:
        """The greatest number of ``idle`` messages that are sent at the same time."""
        return max(Counter(sent.at for sent in self.idle).values(), default=0)


def rehearse(case: SimulationCase, seed: int, examples: Sequence[Example]) -> RehearsalResult:
    """Publish each reading in a slot of its own, then observe the protocol without readings."""
    slot = max(SLOT, QUIET // max(1, len(examples)))
    when = [i * slot for i in range(len(examples))]
    events = [replace(sent.event, time=at) for sent, at in zip(examples, when, strict=True)]
    case = without_disturbance(case)
    stage = cast(replace(case, scenario=replace(case.scenario, mac=Csma())), events)
    ends = SETTLED + len(examples) * slot + QUIET
    run = Rehearsal(replace(stage, scenario=replace(stage.scenario, duration=ends)), seed)
    run.finish()
    return run.result([SETTLED + at for at in when], slot)


def without_disturbance(case: SimulationCase) -> SimulationCase:
    """Return the case without deaths, failures and plain traffic."""
    energy = replace(case.scenario.energy, battery=INEXHAUSTIBLE if case.scenario.energy.battery else None)
    calm = replace(case.scenario, energy=energy, failures=(), traffic=())
    return replace(case, scenario=replace(calm, warm_up=SETTLED, duration=2 * SETTLED))


def simulate_idle(
    case: SimulationCase, seed: int, events: Sequence[Event], cycle: Duration, a_second: float
) -> tuple[Floats, float]:
    """Simulate a protocol without readings, frame by frame, for some of its cycles.

    Return the power of each node in W, rest included, and frames per second.  ``a_second`` is the expected
    number of messages per second.  A protocol that sends many messages at a time delays its own messages,
    loses them in collisions, and sends them again, which no sum over single messages shows.  Its traffic
    repeats with every cycle, so a few cycles are enough; the readings of months need not be played.
    """
    stage = cast(without_disturbance(case), events)
    length = max(CYCLES * cycle, round(MESSAGES / a_second * SECOND))
    begin = SETTLED + SETTLING * cycle
    end = begin + -(-length // cycle) * cycle
    own = stage.scenario.publishers
    publishers = tuple(replace(each, start=end + each.start, sampled=None) for each in own)
    scenario = replace(stage.scenario, publishers=publishers, warm_up=begin, duration=end)
    run = SimulationRun(replace(stage, scenario=scenario), seed)
    network, before = run.network, list[float]()
    network.at(begin, lambda: before.extend(network.joules()))

    def stop_if_enough() -> None:
        if network.medium.transmissions >= FRAMES:
            network.stop()

    for at in range(begin + CYCLES * cycle, end, cycle):
        network.at(at, stop_if_enough)
    measures = run.finish().measures
    seconds = measures["seconds"]
    return (np.array(network.joules()) - before) / seconds, measures["transmissions"] / seconds


class Rehearsal(SimulationRun):
    """A simulation run whose nodes exchange messages directly, without radio."""

    def __init__(self, case: SimulationCase, seed: int) -> None:
        super().__init__(case, seed)
        self.sent: list[SentMessage] = []
        self.carriers = [Carrier(node, self) for node in self.network.nodes]
        machine, _ = self._routing
        self.routes = Routes(RadioModel(self.network, False), machine)

    def _router(self, node: Node) -> RoutingService:
        return self.carriers[node.id]

    def result(self, when: Sequence[Instant], length: Duration) -> RehearsalResult:
        """Return the messages sent, grouped by the reading that triggered them."""
        begin, slots = when[0] if when else SETTLED, len(when)
        by_reading: list[list[SentMessage]] = [[] for _ in when]
        notified: list[dict[tuple[str, NodeId], Instant]] = [{} for _ in when]
        idle: list[SentMessage] = []
        for sent in self.sent:
            slot = (sent.at - begin) // length
            if sent.at < begin:
                continue
            if sent.word in EVENTS and slot < slots:
                by_reading[slot].append(sent)
            else:
                idle.append(sent)
        for time, subscription, _ in self.account.notifications:
            if begin <= time and (slot := (time - begin) // length) < slots:
                notified[slot].setdefault((subscription.name, subscription.node), time)
        start = [sent for sent in self.sent if sent.at < begin]
        seconds, patience = (self.network.now - begin) / SECOND, self.family.patience
        patience_s = None if patience is None else patience / SECOND
        return RehearsalResult(start, by_reading, notified, idle, seconds, patience_s, self.family.cycle)


Handler = Callable[[Any], Any]


@dataclass
class Carrier:
    """The routing service of a node in a rehearsal. It calls the receiver's handlers without sending
    frames.
    """

    node: Node
    stage: Rehearsal
    receivers: dict[str, list[Handler]] = field(default_factory=dict)
    peekers: dict[str, list[Handler]] = field(default_factory=dict)
    number: int = 0

    def register_handler(self, type: str, peek: bool, callback: Handler) -> None:
        (self.peekers if peek else self.receivers).setdefault(type, []).append(callback)

    def send(self, destination: Destination, type: str, message: Any, size: int, cause: str = "") -> None:
        """Send a message and deliver it to the handlers of its receivers, without frames."""
        self.number += 1
        datagram = Datagram(self.node.id, self.number, destination, type, message, size, cause)
        if destination == self.node.id:
            self.deliver(datagram)
        else:
            carry = self._flood if destination in TO_ALL else self._carry
            if isinstance(destination, Rectangle):
                carry = self._spread
            self.node.clock.after(LATENCY, carry, datagram)

    def _carry(self, datagram: Datagram) -> None:
        """Carry a message from node to node. Handlers that peek may change or consume it on the way."""
        destination, path = datagram.destination, [self.node.id]
        routes, onward, more = self.stage.routes, NodePath(), NodePath()
        if self.stage.network.now >= routes.opens:
            onward = routes.path(self.node.id, destination)[1:]
            more = routes.more(self.node.id, destination)
        for node in onward:
            path.append(node)
            if node == destination:
                break
            if (peeked := self.stage.carriers[node].peek(datagram)) is None:
                self._record(tuple(path), datagram, more)
                return
            datagram = peeked
        self._record(tuple(path), datagram, more)
        if isinstance(destination, tuple) or path[-1] == destination:  # no node is nearer to the point
            self.stage.carriers[path[-1]].deliver(datagram)

    def peek(self, datagram: Datagram) -> Datagram | None:
        """Return the message as the node forwards it; ``None`` if a handler consumed it."""
        for peek in self.peekers.get(datagram.type, ()):
            message = peek(datagram)
            if message is None:
                return None
            datagram = msgspec.structs.replace(datagram, message=message)
        return datagram

    def deliver(self, datagram: Datagram) -> None:
        for receive in self.receivers.get(datagram.type, ()):
            receive(datagram)

    def _flood(self, datagram: Datagram) -> None:
        """Send a message to all nodes. Each node repeats it once, unless a handler that peeks consumes it."""
        senders, received, todo = [], {self.node.id}, deque([(self.node.id, datagram)])
        while todo:
            node, carried = todo.popleft()
            senders.append(node)
            for there in sorted(self.stage.routes.model.near[node].keys() - received):
                received.add(there)
                self.stage.carriers[there].deliver(carried)
                peeked = self.stage.carriers[there].peek(carried)
                if peeked is not None and datagram.destination == BROADCAST:
                    todo.append((there, peeked))
        self._record(tuple(senders), datagram, (), flood=True)

    def _spread(self, datagram: Datagram) -> None:
        """Send a message to all nodes in a rectangle."""
        assert isinstance(datagram.destination, Rectangle)
        if self.stage.network.now < self.stage.routes.opens:
            return
        found = self.stage.routes.spread(self.node.id, datagram.destination)
        if found.senders:
            self._record(tuple(found.senders), datagram, (), flood=True)
        for node in found.hops:
            self.stage.carriers[node].deliver(datagram)

    def _record(self, path: NodePath, datagram: Datagram, more: tuple[int, ...], flood: bool = False) -> None:
        if len(path) > 1 or flood:
            word = datagram.cause.rpartition(" ")[2]
            exchange = _exchange(path, datagram.message)
            now = self.stage.network.now
            self.stage.sent.append(SentMessage(now, path, flood, datagram.size, word, more, exchange))
            self._use_energy(path, now)

    def _use_energy(self, path: NodePath, now: Instant) -> None:
        """Use some energy at the nodes on the path and in range, so that roles elected by energy rotate."""
        for node in path:
            for sent in (node, *self.stage.routes.model.near[node]):
                self.stage.network.nodes[sent].energy.mcu.work(now, self.node.work.receive)


def _exchange(path: NodePath, message: Any) -> Any:
    """Return the key that a message shares with its answer; ``None`` for messages without answers."""
    match message:
        case DataMessage(name=name, reliable=True) | SampleAck(name=name):
            return name
        case ConnectionSegment(session, _, number) | ConnectionAck(_, session, number):
            return frozenset((path[0], path[-1])), session, number
    return None
