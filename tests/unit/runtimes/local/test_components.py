"""Components in an engine and over files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from holdfast import Engine, instant, parse, replay, show
from holdfast.engine.machine import transitions
from holdfast.errors import UsageError
from holdfast.model.batch import from_events
from holdfast.model.instant import NEVER
from support.fused import SECOND, batches, definitions, histories, machine, reading, relevant_events

FIRST = "state First A = T each location enter A.value > 5 exit A.value < 5\n"
TOPIC = "topic T (value float)\n"
HOT = TOPIC + FIRST


def say(notifications):
    return [(n.subscription, n.scope, n.status, n.event.time // SECOND) for n in notifications]


def test_an_instant_is_evaluated_when_the_watermark_has_passed_it():
    engine = Engine(HOT)
    assert say(engine.push(reading(1, "T", 7, 9.0))) == []
    assert say(engine.push(reading(1, "T", 8, 9.0))) == []
    assert say(engine.push(reading(2, "T", 7, 1.0))) == [
        ("First", "7.0", "ingress", 1),
        ("First", "8.0", "ingress", 1),
    ]
    assert say(engine.advance(3 * SECOND)) == [("First", "7.0", "egress", 2)]
    assert [(h.subscription, h.scope) for h in engine.holding()] == [("First", "8.0")]
    assert say(engine.push(reading(5, "T", 8, 1.0))) == []
    assert say(engine.finish()) == [("First", "8.0", "egress", 5)]


def test_filters_and_components_run_side_by_side():
    engine = Engine(HOT + "filter High on T where value > 8")
    out = [n for event in (reading(1, "T", 7, 9.0), reading(2, "T", 7, 1.0)) for n in engine.push(event)]
    assert say(out + engine.finish()) == [
        ("High", None, "atomic", 1),
        ("First", "7.0", "ingress", 1),
        ("First", "7.0", "egress", 2),
    ]


def test_batches_give_the_same_as_single_events():
    events = [reading(t, "T", 7 + t % 2, v) for t, v in enumerate([9.0, 9.0, 1.0, 9.0, 1.0, 1.0])]
    singly, batchwise = Engine(HOT), Engine(HOT)
    one = [n for event in events for n in singly.push(event)] + singly.finish()
    (topic,) = (s.topic for s in parse(TOPIC).statements)
    two = batchwise.push_batch("T", from_events(topic, events)) + batchwise.finish()
    assert say(one) == say(two) != []


# --- who comes later ---------------------------------------------------------------------------


def test_a_subscriber_that_joins_an_active_condition_receives_its_start():
    engine = Engine(HOT)
    early = engine.subscribe("First")
    for event in (reading(1, "T", 7, 9.0), reading(2, "T", 8, 1.0)):
        engine.push(event)
    late = engine.subscribe("First")
    assert say(early) == say(late) == [("First", "7.0", "ingress", 1)]


def test_a_component_defined_later_knows_the_latest_readings_and_conditions():
    engine = Engine(HOT)
    for event in (reading(1, "T", 7, 9.0), reading(2, "T", 8, 1.0)):
        engine.push(event)
    both = engine.subscribe("state Both A = First any location B = T enter A.valid && B.value < 5 exit true")
    engine.push(reading(3, "T", 9, 1.0))
    assert say(both) == [("Both", None, "atomic", 2)]


def test_a_component_of_the_same_name_replaces_the_old_one():
    engine = Engine(HOT)
    received = engine.subscribe("First")
    engine.push(reading(1, "T", 7, 3.0))
    engine.subscribe("state First A = T each location enter A.value > 2 exit A.value < 2")
    engine.push(reading(2, "T", 7, 4.0))
    assert say(received) == [("First", "7.0", "ingress", 1)]
    assert engine.subscriptions == ["First"]
    assert "enter A.value > 2" in show(engine.app)


def test_a_component_can_be_removed_unless_another_builds_on_it():
    engine = Engine(HOT + "state Second A = First any location enter A.valid exit true")
    with pytest.raises(UsageError, match="'Second' builds on 'First'; end it first"):
        engine.unsubscribe("First")
    engine.unsubscribe("Second")
    engine.unsubscribe("First")
    assert engine.subscriptions == []
    assert engine.push(reading(1, "T", 7, 9.0)) == []


def test_circular_components_are_refused_and_change_nothing():
    engine = Engine(HOT)
    with pytest.raises(UsageError, match="unknown topic 'Second'"):
        engine.subscribe("state First A = Second any location enter A.valid exit true")
    assert engine.subscriptions == ["First"]


# --- keeping -----------------------------------------------------------------------------------


def test_a_restart_repeats_and_loses_no_notification():
    events = [reading(t, "T", 7, v) for t, v in enumerate([9.0, 9.0, 1.0, 9.0, 1.0])]
    whole = Engine(HOT)
    expected = say([n for event in events for n in whole.push(event)] + whole.finish())
    for cut in range(len(events)):
        first = Engine(HOT)
        out = [n for event in events[:cut] for n in first.push(event)]
        second = Engine.restore(HOT, first.snapshot())
        out += [n for event in events[cut:] for n in second.push(event)] + second.finish()
        assert say(out) == expected


def test_a_changed_component_under_its_old_name_is_refused():
    raw = Engine(HOT).snapshot()
    with pytest.raises(UsageError, match="'First' means something else than when its state was kept"):
        Engine.restore(HOT.replace("> 5", "> 6"), raw)


def test_components_can_be_added_and_removed_at_a_restart():
    engine = Engine(HOT)
    engine.push(reading(1, "T", 7, 9.0))
    engine.push(reading(2, "T", 7, 9.0))
    again = Engine.restore(
        HOT + "state Second A = First any location enter A.valid exit true", engine.snapshot()
    )
    assert [(h.subscription, h.scope) for h in again.holding()] == [("First", "7.0")]
    assert Engine.restore(TOPIC, engine.snapshot()).holding() == []


# --- late --------------------------------------------------------------------------------------


def test_late_events_of_an_ordered_component_are_counted_and_readable():
    engine = Engine(HOT.replace("A.value < 5\n", "A.value < 5 ordered 1 s\n"))
    for seconds in (1, 9, 2):
        engine.push(reading(seconds, "T", 7, 9.0))
    assert engine.late_counts == {"First": 1}
    assert [n.event.time for n in engine.late] == [2 * SECOND]


# --- history -----------------------------------------------------------------------------------


def write_files(folder, events):
    """Readings as files: one for each topic, in two pieces, out of order."""
    for i in range(4):
        rows = [
            {
                "time": f"2009-01-01T00:00:{e.time / SECOND:09.6f}Z",
                "source": e.source, "topic": e.topic, "sequence": 0,
                "x": None if e.location is None else e.location[0], **e.attributes,
            }
            for e in events[i::4]
        ]  # fmt: skip
        (folder / f"{3 - i}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@settings(max_examples=15)
@given(text=definitions(), events=histories)
def test_a_replay_of_files_gives_the_same_as_the_machine(text, events, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    it = machine(text)
    mine = relevant_events(it, events)
    if not mine:
        return
    write_files(folder, mine)
    start = instant("2009-01-01T00:00:00Z")
    found = [(n.subscription, n.scope, n.status, n.event.time - start) for n in replay(text, str(folder))]
    _, out = it.step(it.initial(), batches(it, mine), NEVER)
    names = [smc.topic for smc in it.smcs]
    expected = [(names[t.condition], t.scope, t.status, t.event.time) for t in transitions(it.topics, out)]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert [row[3] for row in found] == sorted(row[3] for row in found)


def test_a_replay_counts_readings_outside_all_scopes(tmp_path):
    rows = [{"time": f"2009-01-01T00:00:0{t}Z", "source": "s", "value": 9.0} for t in range(3)]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    history = replay(HOT, str(tmp_path / "r.jsonl"))
    assert list(history) == []
    assert history.coverage.outside == {"First": 3}
    assert history.misplaced() == ["First"]
