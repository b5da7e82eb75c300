"""Warnings: only what is sure, with a reading that shows it."""

import pytest

from holdfast.definition.parse import parse

TOPIC = "topic T (value float °C, other float °C, n int, ok bool, name text)\n"


def warnings(condition, clauses="per source"):
    """The warnings except those about thresholds without a unit."""
    found = (w.message for w in parse(f"{TOPIC}state W on T {condition} {clauses}").check().warnings)
    return [message for message in found if "has no unit" not in message]


@pytest.mark.parametrize(
    ("condition", "example"),
    [
        ("[value > 25; value > 20]", "value = 26 °C"),
        ("[value > 25; value != 3]", "value = 26 °C"),
        ("[value in [20, 25]; value in [24, 30]]", "value = 24 °C"),
        ("[value > 25; value < 25.01]", "value = 25.005 °C"),
        ("[n >= 2; n <= 2]", "n = 2"),
        ("[ok; value > 3]", "ok = true, value = 4 °C"),
        ('[name == "a"; name != "b"]', 'name = "a"'),
        ('[name != "a"; name != "other"]', 'name = "other0"'),
        ("[|value - 20| > 2; |value - 20| < 3]", "value = 22.5 °C"),
        ("[2 * value + 3 > 50; value < 24]", "value = 23.7 °C"),
    ],
)
def test_entrance_and_exit_that_can_both_be_true_cause_a_warning(condition, example):
    assert warnings(condition) == [
        f"entrance and exit of 'W' can both hold at one reading, e.g. at {example}"
    ]


def test_nested_magnitudes_are_analysed_once():
    """Each of forty nested terms once added two alternatives, which took unacceptably long."""
    many = "abs(" * 40 + "value" + ")" * 40
    assert warnings(f"[value > 25; {many} < 26]") == warnings("[value > 25; abs(value) < 26]")


@pytest.mark.parametrize(
    "condition",
    [
        "[value > 25; value < 22]",
        "[value > 25]",
        "[ok; !ok]",
        "[ok; ok]",
        "[value > 25; false]",
        "[value > 25; true]",
        '[name == "a"; name == "b"]',
        "[n > 2; n < 3]",
        "[value > other; value < other]",
        "[value * other > 3; value * other > 2]",
        "[2 * value + 3 > 50; value < 23.5]",
        "[|value| > 3; |value| < 3]",
        '[(name == "J") && (ok); (name == "J") && (!ok)]',
        "[value > 1 / 0; value < 3]",
    ],
)
def test_there_is_no_warning_if_satisfiability_is_uncertain(condition):
    assert warnings(condition) == []


@pytest.mark.parametrize(
    "enter",
    [
        "value > 25 && value < 20",
        "value > 5 && value < 5",
        "n > 2 && n < 3",
        "n >= 2 && n <= 3 && n != 2 && n != 3",
        "n == 2.5",
        "ok && !ok",
        'name == "a" && name == "b"',
        'name == "a" && name != "a"',
        "2 * value > 10 && value < 4",
        "|value| < -1",
        "1 > 2",
        "false",
        "(ok || value > 3) && !ok && value < 2",
    ],
)
def test_a_condition_that_can_never_start_causes_a_warning(enter):
    assert warnings(f"[{enter}; value < 0]") == ["'W' can never start"]
    found = [w.message for w in parse(f"{TOPIC}filter W on T where {enter}").check().warnings]
    assert "'W' can never start" in found


def test_an_exit_that_can_never_be_true_causes_a_warning():
    assert warnings("[value > 25; value < 22 && value > 23]") == ["the exit of 'W' can never hold"]


def test_a_state_without_keys_causes_a_warning():
    assert warnings("[value > 25; value < 22]", "") == [
        "'W' has no 'per' and no 'scope': one condition for everything"
    ]
    assert warnings("[value > 25; true]", "") == []


def test_a_warning_points_at_the_exit():
    text = TOPIC + "state W on T [value > 25 °C; value > 20 °C] per source"
    (caution,) = parse(text, "a.hf").check().warnings
    assert str(caution).splitlines()[:3] == [
        "a.hf:2:30: warning: entrance and exit of 'W' can both hold at one reading, e.g. at value = 26 °C",
        "    state W on T [value > 25 °C; value > 20 °C] per source",
        "                                 ^^^^^^^^^^^^^",
    ]


def test_predicates_with_many_alternatives_are_not_analysed():
    many = " && ".join(f"(value > {i} || n > {i})" for i in range(40))
    assert warnings(f"[{many}; value < 0]") == []


def test_regions_without_a_declaration_are_mentioned():
    (message,) = warnings("[value > 25; value < 22]", "scope kitchen")
    assert "no region is declared, so kitchen stands for the events whose place" in message
