"""How far InfoS time stays behind the clock: a bound of how long events take to arrive.  [F76]"""

from __future__ import annotations

from dataclasses import dataclass

from ...model.instant import SECOND, Duration, Instant

_PATIENCE = 64


@dataclass(frozen=True, slots=True)
class Stability:
    """The stabilization interval ``t_s``; it is first as long as the thesis' 3000 ticks of 1 ms."""

    interval: Duration = 3 * SECOND


def observed(stability: Stability, latency: Duration) -> Stability:
    """After an event that took so long: longer at once where it was too short, else slowly shorter."""
    gap = stability.interval - latency
    return Stability(latency if gap <= 0 else stability.interval - gap // _PATIENCE)


def info_time(stability: Stability, clock: Instant, level: int) -> Instant:
    """``t_I^i = t_I^(i-1) − t_s``, and ``t_I^0`` is the clock.  [5.21]"""
    return clock - level * stability.interval
