"""SQL gives for every row what the closures give for the event."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Event
from holdfast.definition.parse import parse
from holdfast.kinds.state.condition import StateCondition
from holdfast.kinds.state.syntax import DefineState
from holdfast.lang import ops
from holdfast.lang.expressions import event as scalar
from holdfast.lang.expressions import sql
from holdfast.model.qos import TIMELY
from support.histories import TOPIC, conditions, exits, histories, pers, predicates
from support.runtimes import session

EXAMPLES = int(os.environ.get("HOLDFAST_EXAMPLES") or 30) // 10
SCHEMA = (
    "source string, place string, x double, y double, z double, "
    "a double, b double, n bigint, k string, flag boolean"
)


@pytest.fixture(scope="module", autouse=True)
def running():
    """Columns cannot be made before Spark runs."""
    return session()


def rows(events: list[Event]):
    """The events as a DataFrame of the declared kinds."""
    found = [
        (
            e.source,
            e.place,
            *(e.location or ()),
            *[None] * (3 - len(e.location or ())),
            *e.attributes.values(),
        )
        for e in events
    ]
    return session().createDataFrame(found, SCHEMA).coalesce(1)


def expr(text):
    """A Column of SQL."""
    from pyspark.sql.functions import expr

    return expr(text)


def satisfies(op):
    """Whether a row satisfies a core predicate, where null does not."""
    return expr(f"coalesce({sql.predicate(op, TOPIC)}, false)")


def evaluate(events, columns):
    """The value of each column for each event."""
    named = [column.alias(str(i)) for i, column in enumerate(columns)]
    return [tuple(row) for row in rows(events).select(*named).collect()]


@settings(max_examples=EXAMPLES)
@given(
    tests=st.lists(st.tuples(predicates, exits), min_size=8, max_size=12),
    events=histories(most=30).filter(len),
)
def test_sql_predicates_agree_with_the_closures(tests, events):
    subs = [DefineState(f"c{i}", TOPIC.name, *test) for i, test in enumerate(tests)]
    core = [op for c in conditions(subs) for op in (c.enter, c.exit)]
    assert evaluate(events, [satisfies(op) for op in core]) == [
        tuple(scalar.predicate(op, TOPIC)(event) for op in core) for event in events
    ]


@settings(max_examples=5, derandomize=True)
@given(events=histories(most=30).filter(len))
def test_sql_keys_agree_with_the_closures(events):
    of = [StateCondition("c", TOPIC, ops.Truth(True), ops.Truth(False), per, None, TIMELY) for per in PERS]
    wanted = [scalar.chain(condition.keys, condition.forest) for condition in of]
    columns = [expr(key) for condition in of for key in sql.keys(condition)]
    for event, found in zip(events, evaluate(events, columns), strict=True):
        expected = [
            chain(event) or (None,) * max(1, len(c.keys)) for c, chain in zip(of, wanted, strict=True)
        ]
        assert list(found) == [key for keys in expected for key in keys]


PERS = [(), (("source",),), (("k",),), (("n",),), (("flag", "k"),), (("k",), ("source",)),
        (("source",), ("flag",), ("n",)), (("place",),), (("n",), ("k", "source"))]  # fmt: skip


def test_the_histories_contain_all_keys_that_sql_supports():
    @settings(max_examples=200, database=None)
    @given(per=pers)
    def try_keys(per):
        assert per in PERS or per == (("a",),)

    try_keys()


@pytest.mark.parametrize("clause", ["per value", "per room, value", "scope hall", "per room scope hall"])
def test_keys_that_only_python_can_compute_have_no_sql(clause):
    text = f"""
    topic T (value float, room text)
    region hall = rectangle (0, 0) (9, 9)
    state S on T [value > 1; value < 0] {clause}
    """
    (condition,) = parse(text).check().conditions
    assert sql.keys(condition) is None


LEAST, MOST = -(2**63), 2**63 - 1


TRAPS = [
    ("a > 25", {"a": float("nan")}, False),
    ("a >= b", {"a": float("nan"), "b": float("nan")}, False),
    ("a < b", {"a": 1.0, "b": float("nan")}, False),
    ("a == b", {"a": float("nan"), "b": float("nan")}, False),
    ("a != b", {"a": float("nan"), "b": 1.0}, False),
    ("a - a <= 0", {"a": float("inf")}, False),
    ("a / b > 0", {"a": 1.0, "b": 0.0}, False),
    ("a / b > 0", {"a": 1.0, "b": -0.0}, False),
    ("n + 1 < 0", {"n": MOST}, False),
    ("n - 1 > 0", {"n": LEAST}, False),
    ("n * 2 < 0", {"n": MOST}, False),
    ("-n < 0", {"n": LEAST}, False),
    ("abs(n) < 0 || abs(n) >= 0", {"n": LEAST}, False),
    ("abs(n) > 0", {"n": LEAST + 1}, True),
    (f"n > {MOST - 1}", {"n": MOST}, True),
    (f"n >= {LEAST}", {"n": LEAST}, True),
    ("n == 9007199254740992.0", {"n": 2**53 + 1}, True),
    ("n == 9007199254740992", {"n": 2**53 + 1}, False),
    ('k == "it\'s ${user} \\\\n"', {"k": "it's ${user} \\n"}, True),
    ("flag || a > 1", {"a": 2.0}, True),
    ("!(flag && a > 1)", {"a": 2.0}, False),
    ("y >= 0", {}, False),
]


@pytest.fixture(scope="module")
def edge_case_rows(running):
    """The results of SQL for the events of all edge cases, one row each, by all their predicates."""
    events = [event_of(values) for _, values, _ in TRAPS]
    return evaluate(events, [satisfies(condition_of(predicate).enter) for predicate, _, _ in TRAPS])


def condition_of(predicate):
    text = (
        f"topic Reading (a float, b float, n int, k text, flag bool)\nfilter F on Reading where {predicate}"
    )
    (condition,) = parse(text).check().conditions
    return condition


def event_of(values):
    return Event("Reading", 0, "s", {a.name: values.get(a.name) for a in TOPIC.attributes})


@pytest.mark.parametrize(("at", "trap"), [*enumerate(TRAPS)], ids=[predicate for predicate, _, _ in TRAPS])
def test_listed_edge_cases_have_their_documented_result(at, trap, edge_case_rows):
    predicate, values, holds = trap
    assert scalar.predicate(condition_of(predicate).enter, TOPIC)(event_of(values)) is holds
    assert edge_case_rows[at][at] is holds


def test_sql_and_closures_agree_on_every_edge_case(edge_case_rows):
    closures = [scalar.predicate(condition_of(predicate).enter, TOPIC) for predicate, _, _ in TRAPS]
    assert edge_case_rows == [
        tuple(message(event_of(values)) for message in closures) for _, values, _ in TRAPS
    ]
