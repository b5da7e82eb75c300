"""Greedy geographic routing; round the holes, along the faces of a planar subgraph (as in GPSR).

Positions are known: a node's own, its neighbours' by their beacons, the destination's from deployment
[D51].  A datagram to a point goes to the node nearest to it, as in geographic hash tables: it walks once
round the face that encloses the point and is delivered where nobody nearer was found.  A datagram to a
rectangle goes to the rectangle's nearest node, and from there to all its nodes (``spreading``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from msgspec.structs import replace

from ...model.instant import MILLISECOND, SECOND, Duration, Instant
from ...model.protocol import Asked, Deliver, Fired, SetTimer, Started
from ...model.space import Point, Rectangle
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
    Effect,
    Heard,
    Input,
    Relay,
    Seen,
    Settled,
    Transmit,
)
from .neighbours import BEACON, BEACONS, Beacons, Neighbours, Pace, Report, report_bytes
from .plane import Surroundings, Walk, beside, gabriel, towards
from .spreading import is_inside, nearest_point, next_walks, usual_reach

Planarise = Callable[[Point, Mapping[NodeId, Point]], Mapping[NodeId, Point]]
"""From a node's position and all neighbours to those whose links do not cross."""

_POINT = 2 * COORDINATE
BEACON_BYTES = ADDRESS + 2 + _POINT
WALK_BYTES = _POINT + COORDINATE + 2 * ADDRESS
"""What a walk writes on a datagram."""


@dataclass(frozen=True, slots=True)
class Hello:
    """We are here."""

    number: int
    report: Report


@dataclass(frozen=True, slots=True)
class Course:
    """What geographic routing writes on a datagram: the walk it is on, and the node it comes from."""

    walk: Walk[NodeId] | None = None
    came_from: NodeId | None = None


@dataclass(frozen=True, slots=True)
class Spreading:
    """What geographic routing writes on a datagram in a rectangle, or on its walk round it."""

    came_from: NodeId
    repeated: bool
    """Whether it is for the neighbours in the rectangle only, not on a walk."""


@dataclass(slots=True)
class Sent:
    """A datagram that was given to a neighbour and is not settled yet."""

    datagram: Datagram
    transmission: Transmit
    resends: int = 0


@dataclass(slots=True)
class GeographicState:
    """A node's neighbours, and the datagrams whose fate the link has not told yet."""

    node: NodeId
    neighbours: Neighbours
    random: Random = field(default_factory=Random)
    pace: Pace = field(default_factory=Pace)
    distrusted: dict[NodeId, Instant] = field(default_factory=dict)
    visits: Seen = field(default_factory=Seen)
    spread: Seen = field(default_factory=Seen)
    """Datagrams to rectangles: those that came to this node, and the neighbours that have each or that it was
    sent to."""
    repeated: dict[str, Datagram] = field(default_factory=dict)
    """Those that it repeated to its neighbours in the rectangle, which may not all repeat them in turn."""
    sent: dict[str, Sent] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Geographic:
    """Every hop as near to the destination as can be; where nobody is nearer, along the perimeter."""

    places: tuple[Point, ...]
    """The position of every node."""
    beacons: Beacons = BEACONS
    least: float = 0.1
    """How likely something must arrive at a neighbour and be acknowledged for it to be used."""
    distrust: Duration = 10 * SECOND
    """How long a neighbour that did not acknowledge is passed over."""
    resends: int = 3
    """How often a datagram is given to the same neighbour again."""
    pause: Duration = 40 * MILLISECOND
    """The longest wait before something is repeated; before a datagram is given to the same neighbour again
    twice as long, then four times as long as the last time: the neighbour may be deaf while others speak."""
    limit: int = 255
    """The hops after which a datagram is given up: a walk round a small network may take a hundred."""

    def initial(self, node: NodeId) -> GeographicState:
        return GeographicState(node, Neighbours(node))

    def held(self, state: GeographicState) -> Iterable[Datagram]:
        return [sent.datagram for sent in state.sent.values()]

    def refuses(self, _destination: Destination) -> str | None:
        return None

    def handle(self, state: GeographicState, given: Input) -> tuple[GeographicState, list[Effect]]:
        match given:
            case Started(now, seed):
                state.random = Random(seed)
                return state, [state.pace.first(self.beacons, now, state.random)]
            case Fired(now, timer) if timer == BEACON:
                later = state.pace.next(self.beacons, now, state.random)
                hello = Hello(state.pace.number, state.neighbours.report())
                size = BEACON_BYTES + report_bytes(hello.report)
                return state, [Transmit(BROADCAST, hello, size), later]
            case Heard(now, sender, Hello(number, report)):
                return state, self._hello(state, now, sender, number, report)
            case Heard(now, sender, Datagram() as datagram, True):
                return state, self._arrival(
                    state, sender, self._trusting(state, now, sender, datagram.further())
                )
            case Asked(now, datagram):
                return state, self._onward(state, now, datagram)
            case Settled(now, token, outcome):
                return state, self._settled(state, now, token, outcome)
            case Fired(_, timer) if timer in state.sent:
                return state, [state.sent[timer].transmission]
            case Fired(now, timer) if timer in state.repeated:
                return state, self._remind(state, now, state.repeated.pop(timer))
        return state, []

    def _hello(
        self, state: GeographicState, now: Instant, sender: NodeId, number: int, report: Report
    ) -> list[Effect]:
        """A neighbour is there: new ones are greeted soon, those that hear us are trusted again."""
        if state.node in dict(report):
            state.distrusted.pop(sender, None)
        begins = state.neighbours.hear(sender, number, report, now)
        if begins and state.pace.is_slow(self.beacons):
            return [state.pace.first(self.beacons, now, state.random)]
        return []

    def _trusting(self, state: GeographicState, now: Instant, sender: NodeId, datagram: Datagram) -> Datagram:
        """Whoever sends a datagram here is trusted again.  A walk over the link between the two has changed
        faces, since only one of them counted that link, and may never come round: it begins anew."""
        if state.distrusted.pop(sender, now) <= now or not isinstance(datagram.route, Course):
            return datagram
        return replace(datagram, route=Course())

    def _arrival(self, state: GeographicState, sender: NodeId, datagram: Datagram) -> list[Effect]:
        if isinstance(datagram.route, Spreading):
            return self._spread_arrival(state, sender, datagram, datagram.route.repeated)
        if not state.visits.add((datagram.key, datagram.hops)):
            return []
        if datagram.destination == state.node:
            return [Deliver(datagram)]
        if datagram.hops >= self.limit:
            return [Discard(datagram, HOP_LIMIT)]
        walk = datagram.route.walk if datagram.route is not None else None
        return [Relay(replace(datagram, route=Course(walk, sender)))]

    def _spread_arrival(
        self, state: GeographicState, sender: NodeId, datagram: Datagram, repeated: bool
    ) -> list[Effect]:
        area = _area(datagram)
        if is_inside(area, self.places[sender]):
            state.spread.add((datagram.key, sender))
        if repeated and not is_inside(area, self.places[state.node]):
            return []
        if datagram.hops >= self.limit:
            return [Discard(datagram, HOP_LIMIT)]
        return [Relay(replace(datagram, route=Spreading(sender, repeated)))]

    def _near(self, state: GeographicState, now: Instant) -> dict[NodeId, float]:
        """The neighbours that can be used, and how well their links work."""
        return {
            node: neighbour.both_ways
            for node, neighbour in state.neighbours.near(now, self.beacons.silence).items()
            if neighbour.both_ways >= self.least and state.distrusted.get(node, now) <= now
        }

    def _onward(self, state: GeographicState, now: Instant, datagram: Datagram) -> list[Effect]:
        if isinstance(datagram.destination, Rectangle):
            return self._spread(state, now, datagram)
        if isinstance(datagram.destination, int) and state.distrusted.get(datagram.destination, now) > now:
            return [Discard(datagram, NO_ROUTE)]  # others near it would not reach it either
        quality = self._near(state, now)
        near = {node: self.places[node] for node in quality}
        course = datagram.route or Course()
        chosen = step(View(state.node, self.places, near, quality), datagram.destination, course)
        if chosen is None and isinstance(datagram.destination, tuple):
            return [Deliver(datagram)]
        if chosen is None:
            return [Discard(datagram, NO_ROUTE)]
        return [self._sent(state, datagram, chosen[0], Course(chosen[1]))]

    def _spread(self, state: GeographicState, now: Instant, datagram: Datagram) -> list[Effect]:
        """To the rectangle; in it to all neighbours, and round it over each planar link once."""
        area, here, quality = _area(datagram), self.places[state.node], self._near(state, now)
        near = {node: self.places[node] for node in quality}
        known = Surroundings(state.node, here, near, quality, reach=usual_reach(here, near))
        inside, route = is_inside(area, here), datagram.route
        seen = here
        if isinstance(route, Spreading):
            seen = self.places[route.came_from]
        elif not inside:
            target, course = nearest_point(area, self.places[datagram.origin]), route or Course()
            came_from = None if course.came_from is None else self.places[course.came_from]
            if (chosen := towards(known, target, course.walk, came_from)) is not None:
                return [self._sent(state, datagram, chosen[0], Course(chosen[1]))]
            seen = beside(here, target)
        effects: list[Effect] = []
        if inside and state.spread.add((datagram.key, state.node)):
            repeat = self._sent(state, datagram, BROADCAST, Spreading(state.node, True))
            remind = f"{repeat.token} again"
            state.repeated[remind] = datagram
            effects += [
                Deliver(datagram),
                SetTimer(repeat.token, now + state.random.randint(0, self.pause)),
                SetTimer(remind, now + self.beacons.fast),
            ]
        for to in next_walks(known, area, seen):
            if state.spread.add((datagram.key, to)):
                effects.append(self._sent(state, datagram, to, Spreading(state.node, False)))
        return effects if effects or inside else [Discard(datagram, NO_ROUTE)]

    def _remind(self, state: GeographicState, now: Instant, datagram: Datagram) -> list[Effect]:
        """Nobody acknowledges what is sent to all: neighbours in the rectangle that did not repeat a datagram
        get it once more, each for itself."""
        area, near = _area(datagram), {node: self.places[node] for node in self._near(state, now)}
        return [
            self._sent(state, datagram, node, Spreading(state.node, False))
            for node, place in gabriel(self.places[state.node], near).items()
            if is_inside(area, place) and state.spread.add((datagram.key, node))
        ]

    def _sent(
        self, state: GeographicState, datagram: Datagram, to: NodeId, route: Course | Spreading
    ) -> Transmit:
        """A transmission of which the link will tell what became of it."""
        token = f"{datagram.origin}.{datagram.number}.{datagram.hops}.{to}.{type(route).__name__}"
        place = 2 * _POINT if isinstance(datagram.destination, Rectangle) else _POINT
        walk = WALK_BYTES if isinstance(route, Course) and route.walk else 0
        size = HEADER + place + walk + datagram.size
        transmission = Transmit(to, replace(datagram, route=route), size, token)
        state.sent[token] = Sent(datagram, transmission)
        return transmission

    def _settled(self, state: GeographicState, now: Instant, token: str, outcome: Outcome) -> list[Effect]:
        sent = state.sent.pop(token)
        if outcome in (ACKNOWLEDGED, AIRED):
            return []
        if sent.resends < self.resends:
            state.sent[token] = Sent(sent.datagram, sent.transmission, sent.resends + 1)
            return [SetTimer(token, now + state.random.randint(0, 2 * self.pause * 4**sent.resends))]
        if outcome != NO_ACK:
            return [Discard(sent.datagram, outcome)]
        state.distrusted[sent.transmission.to] = now + self.distrust
        return self._onward(state, now, sent.datagram)


def _area(datagram: Datagram) -> Rectangle:
    assert isinstance(datagram.destination, Rectangle)
    return datagram.destination


@dataclass(frozen=True, slots=True)
class View:
    """What a node knows of the field: where everybody is, who is near, and how well their links work."""

    node: NodeId
    places: Sequence[Point]
    near: Mapping[NodeId, Point]
    quality: Mapping[NodeId, float] | None = None
    planar: Planarise = gabriel


def step(view: View, destination: Destination, course: Course) -> tuple[NodeId, Walk[NodeId] | None] | None:
    """The next node, and the walk on which the datagram gets there; nothing if it has been all round."""
    node, places, near = view.node, view.places, view.near
    assert not isinstance(destination, Rectangle)
    if isinstance(destination, int) and destination in near:
        return destination, None
    target = places[destination] if isinstance(destination, int) else destination
    came_from = None if course.came_from is None else places[course.came_from]
    known = Surroundings(node, places[node], near, view.quality, view.planar)
    return towards(known, target, course.walk, came_from)
