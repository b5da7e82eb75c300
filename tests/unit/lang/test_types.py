"""Units and the core: what is converted, what is refused, what is folded."""

import pytest

from holdfast.definition.show import show
from holdfast.errors import DefinitionError
from holdfast.lang.grammar import parse_expression
from holdfast.lang.types import NameScope, TypedQuantity, predicate, type_of
from holdfast.model.topic import Attribute, Topic
from holdfast.model.unit import UNITS

TOPIC = Topic(
    "T",
    (
        Attribute("c", "float", "°C"),
        Attribute("d", "float", "°C"),
        Attribute("f", "float", "°F"),
        Attribute("h", "float", "%"),
        Attribute("km", "float", "km"),
        Attribute("m", "float", "m"),
        Attribute("t", "float", "s"),
        Attribute("secs", "int", "s"),
        Attribute("p", "float"),
        Attribute("n", "int"),
        Attribute("ok", "bool"),
        Attribute("on_", "bool"),
        Attribute("name", "text"),
    ),
)
LETS = NameScope(
    TOPIC,
    {
        "high": TypedQuantity(parse_expression("25"), UNITS["°C"], whole=True),
        "plain": TypedQuantity(parse_expression("25"), bare=True, whole=True),
    },
)


def core(text):
    return show(predicate(parse_expression(text), LETS))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c > 25", "c > 25.0"),
        ("c > 77 °F", "c > 25.0"),
        ("77 °F < c", "25.0 < c"),
        ("c > 298.15 K", "c > 25.0"),
        ("c > high", "c > 25.0"),
        ("f > high", "f > 77.0"),
        ("f > plain", "f > 25.0"),
        ("c > f", "c > (f * 5.0 - 160.0) / 9.0"),
        ("f > c", "f > (c * 9.0 + 160.0) / 5.0"),
        ("c > d", "c > d"),
        ("km > m", "km > m / 1000.0"),
        ("m > km", "m > km * 1000.0"),
        ("m > 0.5 km", "m > 500.0"),
        ("c - d > 3.6 °F", "c - d > 2.0"),
        ("abs(c - f) > 2 K", "abs(c - (f * 5.0 - 160.0) / 9.0) > 2.0"),
        ("f + 2 °C > 5", "f + 3.6 > 5.0"),
        ("(c + f) / 2 > 77 °F", "(c + (f * 5.0 - 160.0) / 9.0) / 2.0 > 25.0"),
        ("m / t > 36 km/h", "m / t > 10.0"),
        ("km / t > 36 km/h", "km / t > 0.01"),
        ("km / m > 0.5", "km / m * 1000.0 > 0.5"),
        ("m / km > 50 %", "m / km / 1000.0 > 0.5"),
        ("km / m > p", "km / m * 1000.0 > p"),
        ("h > 50", "h > 50.0"),
        ("2 * c + 3 > 50", "2.0 * c + 3.0 > 50.0"),
        ("secs > 2 min", "secs > 120"),
        ("secs > 1.5 s", "secs > 1.5"),
        ("n > 5", "n > 5"),
        ("n > 2 + 3 * 4", "n > 14"),
        ("n > 5.0", "n > 5.0"),
        ("n + 1 > 5", "n + 1 > 5"),
        ("p > 5", "p > 5.0"),
        ("p > n", "p > n"),
        ("p > 1 / 0", "p > 1.0 / 0.0"),
        ("c in [20, 86 °F]", "c >= 20.0 && c <= 30.0"),
        ("!(c > 25)", "c <= 25.0"),
        ("!(c in [20, 25])", "c < 20.0 || c > 25.0"),
        ("!(ok || !on_)", "!ok && on_"),
        ("ok == true", "ok"),
        ("ok != true", "!ok"),
        ("ok == false", "!ok"),
        ("ok == on_", "ok && on_ || !ok && !on_"),
        ("true && c > 1", "c > 1.0"),
        ("false || c > 1", "c > 1.0"),
        ("ok && 1 > 2", "false"),
        ('ok || "a" == "a"', "true"),
        ('!(name == "x")', 'name != "x"'),
        ("x > 5 && place == source", "x > 5.0 && place == source"),
    ],
)
def test_a_predicate_compiles_to_the_expected_core(text, expected):
    assert core(text) == expected


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("c > 5 m", "5 m cannot be compared with c (°C)", "°C and m measure different things"),
        ("c > m", "m (m) cannot be compared with c (°C)", "different things"),
        ("c + m > 5", "m (m) cannot be added to c (°C)", None),
        ("p > 5 m", "p has no unit, so 5 m cannot be compared with it", "p float m"),
        ("c > p", "p has no unit, so c (°C) cannot be compared with it", "p float °C"),
        ("p * 2 > 5 m", "p * 2 has no unit", "Leave the unit out"),
        ("m / t > 5 m", "5 m cannot be compared with m / t (m/s)", None),
        ("c in [20, 25 m]", "25 m cannot be compared with c", None),
        ("n > 9223372036854775807 + 1", "does not fit in 64 bits", None),
    ],
)
def test_incompatible_units_are_refused(text, message, hint):
    with pytest.raises(DefinitionError) as caught:
        core(text)
    assert message in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")
    assert caught.value.place is not None


def test_a_difference_of_literals_is_a_literal():
    low = type_of(parse_expression("25 °C - 2 °C"), NameScope(None, {}))
    assert not low.difference
    assert show(predicate(parse_expression("f < low"), NameScope(TOPIC, {"low": low}))) == "f < 73.4"


def test_exponentially_growing_comparisons_are_refused_before_they_fill_memory():
    with pytest.raises(DefinitionError, match="too large"):
        core("(" * 60 + "(c > 1)" + " == ok)" * 60)
