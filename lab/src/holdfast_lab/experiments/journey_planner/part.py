"""A part of a town for some hours: the streets near a junction, with users who drive only there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from holdfast.model.instant import Instant

from .definition import EVERY
from .roads import JourneyMap, Traffic
from .scene import Crowd, JourneyScene
from .users import drive


def part(
    whole: JourneyScene, centre: int, junctions: int, hours: tuple[Instant, Instant], crowd: Crowd
) -> JourneyScene:
    """Return the scene within some junctions of the start of a road."""
    map = whole.map
    some = np.flatnonzero(map.hops[map.roads[centre].start] <= junctions).tolist()
    number = {old: new for new, old in enumerate(some)}
    inside = [i for i, road in enumerate(map.roads) if road.start in number and road.end in number]
    index = {old: new for new, old in enumerate(inside)}
    roads = [map.roads[i] for i in inside]
    small = JourneyMap(
        tuple(map.junctions[i] for i in some),
        tuple(map.degrees[i] for i in some),
        tuple(replace(road, start=number[road.start], end=number[road.end]) for road in roads),
    )
    watched = tuple(index[i] for i in whole.roads if i in index)
    times = np.arange(*hours, EVERY)
    traffic = _renumber(whole.traffic.of([inside[i] for i in watched]), index, hours)
    users = drive(small, crowd.users, times, crowd.seed)
    return JourneyScene(whole.day, small, watched, traffic, times, users)


def _renumber(traffic: Traffic, index: dict[int, int], hours: tuple[Instant, Instant]) -> Traffic:
    """Return the readings of these hours with the road numbers of the part."""
    some = traffic.where((traffic.times >= hours[0]) & (traffic.times < hours[1]))
    return replace(some, roads=np.array([index[road] for road in some.roads.tolist()], dtype=np.int64))
