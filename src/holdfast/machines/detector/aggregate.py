"""Several knowledge points as one: functions over attributes, and what becomes of the rest.  [F60]"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any, Protocol

from msgspec.structs import replace

from ...model.event import Value
from ...model.instant import Instant
from ...model.query import Function
from ...model.space import Point
from .knowledge import Knowledge, order

Number = int | float
Functions = Function | tuple[tuple[str, Function], ...]


def aggregated(values: Sequence[Value], function: Function) -> Value:
    """A function of the numbers that are there; missing if there are none."""
    if function == "count":
        return sum(value is not None for value in values)
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if not numbers:
        return None
    try:
        found = _FUNCTIONS[function](numbers)
    except (ValueError, OverflowError):  # ∞ − ∞, or beyond what a float can hold
        return None
    beyond = isinstance(found, int) and not -(2**63) <= found < 2**63
    return None if beyond or found != found else found


def total(numbers: Sequence[Number]) -> Number:
    """The exact sum, rounded once: no order of the numbers gives another."""
    if all(isinstance(n, int) for n in numbers):
        return sum(numbers)
    if infinite := [n for n in numbers if math.isinf(n)]:
        return math.fsum(infinite)
    try:
        return math.fsum(numbers)
    except OverflowError:  # on the way; the sum itself may be small
        return float(sum(map(Fraction, numbers)))


def mean(numbers: Sequence[Number]) -> float:
    return total(numbers) / len(numbers)


def deviation(numbers: Sequence[Number]) -> float | None:
    """The standard deviation of a sample; one number has none."""
    if len(numbers) < 2:
        return None
    middle = mean(numbers)
    squares = [(n - middle) * (n - middle) for n in numbers]
    if not all(map(math.isfinite, squares)):
        return None
    return math.sqrt(total(squares) / (len(numbers) - 1))


_FUNCTIONS: Mapping[Function, Callable[[Sequence[Number]], Number | None]] = {
    "max": max, "min": min, "sum": total, "avg": mean, "stddev": deviation,
}  # fmt: skip


class Group(Protocol):
    """Knowledge points in order, by what they have."""

    @property
    def names(self) -> Sequence[str]:
        """Their attributes."""

    def values(self, name: str) -> Sequence[Value]:
        """What each has of an attribute."""

    @property
    def times(self) -> Sequence[Instant]: ...

    @property
    def spots(self) -> Sequence[Point | None]: ...

    @property
    def places(self) -> Sequence[str | None]: ...

    @property
    def count(self) -> int:
        """For how many readings they stand."""

    @property
    def valid(self) -> bool:
        """Whether one of them is."""

    @property
    def newest(self) -> Knowledge:
        """The event that contributed last, the least of several."""

    def point(self, i: int) -> Knowledge:
        """One of them."""


@dataclass(frozen=True)
class Points:
    """Knowledge points as a group."""

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


def merged(
    points: Iterable[Knowledge],
    functions: Functions,
    keys: Collection[str] = (),
    along: Callable[[Knowledge], Any] = order,
) -> Knowledge:
    """One knowledge point for a group of them, which have their keys in common; ``along`` is what tells
    them apart in the aggregated dimension."""
    return combined(Points(sorted(points, key=order)), functions, keys, along)


def combined(
    group: Group,
    functions: Functions,
    keys: Collection[str] = (),
    along: Callable[[Knowledge], Any] = order,
) -> Knowledge:
    """The same of a group in order."""
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
    """The function of its values; of text and truth, and without a function, the value that all have."""
    found = None if function is None else aggregated(values, function)
    if found is None and len(set(values)) == 1 and (function is None or isinstance(values[0], (str, bool))):
        return values[0]
    return found


def _extreme(group: Group, attributes: Mapping[str, Value], along: Callable[[Knowledge], Any]) -> Knowledge:
    """Index and validity of what attains the extreme of the first attribute: of several the least in the
    aggregated dimension, then by order."""
    name, wanted = next(iter(attributes.items()))
    attaining = [i for i, value in enumerate(group.values(name)) if value == wanted] or [0]
    if along is order or len(attaining) == 1:
        return group.point(attaining[0])
    return min(map(group.point, attaining), key=along)


def _middle(group: Group) -> Knowledge:
    """The mean of time and place, valid if one of them is; what has no mean is the least's."""
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
