"""Constraints, boxes and the set relations between them."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import UsageError
from holdfast.network.protocols.cbps.content import (
    COVERED_BY,
    COVERS,
    MATCHES,
    BoxRelation,
    Constraint,
    Filter,
    box_of,
    covers,
    is_related,
    matches,
    satisfies,
)
from support import naive_match as naive

RELATIONS = [
    BoxRelation(f, c) for f in ("subset", "superset") for c in ("subset", "superset", "intersection")
]


def box(**ranges):
    """A filter of open ranges: ``box(X=(0, 10))`` is 0 < X < 10."""
    return Filter(
        tuple(
            Constraint(name, "double", op, value)
            for name, ends in ranges.items()
            for op, value in zip((">", "<"), ends, strict=True)
        )
    )


SUBSCRIPTIONS = [
    (box(X=(1, 2), Y=(4, 10)), True),
    (box(X=(-5, 5)), True),
    (box(Z=(0, 1)), False),
    (box(X=(50, 100)), False),
]


@pytest.mark.parametrize(("subscription", "expected"), SUBSCRIPTIONS)
def test_t1_a_subscription_follows_an_advertisement_that_may_satisfy_it(subscription, expected):
    advertisement = box(X=(0, 10), Y=(0, 5))
    assert matches("subscription", subscription, "advertisement", advertisement) is expected
    assert matches("advertisement", advertisement, "subscription", subscription) is expected


@pytest.mark.parametrize(("subscription", "expected"), SUBSCRIPTIONS)
def test_t2_a_notification_matches_subscriptions_whose_fields_it_has_and_satisfies(subscription, expected):
    content = {"X": 1.5, "Y": 4.5, "colour": "red"}
    assert satisfies(subscription, content) is expected
    assert is_related(box_of(content), subscription.box, MATCHES["notification", "subscription"]) is expected


def test_t3_a_wider_box_and_one_with_fewer_fields_cover():
    narrow = box(A=(0, 10), B=(0, 10))
    assert covers("subscription", box(A=(-100, 100), B=(-100, 100)), narrow)
    assert covers("subscription", box(A=(-100, 100)), narrow)
    assert not covers("subscription", narrow, box(A=(-100, 100)))


def test_an_advertisement_covers_others_with_fewer_fields_instead():
    both = box(A=(0, 10), B=(0, 10))
    assert covers("advertisement", both, box(A=(1, 9)))
    assert not covers("advertisement", box(A=(-100, 100)), both)


def test_only_the_pairs_of_the_tables_match():
    anything = Filter()
    allowed = {(row, column) for row in KINDS for column in KINDS if matches(row, anything, column, anything)}
    assert allowed == set(MATCHES)
    assert len(allowed) == 9


KINDS = {kind for pair in MATCHES for kind in pair}


def test_being_covered_is_the_inverse_of_covering():
    other = {"subset": "superset", "superset": "subset"}
    for kind, (fields, contents) in COVERS.items():
        assert COVERED_BY[kind] == BoxRelation(other[fields], other[contents])


def test_several_constraints_on_one_attribute_intersect():
    between = Filter((Constraint("x", "long", ">", 2), Constraint("x", "long", "<=", 4)))
    assert [x for x in range(8) if satisfies(between, {"x": x})] == [3, 4]
    impossible = Filter((Constraint("x", "long", ">", 2), Constraint("x", "long", "<", 3)))
    assert impossible.is_empty
    assert not Filter((Constraint("x", "double", ">", 2), Constraint("x", "double", "<", 3))).is_empty


def test_an_inequality_is_two_ranges():
    unequal = Filter((Constraint("x", "double", "!=", 3),))
    low, high = unequal.box["x"]
    assert 2.9 in low
    assert 3.1 in high
    assert not satisfies(unequal, {"x": 3})
    assert satisfies(Filter((Constraint("x", "long", "!=", 3),)), {"x": 4})


def test_integers_exclude_values_excluded_as_doubles():
    whole = Filter((Constraint("x", "long", ">=", 3), Constraint("x", "long", "<=", 5)))
    unequal = Filter((Constraint("x", "double", "!=", 3.5),))
    assert covers("subscription", unequal, whole)


def test_numbers_compare_by_value_whatever_their_type():
    assert satisfies(Filter((Constraint("x", "long", "=", 4),)), {"x": 4.0})
    assert satisfies(Filter((Constraint("x", "double", "=", 4.0),)), {"x": 4})
    assert not satisfies(Filter((Constraint("x", "long", "any"),)), {"x": 4.5})
    assert not satisfies(Filter((Constraint("x", "double", "any"),)), {"x": True})
    large = Filter((Constraint("x", "double", "<=", 2.0**53),))
    assert not satisfies(large, {"x": 2**53 + 1})


def test_any_requires_the_field_with_any_value():
    there = Filter((Constraint("x", "long", "any"),))
    assert satisfies(there, {"x": -7})
    assert not satisfies(there, {"y": 1})
    assert not satisfies(there, {"x": "text"})


def test_a_prefix_is_a_range_of_texts():
    john = Filter((Constraint("name", "text", "prefix", "Jo"),))
    assert [n for n in ("Jim", "Jo", "John", "Jox", "Jp", "jo") if satisfies(john, {"name": n})] == [
        "Jo",
        "John",
        "Jox",
    ]
    assert covers("subscription", john, Filter((Constraint("name", "text", "=", "John"),)))
    last = chr(0x10FFFF)
    assert satisfies(Filter((Constraint("name", "text", "prefix", last),)), {"name": last + last})


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("<", ["", "Jim"]),
        ("<=", ["", "Jim", "Jo"]),
        ("=", ["Jo"]),
        (">=", ["Jo", "Jo\0", "John", "Jp"]),
        (">", ["Jo\0", "John", "Jp"]),
        ("!=", ["", "Jim", "Jo\0", "John", "Jp"]),
        ("prefix", ["Jo", "Jo\0", "John"]),
    ],
)
def test_texts_are_ordered_by_their_code_points(op, expected):
    output = Filter((Constraint("name", "text", op, "Jo"),))
    assert [n for n in ("", "Jim", "Jo", "Jo\0", "John", "Jp") if satisfies(output, {"name": n})] == expected


@pytest.mark.parametrize("missing", [math.nan, None])
def test_nan_and_none_are_missing(missing):
    there = Filter((Constraint("x", "double", "any"),))
    assert not satisfies(there, {"x": missing})
    assert box_of({"x": missing, "y": 1.0}).keys() == {"y"}


def test_the_digest_is_independent_of_order():
    a, b = Constraint("x", "long", "<", 4), Constraint("y", "text", "=", "b")
    assert Filter((a, b)).digest == Filter((b, a, a)).digest
    assert Filter((a,)).digest != Filter((b,)).digest
    assert (
        Filter((Constraint("x", "double", "=", 1),)).digest
        == Filter((Constraint("x", "double", "=", 1.0),)).digest
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", "long", "any"), "a constraint needs the name of an attribute"),
        (("x", "lnog", "any"), "the constraint on 'x' has an unknown type 'lnog'. Did you mean 'long'?"),
        (
            ("x", "long", "EQ", 3),
            "the constraint on 'x' has an unknown operator 'EQ'. There is <, <=, =, >=, ",
        ),
        (("x", "long", "<", 1.5), "the constraint on 'x': 1.5 is not a long"),
        (("x", "long", "<", True), "the constraint on 'x': True is not a long"),
        (("x", "long", "<", 2**63), "is not a long"),
        (("x", "double", "<", math.nan), "the constraint on 'x': nan is not a double"),
        (("x", "double", "<", 2**53 + 1), "the constraint on 'x': 9007199254740993 is not a double"),
        (("x", "text", "="), "the constraint on 'x': None is not a text"),
        (("x", "long", "any", 3), "the constraint on 'x': 'any' takes no value, not 3"),
        (("x", "long", "prefix", 3), "the constraint on 'x': only a text has a prefix, not a long"),
    ],
)
def test_an_invalid_constraint_raises_a_precise_error(arguments, message):
    with pytest.raises(UsageError) as caught:
        Constraint(*arguments)
    assert message in str(caught.value)


@given(naive.filters())
def test_a_filter_survives_the_wire(filter_):
    filter_.box  # noqa: B018  what is computed once must not be sent
    sent = msgspec.msgpack.encode(filter_)
    assert b"box" not in sent
    assert msgspec.msgpack.decode(sent, type=Filter) == filter_


@given(naive.filters(), naive.contents())
def test_a_filter_is_satisfied_if_each_comparison_is(filter_, content):
    expected = naive.satisfies(filter_, content)
    assert satisfies(filter_, content) is expected
    assert is_related(box_of(content), filter_.box, MATCHES["notification", "subscription"]) is expected


@given(
    naive.filters() | naive.numeric_filters,
    naive.filters() | naive.numeric_filters,
    st.sampled_from(RELATIONS),
)
def test_relations_equal_those_of_sets(row, column, relation):
    assert is_related(row.box, column.box, relation) is naive.relations_of(row, column, *relation)


@given(naive.filters())
def test_equal_sets_have_equal_boxes(filter_):
    """A filter rebuilt from its constraints in another order and with repetitions has the same box."""
    again = Filter(filter_.constraints[::-1] + filter_.constraints)
    assert again.box == filter_.box
    assert filter_.is_empty == any(not naive.values(filter_, c.name) for c in filter_.constraints)
