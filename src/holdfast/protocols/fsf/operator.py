"""Operators: what a node asks of its neighbour.  [J1, J6]"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import UsageError
from ...model.correlation import Correlation, Filter
from ...model.instant import Duration
from ...model.space import Point, Region, contains, relation

Key = tuple[str, str | None]
"""An attribute of any sensor, or of one: what a filter speaks of."""


@dataclass(frozen=True, slots=True)
class Operator:
    """Filters of one subscription, by key, that events must satisfy together; those of which the events
    are wanted: the others only have to be there."""

    name: str
    filters: tuple[Filter, ...]
    wanted: tuple[bool, ...]
    within: Duration
    near: float = math.inf
    region: Region | None = None

    @property
    def keys(self) -> tuple[Key, ...]:
        """What the filters speak of."""
        return tuple(map(key, self.filters))


def key(one: Filter) -> Key:
    """What a filter speaks of."""
    return one.attribute, one.sensor


def whole(name: str, subscription: Correlation) -> Operator:
    """A subscription as an operator, if it can be satisfied at all."""
    filters = tuple(sorted(subscription.filters, key=lambda one: (one.attribute, one.sensor or "")))
    if fault := _fault(filters, subscription):
        raise UsageError(f"subscription '{name}' {fault}")
    every = (True,) * len(filters)
    return Operator(name, filters, every, subscription.within, subscription.near, subscription.region)


def _fault(filters: tuple[Filter, ...], subscription: Correlation) -> str | None:
    if not filters:
        return "has no filter; give it one for each attribute"
    if len(set(map(key, filters))) < len(filters):
        return "has two filters for one attribute; write one range"
    if not subscription.identified and any(one.sensor for one in filters):
        return "names the sensors of some filters; name those of all, or of none"
    for one in filters:
        if not one.low <= one.high:
            return f"allows no value of '{one.attribute}': [{one.low}, {one.high}] is empty"
    if subscription.within <= 0:
        return "needs a δt above zero: the bound is strict"
    if not subscription.near > 0:
        return "needs a δl above zero: the bound is strict"
    return None


def part(operator: Operator, chosen: Sequence[int], wanted: Sequence[int] | None = None) -> Operator:
    """Some of an operator's filters; all of their events are wanted unless it says which."""
    return Operator(
        operator.name,
        tuple(operator.filters[i] for i in chosen),
        tuple(wanted is None or i in wanted for i in chosen),
        operator.within,
        operator.near,
        operator.region,
    )


def inside(region: Region | None, sensor: str, at: Point | None) -> bool:
    """Whether a sensor is in the region, by its name or by its place."""
    if region is None or sensor in region.sources:
        return True
    return region.shape is not None and contains(region.shape, at)


def encloses(wide: Region | None, narrow: Region | None) -> bool:
    """Whether every sensor of the one region is in the other."""
    if wide is None or wide == narrow:
        return True
    if narrow is None or not set(narrow.sources) <= set(wide.sources):
        return False
    if narrow.shape is None:
        return True
    return wide.shape is not None and relation(wide.shape, narrow.shape) in ("contains", "equal")
