"""Operators: the requests that a node sends to its neighbours. [J1, J6]"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....errors import UsageError
from ....model.correlation import Correlation, RangeFilter
from ....model.instant import Duration
from ....model.space import Point, Region, contains, relation

Key = tuple[str, str | None]
"""The subject of a filter: an attribute, and a sensor or ``None`` for any sensor."""


@dataclass(frozen=True, slots=True)
class FsfOperator:
    """Filters of one subscription that events must satisfy together.

    ``wanted`` marks the filters whose events are requested. Events of the other filters only have to exist.
    ``within`` is δt in µs, and ``near`` is δl, the greatest distance.
    """

    name: str
    filters: tuple[RangeFilter, ...]
    wanted: tuple[bool, ...]
    within: Duration
    near: float = math.inf
    region: Region | None = None

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys of the filters, in their order."""
        return tuple(map(key_of, self.filters))


def key_of(one: RangeFilter) -> Key:
    """Return the key of a filter: its attribute, and its sensor if it names one."""
    return one.attribute, one.sensor


def to_operator(name: str, subscription: Correlation) -> FsfOperator:
    """Convert a subscription to an operator; raise a `UsageError` if it cannot be satisfied."""
    filters = tuple(sorted(subscription.filters, key=lambda one: (one.attribute, one.sensor or "")))
    if fault := _fault(filters, subscription):
        raise UsageError(f"subscription '{name}' {fault}")
    every = (True,) * len(filters)
    return FsfOperator(name, filters, every, subscription.within, subscription.near, subscription.region)


def _fault(filters: tuple[RangeFilter, ...], subscription: Correlation) -> str | None:
    """Return why a subscription cannot be satisfied; ``None`` if it can."""
    if not filters:
        return "has no filter; give it one for each attribute"
    if len(set(map(key_of, filters))) < len(filters):
        return "has two filters for one attribute; write one range"
    if not subscription.names_sensors and any(one.sensor for one in filters):
        return "names the sensors of some filters; name those of all, or of none"
    for one in filters:
        if not one.low <= one.high:
            return f"allows no value of '{one.attribute}': [{one.low}, {one.high}] is empty"
    if subscription.within <= 0:
        return "needs a δt above zero: the bound is strict"
    if not subscription.near > 0:
        return "needs a δl above zero: the bound is strict"
    return None


def sub_operator(
    operator: FsfOperator, chosen: Sequence[int], wanted: Sequence[int] | None = None
) -> FsfOperator:
    """Return an operator with the filters at the indices ``chosen``.

    ``wanted`` gives the indices of the filters whose events are requested; ``None`` stands for all filters.
    """
    filters = tuple(operator.filters[i] for i in chosen)
    return replace(operator, filters=filters, wanted=tuple(wanted is None or i in wanted for i in chosen))


def is_in_region(region: Region | None, sensor: str, at: Point | None) -> bool:
    """Return whether a sensor is in a region, by its name or by its position."""
    if region is None or sensor in region.sources:
        return True
    return region.shape is not None and contains(region.shape, at)


def encloses(wide: Region | None, narrow: Region | None) -> bool:
    """Return whether every sensor of the region ``narrow`` is in the region ``wide``. ``None`` is
    everywhere.
    """
    if wide is None or wide == narrow:
        return True
    if narrow is None or not set(narrow.sources) <= set(wide.sources):
        return False
    if narrow.shape is None:
        return True
    return wide.shape is not None and relation(wide.shape, narrow.shape) in ("contains", "equal")
