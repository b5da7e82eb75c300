"""Correlation subscriptions: simple events that agree in time and space. [J1, J2]

A simple event is one value of one attribute, measured by one sensor. Bounds of values belong to a filter. The
bounds ``within`` (δt) and ``near`` (δl) are strict, as in the papers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from .instant import Duration, Instant
from .space import Point, Region

Tell = Literal["events", "all", "latest", "first"]
"""Which events a subscriber receives: each simple event that takes part in a complex event, once; all
complex events; or, of those that one event completes, the one with the latest or the first event of
each filter."""

TELLS: tuple[Tell, ...] = get_args(Tell)


class Simple(NamedTuple):
    """A simple event ``e_d = (a_d, p_d, v, t)``.

    ``sequence`` distinguishes events of one sensor at one time.
    """

    attribute: str
    sensor: str
    time: Instant
    value: float
    at: Point | None = None
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class RangeFilter:
    """A simple filter ``low ≤ attribute ≤ high``. With ``sensor`` it accepts only that sensor."""

    attribute: str
    low: float = -math.inf
    high: float = math.inf
    sensor: str | None = None


@dataclass(frozen=True, slots=True)
class Correlation:
    """A correlation subscription with its filters and bounds.

    An identified subscription has one filter for each sensor. An abstract one has one filter for each
    attribute, over all sensors in a region.
    """

    filters: tuple[RangeFilter, ...]
    within: Duration
    near: float = math.inf
    region: Region | None = None

    @property
    def names_sensors(self) -> bool:
        """Whether the filters name their sensors, as in an identified subscription."""
        return all(one.sensor is not None for one in self.filters)
