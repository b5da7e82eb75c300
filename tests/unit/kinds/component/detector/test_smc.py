"""What counts as one condition, and the event that it emits."""

from __future__ import annotations

import pytest

from holdfast.model.instant import NEVER
from support.fused import SECOND, machine, marks, reading, run_components

T = "topic T (value float, name text)\n"


def events(text, readings):
    """The events of the components of a definition."""
    it = machine(text)
    state = it.initial()
    for one in readings:
        state, _ = it.react(state, one)
    return [t.event for t in it.advance(state, NEVER)[1]]


# --- where there is nothing --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicate", "moments"),
    [
        ("A.value > 5 && B.value > 5", [4]),
        ("A.value > 5 && B.value else 9 > 5", [1, 2, 4]),
        ("A.value > 5 && B.value else 0 > 5", [4]),
        ("A.value > 5 && (B.value else 9 > 5 || B.value < 0)", [4]),
    ],
    ids=["both", "the missing counts", "it does not", "mentioned without"],
)
def test_a_query_without_readings_uses_its_default_and_does_not_block(predicate, moments):
    text = T + f"topic U (value float)\nstate S A = T B = U enter {predicate} exit true"
    history = [reading(t, "T", 1, 9.0) for t in (1, 2)]
    history += [reading(3, "U", 1, 1.0), reading(3.5, "U", 1, 9.0), reading(4, "T", 1, 9.0)]
    found = [at for _, at in marks(text, history)]
    assert [at for at in found if at in (1, 2, 4)] == moments


def test_defaults_without_any_reading_satisfy_nothing():
    text = T + "topic U (value float)\nstate S A = T B = U enter A.value else 9 > 5 exit true tick 1 s"
    assert marks(text, [reading(0, "U", 1, 1.0), reading(3, "U", 1, 1.0)]) == []


def test_a_missing_value_and_last_use_their_defaults():
    text = T + "state S A = T each location enter A.value else 9 > last.value else 5 exit true"
    history = [reading(0, "T", 1, None), reading(1, "T", 1, 9.0), reading(2, "T", 1, 10.0)]
    assert marks(text, history) == [("atomic", 0), ("atomic", 1), ("atomic", 2)]


# --- one, all, any, separate -------------------------------------------------------------------

ROADS = [
    [reading(t, "T", 1, a), reading(t, "T", 2, b)]
    for t, (a, b) in enumerate([(0, 0), (9, 0), (9, 9), (0, 9), (0, 0)])
]
HISTORY = [one for both in ROADS for one in both]


@pytest.mark.parametrize(
    ("how", "moments"), [("any", [1, 2, 3]), ("one", [1, 3]), ("all", [2])], ids=["any", "one", "all"]
)
def test_quantifiers_decide_how_many_values_must_satisfy_a_predicate(how, moments):
    text = T + f"state S A = T {how} location enter A.value > 5 exit true"
    assert marks(text, HISTORY) == [("atomic", t) for t in moments]


def test_each_location_makes_a_condition_for_each_value():
    text = T + "state S A = T each location enter A.value > 5 exit A.value < 5"
    assert run_components(text, HISTORY) == [
        ("S", "1.0", "ingress", 1),
        ("S", "2.0", "ingress", 2),
        ("S", "1.0", "egress", 3),
        ("S", "2.0", "egress", 4),
    ]


def test_all_requires_every_present_value_and_every_listed_one():
    there = T + "state S A = T all locations enter A.value > 5 exit true"
    given = T + "state S A = T all locations of (1, 2) enter A.value > 5 exit true"
    alone = [reading(0, "T", 1, 9.0)]
    assert marks(there, alone) == [("atomic", 0)]
    assert marks(given, alone) == []
    assert marks(given, [*alone, reading(1, "T", 2, 9.0), reading(2, "T", 3, 0.0)]) == [("atomic", 1)]


def test_all_of_a_group_requires_readings_of_every_topic():
    text = T + "topic U (value float)\nstate S A = all of (T, U) enter A.value > 5 exit true"
    assert marks(text, [reading(0, "T", 1, 9.0), reading(1, "U", 1, 9.0)]) == [("atomic", 1)]


def test_the_quantifier_one_counts_values_and_not_combinations():
    text = (
        T
        + "topic U (value float)\n"
        + "state S A = T one location B = U any location enter A.value > B.value exit true"
    )
    readings = [
        reading(0, "T", 1, 9.0),
        reading(0, "U", 1, 1.0),
        reading(0, "U", 2, 2.0),
        reading(0, "T", 2, 0.0),
    ]
    assert marks(text, readings) == [("atomic", 0)]


def test_every_distinct_key_has_its_own_component_also_in_two_queries():
    text = (
        T
        + """topic U (value float)
        state S A = T each location B = U each location enter A.value > 5 && B.value > 5 exit B.value < 5"""
    )
    readings = [
        reading(0, "T", 1, 9.0),
        reading(0, "U", 2, 9.0),
        reading(1, "T", 2, 9.0),
        reading(2, "U", 2, 0.0),
    ]
    assert run_components(text, readings) == [("S", "2.0", "ingress", 1), ("S", "2.0", "egress", 2)]


@pytest.mark.parametrize(("collide", "level"), [("", 2.0), ("collide max\n", 3.0), ("collide sum\n", 4.0)])
def test_readings_of_one_place_and_time_are_fused(collide, level):
    text = collide + T + "state S A = sum T over 5 s enter A.value > 0 set level = A.value exit true"
    (event,) = events(text, [reading(0, "T", 7, 1.0, source="a"), reading(0, "T", 7, 3.0, source="b")])
    assert event.attributes["level"] == level


# --- events ------------------------------------------------------------------------------------


def test_an_event_has_by_default_the_attributes_and_place_of_the_latest_reading():
    text = T + "topic U (speed float)\nstate S A = T B = U enter A.value > 0 && B.speed > 0 exit true"
    (event,) = events(
        text, [reading(0, "T", 1, 5.0, name="a"), reading(1, "U", "yard", speed=7.0, source="cam")]
    )
    assert (event.topic, event.time, event.source, event.place) == ("S", SECOND, "cam", "yard")
    assert event.attributes == {"value": None, "name": None, "speed": 7.0}


def test_the_place_of_a_mean_is_that_of_its_latest_reading():
    text = T + "state S A = avg T over 10 s enter A.value > 4 exit true"
    first, second = events(text, [reading(0, "T", 1, 5.0), reading(1, "T", 9, 5.0, source="other")])
    assert (first.location, second.location, second.source) == ((1.0,), (9.0,), "other")


def test_computations_override_defaults_and_add_attributes():
    text = (
        T
        + """state S A = T enter A.value > 0
        set location = A.location, double = 2 * A.value, high = A.value > 3, was = A.name
        exit true"""
    )
    (event,) = events(text, [reading(0, "T", 1, 5.0, name="a")])
    assert dict(event.attributes) == {"double": 10.0, "high": True, "was": "a", "value": 5.0, "name": "a"}


@pytest.mark.parametrize(
    ("computed", "seconds"),
    [
        ("now", [1, 2]),
        ("now + 5 s", [6, 7]),
        ("now - 5 s", [1, 2]),
        ("now + A.delay", [10, 10.000001]),
    ],
)
def test_a_computed_time_is_later_than_the_previous_one_and_not_before_now(computed, seconds):
    text = f"topic D (delay float s)\nstate S A = D enter A.delay > 0 set time = {computed} exit true"
    found = events(text, [reading(1, "D", delay=9.0), reading(2, "D", delay=8.0)])
    assert [event.time / SECOND for event in found] == seconds


def test_a_computed_location_can_be_anywhere():
    text = T + "state S A = T B = T closest to 0 enter A.value > 5 set location = B.location exit true"
    (event,) = events(text, [reading(0, "T", 3, 1.0), reading(1, "T", 7, 9.0)])
    assert event.location == (3.0,)


# --- here --------------------------------------------------------------------------------------


def test_a_component_with_a_host_queries_readings_near_it():
    text = T + "state S A = T any location within 2 m of here enter A.value > 5 exit true here (10, 0)"
    readings = [
        reading(0, "T", (0.0, 0.0), 9.0),
        reading(1, "T", (11.0, 1.0), 9.0),
        reading(2, "T", (12.1, 0.0), 9.0),
    ]
    assert marks(text, readings) == [("atomic", 1)]
    (event,) = events(text, readings)
    assert event.location == (10.0, 0.0)


@pytest.mark.parametrize("rest", [(), (0.0,), (0.0, 0.0)], ids=["line", "plane", "space"])
def test_a_moving_host_reaches_readings_that_were_out_of_range(rest):
    """Readings out of range must be stored: the host may come.  [F70, trigger 3]"""
    text = (
        T
        + """topic User ()
        state Near A = T any location within 2 m of here
          enter A.value > 5 exit |A.location - here| > 3 here User"""
    )
    readings = [
        reading(0, "T", (10.0, *rest), 9.0),
        reading(1, "User", (0.0, *rest), source="ann"),
        reading(2, "User", (8.5, *rest), source="ann"),
        reading(3, "User", (9.5, *rest), source="bob"),
        reading(4, "User", (20.0, *rest), source="ann"),
    ]
    assert run_components(text, readings) == [("Near", "ann", "ingress", 2), ("Near", "bob", "ingress", 3)]


def test_each_replica_has_its_own_keys():
    text = (
        T
        + """topic User ()
        state Near A = T each location
          enter |A.location - here| <= 1 exit |A.location - here| > 1 here User"""
    )
    readings = [
        reading(0, "T", 1, 9.0), reading(0, "T", 5, 9.0),
        reading(1, "User", 1, source="ann"), reading(1, "User", 5, source="bob"),
        reading(2, "User", 5, source="ann"),
    ]  # fmt: skip
    assert run_components(text, readings) == [
        ("Near", "ann,1.0", "ingress", 1),
        ("Near", "bob,5.0", "ingress", 1),
        ("Near", "ann,1.0", "egress", 2),
        ("Near", "ann,5.0", "ingress", 2),
    ]
