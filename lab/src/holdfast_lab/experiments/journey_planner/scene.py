"""A day on some roads with some users, as events.

Every reading of a road is an event of its loop. The camera publishes a speed only if a vehicle passed.
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
    """The readings of some roads on a day, and the junction of each user at each time (``users[user,
    time]``).
    """

    day: date
    map: JourneyMap
    roads: tuple[int, ...]
    traffic: Traffic
    times: Numbers
    users: NDArray[np.int64]

    @cached_property
    def points(self) -> list[Point]:
        """The positions of junctions in the space in which components measure distances."""
        return layout(self.map.hops, REACH)

    @cached_property
    def densities(self) -> NDArray[np.float64]:
        """The loop's value for each reading: vehicles per kilometre."""
        return density(self.map, self.traffic)

    @cached_property
    def paces(self) -> NDArray[np.float64]:
        """The camera's value for each reading: speed in percent of normal."""
        normal = np.array([road.normal for road in self.map.roads])
        return 100.0 * self.traffic.speeds / normal[self.traffic.roads]

    @property
    def last(self) -> Instant:
        """The time of the last event."""
        return int(max(self.times[-1], self.traffic.times[-1]))

    def events(self) -> Iterator[Event]:
        """Yield all events in order of time."""
        yield from sorted((*self._of_roads(), *self._of_users()), key=lambda event: event.order)

    def _of_roads(self) -> Iterator[Event]:
        traffic = self.traffic
        columns = traffic.times, traffic.roads, traffic.vehicles, self.densities, self.paces
        for at, index, vehicles, dense, pace in zip(*(c.tolist() for c in columns), strict=True):
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
    """Return the name of a user."""
    return f"user-{user + 1:03d}"


class Crowd(NamedTuple):
    """The number of users, and the seed of their routes."""

    users: int
    seed: int


def scene(day: date, map: JourneyMap, roads: Iterable[int], traffic: Traffic, crowd: Crowd) -> JourneyScene:
    """Return a day of readings with users who report their positions every five minutes."""
    some = tuple(roads)
    start, end = hours(day)
    times = np.arange(start, end, EVERY)
    users = drive(map, crowd.users, times, crowd.seed)
    return JourneyScene(day, map, some, traffic.of(some).on(day), times, users)
