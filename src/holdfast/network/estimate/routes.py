"""Paths of messages, and the cost of all their hops. Costs include beacons and messages that routing sends
again.

For a new routing protocol, add a case to `Routes._hop` and to `_steps`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...errors import UsageError
from ...model.instant import BEGINNING, SECOND, Instant
from ...model.space import Point, Rectangle
from ..motes.spanning import next_hops_to
from ..sim.frame import NodeId
from ..sim.routing import geographic, tree
from ..sim.routing.datagram import ADDRESS, COORDINATE, HEADER, Destination, RoutingMachine
from ..sim.routing.geographic import BEACON_BYTES, Course, Geographic, RoutingView
from ..sim.routing.grid import next_hop
from ..sim.routing.neighbours import BEST, OTHERS
from ..sim.routing.overhear import NOTICE_BYTES, IdGrid
from ..sim.routing.plane import Surroundings
from ..sim.routing.spreading import SpreadResult, spread, usual_reach
from ..sim.routing.static import Static
from .hop import Floats, Hop, RadioModel

REPORT = ADDRESS + 1
"""The number of bytes that a beacon needs for each neighbour."""

NodePath = tuple[NodeId, ...]
"""The nodes on the path of a message, from its origin to its last node."""


class Trip(NamedTuple):
    """The cost of a message from end to end; the fields have the meaning and units of `Hop`."""

    joules: Floats
    frames: float
    delivered: float
    seconds: float
    airtime: float


class Routes:
    """The paths of a network with one routing protocol."""

    def __init__(self, model: RadioModel, machine: RoutingMachine) -> None:
        self.model, self.machine = model, machine
        self._found: dict[tuple[NodeId, Destination], NodePath] = {}
        self._next = _steps(model, machine)

    def path(self, origin: NodeId, to: Destination) -> NodePath:
        """Return the nodes on the path to a destination; only the origin if there is no path."""
        if (origin, to) not in self._found:
            self._found[origin, to] = self._next(origin, to)
        return self._found[origin, to]

    def more(self, origin: NodeId, to: Destination) -> tuple[int, ...]:
        """Return the bytes that routing adds to a message at each hop of a path; empty if it adds none."""
        self.path(origin, to)
        return self._next.more.get((origin, to), ()) if isinstance(self._next, _GeographicPaths) else ()

    def spread(self, origin: NodeId, area: Rectangle) -> SpreadResult[NodeId]:
        """Return the nodes that send and receive a message to all nodes in a rectangle."""
        assert isinstance(self._next, _GeographicPaths)  # no other protocol routes to a rectangle
        return spread(origin, area, self._next.known)

    def trip(self, path: NodePath, size: int, more: Sequence[int] = ()) -> Trip:
        """Return the cost of a message of ``size`` bytes along a path. After a loss, the remaining hops cost
        nothing.
        """
        joules, frames, there, seconds, airtime = self.model.zeros(), 0.0, 1.0, 0.0, 0.0
        for place in range(len(path) - 1):
            hop = self._hop(path, place, size + (more[place] if more else 0))
            joules += there * hop.joules
            frames += there * hop.frames
            airtime += there * hop.airtime
            seconds += hop.seconds
            there *= hop.delivered
        return Trip(joules, frames, there, seconds, airtime)

    def flood(self, nodes: Sequence[NodeId], size: int) -> Trip:
        """Return the cost of a message of ``size`` bytes that each of these nodes sends once to its
        neighbours.
        """
        hops = [self.model.access.broadcast(node, size + HEADER) for node in nodes]
        joules = sum((hop.joules for hop in hops), self.model.zeros())
        frames, airtime = sum(hop.frames for hop in hops), sum(hop.airtime for hop in hops)
        return Trip(joules, frames, 1.0, sum(hop.seconds for hop in hops[:1]), airtime)

    def _hop(self, path: NodePath, place: int, size: int) -> Hop:
        """Return the cost of the hop at index ``place`` of a path, with the headers and resends of the
        protocol.
        """
        a, b, access = path[place], path[place + 1], self.model.access
        match self.machine:
            case Static():
                return access.unicast(a, b, size + HEADER)
            case tree.Tree():
                return _with_resends(access.unicast(a, b, size + HEADER + 2), self.machine.resends)
            case Geographic():
                hop = access.unicast(a, b, size + HEADER + 2 * COORDINATE)
                return _with_resends(hop, self.machine.resends)
            case IdGrid():
                return self._overhearing_hop(path, place, size + HEADER)
        raise AssertionError(self.machine)

    def _overhearing_hop(self, path: NodePath, place: int, size: int) -> Hop:
        """Return the cost of a hop of ID-based routing. A node that does not overhear the next node forward
        the message sends it again, and gets a notice that the message was forwarded.
        """
        a, b, access = path[place], path[place + 1], self.model.access
        assert isinstance(self.machine, IdGrid)
        hop = _with_resends(access.unicast(a, b, size), self.machine.resends)
        if place == len(path) - 2:
            return hop
        deaf = 1 - access.overhear_probability(b, path[place + 2], size, a)
        again = sum(deaf**k for k in range(1, self.machine.resends + 1))
        notice = access.unicast(b, a, NOTICE_BYTES)
        return hop._replace(
            joules=hop.joules + again * (hop.joules + notice.joules),
            frames=hop.frames + again * (hop.frames + notice.frames),
            airtime=hop.airtime + again * (hop.airtime + notice.airtime),
        )

    @property
    def opens(self) -> Instant:
        """The time at which booted nodes have routes. Where nodes find neighbours by beacons, that is after
        two beacons.
        """
        machine = self.machine
        return 3 * machine.beacons.fast if isinstance(machine, Geographic | tree.Tree) else BEGINNING

    # Control traffic.

    def control(self) -> tuple[Floats, float]:
        """Return the joules of each node and the frames, both per second, for beacons in a settled
        network.
        """
        joules, frames = self.model.zeros(), 0.0
        if not isinstance(self.machine, Geographic | tree.Tree):
            return joules, frames
        for node, near in enumerate(self.model.near):
            report_bytes = REPORT * min(BEST + OTHERS, len(near))
            if isinstance(self.machine, tree.Tree):
                size = ADDRESS + 2 + report_bytes + len(self.machine.sinks) * (2 * ADDRESS + 2)
            else:
                size = BEACON_BYTES + report_bytes
            hop = self.model.access.broadcast(node, size)
            often = 1 / (0.75 * self.machine.beacons.slow / SECOND)  # a pause is half to all of the interval
            joules += often * hop.joules
            frames += often * hop.frames
        return joules, frames


def _with_resends(hop: Hop, resends: int) -> Hop:
    """Return the cost of a hop that routing repeats up to ``resends`` times without an acknowledgement."""
    times = sum((1 - hop.known) ** k for k in range(resends + 1))
    delivered, known = (1 - (1 - once) ** (resends + 1) for once in (hop.delivered, hop.known))
    spent = times * hop.joules, times * hop.frames
    return Hop(*spent, delivered, known, times * hop.seconds, times * hop.airtime)


Steps = Callable[[NodeId, Destination], NodePath]


def _steps(model: RadioModel, machine: RoutingMachine) -> Steps:
    """Return the function that computes the paths of a routing protocol."""
    match machine:
        case IdGrid() | Static():
            return _by_rules(machine.columns)
        case Geographic():
            return _GeographicPaths(model, machine)
        case tree.Tree():
            return _TreePaths(model).path
    raise UsageError(
        f"what routing '{type(machine).__name__}' takes is not estimated: id-grid, static, tree and "
        "geographic are; 'holdfast sim' runs it"
    )


def _by_rules(columns: int) -> Steps:
    def path(origin: NodeId, to: Destination) -> NodePath:
        found = [origin]
        while found[-1] != to:
            assert isinstance(to, int)
            found.append(next_hop(found[-1], to, columns))
        return tuple(found)

    return path


@dataclass
class _TreePaths:
    """Paths with the fewest expected transmissions, over links that are usable in both directions."""

    model: RadioModel
    _onward: dict[NodeId, dict[NodeId, NodeId]] = field(default_factory=dict)

    def path(self, origin: NodeId, to: Destination) -> NodePath:
        assert isinstance(to, int)
        if (onward := self._onward.get(to)) is None:
            onward = self._onward[to] = next_hops_to(to, lambda here: self.model.usable(here, 0.1).items())
        found = [origin]
        while found[-1] != to and found[-1] in onward:
            found.append(onward[found[-1]])
        return tuple(found) if found[-1] == to else (origin,)


class _GeographicPaths:
    """Paths by the steps of geographic routing. Each node knows the positions and links of its neighbours."""

    def __init__(self, model: RadioModel, machine: Geographic) -> None:
        self._machine = machine
        quality = [model.usable(node, machine.least) for node in range(model.nodes)]
        places: Sequence[Point] = machine.places
        near = [{there: places[there] for there in sorted(known)} for known in quality]
        self._views = [RoutingView(node, places, near[node], known) for node, known in enumerate(quality)]
        self.more: dict[tuple[NodeId, Destination], tuple[int, ...]] = {}
        """The bytes that walks add to a message at each hop, by origin and destination."""

    def known(self, node: NodeId) -> Surroundings[NodeId]:
        view = self._views[node]
        here = view.places[node]
        return Surroundings(node, here, view.near, view.quality, reach=usual_reach(here, view.near))

    def __call__(self, origin: NodeId, to: Destination) -> NodePath:
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
