"""Random definitions, typed predicates and readings; and the plain meaning of a predicate."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from holdfast.definition.app import App
from holdfast.kinds.fold.syntax import DefineFold
from holdfast.kinds.levels.syntax import DefineLevels
from holdfast.kinds.overlap.syntax import DefineOverlap
from holdfast.kinds.relation.syntax import DeclareGroup, DeclareRoute, DefineRelation
from holdfast.kinds.state.syntax import DefineState
from holdfast.lang.literal import RESERVED_WORDS, STARTING_WORDS, is_name
from holdfast.lang.ops import (
    Absolute,
    And,
    Arithmetic,
    Between,
    Call,
    Case,
    Compare,
    DeclareRegion,
    DeclareTopic,
    Expect,
    Expression,
    Given,
    Let,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Silent,
    Text,
    Trigger,
    Truth,
    UseGazetteer,
)
from holdfast.model.allen import BETWEEN
from holdfast.model.guard import AT_ONCE, INITIALLY, PLAIN, Care, Hold, Roster
from holdfast.model.qos import Correct, Delivery
from holdfast.model.relation import Setting
from holdfast.model.space import Circle, Polygon, Rectangle
from holdfast.model.topic import KINDS, Attribute, Topic
from holdfast.model.unit import UNITS

# --- anything that can be written --------------------------------------------------------------

WORDS = ("value", "état", "x1", "_y", "U", "region", "state", "case", "from", "given", "drop", "s", "m", "e5")
names = st.sampled_from(WORDS) | st.from_regex(r"[a-zA-Zµ_][a-z0-9_]{0,5}", fullmatch=True).filter(is_name)
labels = names.filter(lambda name: name not in STARTING_WORDS)
units = st.none() | st.sampled_from(sorted(UNITS))
values = st.integers(-(2**64), 2**64) | st.floats(allow_nan=False, allow_infinity=False)
numbers = st.builds(Number, values, units)
texts = st.builds(Text, st.text(max_size=8) | st.sampled_from(sorted(RESERVED_WORDS)))
truths = st.builds(Truth, st.booleans())
comparisons = st.sampled_from(("<", "<=", "==", "!=", ">=", ">"))
durations = st.integers(0, 10**12) | st.sampled_from((1, 1_000, 30_000_000, 3_600_000_000))


def _compound(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(Arithmetic, st.sampled_from(("+", "-", "*", "/")), inner, inner),
        st.builds(Compare, comparisons, inner, inner),
        st.builds(And, inner, inner),
        st.builds(Or, inner, inner),
        st.builds(Between, inner, inner, inner),
        st.builds(Negative, inner),
        st.builds(Absolute, inner),
        st.builds(Not, inner),
    )


calls = st.builds(
    Call,
    st.sampled_from(("distance", "spread", "radius", "travel_time")),
    st.tuples(names) | st.tuples(names, names | st.integers(0, 99).map(str)),
    st.none() | st.text(max_size=5),
)
expressions = st.recursive(
    st.one_of(
        st.builds(Name, names), calls, numbers, texts, truths, st.builds(Silent, durations.filter(bool))
    ),
    _compound,
    max_leaves=12,
)

coordinates = st.floats(-1e6, 1e6)
points = st.tuples(coordinates, coordinates)
shapes = st.one_of(
    st.tuples(points, points).map(
        lambda p: Rectangle(*(tuple(map(f, zip(*p, strict=True))) for f in (min, max)))
    ),
    st.builds(Circle, points, st.floats(1e-3, 1e6)),
    st.builds(Polygon, st.just(((0.0, 0.0), (1.5, 0.0), (0.0, 1e-7)))),
)
levels = st.lists(st.lists(names | st.text(max_size=5), min_size=1, max_size=3).map(tuple), max_size=3).map(
    tuple
)
deliveries = st.builds(Delivery, st.none() | durations, st.sampled_from(("drop", "apply")))
_corrected = st.builds(Delivery, durations, st.builds(Correct, durations.filter(bool)))
holds = st.one_of(
    st.just(AT_ONCE),
    st.builds(Hold, durations.filter(bool)),
    st.builds(lambda count: Hold(readings=count), st.integers(1, 9)),
    st.builds(lambda table, column: Hold(column=f"{table}.{column}"), names, names),
)
_tables = names.filter(lambda name: name != "gazetteer")
lengths = st.none() | durations.filter(bool)
cares = st.just(PLAIN) | st.builds(
    Care,
    holds,
    holds,
    lengths,
    lengths,
    st.sampled_from(INITIALLY),
    st.booleans(),
    st.none() | st.builds(Roster, st.none() | st.text(max_size=5)) | st.builds(Roster, st.none(), _tables),
)
attributes = st.builds(Attribute, names, st.sampled_from(KINDS), units)
topics = st.builds(Topic, names, st.lists(attributes, max_size=4).map(tuple))
givens = st.builds(
    Given,
    names,
    st.lists(
        st.lists(st.none() | numbers | texts | truths, min_size=1, max_size=3).map(tuple),
        min_size=1,
        max_size=4,
    ).map(tuple),
    durations.filter(bool),
    durations,
    st.none() | st.text(max_size=5),
    st.none() | st.text(max_size=5),
)
marks = st.tuples(
    st.sampled_from(("ingress", "egress", "atomic", "unknown", "known", "raised", "lowered")), durations
)
expects = st.builds(Expect, names, st.lists(marks, max_size=3).map(tuple), st.none() | st.text(max_size=5))
_rungs = st.lists(st.tuples(names, expressions, expressions), min_size=1, max_size=3)
ladders = st.builds(
    lambda name, topic, rungs, *clauses: DefineLevels(
        name, tuple(DefineState(rung, topic, enter, exit, *clauses) for rung, enter, exit in rungs)
    ),
    names,
    names,
    _rungs,
    levels,
    levels,
    deliveries,
)
_bounds = (st.none() | durations.filter(bool), st.none() | st.sampled_from((0.5, 50.0, 1e3)))
_some = st.lists(names, max_size=2, unique=True).map(tuple)
aligned = st.one_of(
    st.builds(
        DefineOverlap,
        names,
        st.lists(names | st.text(min_size=1, max_size=5), min_size=2, max_size=3).map(tuple),
        st.just("overlapping"),
        *_bounds,
        _some,
    ),
    st.builds(DefineOverlap, names, st.tuples(names, names), st.sampled_from(BETWEEN), *_bounds, _some),
)
_few = st.builds(Number, st.integers(0, 9))
folds = st.one_of(
    st.builds(DefineFold, names, names, _few, levels.filter(bool), st.none(), st.none(), st.none() | _few),
    st.builds(
        DefineFold,
        names,
        names,
        _few,
        st.just(()),
        st.sampled_from((0.5, 10.0)),
        st.just(80.0),
        st.none() | _few,
    ),
)
quoted = st.text(max_size=5)
turns = st.builds(Trigger, expressions, durations)
amounts = st.floats(0, 1e6)
settings = st.one_of(
    st.builds(Setting, names, amounts),
    st.builds(Setting, names, amounts, names),
    st.builds(Setting, names, amounts, quoted, st.just(True)),
)
relates = st.one_of(
    st.builds(DeclareGroup, names, names, st.lists(quoted, min_size=1, max_size=3).map(tuple) | quoted),
    st.builds(
        DeclareRoute,
        names,
        names,
        names,
        st.lists(st.tuples(quoted, coordinates), min_size=1, max_size=3).map(tuple) | quoted,
    ),
    st.builds(
        DefineRelation,
        names | quoted,
        st.lists(st.tuples(names, names), max_size=2).map(tuple),
        st.none() | quoted | st.lists(st.tuples(quoted, quoted), min_size=1, max_size=3).map(tuple),
        turns,
        st.none() | turns,
        accuracy=st.none() | names,
        delivery=deliveries,
    ),
    st.builds(
        DefineRelation,
        names,
        enter=turns,
        using=st.sampled_from(("range_ring", "hierarchy")),
        settings=st.lists(settings, max_size=3).map(tuple),
        delivery=deliveries,
    ),
    st.builds(
        DefineRelation,
        names,
        best=st.lists(names, min_size=1, max_size=3).map(tuple),
        by=durations,
        delivery=deliveries,
    ),
)
statements = st.one_of(
    relates,
    st.builds(Let, names, expressions),
    st.builds(DeclareTopic, topics),
    st.builds(DeclareRegion, names | st.text(max_size=5), st.none() | shapes, st.none() | names),
    st.builds(UseGazetteer, st.text(max_size=8)),
    st.builds(
        DefineState,
        names,
        names,
        expressions,
        expressions | st.just(Truth(True)),
        levels,
        levels,
        deliveries | _corrected,
        cares,
    ),
    ladders,
    aligned,
    folds,
    st.builds(
        DefineState,
        labels,
        st.none(),
        expressions,
        expressions,
        levels,
        levels,
        deliveries | _corrected,
        cares,
    ),
    st.builds(
        Case,
        st.text(max_size=8),
        st.lists(givens, max_size=2).map(tuple),
        st.lists(expects, max_size=2).map(tuple),
        st.none() | durations,
    ),
)
apps = st.lists(statements, max_size=6).map(App)

# --- what is right by construction -------------------------------------------------------------

TOPIC = Topic(
    "Reading",
    (
        Attribute("value", "float"),
        Attribute("other", "float"),
        Attribute("n", "int"),
        Attribute("ok", "bool"),
        Attribute("name", "text"),
    ),
)

_small = st.integers(-6, 6) | st.sampled_from((-2.5, -0.1, 0.0, 0.3, 1.5, 2.0, 4.75))
_constants = st.builds(Number, _small)
_quantities = st.recursive(
    st.one_of(st.sampled_from((Name("value"), Name("value"), Name("n"), Name("other"))), _constants),
    lambda inner: st.one_of(
        st.builds(Arithmetic, st.sampled_from(("+", "-", "*", "/")), inner, inner),
        st.builds(Negative, inner),
        st.builds(Absolute, inner),
    ),
    max_leaves=4,
)
_simple = st.one_of(
    st.builds(Compare, comparisons, st.sampled_from((Name("value"), Name("n"))), _constants),
    st.builds(Compare, comparisons, _quantities, _constants),
    st.builds(Compare, comparisons, _quantities, _quantities),
    st.builds(Between, _quantities, _constants, _constants),
    st.builds(
        Compare, st.sampled_from(("==", "!=")), st.just(Name("name")), st.builds(Text, st.sampled_from("ab"))
    ),
    st.just(Name("ok")),
    truths,
)
predicates = st.recursive(
    _simple,
    lambda inner: st.one_of(
        st.builds(And, inner, inner),
        st.builds(Or, inner, inner),
        st.builds(Not, inner),
        st.builds(Compare, st.sampled_from(("==", "!=")), inner, inner),
    ),
    max_leaves=5,
)

_floats = st.sampled_from(
    (
        -math.inf,
        -6.0,
        -2.5,
        -1e-9,
        0.0,
        0.1,
        0.3,
        1.0,
        1.5,
        2.0,
        2.5,
        3.0,
        4.75,
        6.0,
        1e300,
        math.inf,
        math.nan,
    )
)
readings = st.fixed_dictionaries(
    {},
    optional={
        "value": _floats | st.floats(-7, 7),
        "other": _floats,
        "n": st.integers(-7, 7),
        "ok": st.booleans(),
        "name": st.sampled_from("abc"),
    },
)

# --- the plain meaning of what is written ------------------------------------------------------

_COMPARE = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq,
    "!=": operator.ne, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip


def meaning(op: Expression, reading: Mapping[str, Any]) -> Any:
    """The value of an expression as written (without units); ``None`` is missing or unknown."""
    match op:
        case Name(name):
            found = reading.get(name)
            return None if found != found else found
        case Number(value) | Text(value) | Truth(value):
            return value
        case Compare(sign, left, right):
            a, b = meaning(left, reading), meaning(right, reading)
            return None if a is None or b is None else _COMPARE[sign](a, b)
        case Between(arg, low, high):
            return meaning(And(Compare(">=", arg, low), Compare("<=", arg, high)), reading)
        case And(left, right):
            sides = [meaning(left, reading), meaning(right, reading)]
            return False if False in sides else None if None in sides else True
        case Or(left, right):
            sides = [meaning(left, reading), meaning(right, reading)]
            return True if True in sides else None if None in sides else False
        case Not(arg):
            inner = meaning(arg, reading)
            return None if inner is None else not inner
        case Negative(arg):
            inner = meaning(arg, reading)
            return None if inner is None else -inner
        case Absolute(arg):
            inner = meaning(arg, reading)
            return None if inner is None else abs(inner)
        case Arithmetic(sign, left, right):
            a, b = meaning(left, reading), meaning(right, reading)
            if a is None or b is None or (sign == "/" and b == 0):
                return None
            apply = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}[sign]
            result = apply(float(a), float(b))
            return None if math.isnan(result) else result
