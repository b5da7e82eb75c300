"""TICKscripts of Kapacitor, in the forms that public scripts have."""

from __future__ import annotations

import pytest

from holdfast import check, parse
from holdfast.importers.kapacitor import translate
from holdfast.kinds.levels.condition import LevelsCondition
from holdfast.kinds.state.condition import DurationCondition

LEVELS = """
// levels with their resets
var crit_level = 80.0
var data = stream
    |from()
        .measurement('cpu')
        .where(lambda: "cpu" == 'cpu-total')
        .groupBy('host')
data
    |alert()
        .id('{{ .TaskName }}/{{ index .Tags "host" }}')
        .info(lambda: "usage" > 60)
        .infoReset(lambda: "usage" < 50)
        .crit(lambda: "usage" > crit_level)
        .critReset(lambda: "usage" < 70)
        .stateChangesOnly()
        .flapping(0.25, 0.5)
        .slack()
"""
DURATION = """
stream
    |from().measurement('m').groupBy('zone')
    |where(lambda: isPresent("env") AND ("env" == 'prod'))
    |stateDuration(lambda: "field" > 33)
        .unit(1m)
        .as('long')
    |alert()
        .crit(lambda: "long" >= 5)
"""


def test_levels_are_imported_with_their_resets():
    found = translate(LEVELS, "cpu alert")
    (line,) = [line for line in found.text().splitlines() if line.startswith("levels")]
    assert line.startswith('levels cpu_alert on cpu: info [cpu == "cpu-total" && usage > 60;')
    assert 'crit [cpu == "cpu-total" && usage > 80.0; cpu == "cpu-total" && usage < 70] per host' in line
    output = " ".join(note.message for note in found.notes)
    assert "flapping" in output
    assert "every level keeps a bit of its own" in output
    assert check(parse(found.text())).of(LevelsCondition)


def test_a_duration_is_imported_as_a_minimum_duration():
    text = translate(DURATION, "long").text()
    assert "field > 33 for 5 min; " in text
    assert "per zone" in text
    assert check(parse(text)).of(DurationCondition)


def test_a_window_is_imported_as_a_component_and_a_deadman_as_silence():
    window = """stream|from().measurement('t').groupBy('room')
      |window().period(10m).every(1m)
      |mean('value').as('m')
      |alert().warn(lambda: "m" > 25.0).warnReset(lambda: "m" < 22.0)
    """
    text = translate(window, "warm").text()
    assert "A = avg t over 10 min each room" in text
    assert "exit A.value < 22.0" in text
    dead = translate("stream|from().measurement('t').groupBy('room')|deadman(0.0, 10m)", "dead").text()
    assert "[silent 10 min; !silent 10 min] per room" in dead


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("batch|query('SELECT 1').period(1m)|alert().crit(lambda: \"a\" > 1)", "database"),
        ("stream|from().measurement('t')|derivative('a')|alert().crit(lambda: \"a\" > 1)", "derivative"),
        ("stream|from().measurement('t')|alert().crit(lambda: sigma(\"a\") > 1)", "sigma"),
        ("stream|from().measurement('t')|alert().crit(lambda: \"h\" =~ /web/)", "pattern"),
        ('stream|from()|alert().crit(lambda: "a" > 1)', "measurement"),
        ("stream|from().measurement('t')|alert().id('x')", "neither"),
    ],
)
def test_parts_without_equivalent_are_reported(script, why):
    found = translate(script)
    assert found.translated == 0
    assert any(why in note.message for note in found.notes)
