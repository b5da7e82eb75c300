"""A day on some roads with some users: what happens, as events.

Every reading of a road is one of its loop.  Its camera has a speed to tell only if a vehicle came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.model.event import Event
from holdfast.model.instant import Instant
from holdfast.model.space import Point

from .definition import EVERY, LOOP, REACH, SPEED, USER
from .layout import layout
from .roads import JourneyMap, Numbers, Traffic, density, hours
from .users import drive


@dataclass(frozen=True)
class JourneyScene:
    """The readings of some ``roads`` of a map on a day, and ``[user, time]`` where users are."""

    day: date
    map: JourneyMap
    roads: tuple[int, ...]
    traffic: Traffic
    times: Numbers
    users: NDArray[np.int64]

    @cached_property
    def points(self) -> list[Point]:
        """Where junctions are, in the space in which components measure."""
        return layout(self.map.hops, REACH)

    @cached_property
    def densities(self) -> NDArray[np.float64]:
        """What the loop of each reading says: vehicles on a kilometre."""
        return density(self.map, self.traffic)

    @cached_property
    def paces(self) -> NDArray[np.float64]:
        """What the camera of each reading says: speed in per cent of the road's normal speed."""
        normal = np.array([road.normal for road in self.map.roads])
        return 100.0 * self.traffic.speeds / normal[self.traffic.roads]

    @property
    def last(self) -> Instant:
        """The time of the last event."""
        return int(max(self.times[-1], self.traffic.times[-1]))

    def events(self) -> Iterator[Event]:
        """All of them, in order of time."""
        yield from sorted((*self._of_roads(), *self._of_users()), key=lambda event: event.order)

    def _of_roads(self) -> Iterator[Event]:
        traffic = self.traffic
        rows = zip(
            traffic.times.tolist(),
            traffic.roads.tolist(),
            traffic.vehicles.tolist(),
            self.densities.tolist(),
            self.paces.tolist(),
            strict=True,
        )
        for at, index, vehicles, dense, pace in rows:
            road = self.map.roads[index]
            point = self.points[road.start]
            yield Event(LOOP, at, f"loop-{road.name}", {"value": dense}, 0, point, road.name)
            if vehicles:
                yield Event(SPEED, at, f"camera-{road.name}", {"value": pace}, 0, point, road.name)

    def _of_users(self) -> Iterator[Event]:
        for user, places in enumerate(self.users.tolist()):
            for at, junction in zip(self.times.tolist(), places, strict=True):
                yield Event(USER, at, user_name(user), {}, 0, self.points[junction])


def user_name(user: int) -> str:
    """What a user is called."""
    return f"user-{user + 1:03d}"


class Crowd(NamedTuple):
    """How many users there are, and the seed by which they choose where to go."""

    users: int
    seed: int


def scene(day: date, map: JourneyMap, roads: Iterable[int], traffic: Traffic, crowd: Crowd) -> JourneyScene:
    """A day of readings, and users who say every five minutes where they are."""
    some = tuple(roads)
    start, end = hours(day)
    times = np.arange(start, end, EVERY)
    return JourneyScene(
        day, map, some, traffic.of(some).on(day), times, drive(map, crowd.users, times, crowd.seed)
    )
