"""Parse and print the notation of the thesis' tables: `A := ((closest, Temperature, null, null), …)`.

Numbers are seconds and metres. Holdfast adds to the notation `count` and `stddev`, and `pool`
(`model.query.PooledDimension`). It also adds `v ± r` for everything within a distance, and keys as parameters
after the fourth: `(multiple: separate, null, null, D_road)`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from ...errors import DefinitionError
from ...kernels.functions import AGGREGATES
from ...lang.literal import finite, is_name, read_exact, write_text
from ...lang.nodes import (
    as_token,
    as_tree,
    is_tree,
    name_of,
    one_of,
    parts_of,
    place,
    text_of,
    word_of,
    wrong,
)
from ...lang.ops import Notation, Trigger
from ...lang.show import show_coordinate, show_expression
from ...model.instant import EARLIEST, LATEST, NEVER, SECOND, show_duration
from ...model.query import (
    DIMENSIONS,
    HERE,
    HOWS,
    WHOLE,
    Aggregate,
    Ball,
    Closest,
    Dimension,
    Function,
    Group,
    How,
    Index,
    MemberSet,
    Multiple,
    Parameter,
    PooledDimension,
    Query,
    QueryRange,
    Whole,
)
from .origin import in_thesis_notation
from .parse import DIMENSION, STATUSES, query_word, traits_of, trigger
from .show import show_detect, show_traits
from .syntax import Collide, DefineComponent

if TYPE_CHECKING:
    from lark import Token, Tree

    from ...lang.nodes import Node

_OPERATORS = ("closest", "aggregate", "multiple", "pool")
_DOMAIN: dict[Dimension, str] = {"topic": "D_P", "time": "D_T", "location": "D_L", "status": "D_S"}

# --- reading -----------------------------------------------------------------------------------


def table(parts: list[Any]) -> DefineComponent:
    """Parse `N … Q … P^n … A^n … P^x … A^x …`."""
    name, *rest = parts
    queries = [node for node in rest if is_tree(node) and node.data == "definition"]
    enter, hold, sets, leave, hold_too, sets_too, *traits = rest[len(queries) :]
    return DefineComponent(
        text_of(name),
        tuple(_definition(node) for node in queries),
        trigger(enter, hold, sets),
        trigger(leave, hold_too, sets_too),
        **traits_of(traits),
        at=place(name),
    )


def _definition(node: Tree[Token]) -> tuple[str, Query]:
    """Parse a query and its name. It has four parameters, and further ones for keys."""
    name, *parameters = cast("list[Any]", node.children)
    if len(parameters) < 4:
        message = f"a query has four parameters, this one {len(parameters)}"
        hint = "They are for topic, time, location and status."
        raise DefinitionError(message, place(name, parameters[-1]), hint=hint)
    made = {d: _parameter(p, d) for d, p in zip(DIMENSIONS, parameters, strict=False)}
    return query_word(name), Query(**made, each=tuple(_key(p) for p in parameters[4:]))


def _parameter(node: Tree[Token], dimension: Dimension) -> Any:
    """Parse the parameter of a dimension."""
    operator, how, *arguments = cast("list[Any]", node.children)
    one_of(operator, _OPERATORS, "an operator")
    if len(arguments) != 3:
        message = "a parameter is (operator, value, function, group)"
        raise DefinitionError(message, place(node), hint="Write null for what it lacks.")
    index, function, group = arguments
    match str(operator):
        case "closest":
            return Closest(_index(index, dimension))
        case "aggregate":
            return Aggregate(_functions(function), _group(group, dimension))
        case "multiple":
            if how is None:
                raise DefinitionError("multiple what?", place(operator), hint=f"multiple: {', '.join(HOWS)}")
            return Multiple(cast(How, one_of(how, HOWS, "multiple")), _group(group, dimension))
        case _ if dimension in ("location", "status"):
            return PooledDimension(_group(group, dimension))
    raise DefinitionError("only locations and statuses can be pooled", place(operator))


def _key(node: Tree[Token]) -> str:
    """Return the attribute `road` of `(multiple: separate, null, null, D_road)`."""
    *_, domain = cast("list[Any]", node.children)
    word = "" if is_tree(domain) else str(domain)
    key = word.removeprefix("D_")
    if key == word or not is_name(key) or key in DIMENSION:
        raise DefinitionError("expected an attribute to keep apart", place(domain), hint="As in: D_road")
    return key


def _functions(node: Node) -> Function | tuple[tuple[str, Function], ...]:
    """Parse one function, or pairs of function and attribute."""
    if not is_tree(node):
        return _one_function(node)
    pairs = [parts_of(pair) for pair in parts_of(node)]
    if any(len(pair) != 2 or any(map(is_tree, pair)) for pair in pairs):
        hint = "As in: {(avg, level), (max, speed)}."
        raise DefinitionError("expected functions, each with an attribute", place(node), hint=hint)
    return tuple((name_of(as_token(name)), _one_function(function)) for function, name in pairs)


def _one_function(node: Node) -> Function:
    return one_of(as_token(node), tuple(AGGREGATES), "a function")


def _group(node: Node, dimension: Dimension) -> Group:
    """Parse a group: a domain, a range, a set of members, or a ball."""
    if not is_tree(node) and dimension != "topic":
        one_of(as_token(node), (_DOMAIN[dimension],), "the domain")
        return WHOLE
    parts = parts_of(node)
    match as_tree(node).data if is_tree(node) else None:
        case "sequence" if len(parts) == 2 and dimension in ("time", "location"):
            return QueryRange(_index(parts[0], dimension), _index(parts[1], dimension))
        case "collection":
            return MemberSet(tuple(_index(part, dimension) for part in parts))
        case "ball" if dimension == "location":
            return Ball(_index(parts[0], dimension), _radius(as_token(parts[1])))
    hint = "As in: {Rain, Snow}." if dimension == "topic" else "As in: (-30^r, 0^r), {a, b} or D_L."
    raise DefinitionError(f"expected a group of values of {dimension}", place(node), hint=hint)


def _index(node: Node, dimension: Dimension) -> Index:
    """Parse an index in a dimension."""
    token = as_token(node)
    if dimension in ("topic", "status"):
        if is_tree(node) or token.type not in ("NAME", "STRING"):
            raise DefinitionError(f"expected the name of a {dimension}", place(node))
        return Index(word_of(token) if dimension == "topic" else one_of(token, STATUSES, "a status"))
    if dimension == "time" and not is_tree(node) and token.type in ("SIGNED", "RELATIVE"):
        return _instant(token)
    if dimension == "location":
        return _location(node)
    raise DefinitionError("expected a time, such as -30^r", place(node))


def _location(node: Node) -> Index:
    """Parse the name of a place, or coordinates in metres."""
    token = as_token(node)
    if not is_tree(node) and token.type == "STRING":
        return Index(text_of(token))
    coordinates = [as_token(part) for part in (parts_of(node) if is_tree(node) else [node])]
    if not coordinates or any(is_tree(c) or c.type not in ("SIGNED", "RELATIVE") for c in coordinates):
        raise DefinitionError("expected a location, such as 0^r, 7 or (3, 4)", place(node))
    numbers = [_number(c) for c in coordinates]
    point = tuple(float(number) for number, _ in numbers)
    relative = any(relative for _, relative in numbers)
    return HERE if relative and point == (0.0,) else Index(point, relative)


def _instant(token: Token) -> Index:
    """Parse a time in seconds, and return it in microseconds."""
    number, relative = _number(token)
    instant = number * SECOND
    if instant.denominator != 1:
        raise DefinitionError("a time must be a whole number of microseconds", place(token))
    if not (-NEVER < instant < NEVER if relative else EARLIEST <= instant <= LATEST):
        raise DefinitionError("the time is too far away", place(token))
    return Index(int(instant), relative)


def _radius(token: Token) -> float:
    """Parse a distance in metres, which must not be negative."""
    radius, _ = _number(token)
    if radius < 0:
        raise DefinitionError("a distance cannot be negative", place(token))
    return float(radius)


def _number(token: Token) -> tuple[Fraction, bool]:
    """Return a number with the precision of a float, and whether it is relative."""
    text = token.removesuffix("^r")
    try:
        number = read_exact(text.lstrip("+-"))
        finite(number)
    except ValueError as error:
        raise wrong(error, token) from None
    return -number if text.startswith("-") else number, text != str(token)


# --- showing -----------------------------------------------------------------------------------


def show_component(statement: DefineComponent | Collide, notation: Notation) -> str:
    """Print a statement about components in either notation."""
    if isinstance(statement, Collide):
        return f"collide {statement.function}"
    return show_detect(statement) if notation == "readable" else show_table(statement)


def show_table(statement: DefineComponent) -> str:
    """Print a component as a table of the thesis. A component without queries is printed in the readable
    form."""
    if not statement.inputs:
        return show_detect(statement)
    queries = [_show_query(name or "A", query) for name, query in statement.inputs]
    lines = [
        f"N {write_text(statement.name)}",
        "Q " + ";\n  ".join(queries),
        *_show_trigger(statement.enter, "n"),
        *_show_trigger(statement.exit, "x"),
        *show_traits(statement),
    ]
    return "\n".join(lines)


def _show_trigger(trigger: Trigger, which: str) -> list[str]:
    held = f" for {show_duration(trigger.hold)}" if trigger.hold else ""
    values = [(name, show_expression(in_thesis_notation(value, name))) for name, value in trigger.sets]
    sets = " ".join(f"{name} := {value};" for name, value in values)
    when = f"P^{which} {show_expression(in_thesis_notation(trigger.when))}{held}"
    return [when, f"A^{which} {sets}"] if sets else [when]


def _show_query(name: str, query: Query) -> str:
    shown = [_show_parameter(parameter, dimension) for dimension, parameter in query.parameters()]
    shown += [f"(multiple: separate, null, null, D_{key})" for key in query.each]
    return f"{name} := ({(',' + chr(10) + ' ' * (len(name) + 9)).join(shown)})"


def _show_parameter(parameter: Parameter, dimension: Dimension) -> str:
    match parameter:
        case Closest(index):
            return f"(closest, {_show_index(index, dimension)}, null, null)"
        case Aggregate(functions, group):
            shown = str(functions)
            if not isinstance(functions, str):
                shown = "{" + ", ".join(f"({function}, {name})" for name, function in functions) + "}"
            return f"(aggregate, null, {shown}, {_show_group(group, dimension)})"
        case Multiple(how, group):
            return f"(multiple: {how}, null, null, {_show_group(group, dimension)})"
        case PooledDimension(group):
            return f"(pool, null, null, {_show_group(group, dimension)})"


def _show_group(group: Group, dimension: Dimension) -> str:
    match group:
        case Whole():
            return _DOMAIN[dimension]
        case QueryRange(low, high):
            return f"({_show_index(low, dimension)}, {_show_index(high, dimension)})"
        case MemberSet(values):
            return "{" + ", ".join(_show_index(index, dimension) for index in values) + "}"
        case Ball(centre, radius):
            return f"{_show_index(centre, dimension)} ± {show_coordinate(radius)}"


def _show_index(index: Index, dimension: Dimension) -> str:
    mark = "^r" if index.relative else ""
    match index.value:
        case int(instant):
            whole, rest = divmod(abs(instant), SECOND)
            digits = f"{whole}.{rest:06d}".rstrip("0").rstrip(".")
            return f"{'-' * (instant < 0)}{digits}{mark}"
        case tuple(point):
            coordinates = [show_coordinate(c) + mark for c in point] or ["0^r"]
            return coordinates[0] if len(coordinates) == 1 else f"({', '.join(coordinates)})"
        case str(name):
            return name if dimension != "location" and is_name(name) else write_text(name)
