"""Comparing ``place`` with the name of a region."""

from __future__ import annotations

import pytest

from holdfast import Engine, Event, check, parse
from holdfast.errors import DefinitionError

TOPIC = "topic T (value float)\n"
YARD = TOPIC + "region Yard = rectangle (0, 0) (10, 10)\n"
ROUND = TOPIC + 'region "the yard" = circle (0, 0) 10 m\n'


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (YARD + 'state S on T [place == "Yard"; place != "Yard"]', "x in [0, 10] && y in [0, 10]"),
        (YARD + 'state S on T [value > 1; "Yard" != place]', 'scope "Yard"'),
        (YARD + 'filter F on T where value > 1 && !(place == "Yard")', 'scope "Yard"'),
        (YARD + 'let there = "Yard"\nfilter F on T where place == there', 'scope "Yard"'),
        (YARD + 'state S on T each source enter place == "Yard" exit true', "Write: x in [0, 10]"),
        (YARD + 'state S A = T enter A.place == "Yard" exit A.value < 1', "Write: A.x in [0, 10]"),
        (YARD + 'levels L on T: a [place == "Yard"; value < 1]', 'scope "Yard"'),
        (ROUND + 'state S on T [place == "the yard"; value < 1]', 'scope "the yard"'),
        (ROUND + 'state S A = T enter A.place == "the yard" exit true', "Compare coordinates"),
        (TOPIC + 'region a\nregion b in a\nfilter F on T where place == "a"', 'scope "a"'),
    ],
)
def test_a_comparison_of_place_with_a_region_is_refused_with_a_hint(text, hint):
    with pytest.raises(DefinitionError, match="the text that an event carries") as caught:
        check(parse(text))
    assert hint in str(caught.value)
    assert "\n    " in str(caught.value)  # the line is shown


@pytest.mark.parametrize(
    "text",
    [
        TOPIC + 'region lab\nfilter F on T where place == "lab"',  # the same: it has neither shape nor parts
        YARD + 'filter F on T where place == "lab"',
        YARD + 'filter F on T where source == "Yard"',
    ],
)
def test_other_comparisons_of_place_are_unchanged(text):
    engine = Engine(text)
    source, place = ("Yard", None) if "source" in text else ("s", "lab")
    assert len(engine.push(Event("T", 0, source, {"value": 5.0}, 0, None, place))) == 1


def test_the_proposed_definition_has_the_intended_result():
    inside = "x in [0, 10] && y in [0, 10]"
    engine = Engine(YARD + f"state S on T [{inside}; !({inside})] per source")
    walk = [Event("T", i, "s", {}, i, (at, at)) for i, at in enumerate((50.0, 5.0, 6.0, 50.0))]
    emitted = [(n.status, n.event.time) for event in walk for n in engine.push(event)]
    assert emitted == [("ingress", 1), ("egress", 3)]
