"""Merge knowledge points into one with functions over their attributes. [F60]"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

from msgspec.structs import replace

from ....kernels.functions import AGGREGATES, mean
from ....model.event import Value
from ....model.instant import Instant
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


class KnowledgeGroup(Protocol):
    """A sorted group of knowledge points, read by column."""

    @property
    def names(self) -> Sequence[str]:
        """The names of all attributes."""

    def values(self, name: str) -> Sequence[Value]:
        """The values of an attribute."""

    @property
    def times(self) -> Sequence[Instant]: ...

    @property
    def spots(self) -> Sequence[Point | None]: ...

    @property
    def places(self) -> Sequence[str | None]: ...

    @property
    def count(self) -> int:
        """The number of readings that the points stand for."""

    @property
    def valid(self) -> bool:
        """Whether any point is valid."""

    @property
    def newest(self) -> Knowledge:
        """The event that contributed last, the least of several."""

    def point(self, i: int) -> Knowledge:
        """One knowledge point."""


@dataclass(frozen=True)
class KnowledgePoints:
    """A group of knowledge points that exist as objects."""

    all: Sequence[Knowledge]

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(chain.from_iterable(p.attributes for p in self.all)))

    def values(self, name: str) -> list[Value]:
        return [p.attributes.get(name) for p in self.all]

    @property
    def times(self) -> list[Instant]:
        return [p.time for p in self.all]

    @property
    def spots(self) -> list[Point | None]:
        return [p.at for p in self.all]

    @property
    def places(self) -> list[str | None]:
        return [p.place for p in self.all]

    @property
    def count(self) -> int:
        return sum(p.count for p in self.all)

    @property
    def valid(self) -> bool:
        return any(p.valid for p in self.all)

    @property
    def newest(self) -> Knowledge:
        return max(self.all, key=lambda p: p.newest.time).newest

    def point(self, i: int) -> Knowledge:
        return self.all[i]


def merge(
    points: Iterable[Knowledge],
    functions: Functions,
    keys: Collection[str] = (),
    along: Callable[[Knowledge], Any] = order,
) -> Knowledge:
    """Merge knowledge points that share their keys. `along` is the coordinate in the aggregated dimension, to
    break ties."""
    return combine(KnowledgePoints(sorted(points, key=order)), functions, keys, along)


def combine(
    group: KnowledgeGroup,
    functions: Functions,
    keys: Collection[str] = (),
    along: Callable[[Knowledge], Any] = order,
) -> Knowledge:
    """Merge a sorted group of knowledge points that share their keys."""
    names = group.names
    by_name = dict.fromkeys(names, functions) if isinstance(functions, str) else dict(functions)
    attributes = {
        name: _attribute(group.values(name), None if name in keys else by_name.get(name)) for name in names
    }
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


def _extreme(
    group: KnowledgeGroup, attributes: Mapping[str, Value], along: Callable[[Knowledge], Any]
) -> Knowledge:
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
    return replace(
        group.point(0),
        time=sum(times) // len(times),
        at=_centre(group.spots),
        place=places[0] if len(set(places)) == 1 else None,
        valid=group.valid,
    )


def _centre(places: Sequence[Point | None]) -> Point | None:
    known = [at for at in places if at is not None]
    if len(known) < len(places) or len({len(at) for at in known}) != 1:
        return None
    return known[0] if len(set(known)) == 1 else tuple(mean(axis) for axis in zip(*known, strict=True))
