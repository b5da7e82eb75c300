"""Entrance and exit as lines in a picture of readings."""

from __future__ import annotations

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.lang.grammar import keywords
from holdfast.service.api.lines import ThresholdLine, threshold_lines

APP = """
topic Climate (temperature float °C, co2 float ppm)
state Warm   on Climate [temperature > 77 °F; 20 °C > temperature] per source
state Both   on Climate [temperature > 25 && (co2 in [400, 900] || !(co2 < 1200)); true] per source
state Always on Climate [abs(temperature) > 3; abs(temperature) < 2]
"""


def test_chart_lines_are_in_the_unit_of_the_attribute():
    warm, both, always = check(parse(APP)).conditions
    assert threshold_lines(warm) == [
        ThresholdLine("enter", "temperature", ">", 25.0),
        ThresholdLine("exit", "temperature", "<", 20.0),
    ]
    assert {(line.attribute, line.sign, line.value) for line in threshold_lines(both)} == {
        ("temperature", ">", 25.0), ("co2", ">=", 400.0), ("co2", "<=", 900.0), ("co2", ">=", 1200.0),
    }  # fmt: skip
    assert threshold_lines(always) == [], "what is no comparison of an attribute with a number is no line"


def test_the_editor_knows_the_keywords_of_the_grammar():
    assert {"topic", "state", "filter", "per", "within", "ingress", "avg"} <= set(keywords())
