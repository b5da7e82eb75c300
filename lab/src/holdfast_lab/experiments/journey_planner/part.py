"""A part of a town: the streets within so many junctions of one, for some hours; users drive only there."""

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
    """What happens within so many junctions of the one where a road begins."""
    map = whole.map
    some = np.flatnonzero(map.hops[map.roads[centre].start] <= junctions).tolist()
    number = {old: new for new, old in enumerate(some)}
    inside = [i for i, road in enumerate(map.roads) if road.start in number and road.end in number]
    index = {old: new for new, old in enumerate(inside)}
    small = JourneyMap(
        tuple(map.junctions[i] for i in some),
        tuple(map.degrees[i] for i in some),
        tuple(
            replace(map.roads[i], start=number[map.roads[i].start], end=number[map.roads[i].end])
            for i in inside
        ),
    )
    watched = tuple(index[i] for i in whole.roads if i in index)
    times = np.arange(*hours, EVERY)
    return JourneyScene(
        whole.day,
        small,
        watched,
        _renumber(whole.traffic.of([inside[i] for i in watched]), index, hours),
        times,
        drive(small, crowd.users, times, crowd.seed),
    )


def _renumber(traffic: Traffic, index: dict[int, int], hours: tuple[Instant, Instant]) -> Traffic:
    """The readings of these hours, by the numbers that roads have in the part."""
    some = traffic.where((traffic.times >= hours[0]) & (traffic.times < hours[1]))
    return replace(some, roads=np.array([index[road] for road in some.roads.tolist()], dtype=np.int64))
