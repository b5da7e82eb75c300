"""Aggregates over all time that are updated with each event.

The result is the same as that of `query.select`, without reading all events again. Sums are integers in units
of the smallest float. They are exact and are rounded once. No snapshot stores these aggregates; they are
computed again from the knowledge.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import isinf
from operator import attrgetter, gt, lt
from typing import Any

from msgspec.structs import replace

from ....kernels.functions import AGGREGATES
from ....model.event import Value
from ....model.instant import BEGINNING, Instant
from ....model.query import Aggregate, Function, PooledDimension, Query, Whole
from .aggregate import Functions
from .knowledge import Knowledge, order
from .query import Table, cells, dimensions_pooled_by, merge_cell, other_dimensions

Judge = Callable[[Knowledge], bool]
"""A function that returns whether knowledge is valid now."""

_LEAST = 1074
"""The negated exponent of the least float above zero, which is ``2 ** -1074``."""


def is_incremental(query: Query, *, carried: bool) -> bool:
    """Whether a query aggregates over all time in a way that can be updated incrementally.

    `carried` means that the host moves. A moving host changes which locations a relative query pools.
    """
    if not isinstance(query.time, Aggregate) or not isinstance(query.time.group, Whole):
        return False
    functions = query.time.functions
    used = {functions} if isinstance(functions, str) else {function for _, function in functions}
    if isinstance(query.status, PooledDimension) and not isinstance(query.status.group, Whole):
        return False
    return all(AGGREGATES[function].is_incremental for function in used) and not (
        carried and isinstance(query.location, PooledDimension) and query.is_relative
    )


class RunningAggregate:
    """An aggregate over all time for one key, with one running group for each result of the query."""

    def __init__(self, query: Query, collide: Function) -> None:
        assert isinstance(query.time, Aggregate)
        self._query, self._collide, self._functions = query, collide, query.time.functions
        self._groups: dict[Any, _RunningGroup] = {}
        self._others = other_dimensions("time", dimensions_pooled_by(query))
        self._folded = 0
        self.until = BEGINNING
        """The time of the latest knowledge that the aggregate includes."""

    def table(self, points: Sequence[Knowledge], now: Instant, judge: Judge) -> Table | None:
        """Return the result over sorted knowledge, before locations are processed.

        Only `points` up to `now` are included. Return `None` if events with a status collide; the caller then
        evaluates the query in full.
        """
        end = bisect_right(points, now, self._folded, key=attrgetter("time"))
        if end > self._folded:
            fresh = cells(points[self._folded : end])
            if any(len(cell) > 1 and cell[0].status != "atomic" for cell in fresh):
                return None
            merged = (merge_cell(cell, self._collide, self._query.each) for cell in fresh)
            for known in sorted(merged, key=order):
                key = tuple(of(known) for of in self._others)
                if key not in self._groups:
                    self._groups[key] = _RunningGroup(known, self._functions, self._query.each)
                self._groups[key].add(known)
            self._folded, self.until = end, points[end - 1].time
        return [group.to_knowledge(judge) for group in self._groups.values()]


class _RunningGroup:
    """A group of knowledge points that is merged incrementally. Points must be added in the order of
    `knowledge.order`."""

    def __init__(self, first: Knowledge, functions: Functions, keys: Sequence[str]) -> None:
        self._first, self._functions, self._keys = first, functions, keys
        self._values: dict[str, _Values] = {}
        self._size = self._count = self._times = 0
        self._newest = first.newest
        self._latest: dict[tuple[str | None, str], Knowledge] = {}
        self._place, self._is_one_place = first.place, True
        self._axes = [_Values("avg") for _ in first.at or ()]
        self._is_one_spot = self._has_centre = first.at is not None

    def add(self, known: Knowledge) -> None:
        """Add a knowledge point to the group."""
        if known.newest.time > self._newest.time:
            self._newest = known.newest
        for name in known.attributes:
            if name not in self._values:
                self._values[name] = _Values(self._function(name))
                for _ in range(self._size):
                    self._values[name].add(None, self._first)
        for name, values in self._values.items():
            values.add(known.attributes.get(name), known)
        self._size += 1
        self._count += known.count
        self._times += known.time
        self._latest[known.signature, known.status] = known
        self._is_one_place &= known.place == self._place
        self._add_spot(known)

    def _function(self, name: str) -> Function | None:
        """Return the function of an attribute; `None` for keys and attributes without a function."""
        if name in self._keys:
            return None
        return self._functions if isinstance(self._functions, str) else dict(self._functions).get(name)

    def _add_spot(self, known: Knowledge) -> None:
        """Update the centre with the coordinates of a point."""
        self._is_one_spot &= known.at == self._first.at
        self._has_centre &= known.at is not None and len(known.at) == len(self._axes)
        if self._has_centre and known.at is not None:
            for axis, coordinate in zip(self._axes, known.at, strict=True):
                axis.add(coordinate, known)

    def to_knowledge(self, judge: Judge) -> Knowledge:
        """Return the group as one knowledge point. `judge` decides the validity."""
        attributes = {name: values.value for name, values in self._values.items()}
        newest = self._with_validity(self._newest, judge)
        return replace(
            self._extreme(judge) or self._middle(judge),
            attributes=attributes,
            count=self._count,
            latest=newest,
            source=newest.source,
        )

    def _with_validity(self, known: Knowledge, judge: Judge) -> Knowledge:
        return replace(known, valid=judge(known))

    def _extreme(self, judge: Judge) -> Knowledge | None:
        """Return the point that attains the extreme of the first attribute, or `None` if its function is not
        an extreme."""
        values = next(iter(self._values.values()), None)
        if values is None or values.function not in ("max", "min"):
            return None
        return self._with_validity(values.extreme(self._first), judge)

    def _middle(self, judge: Judge) -> Knowledge:
        """Return the first point with the mean time, the mean location, and the validity of the group."""
        at = None
        if self._has_centre:
            at = self._first.at if self._is_one_spot else tuple(axis.value for axis in self._axes)
        return replace(
            self._first,
            time=self._times // self._size,
            at=at,
            place=self._place if self._is_one_place else None,
            valid=any(map(judge, self._latest.values())),
        )


class _Values:
    """The running result of one attribute and its function."""

    def __init__(self, function: Function | None) -> None:
        self.function = function
        self._all = self._known = self._numbers = self._whole = self._scaled = 0
        self._is_whole = self._is_one = True
        self._infinite: set[float] = set()
        self._one: Value = None
        self._best: Any = None
        self._at: Knowledge | None = None
        self._missing: Knowledge | None = None

    def add(self, value: Value, known: Knowledge) -> None:
        """Add the value of an attribute; `known` is the point that has it."""
        if not self._all:
            self._one = value
        self._is_one &= value == self._one
        self._all += 1
        if value is None:
            self._missing = self._missing or known
            return
        self._known += 1
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            self._numbers += 1
            if self.function in ("sum", "avg"):
                self._sum(value)
            elif self.function in ("max", "min"):
                exceeds = gt if self.function == "max" else lt
                if self._best is None or exceeds(value, self._best):
                    self._best, self._at = value, known

    def _sum(self, value: float) -> None:
        """Add a number to the exact sum."""
        if isinstance(value, int):
            self._whole += value
            value = float(value)
        else:
            self._is_whole = False
        if isinf(value):
            self._infinite.add(value)
        else:
            over, under = value.as_integer_ratio()
            self._scaled += over << (_LEAST + 1 - under.bit_length())

    @property
    def value(self) -> Value:
        """The result of the function.

        Text, truth values, and attributes without a function have a result only if all values are equal.
        """
        found = None if self.function is None else self._found()
        if found is None and self._is_one and (self.function is None or isinstance(self._one, (str, bool))):
            return self._one
        return found

    def _found(self) -> Value:
        """Return the result over the numbers, or `None` if it is undefined or out of range."""
        if self.function == "count":
            return self._known
        if not self._numbers:
            return None
        if self.function in ("max", "min"):
            found: Value = self._best
            return found
        total = self._total()
        if total is not None and self.function == "avg":
            return total / self._numbers
        return None if isinstance(total, int) and not -(2**63) <= total < 2**63 else total

    def _total(self) -> float | None:
        """Return the sum, rounded once; `None` if it is undefined or exceeds all floats."""
        if self._is_whole:
            return self._whole
        if self._infinite:
            return None if len(self._infinite) > 1 else next(iter(self._infinite))
        try:
            return self._scaled / (1 << _LEAST)
        except OverflowError:
            return None

    def extreme(self, first: Knowledge) -> Knowledge:
        """Return the point that attains the extreme.

        If no point does, return the first point without a value, or else `first`.
        """
        if self._at is not None:
            return self._at
        return first if self.value is not None or self._missing is None else self._missing
