"""Correlation subscriptions: simple events that agree in time and space.  [J1, J2]

A simple event is one value of one attribute, measured by one sensor.  Bounds of values belong to a
filter; ``within`` (δt) and ``near`` (δl) do not: both are strict, as printed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from .instant import Duration, Instant
from .space import Point, Region

Tell = Literal["events", "all", "latest", "first"]
"""What a user is told: each simple event that takes part in a complex event, once; or complex events:
all of them, or of those that one event completes the one with the latest or the first of each filter."""

TELLS: tuple[Tell, ...] = get_args(Tell)


class Simple(NamedTuple):
    """A simple event ``e_d = (a_d, p_d, v, t)``; ``sequence`` tells those of one sensor and time apart."""

    attribute: str
    sensor: str
    time: Instant
    value: float
    at: Point | None = None
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class Filter:
    """A simple filter ``low ≤ attribute ≤ high``; with identification, of one sensor."""

    attribute: str
    low: float = -math.inf
    high: float = math.inf
    sensor: str | None = None


@dataclass(frozen=True, slots=True)
class Correlation:
    """One filter for each sensor (identified) or attribute (abstract, over sensors in the region)."""

    filters: tuple[Filter, ...]
    within: Duration
    near: float = math.inf
    region: Region | None = None

    @property
    def identified(self) -> bool:
        """Whether it names its sensors."""
        return all(one.sensor is not None for one in self.filters)
