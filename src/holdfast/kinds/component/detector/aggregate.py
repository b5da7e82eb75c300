"""Merge several knowledge points into one knowledge point with functions over their attributes. [F60]

The functions (`sum`, `avg`, …) are rows of a table in `kernels/functions.py`; add a function there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec.structs import replace

from ....kernels.functions import AGGREGATES, mean
from ....model.event import Value
from ....model.query import Function
from ....model.space import Point
from .knowledge import Knowledge, order

Functions = Function | tuple[tuple[str, Function], ...]
"""One function for all attributes, or pairs of attribute and function."""


def aggregate(values: Sequence[Value], function: Function) -> Value:
    """Apply a function to the numbers among `values`.

    Return `None` if there are no numbers, or if the result is undefined or out of range. `count` counts every
    value that is not missing.
    """
    if function == "count":
        return sum(value is not None for value in values)
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if not numbers:
        return None
    try:
        found = AGGREGATES[function].of_numbers(numbers)
    except (ValueError, OverflowError):  # ∞ − ∞, or larger than any float
        return None
    beyond = isinstance(found, int) and not -(2**63) <= found < 2**63
    return None if beyond or found != found else found


class KnowledgeGroup:
    """A sorted group of knowledge points, which is read by column.

    `series.ReadingWindow` offers the same columns without converting rows to knowledge points.
    """

    def __init__(self, points: Sequence[Knowledge]) -> None:
        self._points = points
        self.names = list(dict.fromkeys(chain.from_iterable(p.attributes for p in points)))
        self.times = [p.time for p in points]
        self.count = sum(p.count for p in points)
        """The number of readings that were merged into the points."""
        self.valid = any(p.valid for p in points)
        """Whether any point is valid."""

    def values(self, name: str) -> list[Value]:
        """Return the value of an attribute for each point; `None` where it is missing."""
        return [p.attributes.get(name) for p in self._points]

    @property
    def spots(self) -> list[Point | None]:
        """The coordinates of each point; `None` for a point without coordinates."""
        return [p.at for p in self._points]

    @property
    def places(self) -> list[str | None]:
        """The name of the place of each point; `None` for a point without a place."""
        return [p.place for p in self._points]

    @property
    def newest(self) -> Knowledge:
        """The event with the latest time among those merged into the group. Of equal times, the first in
        order is taken."""
        return max(self._points, key=lambda p: p.newest.time).newest

    def point(self, i: int) -> Knowledge:
        """Return the knowledge point with index `i`."""
        return self._points[i]


Along = Callable[[Knowledge], Any]
"""A function that returns the coordinate of knowledge in the aggregated dimension, to break ties."""


def merge(
    points: Iterable[Knowledge], functions: Functions, keys: Collection[str] = (), along: Along = order
) -> Knowledge:
    """Sort knowledge points with equal keys, and merge them into one point. `combine` describes the
    parameters."""
    return combine(KnowledgeGroup(sorted(points, key=order)), functions, keys, along)


def combine(
    group: KnowledgeGroup, functions: Functions, keys: Collection[str] = (), along: Along = order
) -> Knowledge:
    """Merge a sorted group of knowledge points into one point.

    `keys` are attributes on which all points agree. If the first attribute has the function `max` or `min`,
    the result has the time and location of the point with that extreme. Otherwise it has their means. `along`
    breaks ties.
    """
    names = group.names
    by_name = dict.fromkeys(names, functions) if isinstance(functions, str) else dict(functions)
    functions_of = {name: None if name in keys else by_name.get(name) for name in names}
    attributes = {name: _attribute(group.values(name), used) for name, used in functions_of.items()}
    is_extreme = names and by_name.get(names[0]) in ("max", "min")
    newest = group.newest
    return replace(
        _extreme(group, attributes, along) if is_extreme else _middle(group),
        attributes=attributes,
        count=group.count,
        latest=newest,
        source=newest.source,
    )


def _attribute(values: Sequence[Value], function: Function | None) -> Value:
    """Apply a function to the values of an attribute.

    Text, truth values, and attributes without a function are merged only if all values are equal. Otherwise
    the result is `None`.
    """
    found = None if function is None else aggregate(values, function)
    if found is None and len(set(values)) == 1 and (function is None or isinstance(values[0], (str, bool))):
        return values[0]
    return found


def _extreme(group: KnowledgeGroup, attributes: Mapping[str, Value], along: Along) -> Knowledge:
    """Return the point that attains the extreme of the first attribute; of several, the least in the
    aggregated dimension."""
    name, wanted = next(iter(attributes.items()))
    attaining = [i for i, value in enumerate(group.values(name)) if value == wanted] or [0]
    if along is order or len(attaining) == 1:
        return group.point(attaining[0])
    return min(map(group.point, attaining), key=along)


def _middle(group: KnowledgeGroup) -> Knowledge:
    """Return the least point with the mean time, the mean location, and the validity of the group.

    The location is missing if the points have different numbers of coordinates. The place is missing if the
    points differ in it.
    """
    times, places = group.times, group.places
    time, place = sum(times) // len(times), places[0] if len(set(places)) == 1 else None
    centre, known = None, [at for at in group.spots if at is not None]
    if len(known) == len(times) and len({len(at) for at in known}) == 1:
        centre = known[0] if len(set(known)) == 1 else tuple(map(mean, zip(*known, strict=True)))
    return replace(group.point(0), time=time, at=centre, place=place, valid=group.valid)
