"""The stabilization interval: the duration by which InfoS time stays behind the clock. [F76]

The thesis does not say how to measure the interval. A running mean is not an upper bound: with one distant
publisher among many near ones, all of its events would be late. Therefore the interval is the longest one
that was recently needed. An event for level `i` is in time if it is not older than `i` intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....model.instant import MINUTE, SECOND, Duration, Instant

PERIOD = MINUTE
"""The length of a measurement period. A needed interval counts for one to two periods, so that slow
publishers may pause that long."""


@dataclass(frozen=True, slots=True)
class Stability:
    """The stabilization interval `t_s`, and the longest interval needed in the current period, which began at
    `since`.

    Initially the interval is 3000 ticks of 1 ms, as in the thesis.
    """

    interval: Duration = 3 * SECOND
    longest: Duration = 0
    since: Instant | None = None


def interval_for(age: Duration, way: Duration, level: int) -> Duration:
    """Return the interval that an event would have needed, given its age and its travel time (`way`).

    A margin is added for the travel time only. Otherwise delays caused by waiting would add up.
    """
    return -(-age // level) + way // 4


def observe(stability: Stability, wanted: Duration, now: Instant) -> Stability:
    """Return the stability after an event that needed the interval `wanted`.

    The interval grows at once. It shrinks after a period in which less was needed.
    """
    since = now if stability.since is None else stability.since
    if now - since < PERIOD:
        return Stability(max(stability.interval, wanted), max(stability.longest, wanted), since)
    return Stability(max(stability.longest, wanted), wanted, now)


def info_time(stability: Stability, clock: Instant, level: int) -> Instant:
    """Return the InfoS time of a level: ``t_I^i = t_I^(i-1) − t_s``, and ``t_I^0`` is the clock. [5.21]"""
    return clock - level * stability.interval
