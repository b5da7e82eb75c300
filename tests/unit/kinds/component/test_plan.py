"""Which components run together, by what their events meet, and what reaches a later stage."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Event, check, parse
from holdfast.kinds.component.compile import key
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.component.detector.knowledge import of_event
from holdfast.kinds.component.plan import sharded
from holdfast.model.batch import from_events, to_events
from holdfast.model.instant import SECOND
from support.fused import histories

TOPICS = """
topic Temperature (value float, room text, floor text)
topic Smoke (value float, room text, floor text)
topic User (name text)
"""
WARM = "state Warm A = avg Temperature over 1 min {} enter A.value > 40 exit A.value < 35\n"
ALARM = "state Alarm D = Warm {} enter D.valid && D.status == ingress exit D.valid && D.status == egress\n"


def plan(text):
    checked = check(parse(TOPICS + text))
    return sharded(checked.of(ComponentCondition), checked.topics)


def shape(text):
    """(stage, key, names) of each operator."""
    return [(one.links.stage, one.key, one.subscriptions) for one in plan(text)]


def test_components_with_the_same_key_run_in_one_operator():
    smoky = "state Smoky A = Smoke each location enter A.value > 20 exit A.value < 10\n"
    both = """state Fire
      A = Warm each location
      B = Smoky each location
      enter A.status == ingress && B.status == ingress
      exit B.status == egress
    """
    text = WARM.format("each location") + smoky + both
    assert shape(text) == [(0, ("location",), ("Warm", "Smoky", "Fire"))]


def test_a_component_with_another_key_runs_in_a_later_stage():
    text = WARM.format("each room, floor") + ALARM.format("each floor")
    assert shape(text) == [(0, ("room", "floor"), ("Warm",)), (1, ("floor",), ("Alarm",))]
    below, above = plan(text)
    assert list(below.links.derived_topics) == ["Warm"]
    assert above.upstream_topics == {"@Warm"}
    assert above.names == (("Alarm",),)


def test_a_component_that_sets_its_location_runs_before_those_that_build_on_it():
    elsewhere = WARM.format("each location").replace("exit", "set location = here exit") + "  here (3, 4)\n"
    (stage, apart, names), last = shape(elsewhere + ALARM.format("each location"))
    assert (stage, apart, names) == (0, ("location",), ("Warm",))
    assert last == (1, (), ("Alarm",))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (WARM.format(""), "nothing is kept apart"),
        (WARM.format("each location") + "  here User\n", "every source of User carries it, wherever it goes"),
        (
            "state Warm A = Temperature each room B = Smoke enter A.value > B.value exit A.value < 0\n",
            "B looks at everything, whatever its room",
        ),
    ],
)
def test_components_without_a_shard_key_have_a_reason(text, why):
    (only,) = plan(text)
    assert only.key == ()
    assert dict(only.presentation.reasons) == {"Warm": why}


def test_start_and_end_of_a_condition_must_meet_in_one_shard():
    warm = "state Warm A = Temperature each room enter A.value > 40 exit A.value < 35\n"
    _, above = plan(warm + ALARM.format("each floor"))
    assert dict(above.presentation.reasons) == {"Alarm": "the start and the end of Warm may differ in floor"}
    momentary = warm.replace("A.value < 35", "true"), ALARM.replace("status == ingress", "status == atomic")
    _, above = plan(momentary[0] + momentary[1].format("each floor").replace("status == egress", "valid"))
    assert above.key == ("floor",)


def test_only_the_location_of_a_host_topic_is_read():
    (only,) = plan(WARM.format("each location") + "  here User\n")
    assert set(only.needed_columns["Temperature"]) >= {"time", "source", "place", "value", "room"}
    assert "name" not in only.needed_columns["User"]


def run_stages(text, events):
    """The output of operators for events, stage by stage: (name, scope, status, seconds)."""
    out, repeated = [], {}
    for operator in plan(text):
        readings = [event for event in events if event.topic in operator.topics]
        received = [
            event
            for topic in operator.upstream_topics
            for event in (to_events(operator.topics[topic], repeated[topic]) if topic in repeated else ())
        ]
        batches = {
            name: from_events(topic, [e for e in readings + received if e.topic == name])
            for name, topic in operator.topics.items()
        }
        _, output = operator.machine.step(operator.machine.initial(), batches, 10**6 * SECOND)
        out += [
            (n.subscription, n.scope, n.status, n.event.time // SECOND)
            for n in operator.notifications(output)
        ]
        repeated |= operator.derive(output)
    return out


def test_a_later_stage_consumes_starts_and_ends_as_emitted():
    events = [
        Event("Temperature", at * SECOND, "s", {"value": value, "room": "R1", "floor": "F2"}, at)
        for at, value in enumerate([50.0, 50.0, 10.0, 10.0, 10.0, 50.0])
    ]
    warm = "state Warm A = Temperature each room, floor enter A.value > 40 exit A.value < 35\n"
    assert run_stages(warm + ALARM.format("each floor"), events) == [
        ("Warm", "R1,F2", "ingress", 0),
        ("Warm", "R1,F2", "egress", 2),
        ("Warm", "R1,F2", "ingress", 5),
        ("Alarm", "F2", "ingress", 0),
        ("Alarm", "F2", "egress", 2),
        ("Alarm", "F2", "ingress", 5),
    ]


def test_a_later_stage_waits_as_long_as_its_upstream():
    text = WARM.format("each room, floor") + "  ordered 5 s\n" + ALARM.format("each floor")
    below, above = plan(text)
    assert max(below.machine.waits) == max(above.machine.waits) == 5 * SECOND
    assert (below.machine.traits.lateness, above.machine.traits.lateness) == (5 * SECOND, None)


@settings(max_examples=25)
@given(st.sampled_from(("location", "source", "road", "source, road")), histories)
def test_the_keys_of_a_batch_equal_those_of_its_events(names, events):
    text = f"topic T (value float, road text)\nstate S A = T each {names} enter A.value > 1 exit A.value < 1"
    checked = check(parse(text))
    (operator,) = sharded(checked.of(ComponentCondition), checked.topics)
    mine = [event for event in events if event.topic == "T"]
    codes, texts = operator.keys("T", from_events(checked.topics[0], mine))
    find = key(operator.key)
    assert [texts[code] for code in codes] == [find(of_event(event)) for event in mine]
