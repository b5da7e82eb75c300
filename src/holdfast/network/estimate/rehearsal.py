"""A rehearsal: the protocol's machines run on the nodes, and messages arrive at once and completely.

It shows which messages are sent end to end for a reading, for a reading that changes a condition, and without
readings.  The costs of their hops are estimated elsewhere.
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
"""The least time for each reading; all messages that it causes are sent within it."""
SETTLED = 60 * SECOND
"""The time before the first reading, in which discovery completes."""
QUIET = 1050 * SECOND
"""The time after the last reading, to observe traffic without readings.  Readings are spread over as much
time, so that a rotating role comes to several nodes.
"""

INEXHAUSTIBLE = 1e9
"""Battery capacity in joules, so that no node dies in a rehearsal."""

EVENTS = frozenset(("data", "ack", "notification", "publication"))
"""Causes of messages that a reading triggers; all others are sent anyway."""


SETTLING, CYCLES = 2, 3
"""Cycles before the measurement, and the least number of cycles measured."""
MESSAGES, FRAMES = 1500, 20_000
"""The measurement may end after as many messages or frames."""


@dataclass(frozen=True)
class SentMessage:
    """A message sent end to end."""

    at: Instant
    path: NodePath
    """The nodes on its path; of a flood, its senders."""
    flood: bool
    size: int
    word: str
    more: tuple[int, ...]
    """Additional bytes that routing writes on it at each hop; empty if there are none."""
    exchange: Any
    """A key that it shares with the messages that it answers, or that answer it; None if there are none."""

    @property
    def ends(self) -> tuple[NodeId, ...]:
        """The nodes that receive it."""
        return self.path[1:] if self.flood else self.path[-1:]


@dataclass(frozen=True)
class RehearsalResult:
    """The messages sent, and the notifications of subscribers."""

    start: list[SentMessage]
    """Messages before the first reading."""
    by_reading: list[list[SentMessage]]
    """Messages triggered by each reading."""
    notified: list[dict[tuple[str, NodeId], Instant]]
    """Times of the notifications triggered by each reading, by subscription and node."""
    idle: list[SentMessage]
    """Messages since the first reading that no reading triggered."""
    seconds: float
    """The duration in which these were sent."""
    patience: float | None
    """Seconds after which a node without an answer sends again."""
    cycle: Duration | None
    """The period of traffic without readings."""

    @property
    def a_second(self) -> float:
        """Messages without readings per second."""
        return len(self.idle) / self.seconds

    @property
    def together(self) -> int:
        """The most messages without readings that are sent at the same time."""
        return max(Counter(sent.at for sent in self.idle).values(), default=0)


def rehearse(case: SimulationCase, seed: int, examples: Sequence[Example]) -> RehearsalResult:
    """Publish readings one after the other, each in a slot of its own, then none."""
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
    """The network without deaths, failures and plain traffic."""
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
    """A run whose messages need no radio."""

    def __init__(self, case: SimulationCase, seed: int) -> None:
        super().__init__(case, seed)
        self.sent: list[SentMessage] = []
        self.carriers = [Carrier(node, self) for node in self.network.nodes]
        machine, _ = self._routing
        self.routes = Routes(RadioModel(self.network, False), machine)

    def _router(self, node: Node) -> RoutingService:
        return self.carriers[node.id]

    def result(self, when: Sequence[Instant], length: Duration) -> RehearsalResult:
        """The messages sent, by the reading that triggered them."""
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
    """The routing service of a node in a rehearsal."""

    node: Node
    stage: Rehearsal
    receivers: dict[str, list[Handler]] = field(default_factory=dict)
    peekers: dict[str, list[Handler]] = field(default_factory=dict)
    number: int = 0

    def register_handler(self, type: str, peek: bool, callback: Handler) -> None:
        (self.peekers if peek else self.receivers).setdefault(type, []).append(callback)

    def send(self, destination: Destination, type: str, message: Any, size: int, cause: str = "") -> None:
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
        """Send from node to node; handlers that peek may change or consume the message."""
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
        """The message as the node sends it on; None if it was consumed."""
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
        """Each node that receives it repeats it once, unless a handler that peeks consumes it."""
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
        """Send to all nodes in a rectangle."""
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
        """Use some energy at the nodes on the path and in range, so that elections by energy rotate."""
        for node in path:
            for sent in (node, *self.stage.routes.model.near[node]):
                self.stage.network.nodes[sent].energy.mcu.work(now, self.node.work.receive)


def _exchange(path: NodePath, message: Any) -> Any:
    """The key that a message shares with its answer."""
    match message:
        case DataMessage(name=name, reliable=True) | SampleAck(name=name):
            return name
        case ConnectionSegment(session, _, number) | ConnectionAck(_, session, number):
            return frozenset((path[0], path[-1])), session, number
    return None
