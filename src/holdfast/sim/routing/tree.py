"""A tree to each sink: everybody sends to the neighbour through which the sink costs least (as in CTP).

The cost of a link is its expected number of transmissions (ETX), by the beacons that arrive both ways or,
if that is more, by what became of datagrams; or one for every hop.  A node that gets a datagram from
somebody who should be nearer to the sink than itself knows that costs are stale: it says its own again
soon, and keeps the datagram until then.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from msgspec.structs import replace

from ...model.instant import MILLISECOND, Duration, Instant
from ...model.protocol import Asked, Deliver, Fired, SetTimer, Started
from ..frame import ACKNOWLEDGED, AIRED, BROADCAST, NO_ACK, NodeId, Outcome
from .datagram import (
    ADDRESS,
    HEADER,
    HOP_LIMIT,
    NO_ROOM,
    Datagram,
    Destination,
    Discard,
    Effect,
    Heard,
    Input,
    Relay,
    Seen,
    Settled,
    Transmit,
)
from .neighbours import BEACON, BEACONS, Beacons, Neighbours, Pace, Report, report_bytes

_FADES = 0.9
"""How much the cost of a link so far counts beside what is found now."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a sink costs by us, and our parent on the way to it."""

    cost: float
    parent: NodeId | None


@dataclass(frozen=True, slots=True)
class Beacon:
    """What each sink costs by us."""

    number: int
    report: Report
    offers: tuple[tuple[NodeId, Offer], ...]


@dataclass(slots=True)
class TreeState:
    """A node's parents, what its neighbours offer, and what waits."""

    node: NodeId
    neighbours: Neighbours
    random: Random = field(default_factory=Random)
    pace: Pace = field(default_factory=Pace)
    links: dict[NodeId, float] = field(default_factory=dict)
    """The number of transmissions that datagrams to a neighbour took lately."""
    failed: dict[NodeId, int] = field(default_factory=dict)
    """How often in a row a neighbour did not acknowledge."""
    offers: dict[NodeId, dict[NodeId, Offer]] = field(default_factory=dict)
    """By neighbour and sink."""
    parents: dict[NodeId, NodeId] = field(default_factory=dict)
    said: dict[NodeId, float] = field(default_factory=dict)
    """What our last beacon said that each sink costs."""
    waiting: list[Datagram] = field(default_factory=list)
    visits: Seen = field(default_factory=Seen)
    sent: dict[str, tuple[Datagram, NodeId, int]] = field(default_factory=dict)
    """To which parent, and how often before."""
    again: dict[str, tuple[Datagram, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tree:
    """One tree for each sink."""

    sinks: tuple[NodeId, ...]
    metric: Literal["etx", "hops"] = "etx"
    beacons: Beacons = BEACONS
    least: float = 0.1
    """How likely something must arrive at a neighbour and be acknowledged for it to be a parent."""
    better: float = 1.5
    """By how much another parent's cost must be less before a node changes to it."""
    news: float = 2.0
    """By how much a cost must differ from what was said last for a beacon to be due soon."""
    failure: float = 4.0
    """As how many transmissions it counts that a parent did not acknowledge."""
    row: int = 3
    """Up to how many failures in a row make each count for more."""
    resends: int = 10
    """How often a node tries again to pass a datagram on."""
    pause: Duration = 40 * MILLISECOND
    """The longest wait before a datagram is sent again."""
    room: int = 8
    """How many datagrams wait for a parent at most."""
    limit: int = 64
    """The hops after which a datagram is given up."""

    def initial(self, node: NodeId) -> TreeState:
        return TreeState(node, Neighbours(node))

    def held(self, state: TreeState) -> Iterable[Datagram]:
        sent = [datagram for datagram, _, _ in state.sent.values()]
        return [*state.waiting, *sent, *(datagram for datagram, _ in state.again.values())]

    def refuses(self, destination: Destination) -> str | None:
        if destination in self.sinks:
            return None
        return f"a tree leads to its sinks only: {', '.join(map(str, self.sinks))}"

    def handle(self, state: TreeState, given: Input) -> tuple[TreeState, list[Effect]]:
        return state, self._react(state, given)

    def _react(self, state: TreeState, given: Input) -> list[Effect]:
        match given:
            case Started(now, seed):
                state.random = Random(seed)
                return [state.pace.first(self.beacons, now, state.random)]
            case Fired(now, timer) if timer == BEACON:
                later = state.pace.next(self.beacons, now, state.random)
                self._choose(state, now)
                return [self._beacon(state), later]
            case Heard(now, sender, Beacon() as beacon, True):
                return self._learn(state, now, sender, beacon)
            case Heard(_, _, Datagram() as datagram, True):
                return self._arrival(state, datagram.further())
            case Asked(now, datagram):
                return self._asked(state, now, datagram)
            case Settled(now, token, outcome):
                return self._settled(state, now, token, outcome)
            case Fired(now, timer) if timer in state.again:
                datagram, resends = state.again.pop(timer)
                return self._onward(state, datagram, resends)
        return []

    # The tree.

    def cost(self, state: TreeState, sink: NodeId) -> float:
        """What the sink costs from here; infinite as long as there is no way."""
        if sink == state.node:
            return 0.0
        parent = state.parents.get(sink)
        return math.inf if parent is None else self._through(state, parent, sink)

    def _through(self, state: TreeState, neighbour: NodeId, sink: NodeId) -> float:
        offer = state.offers.get(neighbour, {}).get(sink)
        if offer is None or offer.parent == state.node:
            return math.inf
        known = state.neighbours.known.get(neighbour)
        if known is None or known.both_ways < self.least:
            return math.inf
        if self.metric == "hops":
            return offer.cost + 1.0
        return offer.cost + max(1 / known.both_ways, state.links.get(neighbour, 1.0))

    def _choose(self, state: TreeState, now: Instant) -> bool:
        """Take the best parents; whether that is news to others."""
        near = state.neighbours.near(now, self.beacons.silence)
        enough = 1.0 if self.metric == "hops" else self.better
        for sink in self.sinks:
            if sink == state.node:
                continue
            best = min(near, key=lambda n: (self._through(state, n, sink), n), default=None)
            least = math.inf if best is None else self._through(state, best, sink)
            if math.isinf(least):
                state.parents.pop(sink, None)
            elif best is not None and self.cost(state, sink) - least >= enough:
                state.parents[sink] = best
        return any(self._is_news(state, sink) for sink in self.sinks)

    def _is_news(self, state: TreeState, sink: NodeId) -> bool:
        cost, said = self.cost(state, sink), state.said.get(sink, math.inf)
        return cost != said and abs(cost - said) >= self.news

    def _beacon(self, state: TreeState) -> Transmit:
        state.said = {sink: self.cost(state, sink) for sink in self.sinks}
        offers = tuple((sink, Offer(cost, state.parents.get(sink))) for sink, cost in state.said.items())
        beacon = Beacon(state.pace.number, state.neighbours.report(), offers)
        size = ADDRESS + 2 + report_bytes(beacon.report) + len(offers) * (2 * ADDRESS + 2)
        return Transmit(BROADCAST, beacon, size)

    def _learn(self, state: TreeState, now: Instant, sender: NodeId, beacon: Beacon) -> list[Effect]:
        state.neighbours.hear(sender, beacon.number, beacon.report, now)
        self._found(state, sender, 1.0)
        state.offers[sender] = dict(beacon.offers)
        news = self._choose(state, now)
        lost = any(math.isinf(offer.cost) and sink in state.parents for sink, offer in beacon.offers)
        effects: list[Effect] = [state.pace.first(self.beacons, now, state.random)] if news or lost else []
        if state.parents:
            waiting, state.waiting = state.waiting, []
            for datagram in waiting:
                effects += self._onward(state, datagram)
        return effects

    def _found(self, state: TreeState, neighbour: NodeId, transmissions: float) -> None:
        state.links[neighbour] = state.links.get(neighbour, 1.0) * _FADES + transmissions * (1 - _FADES)

    # Datagrams.

    def _arrival(self, state: TreeState, datagram: Datagram) -> list[Effect]:
        if not state.visits.add((datagram.key, datagram.hops)):
            return []
        if datagram.destination == state.node:
            return [Deliver(datagram)]
        if datagram.hops >= self.limit:
            return [Discard(datagram, HOP_LIMIT)]
        return [Relay(datagram)]

    def _asked(self, state: TreeState, now: Instant, datagram: Datagram) -> list[Effect]:
        """Send on; what comes from somebody who should be nearer to the sink waits for the next beacon."""
        if datagram.route is None or datagram.route > self.cost(state, _sink(datagram)):
            return self._onward(state, datagram)
        return [state.pace.first(self.beacons, now, state.random), *self._wait(state, datagram)]

    def _wait(self, state: TreeState, datagram: Datagram) -> list[Effect]:
        if len(state.waiting) >= self.room:
            return [Discard(datagram, NO_ROOM)]
        state.waiting.append(datagram)
        return []

    def _onward(self, state: TreeState, datagram: Datagram, resends: int = 0) -> list[Effect]:
        sink = _sink(datagram)
        parent = state.parents.get(sink)
        if parent is None:
            return self._wait(state, datagram)
        token = f"{datagram.origin}.{datagram.number}.{datagram.hops}"
        state.sent[token] = (datagram, parent, resends)
        signed = replace(datagram, route=self.cost(state, sink))
        return [Transmit(parent, signed, HEADER + 2 + datagram.size, token)]

    def _settled(self, state: TreeState, now: Instant, token: str, outcome: Outcome) -> list[Effect]:
        datagram, parent, resends = state.sent.pop(token)
        arrived = outcome in (ACKNOWLEDGED, AIRED)
        if outcome in (ACKNOWLEDGED, NO_ACK):
            state.failed[parent] = 0 if arrived else state.failed.get(parent, 0) + 1
            self._found(state, parent, max(1.0, self.failure * min(state.failed[parent], self.row)))
        news = self._choose(state, now)
        effects: list[Effect] = [state.pace.first(self.beacons, now, state.random)] if news else []
        if arrived:
            return effects
        if resends >= self.resends:
            return [*effects, Discard(datagram, outcome)]
        state.again[token] = (datagram, resends + 1)
        return [*effects, SetTimer(token, now + state.random.randint(0, self.pause))]


def _sink(datagram: Datagram) -> NodeId:
    assert isinstance(datagram.destination, int)
    return datagram.destination
