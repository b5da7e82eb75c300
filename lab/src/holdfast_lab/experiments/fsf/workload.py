"""The subscriptions, drawn as the document describes, and the events that each of them is owed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast.model.correlation import Correlation, RangeFilter

from .oracle import taking_part
from .setting import FsfSetting
from .stream import ATTRIBUTES, Quartiles, Recording, quartiles, sensor

Event = tuple[str, int]
"""A simple event by its sensor and time."""


Width = Callable[[np.random.Generator], float]
WIDTHS: Mapping[str, Width | None] = {
    "even": lambda random: random.uniform(0.5, 2.0),
    "half": lambda random: random.uniform(0.25, 1.0),
    "pareto": lambda random: 1 + random.pareto(1.0),
    "apart": None,
}
"""How the width of a range is drawn, in distances between the quartiles; ``None``: its ends are drawn
separately."""


@dataclass(frozen=True)
class FsfSubscription:
    """A subscription of a user at a node, and the events that are owed to it."""

    name: str
    node: str
    station: int
    wanted: Correlation
    owed: frozenset[Event]


class Workload(NamedTuple):
    """Subscriptions in their order, and how many draws were empty and repeated."""

    subscriptions: tuple[FsfSubscription, ...]
    redrawn: int


def workload(
    setting: FsfSetting, recording: Recording, nodes: Sequence[str], count: int, random: np.random.Generator
) -> Workload:
    """Draw subscriptions, evenly over the stations and at random nodes; each has at least one complex
    event."""
    spread = {name: quartiles(series) for name, series in recording.series.items()}
    made: list[FsfSubscription] = []
    redrawn = 0
    while len(made) < count:
        station = recording.stations[len(made) % setting.groups]
        wanted = correlation(setting, station, spread, random)
        owed = owing(wanted, recording)
        if owed:
            node = nodes[int(random.integers(len(nodes)))]
            made.append(FsfSubscription(f"s{len(made)}", node, station, wanted, owed))
        else:
            redrawn += 1
    return Workload(tuple(made), redrawn)


def correlation(
    setting: FsfSetting, station: int, spread: dict[str, Quartiles], random: np.random.Generator
) -> Correlation:
    """Draw ranges about the medians of several of a station's streams."""
    least, most = setting.attributes
    size = int(random.integers(least, most + 1))
    chosen = sorted(random.choice(len(ATTRIBUTES), size, replace=False))
    filters = []
    for i in chosen:
        name = sensor(station, ATTRIBUTES[i])
        width, middle = WIDTHS[setting.width], spread[name]
        low, high = _shift_centre(width, middle, random) if width else _apart(middle, random)
        filters.append(RangeFilter(ATTRIBUTES[i], low, high, name))
    return Correlation(tuple(filters), setting.within)


def _shift_centre(width: Width, middle: Quartiles, random: np.random.Generator) -> tuple[float, float]:
    """Return a range whose centre is shifted from the median.

    The shift is a Pareto variable of skew 1 that begins at 0, below or above with equal probability, in
    distances of the quartile on that side.
    """
    off = random.pareto(1.0)
    is_below = random.random() < 0.5
    centre = middle.median - off * middle.below if is_below else middle.median + off * middle.above
    half = width(random) * (middle.below + middle.above) / 2
    return float(centre - half), float(centre + half)


def _apart(middle: Quartiles, random: np.random.Generator) -> tuple[float, float]:
    """Return a range whose ends are shifted from the median separately.

    Each shift is a Pareto variable of skew 1, at least the distance of the quartile on its side.
    """
    below, above = 1 + random.pareto(1.0, 2)
    return float(middle.median - below * middle.below), float(middle.median + above * middle.above)


def owing(wanted: Correlation, recording: Recording) -> frozenset[Event]:
    """Return the events of the recording that take part in a complex event of the subscription."""
    names = [str(one.sensor) for one in wanted.filters]
    matching = [
        times[(one.low <= values) & (values <= one.high)]
        for one, (times, values) in zip(wanted.filters, map(recording.series.__getitem__, names), strict=True)
    ]
    taking = taking_part(matching, wanted.within)
    return frozenset(
        (name, int(time))
        for name, times, takes in zip(names, matching, taking, strict=True)
        for time in times[takes]
    )


def selectivity(subscription: FsfSubscription, recording: Recording) -> float:
    """Return which share of the events of its sensors a subscription is owed."""
    there = sum(len(recording.series[str(one.sensor)].times) for one in subscription.wanted.filters)
    return len(subscription.owed) / there
