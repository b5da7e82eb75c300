"""The meaning of content matching, one value at a time; shares no code with the index or the relations."""

from __future__ import annotations

import operator

from hypothesis import strategies as st

from holdfast.network.protocols.cbps.content import Constraint, Filter

COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
    "!=": operator.ne,
    "prefix": str.startswith,
}

TEXTS = ["", "a", "b", "aa", "ab", "ba"]
NUMBERS = [n / 2 for n in range(-2, 9)]

SAMPLES = (
    [n / 4 for n in range(-12, 25)]
    + [float("inf"), float("-inf"), 2**70]
    + [
        x + y + z
        for x in ("", "\0", "a", "b", "c")
        for y in ("", "\0", "a", "b", "c")
        for z in ("", "\0", "b")
    ]
    + [False, True]
)
"""At least one value from every part into which constraints with the constants above cut the values."""


def is_of_type(kind, value):
    if isinstance(value, bool | str) or kind in ("bool", "text"):
        return isinstance(value, {"bool": bool, "text": str}.get(kind, ()))
    return kind == "double" or (-(2**63) <= value < 2**63 and value == int(value))


def holds(constraint, value):
    """Whether a value satisfies a constraint: of its type, and so compared."""
    if not is_of_type(constraint.type, value):
        return False
    return constraint.op == "any" or COMPARE[constraint.op](value, constraint.value)


def satisfies(filter_, content):
    return all(c.name in content and holds(c, content[c.name]) for c in filter_.constraints)


def values(filter_, name):
    """The samples that a filter allows for an attribute."""
    mine = [c for c in filter_.constraints if c.name == name]
    return {(type(v) is bool, v) for v in SAMPLES if all(holds(c, v) for c in mine)}


def relations_of(row, column, fields, contents):
    """The set relations, with sets."""
    mine, theirs = ({c.name for c in item.constraints} for item in (row, column))
    if not (mine <= theirs if fields == "subset" else mine >= theirs):
        return False
    pairs = [(values(row, name), values(column, name)) for name in mine & theirs]
    match contents:
        case "subset":
            return all(a <= b for a, b in pairs)
        case "superset":
            return all(a >= b for a, b in pairs)
    return all(a & b for a, b in pairs)


@st.composite
def constraints(draw, names=("x", "y", "z"), types=("long", "double", "text", "bool")):
    kind = draw(st.sampled_from(types))
    op = draw(st.sampled_from(["any", *COMPARE] if kind == "text" else ["any", *COMPARE][:-1]))
    value = {
        "long": st.integers(-1, 4),
        "double": st.sampled_from(NUMBERS),
        "text": st.sampled_from(TEXTS),
        "bool": st.booleans(),
    }[kind]
    return Constraint(draw(st.sampled_from(names)), kind, op, None if op == "any" else draw(value))


def filters(names=("x", "y", "z"), types=("long", "double", "text", "bool"), most=4):
    return st.lists(constraints(names, types), max_size=most).map(lambda found: Filter(tuple(found)))


numeric_filters = filters(types=("long", "double"))
"""Filters over numbers only, which are related to one another more often."""


def contents(names=("x", "y", "z")):
    values = st.sampled_from([*TEXTS, 0.0, 1, 2.5, False, True]) | st.sampled_from(SAMPLES)
    return st.dictionaries(st.sampled_from(names), values, max_size=3)
