"""Several knowledge points as one: functions over attributes, and what becomes of the rest.  [F60]"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from ...model.event import Value
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
    beyond = found is not None and isinstance(found, int) and not -(2**63) <= found < 2**63
    return None if beyond else found


def total(numbers: Sequence[Number]) -> Number:
    """The exact sum, rounded once: no order of the numbers gives another."""
    return sum(numbers) if all(isinstance(n, int) for n in numbers) else math.fsum(numbers)


def mean(numbers: Sequence[Number]) -> float:
    return total(numbers) / len(numbers)


def deviation(numbers: Sequence[Number]) -> float | None:
    """The standard deviation of a sample; one number has none."""
    if len(numbers) < 2:
        return None
    middle = mean(numbers)
    return math.sqrt(math.fsum((n - middle) ** 2 for n in numbers) / (len(numbers) - 1))


_FUNCTIONS: Mapping[Function, Callable[[Sequence[Number]], Number | None]] = {
    "max": max, "min": min, "sum": total, "avg": mean, "stddev": deviation,
}  # fmt: skip


def merged(points: Sequence[Knowledge], functions: Functions, keys: Collection[str] = ()) -> Knowledge:
    """One knowledge point for a group of them, which have their keys in common."""
    points = sorted(points, key=order)
    names = list(dict.fromkeys(chain.from_iterable(p.attributes for p in points)))
    by_name = dict.fromkeys(names, functions) if isinstance(functions, str) else dict(functions)
    attributes = {
        name: _attribute(points, name, None if name in keys else by_name.get(name)) for name in names
    }
    shape = _extreme if names and by_name.get(names[0]) in ("max", "min") else _middle
    newest = max(points, key=lambda p: p.newest.time).newest
    count = sum(p.count for p in points)
    return replace(
        shape(points, attributes, names),
        attributes=attributes,
        count=count,
        latest=newest,
        source=newest.source,
    )


def _attribute(points: Sequence[Knowledge], name: str, function: Function | None) -> Value:
    """The function of its values; of text and truth, and without a function, the value that all have."""
    values = [p.attributes.get(name) for p in points]
    found = None if function is None else aggregated(values, function)
    if found is None and len(set(values)) == 1 and (function is None or isinstance(values[0], (str, bool))):
        return values[0]
    return found


def _extreme(points: Sequence[Knowledge], attributes: Mapping[str, Value], names: Sequence[str]) -> Knowledge:
    """Index and validity of the least that attains the extreme of the first attribute."""
    first = names[0]
    return next((p for p in points if p.attributes.get(first) == attributes[first]), points[0])


def _middle(points: Sequence[Knowledge], attributes: Mapping[str, Value], names: Sequence[str]) -> Knowledge:
    """The mean of time and place, valid if one of them is; what has no mean is the least's."""
    return replace(
        points[0],
        time=sum(p.time for p in points) // len(points),
        at=_centre([p.at for p in points]),
        place=points[0].place if len({p.place for p in points}) == 1 else None,
        valid=any(p.valid for p in points),
    )


def _centre(places: Sequence[Point | None]) -> Point | None:
    known = [at for at in places if at is not None]
    if len(known) < len(places) or len({len(at) for at in known}) != 1:
        return None
    return known[0] if len(set(known)) == 1 else tuple(mean(axis) for axis in zip(*known, strict=True))
