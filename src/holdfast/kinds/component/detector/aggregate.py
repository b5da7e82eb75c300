"""Merge knowledge points into one with functions over their attributes. [F60]

The functions themselves are rows of a table in `kernels/functions.py`.
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


def aggregate(values: Sequence[Value], function: Function) -> Value:
    """Apply a function to the numbers among some values; `None` if there are none."""
    if function == "count":
        return sum(value is not None for value in values)
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if not numbers:
        return None
    try:
        found = AGGREGATES[function].of_numbers(numbers)
    except (ValueError, OverflowError):  # ∞ − ∞, or beyond what a float can hold
        return None
    beyond = isinstance(found, int) and not -(2**63) <= found < 2**63
    return None if beyond or found != found else found


class KnowledgeGroup:
    """A sorted group of knowledge points, read by column. `series.ReadingWindow` reads the same from rows."""

    def __init__(self, points: Sequence[Knowledge]) -> None:
        self._points = points
        self.names = list(dict.fromkeys(chain.from_iterable(p.attributes for p in points)))
        self.times = [p.time for p in points]
        self.count = sum(p.count for p in points)
        """The number of readings that the points stand for."""
        self.valid = any(p.valid for p in points)
        """Whether any point is valid."""

    def values(self, name: str) -> list[Value]:
        """The values of an attribute."""
        return [p.attributes.get(name) for p in self._points]

    @property
    def spots(self) -> list[Point | None]:
        """The coordinates of each point."""
        return [p.at for p in self._points]

    @property
    def places(self) -> list[str | None]:
        """The place of each point."""
        return [p.place for p in self._points]

    @property
    def newest(self) -> Knowledge:
        """The event that contributed last, the least of several."""
        return max(self._points, key=lambda p: p.newest.time).newest

    def point(self, i: int) -> Knowledge:
        """One knowledge point."""
        return self._points[i]


Along = Callable[[Knowledge], Any]
"""The coordinate of knowledge in the aggregated dimension, to break ties."""


def merge(
    points: Iterable[Knowledge], functions: Functions, keys: Collection[str] = (), along: Along = order
) -> Knowledge:
    """Merge knowledge points that share their keys."""
    return combine(KnowledgeGroup(sorted(points, key=order)), functions, keys, along)


def combine(
    group: KnowledgeGroup, functions: Functions, keys: Collection[str] = (), along: Along = order
) -> Knowledge:
    """Merge a sorted group of knowledge points that share their keys."""
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
    """Apply a function to an attribute; text and truth values, and those without a function, must agree."""
    found = None if function is None else aggregate(values, function)
    if found is None and len(set(values)) == 1 and (function is None or isinstance(values[0], (str, bool))):
        return values[0]
    return found


def _extreme(group: KnowledgeGroup, attributes: Mapping[str, Value], along: Along) -> Knowledge:
    """Index and validity of the point that attains the extreme of the first attribute; ties go to the
    least."""
    name, wanted = next(iter(attributes.items()))
    attaining = [i for i, value in enumerate(group.values(name)) if value == wanted] or [0]
    if along is order or len(attaining) == 1:
        return group.point(attaining[0])
    return min(map(group.point, attaining), key=along)


def _middle(group: KnowledgeGroup) -> Knowledge:
    """Mean of time and location, and validity; what has no mean is taken from the least point."""
    times, places = group.times, group.places
    time, place = sum(times) // len(times), places[0] if len(set(places)) == 1 else None
    centre, known = None, [at for at in group.spots if at is not None]
    if len(known) == len(times) and len({len(at) for at in known}) == 1:
        centre = known[0] if len(set(known)) == 1 else tuple(map(mean, zip(*known, strict=True)))
    return replace(group.point(0), time=time, at=centre, place=place, valid=group.valid)
