"""``relate``, ``group``, ``route``: what they come to, and what is wrong with them."""

from __future__ import annotations

import pytest

from holdfast import App, check, parse
from holdfast.definition.show import show
from holdfast.errors import DefinitionError
from holdfast.kinds.relation.condition import RelationCondition
from holdfast.model.relation import ReadingRange

TOPICS = """topic User (mood float, name text, off float m)
topic Loop (speed float km/h)
group Team of User ("ann", "bob", "eve")
route North on Loop.speed ("4" 12 km, "5" 23 km)
route South on Loop.speed ("5" 8 km, "7" 15 km)
"""


def relation(text):
    (one,) = check(parse(TOPICS + text)).of(RelationCondition)
    return one.relation


def wrong(text):
    with pytest.raises(DefinitionError) as caught:
        check(parse(TOPICS + text))
    return str(caught.value)


def test_short_forms_are_expanded():
    text = """relate Near all of Team within 100 m until 150 m
relate Some at least 2 of Team within 10 m until 20 m
relate Ours at least 2 of Team within 10 m of "ann"
relate Lead all of Team within 10 m of "ann" until 20 m
relate Jam slow North nominal 16 min
relate Meet (a User, b User) when distance(a, b) <= 10 m backoff 250 m
"""
    assert show(App(parse(text).statements)).splitlines() == [
        "relate Near when spread(Team) <= 100 m until spread(Team) >= 150 m",
        "relate Some when radius(Team, 2) <= 10 m until radius(Team, 2) >= 20 m",
        'relate Ours when radius(Team, 2, "ann") <= 10 m',
        'relate Lead when radius(Team, "ann") <= 10 m until radius(Team, "ann") >= 20 m',
        "relate Jam when travel_time(North) > 20 min",
        "relate Meet (a User, b User) when distance(a, b) <= 10 m until distance(a, b) >= 250 m",
    ]


def test_a_builder_makes_the_same_statement_as_text():
    app = App()
    app.topic("User")
    app.group("Team", 'of User ("ann", "bob")')
    app.relate("Near", "all of Team within 100 m")
    assert app == parse(
        'topic User ()\ngroup Team of User ("ann", "bob")\nrelate Near all of Team within 100 m'
    )


def test_a_test_is_a_range_of_one_measure_in_one_unit():
    found = relation(
        "relate R (a User, b User) when 3 m < distance(a, b) <= 0.01 km until distance(a, b) > 20"
    )
    assert found.enter.within == ReadingRange(3.0000000000000004, 10.0)
    assert found.exit.within == ReadingRange(20.000000000000004)
    assert found.roaming == ("User", "User")


def test_travel_times_of_routes_become_one_sum_and_a_common_source_counts_once():
    found = relation("relate R when travel_time(North) + 2 min < travel_time(South)")
    ((terms,),) = (tie.terms for tie in found.ties)
    assert {t.member.source: t.scale for t in terms} == {"4": 43_200.0, "5": 82_800 - 28_800, "7": -54_000.0}
    assert found.enter.within.high == pytest.approx(-120)
    assert found.exit.within.low == -120


def test_pairs_can_come_from_a_table(tmp_path):
    (tmp_path / "pairs.csv").write_text("b,a\nann,bob\neve,ann\n")
    text = 'topic User ()\nrelate R (a User, b User) pairs "pairs.csv" when distance(a, b) <= 1 m'
    (one,) = check(parse(text), tmp_path).of(RelationCondition)
    assert [tie.scope for tie in one.relation.ties] == ["bob,ann", "ann,eve"]
    (tmp_path / "pairs.csv").write_text("a,b\nann,\n")
    with pytest.raises(DefinitionError, match="line 2"):
        check(parse(text), tmp_path)
    (tmp_path / "pairs.csv").write_text("a,c\nann,bob\n")
    with pytest.raises(DefinitionError, match="no column 'b'; it has a, c"):
        check(parse(text), tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("relate R (a User, b User) when distance(a, c) <= 1 m", "Write: distance(a, b)"),
        ("relate R (a User, b User) when distance(a, b) >= 1 m", "Name the pairs"),
        ("relate R (a User, b Usr) when distance(a, b) <= 1 m", "Did you mean 'User'"),
        ("relate R (a User) when distance(a, a) <= 1 m", "between two"),
        ("relate R (a User, b User) when distance(a, b) <= 1 s", "measure different things"),
        ("relate R (a User, b User) when distance(a, b) != 1 m", "leaves no range"),
        (
            "relate R (a User, b User) when distance(a, b) <= 1 m || distance(a, b) > 5 m",
            "compares one measure",
        ),
        ('relate R (a User, b User) pairs ("x", "x") when distance(a, b) <= 1 m', "paired with itself"),
        ('relate R (a User, b User) pairs ("x", "y"), ("x", "y") when distance(a, b) <= 1 m', "named twice"),
        ('relate R (a User, b User) pairs ("x", "y") when a.mood > distance(a, b)', "compared with"),
        ('relate R (a User, b User) pairs ("x", "y") when a.mood * b.mood > 1', "a measure is a sum"),
        ('relate R (a User, b User) pairs ("x", "y") when a.name == b.name', "compares numbers"),
        ("relate R (a User, b User) when a.mood > b.mood", "of pairs that are named"),
        ("relate R (a User, b User) when distance(a, b) <= 1 m accuracy of_", "has no number 'of_'"),
        ("relate R (a User, b User) when distance(a, b) <= 1 m using hierarchy", "Take range_ring or"),
        (
            'relate R (a User, b User) pairs ("x", "y") when distance(a, b) <= 1 m '
            "using range_ring ordered 2 s",
            "'using' and 'ordered' exclude each other",
        ),
        (
            'relate R (a User, b User) pairs ("x", "y") when distance(a, b) <= 1 m for 2 s using range_ring',
            "'using' and 'for' exclude each other",
        ),
        ("relate R when travel_time(West) > 1 min", "unknown route 'West'"),
        ("relate R when spread(Teem) < 1 m", "Did you mean 'Team'"),
        ("relate R when spread(Team) < 1 m until travel_time(North) > 1 min", "another measure"),
        ("relate R at least 4 of Team within 1 m", "from 2 to 3"),
        ("relate R at least 1 of Team within 1 m", "from 2 to 3"),
        ('relate R all of Team within 1 m of "an"', "Did you mean 'ann'"),
        ("relate R when radius(Team, 2, 3) <= 1 m", "a group, a number and a source"),
        ('relate R when spread(Team, "ann") <= 1 m', "of one group"),
        ("relate R at least 2 of Team within 1 m using centre_of_mass", "Take counting"),
        ("relate R when radius(Team, 2) <= 1 m until radius(Team, 3) >= 2 m", "another measure"),
        ("relate R best of (North, North) by 1 min", "twice"),
        (
            "relate R (a User, b User) when distance(a, b) <= 1 m until distance(a, b) > 2 m backoff 3 m",
            "in place of",
        ),
        ("filter F on User where distance(a, b) > 1", "of relationships only"),
        ('route West on User.mood ("a" 1 km)', "is not a speed"),
        ('group G of User ("ann", "ann")', "names 'ann' twice"),
    ],
)
def test_errors_are_reported_at_their_place(text, message):
    found = wrong(text)
    assert message in found
    assert "^" in found


def test_a_relationship_with_the_same_measure_at_start_and_end_causes_a_warning():
    (caution,) = check(
        parse(TOPICS + "relate R (a User, b User) when distance(a, b) <= 9 m until distance(a, b) >= 5 m")
    ).warnings
    assert "on and off" in caution.message
