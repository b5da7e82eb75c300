"""Downstream conditions in an engine: they continue after a restart, a change or a revision."""

from __future__ import annotations

import pytest

from holdfast import Engine, Event, cases
from holdfast.model.batch import from_events
from holdfast.model.topic import Attribute, Topic

TEXT = """topic Smoke (density float, room text)
state Smoky on Smoke [density > 5; density < 2] per source
state Fire = at least 2 of Smoky within room until fewer than 1
"""


def smoke(i, source, density, room="hall"):
    return Event("Smoke", i * 1_000_000, source, {"density": density, "room": room}, i)


def as_rows(notifications):
    return [(n.subscription, n.scope, n.status) for n in notifications]


def test_a_count_continues_from_a_snapshot():
    engine = Engine(TEXT)
    engine.push(smoke(0, "a", 6.0))
    again = Engine.restore(TEXT, engine.snapshot())
    assert as_rows(again.push(smoke(1, "b", 6.0))) == [("Smoky", "b", "ingress"), ("Fire", "hall", "ingress")]
    (note,) = [
        n for n in again.push(smoke(2, "a", 1.0)) + again.push(smoke(3, "b", 1.0)) if n.subscription == "Fire"
    ]
    assert (note.status, note.since, note.event.attributes["first"]) == ("egress", 1_000_000, "a")
    assert note.event.attributes["members"] == 0


def test_a_count_that_is_subscribed_to_later_starts_from_the_active_scopes():
    engine = Engine(TEXT.replace("state Fire = at least 2 of Smoky within room until fewer than 1\n", ""))
    output = []
    engine.subscribe("state Fire = any of Smoky within room", output.append)
    engine.push(smoke(0, "a", 6.0))
    assert as_rows(output) == [("Fire", "hall", "ingress")]
    with pytest.raises(Exception, match="'Fire' builds on 'Smoky'; end it first"):
        engine.unsubscribe("Smoky")


def test_a_revised_state_is_counted_again():
    engine = Engine(TEXT, remember=True)
    for i, (source, density) in enumerate([("a", 6.0), ("b", 4.0)]):
        engine.push(smoke(i, source, density))
    output = engine.revise(TEXT.replace("density > 5", "density > 3"))
    assert ("Smoky", "b", "revised") in as_rows(output)
    assert ("Fire", "hall", "ingress") in as_rows(output)
    assert [h.subscription for h in engine.holding()] == ["Fire", "Smoky", "Smoky"]


def test_a_muted_condition_is_evaluated_counted_and_reported_afterwards():
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
    rest = [row for row in as_rows(out) if row[0] != "Drilling"]
    assert rest == [("Fire", "hall", "ingress"), ("Smoky", "a", "ingress"), ("Smoky", None, "summary")]
    (summary,) = [n for n in out if n.status == "summary"]
    assert summary.event.attributes == {"missed": 1, "scopes": 1, "holding": 1}
    assert {h.subscription for h in engine.holding()} == {"Fire", "Smoky"}


# --- a mute waits for its upstreams ------------------------------------------------------------------

TWO = """topic T (v float)
topic U (v float)
state M on T [v > 1; v < 1] {m}
state P on U [v > 1; v < 1{p}] {of}
mute M while P {mute}
"""


def text_of(m="", p="", of="", mute=""):
    return TWO.format(m=m, p=p, of=of, mute=mute)


def push_all(engine, *readings):
    """The output for readings, each as (topic, second, value)."""
    output = []
    for topic, at, value in readings:
        output += engine.push(Event(topic, round(at * 1_000_000), "s", {"v": float(value)}))
    return [(n.subscription, n.status, n.event.time / 1_000_000) for n in output]


IN_ORDER = (("U", 0, 2), ("T", 1, 2), ("T", 3, 0))
"""The parent starts, then what it mutes starts and ends; the parent's topic stands still meanwhile."""


def test_a_parent_with_ordered_delivery_mutes_later_events():
    engine = Engine(text_of(m="ordered 1 s", of="ordered 1 s"))
    assert push_all(engine, *IN_ORDER) == []
    as_rows = push_all(engine, ("U", 4, 0), ("T", 6, 0), ("U", 7, 0))
    assert as_rows == [("P", "ingress", 0), ("P", "egress", 4), ("M", "summary", 4)]


def test_advancing_the_engine_fires_timers_of_a_topic_without_readings():
    engine = Engine(text_of(m="ordered 1 s", of="ordered 1 s"))
    assert push_all(engine, ("U", 0, 0), ("T", 1, 2), ("T", 5, 2), ("T", 9, 2)) == []
    assert engine.due == 1_000_000  # of the parent's reading, which waits
    assert [n.subscription for n in engine.advance(9_000_000)] == ["M"]


def test_a_mute_with_ordered_delivery_waits_for_a_topic_without_readings():
    engine = Engine(text_of(of="ordered 1 s", mute="ordered 2 s"))
    assert push_all(engine, ("U", 0, 0), ("T", 1, 2), ("T", 4, 2)) == []  # 2 s, and the parent's 1 s
    assert push_all(engine, ("T", 4.5, 2)) == [("M", "ingress", 1)]


def test_the_minimum_duration_of_a_parent_elapses_before_later_events_are_reported():
    engine = Engine(text_of(p=" for 2 s"))
    first = (("U", 0, 2), ("T", 1, 2), ("U", 2, 0), ("T", 5, 0), ("T", 6, 0))
    assert push_all(engine, *first) == [("P", "ingress", 0)]  # whether it ended at 4 s is not known yet
    as_rows = [("P", "egress", 4), ("M", "ingress", 4), ("M", "egress", 5)]
    assert push_all(engine, ("U", 8, 0)) == as_rows


def test_a_mute_does_not_change_evaluation_if_one_topic_lags_behind():
    text = text_of(of="ordered 1 s")
    plain, muted = Engine(text.partition("mute")[0]), Engine(text)
    behind = (("T", 60, 2), ("U", 1, 2), ("U", 0.5, 0), ("U", 3, 0), ("T", 61, 0), ("U", 5, 0))
    parent = [("P", "ingress", 1), ("P", "egress", 3)]
    for engine in (plain, muted):
        assert [row for row in push_all(engine, *behind) if row[0] == "P"] == parent
        assert engine.late_counts == {}


# --- transitions are consumed in order of emission ---------------------------------------------------

ROOM = """topic T (v float, room text)
topic U (v float)
state A on T [v > 1; v < 0] per room unknown after 1 h
state B on U [v > 1; v < 0]
"""
HEARD = {
    "correlation": ("correlate X = A, B overlapping\n", "X"),
    "count": ("state X = at least 1 of A\n", "X"),
    "fold": ("fold X = A cells 1 m within 2 m beyond 3\n", "X"),
    "mute": ('mute A during "23:00 – 23:01"\n', "A"),
}
TURNS = {
    "a later source before an earlier one": [(5, "s2", 2, -1), (5, "s1", -1, -1)],
    "a higher number before a lower one": [(5, "s", 2, 9), (5, "s", -1, 8)],
    "a later time before an earlier one": [(5, "s", 2, -1), (3, "s", -1, -1)],
}


def one_by_one(engine, events):
    return [n for event in events for n in engine.push(event)]


def at_once(engine, events):
    topic = Topic("T", (Attribute("v", "float"), Attribute("room", "text")))
    return engine.push_batch("T", from_events(topic, events))


@pytest.mark.parametrize("come", [one_by_one, at_once])
@pytest.mark.parametrize("kind", HEARD)
@pytest.mark.parametrize("turns", TURNS)
def test_a_scope_that_starts_and_ends_at_one_time_is_not_active_in_any_order_of_readings(kind, turns, come):
    """They are timely, so they count as they arrive: the state has ended, and so has its downstream."""
    text, name = HEARD[kind]
    engine, output = Engine(ROOM + text), []
    readings = [(0, "s", -1, -1), *TURNS[turns], (6, "s", 0.5, -1), (7, "s", 0.5, -1)]
    output += engine.push(Event("U", 0, "u", {"v": 2.0}))
    output += come(
        engine,
        [
            Event("T", second * 1_000_000, source, {"v": float(v), "room": "r"}, number, (0.5, 0.5))
            for second, source, v, number in readings
        ],
    )
    output += engine.push(Event("U", 8_000_000, "u", {"v": 0.5}))
    output += engine.finish()
    assert [h.subscription for h in engine.holding()] == ["B"]
    statuses = [n.status for n in output if n.subscription == name]
    assert statuses == ([] if kind == "correlation" else ["ingress", "egress"])


def test_transitions_of_one_timestamp_are_consumed_in_the_order_of_emission():
    """It is active by the reading of ``b`` when that of ``a`` is too old: at one time, as in an engine."""
    [outcome] = cases("""
        topic T (v float)
        state A on T [v > 1 for 5 min; v < 0] unknown after 4 min
        state Some = at least 1 of A until fewer than 1
        case "at once"
          given T from "b" every 20 min: 2, 2
          given T from "a" every 1 min: 0.5, 2
          expect Some: ingress at 5 min, egress at 5 min, ingress at 20 min
    """)
    assert sorted(outcome.found) == sorted(outcome.expect.marks)
