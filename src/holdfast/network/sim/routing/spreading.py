"""Delivery of a message to every node of a rectangle.

A node of the rectangle repeats the message once to its neighbours. Nodes of the rectangle may be connected
only by nodes outside it. Therefore the message also walks, by the right-hand rule, along every face of the
planar graph that meets the rectangle. On a connected planar graph it reaches every node of the rectangle. A
node uses each link once for a message, so the walks end. A node at which the repetitions cover the whole
rectangle starts no walk.

[After Seada and Helmy, PerCom 2004. They walk only the faces beside nodes of the rectangle; a link that
crosses the rectangle between two nodes outside may hide other nodes.]
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic

from ....model.space import Point, Rectangle
from .plane import FaceWalk, Node, Surroundings, beside, next_link, towards

CELLS = 8
"""The number of columns and rows into which a rectangle is divided to test whether it is covered."""


def is_inside(area: Rectangle, place: Point) -> bool:
    """Return whether a place lies in the closed rectangle. Coordinates that the rectangle lacks are
    ignored.
    """
    return all(a <= p <= b for a, p, b in zip(area.low, place, area.high, strict=False))


def nearest_point(area: Rectangle, place: Point) -> Point:
    """Return the point of a rectangle that is nearest to a place."""
    return tuple(min(max(a, p), b) for a, p, b in zip(area.low, place, area.high, strict=False))


def next_walks(known: Surroundings[Node], area: Rectangle, seen: Point) -> list[Node]:
    """Return the neighbours to which walks continue from a node that has the message.

    From a node of the rectangle, a walk starts over each planar link that leaves the rectangle, unless all
    nodes of the rectangle are in range of repetitions. At a node outside, the walk continues along the face
    right of the link from ``seen``. Where a link crosses the rectangle, another walk starts along the face
    beyond that link.

    ``seen`` is the place of the sender. The first walk starts at the node nearest to a point of the
    rectangle; there, ``seen`` lies ``beside`` that point.
    """
    here, planar = known.here, known.planar(known.here, known.near)
    if is_inside(area, here):
        leaving = [node for node, place in planar.items() if not is_inside(area, place)]
        return [] if not leaving or _is_covered(known, area) else leaving
    result: list[Node] = []
    while planar and (node := next_link(here, seen, planar)) not in result:
        result.append(node)
        seen = planar[node]
        if is_inside(area, seen) or not _crosses(area, here, seen):
            break
    return result


def usual_reach(here: Point, near: Mapping[Node, Point]) -> float | None:
    """Return the radio range in metres as a node can estimate it; ``None`` without neighbours. The farthest
    neighbours are excluded as outliers.
    """
    lengths = sorted(math.dist(here, place) for place in near.values())
    return lengths[int(0.9 * (len(lengths) - 1))] if lengths else None


def _is_covered(known: Surroundings[Node], area: Rectangle) -> bool:
    """Return whether every point of the rectangle is in range of this node or one of its neighbours in the
    rectangle.
    """
    if known.reach is None:
        return False
    (left, low), (right, high) = area.low[:2], area.high[:2]
    width, height = (right - left) / CELLS, (high - low) / CELLS
    rest = known.reach - math.hypot(width, height) / 2
    if rest <= 0:
        return False
    senders = [known.here, *(place for place in known.near.values() if is_inside(area, place))]
    middles = [i + 0.5 for i in range(CELLS)]
    centres = ((left + x * width, low + y * height) for x in middles for y in middles)
    return all(any(math.dist(centre, place[:2]) <= rest for place in senders) for centre in centres)


def _crosses(area: Rectangle, a: Point, b: Point) -> bool:
    """Return whether the line from a to b meets the rectangle."""
    begin, end = 0.0, 1.0
    for low, high, p, q in zip(area.low, area.high, a, b, strict=False):
        if p == q:
            if not low <= p <= high:
                return False
        else:
            first, last = sorted(((low - p) / (q - p), (high - p) / (q - p)))
            begin, end = max(begin, first), min(end, last)
    return begin <= end


@dataclass
class SpreadResult(Generic[Node]):
    """The result of sending one message to a rectangle."""

    hops: dict[Node, int] = field(default_factory=dict)
    """The nodes of the rectangle that receive the message, each with the number of hops."""
    senders: list[Node] = field(default_factory=list)
    """The sender of each transmission, in order. The first sender is the origin."""


def spread(start: Node, area: Rectangle, known: Callable[[Node], Surroundings[Node]]) -> SpreadResult[Node]:
    """Simulate the delivery of a message to all nodes of a rectangle, if every transmission arrives."""
    result: SpreadResult[Node] = SpreadResult()
    entry, hops = _approach(start, area, known, result)
    used: set[tuple[Node, Node]] = set()
    waiting: deque[tuple[Node, Point | None, int]] = deque([(entry, None, hops)])
    while waiting:
        node, seen, hops = waiting.popleft()
        view = known(node)
        if is_inside(area, view.here):
            if node in result.hops:
                continue
            result.hops[node] = hops
            result.senders.append(node)
            inside = [other for other, place in view.near.items() if is_inside(area, place)]
            waiting += [(other, view.here, hops + 1) for other in inside]
        for other in next_walks(view, area, seen or beside(view.here, _target(start, area, known))):
            if (node, other) not in used:
                used.add((node, other))
                result.senders.append(node)
                waiting.append((other, view.here, hops + 1))
    return result


def _target(start: Node, area: Rectangle, known: Callable[[Node], Surroundings[Node]]) -> Point:
    return nearest_point(area, known(start).here)


def _approach(
    start: Node, area: Rectangle, known: Callable[[Node], Surroundings[Node]], result: SpreadResult[Node]
) -> tuple[Node, int]:
    """Return the first node of the rectangle on the way to its nearest point, and the hops to it. If none is
    on the way, return the node nearest to that point.
    """
    walk: FaceWalk[Node] | None = None
    node, came_from, target = start, None, _target(start, area, known)
    while not is_inside(area, known(node).here) and (chosen := towards(known(node), target, walk, came_from)):
        result.senders.append(node)
        came_from = known(node).here
        node, walk = chosen
    return node, len(result.senders)
