"""A definition as machines: where each condition can run, and its output there."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from holdfast.model.event import Event
from holdfast.model.instant import SECOND
from holdfast.network.motes.conditions import Evaluator, broker_form, load_definition, scope, why_not_alone

TEXT = """\
topic T (value float, room text)
let limit = 25
state Alone on T [value > limit; value < 22] per source
state Room on T [value > limit; value < 22] per source within room
state Late on T [value > limit; value < 22] per source ordered 2 s
state All on T [value > limit; value < 22]
filter Hot on T where value > 40
region West = rectangle (0, 0) (10, 10)
state There on T [value > limit; value < 22] scope West
state Lasting
  A = T each source
  enter A.value > 25 for 5 s
  exit  A.value < 22
"""
DEFINITION = load_definition(TEXT, Path())


def event(time: int, value: float, source: str = "a") -> Event:
    return Event("T", time * SECOND, source, {"value": value, "room": "r"}, time)


@pytest.mark.parametrize("name", ["limit", "base", "self"])
def test_a_parameter_may_have_another_value_whatever_its_name(name):
    text = f"topic T (value float)\nlet {name} = 25\nstate W on T [value > {name}; value < 2] per source\n"
    watch = Evaluator(load_definition(text, Path(), {name: 10}).operators()["W"], "W")
    assert [each.status for each in watch.react(event(1, 12))] == ["ingress"]


def test_every_subscription_has_an_operator_and_its_topics():
    served = DEFINITION.operators()
    assert set(served) == {"Alone", "Room", "Late", "All", "Hot", "There", "Lasting"}
    assert all(served[name].topics_by_name()[name] == ("T",) for name in served)
    assert "Lasting" not in DEFINITION.filters


def test_an_evaluator_returns_notifications_of_its_subscription_only():
    watch = Evaluator(DEFINITION.operators()["Alone"], "Alone")
    emitted = [each for i, value in enumerate((20, 26, 27, 21)) for each in watch.react(event(i, value))]
    assert [(each.subscription, each.status, each.scope, each.event.time) for each in emitted] == [
        ("Alone", "ingress", "a", SECOND),
        ("Alone", "egress", "a", 3 * SECOND),
    ]
    assert watch.due is None
    assert watch.advance(100 * SECOND) == []


def test_an_evaluator_reports_when_its_next_timer_is_due():
    watch = Evaluator(DEFINITION.operators()["Lasting"], "Lasting")
    assert watch.react(event(10, 26)) == []
    watch.advance(10 * SECOND + 1)
    assert watch.due is not None
    assert [each.status for each in watch.advance(watch.due + 1)] == ["ingress"]


def test_late_events_are_not_notified():
    watch = Evaluator(DEFINITION.operators()["Late"], "Late")
    watch.react(event(10, 26))
    watch.advance(20 * SECOND)
    assert watch.react(event(1, 26)) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Alone", None),
        ("Hot", None),
        ("Room", "one state for several sensors"),
        ("All", "one state for several sensors"),
        ("There", "one state for several sensors"),
        ("Late", "puts samples in order"),
    ],
)
def test_a_mote_runs_conditions_on_its_own_samples(name, why):
    found = why_not_alone(DEFINITION.filters[name])
    assert (found is None) == (why is None)
    assert (why or "") in (found or "")


def test_a_scope_is_that_of_the_engine():
    filters = DEFINITION.filters
    assert scope(filters["Alone"], event(0, 1)) == "a"
    assert scope(filters["Hot"], event(0, 1)) is None


def test_brokers_receive_the_text_of_one_subscription():
    found = broker_form(DEFINITION, DEFINITION.filters["Alone"])
    assert found is not None
    text, condition = found
    assert text == (
        "topic T (value float, room text)\nlet limit = 25\nregion West = rectangle (0, 0) (10, 10)\n"
        "state Alone on T [value > limit; value < 22] per source\n"
    )
    assert condition.name == "Alone"
    assert condition.enter(event(0, 26))
    assert broker_form(DEFINITION, DEFINITION.filters["Late"]) is None


def test_a_gazetteer_is_not_sent_to_brokers(tmp_path):
    (tmp_path / "rooms.toml").write_text("[rooms]\nlab = { rectangle = [0, 0, 10, 5] }\n")
    text = (
        'topic T (value float)\ngazetteer "rooms.toml"\nstate Warm on T [value > 25; value < 22] scope lab\n'
    )
    (tmp_path / "lab.hf").write_text(text)
    definition = load_definition("lab.hf", tmp_path)
    assert broker_form(definition, definition.filters["Warm"]) is None


def test_a_definition_can_be_pickled_to_other_processes():
    assert pickle.loads(pickle.dumps(DEFINITION)) == DEFINITION
