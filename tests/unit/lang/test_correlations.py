"""Correlations as they are written, and what is wrong with them."""

from __future__ import annotations

import math

import pytest

from holdfast import App, Circle, DefinitionError, UsageError, check, parse, show
from holdfast.kinds.correlation.condition import CorrelationCondition
from holdfast.kinds.correlation.syntax import DefineCorrelation, MatchRange
from holdfast.lang.ops import Name, Number
from holdfast.model.correlation import RangeFilter
from holdfast.model.qos import Delivery

TOPICS = """
topic ambient_temp (value float °C)
topic Wind (speed float m/s, direction float)
topic Air (humidity float %, station text, value float)
region Pass = rectangle (0, 0) (500, 500)
let limit = 8 m/s
"""


def check_one(text):
    (found,) = check(parse(TOPICS + text)).of(CorrelationCondition)
    return found


def filters(text):
    return [
        (f.attribute, f.low, f.high)
        for f in check_one(f"correlate S within 1 min {text}").correlation.filters
    ]


def test_a_correlation_parses_as_in_the_design():
    one = check_one("""
        correlate Storm within 2 min, 500 m  in region Pass
          ambient_temp in [-5, 2]   speed >= 8   humidity in [85, 100]
    """)
    assert one.correlation.filters == (
        RangeFilter("ambient_temp.value", -5.0, 2.0),
        RangeFilter("Wind.speed", 8.0, math.inf),
        RangeFilter("Air.humidity", 85.0, 100.0),
    )
    assert (one.correlation.within, one.correlation.near) == (120_000_000, 500.0)
    assert one.correlation.region.name == "Pass"
    assert (one.tell, one.delivery) == ("events", Delivery())
    assert [topic.name for topic in one.listens] == ["ambient_temp", "Wind", "Air"]


def test_the_example_of_the_paper_is_a_complete_definition():
    found = check(parse("correlate s3 within 10 s  55 < a < 75, 15 < b < 35, 5 < c < 15"))
    assert [topic.name for topic in found.topics] == ["a", "b", "c"]
    above = math.nextafter(55, 99)
    assert found.of(CorrelationCondition)[0].correlation.filters[0] == RangeFilter(
        "a.value", above, math.nextafter(75, 0)
    )


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("speed in [1, 2]", 1, 2),
        ("speed in (1, 2]", math.nextafter(1, 2), 2),
        ("speed in [1, 2)", 1, math.nextafter(2, 1)),
        ("speed > 1", math.nextafter(1, 2), math.inf),
        ("speed < 0", -math.inf, -5e-324),
        ("speed = 3", 3, 3),
        ("speed == limit", 8, 8),
        ("36 km/h <= speed", 10, math.inf),
        ("-1 < speed <= limit", math.nextafter(-1, 0), 8),
        ("Wind.speed ≥ 18 km/h", 5, math.inf),
    ],
)
def test_ranges_parse_in_every_notation(text, low, high):
    assert filters(f"{text} humidity > 80")[0] == ("Wind.speed", low, high)


def test_filters_may_stand_on_separate_lines_before_the_next_statement():
    text = """
        correlate A within 1 min
          speed >= 8
          && humidity > 80,
          ambient_temp < 0
          tell latest  ordered 30 s  late apply
        warm: [value > 25; value < 22]
        correlate B within 1 s  speed of "s1" > 1  speed of "s2" > 1
        equal = direction > 5
    """
    app = parse(TOPICS + text)
    a, b = (s for s in app.statements if isinstance(s, DefineCorrelation))
    assert (a.tell, a.delivery) == ("latest", Delivery(30_000_000, "apply"))
    assert [match.sensor for match in b.matches] == ["s1", "s2"]
    assert len(app.statements) == 9


def test_the_builder_makes_the_same_statement_as_text():
    app = App()
    app.topic("Wind", speed="float m/s", direction=float)
    app.correlate(
        "Storm", "speed >= 8", 'direction in (300, 360]',
        within="2 min", near="0.5 km", region=Circle((0.0, 0.0), 500.0), tell="all", ordered="30 s",
    )  # fmt: skip
    assert app == parse("""
        topic Wind (speed float m/s, direction float)
        correlate Storm within 2 min, 500 m in circle (0, 0) 500
          speed >= 8  direction in (300, 360]  tell all  ordered 30 s
    """)
    assert parse(show(app)) == app
    assert app.statements[1].matches[1] == MatchRange("direction", Number(300), Number(360), (True, False))
    with pytest.raises(UsageError, match="tells events, all, latest, first"):
        app.correlate("X", "speed > 1", "direction > 1", within="1 s", tell="some")


def test_an_attribute_named_like_a_unit_is_an_attribute():
    app = parse('correlate S within 2 min  A > 5 V in [1 V, 2 V] W of "x" < 3 W  2 A < m <= 5 m  s == 1')
    matches = app.statements[0].matches
    assert [match.attribute for match in matches] == ["A", "V", "W", "m", "s"]
    assert matches[0].low == Number(5)
    assert [matches[1].high, matches[2].high, matches[3].high] == [
        Number(2, "V"),
        Number(3, "W"),
        Number(5, "m"),
    ]


def test_a_parameter_can_be_a_bound_and_can_be_overridden():
    app = parse(TOPICS + "correlate S within 1 min speed >= limit humidity > 80")
    assert app.statements[-1].matches[0].low == Name("limit")
    assert check(app, lets={"limit": 20}).of(CorrelationCondition)[0].correlation.filters[0].low == 20


def test_complex_events_have_value_source_and_time_of_every_filter():
    one = check_one('correlate S within 1 s speed of "a b" > 1 speed of "a_b" > 1 tell all')
    names = [a.name for a in one.topic.attributes]
    assert names[:3] == ["speed_a_b", "speed_a_b_source", "speed_a_b_time"]
    assert names[3:] == ["speed_a_b_2", "speed_a_b_2_source", "speed_a_b_2_time"]
    assert one.topic.attributes[0].unit == "m/s"


WRONG = {
    "speed > 1": "at least two filters",
    "speed > 1 sped > 2": "no topic has an attribute 'sped'.*\n.*\n.*\n.*Did you mean 'speed'",
    "speed > 1 value > 2": "'value' can mean 2 attributes.*\n.*\n.*\n.*ambient_temp.value or Air.value",
    "speed > 1 station > 2": "'station' of topic 'Air' is text; a correlation compares numbers",
    "speed > 1 Wind > 2": "no topic has an attribute 'Wind'",
    "speed in [2, 1] humidity > 2": "nothing lies in the range of 'speed'",
    "speed in (2, 2) humidity > 2": "nothing lies in the range of 'speed'",
    "speed > 1 Wind.speed < 5": "'Wind.speed' has two filters",
    'speed of "a" > 1 speed of "a" < 5': "'speed' of \"a\" has two filters",
    'speed of "a" > 1 humidity > 5': "'humidity' names no sensor, but other filters do",
    "speed > 1 °C humidity > 5": "'speed' is not measured in °C",
    "speed > nothing humidity > 5": "'nothing' is not a parameter",
    "speed != 1 humidity > 5": "'!=' leaves no range",
    "1 < speed > 2 humidity > 5": "both comparisons bound the same side",
    "speed > 1 humidity > 5 tell some": "unknown word 'some'",
    "speed > 1 humidity > 5 tell all tell all": "'tell' is given twice",
    "speed > 1 humidity > 5 late apply": "'late apply' needs 'ordered'",
    "speed > 1 || humidity > 5": "no 'or' between filters",
    "speed > 1 humidity > 5 per source": "a correlation has no 'per'",
    "speed > 1 humidity": "expected a range after 'humidity'",
    "speed of s1 > 1": "a sensor is a text in double quotes",
    "speed = limit humidity > 1": "a parameter is compared with '=='",
    "": "expected an attribute and its range",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items())
def test_errors_in_filters_are_reported_at_their_place(text, message):
    with pytest.raises(DefinitionError, match=message) as error:
        check_one(f"correlate S within 1 min {text}")
    assert error.value.place is not None
    assert error.value.place.line == 7


HEADS = {
    "within 0 s": "must be above zero",
    "within 1 m": "m is not a unit of time",
    "within 1 min, 0 m": "the distance must be above zero",
    "within 1 min, 5 s": "s is not a unit of length",
    "within 1 min in region Pas": "unknown region or level 'Pas'.*\n.*\n.*\n.*Did you mean 'Pass'",
    "within 1 min in Pass": "expected 'region' before 'Pass'",
}


@pytest.mark.parametrize(("head", "message"), HEADS.items())
def test_errors_in_the_head_are_reported_at_their_place(head, message):
    with pytest.raises(DefinitionError, match=message):
        check_one(f"correlate S {head} speed > 1 humidity > 1")


def test_named_sensors_allow_neither_distance_nor_region():
    for head in ("within 1 min, 5 m", "within 1 min in region Pass"):
        with pytest.raises(DefinitionError, match="neither a distance nor a region"):
            check_one(f'correlate S {head} speed of "a" > 1 speed of "b" > 1')


def test_an_error_in_a_statement_built_in_python_names_the_correlation():
    app = App()
    app.topic("Wind", speed="float m/s")
    app.correlate("Storm", "speed > 1", "sped > 2", within="1 s")
    with pytest.raises(DefinitionError, match="in 'Storm': no topic has an attribute 'sped'"):
        app.check()


def test_a_case_without_locations_causes_a_warning_where_distances_are_compared():
    found = check(
        parse("""
        topic A (v float)
        topic B (v float)
        correlate S within 1 min, 5 m A > 1 B > 1
        case "here and nowhere"
          given A at (1, 1): 2
          given B: 2
          expect S: nothing
    """)
    )
    (warning,) = found.warnings
    assert "'S' compares distances, but these readings have no location" in str(warning)
    assert warning.place.line == 7
