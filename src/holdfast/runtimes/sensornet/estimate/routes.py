"""Which way messages go, and what all hops of a way take: resends of routing, and beacons, included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from ....errors import UsageError
from ....model.instant import BEGINNING, SECOND, Instant
from ....model.space import Point, Rectangle
from ....sim.frame import NodeId
from ....sim.routing import geographic, tree
from ....sim.routing.datagram import ADDRESS, COORDINATE, HEADER, Destination, RoutingMachine
from ....sim.routing.geographic import BEACON_BYTES, Course, Geographic, View
from ....sim.routing.grid import next_hop
from ....sim.routing.neighbours import BEST, OTHERS, Beacons
from ....sim.routing.overhear import NOTICE_BYTES, IdGrid
from ....sim.routing.plane import Surroundings
from ....sim.routing.spreading import Spread, spread, usual_reach
from ....sim.routing.static import Static
from ..spanning import TYPICAL
from .hop import Air, Floats, Hop

REPORT = ADDRESS + 1
"""Bytes of a neighbour in a beacon."""

Way = tuple[NodeId, ...]
"""The nodes from a message's origin to where it ends."""


class Trip(NamedTuple):
    """What a message takes from end to end."""

    joules: Floats
    frames: float
    delivered: float
    seconds: float
    airtime: float


class Routes:
    """The ways of a network under one routing protocol."""

    def __init__(self, air: Air, machine: RoutingMachine) -> None:
        self.air, self.machine = air, machine
        self._found: dict[tuple[NodeId, Destination], Way] = {}
        self._next = _steps(air, machine)

    def way(self, origin: NodeId, to: Destination) -> Way:
        """From node to node; nothing behind the origin if there is no way."""
        if (origin, to) not in self._found:
            self._found[origin, to] = self._next(origin, to)
        return self._found[origin, to]

    def more(self, origin: NodeId, to: Destination) -> tuple[int, ...]:
        """Bytes that routing writes on a message at each hop of a way, beyond what it always does."""
        self.way(origin, to)
        return self._next.more.get((origin, to), ()) if isinstance(self._next, _Greedy) else ()

    def spread(self, origin: NodeId, area: Rectangle) -> Spread[NodeId]:
        """A message to all nodes in a rectangle."""
        assert isinstance(self._next, _Greedy)  # no other protocol leads to a rectangle
        return spread(origin, area, self._next.known)

    def trip(self, way: Way, size: int, more: Sequence[int] = ()) -> Trip:
        """A message of so many bytes along a way; what is lost on it takes nothing more."""
        joules, frames, there, seconds, airtime = self.air.spent(), 0.0, 1.0, 0.0, 0.0
        for place in range(len(way) - 1):
            hop = self._hop(way, place, size + (more[place] if more else 0))
            joules += there * hop.joules
            frames += there * hop.frames
            airtime += there * hop.airtime
            seconds += hop.seconds
            there *= hop.delivered
        return Trip(joules, frames, there, seconds, airtime)

    def flood(self, nodes: Sequence[NodeId], size: int) -> Trip:
        """A message that each of these says once to its neighbours."""
        hops = [self.air.access.broadcast(node, size + HEADER) for node in nodes]
        joules = sum((hop.joules for hop in hops), self.air.spent())
        frames, airtime = sum(hop.frames for hop in hops), sum(hop.airtime for hop in hops)
        return Trip(joules, frames, 1.0, sum(hop.seconds for hop in hops[:1]), airtime)

    def _hop(self, way: Way, place: int, size: int) -> Hop:
        a, b, access = way[place], way[place + 1], self.air.access
        match self.machine:
            case Static():
                return access.unicast(a, b, size + HEADER)
            case tree.Tree():
                return _resent(access.unicast(a, b, size + HEADER + 2), self.machine.resends)
            case Geographic():
                return _resent(access.unicast(a, b, size + HEADER + 2 * COORDINATE), self.machine.resends)
            case IdGrid():
                return self._watched(way, place, size + HEADER)
        raise AssertionError(self.machine)

    def _watched(self, way: Way, place: int, size: int) -> Hop:
        """ID-based routing listens whether the next node forwards; if it hears nothing it sends again, and is
        told in a notice that this was done."""
        a, b, access = way[place], way[place + 1], self.air.access
        assert isinstance(self.machine, IdGrid)
        hop = _resent(access.unicast(a, b, size), self.machine.resends)
        if place == len(way) - 2:
            return hop
        deaf = 1 - access.overheard(b, way[place + 2], size, a)
        again = sum(deaf**k for k in range(1, self.machine.resends + 1))
        notice = access.unicast(b, a, NOTICE_BYTES)
        return hop._replace(
            joules=hop.joules + again * (hop.joules + notice.joules),
            frames=hop.frames + again * (hop.frames + notice.frames),
            airtime=hop.airtime + again * (hop.airtime + notice.airtime),
        )

    @property
    def opens(self) -> Instant:
        """When nodes that boot know a way: where neighbours know one another by beacons, two must come."""
        machine = self.machine
        return 3 * machine.beacons.fast if isinstance(machine, Geographic | tree.Tree) else BEGINNING

    # What is said without any message.

    def control(self) -> tuple[Floats, float]:
        """Joules and frames a second of beacons, once the network has settled."""
        joules, frames = self.air.spent(), 0.0
        if not isinstance(self.machine, Geographic | tree.Tree):
            return joules, frames
        for node, near in enumerate(self.air.near):
            said = REPORT * min(BEST + OTHERS, len(near))
            if isinstance(self.machine, tree.Tree):
                size = ADDRESS + 2 + said + len(self.machine.sinks) * (2 * ADDRESS + 2)
            else:
                size = BEACON_BYTES + said
            hop = self.air.access.broadcast(node, size)
            often = 1 / _pause(self.machine.beacons)
            joules += often * hop.joules
            frames += often * hop.frames
        return joules, frames


def _pause(beacons: Beacons) -> float:
    """Seconds between two beacons on average: from half of the interval to all of it."""
    return 0.75 * beacons.slow / SECOND


def _resent(hop: Hop, resends: int) -> Hop:
    """A hop that routing tries so often again when the link says that nobody acknowledged."""
    times = sum((1 - hop.known) ** k for k in range(resends + 1))
    return Hop(
        times * hop.joules,
        times * hop.frames,
        1 - (1 - hop.delivered) ** (resends + 1),
        1 - (1 - hop.known) ** (resends + 1),
        times * hop.seconds,
        times * hop.airtime,
    )


Steps = Callable[[NodeId, Destination], Way]


def _steps(air: Air, machine: RoutingMachine) -> Steps:
    match machine:
        case IdGrid() | Static():
            return _by_rules(machine.columns)
        case Geographic():
            return _Greedy(air, machine)
        case tree.Tree():
            return _Best(air).way
    raise UsageError(
        f"what routing '{type(machine).__name__}' takes is not estimated: id-grid, static, tree and "
        "geographic are; 'holdfast sim' runs it"
    )


def _by_rules(columns: int) -> Steps:
    def way(origin: NodeId, to: Destination) -> Way:
        found = [origin]
        while found[-1] != to:
            assert isinstance(to, int)
            found.append(next_hop(found[-1], to, columns))
        return tuple(found)

    return way


@dataclass
class _Best:
    """The fewest transmissions to be expected, over links that work both ways."""

    air: Air
    _onward: dict[NodeId, dict[NodeId, NodeId]] = field(default_factory=dict)

    def way(self, origin: NodeId, to: Destination) -> Way:
        assert isinstance(to, int)
        onward = self._onward[to] if to in self._onward else self._onward.setdefault(to, self._tree(to))
        found = [origin]
        while found[-1] != to and found[-1] in onward:
            found.append(onward[found[-1]])
        return tuple(found) if found[-1] == to else (origin,)

    def _tree(self, root: NodeId) -> dict[NodeId, NodeId]:
        found: dict[NodeId, NodeId] = {}
        near = [(0.0, root, root)]
        while near:
            cost, here, onward = heappop(near)
            if here in found:
                continue
            found[here] = onward
            for there in self.air.near[here]:
                both = self.air.right(here, there, TYPICAL) * self.air.right(there, here, TYPICAL)
                if there not in found and both >= 0.1:
                    heappush(near, (cost + 1 / both, there, here))
        return found


class _Greedy:
    """The steps of geographic routing itself, with what neighbours know of one another in the long run."""

    def __init__(self, air: Air, machine: Geographic) -> None:
        self._machine = machine
        quality = [
            {
                there: both
                for there in near
                if (both := air.right(node, there, TYPICAL) * air.right(there, node, TYPICAL))
                >= machine.least
            }
            for node, near in enumerate(air.near)
        ]
        places: Sequence[Point] = machine.places
        self._views = [
            View(node, places, {there: places[there] for there in sorted(known)}, known)
            for node, known in enumerate(quality)
        ]
        self.more: dict[tuple[NodeId, Destination], tuple[int, ...]] = {}
        """Bytes of the walks that messages are on, hop by hop."""

    def known(self, node: NodeId) -> Surroundings[NodeId]:
        view = self._views[node]
        here = view.places[node]
        return Surroundings(node, here, view.near, view.quality, reach=usual_reach(here, view.near))

    def __call__(self, origin: NodeId, to: Destination) -> Way:
        found, course, more = [origin], Course(), []
        while found[-1] != to and len(found) <= self._machine.limit:
            chosen = geographic.step(self._views[found[-1]], to, course)
            if chosen is None:
                break
            course = Course(chosen[1], found[-1])
            found.append(chosen[0])
            more.append(geographic.WALK_BYTES if chosen[1] else 0)
        self.more[origin, to] = tuple(more)
        return tuple(found)
