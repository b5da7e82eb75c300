"""Random topics, predicates, scopes and events, with every awkward value there is."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from holdfast.definition.app import App
from holdfast.definition.check import check
from holdfast.kinds.state.syntax import DefineState
from holdfast.lang import ops
from holdfast.model.event import Event
from holdfast.model.qos import TIMELY, Delivery
from holdfast.model.space import Rectangle
from holdfast.model.topic import Attribute, Topic

TOPIC = Topic(
    "Reading",
    (
        Attribute("a", "float"),
        Attribute("b", "float"),
        Attribute("n", "int"),
        Attribute("k", "text"),
        Attribute("flag", "bool"),
    ),
)

BIG = 2**53  # ints beyond it differ as ints and agree as floats
floats = st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, math.inf, -math.inf, math.nan, 1e308])
ints = st.sampled_from([-1, 0, 1, 2, 3, BIG, BIG + 1, 2**63 - 1, -(2**63)])
texts = st.sampled_from(["", "x", "y", "é", "a,b", "\x1f", "\x1e0", "x\x1fy"])
sources = st.sampled_from(["s1", "s2", "é", " s"])

# --- predicates ---

number_names = st.sampled_from(["a", "b", "n", "x"]).map(ops.Name)
numbers = st.recursive(
    number_names | st.sampled_from([-1.5, -1, 0, 0.5, 1, 2, 3]).map(ops.Number),
    lambda inner: (
        st.builds(ops.Arithmetic, st.sampled_from("+-*/"), inner, inner)
        | inner.map(ops.Negative)
        | inner.map(ops.Absolute)
    ),
    max_leaves=4,
)
text_values = st.sampled_from(["k", "source", "place"]).map(ops.Name) | texts.map(ops.Text)
truth_values = st.just(ops.Name("flag")) | st.booleans().map(ops.Truth)
signs = st.sampled_from(["<", "<=", "==", "!=", ">=", ">"])
equalities = st.sampled_from(["==", "!="])
atoms = (
    st.builds(ops.Compare, signs, number_names, st.sampled_from([BIG, BIG + 1]).map(ops.Number))
    | st.builds(ops.Compare, signs, number_names, numbers)
    | st.builds(ops.Compare, signs, numbers, numbers)
    | st.builds(ops.Compare, equalities, text_values, text_values)
    | st.builds(ops.Compare, equalities, st.just(ops.Name("flag")), truth_values)
    | st.builds(ops.Between, numbers, numbers, numbers)
    | st.just(ops.Name("flag"))
)
predicates = st.recursive(
    atoms,
    lambda inner: st.builds(ops.And, inner, inner) | st.builds(ops.Or, inner, inner) | inner.map(ops.Not),
    max_leaves=4,
)
exits = predicates | st.sampled_from([ops.Truth(True), ops.Truth(False)])

# --- scopes ---

REGIONS = (
    ops.DeclareRegion("hall", Rectangle((0.0,), (8.0,))),
    ops.DeclareRegion("east", Rectangle((0.0,), (4.0,)), "hall"),
    ops.DeclareRegion("west", Rectangle((5.0,), (8.0,)), "hall"),
    ops.DeclareRegion("nook", Rectangle((0.0,), (1.0,)), "east"),
    ops.DeclareRegion("shed", Rectangle((10.0,), (11.0,))),
)
PARENT = {"east": "hall", "west": "hall", "nook": "east"}
SPAN = {region.name: (region.shape.low[0], region.shape.high[0]) for region in REGIONS}

pers = st.sampled_from(
    [(), (("source",),), (("k",),), (("n",),), (("a",),), (("flag", "k"),), (("k",), ("source",)),
     (("source",), ("flag",), ("n",)), (("place",),)]
)  # fmt: skip
scopes = st.sampled_from(
    [(), (("hall",),), (("nook",), ("east",), ("hall",)), (("east", "west"), ("hall",)),
     (("nook", "hall", "shed"),), (("west", "shed"),)]
)  # fmt: skip


def chain(per, scope):
    """Naively, the scopes of an event as values, innermost first; the last one is the outermost."""

    def find(event):
        from support.naive import attribute

        named = [name for level in scope for name in level]
        around = []
        if named:
            around = [name for name in inward(event) if name in named]
            if not around:
                return []
        keys = []
        path = around[:1]
        for level in reversed(per):
            values = tuple(attribute(event, name) for name in level)
            if None in values:
                break
            values = tuple(plain(value) for value in values)
            path = [*path, values]
            keys.insert(0, tuple(path))
        if per and not named and not keys:
            return []
        return [*keys, *((name,) for name in around)] if per or named else [("everything",)]

    return find


def plain(value):
    """-0.0 and 0.0 are one key; true and 1 are two."""
    return (type(value).__name__, value + 0.0 if isinstance(value, float) else value)


def inward(event):
    """The regions that contain an event, innermost first."""
    if event.place in SPAN:
        first = event.place
    else:
        at = event.location[0] if event.location else math.nan
        depth = {"nook": 0, "east": 1, "west": 1, "shed": 1, "hall": 2}
        inside = [name for name, (low, high) in SPAN.items() if low <= at <= high]
        if not inside:
            return []
        first = min(inside, key=depth.__getitem__)
    found = [first]
    while found[-1] in PARENT:
        found.append(PARENT[found[-1]])
    return found


def label(per, scope, outermost):
    """The scope as a notification names it."""
    if not per and not scope:
        return None
    if scope:
        return outermost[-1]
    (values,) = outermost
    return join_values([text(value) for _, value in values])


def join_values(values):
    """Values with commas between them; of several one that has a comma itself is quoted."""
    if len(values) == 1:
        return values[0]
    some = [value.replace("\\", "\\\\").replace('"', '\\"') for value in values]
    pairs = zip(values, some, strict=True)
    return ",".join(f'"{s}"' if set(value) & {",", '"'} else value for value, s in pairs)


def text(value):
    return (
        str(value).lower()
        if isinstance(value, bool)
        else repr(value)
        if isinstance(value, float)
        else str(value)
    )


# --- subscriptions and events ---


@st.composite
def subscriptions(draw, delivery=TIMELY, most=3):
    """Subscriptions that share their scopes."""
    per, scope = draw(pers), draw(scopes)
    count = draw(st.integers(1, most))
    return [
        DefineState(f"c{i}", TOPIC.name, draw(predicates), draw(exits), per, scope, delivery)
        for i in range(count)
    ]


def conditions(statements):
    """The checked conditions of subscriptions over TOPIC and REGIONS."""
    return check(App((ops.DeclareTopic(TOPIC), *REGIONS, *statements))).conditions


@st.composite
def histories(draw, most=12, latest=6):
    """Events in no particular order of time, with ties, numbered as they come."""
    count = draw(st.integers(0, most))
    return [
        Event(
            TOPIC.name,
            draw(st.integers(0, latest)),
            draw(sources),
            {
                "a": draw(floats | st.none()),
                "b": draw(floats | st.none()),
                "n": draw(ints | st.none()),
                "k": draw(texts | st.none()),
                "flag": draw(st.booleans() | st.none()),
            },
            i,
            draw(st.none() | st.sampled_from([(0.0,), (1.0,), (3.0,), (4.5,), (6.0,), (9.0,), (10.5,)])),
            draw(st.none() | st.none() | st.sampled_from(["hall", "east", "nook", "nowhere"])),
        )
        for i in range(count)
    ]


ordered = st.builds(Delivery, st.integers(0, 3), st.sampled_from(["drop", "apply"]))
