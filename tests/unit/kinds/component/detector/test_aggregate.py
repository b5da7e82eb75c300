"""Several knowledge points as one: functions, and what becomes of time, place and validity."""

from __future__ import annotations

import math

import pytest

from holdfast.kinds.component.detector.aggregate import aggregate, merge
from holdfast.kinds.component.detector.knowledge import Knowledge
from holdfast.kinds.component.detector.query import one_per_cell, value


def at(time, value, where=0.0, *, valid=True, source="s", **more):
    return Knowledge("T", time, source, {"value": value, **more}, (where,), valid=valid)


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("max", [1.0, 3.0, None], 3.0),
        ("min", [1.0, 3.0, None], 1.0),
        ("sum", [1, 2], 3),
        ("sum", [0.1] * 10, 1.0),
        ("avg", [3], 3.0),
        ("avg", [1.0, 2.0, None], 1.5),
        ("count", [1.0, None, 2.0], 2),
        ("count", ["a", True], 2),
        ("count", [None], 0),
        ("stddev", [1.0, 3.0], math.sqrt(2)),
        ("stddev", [1.0], None),
        ("avg", [None, None], None),
        ("avg", ["a", "b"], None),
        ("avg", [math.inf, -math.inf], None),
        ("sum", [2**62, 2**62], None),
        ("max", [math.inf, 1.0], math.inf),
        ("sum", [1e308, 1e308, -1e308], 1e308),
        ("sum", [1e308, 1e308], None),
        ("sum", [1e308, 1e308, math.inf], math.inf),
        ("stddev", [math.inf, 1.0], None),
        ("stddev", [1e200, -1e200], None),
    ],
)
def test_functions_use_only_the_values_that_are_present(function, values, expected):
    found = aggregate(values, function)
    assert found == expected
    assert type(found) is type(expected)


def test_a_mean_has_the_mean_time_and_place_and_is_valid_if_one_reading_is():
    found = merge([at(10, 1.0, 0.0, valid=False), at(20, 2.0, 4.0, source="late")], "avg")
    assert (found.time, found.at, found.valid, found.attributes) == (15, (2.0,), True, {"value": 1.5})
    assert (found.count, found.source, found.newest.time) == (2, "late", 20)


def test_an_extreme_has_the_time_place_and_validity_of_the_reading_that_attains_it():
    found = merge([at(10, 5.0, 1.0, valid=False), at(20, 2.0, 4.0)], "max")
    assert (found.time, found.at, found.valid, found.attributes) == (10, (1.0,), False, {"value": 5.0})
    assert found.newest.time == 20


@pytest.mark.parametrize(("dimension", "least"), [("time", (10, (9.0,))), ("location", (20, (1.0,)))])
def test_of_equal_extremes_the_least_in_the_aggregated_dimension_is_taken(dimension, least):
    points = [at(20, 5.0, 1.0), at(10, 5.0, 9.0)]
    found = merge(points, "max", along=lambda known: value(dimension, known))
    assert (found.time, found.at) == least


def test_each_attribute_can_have_its_own_function_and_keys_are_unchanged():
    points = [at(1, 1.0, speed=5.0, road=7), at(2, 3.0, speed=9.0, road=7)]
    found = merge(points, (("value", "avg"), ("speed", "max")), keys=("road",))
    assert found.attributes == {"value": 2.0, "speed": 9.0, "road": 7}


def test_text_common_to_all_readings_is_kept_and_other_text_is_dropped():
    same = [at(1, 1.0, name="a", kind="x"), at(2, 3.0, name="a", kind="y")]
    assert merge(same, "avg").attributes == {"value": 2.0, "name": "a", "kind": None}


def test_readings_of_one_cell_are_fused_by_the_global_function():
    points = [at(1, 10.0, source="a"), at(1, 20.0, source="b"), at(1, 7.0, where=1.0), at(2, 1.0)]
    found = one_per_cell(points, "avg")
    assert sorted((k.time, k.at, k.attributes["value"], k.count) for k in found) == [
        (1, (0.0,), 15.0, 1),
        (1, (1.0,), 7.0, 1),
        (2, (0.0,), 1.0, 1),
    ]
    assert max(k.attributes["value"] for k in one_per_cell(points, "max")) == 20.0


@pytest.mark.parametrize("collide", ["avg", "sum", "count", "stddev"])
def test_keys_text_and_truth_values_are_unchanged_where_readings_collide(collide):
    points = [at(1, 10.0, source=source, floor=3, road="A5", wet=True) for source in "ab"]
    (found,) = one_per_cell(points, collide, ("floor",))
    stored = {name: found.attributes[name] for name in ("floor", "road", "wet")}
    assert stored == {"floor": 3, "road": "A5", "wet": True}
    assert type(stored["floor"]) is int


def test_readings_without_a_location_collide_only_with_those_of_their_own_source():
    nowhere = [
        Knowledge("T", 1, source, {"value": value}) for source, value in (("a", 1.0), ("b", 5.0), ("b", 7.0))
    ]
    assert sorted(k.attributes["value"] for k in one_per_cell(nowhere, "avg")) == [1.0, 6.0]
