"""Which components run in columns, which do not and why, and what is left to the reference machine."""

from __future__ import annotations

import pyarrow as pa
import pytest

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.definition.show import show
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.component.plan_columns import plan_component

TOPICS = "topic T (value float, n int, road text, wet bool) topic U (value float) topic Car ()\n"
EVERY = "an event of a query that keeps nothing apart concerns every key"
B = "state B on T enter value > 1 exit value < 0 "


def made(state):
    components = check(parse(TOPICS + state)).of(ComponentCondition)
    return plan_component(components[-1], components)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (
            "state S A = avg T over 5 s within 9 m of here enter A.value > 1 exit true here Car",
            "A looks at more than the latest around each source of Car",
        ),
        (
            B + "state S A = B max location max status enter A.n > 1 exit true",
            "A aggregates both locations and statuses",
        ),
        (
            B + "state S A = any B max status enter A.n > 1 exit true",
            "A aggregates statuses of several locations",
        ),
        (
            "state B on T enter value > 1 exit true state S A = ingress B enter A.valid exit true",
            "A chooses by status",
        ),
        ("state S A = each of (T, U) enter A.value > 1 exit true", "A keeps topics apart"),
        (
            "state S A = any of (T, U) any location enter A.value > 1 exit true",
            "A looks at several topics, and chooses or makes one of locations or statuses",
        ),
        (
            "state S A = max of (T, U) max location enter A.value > 1 exit true",
            "A looks at several topics, and chooses or makes one of locations or statuses",
        ),
        (
            B + "state S A = any of (B, T) enter A.value > 1 exit true",
            "A looks at starts and ends of several topics",
        ),
        (
            "state S A = any of (T, U) enter A.value > 1 exit true here Car",
            "A looks at several topics around each source of Car",
        ),
        ("state S A = ingress T enter A.value > 1 exit true", "A chooses by status"),
        (
            "state S A = T any time over 5 s enter A.value > 1 exit true",
            "A looks at times that are neither a window up to now nor the nearest",
        ),
        (
            "state S A = T at -1 s max location enter A.value > 1 exit true",
            "A aggregates what was nearest some time ago",
        ),
        (
            "state S A = T max location within 9 m of here enter A.value > 1 exit true here Car",
            "A looks at a range around each source of Car",
        ),
        (
            "state S A = T each location B = U enter A.value > B.value for 5 s exit true",
            f"{EVERY}, and a guard waits",
        ),
        (
            "state S A = T each location B = U enter A.value > B.value exit true tick 1 s",
            f"{EVERY}, and it ticks",
        ),
        (
            "state S A = T each location B = avg U ever enter A.value > B.value exit true",
            f"{EVERY}, and it looks at all time",
        ),
        (
            "state S A = T each location B = U enter A.value > B.value exit true here Car",
            f"{EVERY} around each source of Car",
        ),
        (
            "state S A = T each location B = U enter A.value else 0 < B.value exit true",
            f"{EVERY} that is known, whatever is known of it",
        ),
        (
            "state S A = T each location B = U enter B.value > 1 exit A.value > 1",
            f"{EVERY} that is known, whatever is known of it",
        ),
        ("state S on T each status enter value > 1 exit true", "it chooses by status"),
        (
            "state S A = avg T ever enter A.value > 1 for 5 s exit A.value < 0",
            "A looks at all time, and a guard waits",
        ),
        (
            "state S A = T each source B = (avg value) T ever each source enter B.value > 1 exit true",
            "B looks at all time, and n has no function",
        ),
        (
            "state S A = avg T ever any location enter A.value > 1 exit true",
            "A looks at all time, and A shows several places at other times than now",
        ),
        (
            "state S A = avg T ever enter A.value > 1 && A.time < now exit true",
            "A looks at all time, and columns do not tell all of a predicate",
        ),
        (
            "state S A = avg T ever enter A.value > 1 exit A.value < 0 tick 1 s",
            "A looks at all time at every tick",
        ),
        (
            B + "state S A = max ingress B ever enter A.count > 1 exit false",
            "A looks at all time in a component that builds on others",
        ),
        (
            "state B on U enter value > 1 state S A = avg U ever C = B enter A.value > C.value exit true",
            "A looks at all time in a component that builds on others",
        ),
        (
            "state S A = avg T ever max location enter A.value > 1 exit true",
            "A looks at all time, and makes one of locations or statuses",
        ),
        (
            "state S A = avg T ever each source max status enter A.value > 1 exit true",
            "A looks at all time, and makes one of locations or statuses",
        ),
    ],
)
def test_a_component_without_a_column_plan_has_a_reason(state, reason):
    assert made(state) == reason


@pytest.mark.parametrize(
    "state",
    [
        "state S A = T each source enter A.value else 3 > 1 exit A.wet else true",
        "state S A = T each source B = U each source enter A.value > B.value else 3 exit A.value < 0",
        "state S A = avg T ever enter A.value > 1 exit A.value < 0",
        "state S A = T max location enter A.value > 1 exit A.value < 0",
        "state S A = any of (T, U) each location enter A.value > 1 exit A.value < 0",
        "state S A = avg one of (T, U) over 5 s enter A.value > 1 exit A.value < 0",
        "state S A = sum of (T, U) at -5 s each source enter A.value > 1 exit A.value < 0",
        "state S A = avg T over 5 s min location each road enter A.value > 1 exit A.value < 0",
        B + "state S A = B whatever status enter A.valid && A.status == ingress exit A.status == egress",
        B + "state S A = B sum location whatever status enter A.n > 1 exit A.n < 1",
        B + "state S A = B each road max status enter A.value > 1 exit A.value < 0",
    ],
)
def test_columns_support_defaults_aggregates_over_all_time_and_pools(state):
    found = made(state)
    assert (found.left, found.single) == ((), None)


@pytest.mark.parametrize(
    ("predicate", "left"),
    [
        ("A.value > 1 && B.value < 2 * A.value", []),
        ("A.road == B.road || !A.wet", []),
        ("A.value > 1 && A.location == B.location", ["A.location == B.location"]),
        ("A.n * A.n > 3", ["A.n * A.n > 3.0"]),
        ("A.n + 0.5 > 3 || A.n / 2 > 1", []),
        ("A.n > 9007199254740992", ["A.n > 9007199254740992.0"]),
        ("last.value < A.value && A.value > 1", ["last.value < A.value"]),
    ],
)
def test_comparisons_that_columns_do_not_support_are_left_to_the_reference_machine(predicate, left):
    plan, found, _ = made(f"state S A = T each source B = T each source enter {predicate} exit false")
    assert [show(op) for op in found] == left
    assert plan.enter.exact is not bool(left)


def test_a_screening_predicate_assumes_unsupported_terms_to_be_true():
    plan, *_ = made("state S A = T each source enter A.value > 1 && (A.x > 1 || A.n > 2) exit A.time < now")
    columns = pa.RecordBatch.from_pydict({"A.value": [0.0, 2.0, None], "A.n": [3.0, 0.0, 3.0]})
    assert plan.enter.test(columns).tolist() == [False, True, False]
    assert plan.exit.test(columns).tolist() == [True] * 3
    assert not plan.exit.exact


def test_numeric_window_functions_are_columns_and_text_ones_are_not():
    plan, left, _ = made(
        "state S A = (avg value, max n) T over 30 s each road "
        'enter A.value > 1 && A.n > 2 && A.count > 3 && A.road == "A5" exit false'
    )
    assert [(c.name, c.attribute, c.function) for c in plan.columns["A"]] == [
        ("A.value", "value", "avg"),
        ("A.n", "n", "max"),
        ("A.count", "", None),
    ]
    assert [show(op) for op in left] == ['A.road == "A5"']


def test_several_values_at_once_are_counted_if_their_query_is_the_only_one():
    alone, *_ = made("state S A = T any location enter A.value > 1 exit A.value < 1")
    paired, left, _ = made(
        "state S A = T any location B = U enter A.value > 1 && B.value > 2 exit A.value < 1"
    )
    assert alone.enter.exact
    assert not paired.enter.exact
    assert [show(op) for op in left] == ["A.value > 1.0"]
    assert paired.exit.exact
    members, *_ = made('state S A = T all locations of ("A5") enter A.value > 1 exit A.value < 1')
    assert not members.enter.exact


BELOW = "state B A = T each source enter A.value > 1 exit A.value < 1 "


def test_starts_and_ends_of_an_upstream_component_are_separate_columns():
    plan, left, _ = made(
        f"{BELOW} state S A = B each source enter A.valid && A.status == ingress exit !A.valid"
    )
    assert plan.statuses == {"A": ("ingress", "egress")}
    assert [c.name for c in plan.columns["A"]] == ["A.valid", "A.status"]
    assert (left, plan.enter.exact, plan.exit.exact) == ((), True, True)


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("state S A = T each source enter A.value > 1 set level = 2 * A.value - 1 exit true", None),
        ("state S A = max T over 5 s each source enter A.value > 1 exit A.value < 1", None),
        ("state S A = T each source enter A.value > 1 set time = now + 1 s exit true", "time is set"),
        (
            "state S A = T each source enter A.value > 1 set up = A.value - last.value exit true",
            "up is set to what columns do not tell",
        ),
        ("state S A = T each source enter A.value > 1 for 5 s exit A.value < 1", "a guard waits"),
        ("state S A = T any location enter A.value > 1 exit A.value < 1", None),
        (
            "state S A = avg T over 5 s any location enter A.value > 1 exit A.value < 1",
            "A shows several places at other times than now",
        ),
        ("state S A = all T within 5 m of here each road enter A.value > 1 exit true here Car", None),
        ("state S A = T each source enter |A.location - here| <= 5 exit true here Car", None),
        ("state S A = (avg n) T over 5 s each source enter A.n > 1 exit A.n < 1", "value has no function"),
    ],
)
def test_events_are_computed_in_columns_or_have_a_reason(state, why):
    assert made(state).single == why
