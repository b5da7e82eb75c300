"""Entrance and exit as lines in a picture of readings."""

from __future__ import annotations

from holdfast.lang.check import check
from holdfast.lang.parse import keywords, parse
from holdfast.service.api.lines import Line, lines_of

APP = """
topic Climate (temperature float °C, co2 float ppm)
state Warm   on Climate [temperature > 77 °F; 20 °C > temperature] per source
state Both   on Climate [temperature > 25 && (co2 in [400, 900] || !(co2 < 1200)); true] per source
state Always on Climate [abs(temperature) > 3; abs(temperature) < 2]
"""


def test_lines_are_in_the_unit_of_the_attribute_whatever_was_written():
    warm, both, always = check(parse(APP)).conditions
    assert lines_of(warm) == [
        Line("enter", "temperature", ">", 25.0),
        Line("exit", "temperature", "<", 20.0),
    ]
    assert {(line.attribute, line.sign, line.value) for line in lines_of(both)} == {
        ("temperature", ">", 25.0), ("co2", ">=", 400.0), ("co2", "<=", 900.0), ("co2", ">=", 1200.0),
    }  # fmt: skip
    assert lines_of(always) == [], "what is no comparison of an attribute with a number is no line"


def test_an_editor_knows_the_words_of_the_grammar():
    assert {"topic", "state", "filter", "per", "within", "ingress", "avg"} <= set(keywords())
