"""Components in columns emit what the reference machine emits, however a history is cut and arrives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kinds.component import machine
from holdfast.kinds.component.detector import smc
from holdfast.kinds.component.detector.columns import ColumnState
from holdfast.model.event import Event
from holdfast.model.instant import NEVER
from support.columnar import (
    beside,
    both,
    carried_components,
    definitions,
    emitting_components,
    histories,
    instances,
    is_planned,
    journeys,
    levels,
    several,
    step_visibly,
)
from support.fused import SECOND

PLANNED = definitions().filter(lambda text: both(text)[0].plans[0] is not None)
FEW = settings(max_examples=settings().max_examples // 3)


OUTSPOKEN, BESIDE, SEVERAL, LEVELS, CARRIED = (
    kind.filter(is_planned)
    for kind in (emitting_components(), beside(), several(), levels(), carried_components())
)


@pytest.fixture(autouse=True, scope="module")
def always_in_columns():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "FEW", 0)
        yield


def same(it, state, reference):
    return instances(it, state) == instances(it, reference)


KINDS = {
    "alone": (PLANNED, histories),
    "outspoken": (OUTSPOKEN, histories),
    "beside": (BESIDE, histories),
    "several": (SEVERAL, histories),
    "levels": (LEVELS, histories),
    "carried": (CARRIED, journeys),
}


@pytest.mark.parametrize("kind", KINDS)
@given(st.integers(0, 9), st.data())
def test_columns_emit_the_same_as_the_reference_machine(kind, at, data):
    """Events arrive in any order, also behind the watermark, and the state is stored in between."""
    text, events = map(data.draw, KINDS[kind])
    it, reference = both(text)
    arrived = data.draw(st.permutations(events))
    cut = data.draw(st.integers(0, len(events)))
    mine, theirs = it.initial(), reference.initial()
    for some, until in ((arrived[:cut], at * SECOND), (arrived[cut:], 12 * SECOND), ([], NEVER)):
        mine, output = step_visibly(it, mine, some, until)
        theirs, expected = step_visibly(reference, theirs, some, until)
        assert output == expected
        assert isinstance(mine.components[0], ColumnState) or kind == "levels"
        assert same(it, mine, theirs)
        mine = it.load(it.dump(mine))


@pytest.mark.parametrize("kind", KINDS)
@FEW
@given(st.integers(0, 9), st.data())
def test_a_component_can_switch_between_columns_and_points(kind, at, data):
    """Single events and batches may take turns."""
    text, events = map(data.draw, KINDS[kind])
    it, reference = both(text)
    state, out = step_visibly(it, it.initial(), [e for e in events if e.time < at * SECOND], at * SECOND)
    late = [e for e in events if e.time >= at * SECOND]
    for event in late[: len(late) // 2]:
        state, output = it.react(state, event)
        assert output == []
    state, output = step_visibly(it, state, late[len(late) // 2 :], 20 * SECOND)
    theirs, expected = step_visibly(reference, reference.initial(), events, 20 * SECOND)
    assert out + output == expected
    assert same(it, state, theirs)


# --- ticks ---

TICKING = PLANNED.filter(lambda text: "tick" in text)


@FEW
@given(TICKING, histories)
def test_omitted_ticks_would_not_have_emitted_anything(text, events):
    _, reference = both(text)
    _, tireless = both(text)
    for one in tireless.smcs:
        vars(one)["settles"] = False
    for until in (6 * SECOND, 30 * SECOND):
        mine, theirs = (step_visibly(it, it.initial(), events, until) for it in (reference, tireless))
        assert mine[1] == theirs[1]
        assert instances(reference, mine[0]) == instances(reference, theirs[0])


@FEW
@given(TICKING, histories, st.integers(0, 9))
def test_ticks_end_at_the_same_time_in_columns_and_in_the_reference_machine(text, events, at):
    it, reference = both(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(smc, "MOST_TICKS", 3)
        mine, theirs = it.initial(), reference.initial()
        early, late = ([e for e in events if (e.time < at * SECOND) is early] for early in (True, False))
        for some, until in ((early, at * SECOND), (late, 12 * SECOND), ([], 30 * SECOND)):
            mine, output = step_visibly(it, mine, some, until)
            theirs, expected = step_visibly(reference, theirs, some, until)
            assert output == expected
            assert same(it, mine, theirs)


def at(time, topic, source, location, **content):
    return Event(topic, time * SECOND, source, content, 0, location, None)


HOST = "topic T (value float, road text)\ntopic V ()\nstate F\n  A = T {query}\n  {rules}\n  here V\n"


@pytest.mark.parametrize("held", ["(A.value > 0) for 1 s", '(A.value > 0 && A.source != "q")'])
def test_the_closest_reading_is_selected_for_each_key(held):
    """Another road's sensor is nearer; this road's is the closest of its own."""
    text = HOST.format(query="closest to here each road", rules=f"enter {held}\n  exit false")
    near = {"value": 1.0, "road": "r1"}
    events = [at(1, "V", "v1", (0.0,)), at(2, "T", "s1", (1.0,), **near), at(9, "T", "s1", (1.0,), **near)]
    events.append(at(2, "T", "s2", (5.0,), value=1.0, road="r2"))
    output = run_both(text, events)
    assert len(output) == 2


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
@pytest.mark.parametrize(("limit", "here"), [("0", 0.0), ("0.3", 0.1 + 0.2), ("5", -1e308)])
def test_a_distance_at_the_limit_is_compared_exactly(sign, limit, here):
    """The sums include an empty one, and one beyond the range of numbers."""
    far = 1e308 if here < 0 else 0.0
    rules = f"enter |A.location - here| {sign} {limit}\n  exit A.value < 0"
    readings = [(2, 1.0, far), (3, -1.0, 5.0), (4, 1.0, 5.0)]
    events = [at(1, "V", "v1", (here,))]
    events += [at(t, "T", "s1", (x,), value=value, road="r") for t, value, x in readings]
    run_both(HOST.format(query="", rules=rules), events)


BOTH = "topic T (n int, road text)\ntopic U (n int)\nstate F\n  {queries}\n  enter {enter}\n  exit true\n"


@pytest.mark.parametrize(
    ("queries", "enter"),
    [
        ("A = sum T over 4 s", "A.n > 0"),
        ("A = sum T ever", "A.n > 0"),
        ("A = T sum location", "A.n > 0"),
        ("A = sum T over 4 s all locations", "A.n > 0"),
        ("A = T\n  B = U", "A.n > B.n"),
        ("A = T any location\n  B = T sum location", "A.n != 0 && B.n > 0"),
    ],
)
def test_whole_numbers_that_floats_round_are_judged_one_by_one(queries, enter):
    """A sum of two that nearly cancel out, and one that is greater by one."""
    numbers = [("T", 0.0, 2**53 + 1), ("U", 0.0, 2**53), ("T", 1.0, -(2**53)), ("T", 1.0, 2**53 + 1)]
    events = [at(2 + i, topic, "s1", (x,), n=n) for i, (topic, x, n) in enumerate(numbers)]
    assert run_both(BOTH.format(queries=queries, enter=enter), events)


@pytest.mark.parametrize("default", [2**53 + 1, 2**63 - 1])
def test_a_default_integer_that_floats_round_is_emitted_exactly(default):
    enter = f"B.n > 0 set big = A.n else {default}"
    text = "collide max\n" + BOTH.format(queries="A = T\n  B = U", enter=enter)
    ((*_, event),) = run_both(text, [at(1, "U", "s1", (0.0,), n=1)])
    assert f"'big': {default}" in event


@pytest.mark.parametrize("function", ["max", "min", "sum", "avg", "count", "stddev"])
def test_keys_with_a_shared_window_emit_its_value_at_their_instant(function):
    """The first key is emitted after the others, when part of the window is gone."""
    text = (
        "topic T (value float, road text)\ntopic U (value float)\nstate F\n"
        f"  A = T each road\n  B = {function} U over 4 s\n"
        "  enter A.value > 0 && B.count > 0 set level = B.value\n  exit A.value < 0\n"
    )
    events = [at(1 + i, "U", "s", (0.0,), value=value) for i, value in enumerate((9.0, 5.0, 1.0, 2.0))]
    events += [at(t, "T", "s", (0.0,), value=1.0, road=road) for t, road in ((7, "a"), (4, "b"), (6, "c"))]
    assert len(run_both(text, events)) == 3


@pytest.mark.parametrize("enter", ["A.value > 2", "A.count > 1", "(A.value > 2) for 1 s"])
@pytest.mark.parametrize("query", ["sum of (T, U)", "avg sum of (T, U) over 2 s"])
@pytest.mark.parametrize("topics", ["TUTU", "TTUT"])
def test_topics_at_a_place_and_at_a_point_with_the_same_text_are_kept_apart(query, enter, topics):
    text = "topic T (value float)\ntopic U (value float)\n"
    text += f"state F\n  A = {query} each location\n  enter {enter}\n  exit true\n"
    spots = [{"location": (0.0,)}, {"place": "0.0"}] * 2
    output = [
        Event(topic, (i + 1) * SECOND, "s", {"value": 2.0}, **spot)
        for i, (topic, spot) in enumerate(zip(topics, spots, strict=True))
    ]
    run_both(text, output)


def run_both(text, events):
    it, reference = both(text)
    assert it.plans[0] is not None
    _, output = step_visibly(it, it.initial(), events, NEVER)
    _, expected = step_visibly(reference, reference.initial(), events, NEVER)
    assert output == expected
    return output
