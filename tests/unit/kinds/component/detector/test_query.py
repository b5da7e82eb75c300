"""Knowledge selection: what a query shows of an information space."""

from __future__ import annotations

import pytest

from holdfast.kinds.component.detector.knowledge import Knowledge
from holdfast.kinds.component.detector.query import select
from holdfast.model.query import (
    HERE,
    NOW,
    WHOLE,
    Aggregate,
    Ball,
    Closest,
    Index,
    MemberSet,
    Multiple,
    PooledDimension,
    Query,
    QueryRange,
)

T = Closest(Index("T"))
ATOMIC = Closest(Index("atomic"))


def at(time, where, value, topic="T", status="atomic", place=None):
    point = None if where is None else where if isinstance(where, tuple) else (float(where),)
    return Knowledge(topic, time, "s", {"value": float(value)}, point, place, status)


def selection(query, known, now=100, here=None):
    return [(k.time, k.location, k.attributes["value"]) for k in select(query, known, now, here)]


def ago(low, high=0):
    return QueryRange(Index(-low, relative=True), Index(-high, relative=True))


# Figure 5.10: roads 7, 8, 9 and 11, averaged over time, each by itself
ROADS = [
    at(70, 7, 2),
    at(90, 7, 4),
    at(95, 8, 2),
    at(60, 9, 9),
    at(99, 9, 4),
    at(100, 11, 1),
    at(95, 7, 9, "Car"),
]


def test_a_mean_over_time_is_computed_for_each_place_separately():
    query = Query(T, Aggregate("avg", ago(30)), Multiple("separate"), ATOMIC)
    assert selection(query, ROADS) == [
        (80, (7.0,), 3.0),
        (95, (8.0,), 2.0),
        (99, (9.0,), 4.0),
        (100, (11.0,), 1.0),
    ]


def test_a_window_includes_both_ends():
    query = Query(T, Aggregate("count", ago(30, 10)), PooledDimension())
    assert selection(query, [at(69, 0, 1), at(70, 0, 1), at(90, 0, 1), at(91, 0, 1)]) == [(80, (0.0,), 2)]


def test_results_are_ordered_by_time_and_then_location():
    """The largest of the means, not the mean of the largest."""
    known = [at(90, 1, 0), at(95, 1, 4), at(90, 2, 3), at(95, 2, 3)]
    query = Query(T, Aggregate("avg", ago(30)), Aggregate("max"), ATOMIC)
    assert selection(query, known) == [(92, (2.0,), 3.0)]


def test_a_mean_of_means_weighs_places_and_a_pool_weighs_readings():
    known = [at(90, 1, 1), at(95, 1, 1), at(99, 1, 1), at(99, 2, 5)]
    places = Query(T, Aggregate("avg", ago(30)), Aggregate("avg"), ATOMIC)
    assert [value for _, _, value in selection(places, known)] == [3.0]
    dimensions_pooled_by = Query(T, Aggregate("avg", ago(30)), PooledDimension(), ATOMIC)
    assert [value for _, _, value in selection(dimensions_pooled_by, known)] == [2.0]


def test_of_equal_extremes_over_locations_the_least_location_wins():
    known = [at(0, 9, 60), at(5, 1, 60)]
    assert selection(Query(T, location=Aggregate("max")), known) == [(5, (1.0,), 60.0)]
    assert selection(Query(T, Aggregate("max", ago(100)), PooledDimension()), known) == [(0, (9.0,), 60.0)]


def test_of_pooled_statuses_the_latest_of_each_place_is_shown():
    known = [at(1, 7, 1, status="ingress"), at(5, 7, 0, status="egress"), at(3, 8, 1, status="ingress")]
    latest = Query(T, location=Multiple("any"), status=PooledDimension())
    assert selection(latest, known) == [(3, (8.0,), 1.0), (5, (7.0,), 0.0)]
    assert selection(Query(T, location=Aggregate("sum"), status=PooledDimension()), known) == [
        (4, (7.5,), 1.0)
    ]
    some = PooledDimension(MemberSet((Index("ingress"),)))
    assert selection(Query(T, location=Aggregate("sum"), status=some), known) == [(2, (7.5,), 2.0)]


def test_a_pool_can_cover_selected_places():
    known = [at(90, 1, 1), at(99, 5, 5)]
    query = Query(T, Aggregate("sum", ago(30)), PooledDimension(QueryRange(Index((0.0,)), Index((2.0,)))))
    assert [value for _, _, value in selection(query, known)] == [1.0]


def test_the_closest_reading_in_time_is_the_nearest_and_of_two_the_earlier():
    query = Query(T, Closest(Index(-10, relative=True)), Multiple("any"))
    assert selection(query, [at(85, 1, 1), at(95, 1, 2), at(99, 1, 3), at(40, 2, 9)]) == [
        (40, (2.0,), 9.0),
        (85, (1.0,), 1.0),
    ]


def test_the_latest_reading_is_selected_for_each_place_and_status():
    known = [at(80, 1, 1), at(90, 1, 2), at(85, 1, 3, status="ingress"), at(70, 2, 4)]
    assert selection(Query(T, location=Multiple("any")), known) == [
        (70, (2.0,), 4.0),
        (85, (1.0,), 3.0),
        (90, (1.0,), 2.0),
    ]
    assert selection(Query(T), known) == [(85, (1.0,), 3.0), (90, (1.0,), 2.0)]
    assert selection(Query(T, status=Closest(Index("ingress"))), known) == [(85, (1.0,), 3.0)]


@pytest.mark.parametrize("here", [(5.0,), (5.0, 0.0), (5.0, 0.0, 1.0)])
def test_the_closest_to_here_is_found_in_one_two_and_three_dimensions(here):
    known = [at(90, (4.0, *here[1:]), 1), at(90, (5.5, *here[1:]), 2), at(90, (60.0, *here[1:]), 3)]
    query = Query(T, Closest(NOW), Closest(HERE))
    assert [value for _, _, value in selection(query, known, here=here)] == [2.0]


def test_of_two_equally_near_readings_the_least_location_is_taken():
    query = Query(T, Closest(NOW), Closest(HERE))
    assert selection(query, [at(90, 6, 1), at(99, 4, 2)], here=(5.0,)) == [(99, (4.0,), 2.0)]


@pytest.mark.parametrize(
    ("group", "inside"),
    [
        (Ball(HERE, 5.0), [(3.0, 4.0)]),
        (Ball(Index((0.0, 6.0)), 1.0), [(0.0, 7.0)]),
        (
            QueryRange(Index((-1.0, -1.0), relative=True), Index((3.0, 9.0), relative=True)),
            [(0.0, 7.0), (3.0, 4.0)],
        ),
        (MemberSet((Index((3.0, 4.0)), Index("yard"))), [(3.0, 4.0), "yard"]),
        (WHOLE, [(-9.0, 0.0), (0.0, 7.0), (3.0, 4.0), "yard", None]),
    ],
)
def test_places_in_the_plane_can_be_grouped(group, inside):
    known = [at(99, point, 1) for point in ((3.0, 4.0), (0.0, 7.0), (-9.0, 0.0))]
    known += [at(99, None, 1, place="yard"), at(99, None, 1)]
    query = Query(T, Closest(NOW), Multiple("any", group))
    assert [where for _, where, _ in selection(query, known, here=(0.0, 0.0))] == inside


def test_without_a_host_nothing_is_near_here():
    assert selection(Query(T, Closest(NOW), Multiple("any", Ball(HERE, 5.0))), [at(99, 1, 1)]) == []


def test_several_topics_can_be_queried_or_fused():
    known = [at(99, 1, 1), at(99, 1, 3, "U"), at(99, 1, 9, "V")]
    both = MemberSet((Index("T"), Index("U")))
    assert [v for _, _, v in selection(Query(Multiple("any", both)), known)] == [1.0, 3.0]
    assert [v for _, _, v in selection(Query(Aggregate("avg", both)), known)] == [2.0]


def test_windows_can_have_absolute_times():
    query = Query(T, Aggregate("sum", QueryRange(Index(80), Index(90))), PooledDimension())
    assert selection(query, [at(79, 1, 1), at(80, 1, 2), at(90, 1, 4), at(91, 1, 8)]) == [(85, (1.0,), 6.0)]
