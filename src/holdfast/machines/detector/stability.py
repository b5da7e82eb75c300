"""How far InfoS time stays behind the clock: a bound of how long events take to arrive.  [F76]

The thesis does not say how it is measured.  A mean that follows what comes is no bound: with one publisher
far away among many that are near, all of its events came late.  So it is the longest that was needed lately.
An event for level i is in time if it is not older than i intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...model.instant import MINUTE, SECOND, Duration, Instant

STRETCH = MINUTE
"""What took so long is forgotten after one to two of these: a publisher that is silent for less is waited
for."""


@dataclass(frozen=True, slots=True)
class Stability:
    """The stabilization interval ``t_s``, at first as long as the thesis' 3000 ticks of 1 ms; the longest
    that was wanted in the present stretch, and when that began."""

    interval: Duration = 3 * SECOND
    longest: Duration = 0
    since: Instant | None = None


def needed(age: Duration, way: Duration, level: int) -> Duration:
    """What the interval should have been for an event that is so old, and was so long on its way; and
    somewhat more, of the way alone: what is old because others waited makes nobody wait longer and longer."""
    return -(-age // level) + way // 4


def observed(stability: Stability, wanted: Duration, now: Instant) -> Stability:
    """After an event that needed so long: longer at once where it was too short; shorter when for a whole
    stretch none has needed it."""
    since = now if stability.since is None else stability.since
    if now - since < STRETCH:
        return Stability(max(stability.interval, wanted), max(stability.longest, wanted), since)
    return Stability(max(stability.longest, wanted), wanted, now)


def info_time(stability: Stability, clock: Instant, level: int) -> Instant:
    """``t_I^i = t_I^(i-1) − t_s``, and ``t_I^0`` is the clock.  [5.21]"""
    return clock - level * stability.interval
