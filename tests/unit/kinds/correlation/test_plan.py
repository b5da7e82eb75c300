"""Correlations become machines: how many, of what, and that it makes no difference."""

from __future__ import annotations

import numpy as np

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.kinds.correlation.condition import CorrelationCondition
from holdfast.kinds.correlation.plan import meaning, operators
from holdfast.model.batch import from_events
from holdfast.model.event import Event
from holdfast.model.instant import NEVER, SECOND
from support.naive_correlate import participants

TOPICS = "topic A (value float)\ntopic B (value float)\n"


def correlations(*lines):
    return check(parse(TOPICS + "\n".join(lines))).of(CorrelationCondition)


def history(size, seed):
    rng = np.random.default_rng(seed)
    return [
        Event("AB"[rng.integers(2)], int(time) * SECOND, f"s{rng.integers(3)}", {"value": float(value)}, i)
        for i, (time, value) in enumerate(
            zip(rng.integers(0, 400, size), rng.uniform(0, 10, size), strict=True)
        )
    ]


def run_all(running, events):
    found = {}
    for operator in running:
        it = operator.machine
        mine = {
            name: from_events(topic, [e for e in events if e.topic == name])
            for name, topic in it.topics.items()
        }
        _, out = it.step(it.initial(), mine, NEVER)
        for note in operator.notifications(out):
            found.setdefault(note.subscription, set()).add(note.event.sequence)
    return found


def test_more_than_64_correlations_run_in_several_machines_with_the_results_of_single_ones():
    rng = np.random.default_rng(7)
    bounds = rng.uniform(0, 9, (100, 2)).round(3)
    lines = [f"correlate C{i} within 3 s  A > {a}  B in [{b}, {b + 1}]" for i, (a, b) in enumerate(bounds)]
    made = correlations(*lines)
    running = operators(made)
    assert sorted(len(operator.names) for operator in running) == [36, 64]
    events = history(300, 3)
    expected = {}
    for one, (a, b) in zip(made, bounds, strict=True):
        matches = [
            [(e.time, (), e.sequence) for e in events if e.topic == "A" and e.attributes["value"] > a],
            [
                (e.time, (), e.sequence)
                for e in events
                if e.topic == "B" and b <= e.attributes["value"] <= b + 1
            ],
        ]
        if found := {sequence for _, _, sequence in participants(matches, one.correlation.within)}:
            expected[one.name] = found
    assert len(expected) > 30
    assert run_all(running, events) == expected


def test_correlations_of_equal_meaning_are_matched_once():
    made = correlations(
        "correlate X within 1 min  A > 1  B < 2",
        "correlate Y within 60 s  A.value > 1.0  B < 2",
        "correlate Z within 60 s  A >= 1  B < 2",
        "correlate All within 1 min  A > 1  B < 2  tell all",
        "correlate Also within 1 min  A > 1  B < 2  tell all",
    )
    (operator,) = operators(made)
    assert operator.names == (("X", "Y"), ("Z",), ("All",), ("Also",))  # complex events carry the name
    assert meaning(made[0]) == meaning(made[1]) != meaning(made[2])


def test_named_sensors_have_their_own_slots():
    made = correlations(
        'correlate X within 4 s  A of "s1" > 2  A of "s2" > 2',
        'correlate Y within 4 s  A of "s1" > 5  B of "s2" > 5',
    )
    (operator,) = operators(made)
    assert [slot.sensor for slot in operator.machine.slots] == ["s1", "s2", "s2"]
    events = history(200, 5)
    found = run_all([operator], events)
    by_number = {event.sequence: event for event in events}
    assert {(by_number[i].topic, by_number[i].source) for i in found["X"]} == {("A", "s1"), ("A", "s2")}
    assert {(by_number[i].topic, by_number[i].source) for i in found["Y"]} == {("A", "s1"), ("B", "s2")}


def test_each_correlation_has_its_own_identity_although_another_is_equal():
    text = """topic A (v float)
    topic B (v float)
    correlate X within 1 s A > 1 B > 1
    correlate Y within 1 s A > 1 B > 1
    correlate Z within 1 s A > 1 B > 1 ordered 5 s
    """
    first, second = operators(check(parse(text)).of(CorrelationCondition))
    assert (first.subscriptions, second.subscriptions) == (("X", "Y"), ("Z",))
    assert first.key != second.key
    assert (first.machine.traits.lateness, second.machine.traits.lateness) == (None, 5_000_000)
    assert first.topics_by_name() == {"X": ("A", "B"), "Y": ("A", "B")}
