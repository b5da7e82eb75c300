"""The type and the unit of every expression, determined while it is rewritten to the core.

A quantity can have a unit. A bare literal, and arithmetic over bare literals, takes the unit of the value
that it is combined with. Two units of one dimension are converted. Everything else is an error with a hint.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn, assert_never

from ..errors import DefinitionError, Place, did_you_mean
from ..model.topic import RESERVED, Attribute
from ..model.unit import NONE, UNITS, Unit, conversion, nearest, product, quotient
from . import rewrite, spacetime
from .literal import INT64, describe_unit
from .ops import (
    Absolute,
    And,
    Arithmetic,
    ArithmeticSign,
    Between,
    Call,
    Compare,
    ComparisonSign,
    Expression,
    LocationLiteral,
    MemberAttribute,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Silent,
    Text,
    Truth,
)
from .show import show_expression
from .typed import CALLED, ONE, NameScope, Position, Predicate, Typed, TypedQuantity, Words

LARGE = 1_000
"""The maximal size of two predicates that are compared, because the result contains both twice."""


def predicate(op: Expression, scope: NameScope) -> Expression:
    """Return the core of an expression that must be a predicate. Raises an error for another type."""
    found = type_of(op, scope)
    if isinstance(found, Predicate):
        return found.core
    shown = show_expression(op)
    likely = f"{shown} > 0" if isinstance(found, TypedQuantity) else f'{shown} == "…"'
    raise DefinitionError(
        f"expected a condition, but {shown} is {CALLED[type(found)]}",
        op.at,
        hint=f"Compare it with something, as in {likely}",
    )


def type_of(op: Expression, scope: NameScope) -> Typed:
    """Return the type of an expression, with its core."""
    match op:
        case Name(name):
            return _type_of_name(name, scope, op.at)
        case Number():
            return _literal(op)
        case Text():
            return Words(Text(op.value))
        case LocationLiteral():
            return Position(op)
        case Truth():
            return Predicate(Truth(op.value))
        case MemberAttribute():
            member = _member(op, scope)
            return member if op.otherwise is None else _with_default(op, op.otherwise, member, scope)
        case Call(function):
            if scope.measured is None:
                raise DefinitionError(
                    f"{function}(…) is measured of relationships only",
                    op.at,
                    hint=f"As in: relate Meet (a User, b User) when {function}(…) <= …",
                )
            return scope.measured(op)
        case Arithmetic(sign, left, right):
            a, b = type_of(left, scope), type_of(right, scope)
            found = spacetime.compute(op, a, b)
            return found or _type_of_arithmetic(sign, _number(a, left), _number(b, right), op)
        case Negative(arg):
            number = _number(type_of(arg, scope), arg)
            return _representable(replace(number, core=rewrite.negative(number.core)), op)
        case Absolute(arg):
            inner = type_of(arg, scope)
            if (length := spacetime.length(inner)) is not None:
                return length
            number = _number(inner, arg)
            return _representable(replace(number, core=rewrite.absolute(number.core)), op)
        case Compare(sign, left, right):
            return Predicate(_type_of_comparison(sign, type_of(left, scope), type_of(right, scope), op))
        case Between(arg, low, high):
            sides = (Compare(">=", arg, low, op.at), Compare("<=", arg, high, op.at))
            return Predicate(rewrite.both(*(_side(side, scope) for side in sides)))
        case And(left, right):
            return Predicate(rewrite.both(predicate(left, scope), predicate(right, scope)))
        case Or(left, right):
            return Predicate(rewrite.either(predicate(left, scope), predicate(right, scope)))
        case Not(arg):
            return Predicate(rewrite.negate(predicate(arg, scope)))
        case Silent():
            return _silent(op, scope)
        case _:
            assert_never(op)


def _silent(op: Silent, scope: NameScope) -> Predicate:
    if scope.topic is None:
        raise DefinitionError(
            "'silent' is said of the scopes of a state [enter; exit] alone",
            op.at,
            hint="As in: state Dead on Temperature [silent 10 min; !silent 10 min] per source",
        )
    return Predicate(Silent(op.length))


# --- names and literals ------------------------------------------------------------------------


def _type_of_name(name: str, scope: NameScope, at: Place | None) -> Typed:
    attribute = scope.topic.by_name.get(name) if scope.topic else None
    parameter = scope.parameters.get(name)
    if attribute and parameter:
        assert scope.topic is not None
        raise DefinitionError(
            f"'{name}' is both a parameter and an attribute of topic '{scope.topic.name}'",
            at,
            hint="Rename the parameter.",
        )
    if parameter:
        return parameter
    if attribute:
        return of_attribute(attribute)
    raise unknown_attribute(name, scope, at)


def _member(op: MemberAttribute, scope: NameScope) -> Typed:
    shown = f"{op.owner}.{op.name}"
    if not scope.members:
        hint = "Only a state with queries has names with a point: A = …, enter A.value > 2."
        raise DefinitionError(f"there is no '{op.owner}' here", op.at, hint=hint)
    members = scope.members.get(op.owner)
    if members is None:
        owners = "query" if scope.topic is None else "table"
        raise DefinitionError(
            f"no {owners} is named '{op.owner}'; there is {', '.join(filter(None, scope.members))}",
            op.at,
            hint=did_you_mean(op.owner, scope.members),
        )
    found = members.get(op.name)
    if found is None:
        has = ", ".join(members)
        raise DefinitionError(
            f"there is no {shown}; it has {has}", op.at, hint=did_you_mean(op.name, members)
        )
    if isinstance(found, str):
        raise DefinitionError(f"{shown} cannot be used: {found}", op.at)
    return found


def _with_default(op: MemberAttribute, otherwise: Expression, found: Typed, scope: NameScope) -> Typed:
    """Return the type of a member with a default.

    The default must be a constant of the member's type, in a compatible unit.
    """
    given, member = type_of(otherwise, scope), found.core
    if not isinstance(member, MemberAttribute):
        raise DefinitionError(
            "'else' is for queries of a component, which may show nothing",
            op.at,
            hint="Give the table a row '*' for those who have none.",
        )
    match found, given:
        case TypedQuantity(), TypedQuantity(Number()):
            value = in_unit_of(given, found, otherwise, op.name)
            whole = found.whole and isinstance(value, int)
            number = Number(value if whole else float(value))
            return replace(found, core=replace(member, otherwise=number), whole=whole)
        case (Words(), Words(Text() as core)) | (Predicate(), Predicate(Truth() as core)):
            return replace(found, core=replace(member, otherwise=core))
    raise DefinitionError(
        f"{op.owner}.{op.name} is {CALLED[type(found)]}, and {show_expression(otherwise)} is not a constant "
        "of that kind",
        otherwise.at,
        hint="After 'else' stands a number, a text in quotes, true or false, or a parameter.",
    )


def of_attribute(attribute: Attribute) -> Typed:
    """Return the type of an attribute in an expression."""
    name = Name(attribute.name)
    match attribute.kind:
        case "text":
            return Words(name)
        case "bool":
            return Predicate(name)
        case "float" | "int":
            unit = UNITS[attribute.unit] if attribute.unit else None
            return TypedQuantity(name, unit, whole=attribute.kind == "int")
        case _:
            assert_never(attribute.kind)


def unknown_attribute(name: str, scope: NameScope, at: Place | None) -> DefinitionError:
    """Return the error for an undeclared name, with a hint."""
    if scope.members:
        known = [*scope.parameters, *(f"{o}.{n}" for o, of in scope.members.items() for n in of if o)]
        return DefinitionError(
            f"'{name}' is neither a parameter nor known here", at,
            hint=did_you_mean(name, known) or "Say whose it is, as in A.value.",
        )  # fmt: skip
    if scope.topic is None:
        return DefinitionError(
            f"'{name}' is not a parameter that stands above",
            at,
            hint=did_you_mean(name, scope.parameters) or "A parameter is made of literals and earlier ones.",
        )
    own_names = [a.name for a in scope.topic.attributes]
    has = f"it has {', '.join(own_names)}" if own_names else "it has no attributes"
    if name in RESERVED:
        return DefinitionError(f"a predicate cannot mention '{name}'; {has}, source, place, x, y and z", at)
    return DefinitionError(
        f"topic '{scope.topic.name}' has no '{name}'; {has}",
        at,
        hint=did_you_mean(name, [*own_names, *scope.parameters, *scope.topic.by_name]),
    )


def _literal(op: Number) -> TypedQuantity:
    if op.unit is not None and op.unit not in UNITS:
        raise DefinitionError(f"unknown unit '{op.unit}'", op.at, hint=nearest(op.unit))
    unit = UNITS[op.unit] if op.unit is not None else None
    number = Number(op.value, at=op.at)
    found = TypedQuantity(number, unit, bare=unit is None, whole=isinstance(op.value, int))
    return _representable(found, op)


def _representable(number: TypedQuantity, op: Expression) -> TypedQuantity:
    core = number.core
    if isinstance(core, Number):
        if isinstance(core.value, int) and core.value not in INT64:
            raise DefinitionError(
                f"{core.value} does not fit in 64 bits",
                op.at,
                hint="Write it with a decimal point to make it a float.",
            )
        if core.value - core.value != 0:
            raise DefinitionError("a number must be finite", op.at)
    return number


# --- numbers -----------------------------------------------------------------------------------


def _number(found: Typed, op: Expression) -> TypedQuantity:
    if isinstance(found, TypedQuantity):
        return found
    raise DefinitionError(
        f"expected a number, but {show_expression(op)} is {CALLED[type(found)]}",
        op.at,
        hint="Text and conditions do not mix with arithmetic.",
    )


def _type_of_arithmetic(
    sign: ArithmeticSign, left: TypedQuantity, right: TypedQuantity, op: Arithmetic
) -> TypedQuantity:
    if sign in ("*", "/"):
        return _representable(_type_of_product(sign, left, right), op)
    added = "added to" if sign == "+" else "taken from"
    a, b = _align_units(left, right, op, added, linear=_linear_sum(sign, left, right))
    known = a if b.bare else b
    return _representable(
        TypedQuantity(
            rewrite.compute(sign, a.core, b.core, whole=a.whole and b.whole),
            known.unit,
            bare=a.bare and b.bare,
            whole=a.whole and b.whole,
            difference=known.unit is not None and _is_difference(sign, a, b),
        ),
        op,
    )


def _linear_sum(sign: ArithmeticSign, a: TypedQuantity, b: TypedQuantity) -> bool:
    """Whether a sum converts by scale alone.

    That is so if one side is a difference, or a literal is added (2 °C more are 3.6 °F more).
    """
    return a.difference or b.difference or (sign == "+" and a.constant != b.constant)


def _is_difference(sign: ArithmeticSign, a: TypedQuantity, b: TypedQuantity) -> bool:
    """Whether the result of a sum or difference is a difference itself.

    That is so for °C − °C, and for a difference plus or minus a literal or a difference. A literal minus a
    literal is a literal.
    """
    if a.difference != b.difference:
        return (b if a.difference else a).constant
    return a.difference or (sign == "-" and not (a.constant and b.constant))


def _type_of_product(sign: ArithmeticSign, left: TypedQuantity, right: TypedQuantity) -> TypedQuantity:
    whole = sign == "*" and left.whole and right.whole and (left.unit is None or right.unit is None)
    core = rewrite.compute(sign, left.core, right.core, whole=whole)
    if right.unit is None:
        return replace(left, core=core, whole=whole, bare=left.bare and right.bare)
    if left.unit is None and sign == "*":
        return replace(right, core=core, whole=whole)
    unit = (product if sign == "*" else quotient)(left.unit or ONE, right.unit)
    if unit.dimension == NONE:
        core, unit = rewrite.scale(core, unit.factor, unit.offset), ONE
    return TypedQuantity(core, unit, difference=True)


def _align_units(
    left: TypedQuantity, right: TypedQuantity, op: Arithmetic | Compare, how: str, *, linear: bool
) -> tuple[TypedQuantity, TypedQuantity]:
    """Return both quantities in one unit: that of the operand that is not a literal, else of the left one."""
    if left.bare or right.bare:
        return left, right
    if left.unit is None or right.unit is None:
        if (left.unit or ONE) == (right.unit or ONE):
            return left, right
        _no_unit(left, right, op, how)
    if left.unit.dimension != right.unit.dimension:
        raise DefinitionError(
            f"{_describe(op.right, right)} cannot be {how} {_describe(op.left, left)}",
            op.at,
            hint=f"{describe_unit(left.unit)} and {describe_unit(right.unit)} measure different things.",
        )
    if _keeps_its_unit(right, left):
        return _convert(left, right.unit, linear), right
    return left, _convert(right, left.unit, linear)


def _keeps_its_unit(quantity: TypedQuantity, other: TypedQuantity) -> bool:
    if quantity.constant != other.constant:
        return other.constant
    return other.difference and not quantity.difference


def _convert(number: TypedQuantity, to: Unit, linear: bool) -> TypedQuantity:
    unit = number.unit
    assert unit is not None
    scale, shift = conversion(unit.difference, to.difference) if linear else conversion(unit, to)
    core = rewrite.scale(number.core, scale, shift)
    same = core is number.core or (isinstance(core, Number) and isinstance(core.value, int))
    return replace(number, core=core, unit=to, whole=number.whole and same)


def _describe(op: Expression, number: TypedQuantity) -> str:
    shown = show_expression(op)
    return shown if isinstance(op, Number) else f"{shown} ({describe_unit(number.unit)})"


def _no_unit(left: TypedQuantity, right: TypedQuantity, op: Arithmetic | Compare, how: str) -> NoReturn:
    (plain, _), (without_unit, known) = sorted(
        ((op.left, left), (op.right, right)), key=lambda side: side[1].unit is not None
    )
    unit = describe_unit(known.unit)
    hint = f"Leave the unit out, or declare the unit of what {show_expression(plain)} is made of."
    if isinstance(plain, Name):
        hint = f"Declare the unit in the topic: {plain.name} float {unit}"
    raise DefinitionError(
        f"{show_expression(plain)} has no unit, so {_describe(without_unit, known)} cannot be {how} it",
        op.at,
        hint=hint,
    )


def in_unit_of(found: TypedQuantity, wanted: TypedQuantity, op: Expression, name: str) -> float | int:
    """Return a constant in the unit of the named attribute."""
    assert isinstance(found.core, Number)
    if found.unit is None:
        return found.core.value
    if wanted.unit is None or wanted.unit.dimension != found.unit.dimension:
        raise DefinitionError(f"'{name}' is not measured in {found.unit.name}", op.at)
    core = rewrite.scale(found.core, *conversion(found.unit, wanted.unit))
    assert isinstance(core, Number)
    return core.value


# --- comparisons -------------------------------------------------------------------------------


def _side(op: Compare, scope: NameScope) -> Expression:
    """Return one comparison of a range of numbers or times, in the core."""
    a, b = type_of(op.left, scope), type_of(op.right, scope)
    found = spacetime.compare(op, a, b)
    return found or _ordered(op.sign, _number(a, op.left), _number(b, op.right), op)


def _type_of_comparison(sign: ComparisonSign, left: Typed, right: Typed, op: Compare) -> Expression:
    if (found := spacetime.compare(op, left, right)) is not None:
        return found
    match left, right:
        case TypedQuantity(), TypedQuantity():
            return _ordered(sign, left, right, op)
        case (Words(), Words()) | (Predicate(), Predicate()):
            if sign not in ("==", "!="):
                what = "texts" if isinstance(left, Words) else "conditions"
                raise DefinitionError(f"{what} are compared with == and != only, not with {sign}", op.at)
            if isinstance(left, Words):
                return rewrite.compare(sign, left.core, right.core)
            if rewrite.size(left.core) + rewrite.size(right.core) > LARGE:
                raise DefinitionError("conditions that are compared with one another are too large", op.at)
            same = rewrite.alike(left.core, right.core)
            return same if sign == "==" else rewrite.negate(same)
    raise DefinitionError(
        f"{CALLED[type(left)]} cannot be compared with {CALLED[type(right)]}", op.at, hint=_mixture_error(op)
    )


def _mixture_error(op: Compare) -> str | None:
    for left, right in ((op.left, op.right), (op.right, op.left)):
        match left, right:
            case Name(name), Number():
                return f"'{name}' is not a number here; text is written in double quotes."
            case Name(name), Text():
                return f"'{name}' is not a text here; numbers, true and false are written without quotes."
    return None


def _ordered(sign: ComparisonSign, left: TypedQuantity, right: TypedQuantity, op: Compare) -> Expression:
    linear = left.difference or right.difference
    a, b = _align_units(left, right, op, "compared with", linear=linear)
    if a.whole and b.whole:
        return rewrite.compare(sign, a.core, b.core)
    return rewrite.compare(sign, rewrite.as_float(a.core), rewrite.as_float(b.core))
