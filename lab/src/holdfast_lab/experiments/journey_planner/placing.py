"""Place the components where their cost is least, instead of by hand. [F71, F73, F74]

The loop and the camera of a road are at one third of its length, so that the two directions of a street have
different positions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from holdfast.kinds.component.detector.smc import Smc
from holdfast.model.instant import SECOND
from holdfast.model.space import Rectangle
from holdfast.network.protocols.qps.tree import ROOT, ScopeTree
from holdfast.network.protocols.sps.placement import ComponentPart, PlacementGround, TopicPublisher, choices

from .definition import CONGESTION, EVERY, HIGH, LOOP, NEAR, SLOW, SPEED, USER
from .deployment import Host, RoadSubscription
from .roads import JourneyMap

SENSORS = {LOOP: "loop", SPEED: "camera"}
A_DAY = 86_400 * SECOND / EVERY
OUTPUT = 0.01
"""The assumed number of output events for each input event of a component."""
DEGREE = 111_000.0
"""The length of a degree of latitude, in metres (approximate)."""
AROUND = 1.0
"""Half the width of a sensor's area, in metres; no other sensor publishes there."""


def cheapest_hosts(
    smcs: Mapping[str, Smc], map: JourneyMap, roads: Sequence[int], users: Iterable[str]
) -> list[Host]:
    """Place every component at its least cost; components relative to a user run with each user."""
    ground = _test_ground(map)
    publishing = {topic: [_publisher(map, topic, i) for i in roads] for topic in SENSORS}
    hosts: list[Host] = []
    for name in (HIGH, SLOW, CONGESTION):
        inputs = [p for topic in smcs[name].topics for p in publishing[topic]]
        best = choices(name, inputs, ground)[0]
        hosts += [_host(smcs[name], part, i) for i, part in enumerate(best.parts)]
        publishing[name] = [replace(p, topic=name, a_day=p.a_day * OUTPUT) for p in inputs[: len(roads)]]
    town = Rectangle(*ground.tree.corners(ROOT))
    moving = [TopicPublisher(user, USER, ground.subscribers[0], town, A_DAY) for user in users]
    for part in choices(NEAR, moving, ground, relative=True)[0].parts if moving else ():
        (user,) = part.inputs
        wanted = (RoadSubscription(CONGESTION), RoadSubscription(USER, frozenset([user.name])))
        hosts.append(Host(user.name, smcs[NEAR], wanted))
    return hosts


def _test_ground(map: JourneyMap) -> PlacementGround:
    """Return a square that contains the town, with a user in its centre and hops of a sixteenth of its
    side.
    """
    axes = list(zip(*metres(map), strict=True))
    low = [min(axis) - 2 * AROUND for axis in axes]
    side = max(max(axis) - least for axis, least in zip(axes, low, strict=True)) + 2 * AROUND
    middle = (low[0] + side / 2, low[1] + side / 2)
    tree = ScopeTree((low[0], low[1]), side, 3)
    return PlacementGround(tree=tree, reach=side / 16, subscribers=(middle,), output=OUTPUT, must_join=False)


def _publisher(map: JourneyMap, topic: str, road: int) -> TopicPublisher:
    at = spot(map, road)
    region = Rectangle(tuple(c - AROUND for c in at), tuple(c + AROUND for c in at))
    return TopicPublisher(map.roads[road].name, topic, at, region, A_DAY)


def metres(map: JourneyMap) -> list[tuple[float, float]]:
    """Return the positions of junctions in a plane, in metres; this is accurate enough for a town."""
    east = DEGREE * math.cos(math.radians(fmean(north for _, north in map.degrees)))
    return [(east * x, DEGREE * y) for x, y in map.degrees]


def spot(map: JourneyMap, road: int) -> tuple[float, float]:
    """Return the position of a road's sensors."""
    places = metres(map)
    (ax, ay), (bx, by) = places[map.roads[road].start], places[map.roads[road].end]
    return (ax + (bx - ax) / 3, ay + (by - ay) / 3)


def _host(smc: Smc, part: ComponentPart, number: int) -> Host:
    """Return the host of a part: the node of its sensor if it stands there, otherwise a node of its own."""
    among = frozenset(p.name for p in part.inputs)
    first = part.inputs[0]
    node = f"{smc.topic}-{number}"
    if part.at == first.at and len(among) == 1:
        node = f"{'camera' if first.topic == SPEED else 'loop'}-{first.name}"
    return Host(node, smc, tuple(RoadSubscription(topic, among) for topic in smc.topics))
