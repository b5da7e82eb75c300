"""Greedy geographic routing with walks around holes along the faces of a planar subgraph (as in GPSR).

Positions are known: a node's own, its neighbours' from their beacons, the destination's from the deployment
[D51]. A datagram to a point goes to the node nearest to it, as in geographic hash tables. It walks once
around the face that encloses the point and is delivered where it found no nearer node. A datagram to a
rectangle goes to the rectangle's nearest node, and from there to all nodes of the rectangle (see
``spreading``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from msgspec.structs import replace

from ....model.instant import MILLISECOND, SECOND, Duration, Instant
from ....model.protocol import Asked, Deliver, Fired, SetTimer, Started
from ....model.space import Point, Rectangle
from ..frame import ACKNOWLEDGED, AIRED, BROADCAST, NO_ACK, NodeId, Outcome
from .datagram import (
    ADDRESS,
    COORDINATE,
    HEADER,
    HOP_LIMIT,
    NO_ROUTE,
    Datagram,
    Destination,
    Discard,
    Effects,
    FrameReceived,
    Input,
    RecentKeys,
    Relay,
    TransmissionDone,
    Transmit,
)
from .neighbours import BEACON, BEACONS, Beacons, NeighbourTable, Pace, Report, report_bytes
from .plane import FaceWalk, Surroundings, beside, gabriel, towards
from .spreading import is_inside, nearest_point, next_walks, usual_reach

Planarise = Callable[[Point, Mapping[NodeId, Point]], Mapping[NodeId, Point]]
"""A function that selects the neighbours whose links do not cross, from a node's position and all its
neighbours.
"""

_POINT = 2 * COORDINATE
BEACON_BYTES = ADDRESS + 2 + _POINT
WALK_BYTES = _POINT + COORDINATE + 2 * ADDRESS
"""The bytes that a walk adds to a datagram."""


@dataclass(frozen=True, slots=True)
class PositionBeacon:
    """A beacon of geographic routing, with its number and the sender's report on its neighbours."""

    number: int
    report: Report


@dataclass(frozen=True, slots=True)
class Course:
    """Routing data of a datagram: its walk around a hole, if any, and the node from which it comes."""

    walk: FaceWalk[NodeId] | None = None
    came_from: NodeId | None = None


@dataclass(frozen=True, slots=True)
class SpreadCourse:
    """Routing data of a datagram inside a rectangle, or on its walk around the rectangle."""

    came_from: NodeId
    repeated: bool
    """Whether the datagram is only for neighbours in the rectangle, and not on a walk."""


@dataclass(slots=True)
class UnconfirmedDatagram:
    """A datagram that was sent to a neighbour, and whose outcome the link has not yet reported."""

    datagram: Datagram
    transmission: Transmit
    resends: int = 0


@dataclass(slots=True)
class GeographicState:
    """The state of a node: its neighbours, and the datagrams without an outcome from the link."""

    node: NodeId
    neighbours: NeighbourTable
    random: Random = field(default_factory=Random)
    pace: Pace = field(default_factory=Pace)
    distrusted: dict[NodeId, Instant] = field(default_factory=dict)
    visits: RecentKeys = field(default_factory=RecentKeys)
    spread: RecentKeys = field(default_factory=RecentKeys)
    """Datagrams to rectangles that this node received, and the neighbours that have each or to which it was
    sent.
    """
    repeated: dict[str, Datagram] = field(default_factory=dict)
    """Datagrams that this node repeated to its neighbours in the rectangle. After a delay it checks which
    neighbours repeated them.
    """
    sent: dict[str, UnconfirmedDatagram] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Geographic:
    """Geographic routing: each hop goes as near to the destination as possible, or along the perimeter of a
    hole.
    """

    places: tuple[Point, ...]
    """The position of every node."""
    beacons: Beacons = BEACONS
    least: float = 0.1
    """The least probability of a successful acknowledged transmission for which a neighbour is used."""
    distrust: Duration = 10 * SECOND
    """The time in µs for which a neighbour that did not acknowledge is avoided."""
    resends: int = 3
    """The number of further times that a datagram is sent to the same neighbour."""
    pause: Duration = 40 * MILLISECOND
    """The longest random delay before a repetition, in µs. Further tries to the
    same neighbour wait up to twice as long, and then four times as long as the try before. The neighbour may
    be unable to receive while others send.
    """
    limit: int = 255
    """The number of hops after which a datagram is dropped. A walk around a small network may take a hundred
    hops.
    """

    def initial(self, node: NodeId) -> GeographicState:
        return GeographicState(node, NeighbourTable(node))

    def held(self, state: GeographicState) -> Iterable[Datagram]:
        return [sent.datagram for sent in state.sent.values()]

    def refuses(self, _destination: Destination) -> str | None:
        return None

    def handle(self, state: GeographicState, event: Input) -> tuple[GeographicState, Effects]:
        match event:
            case Started(now, seed):
                state.random = Random(seed)
                return state, [state.pace.first(self.beacons, now, state.random)]
            case Fired(now, timer) if timer == BEACON:
                later = state.pace.next(self.beacons, now, state.random)
                hello = PositionBeacon(state.pace.number, state.neighbours.report())
                size = BEACON_BYTES + report_bytes(hello.report)
                return state, [Transmit(BROADCAST, hello, size), later]
            case FrameReceived(now, sender, PositionBeacon(number, report)):
                return state, self._on_hello(state, now, sender, number, report)
            case FrameReceived(now, sender, Datagram() as datagram, True):
                trusted = self._restore_trust(state, now, sender, datagram.after_hop())
                return state, self._on_datagram(state, sender, trusted)
            case Asked(now, datagram):
                return state, self._forward(state, now, datagram)
            case TransmissionDone(now, token, outcome):
                return state, self._on_outcome(state, now, token, outcome)
            case Fired(_, timer) if timer in state.sent:
                return state, [state.sent[timer].transmission]
            case Fired(now, timer) if timer in state.repeated:
                return state, self._resend_to_silent(state, now, state.repeated.pop(timer))
        return state, []

    def _on_hello(
        self, state: GeographicState, now: Instant, sender: NodeId, number: int, report: Report
    ) -> Effects:
        """Process a beacon: answer a new neighbour soon, and trust a neighbour that receives this node's
        frames.
        """
        if state.node in dict(report):
            state.distrusted.pop(sender, None)
        is_new = state.neighbours.on_beacon(sender, number, report, now)
        if is_new and state.pace.is_slow(self.beacons):
            return [state.pace.first(self.beacons, now, state.random)]
        return []

    def _restore_trust(
        self, state: GeographicState, now: Instant, sender: NodeId, datagram: Datagram
    ) -> Datagram:
        """Trust the sender of a datagram again; return the datagram to forward.

        If the sender was distrusted, the datagram's walk restarts. The nodes disagreed on whether their link
        exists, so the walk may have changed faces and may never end.
        """
        if state.distrusted.pop(sender, now) <= now or not isinstance(datagram.route, Course):
            return datagram
        return replace(datagram, route=Course())

    def _on_datagram(self, state: GeographicState, sender: NodeId, datagram: Datagram) -> Effects:
        """Handle a datagram from a neighbour: deliver it, or relay it if it is no repetition."""
        if isinstance(datagram.route, SpreadCourse):
            return self._on_spread_datagram(state, sender, datagram, datagram.route.repeated)
        if not state.visits.add((datagram.key, datagram.hops)):
            return []
        if datagram.destination == state.node:
            return [Deliver(datagram)]
        if datagram.hops >= self.limit:
            return [Discard(datagram, HOP_LIMIT)]
        walk = datagram.route.walk if datagram.route is not None else None
        return [Relay(replace(datagram, route=Course(walk, sender)))]

    def _on_spread_datagram(
        self, state: GeographicState, sender: NodeId, datagram: Datagram, repeated: bool
    ) -> Effects:
        """Handle a datagram inside a rectangle, or on its walk around the rectangle."""
        area = _area(datagram)
        if is_inside(area, self.places[sender]):
            state.spread.add((datagram.key, sender))
        if repeated and not is_inside(area, self.places[state.node]):
            return []
        if datagram.hops >= self.limit:
            return [Discard(datagram, HOP_LIMIT)]
        return [Relay(replace(datagram, route=SpreadCourse(sender, repeated)))]

    def _usable_neighbours(self, state: GeographicState, now: Instant) -> dict[NodeId, float]:
        """Return the usable neighbours, with the quality of their links in both directions."""
        return {
            node: neighbour.both_ways
            for node, neighbour in state.neighbours.near(now, self.beacons.silence).items()
            if neighbour.both_ways >= self.least and state.distrusted.get(node, now) <= now
        }

    def _forward(self, state: GeographicState, now: Instant, datagram: Datagram) -> Effects:
        """Send a datagram to its next hop, or deliver it if no node is nearer to its destination."""
        if isinstance(datagram.destination, Rectangle):
            return self._forward_in_area(state, now, datagram)
        if isinstance(datagram.destination, int) and state.distrusted.get(datagram.destination, now) > now:
            return [Discard(datagram, NO_ROUTE)]  # other nodes near it would not reach it either
        quality = self._usable_neighbours(state, now)
        near = {node: self.places[node] for node in quality}
        course = datagram.route or Course()
        next_hop = step(RoutingView(state.node, self.places, near, quality), datagram.destination, course)
        if next_hop is None and isinstance(datagram.destination, tuple):
            return [Deliver(datagram)]
        if next_hop is None:
            return [Discard(datagram, NO_ROUTE)]
        return [self._send_to(state, datagram, next_hop[0], Course(next_hop[1]))]

    def _forward_in_area(self, state: GeographicState, now: Instant, datagram: Datagram) -> Effects:
        """Send a datagram towards its rectangle; inside it to all neighbours, and around it over each planar
        link once.
        """
        area, here, quality = _area(datagram), self.places[state.node], self._usable_neighbours(state, now)
        near = {node: self.places[node] for node in quality}
        known = Surroundings(state.node, here, near, quality, reach=usual_reach(here, near))
        inside, route = is_inside(area, here), datagram.route
        seen = here
        if isinstance(route, SpreadCourse):
            seen = self.places[route.came_from]
        elif not inside:
            target, course = nearest_point(area, self.places[datagram.origin]), route or Course()
            came_from = None if course.came_from is None else self.places[course.came_from]
            if (next_hop := towards(known, target, course.walk, came_from)) is not None:
                return [self._send_to(state, datagram, next_hop[0], Course(next_hop[1]))]
            seen = beside(here, target)
        effects: Effects = []
        if inside and state.spread.add((datagram.key, state.node)):
            repeat = self._send_to(state, datagram, BROADCAST, SpreadCourse(state.node, True))
            remind = f"{repeat.token} again"
            state.repeated[remind] = datagram
            effects += [
                Deliver(datagram),
                SetTimer(repeat.token, now + state.random.randint(0, self.pause)),
                SetTimer(remind, now + self.beacons.fast),
            ]
        for to in next_walks(known, area, seen):
            if state.spread.add((datagram.key, to)):
                effects.append(self._send_to(state, datagram, to, SpreadCourse(state.node, False)))
        return effects if effects or inside else [Discard(datagram, NO_ROUTE)]

    def _resend_to_silent(self, state: GeographicState, now: Instant, datagram: Datagram) -> Effects:
        """Send a datagram again, individually, to neighbours in the rectangle that did not repeat it. This is
        necessary because broadcasts are not acknowledged.
        """
        area = _area(datagram)
        near = {node: self.places[node] for node in self._usable_neighbours(state, now)}
        return [
            self._send_to(state, datagram, node, SpreadCourse(state.node, False))
            for node, place in gabriel(self.places[state.node], near).items()
            if is_inside(area, place) and state.spread.add((datagram.key, node))
        ]

    def _send_to(
        self, state: GeographicState, datagram: Datagram, to: NodeId, route: Course | SpreadCourse
    ) -> Transmit:
        """Record a datagram as sent and return its transmission."""
        token = f"{datagram.origin}.{datagram.number}.{datagram.hops}.{to}.{type(route).__name__}"
        place = 2 * _POINT if isinstance(datagram.destination, Rectangle) else _POINT
        walk = WALK_BYTES if isinstance(route, Course) and route.walk else 0
        size = HEADER + place + walk + datagram.size
        transmission = Transmit(to, replace(datagram, route=route), size, token)
        state.sent[token] = UnconfirmedDatagram(datagram, transmission)
        return transmission

    def _on_outcome(self, state: GeographicState, now: Instant, token: str, outcome: Outcome) -> Effects:
        """Handle the outcome of a transmission: try again, or choose another neighbour."""
        sent = state.sent.pop(token)
        if outcome in (ACKNOWLEDGED, AIRED):
            return []
        if sent.resends < self.resends:
            state.sent[token] = UnconfirmedDatagram(sent.datagram, sent.transmission, sent.resends + 1)
            return [SetTimer(token, now + state.random.randint(0, 2 * self.pause * 4**sent.resends))]
        if outcome != NO_ACK:
            return [Discard(sent.datagram, outcome)]
        state.distrusted[sent.transmission.to] = now + self.distrust
        return self._forward(state, now, sent.datagram)


def _area(datagram: Datagram) -> Rectangle:
    assert isinstance(datagram.destination, Rectangle)
    return datagram.destination


@dataclass(frozen=True, slots=True)
class RoutingView:
    """The knowledge of a node for one routing step: positions, neighbours, and the quality of their links."""

    node: NodeId
    places: Sequence[Point]
    near: Mapping[NodeId, Point]
    quality: Mapping[NodeId, float] | None = None
    planar: Planarise = gabriel


def step(
    view: RoutingView, destination: Destination, course: Course
) -> tuple[NodeId, FaceWalk[NodeId] | None] | None:
    """Return the next node of a datagram and its walk there; ``None`` if the datagram has been all around a
    face.
    """
    node, places, near = view.node, view.places, view.near
    assert not isinstance(destination, Rectangle)
    if isinstance(destination, int) and destination in near:
        return destination, None
    target = places[destination] if isinstance(destination, int) else destination
    came_from = None if course.came_from is None else places[course.came_from]
    known = Surroundings(node, places[node], near, view.quality, view.planar)
    return towards(known, target, course.walk, came_from)
