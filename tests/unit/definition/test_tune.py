"""Which numbers of a state can be tuned, and the definition with others."""

from __future__ import annotations

import pytest

from holdfast import DefinitionError, UsageError, check, parse, show
from holdfast.definition.tune import tunable, tune
from holdfast.model.instant import MINUTE

TOPIC = "topic T (value float °C, h float, n int)\n"


def found(text, of=None, name="W"):
    return tunable(check(parse(TOPIC + text)), name, of)


def rewrite(text, enter, exit, guard, of=None):
    app = parse(TOPIC + text)
    return tune(app, tunable(check(app), "W", of), (enter, exit, guard * MINUTE)).text.removeprefix(TOPIC)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("state W on T [value > 25 °C; value < 22 °C]", "state W on T [value > 26.5 °C; value < 20 °C]"),
        ("state W on T [77 °F < value; value < 22 °C]", "state W on T [26.5 °C < value; value < 20 °C]"),
        (
            "state W on T [!(value <= 25 °C || n == 1); value < 22 °C] # here",
            "state W on T [!(value <= 26.5 °C || n == 1); value < 20 °C] # here",
        ),
        (
            "let high = 25 °C  # of the cellar\nstate W on T [value > high;\n  value < high - 3 °C]",
            "let high = 25 °C  # of the cellar\nstate W on T [value > 26.5 °C;\n  value < 20 °C]",
        ),
        (
            "state W on T [value in [25 °C, 45 °C]; value in [5 °C, 22 °C]]",
            "state W on T [value in [26.5 °C, 45 °C]; value in [5 °C, 20 °C]]",
        ),
    ],
)
def test_tuning_changes_only_the_numbers_in_the_text(before, after):
    assert rewrite(before + " per source", 26.5, 20, 0) == after + " per source"


@pytest.mark.parametrize(
    ("before", "guard", "after"),
    [
        ("[value > 25 °C; value < 22 °C]", 5, "[value > 25 °C for 5 min; value < 22 °C]"),
        ("[value > 25 °C for 90 s; value < 22 °C]", 5, "[value > 25 °C for 5 min; value < 22 °C]"),
        ("[value > 25 °C for 90 s; value < 22 °C]", 0, "[value > 25 °C; value < 22 °C]"),
        ("[value > 25 °C; value < 22 °C for 1 min]", 2, "[value > 25 °C for 2 min; value < 22 °C for 1 min]"),
    ],
)
def test_a_minimum_duration_is_added_changed_and_removed(before, guard, after):
    assert rewrite(f"state W on T {before} per source", 25, 22, guard) == f"state W on T {after} per source"


def test_a_statement_that_cannot_be_edited_in_its_text_is_printed_again():
    app = parse(TOPIC + "state W on T [value > 25 °C; value < 22 °C] per source")
    app.text = None
    changed = tune(app, tunable(check(app), "W"), (30.0, 20.0, 0))
    assert changed.text is None
    assert "[value > 30 °C; value < 20 °C]" in show(changed)


def test_the_band_keeps_entrance_and_exit_apart_among_several_thresholds():
    band = found("state W on T [value in [25 °C, 45 °C]; value in [5 °C, 24 °C]] per source")
    assert (band.enter.value, band.exit.value) == (25, 24)
    assert band.excludes(25, 24)
    assert not band.excludes(25, 25)
    assert not band.excludes(23, 24)
    falling = found("state W on T [value < 5 °C; value > 8 °C] per source")
    assert falling.excludes(5, 8)
    assert not falling.excludes(9, 8)


def test_an_attribute_selects_among_several_thresholds():
    text = "state W on T [value > 25 °C && h > 3; value < 22 °C || h < 1] per source"
    with pytest.raises(UsageError, match=r"several thresholds: value > 25.*--of value"):
        found(text)
    assert (found(text, "h").enter.value, found(text, "h").exit.value) == (3, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("state V on T [value > 25 °C; value < 22 °C]", "no such state over readings. There is V"),
        ("filter W on T where value > 25 °C", "over as it starts"),
        ("state W on T [n == 1; n == 2]", "compares nothing with a number"),
        ("state W on T [value > 25 °C; silent 5 min] per source", "looks at silence"),
        ("state W on T [value > 25 °C for 3 readings; value < 22 °C]", "guard of readings"),
        (
            "state W on T [value > 25 °C; value < 22 °C] per source unknown after 5 min",
            "unknown or forgotten",
        ),
        ("state W on T [value > 25 °C; value < 22 °C] per n within source", "scopes within scopes"),
    ],
)
def test_states_without_tunable_numbers_are_refused(text, message):
    with pytest.raises((UsageError, DefinitionError), match=message):
        found(text)
