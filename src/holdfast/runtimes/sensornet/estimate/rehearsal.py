"""A protocol without a radio: its machines run on the nodes, and what they send arrives at once and whole.

So a rehearsal tells what is sent end to end for a reading, for one that turns a condition, and when nothing
happens.  What each message takes on its way is not known here.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from ....model.instant import MILLISECOND, SECOND, Duration, Instant
from ....model.space import Rectangle
from ....protocols.dds.message import Ack, Data
from ....sim.frame import BROADCAST, NodeId
from ....sim.host import Routing
from ....sim.mac import Csma
from ....sim.node import Node
from ....sim.routing.datagram import Datagram, Destination
from ....sim.routing.router import TO_ALL
from ..case import Case
from ..connection import Ack as SegmentAck
from ..connection import Segment
from ..play import cast
from ..run import Run
from .hop import Air
from .rates import Example
from .routes import Routes, Way

LATENCY = MILLISECOND
SLOT = 2 * SECOND
"""A reading in each, of this length at least; by its end everything that it brings about has happened."""
SETTLED = 60 * SECOND
"""Before the first reading: discovery is over."""
QUIET = 1050 * SECOND
"""Behind the last one: what is sent when nothing happens.  Readings are spread over as long: a role that goes
round is then at several nodes."""

INEXHAUSTIBLE = 1e9
"""Joules: in a rehearsal nobody dies."""

EVENTS = frozenset(("data", "ack", "notification", "publication"))
"""Words of what is sent because of a reading; all else is sent anyway."""


@dataclass(frozen=True)
class Sent:
    """A message from end to end."""

    at: Instant
    way: Way
    """From node to node; of a flood, those who say it."""
    flood: bool
    size: int
    word: str
    more: tuple[int, ...]
    """Bytes that routing writes on it at each hop, beyond what it always does; none if it never does."""
    exchange: Any
    """What it has in common with the messages that it answers, or that answer it; none if nobody does."""

    @property
    def ends(self) -> tuple[NodeId, ...]:
        """Who has it then."""
        return self.way[1:] if self.flood else self.way[-1:]


@dataclass(frozen=True)
class Rehearsed:
    """What was sent, and what subscribers were told."""

    start: list[Sent]
    """Before the first reading."""
    caused: list[list[Sent]]
    """By each reading."""
    told: list[dict[tuple[str, NodeId], Instant]]
    """Who was told because of each reading, and when: by subscription and node."""
    idle: list[Sent]
    """What nobody's reading caused, since the first one."""
    seconds: float
    """For how long that was sent."""
    patience: float | None
    """Seconds after which somebody who waits for an answer sends again."""
    cycle: Duration | None
    """After how long what is sent anyway is sent again."""

    @property
    def a_second(self) -> float:
        """How many messages are sent anyway."""
        return len(self.idle) / self.seconds

    @property
    def together(self) -> int:
        """How many messages the protocol sends by itself at a time, at most."""
        return max(Counter(sent.at for sent in self.idle).values(), default=0)


def rehearse(case: Case, seed: int, examples: Sequence[Example]) -> Rehearsed:
    """Readings one after the other, each in a slot of its own, then silence."""
    slot = max(SLOT, QUIET // max(1, len(examples)))
    when = [i * slot for i in range(len(examples))]
    events = [replace(each.event, time=at) for each, at in zip(examples, when, strict=True)]
    case = undisturbed(case)
    stage = cast(replace(case, scenario=replace(case.scenario, mac=Csma())), events)
    ends = SETTLED + len(examples) * slot + QUIET
    run = Rehearsal(replace(stage, scenario=replace(stage.scenario, duration=ends)), seed)
    run.finish()
    return run.rehearsed([SETTLED + at for at in when], slot)


def undisturbed(case: Case) -> Case:
    """The network with nobody who dies or fails, and nobody else's messages."""
    energy = replace(case.scenario.energy, battery=INEXHAUSTIBLE if case.scenario.energy.battery else None)
    scenario = replace(
        case.scenario, energy=energy, failures=(), traffic=(), warm_up=SETTLED, duration=2 * SETTLED
    )
    return replace(case, scenario=scenario)


class Rehearsal(Run):
    """A run whose messages need no radio."""

    def __init__(self, case: Case, seed: int) -> None:
        super().__init__(case, seed)
        self.sent: list[Sent] = []
        self.carriers = [Carrier(node, self) for node in self.network.nodes]
        machine, _ = self._routing
        self.routes = Routes(Air(self.network, False), machine)

    def _router(self, node: Node) -> Routing:
        return self.carriers[node.id]

    def rehearsed(self, when: Sequence[Instant], length: Duration) -> Rehearsed:
        """What was sent, by what caused it."""
        begin, slots = when[0] if when else SETTLED, len(when)
        caused: list[list[Sent]] = [[] for _ in when]
        told: list[dict[tuple[str, NodeId], Instant]] = [{} for _ in when]
        idle: list[Sent] = []
        for each in self.sent:
            slot = (each.at - begin) // length
            if each.at < begin:
                continue
            if each.word in EVENTS and slot < slots:
                caused[slot].append(each)
            else:
                idle.append(each)
        for time, wish, _ in self.account.told:
            if begin <= time and (slot := (time - begin) // length) < slots:
                told[slot].setdefault((wish.name, wish.node), time)
        return Rehearsed(
            [each for each in self.sent if each.at < begin],
            caused,
            told,
            idle,
            (self.network.now - begin) / SECOND,
            self.family.patience / SECOND if self.family.patience is not None else None,
            self.family.cycle,
        )


Handler = Callable[[Any], Any]


@dataclass
class Carrier:
    """A node's routing in a rehearsal."""

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
        """From node to node; who peeks may change it, or take it."""
        destination, way = datagram.destination, [self.node.id]
        routes, onward, more = self.stage.routes, Way(), Way()
        if self.stage.network.now >= routes.opens:
            onward = routes.way(self.node.id, destination)[1:]
            more = routes.more(self.node.id, destination)
        for node in onward:
            way.append(node)
            if node == destination:
                break
            passed = self.stage.carriers[node].passing(datagram)
            if passed is None:
                self._note(tuple(way), datagram, more)
                return
            datagram = passed
        self._note(tuple(way), datagram, more)
        if isinstance(destination, tuple) or way[-1] == destination:  # nobody is nearer to a point
            self.stage.carriers[way[-1]].deliver(datagram)

    def passing(self, datagram: Datagram) -> Datagram | None:
        """What goes on of a message; nothing if it was taken."""
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
        """Everybody who hears it repeats it once, unless whoever peeks takes it."""
        said, reached, todo = [], {self.node.id}, deque([(self.node.id, datagram)])
        while todo:
            node, carried = todo.popleft()
            said.append(node)
            for there in sorted(self.stage.routes.air.near[node].keys() - reached):
                reached.add(there)
                self.stage.carriers[there].deliver(carried)
                passed = self.stage.carriers[there].passing(carried)
                if passed is not None and datagram.destination == BROADCAST:
                    todo.append((there, passed))
        self._note(tuple(said), datagram, (), flood=True)

    def _spread(self, datagram: Datagram) -> None:
        """To all nodes in a rectangle."""
        assert isinstance(datagram.destination, Rectangle)
        if self.stage.network.now < self.stage.routes.opens:
            return
        found = self.stage.routes.spread(self.node.id, datagram.destination)
        if found.senders:
            self._note(tuple(found.senders), datagram, (), flood=True)
        for node in found.reached:
            self.stage.carriers[node].deliver(datagram)

    def _note(self, way: Way, datagram: Datagram, more: tuple[int, ...], flood: bool = False) -> None:
        if len(way) > 1 or flood:
            word = datagram.cause.rpartition(" ")[2]
            common = _exchange(way, datagram.message)
            now = self.stage.network.now
            self.stage.sent.append(Sent(now, way, flood, datagram.size, word, more, common))
            self._tire(way, now)

    def _tire(self, way: Way, now: Instant) -> None:
        """Those on the way, and those who hear it, use something: who has most energy left changes."""
        for node in way:
            for each in (node, *self.stage.routes.air.near[node]):
                self.stage.network.nodes[each].energy.mcu.work(now, self.node.work.receive)


def _exchange(way: Way, message: Any) -> Any:
    """What a message has in common with its answer."""
    match message:
        case Data(name=name, reliable=True) | Ack(name=name):
            return name
        case Segment(mine=session, number=number) | SegmentAck(yours=session, number=number):
            return frozenset((way[0], way[-1])), session, number
    return None
