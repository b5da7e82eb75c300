"""The placement of components near their inputs, whole or in parts, and the cost of each choice.

[F71, F73, F74]

Costs are estimates in messages times hops per day. The number of hops follows from the distances from
publishers to the host and from the host to the subscribers, with a given reach per hop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ....errors import UsageError
from ....model.space import Point, Rectangle
from ..qps.area import box, intersection, size, union_of
from ..qps.tree import ROOT, QuadScope, ScopeTree


@dataclass(frozen=True, slots=True)
class TopicPublisher:
    """A publisher of a topic: its position, the region of its events, and their number per day."""

    name: str
    topic: str
    at: Point
    region: Rectangle
    a_day: float


@dataclass(frozen=True, slots=True)
class ComponentPart:
    """A part of a component: its region (``None`` is everywhere), position, inputs, and the reason."""

    region: Rectangle | None
    at: Point
    inputs: tuple[TopicPublisher, ...]
    why: str


@dataclass(frozen=True, slots=True)
class PlacementChoice:
    """A placement of a component: its parts, the point that joins them, and messages times hops per day."""

    name: str
    parts: tuple[ComponentPart, ...]
    join: Point
    messages: float


@dataclass(frozen=True, kw_only=True)
class PlacementGround:
    """The properties of a network and of a component that determine costs.

    ``output`` is the number of outputs per reading. If ``must_join``, parts send their state to the join at
    each evaluation.
    """

    tree: ScopeTree
    reach: float
    subscribers: tuple[Point, ...]
    output: float = 0.01
    must_join: bool = True
    messages_per_reading: float = 2.0
    """The number of messages that a joined part sends for each reading: one for each predicate."""

    def __post_init__(self) -> None:
        if not self.reach > 0:
            raise UsageError(f"a reach of {self.reach}; it must be above 0")

    def hops(self, a: Point, b: Point) -> float:
        """Return the number of hops between two points."""
        return 0.0 if a == b else max(1.0, math.ceil(math.dist(a, b) / self.reach))


def choices(
    topic: str, inputs: Sequence[TopicPublisher], ground: PlacementGround, relative: bool = False
) -> list[PlacementChoice]:
    """Return all placements of a component over its inputs, the cheapest first.

    If the component's queries are relative to its host, there is one placement: a replica at each publisher's
    node.
    """
    if not inputs:
        raise UsageError(f"nobody publishes what '{topic}' listens to")
    if relative:
        why = "its locations are relative to its host"
        parts = tuple(ComponentPart(None, p.at, (p,), why) for p in inputs)
        return [_with_cost("a replica at each publisher", parts, ground, joined=False)]
    middle = _mean_point(ground.subscribers)
    at_subscriber = ComponentPart(None, middle, tuple(inputs), "everything is sent there")
    near_inputs = ComponentPart(None, *_host(topic, inputs, ground))
    found = [
        _with_cost("at the subscriber", (at_subscriber,), ground),
        _with_cost("near its inputs", (near_inputs,), ground),
    ]
    if len(inputs) > 1:
        cut = _parts_at_publishers(inputs) or _parts_by_quadrant(topic, inputs, ground)
        name = "cut by advertisements" if cut[0].at == cut[0].inputs[0].at else "cut by quadrants"
        found.append(_with_cost(name, cut, ground, joined=ground.must_join))
    return sorted(found, key=lambda choice: choice.messages)


def _host(
    topic: str, inputs: Sequence[TopicPublisher], ground: PlacementGround
) -> tuple[Point, tuple[TopicPublisher, ...], str]:
    """Return the logical broker nearest to the centre of the inputs, with the reason.  [F71]"""
    total = sum(p.a_day for p in inputs) or 1.0
    centre = tuple(sum(p.at[axis] * p.a_day for p in inputs) / total for axis in (0, 1))
    scope = min(ground.tree.scopes(), key=lambda scope: math.dist(ground.tree.address(topic, scope), centre))
    why = f"the logical broker {scope} is nearest to its inputs"
    return ground.tree.address(topic, scope), tuple(inputs), why


def _parts_at_publishers(inputs: Sequence[TopicPublisher]) -> tuple[ComponentPart, ...]:
    """Return parts on the publishers' own nodes if no two nodes publish for the same place.  [F74]"""
    nodes: dict[Point, list[TopicPublisher]] = {}
    for p in inputs:
        nodes.setdefault(p.at, []).append(p)
    areas = [union_of(box(p.region.low, p.region.high) for p in some) for some in nodes.values()]
    for i, area in enumerate(areas):
        if any(intersection(area, other) for other in areas[:i]):
            return ()
    why = "only {} speaks of this place: no message is needed"
    return tuple(
        ComponentPart(some[0].region, at, tuple(some), why.format(some[0].name)) for at, some in nodes.items()
    )


def _parts_by_quadrant(
    topic: str, inputs: Sequence[TopicPublisher], ground: PlacementGround
) -> tuple[ComponentPart, ...]:
    """Return a part for each quadrant of space, near its own inputs."""
    found = []
    for scope in ground.tree.children(ROOT) or (ROOT,):
        if own := [p for p in inputs if _share(p, scope, ground.tree)]:
            at, publishers, why = _host(topic, own, ground)
            region = Rectangle(*ground.tree.corners(scope))
            found.append(ComponentPart(region, at, publishers, f"quadrant {scope}: {why}"))
    return tuple(found)


def _share(publisher: TopicPublisher, scope: QuadScope, tree: ScopeTree) -> bool:
    """Whether a publisher's region overlaps a scope."""
    region = publisher.region
    both = intersection(box(region.low, region.high), tree.cell(scope))
    return bool(both) and size(both) > 0


def _with_cost(
    name: str, parts: tuple[ComponentPart, ...], ground: PlacementGround, joined: bool = False
) -> PlacementChoice:
    """Return a placement of the given parts with its cost."""
    middle = _mean_point(ground.subscribers)
    join = middle if not joined else _mean_point(tuple(part.at for part in parts))
    messages = 0.0
    for part in parts:
        incoming = sum(p.a_day for p in part.inputs)
        messages += sum(p.a_day * ground.hops(p.at, part.at) for p in part.inputs)
        outputs, at = incoming * ground.output, part.at
        if joined:
            messages += incoming * ground.messages_per_reading * ground.hops(part.at, join)
            at = join
        messages += sum(outputs * ground.hops(at, end) for end in ground.subscribers)
    return PlacementChoice(name, parts, join, messages)


def _mean_point(points: Sequence[Point]) -> Point:
    """Return the mean of points; raise a `UsageError` if there are none."""
    if not points:
        raise UsageError("there is no subscriber")
    return tuple(sum(p[axis] for p in points) / len(points) for axis in (0, 1))
