"""A network without radios: nodes are linked within a distance, and geographic routing finds the paths.

It shows how many messages and hops a protocol needs, apart from the costs and losses of a link layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scipy.spatial import KDTree

from ...errors import UsageError
from ...model.space import Point, Rectangle
from .frame import NodeId
from .routing.geographic import Course, Planarise, RoutingView, step
from .routing.plane import Surroundings, gabriel
from .routing.spreading import SpreadResult, spread


class Field:
    """The positions of nodes, the links between them, and the nodes that are down."""

    def __init__(self, places: Iterable[Point], reach: float) -> None:
        self.places = [(float(place[0]), float(place[1])) for place in places]
        self.reach = reach
        if len(set(self.places)) < len(self.places):
            raise UsageError("two nodes stand at one point; a node's address is where it stands")
        self.down: set[NodeId] = set()
        self._links: list[dict[NodeId, Point]] = [{} for _ in self.places]
        for a, b in KDTree(self.places).query_pairs(reach, output_type="ndarray").tolist():
            self._links[a][b], self._links[b][a] = self.places[b], self.places[a]
        self._near = [dict(links) for links in self._links]
        self._planar: dict[NodeId, Mapping[NodeId, Point]] = {}
        self._paths: dict[tuple[NodeId, Point], list[NodeId]] = {}
        self._hops: dict[tuple[NodeId, Point, Course], tuple[NodeId, Course] | None] = {}

    @property
    def alive(self) -> list[NodeId]:
        """Return the nodes that are up."""
        return [node for node in range(len(self.places)) if node not in self.down]

    def near(self, node: NodeId) -> Mapping[NodeId, Point]:
        """Return the linked neighbours of a node that are up, with their positions."""
        return self._near[node]

    def fail(self, node: NodeId) -> None:
        """Take a node down, with all its links."""
        self.down.add(node)
        self._paths.clear()
        self._hops.clear()
        for other in self._links[node]:
            self._near[other].pop(node, None)
            self._planar.pop(other, None)

    def recover(self, node: NodeId) -> None:
        """Bring a node up again, with its links to neighbours that are up."""
        self.down.discard(node)
        self._paths.clear()
        self._hops.clear()
        links = self._links[node].items()
        self._near[node] = {other: place for other, place in links if other not in self.down}
        self._planar.pop(node, None)
        for other in self._near[node]:
            self._near[other][node] = self.places[node]
            self._planar.pop(other, None)

    def path(self, start: NodeId, to: Point) -> list[NodeId]:
        """Return the nodes on the path of a message to a point, including the first and the last node.

        The last node is the node nearest to the point. The message goes once round the face that encloses the
        point, and ends where it found no nearer node.
        """
        if (start, to) not in self._paths:
            found, course, here = [start], Course(), start
            while chosen := self.hop(here, to, course):
                here, course = chosen
                found.append(here)
            self._paths[start, to] = found
        return self._paths[start, to]

    def hop(self, here: NodeId, to: Point, course: Course) -> tuple[NodeId, Course] | None:
        """Return the next node for a message that arrived on ``course``; ``None`` if the message has
        arrived.
        """
        if (here, to, course) not in self._hops:
            view = RoutingView(here, self.places, self._near[here], planar=self._planes(here))
            chosen = step(view, to, course)
            self._hops[here, to, course] = None if chosen is None else (chosen[0], Course(chosen[1], here))
        return self._hops[here, to, course]

    def _planes(self, node: NodeId) -> Planarise:
        def known(here: Point, near: Mapping[NodeId, Point]) -> Mapping[NodeId, Point]:
            if node not in self._planar:
                self._planar[node] = gabriel(here, near)
            return self._planar[node]

        return known

    def spread(self, start: NodeId, low: Point, high: Point) -> SpreadResult[NodeId]:
        """Send a message from a node to all nodes in a rectangle, as geographic routing does."""

        def known(node: NodeId) -> Surroundings[NodeId]:
            planar = self._planes(node)
            return Surroundings(node, self.places[node], self._near[node], planar=planar, reach=self.reach)

        return spread(start, Rectangle(low, high), known)
