"""Local geometry of geographic routing: greedy steps, links that do not cross, and walks around a hole.

Perimeter routing walks along the faces of a planar graph by the right-hand rule [Bose et al. 1999, Karp and
Kung 2000]. A walk leaves a face only where the line from its start to the destination leaves the face. With
that condition it arrives on every connected planar graph, not only on Gabriel graphs [Frey and Stojmenovic
2006].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from ....model.space import Point

Node = TypeVar("Node", bound=Hashable)

ASIDE = 1e-6
"""The distance beside the destination at which a walk aims, relative to the distance to the destination."""
ROUNDING = 1e-9
"""Crossings of a walk's line that differ by less than this count as equal."""


def nearer(
    here: Point, neighbours: Mapping[Node, Point], target: Point, quality: Mapping[Node, float] | None = None
) -> Node | None:
    """Return the greedy step: the neighbour nearest to the target; ``None`` if no neighbour is nearer than
    this node.

    On lossy links it is the neighbour with the largest advance times ``quality``, the share of frames that
    arrive (Seada et al., SenSys 2004).
    """
    best, most, left = None, 0.0, math.dist(here, target)
    for node, place in neighbours.items():
        advance = left - math.dist(place, target)
        if quality is not None:
            advance *= quality[node]
        if advance > most:
            best, most = node, advance
    return best


def gabriel(here: Point, neighbours: Mapping[Node, Point]) -> dict[Node, Point]:
    """Return the neighbours in the Gabriel graph, whose links do not cross.

    A link is in that graph if no other neighbour lies in the circle over the link.
    """
    return {
        node: place
        for node, place in neighbours.items()
        if not any(_is_between(witness, here, place) for witness in neighbours.values())
    }


def _is_between(witness: Point, a: Point, b: Point) -> bool:
    """Return whether a point lies in the circle over a–b, or on it as the corners of a square do."""
    if witness in (a, b):
        return False
    (wx, wy), (ax, ay), (bx, by) = witness[:2], a[:2], b[:2]
    on_it = ASIDE * ((ax - bx) ** 2 + (ay - by) ** 2)
    return (ax - wx) * (bx - wx) + (ay - wy) * (by - wy) <= on_it


@dataclass(frozen=True, slots=True)
class FaceWalk(Generic[Node]):
    """The progress of a packet around the faces between ``start`` and its destination."""

    start: Point
    """The position where greedy forwarding failed. The walk ends at a node closer to the destination."""
    crossed: float
    """The share of the line from start to destination that lies before the present face."""
    first: tuple[Node, Node]
    """The first link on the present face. A packet that takes it again has been all around the face."""


def enter(node: Node, here: Point, planar: Mapping[Node, Point], target: Point) -> FaceWalk[Node] | None:
    """Start a walk at a node that has no closer neighbour; return ``None`` if it has no neighbour at all."""
    if not planar:
        return None
    return FaceWalk(here, 0.0, (node, next_link(here, beside(here, target), planar)))


def go_on(
    walk: FaceWalk[Node],
    at: tuple[Node, Point],
    came_from: Point,
    planar: Mapping[Node, Point],
    target: Point,
) -> tuple[FaceWalk[Node], Node] | None:
    """Return the walk after this node and its next node; ``None`` if it has been around a whole face."""
    if not planar:
        return None
    node, here = at
    aim, entered = beside(walk.start, target), walk
    onward = next_link(here, came_from, planar)
    while (share := _leaves(walk.start, aim, here, planar[onward])) > walk.crossed + ROUNDING:
        onward = next_link(here, planar[onward], planar)
        walk = FaceWalk(walk.start, share, (node, onward))
    return None if walk is entered and (node, onward) == walk.first else (walk, onward)


@dataclass(frozen=True, slots=True)
class Surroundings(Generic[Node]):
    """The local knowledge of a node: its position, neighbours, link quality, and the links that do
    not cross.
    """

    node: Node
    here: Point
    near: Mapping[Node, Point]
    quality: Mapping[Node, float] | None = None
    planar: Callable[[Point, Mapping[Node, Point]], Mapping[Node, Point]] = gabriel
    reach: float | None = None
    """The radio range in metres; ``None`` where links do not follow from distances."""


def towards(
    known: Surroundings[Node], target: Point, walk: FaceWalk[Node] | None, came_from: Point | None
) -> tuple[Node, FaceWalk[Node] | None] | None:
    """Return the next node on the way to a point, greedily or on a walk; ``None`` if no node is nearer."""
    here, near = known.here, known.near
    left = math.dist(here, target)
    if walk is not None and came_from is not None and left >= math.dist(walk.start, target):
        onward = go_on(walk, (known.node, here), came_from, known.planar(here, near), target)
        return None if onward is None else (onward[1], onward[0])
    greedy = nearer(here, near, target, known.quality)
    if greedy is not None:
        return greedy, None
    new_walk = enter(known.node, here, known.planar(here, near), target) if left else None
    return None if new_walk is None else (new_walk.first[1], new_walk)


def next_link(here: Point, seen: Point, planar: Mapping[Node, Point]) -> Node:
    """Return the first neighbour counterclockwise from the direction of ``seen``. A neighbour in that
    direction comes last.
    """
    zero = math.atan2(seen[1] - here[1], seen[0] - here[0])

    def turn(node: Node) -> float:
        place = planar[node]
        return (math.atan2(place[1] - here[1], place[0] - here[0]) - zero) % math.tau or math.tau

    return min(planar, key=turn)


def beside(start: Point, target: Point) -> Point:
    """Return a point slightly to the left of the target, so that the line to it meets no node by accident.

    In a grid, a line between two nodes runs through other nodes, and its face would be undefined.
    """
    (x, y), (from_x, from_y) = target[:2], start[:2]
    return (x - ASIDE * (y - from_y), y + ASIDE * (x - from_x))


def _leaves(start: Point, aim: Point, a: Point, b: Point) -> float:
    """Return the share of the line from start to aim at which it leaves the face to the right of a → b; -1 if
    it does not.
    """
    left, right = _side(start, aim, a), _side(start, aim, b)
    if not left > 0 >= right:
        return -1.0
    part = left / (left - right)
    x, y = a[0] + part * (b[0] - a[0]), a[1] + part * (b[1] - a[1])
    dx, dy = aim[0] - start[0], aim[1] - start[1]
    length = dx * dx + dy * dy
    share = ((x - start[0]) * dx + (y - start[1]) * dy) / length if length else 1.0
    return share if share < 1 else -1.0


def _side(start: Point, aim: Point, point: Point) -> float:
    """Return a number that is positive to the left of the line from start to aim, and negative to the
    right.
    """
    return (aim[0] - start[0]) * (point[1] - start[1]) - (aim[1] - start[1]) * (point[0] - start[0])
