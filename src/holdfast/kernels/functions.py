"""Aggregate functions: a table with their names and their implementation in every form of evaluation.

To add a function, add a row to `AGGREGATES`; the language, the checks and the runtimes read the table. The
function of one group of numbers is the reference for the other forms.
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
    """Returns the value of one group of at least one number. No number is missing."""
    of_windows: Callable[[Floats, Rows, Rows], Floats]
    """Returns the values of windows ``[low, high)`` of an array, with NaN for missing."""
    of_parts: Callable[[FoldParts, Floats], Floats]
    """Returns the values of groups of parts. Each part has one value at a time."""
    result: Literal["same", "int", "float", "difference"] = "same"
    """The type of the result: the type of the values, or a fixed type. A difference is converted by scale
    alone."""
    adds_up: bool = False
    """Whether the function adds values. Sums of integers may then be too large to be exact as floats."""
    is_incremental: bool = False
    """Whether `RunningAggregate` can update the result when a value is added. It then needs code there."""
    synonyms: tuple[str, ...] = ()
    """Names of the function in other languages. An error about such a name proposes this function."""


def total(numbers: Sequence[Number]) -> Number:
    """Return the exact sum, rounded once, so that the order of the numbers does not matter."""
    if all(isinstance(n, int) for n in numbers):
        return sum(numbers)
    if infinite := [n for n in numbers if math.isinf(n)]:
        return math.fsum(infinite)
    try:
        return math.fsum(numbers)
    except OverflowError:  # on the way; the sum itself may be small
        return float(sum(map(Fraction, numbers)))


def mean(numbers: Sequence[Number]) -> float:
    """Return the mean of numbers, computed from their exact sum."""
    return total(numbers) / len(numbers)


def deviation(numbers: Sequence[Number]) -> float | None:
    """Return the sample standard deviation; `None` for one number, or if a square exceeds a float."""
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
"""The aggregate functions by name."""
