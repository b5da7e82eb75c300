"""Content filters as text: comparisons joined by ``&&``, in the syntax of the language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ....errors import DefinitionError
from ....lang.grammar import parse_expression
from ....lang.ops import (
    And,
    Between,
    Compare,
    ComparisonSign,
    Expression,
    Name,
    Negative,
    Number,
    Text,
    Truth,
)
from ...protocols.cbps.content import Constraint, Filter, Op
from ...protocols.cbps.ranges import Type, Value

_OPS: Mapping[ComparisonSign, Op] = {"<": "<", "<=": "<=", "==": "=", "!=": "!=", ">=": ">=", ">": ">"}
_MIRRORED: Mapping[ComparisonSign, ComparisonSign] = {
    "<": ">", "<=": ">=", "==": "==", "!=": "!=", ">=": "<=", ">": "<",
}  # fmt: skip


def content_filter(text: str) -> Filter:
    """Parse a content filter. Numbers compare by value, whether integer or not.

    >>> [(c.name, c.op, c.value) for c in content_filter('room == "FE05" && value > 25').constraints]
    [('room', '=', 'FE05'), ('value', '>', 25.0)]
    """
    try:
        return Filter(tuple(_constraints(parse_expression(text))))
    except DefinitionError as error:
        raise error.located(text, "--where") from None


def _constraints(op: Expression) -> Iterator[Constraint]:
    """Yield the constraints of an expression; raise an error for an expression that is not a conjunction."""
    match op:
        case And(left, right):
            yield from _constraints(left)
            yield from _constraints(right)
        case Compare(sign, Name(name), value) if (constant := _constant(value)) is not None:
            yield _constraint(name, sign, constant)
        case Compare(sign, value, Name(name)) if (constant := _constant(value)) is not None:
            yield _constraint(name, _MIRRORED[sign], constant)
        case Between(Name() as name, low, high):
            yield from _constraints(Compare(">=", name, low, op.at))
            yield from _constraints(Compare("<=", name, high, op.at))
        case _:
            raise DefinitionError(
                "a content filter is made of comparisons of an attribute with a value, joined by '&&'",
                op.at,
                hint="For anything else write a definition (a file .hf) with a filter or a state.",
            )


def _constraint(name: str, sign: ComparisonSign, value: Value) -> Constraint:
    kind: Type = "bool" if isinstance(value, bool) else "text" if isinstance(value, str) else "double"
    return Constraint(name, kind, _OPS[sign], value)


def _constant(op: Expression) -> Value | None:
    match op:
        case Number(value, None) | Text(value) | Truth(value):
            return value
        case Negative(Number(value, None)):
            return -value
    return None
