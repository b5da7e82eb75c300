"""The field: sensors, subscribers, and their definition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..series import MINUTE, Temperatures

TOPIC = "Temperature"
SIDE = 4  # the field is 4 × 4 regions
REGIONS = SIDE * SIDE
WIDTH = 100  # m, of a region
SENSORS = 35
SUBSCRIBERS = 10
EVERY = 3 * MINUTE
READINGS = 30 * 20  # 30 h
VALIDITY = 30 * MINUTE
SEED = 2006
SEEDS = 50  # of the full run, for each period


class Sensor(NamedTuple):
    name: str
    region: int
    x: float
    y: float


class Subscriber(NamedTuple):
    """A subscriber to temperatures of a region above the threshold with this rank (0 is the lowest)."""

    name: str
    region: int
    rank: int


@dataclass(frozen=True)
class Field:
    """Sensors and subscribers in a square of regions; region ``r`` has the temperatures of
    ``stations[r]``.
    """

    sensors: tuple[Sensor, ...]
    subscribers: tuple[Subscriber, ...]
    stations: tuple[int, ...]

    @cached_property
    def coverage(self) -> tuple[int, ...]:
        return tuple(sorted({subscriber.region for subscriber in self.subscribers}))

    def sensors_of(self, region: int) -> list[int]:
        return [i for i, sensor in enumerate(self.sensors) if sensor.region == region]

    def subscribers_of(self, region: int) -> list[Subscriber]:
        return [subscriber for subscriber in self.subscribers if subscriber.region == region]


def draw(seed: int, stations: Sequence[int], shares: Sequence[int] | None = None) -> Field:
    """Draw a field of 35 sensors with the paper's 11 covered publishers, 27 source-side and 10 scoping
    filters.

    Ten subscriptions with ten scoping filters mean one region for each subscription. With regions of 1 to 3
    sensors, only one combination has 11 sensors and 27 filters: three regions of three sensors with 7
    subscribers in total, and one of two sensors with 3 subscribers. The regions, thresholds and stations are
    random, and so are the ``shares`` of the 7 subscribers unless given.
    """
    chance = np.random.default_rng(seed)
    while True:
        sizes = chance.integers(1, 4, REGIONS)
        if sizes.sum() == SENSORS and (sizes == 3).sum() >= 3 and (sizes == 2).any():
            break
    threes = [int(r) for r in chance.permutation(np.flatnonzero(sizes == 3))[:3]]
    two = int(chance.permutation(np.flatnonzero(sizes == 2))[0])
    cuts = [0, *sorted(int(cut) for cut in chance.permutation(np.arange(1, 7))[:2]), 7]
    if shares is None:
        shares = [b - a for a, b in pairwise(cuts)]
    ranks = [int(rank) for rank in chance.permutation(SUBSCRIBERS)]
    wanted = np.repeat([*threes, two], [*shares, 3]).tolist()
    spots = chance.uniform(0.05, 0.95, (SENSORS, 2))
    where = np.repeat(np.arange(REGIONS), sizes)
    sensors = []
    for i, (region, (x, y)) in enumerate(zip(where, spots, strict=True)):
        place = (float(WIDTH * (region % SIDE + x)), float(WIDTH * (region // SIDE + y)))
        sensors.append(Sensor(f"s{i + 1:02}", int(region), *(round(axis, 1) for axis in place)))
    subscribers = tuple(Subscriber(f"S{i + 1}", region, ranks[i]) for i, region in enumerate(wanted))
    chosen = chance.permutation(list(stations))[:REGIONS]
    return Field(tuple(sensors), subscribers, tuple(int(station) for station in chosen))


def region_name(region: int) -> str:
    return f"r{region + 1:02}"


@dataclass(frozen=True)
class TableSetting:
    """A variant of what the paper leaves open."""

    name: str = "as described"
    centre: float = 10.0
    spread: float = 0.5
    gap: float = 0.0
    prepare: Callable[[Temperatures], Temperatures] = lambda values: values

    def threshold(self, subscriber: Subscriber) -> float:
        """Return the threshold of a subscriber; the ten are equally spaced around the centre."""
        step = (2 * subscriber.rank + 1 - SUBSCRIBERS) / SUBSCRIBERS
        return round(self.centre + self.spread * step, 4)

    def leaves(self, subscriber: Subscriber) -> float:
        """Return the temperature at or below which SF ends the condition."""
        return round(self.threshold(subscriber) - self.gap, 4)


def definition(field: Field, setting: TableSetting, region: int | None = None) -> str:
    """Return the definition of the subscriptions.

    It has a filter at every source and one over the region. With ``region``, only the filters at the sources
    of that region, to count what passes there.
    """
    lines = [f"topic {TOPIC} (temp float)"]
    if region is None:
        for r in range(REGIONS):
            x, y = WIDTH * (r % SIDE), WIDTH * (r // SIDE)
            lines.append(f"region {region_name(r)} = rectangle ({x}, {y}) ({x + WIDTH}, {y + WIDTH})")
    for subscriber in field.subscribers if region is None else field.subscribers_of(region):
        pair = f"[temp > {setting.threshold(subscriber)}; temp <= {setting.leaves(subscriber)}]"
        over = f" scope {region_name(subscriber.region)}" if region is None else ""
        lines.append(f"state {subscriber.name} on {TOPIC} {pair} per source{over}")
    return "\n".join(lines) + "\n"
