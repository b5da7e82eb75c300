"""Tests of relations as ranges of one measure: a linear sum of attributes that is compared with a number."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ...errors import DefinitionError, Place
from ...lang.ops import (
    And,
    Arithmetic,
    ArithmeticSign,
    Compare,
    ComparisonSign,
    Expression,
    MemberAttribute,
    Negative,
    Number,
    Truth,
)
from ...model.relation import ReadingRange

Part = tuple[MemberAttribute, bool]
"""An attribute of a member, and whether it is a divisor."""


@dataclass(frozen=True)
class Sum:
    """A linear sum: ``constant`` plus each part times its factor."""

    parts: dict[Part, float] = field(default_factory=dict)
    constant: float = 0.0

    def __add__(self, other: Sum) -> Sum:
        found = dict(self.parts)
        for part, scale in other.parts.items():
            found[part] = found.get(part, 0.0) + scale
        terms = {part: scale for part, scale in found.items() if scale}
        return Sum(terms, self.constant + other.constant)

    def times(self, by: float) -> Sum:
        """Return the sum multiplied by a number."""
        return Sum({part: scale * by for part, scale in self.parts.items() if scale * by}, self.constant * by)


def measure_of(op: Expression, at: Place | None) -> tuple[dict[Part, float], ReadingRange]:
    """Return the measure that a test compares, and the range in which the test is satisfied.

    Raise a `DefinitionError` if the test does not compare exactly one measure with numbers.
    """
    match op:
        case Compare(sign, left, right):
            difference = linear(left, at) + linear(right, at).times(-1.0)
            if not difference.parts:
                raise DefinitionError("nothing is measured here", at, hint=_AS_IN)
            return difference.parts, _range(sign, -difference.constant, at)
        case And(left, right):
            (parts, one), (others, other) = measure_of(left, at), measure_of(right, at)
            ratio = proportion(parts, others)
            if ratio is None:
                raise DefinitionError("a test is about one measure, here there are two", at, hint=_AS_IN)
            other = scale_range(other, ratio)
            return parts, ReadingRange(max(one.low, other.low), min(one.high, other.high))
        case Truth():
            raise DefinitionError("nothing is measured here", at, hint=_AS_IN)
    raise DefinitionError("a test of a relationship compares one measure with a number", at, hint=_AS_IN)


_AS_IN = "As in: when distance(a, b) <= 10 m until distance(a, b) >= 50 m"


def linear(op: Expression, at: Place | None) -> Sum:
    """Convert an expression to a linear sum. Raise a `DefinitionError` for any other expression."""
    match op:
        case Number(value):
            return Sum(constant=float(value))
        case MemberAttribute():
            return Sum({(op, False): 1.0})
        case Negative(arg):
            return linear(arg, at).times(-1.0)
        case Arithmetic(sign, left, right):
            found = _combine(sign, linear(left, at), linear(right, at))
            if found is not None:
                return found
    raise DefinitionError(
        "a measure is a sum of distances, times or attributes, each with a factor or divided into a number",
        at,
        hint=_AS_IN,
    )


def _combine(sign: ArithmeticSign, a: Sum, b: Sum) -> Sum | None:
    """Return the result of an arithmetic operation on two sums, or `None` if it is not linear."""
    match sign:
        case "+":
            return a + b
        case "-":
            return a + b.times(-1.0)
        case "*" if not (a.parts and b.parts):
            return b.times(a.constant) if b.parts else a.times(b.constant)
        case "/" if not b.parts and b.constant:
            return a.times(1.0 / b.constant)
        case "/" if not a.parts and not b.constant and len(b.parts) == 1:
            ((member, reciprocal), scale) = next(iter(b.parts.items()))
            return None if reciprocal else Sum({(member, True): a.constant / scale})
    return None


def _range(sign: ComparisonSign, bound: float, at: Place | None) -> ReadingRange:
    """Return the range that satisfies a comparison. A strict bound becomes the next float."""
    match sign:
        case "<":
            return ReadingRange(high=math.nextafter(bound, -math.inf))
        case "<=":
            return ReadingRange(high=bound)
        case ">":
            return ReadingRange(low=math.nextafter(bound, math.inf))
        case ">=":
            return ReadingRange(low=bound)
        case "==":
            return ReadingRange(bound, bound)
        case "!=":
            raise DefinitionError("'!=' leaves no range of a measure", at, hint=_AS_IN)


def proportion(parts: dict[Part, float], others: dict[Part, float]) -> float | None:
    """Return the factor by which the second measure is a multiple of the first, or ``None``."""
    if parts.keys() != others.keys():
        return None
    ratios = [others[part] / parts[part] for part in parts]
    alike = all(math.isclose(ratio, ratios[0], rel_tol=1e-12) for ratio in ratios)
    return ratios[0] if alike else None


def scale_range(bounds: ReadingRange, by: float) -> ReadingRange:
    """Return the range of a measure, given the range of ``by`` times the measure."""
    if by == 1.0:
        return bounds
    ends = sorted((bounds.low / by + 0.0, bounds.high / by + 0.0))
    return ReadingRange(*ends)
