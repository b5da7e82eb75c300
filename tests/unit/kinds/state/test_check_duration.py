"""Invalid durations, silence and rosters are refused at their place."""

from __future__ import annotations

import pytest

from holdfast import App, DefinitionError, check, parse, silent

TOPIC = "topic T (value float)\n"


@pytest.mark.parametrize(
    ("text", "caret", "message"),
    [
        ("state W on T [value > 1 for -5 min; value < 1]", "-5 min", "cannot be negative"),
        ("state W on T [value > 1 for 0 s; value < 1]", "0 s", "must be above zero"),
        ("state W on T [value > 1 for -3 readings; value < 1]", "-3 readings", "at least one"),
        ("state W on T [value > 1 for 1.5 readings; value < 1]", "1.5 readings", "whole number"),
        (f"state W on T [value > 1 for {'9' * 5_000} readings; value < 1]", "999", "too large"),
        ("state W on T [silent -5 min; value < 1]", "-5 min", "cannot be negative"),
        ("state W on T [value > 1; value < 1] initially maybe", "maybe", "unknown word 'maybe'"),
        ("state W on T [value > 1; value < 1] forget after 0 s", "0 s", "above zero"),
        ("state W on T [value > 1 for 5 min; true] per source", "true", "over as it starts"),
        ("state W on T [value > 1 for 5 min; value < 1] per place within source", "W", "one level"),
        (
            "state W on T [value > 1; value < 1] unknown after 5 min forget after 1 min",
            "W",
            "before it is unknown",
        ),
        ('state W on T [value > 1; value < 1] roster "x.csv"', "W", "nobody to expect"),
        ('state W on T [value > 1; value < 1] per source roster "x.csv"', "W", "cannot be read"),
        ("state W on T [value > 1; value < 1] per source roster gazetteer", "W", "lists no sources"),
        ("let x = silent 5 min", "silent 5 min", "scopes of a state"),
    ],
)
def test_clauses_that_exclude_each_other_are_refused_at_their_place(text, caret, message):
    with pytest.raises(DefinitionError) as caught:
        check(parse(TOPIC + text))
    error = caught.value
    assert message in error.message
    line = text
    assert error.place is not None
    assert line[error.place.column - 1 :].startswith(caret)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("room\nlab\n", "has no column 'source'"),
        ("source\na\na\n", "'a' stands there twice"),
        ("source,room\na,lab\n,attic\n", "row 3 has no source"),
        ("", "has no column 'source'; it has nothing"),
    ],
)
def test_an_invalid_roster_is_refused(tmp_path, rows, message):
    (tmp_path / "sensors.csv").write_text(rows)
    with pytest.raises(DefinitionError, match=message):
        check(
            parse(TOPIC + 'state W on T [silent 1 min; !silent 1 min] per source roster "sensors.csv"'),
            tmp_path,
        )


def test_builders_make_the_same_statements_as_text():
    app = App()
    topic = app.topic("T", value="float")
    app.state(
        "W",
        on=topic,
        enter=(topic.value > 25) | silent("10 min"),
        exit=topic.value < 22,
        per="source",
        enter_for="5 min",
        exit_for=3,
        unknown_after="1 h",
        forget_after="30 d",
        initially="unknown",
        quietly=True,
        roster="sensors.csv",
    )
    assert app == parse(
        TOPIC + "state W on T [value > 25 || silent 10 min for 5 min; value < 22 for 3 readings] per source "
        'unknown after 1 h forget after 30 d initially unknown quietly roster "sensors.csv"'
    )


def test_a_threshold_without_a_unit_causes_a_warning_where_the_attribute_has_one():
    made = check(parse("topic T (value float °C)\nstate W on T [value > 25; value < 22 °C] per source"))
    (caution,) = made.warnings
    assert caution.message == "25 has no unit, and 'value' is in °C: it is taken for that"
    assert (caution.place.line, caution.place.column, caution.place.width) == (2, 23, 2)


def test_two_queries_of_each_location_have_equal_keys():
    text = "topic T (value float)\ntopic U (value float)\nstate N A = T each location B = U {} location\n"
    text += "enter |A.location - B.location| <= 2 exit true"
    (caution,) = check(parse(text.format("each"))).warnings
    assert "A and B are kept apart by location" in caution.message
    assert check(parse(text.format("any"))).warnings == ()


def test_nested_scopes_are_refused_with_a_hint():
    """The outer scope would need the timers of an inner one: a count does that."""
    topic = "topic T (value float, room text, floor text)\n"
    with pytest.raises(DefinitionError) as refused:
        check(parse(topic + "state W on T [value > 25 for 5 min; value < 22] per room within floor"))
    assert refused.value.hint == (
        "Define 'WInner' with them for 'per room, floor', and count it: 'state W = at least 1 of WInner "
        "within floor', which ends with the last of them."
    )
    inner = "state WInner on T [value > 25 for 5 min; value < 22] per room, floor\n"
    check(parse(topic + inner + "state W = at least 1 of WInner within floor"))
