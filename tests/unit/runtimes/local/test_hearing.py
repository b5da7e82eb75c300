"""Conditions that hear others in an engine: they go on when it is kept, changed or revised."""

from __future__ import annotations

import pytest

from holdfast import Engine, Event

TEXT = """topic Smoke (density float, room text)
state Smoky on Smoke [density > 5; density < 2] per source
state Fire = at least 2 of Smoky within room until fewer than 1
"""


def smoke(i, source, density, room="hall"):
    return Event("Smoke", i * 1_000_000, source, {"density": density, "room": room}, i)


def told(notifications):
    return [(n.subscription, n.scope, n.status) for n in notifications]


def test_a_count_goes_on_from_a_snapshot():
    engine = Engine(TEXT)
    engine.push(smoke(0, "a", 6.0))
    again = Engine.restore(TEXT, engine.snapshot())
    assert told(again.push(smoke(1, "b", 6.0))) == [("Smoky", "b", "ingress"), ("Fire", "hall", "ingress")]
    (note,) = [
        n for n in again.push(smoke(2, "a", 1.0)) + again.push(smoke(3, "b", 1.0)) if n.subscription == "Fire"
    ]
    assert (note.status, note.since, note.event.attributes["first"]) == ("egress", 1_000_000, "a")
    assert note.event.attributes["members"] == 0


def test_a_count_that_is_subscribed_to_later_counts_from_then_on_and_holds_its_state_back():
    engine = Engine(TEXT.replace("state Fire = at least 2 of Smoky within room until fewer than 1\n", ""))
    said = []
    engine.subscribe("state Fire = any of Smoky within room", said.append)
    engine.push(smoke(0, "a", 6.0))
    assert told(said) == [("Fire", "hall", "ingress")]
    with pytest.raises(Exception, match="'Fire' builds on 'Smoky'; end it first"):
        engine.unsubscribe("Smoky")


def test_a_state_that_is_revised_is_counted_anew():
    engine = Engine(TEXT, remember=True)
    for i, (source, density) in enumerate([("a", 6.0), ("b", 4.0)]):
        engine.push(smoke(i, source, density))
    said = engine.revise(TEXT.replace("density > 5", "density > 3"))
    assert ("Smoky", "b", "revised") in told(said)
    assert ("Fire", "hall", "ingress") in told(said)
    assert [h.subscription for h in engine.holding()] == ["Fire", "Smoky", "Smoky"]


def test_what_is_muted_is_evaluated_counted_and_told_afterwards():
    engine = Engine(
        TEXT + "topic Drill (on_ bool)\nstate Drilling on Drill [on_; !on_]\nmute Smoky while Drilling\n"
    )
    out = []
    for i, (topic, value) in enumerate(
        [("Drill", True), ("a", 6.0), ("b", 6.0), ("b", 1.0), ("Drill", False)]
    ):
        event = Event("Drill", i * 10, "d", {"on_": value}, i) if topic == "Drill" else None
        reading = Event("Smoke", i * 10, topic, {"density": value, "room": "hall"}, i)
        out += engine.push(event or reading)
    out += engine.advance(1_000)
    rest = [row for row in told(out) if row[0] != "Drilling"]
    assert rest == [("Fire", "hall", "ingress"), ("Smoky", "a", "ingress"), ("Smoky", None, "summary")]
    (summary,) = [n for n in out if n.status == "summary"]
    assert summary.event.attributes == {"missed": 1, "scopes": 1, "holding": 1}
    assert {h.subscription for h in engine.holding()} == {"Fire", "Smoky"}
