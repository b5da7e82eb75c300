"""A test of a relationship as a range of one measure: a sum of what is known, compared with a number."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ...errors import DefinitionError, Place
from ...model.relation import Interval
from ..ops import (
    And,
    Arithmetic,
    ArithmeticSign,
    Compare,
    ComparisonSign,
    Expression,
    Member,
    Negative,
    Number,
    Truth,
)

Part = tuple[Member, bool]
"""Something that is known, and whether it is what is divided by."""


@dataclass(frozen=True)
class Sum:
    """``constant`` and so much of each part."""

    parts: dict[Part, float] = field(default_factory=dict)
    constant: float = 0.0

    def __add__(self, other: Sum) -> Sum:
        found = dict(self.parts)
        for part, scale in other.parts.items():
            found[part] = found.get(part, 0.0) + scale
        kept = {part: scale for part, scale in found.items() if scale}
        return Sum(kept, self.constant + other.constant)

    def times(self, by: float) -> Sum:
        return Sum({part: scale * by for part, scale in self.parts.items() if scale * by}, self.constant * by)


def measured(op: Expression, at: Place | None) -> tuple[dict[Part, float], Interval]:
    """The measure that a test is about, and the range in which it is satisfied."""
    match op:
        case Compare(sign, left, right):
            difference = linear(left, at) + linear(right, at).times(-1.0)
            if not difference.parts:
                raise DefinitionError("nothing is measured here", at, hint=_AS_IN)
            return difference.parts, _range(sign, -difference.constant, at)
        case And(left, right):
            (parts, one), (others, other) = measured(left, at), measured(right, at)
            ratio = proportion(parts, others)
            if ratio is None:
                raise DefinitionError("a test is about one measure, here there are two", at, hint=_AS_IN)
            other = scaled(other, ratio)
            return parts, Interval(max(one.low, other.low), min(one.high, other.high))
        case Truth():
            raise DefinitionError("nothing is measured here", at, hint=_AS_IN)
    raise DefinitionError("a test of a relationship compares one measure with a number", at, hint=_AS_IN)


_AS_IN = "As in: when distance(a, b) <= 10 m until distance(a, b) >= 50 m"


def linear(op: Expression, at: Place | None) -> Sum:
    """A core expression as a sum."""
    match op:
        case Number(value):
            return Sum(constant=float(value))
        case Member():
            return Sum({(op, False): 1.0})
        case Negative(arg):
            return linear(arg, at).times(-1.0)
        case Arithmetic(sign, left, right):
            found = _combined(sign, linear(left, at), linear(right, at))
            if found is not None:
                return found
    raise DefinitionError(
        "a measure is a sum of distances, times or attributes, each with a factor or divided into a number",
        at,
        hint=_AS_IN,
    )


def _combined(sign: ArithmeticSign, a: Sum, b: Sum) -> Sum | None:
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


def _range(sign: ComparisonSign, bound: float, at: Place | None) -> Interval:
    match sign:
        case "<":
            return Interval(high=math.nextafter(bound, -math.inf))
        case "<=":
            return Interval(high=bound)
        case ">":
            return Interval(low=math.nextafter(bound, math.inf))
        case ">=":
            return Interval(low=bound)
        case "==":
            return Interval(bound, bound)
        case "!=":
            raise DefinitionError("'!=' leaves no range of a measure", at, hint=_AS_IN)


def proportion(parts: dict[Part, float], others: dict[Part, float]) -> float | None:
    """How many times the first measure the second is, if it is."""
    if parts.keys() != others.keys():
        return None
    ratios = [others[part] / parts[part] for part in parts]
    alike = all(math.isclose(ratio, ratios[0], rel_tol=1e-12) for ratio in ratios)
    return ratios[0] if alike else None


def scaled(one: Interval, by: float) -> Interval:
    """The range of a measure, given that of so many times as much."""
    if by == 1.0:
        return one
    ends = sorted((one.low / by + 0.0, one.high / by + 0.0))
    return Interval(*ends)
