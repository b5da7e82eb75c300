"""Users who drive to junctions drawn at random, each time by the fastest route."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.model.instant import MINUTE, SECOND

from .roads import JourneyMap, Numbers


def drive(map: JourneyMap, users: int, times: Numbers, seed: int) -> NDArray[np.int64]:
    """Return ``[user, time]``: the last junction of each user; all start at the first time."""
    return np.array([_journey(map, times, np.random.default_rng((seed, user))) for user in range(users)])


def _journey(map: JourneyMap, times: Numbers, random: np.random.Generator) -> Numbers:
    count = len(map.junctions)
    at, now = int(random.integers(count)), float(times[0])
    moments, places = [now], [at]
    while now <= times[-1]:
        ahead = way(map, at, (at + 1 + int(random.integers(count - 1))) % count)
        if not ahead:  # no road leads there: wait, and try another
            now += MINUTE
        for junction in ahead:
            now += map.seconds[at, junction] * SECOND
            at = junction
            moments.append(now)
            places.append(at)
    return np.array(places)[np.searchsorted(moments, times, side="right") - 1]


def way(map: JourneyMap, start: int, end: int) -> list[int]:
    """Return the junctions of the fastest route without the first; empty if there is no route."""
    found: list[int] = []
    while end != start and end >= 0:
        found.append(end)
        end = int(map.routes[start, end])
    return found[::-1] if end == start else []
