"""Levels, counts, tables and mutes: errors are reported at their place."""

from __future__ import annotations

import pytest

from holdfast import DefinitionError, check, parse
from holdfast.definition.show import show
from holdfast.kinds.overlap.condition import OverlapCondition
from holdfast.model.instant import MINUTE, NEVER
from holdfast.model.schedule import schedule

BASE = """topic T (value float, room text)
state Warm on T [value > 2; value < 1] per source
state Dark on T [value > 2; value < 1] per room
filter Hot on T where value > 40
"""
WRITTEN = """levels Heat on T: low [value > 1 for 2 min; value < 1], top [n > 2; false for 3 readings] per n
state Fire = at least 2 of Warm within room until fewer than 1 joined unknown spreads
state Half = half of Warm roster "a.csv"
table Limits "limits.csv" (source text, high float °C, wait duration) by source
mute Warm during "Sat 00:00 – Mon 06:00" in "Europe/Berlin"
mute Warm while Dark ordered 30 s
mute Warm beyond 5 within room
correlate Danger = Warm, Dark overlapping within 30 s, 50 m per room
fold Storm = Warm scope hall, lab within house beyond 3 until fewer than 2
fold Squares = Warm cells 10 m within 160 m beyond 2
correlate After = Warm before Dark within 1 min
correlate "in it" = Warm during Dark within 50 m
"""


def test_alarm_statements_are_printed_as_they_are_written():
    app = parse(WRITTEN)
    assert show(app) == WRITTEN
    assert parse(show(app)) == app


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("levels L on T: a [value > 1; value < 1], a [value > 2; value < 2] per source", "two levels 'a'", 5),
        ("levels L on T: a [value > 1; true] per source", "ends at once", 5),
        ("state C = at least 2 of Wram", "unknown condition 'Wram'", 5),
        ("state C = at least 2 of Hot", "over as it starts", 5),
        ("state C = at least 2 of Warm within rome", "rome", 5),
        ("state C = at least 0 of Warm", "whole number above zero", 5),
        ("state C = at least 2.5 of Warm", "whole number above zero", 5),
        ("state C = at least 2 of Warm until fewer than 3", "would end as it starts", 5),
        ("state C = half of Warm", "nobody says who they are", 5),
        ('state C = half of Warm roster "none.csv"', "cannot be read", 5),
        ("state C = at least 2 of D\nstate D = at least 2 of C", "in a circle: 'C' over 'D' over 'C'", 5),
        ("fold X = Wram cells 1 m within 2 m beyond 3", "unknown condition 'Wram'", 5),
        ("fold X = Hot cells 1 m within 2 m beyond 3", "over as it starts", 5),
        ("fold X = Warm cells 1 m within 3 m beyond 3", "squares of 1 m do not fill one of 3 m", 5),
        ("fold X = Warm cells 1 m within 1 m beyond 3", "do not fill", 5),
        ("fold X = Warm cells 0 m within 1 m beyond 3", "a side above zero", 5),
        ("fold X = Warm cells 1 m within 2 m beyond 0", "above zero", 5),
        ("fold X = Warm cells 1 m within 2 m beyond 1 until fewer than 3", "would unfold as it folds", 5),
        ("region a = circle (0, 0) 1\nfold X = Warm scope b beyond 1", "b", 6),
        ("correlate X = Warm, Drak overlapping", "unknown condition 'Drak'", 5),
        ("correlate X = Warm overlap Dark", "expected how the conditions lie in time, not 'overlap'", 5),
        ("correlate X = Warm overlapping Dark", "Did you mean 'overlaps'?", 5),
        ("correlate X = Warm, Dark overlaps", "Did you mean 'overlapping'?", 5),
        ("fold F Warm cells 5 m within 10 m beyond 1", "As in: fold Floors = Warm", 5),
        ("correlate X = Warm, Warm overlapping", "'Warm' is correlated with itself", 5),
        ("correlate X = Warm, Hot overlapping", "'Hot' is over as it starts", 5),
        ("correlate X = Warm before Dark", "needs to know how long before", 5),
        ("correlate X = Warm before Dark within 0 s", "must be above zero", 5),
        ("correlate X = Warm before Dark within 2 s, 3 s", "one duration and one distance", 5),
        ("correlate X = Warm before Dark within 1 km, 2 km", "one duration and one distance", 5),
        ("correlate X = Warm during Dark within 0 m", "distance must be above zero", 5),
        ("correlate X = Warm, Dark overlapping per rome", "rome", 5),
        ("correlate X = Warm, Y overlapping\nstate Y = any of X", "in a circle: 'X' over 'Y' over 'X'", 5),
        ("state C = any of X\ncorrelate X = Warm before Dark within 1 s", "over as it starts", 5),
        ("mute Wram during \"22:00 – 06:00\"", "unknown condition 'Wram'", 5),
        ("mute Warm during \"Sunday\"", "no stretch of time", 5),
        ("mute Warm during \"Foo 10:00 – Bar 11:00\"", "no day of the week", 5),
        ("mute Warm during \"25:00 – 26:00\"", "no clock shows 25:00", 5),
        ("mute Warm during \"22:00 – 06:00\" in \"Mars/Olympus\"", "unknown time zone", 5),
        ("mute Warm while Hot", "over as it starts", 5),
        ("mute Warm beyond 0", "above zero", 5),
        ("correlate X = Warm, Dark overlapping\nmute Warm while X", "of no scope of 'Warm'", 6),
        ("fold X = Warm cells 5 m within 10 m beyond 1\nmute Warm while X", "of no scope of 'Warm'", 6),
        ("fold X = Warm cells 5 m within 10 m beyond 4", "more than 4 never hold", 5),
        ("correlate X = Warm, Dark overlapping per room, room", "stands twice", 5),
        ("mute Warm while Dark\nmute Dark while Warm", "mutes go in a circle", 6),
        ('table L "x.csv" (source text)\nstate X on T [value > L.high] per source', "nothing but its key", 5),
        ('table L "x.csv" (source text, high float) by room\n', "has no column 'room'", 5),
    ],
)  # fmt: skip
def test_errors_are_reported_at_their_place(text, message, line, tmp_path):
    with pytest.raises(DefinitionError) as caught:
        check(parse(BASE + text), tmp_path)
    assert message in str(caught.value)
    assert caught.value.place.line == line
    assert "^" in str(caught.value)


def test_an_unnamed_correlation_of_states_is_named_after_them():
    (one,) = check(parse(BASE + "correlate Warm, Dark overlapping within 30 s, 50 m")).of(OverlapCondition)
    assert (one.name, one.within, one.near) == ("Warm_Dark", 30_000_000, 50.0)
    assert [a.name for a in one.topic.attributes] == [
        "Warm", "Warm_start", "Warm_end", "Dark", "Dark_start", "Dark_end"
    ]  # fmt: skip


def test_the_roster_of_a_count_needs_the_columns_of_its_members(tmp_path):
    (tmp_path / "a.csv").write_text("name,room\na,r\n")
    with pytest.raises(DefinitionError, match="has no column 'source'; it has name, room"):
        check(parse(BASE + 'state C = half of Warm within room roster "a.csv"'), tmp_path)
    (tmp_path / "a.csv").write_text("source,room\na,r\na,s\n")
    with pytest.raises(DefinitionError, match="'a' stands there twice, again in row 3"):
        check(parse(BASE + 'state C = half of Warm within room roster "a.csv"'), tmp_path)


def test_a_schedule_follows_local_time():
    day, hour = 24 * 60 * MINUTE, 60 * MINUTE
    nights = schedule("22:00 – 06:00", None)
    assert [nights.is_on(h * hour) for h in (21, 22, 23, 24, 29, 30)] == [
        False,
        True,
        True,
        True,
        True,
        False,
    ]
    assert nights.ends(23 * hour) == 30 * hour
    assert schedule("00:00 – 24:00", None).ends(0) == NEVER
    weekend = schedule("Sat 00:00 – Mon 06:00", "UTC")  # 1970 began on a Thursday
    assert [weekend.is_on(at) for at in (day, 2 * day, 3 * day, 4 * day + 6 * hour)] == [
        False,
        True,
        True,
        False,
    ]
    assert weekend.ends(2 * day) == 4 * day + 6 * hour
    summer = schedule("2026-03-29 00:00 – 2026-03-29 04:00", "Europe/Berlin")  # an hour is left out
    start = 1_774_738_800_000_000
    assert summer.is_on(start)
    assert summer.ends(start) == start + 3 * hour
