"""The stabilization interval: how far InfoS time stays behind the clock. [F76]

The thesis does not say how it is measured. A running mean is no bound: with one distant publisher among many
near ones, all of its events would be late. So it is the longest interval that was needed lately. An event for
level i is in time if it is not older than i intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....model.instant import MINUTE, SECOND, Duration, Instant

PERIOD = MINUTE
"""A needed interval counts for one to two of these periods, so that slow publishers may pause that long."""


@dataclass(frozen=True, slots=True)
class Stability:
    """The stabilization interval `t_s`, initially 3000 ticks of 1 ms as in the thesis; the longest one needed
    in the current period, and when that began."""

    interval: Duration = 3 * SECOND
    longest: Duration = 0
    since: Instant | None = None


def interval_for(age: Duration, way: Duration, level: int) -> Duration:
    """The interval that an event would have needed, given its age and its travel time.

    A margin is added for the travel time only: otherwise delays caused by waiting would add up.
    """
    return -(-age // level) + way // 4


def observe(stability: Stability, wanted: Duration, now: Instant) -> Stability:
    """Update the interval after an event: lengthen it at once, shorten it after a period in which less was
    needed."""
    since = now if stability.since is None else stability.since
    if now - since < PERIOD:
        return Stability(max(stability.interval, wanted), max(stability.longest, wanted), since)
    return Stability(max(stability.longest, wanted), wanted, now)


def info_time(stability: Stability, clock: Instant, level: int) -> Instant:
    """``t_I^i = t_I^(i-1) − t_s``, and ``t_I^0`` is the clock.  [5.21]"""
    return clock - level * stability.interval
