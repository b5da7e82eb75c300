"""What can be computed and compared of times and places; only components have them.

A time is microseconds; a bare number that meets one is in seconds, as in the thesis.  The distance
of two locations is in metres.  Each function answers ``None`` where no time or place is involved.
"""

from __future__ import annotations

from fractions import Fraction

from ..errors import DefinitionError
from ..model.instant import NEVER, SECOND, parse_instant
from ..model.unit import UNITS
from . import rewrite
from .kinds import CALLED, Moment, Offset, Position, Predicate, Quantity, Typed, Words
from .ops import Absolute, Arithmetic, Compare, Expression, Member, Number, Text, Truth
from .show import show_expression

_LENGTH = UNITS["m"]
_TIME = UNITS["s"]


def computed(op: Arithmetic, left: Typed, right: Typed) -> Typed | None:
    """A sum or difference in which times or places take part."""
    match op.sign, left, right:
        case "-", Moment(a), Moment(b):
            seconds = Arithmetic("/", Arithmetic("-", a, b), Number(float(SECOND)))
            return Quantity(seconds, _TIME)
        case (("+" | "-"), Moment(a), Quantity()):
            return Moment(Arithmetic(op.sign, a, _microseconds(right, op.right)))
        case "+", Quantity(), Moment(b):
            return Moment(Arithmetic("+", b, _microseconds(left, op.left)))
        case "-", Position(a), Position(b):
            return Offset(Arithmetic("-", a, b))
    if any(isinstance(side, (Moment, Position, Offset)) for side in (left, right)):
        raise DefinitionError(
            f"{CALLED[type(left)]} {op.sign} {CALLED[type(right)]} means nothing",
            op.at,
            hint="Times: now - 10 s, A.time - B.time.  Places: |A.location - B.location|.",
        )
    return None


def length(arg: Typed) -> Quantity | None:
    """How far it is."""
    return Quantity(Absolute(arg.core), _LENGTH) if isinstance(arg, Offset) else None


def compared(op: Compare, left: Typed, right: Typed) -> Expression | None:
    """A comparison in which times or places take part, or the thesis' ``last.valid == 0``."""
    match left, right:
        case Moment(a), Moment(b):
            return Compare(op.sign, a, b)
        case Moment(a), (Quantity() | Words()):
            return Compare(op.sign, a, _instant(right, op.right))
        case ((Quantity() | Words()), Moment(b)):
            return Compare(op.sign, _instant(left, op.left), b)
        case (Position(a), (Position(b) | Words(b))) | (Words(a), Position(b)):
            if op.sign not in ("==", "!="):
                raise DefinitionError(
                    f"locations are compared with == and != only, not with {op.sign}",
                    op.at,
                    hint="How far apart they are is |A.location - B.location|.",
                )
            return Compare(op.sign, a, b)
        case (Predicate(a), Quantity(Number(0 | 1 as bit), None)) if isinstance(op.left, Member):
            if op.sign in ("==", "!="):
                same = rewrite.alike(a, Truth(bool(bit)))
                return same if op.sign == "==" else rewrite.negated(same)
    if any(isinstance(side, (Moment, Position, Offset)) for side in (left, right)):
        hint = "The length of a way is |…|." if any(isinstance(s, Offset) for s in (left, right)) else None
        raise DefinitionError(
            f"{CALLED[type(left)]} cannot be compared with {CALLED[type(right)]}", op.at, hint=hint
        )
    return None


def _microseconds(number: Quantity, op: Expression) -> Expression:
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
    core = rewrite.scaled(number.core, unit.factor * SECOND, Fraction(0))
    if not isinstance(core, Number):
        return core
    if abs(core.value) >= NEVER:
        raise DefinitionError(f"{show_expression(op)} is too far away in time", op.at)
    return Number(int(core.value)) if core.value == int(core.value) else core


def _instant(value: Quantity | Words, op: Expression) -> Expression:
    """An absolute time: seconds since 1970, or as text."""
    if isinstance(value, Quantity) and isinstance(value.core, Number) and value.unit is None:
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
