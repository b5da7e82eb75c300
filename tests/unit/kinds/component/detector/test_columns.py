"""Components in columns: when they are used, their state, and their equality with the reference machine."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from holdfast.engine.machine import transitions
from holdfast.kinds.component import machine as component_machine
from holdfast.kinds.component.detector import columns, component
from holdfast.kinds.component.detector.candidate_walk import CandidateWalk
from holdfast.kinds.component.detector.knowledge import of_event
from holdfast.kinds.component.detector.query import may_select
from holdfast.model.batch import from_events
from holdfast.model.event import Event
from holdfast.model.instant import NEVER
from support.columnar import both, definitions, histories, step_visibly
from support.fused import SECOND, batches, machine, reading

ROOT = Path(__file__).parents[4]
EXAMPLES = [
    path for folder in ("traffic", "fire", "rates") for path in (ROOT / "examples" / folder).glob("*.hf")
]

JAM = """
    topic Loop (value float)  topic Speed (value float)
    state Jam
      A = avg Loop over 30 s each location
      B = avg Speed over 60 s each location
      enter A.value > 2.5 && B.value < 7 set level = B.value
      exit B.value > 15
"""


def minutes(count, roads=("A5", "A7"), step=5):
    """Readings of roads that jam every other minute."""
    for at in range(0, 60 * count, step):
        jammed = at // 60 % 2
        for i, road in enumerate(roads):
            yield reading(at + i / 10, "Loop", road, 4.0 * jammed)
            yield reading(at + i / 10, "Speed", road, 30.0 - 28 * jammed)


def test_few_readings_are_processed_singly_and_many_as_columns():
    it = machine(JAM)
    few, many = (list(minutes(count)) for count in (1, 10))
    state, _ = it.step(it.initial(), batches(it, few), 60 * SECOND)
    assert isinstance(state.components[0], component.InstantState)
    later = [event for event in many if event.time >= 60 * SECOND]
    state, out = it.step(state, batches(it, later), NEVER)
    assert isinstance(state.components[0], columns.ColumnState)
    assert [(t.scope, t.status, t.event.time // SECOND) for t in transitions(it.topics, out)][:4] == [
        ("A5", "ingress", 105),
        ("A7", "ingress", 105),
        ("A5", "egress", 145),
        ("A7", "egress", 145),
    ]
    state, _ = it.react(state, reading(700, "Loop", "A5", 9.0))
    assert isinstance(state.components[0], component.InstantState)
    assert {scope for _, scope, _ in it.active(state)} == {"A5", "A7"}


def test_state_is_bounded_by_the_windows_however_long_the_history():
    it = machine(JAM)
    state, sizes = it.initial(), []
    for count in range(1, 9):
        some = [e for e in minutes(count) if (count - 1) * 60 * SECOND <= e.time]
        state, _ = it.step(state, batches(it, some * 3), count * 60 * SECOND)
        own = state.components[0]
        assert isinstance(own, columns.ColumnState)
        sizes.append([len(own.content[name]) for name in "AB"])
    assert sizes[1:] == [sizes[1]] * 7
    assert sizes[0] == [3 * 2 * 6, 3 * 2 * 12]


def test_small_batches_beside_long_histories_are_processed_one_by_one(monkeypatch):
    """The output stays the same, also when a larger batch follows."""
    monkeypatch.setattr(component_machine, "ENOUGH", 0)
    monkeypatch.setattr(component_machine, "LONG", (2, 4))
    monkeypatch.setattr(component_machine, "FEW", 8)
    it, reference = both(
        "topic Speed (value float)\nstate S\n  A = avg Speed ever each location\n"
        "  enter A.value > 20 exit A.value < 15\n"
    )
    speeds = [event for event in minutes(30) if event.topic == "Speed"]
    mine, theirs, kinds = it.initial(), reference.initial(), []
    for first, last in ((0, 100), (100, 140), (140, 150), (150, 160), (160, 420), (420, 720)):
        mine, output = step_visibly(it, mine, speeds[first:last], speeds[last - 1].time)
        theirs, expected = step_visibly(reference, theirs, speeds[first:last], speeds[last - 1].time)
        assert output == expected
        kinds.append(isinstance(mine.components[0], columns.ColumnState))
    assert kinds == [True, True, False, False, True, True]


def test_late_events_are_emitted_for_each_component_in_order_of_arrival():
    text = """
        topic T (value float)
        state First on T each source enter value > 1 exit value < 1 ordered 1 s
        state Second on T each source enter value > 2 exit value < 1 ordered 2 s
    """
    events = [reading(t % 50, "T", None, float(t % 4), "s") for t in range(100)]
    for it in both(text):
        state, _ = it.step(it.initial(), batches(it, events[:80]), 30 * SECOND)
        state, out = it.step(state, batches(it, events[80:]), 32 * SECOND)
        late = [(t.event.time // SECOND, t.condition) for t in out.single if t.status == "late"]
        assert late == []
        state, out = it.step(state, batches(it, events[:40]), 32 * SECOND)
        late = [(t.event.time // SECOND, t.condition) for t in out.single if t.status == "late"]
        assert late == [(t, i) for t in range(31) for i in ((0, 1) if t < 30 else (0,))]


def test_readings_of_one_time_and_place_are_one_reading():
    """Three sensors of a road report together: 1, 3 and nothing make 2."""
    events = [
        reading(t, "T", "A5", value, f"s{i}")
        for t in range(40)
        for i, value in enumerate((1.0, 3.0 + t, None))
    ]
    text = "topic T (value float) state S A = T each location enter A.value >= 10 exit false"
    for it in both(text):
        _, out = it.step(it.initial(), batches(it, events), NEVER)
        (output,) = (t.event for t in transitions(it.topics, out))
        assert (output.time // SECOND, output.attributes, output.source) == (16, {"value": 10.0}, "s0")


def test_a_place_and_a_point_with_the_same_text_are_different():
    """A place named "0.0" and the point 0.0 share a key, and stay two in it."""
    events = [
        Event("T", t * SECOND, "s", {"value": v}, 0, at, place)
        for t in range(40)
        for v, at, place in ((float(t), (0.0,), None), (-float(t), None, "0.0"))
    ]
    text = (
        "topic T (value float) state S A = avg T over 2 s each location enter A.value > 30 exit A.value < -35"
    )
    mine, theirs = (step_visibly(it, it.initial(), events, NEVER)[1] for it in both(text))
    assert mine == theirs
    assert [row[2] for row in mine][:3] == ["ingress", "egress", "ingress"]


@pytest.mark.parametrize("query", ["T each location {} status", "max T over 5 s each location {} status"])
@pytest.mark.parametrize("function", ["max", "sum"])
def test_a_place_and_a_point_with_the_same_text_are_different_for_starts_and_ends(
    query, function, monkeypatch
):
    """A point repeats that it is low: the place with the same text is still high."""
    monkeypatch.setattr(component_machine, "FEW", 0)
    text = (
        f"topic T (value float) state S A = {query.format(function)} each source "
        "enter A.value >= 3 exit A.value < 3"
    )
    events = [
        reading(1, "T", "0.0", 5.0, "s"),
        *(reading(at, "T", 0, 1.0, "s") for at in (2, 3, 4)),
    ]
    it, reference = both(text)
    assert it.plans[0] is not None
    mine, theirs = it.initial(), reference.initial()
    statuses = []
    for some in (events[:1], events[1:3], events[3:]):
        until = some[-1].time + 1
        mine, output = step_visibly(it, mine, some, until)
        theirs, expected = step_visibly(reference, theirs, some, until)
        assert output == expected
        statuses += [row[2] for row in output]
    assert statuses == ["ingress", "egress", "ingress", "egress"]


TIMES = ("T", "T at -2 s", "avg T over 3 s", "sum T over [-4 s, -1 s]", "stddev T over 5 s", "max T ever")
LOCATIONS = (
    "",
    "within [0, 1]",
    "each location",
    "any location",
    "one location",
    "all locations",
    'all locations of (0, "north")',
    "any location each source",
    "each source",
)


SEVERAL = ("any", "one", "all")
IN_COLUMNS = [
    (time, location)
    for time in TIMES
    for location in LOCATIONS
    if not (time.endswith("ever") and location.startswith(SEVERAL))
]


@pytest.mark.parametrize(("time", "location"), IN_COLUMNS)
def test_every_kind_of_query_gives_the_same_in_columns_and_in_the_reference_machine(
    time, location, monkeypatch
):
    monkeypatch.setattr(component_machine, "FEW", 0)
    text = f"topic T (value float) state S A = {time} {location} enter A.value > 1 exit A.value < 1"
    it, reference = both(text)
    assert it.plans[0] is not None
    chance = random.Random(3)
    events = [
        reading(
            chance.randrange(40) / 2,
            "T",
            chance.choice((0, 1, 2, "north", None)),
            chance.choice((0.0, 0.5, 2.0, 3.0, None)),
            chance.choice(("s1", "s2")),
        )
        for _ in range(50)
    ]
    mine, theirs = it.initial(), reference.initial()
    emitted = 0
    for some, until in ((events[:25], 8), (events[25:], 16), ([], 30)):
        mine, output = step_visibly(it, mine, some, until * SECOND)
        theirs, expected = step_visibly(reference, theirs, some, until * SECOND)
        assert output == expected
        emitted += len(output)
    assert emitted or location.startswith(("all", "one"))


@pytest.mark.parametrize("exit", ["true", "A.value > 1 set value = A.value - last.value"])
def test_a_component_that_emits_at_nearly_every_reading_is_not_evaluated_singly(exit, monkeypatch):
    """The reading that is shown satisfies by columns; it makes the event by the code that defines it."""
    text = (
        "topic T (value float, note text) state S A = T each source"
        f" enter A.value > 1 set value = 2 * A.value, behind = now - A.time exit {exit}"
    )
    it, reference = both(text)
    chance = random.Random(5)
    events = [
        Event("T", t * SECOND // 3, f"s{t % 7}", {"value": chance.choice((0.0, 2.0, 3.0)), "note": "n"}, t)
        for t in range(400)
    ]
    wanted = step_visibly(reference, reference.initial(), events, NEVER)[1]
    monkeypatch.setattr(CandidateWalk, "_walk", None)
    state, output = step_visibly(it, it.initial(), events[:200], events[199].time)
    state, more = step_visibly(it, state, events[200:], NEVER)
    assert output + more == wanted
    assert len(wanted) > 150


@pytest.mark.parametrize(("query", "count"), [("T", 1 + 180 + 1), ("max T over 25 s", 1 + 2 + 1)])
def test_ticks_continue_while_the_component_has_readings(query, count, monkeypatch):
    """Half an hour of ticks, some at a time; the latest is always known, a window is empty at last."""
    monkeypatch.setattr(component_machine, "FEW", 0)
    monkeypatch.setattr(columns, "TICKS", 50)
    readings = [(3, 2.0, "a"), (5, 0.0, "b"), (1800, 2.0, "b")]
    events = [reading(at, "T", None, value, source) for at, value, source in readings]
    it, reference = both(
        f"topic T (value float) state S A = {query} each source enter A.value > 1 exit true tick 10 s"
    )
    assert it.plans[0] is not None
    mine, theirs = (step_visibly(m, m.initial(), events, 1801 * SECOND)[1] for m in (it, reference))
    assert mine == theirs
    assert len(mine) == count


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: "-".join(path.parts[-2:]))
def test_the_examples_give_the_same_in_columns_and_in_the_reference_machine(path, monkeypatch):
    monkeypatch.setattr(component_machine, "FEW", 0)
    it, reference = both(path.read_text())
    chance = random.Random(7)
    events = [
        Event(
            topic.name,
            chance.randrange(0, 300) * SECOND // 2,
            chance.choice(("s1", "s2")),
            {a.name: chance.choice((chance.uniform(0, 60), 26.0, None)) for a in topic.attributes},
            0,
            (float(chance.randrange(-10, 11)),),
        )
        for topic in it.topics.values()
        for _ in range(120)
    ]
    mine, theirs = it.initial(), reference.initial()
    for until in (50, 51, 100, 160):
        some = [e for e in events if e.time < until * SECOND]
        events = [e for e in events if e.time >= until * SECOND]
        mine, output = step_visibly(it, mine, some, until * SECOND)
        theirs, expected = step_visibly(reference, theirs, some, until * SECOND)
        assert output == expected


@settings(max_examples=30)
@given(definitions(), histories)
def test_relevant_events_are_selected_by_a_query_and_have_a_key(text, events):
    it, _ = both(text)
    (smc,) = it.smcs
    for name, topic in it.topics.items():
        mine = [event for event in events if event.topic == name]
        expected = [
            any(
                may_select(one.query, of_event(event), None)
                and (one.key is None or one.key(of_event(event)) is not None)
                for one in smc.inputs.values()
            )
            for event in mine
        ]
        batch = from_events(topic, mine)
        assert it.relevance(name, batch).satisfies.tolist() == expected
        assert it.relevance(name, batch).outside.tolist() == [np.count_nonzero(~np.array(expected, bool))]


@pytest.mark.parametrize(
    ("at", "known"),
    [((1.0, np.nan), (1.0,)), ((np.nan, 2.0), None), ((np.nan,), None), ((1.0, 2.0, np.nan), (1.0, 2.0))],
)
def test_a_location_is_emitted_up_to_its_first_missing_coordinate(monkeypatch, at, known):
    """NaN is missing, and there is no y without x."""
    monkeypatch.setattr(component_machine, "FEW", 0)
    text = "topic T (value float) state S A = T each source enter A.value > 1 exit A.value < 0"
    event = Event("T", 0, "s", {"value": 2.0}, 0, at)
    for it in both(text):
        _, emitted = it.step(it.initial(), batches(it, [event]), NEVER)
        assert [t.event.location for t in transitions(it.topics, emitted)] == [known]
        state, _ = it.react(it.initial(), event)
        assert [t.event.location for t in it.advance(state, NEVER)[1]] == [known]
