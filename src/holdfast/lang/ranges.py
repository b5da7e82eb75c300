"""The possible values of an attribute: an interval without some points, texts, or truth values.

Checks use these ranges to find predicates that are never or always true.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import assert_never

from ..model.topic import Kind
from .literal import INT64

Value = float | int | str | bool
End = Fraction | float  # exact, or ±inf

SAMPLES = 8
LARGEST = 1e300


@dataclass(frozen=True, slots=True)
class ValueInterval:
    """The numbers from ``low`` to ``high`` without the excluded ones. With ``whole``, only integers."""

    low: End = -math.inf
    high: End = math.inf
    low_open: bool = False
    high_open: bool = False
    excluded: frozenset[End] = frozenset()
    whole: bool = False

    def meet(self, other: Range) -> ValueInterval:
        """Return the intersection with another interval."""
        assert isinstance(other, ValueInterval)
        low, low_open = max((self.low, self.low_open), (other.low, other.low_open))
        high, shut = min((self.high, not self.high_open), (other.high, not other.high_open))
        return ValueInterval(
            low, high, low_open, not shut, self.excluded | other.excluded, self.whole or other.whole
        )

    @property
    def empty(self) -> bool:
        """Whether the interval contains no number."""
        if self.whole:
            low, high = self._whole_ends()
            if high - low > len(self.excluded):
                return False
            return all(n in self.excluded for n in range(low, high + 1))
        if self.low == self.high:
            return self.low_open or self.high_open or self.low in self.excluded
        return self.low > self.high

    def _whole_ends(self) -> tuple[int, int]:
        low, high = INT64.start, INT64.stop - 1
        if not isinstance(self.low, float):
            low = max(low, math.floor(self.low) + 1 if self.low_open else math.ceil(self.low))
        elif self.low == math.inf:
            low = high + 1
        if not isinstance(self.high, float):
            high = min(high, math.ceil(self.high) - 1 if self.high_open else math.floor(self.high))
        elif self.high == -math.inf:
            high = low - 1
        return low, high

    def contains(self, value: float | int) -> bool:
        """Whether the interval contains a number."""
        at: End = Fraction(value) if math.isfinite(value) else float(value)
        if at in self.excluded:
            return False
        above = self.low < at or (self.low == at and not self.low_open)
        return above and (at < self.high or (self.high == at and not self.high_open))

    def some(self) -> list[Value]:
        """Return a few numbers of the interval, simple ones first."""
        found = self._whole_candidates() if self.whole else self._candidates()
        return list(islice(dict.fromkeys(value for value in found if self.contains(value)), SAMPLES))

    def _whole_candidates(self) -> Iterator[int]:
        low, high = self._whole_ends()
        first = low if low > INT64.start else min(0, high)
        yield from range(first, min(high + 1, first + len(self.excluded) + SAMPLES))
        yield from range(first, max(low - 1, first - len(self.excluded) - SAMPLES), -1)

    def _candidates(self) -> Iterator[float]:
        low, high = (max(-LARGEST, min(float(end), LARGEST)) for end in (self.low, self.high))
        steps = len(self.excluded) + SAMPLES
        if low == -LARGEST and high == LARGEST:
            yield from map(float, range(steps))
        elif low == -LARGEST:
            yield from (math.ceil(high) - float(i) for i in range(1, steps))
        elif high == LARGEST:
            yield from (math.floor(low) + float(i) for i in range(1, steps))
        else:
            middle = low / 2 + high / 2
            yield from (round(middle, digits) for digits in range(3))
            yield middle
            yield from (low + (high - low) * i / steps for i in range(1, steps))
        yield from (low, high, math.inf, -math.inf)


@dataclass(frozen=True, slots=True)
class Texts:
    """One text (``only``), or every text except the excluded ones. ``none`` stands for the empty set."""

    only: str | None = None
    excluded: frozenset[str] = frozenset()
    none: bool = False

    def meet(self, other: Range) -> Texts:
        """Return the intersection with another set of texts."""
        assert isinstance(other, Texts)
        clash = self.only is not None and other.only is not None and self.only != other.only
        only = self.only if self.only is not None else other.only
        return Texts(only, self.excluded | other.excluded, self.none or other.none or clash)

    @property
    def empty(self) -> bool:
        return self.none or self.only in self.excluded

    def some(self) -> list[Value]:
        """Return a text of the set; an empty list if it has none."""
        if self.empty:
            return []
        if self.only is not None:
            return [self.only]
        words = ("other", *(f"other{i}" for i in range(len(self.excluded))))
        return [next(word for word in words if word not in self.excluded)]


@dataclass(frozen=True, slots=True)
class Flags:
    """A set of truth values: the possible values of a bool attribute."""

    values: frozenset[bool] = frozenset((True, False))

    def meet(self, other: Range) -> Flags:
        assert isinstance(other, Flags)
        return Flags(self.values & other.values)

    @property
    def empty(self) -> bool:
        return not self.values

    def some(self) -> list[Value]:
        return sorted(self.values, reverse=True)


Range = ValueInterval | Texts | Flags


def everything(kind: Kind) -> Range:
    """Return the range of all values of an attribute's type."""
    match kind:
        case "float":
            return ValueInterval()
        case "int":
            return ValueInterval(whole=True)
        case "text":
            return Texts()
        case "bool":
            return Flags()
        case _:
            assert_never(kind)


def flag(value: bool) -> Flags:
    """Return the range that contains one truth value."""
    return Flags(frozenset((value,)))


def widen(interval: ValueInterval, by: Fraction) -> ValueInterval:
    """Return an interval with its ends moved outwards and included, and without excluded points."""
    return replace(
        interval,
        low=interval.low if isinstance(interval.low, float) else interval.low - by,
        high=interval.high if isinstance(interval.high, float) else interval.high + by,
        low_open=False,
        high_open=False,
        excluded=frozenset(),
    )
