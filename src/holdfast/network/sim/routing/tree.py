"""A tree to each sink: every node sends to the neighbour through which the path to the sink costs least (as
in CTP).

The cost of a link is its expected number of transmissions (ETX), or one per hop. ETX follows from the share
of beacons that arrive in both directions or, if that gives more, from the outcomes of datagrams. A datagram
from a node that should be nearer to the sink shows that costs are stale. The receiver then announces its own
cost soon, and keeps the datagram until then.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from msgspec.structs import replace

from ....model.instant import MILLISECOND, Duration, Instant
from ....model.protocol import Asked, Fired, SetTimer, Started
from ..frame import ACKNOWLEDGED, AIRED, BROADCAST, NO_ACK, NodeId, Outcome
from .datagram import (
    ADDRESS,
    HEADER,
    NO_ROOM,
    Datagram,
    Destination,
    Discard,
    Effects,
    FrameReceived,
    Input,
    RecentKeys,
    TransmissionDone,
    Transmit,
    on_arrival,
)
from .neighbours import BEACON, BEACONS, Beacons, NeighbourTable, Pace, Report, report_bytes

_DECAY = 0.9
"""The weight of a link's previous cost relative to a new measurement."""


@dataclass(frozen=True, slots=True)
class RouteOffer:
    """The cost of the path to a sink through the sender of a beacon, and the sender's parent on that path."""

    cost: float
    parent: NodeId | None


@dataclass(frozen=True, slots=True)
class Beacon:
    """A beacon with the costs of the paths to all sinks through its sender."""

    number: int
    report: Report
    offers: tuple[tuple[NodeId, RouteOffer], ...]


@dataclass(slots=True)
class TreeState:
    """The state of a node: its parents, its neighbours' offers, and waiting datagrams."""

    node: NodeId
    neighbours: NeighbourTable
    random: Random = field(default_factory=Random)
    pace: Pace = field(default_factory=Pace)
    links: dict[NodeId, float] = field(default_factory=dict)
    """The recent mean number of transmissions for a datagram, by neighbour."""
    failures: dict[NodeId, int] = field(default_factory=dict)
    """The number of consecutive missing acknowledgements, by neighbour."""
    offers: dict[NodeId, dict[NodeId, RouteOffer]] = field(default_factory=dict)
    """The offers of neighbours, by neighbour and sink."""
    parents: dict[NodeId, NodeId] = field(default_factory=dict)
    announced: dict[NodeId, float] = field(default_factory=dict)
    """The costs announced in the last beacon, by sink."""
    waiting: list[Datagram] = field(default_factory=list)
    visits: RecentKeys = field(default_factory=RecentKeys)
    sent: dict[str, tuple[Datagram, NodeId, int]] = field(default_factory=dict)
    """The datagrams without an outcome, each with the parent to which it was sent and the number of earlier
    tries.
    """
    again: dict[str, tuple[Datagram, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tree:
    """Routing along a tree to each sink."""

    sinks: tuple[NodeId, ...]
    metric: Literal["etx", "hops"] = "etx"
    beacons: Beacons = BEACONS
    least: float = 0.1
    """The least probability of an acknowledged transmission for which a neighbour can be a parent."""
    better: float = 1.5
    """The least improvement of cost for which a node changes to another parent."""
    news: float = 2.0
    """The least difference between a cost and its announced value for which a beacon is sent soon."""
    failure: float = 4.0
    """The number of transmissions for which a parent's missing acknowledgement counts."""
    row: int = 3
    """The greatest number of consecutive failures that multiply the cost of a failure."""
    resends: int = 10
    """The number of further tries of a node to forward a datagram."""
    pause: Duration = 40 * MILLISECOND
    """The longest delay in µs before a datagram is sent again."""
    room: int = 8
    """The number of datagrams that may wait for a parent."""
    limit: int = 64
    """The number of hops after which a datagram is dropped."""

    def initial(self, node: NodeId) -> TreeState:
        return TreeState(node, NeighbourTable(node))

    def held(self, state: TreeState) -> Iterable[Datagram]:
        sent = [datagram for datagram, _, _ in state.sent.values()]
        return [*state.waiting, *sent, *(datagram for datagram, _ in state.again.values())]

    def refuses(self, destination: Destination) -> str | None:
        if destination in self.sinks:
            return None
        return f"a tree leads to its sinks only: {', '.join(map(str, self.sinks))}"

    def handle(self, state: TreeState, event: Input) -> tuple[TreeState, Effects]:
        return state, self._react(state, event)

    def _react(self, state: TreeState, event: Input) -> Effects:
        """Handle one input: change ``state`` in place and return the effects."""
        match event:
            case Started(now, seed):
                state.random = Random(seed)
                return [state.pace.first(self.beacons, now, state.random)]
            case Fired(now, timer) if timer == BEACON:
                later = state.pace.next(self.beacons, now, state.random)
                self._choose(state, now)
                return [self._beacon(state), later]
            case FrameReceived(now, sender, Beacon() as beacon, True):
                return self._learn(state, now, sender, beacon)
            case FrameReceived(_, _, Datagram() as datagram, True):
                return self._on_datagram(state, datagram.after_hop())
            case Asked(now, datagram):
                return self._on_request(state, now, datagram)
            case TransmissionDone(now, token, outcome):
                return self._on_outcome(state, now, token, outcome)
            case Fired(now, timer) if timer in state.again:
                datagram, resends = state.again.pop(timer)
                return self._forward(state, datagram, resends)
        return []

    # The tree.

    def cost(self, state: TreeState, sink: NodeId) -> float:
        """Return the cost of the path from this node to a sink; infinite while there is no route."""
        if sink == state.node:
            return 0.0
        parent = state.parents.get(sink)
        return math.inf if parent is None else self._through(state, parent, sink)

    def _through(self, state: TreeState, neighbour: NodeId, sink: NodeId) -> float:
        """Return the cost of the path to a sink through a neighbour; infinite if it cannot be used."""
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
        """Select the best parents; return whether a cost has changed enough to announce it."""
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
        cost, announced = self.cost(state, sink), state.announced.get(sink, math.inf)
        return cost != announced and abs(cost - announced) >= self.news

    def _beacon(self, state: TreeState) -> Transmit:
        state.announced = {sink: self.cost(state, sink) for sink in self.sinks}
        costs, parents = state.announced.items(), state.parents
        offers = tuple((sink, RouteOffer(cost, parents.get(sink))) for sink, cost in costs)
        beacon = Beacon(state.pace.number, state.neighbours.report(), offers)
        size = ADDRESS + 2 + report_bytes(beacon.report) + len(offers) * (2 * ADDRESS + 2)
        return Transmit(BROADCAST, beacon, size)

    def _learn(self, state: TreeState, now: Instant, sender: NodeId, beacon: Beacon) -> Effects:
        """Process a beacon: update the link and the parents, and announce changed costs soon."""
        state.neighbours.on_beacon(sender, beacon.number, beacon.report, now)
        self._update_link(state, sender, 1.0)
        state.offers[sender] = dict(beacon.offers)
        news = self._choose(state, now)
        lost = any(math.isinf(offer.cost) and sink in state.parents for sink, offer in beacon.offers)
        effects: Effects = [state.pace.first(self.beacons, now, state.random)] if news or lost else []
        if state.parents:
            waiting, state.waiting = state.waiting, []
            for datagram in waiting:
                effects += self._forward(state, datagram)
        return effects

    def _update_link(self, state: TreeState, neighbour: NodeId, transmissions: float) -> None:
        state.links[neighbour] = state.links.get(neighbour, 1.0) * _DECAY + transmissions * (1 - _DECAY)

    # Datagrams.

    def _on_datagram(self, state: TreeState, datagram: Datagram) -> Effects:
        is_new = state.visits.add((datagram.key, datagram.hops))
        return [on_arrival(datagram, state.node, self.limit)] if is_new else []

    def _on_request(self, state: TreeState, now: Instant, datagram: Datagram) -> Effects:
        """Forward a datagram. A datagram from a node that should be nearer to the sink waits for the next
        beacon.
        """
        if datagram.route is None or datagram.route > self.cost(state, _sink(datagram)):
            return self._forward(state, datagram)
        return [state.pace.first(self.beacons, now, state.random), *self._wait(state, datagram)]

    def _wait(self, state: TreeState, datagram: Datagram) -> Effects:
        if len(state.waiting) >= self.room:
            return [Discard(datagram, NO_ROOM)]
        state.waiting.append(datagram)
        return []

    def _forward(self, state: TreeState, datagram: Datagram, resends: int = 0) -> Effects:
        sink = _sink(datagram)
        parent = state.parents.get(sink)
        if parent is None:
            return self._wait(state, datagram)
        token = f"{datagram.origin}.{datagram.number}.{datagram.hops}"
        state.sent[token] = (datagram, parent, resends)
        signed = replace(datagram, route=self.cost(state, sink))
        return [Transmit(parent, signed, HEADER + 2 + datagram.size, token)]

    def _on_outcome(self, state: TreeState, now: Instant, token: str, outcome: Outcome) -> Effects:
        """Handle the outcome of a transmission: update the link, and try again if it failed."""
        datagram, parent, resends = state.sent.pop(token)
        arrived = outcome in (ACKNOWLEDGED, AIRED)
        if outcome in (ACKNOWLEDGED, NO_ACK):
            state.failures[parent] = 0 if arrived else state.failures.get(parent, 0) + 1
            self._update_link(state, parent, max(1.0, self.failure * min(state.failures[parent], self.row)))
        news = self._choose(state, now)
        effects: Effects = [state.pace.first(self.beacons, now, state.random)] if news else []
        if arrived:
            return effects
        if resends >= self.resends:
            return [*effects, Discard(datagram, outcome)]
        state.again[token] = (datagram, resends + 1)
        return [*effects, SetTimer(token, now + state.random.randint(0, self.pause))]


def _sink(datagram: Datagram) -> NodeId:
    assert isinstance(datagram.destination, int)
    return datagram.destination
