"""Where components go: to their inputs, whole or in parts; and what each choice costs.  [F71, F73, F74]

Costs are estimates: readings a day times hops, by the distance from publisher to host and from there to the
subscribers, over hops of a given reach.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import UsageError
from ...model.space import Point, Rectangle
from ..qps.area import box, joined, meet, size
from ..qps.tree import ROOT, Scope, Tree


@dataclass(frozen=True, slots=True)
class Publisher:
    """Who publishes a topic: where it stands, where its events lie, how many there are in a day."""

    name: str
    topic: str
    at: Point
    region: Rectangle
    a_day: float


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a component: what it is about (everything, if none), where it goes, and why."""

    region: Rectangle | None
    at: Point
    inputs: tuple[Publisher, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A way to place a component: its parts, where they are joined, and messages a day, hop by hop."""

    name: str
    parts: tuple[Part, ...]
    join: Point
    messages: float


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What is known of a network, and of a component: how often it says something for each reading that
    comes, and whether its parts need to be joined.  Those tell the join at each evaluation how it stands."""

    tree: Tree
    reach: float
    subscribers: tuple[Point, ...]
    output: float = 0.01
    joined: bool = True
    tells: float = 2.0
    """How many words a part that is joined has for each reading: one for each predicate."""

    def __post_init__(self) -> None:
        if not self.reach > 0:
            raise UsageError(f"a reach of {self.reach}; it must be above 0")

    def hops(self, a: Point, b: Point) -> float:
        return 0.0 if a == b else max(1.0, math.ceil(math.dist(a, b) / self.reach))


def choices(topic: str, inputs: Sequence[Publisher], ground: Ground, relative: bool = False) -> list[Choice]:
    """All ways to place a component over its inputs, the cheapest first.

    One whose queries are relative to its host has a replica at each publisher's node, and no choice.
    """
    if not inputs:
        raise UsageError(f"nobody publishes what '{topic}' listens to")
    if relative:
        parts = tuple(Part(None, p.at, (p,), "its locations are relative to its host") for p in inputs)
        return [_priced("a replica at each publisher", parts, ground, joined=False)]
    middle = _middle(ground.subscribers)
    found = [
        _priced("at the subscriber", (Part(None, middle, tuple(inputs), "everything is sent there"),), ground)
    ]
    near = _host(topic, inputs, ground)
    found.append(_priced("near its inputs", (Part(None, *near),), ground))
    if len(inputs) > 1:
        cut = _localised(inputs) or _by_quadrants(topic, inputs, ground)
        name = "cut by advertisements" if cut[0].at == cut[0].inputs[0].at else "cut by quadrants"
        found.append(_priced(name, cut, ground, joined=ground.joined))
    return sorted(found, key=lambda choice: choice.messages)


def _host(
    topic: str, inputs: Sequence[Publisher], ground: Ground
) -> tuple[Point, tuple[Publisher, ...], str]:
    """The logical broker that is nearest to most of what comes.  [F71]"""
    total = sum(p.a_day for p in inputs) or 1.0
    centre = tuple(sum(p.at[axis] * p.a_day for p in inputs) / total for axis in (0, 1))
    scope = min(ground.tree.scopes(), key=lambda scope: math.dist(ground.tree.address(topic, scope), centre))
    why = f"the logical broker {scope} is nearest to its inputs"
    return ground.tree.address(topic, scope), tuple(inputs), why


def _localised(inputs: Sequence[Publisher]) -> tuple[Part, ...]:
    """Parts on the publishers' own nodes, if no two nodes speak of the same place.  [F74]"""
    nodes: dict[Point, list[Publisher]] = {}
    for p in inputs:
        nodes.setdefault(p.at, []).append(p)
    areas = [joined(box(p.region.low, p.region.high) for p in some) for some in nodes.values()]
    for i, area in enumerate(areas):
        if any(meet(area, other) for other in areas[:i]):
            return ()
    return tuple(
        Part(
            some[0].region, at, tuple(some), f"only {some[0].name} speaks of this place: no message is needed"
        )
        for at, some in nodes.items()
    )


def _by_quadrants(topic: str, inputs: Sequence[Publisher], ground: Ground) -> tuple[Part, ...]:
    """Parts by the quadrants of space, each where its own inputs are."""
    found = []
    for scope in ground.tree.children(ROOT) or (ROOT,):
        mine = [p for p in inputs if _share(p, scope, ground.tree)]
        if mine:
            at, some, why = _host(topic, mine, ground)
            found.append(Part(Rectangle(*ground.tree.corners(scope)), at, some, f"quadrant {scope}: {why}"))
    return tuple(found)


def _share(publisher: Publisher, scope: Scope, tree: Tree) -> bool:
    region = publisher.region
    both = meet(box(region.low, region.high), tree.cell(scope))
    return bool(both) and size(both) > 0


def _priced(name: str, parts: tuple[Part, ...], ground: Ground, joined: bool = False) -> Choice:
    middle = _middle(ground.subscribers)
    join = middle if not joined else _middle(tuple(part.at for part in parts))
    messages = 0.0
    for part in parts:
        coming = sum(p.a_day for p in part.inputs)
        messages += sum(p.a_day * ground.hops(p.at, part.at) for p in part.inputs)
        said, at = coming * ground.output, part.at
        if joined:
            messages += coming * ground.tells * ground.hops(part.at, join)
            at = join
        messages += sum(said * ground.hops(at, end) for end in ground.subscribers)
    return Choice(name, parts, join, messages)


def _middle(points: Sequence[Point]) -> Point:
    if not points:
        raise UsageError("nobody subscribes")
    return tuple(sum(p[axis] for p in points) / len(points) for axis in (0, 1))
