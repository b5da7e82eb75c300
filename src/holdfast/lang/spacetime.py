"""Types of computations and comparisons with times and places, which only components have.

A time is in microseconds. A bare number that is combined with a time is in seconds, as in the thesis. The
distance of two locations is in metres. Each function returns ``None`` if no time or place is involved.
"""

from __future__ import annotations

from fractions import Fraction

from ..errors import DefinitionError
from ..model.instant import NEVER, SECOND, parse_instant
from ..model.unit import UNITS
from . import rewrite
from .ops import Absolute, Arithmetic, Compare, Expression, MemberAttribute, Number, Text, Truth
from .show import show_expression
from .typed import CALLED, Offset, Position, Predicate, Typed, TypedQuantity, TypedTime, Words

_LENGTH = UNITS["m"]
_TIME = UNITS["s"]


def compute(op: Arithmetic, left: Typed, right: Typed) -> Typed | None:
    """Return the type of a sum or difference with times or places."""
    match op.sign, left, right:
        case "-", TypedTime(a), TypedTime(b):
            seconds = Arithmetic("/", Arithmetic("-", a, b), Number(float(SECOND)))
            return TypedQuantity(seconds, _TIME)
        case (("+" | "-"), TypedTime(a), TypedQuantity()):
            return TypedTime(Arithmetic(op.sign, a, _microseconds(right, op.right)))
        case "+", TypedQuantity(), TypedTime(b):
            return TypedTime(Arithmetic("+", b, _microseconds(left, op.left)))
        case "-", Position(a), Position(b):
            return Offset(Arithmetic("-", a, b))
    if any(isinstance(side, (TypedTime, Position, Offset)) for side in (left, right)):
        raise DefinitionError(
            f"{CALLED[type(left)]} {op.sign} {CALLED[type(right)]} means nothing",
            op.at,
            hint="Times: now - 10 s, A.time - B.time.  Places: |A.location - B.location|.",
        )
    return None


def length(arg: Typed) -> TypedQuantity | None:
    """Return the type of an offset's length, or ``None`` for other arguments."""
    return TypedQuantity(Absolute(arg.core), _LENGTH) if isinstance(arg, Offset) else None


def compare(op: Compare, left: Typed, right: Typed) -> Expression | None:
    """Return a comparison with times or places, or the thesis' ``last.valid == 0``, in the core."""
    match left, right:
        case TypedTime(a), TypedTime(b):
            return Compare(op.sign, a, b)
        case TypedTime(a), (TypedQuantity() | Words()):
            return Compare(op.sign, a, _instant(right, op.right))
        case ((TypedQuantity() | Words()), TypedTime(b)):
            return Compare(op.sign, _instant(left, op.left), b)
        case (Position(a), (Position(b) | Words(b))) | (Words(a), Position(b)):
            if op.sign not in ("==", "!="):
                raise DefinitionError(
                    f"locations are compared with == and != only, not with {op.sign}",
                    op.at,
                    hint="How far apart they are is |A.location - B.location|.",
                )
            return Compare(op.sign, a, b)
        case (Predicate(a), TypedQuantity(Number(0 | 1 as bit), None)) if isinstance(
            op.left, MemberAttribute
        ):
            if op.sign in ("==", "!="):
                same = rewrite.alike(a, Truth(bool(bit)))
                return same if op.sign == "==" else rewrite.negate(same)
    if any(isinstance(side, (TypedTime, Position, Offset)) for side in (left, right)):
        hint = "The length of a way is |…|." if any(isinstance(s, Offset) for s in (left, right)) else None
        raise DefinitionError(
            f"{CALLED[type(left)]} cannot be compared with {CALLED[type(right)]}", op.at, hint=hint
        )
    return None


def _microseconds(number: TypedQuantity, op: Expression) -> Expression:
    if number.unit is None and not number.bare:
        raise DefinitionError(
            f"{show_expression(op)} has no unit, so it cannot be added to a time",
            op.at,
            hint="Declare its unit in the topic, such as: delay float s",
        )
    unit = number.unit or _TIME
    if unit.dimension != _TIME.dimension:
        raise DefinitionError(
            f"{show_expression(op)} is not a duration", op.at, hint="A duration is written as 30 s or 2 min."
        )
    core = rewrite.scale(number.core, unit.factor * SECOND, Fraction(0))
    if not isinstance(core, Number):
        return core
    if abs(core.value) >= NEVER:
        raise DefinitionError(f"{show_expression(op)} is too far away in time", op.at)
    return Number(int(core.value)) if core.value == int(core.value) else core


def _instant(value: TypedQuantity | Words, op: Expression) -> Expression:
    """Return an absolute time in the core, given in seconds since 1970 or as text."""
    if isinstance(value, TypedQuantity) and isinstance(value.core, Number) and value.unit is None:
        return _microseconds(value, op)
    if isinstance(value, Words) and isinstance(value.core, Text):
        try:
            return Number(parse_instant(value.core.value))
        except ValueError:
            pass
    raise DefinitionError(
        f"{show_expression(op)} is not a time",
        op.at,
        hint='A time is A.time, now, now - 10 s, or text such as "2009-01-31T12:00:00Z".',
    )
