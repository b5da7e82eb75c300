"""Aggregate functions: one row for each, with its name and its meaning in every form of evaluation.

To add a function, add a row to `AGGREGATES`; the language, the checks and the runtimes read the table. The
value of one group of numbers is the reference for the other forms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from .aggregate import Floats, Rows, counts, deviations, largest, means, sums
from .fold import FoldParts

Number = int | float


@dataclass(frozen=True)
class AggregateFunction:
    """One aggregate function, in three forms, with the type of its result."""

    of_numbers: Callable[[Sequence[Number]], Number | None]
    """The value of one group of at least one number; none is missing."""
    of_windows: Callable[[Floats, Rows, Rows], Floats]
    """The values of windows ``[low, high)`` of an array, with NaN for missing."""
    of_parts: Callable[[FoldParts, Floats], Floats]
    """The values of groups of parts, each of which has one value at a time."""
    result: Literal["same", "int", "float", "difference"] = "same"
    """The type of the result: that of the values, or a fixed one; a difference converts by scale alone."""
    adds_up: bool = False
    """Whether it adds values, so that floats may be too small for exact sums of integers."""
    is_incremental: bool = False
    """Whether `RunningAggregate` can update it when a value is added; it then needs code there."""
    synonyms: tuple[str, ...] = ()
    """Names in other languages, for which an error proposes this one."""


def total(numbers: Sequence[Number]) -> Number:
    """The exact sum, rounded once, so that the order of the numbers does not matter."""
    if all(isinstance(n, int) for n in numbers):
        return sum(numbers)
    if infinite := [n for n in numbers if math.isinf(n)]:
        return math.fsum(infinite)
    try:
        return math.fsum(numbers)
    except OverflowError:  # on the way; the sum itself may be small
        return float(sum(map(Fraction, numbers)))


def mean(numbers: Sequence[Number]) -> float:
    """The mean of some numbers, computed from their exact sum."""
    return total(numbers) / len(numbers)


def deviation(numbers: Sequence[Number]) -> float | None:
    """The standard deviation of a sample; `None` for one number."""
    if len(numbers) < 2:
        return None
    middle = mean(numbers)
    squares = [(n - middle) * (n - middle) for n in numbers]
    if not all(map(math.isfinite, squares)):
        return None
    return math.sqrt(total(squares) / (len(numbers) - 1))


AGGREGATES: Mapping[str, AggregateFunction] = {
    "max": AggregateFunction(max, largest, FoldParts.largest, is_incremental=True, synonyms=("maximum",)),
    "min": AggregateFunction(
        min,
        lambda values, low, high: largest(values, low, high, -1.0),
        lambda parts, values: parts.largest(values, -1.0),
        is_incremental=True,
        synonyms=("minimum",),
    ),
    "sum": AggregateFunction(
        total, sums, FoldParts.sums, adds_up=True, is_incremental=True, synonyms=("total",)
    ),
    "avg": AggregateFunction(
        mean,
        means,
        FoldParts.means,
        result="float",
        adds_up=True,
        is_incremental=True,
        synonyms=("mean", "average"),
    ),
    "count": AggregateFunction(
        len,
        lambda values, low, high: counts(values, low, high).astype(np.float64),
        lambda parts, values: parts.counts(values).astype(np.float64),
        result="int",
        is_incremental=True,
        synonyms=("number",),
    ),
    "stddev": AggregateFunction(
        deviation,
        deviations,
        FoldParts.deviations,
        result="difference",
        adds_up=True,
        synonyms=("std", "sd"),
    ),
}
