"""The laws of DESIGN §1 and of the language, for components."""

from __future__ import annotations

import operator

from hypothesis import given
from hypothesis import strategies as st

from holdfast.lang.app import App
from holdfast.lang.parse import parse
from holdfast.lang.show import show
from holdfast.machines.machine import transitions
from holdfast.model.batch import reached, stood_for
from holdfast.model.event import Event
from holdfast.model.instant import NEVER
from support.components import collisions, detects, short_detects
from support.fused import (
    SECOND,
    batches,
    definitions,
    heard,
    histories,
    machine,
    rolling,
    seen,
)

# --- text --------------------------------------------------------------------------------------


@given(st.lists(detects | short_detects | collisions, min_size=1, max_size=2))
def test_components_that_are_shown_parse_to_themselves(statements):
    app = App(statements)
    assert parse(show(app)) == app
    assert repr(parse(show(app))) == repr(app)


@given(detects)
def test_a_component_shown_as_the_thesis_prints_it_parses_to_itself(detect):
    app = App([detect])
    assert parse(show(app, "thesis")) == app


# --- the machine -------------------------------------------------------------------------------


def folded(it, events, state=None):
    state = it.initial() if state is None else state
    for event in events:
        state, none = it.react(state, event)
        assert none == []
    return state


def stepped(it, events, until, state=None):
    state, out = it.step(it.initial() if state is None else state, batches(it, events), until)
    return state, seen(transitions(it.topics, out))


def same_state(it, a, b):
    return sorted(it.holding(a), key=repr) == sorted(it.holding(b), key=repr)


@given(definitions(), histories)
def test_law_0_a_step_is_a_fold_and_then_time(text, events):
    it = machine(text)
    one = folded(it, heard(it, events))
    one, out = it.advance(one, NEVER)
    other, out_of_batch = stepped(it, events, NEVER)
    assert seen(out) == out_of_batch
    assert same_state(it, one, other)


@given(definitions(), histories, st.integers(0, 11), st.data())
def test_law_1_a_history_can_be_cut_anywhere_and_may_arrive_in_any_order(text, events, at, data):
    it = machine(text)
    before = [event for event in events if event.time < at * SECOND]
    after = [event for event in events if event.time >= at * SECOND]
    middle, a = stepped(it, data.draw(st.permutations(before)), at * SECOND)
    until = 20 * SECOND
    end, b = stepped(it, data.draw(st.permutations(after)), until, middle)
    whole, out = stepped(it, events, until)
    assert a + b == out
    assert same_state(it, end, whole)


@given(definitions(), histories)
def test_law_2_what_no_component_looks_at_can_be_dropped(text, events):
    it = machine(text)
    whole = batches(it, events)
    reduced = it.reduce(it.reduce(whole))
    assert {t: (stood_for(b), reached(b)) for t, b in reduced.items()} == {
        t: (len(b), reached(b)) for t, b in whole.items()
    }
    _, out = it.step(it.initial(), reduced, NEVER)
    _, expected = it.step(it.initial(), whole, NEVER)
    assert seen(out.single) == seen(expected.single)


KEY = {
    "location": lambda event: event.location,
    "source": lambda event: event.source,
    "road": lambda event: event.attributes["road"],
}


@given(st.sampled_from(sorted(KEY)).flatmap(lambda key: st.tuples(st.just(key), definitions(key))), histories)
def test_law_3_keys_are_independent(keyed, events):
    key, text = keyed
    it = machine(text)
    until = 30 * SECOND
    parts = {}
    for event in heard(it, events):
        parts.setdefault(KEY[key](event), []).append(event)
    apart = [row for part in parts.values() for row in stepped(it, part, until)[1]]
    assert sorted(apart, key=repr) == sorted(stepped(it, events, until)[1], key=repr)


@given(definitions(), histories, histories, st.integers(0, 11))
def test_a_kept_state_goes_on_as_if_nothing_had_happened(text, first, second, at):
    it = machine(text)
    state, _ = stepped(it, first, at * SECOND)
    restored = it.from_bytes(it.to_bytes(state))
    assert same_state(it, state, restored)
    assert it.due(restored) == it.due(state)
    assert stepped(it, second, NEVER, restored)[1] == stepped(it, second, NEVER, state)[1]


@given(definitions(), histories)
def test_it_says_when_it_wants_to_be_woken(text, events):
    """Advancing from one due instant to the next says what advancing at once says."""
    it = machine(text)
    state, out = folded(it, heard(it, events)), []
    while (due := it.due(state)) is not None and due < 15 * SECOND:
        state, some = it.advance(state, due + 1)
        out += seen(some)
    assert out == stepped(it, events, 15 * SECOND)[1]


@given(
    st.sampled_from(("avg", "max", "min", "sum", "count", "stddev")),
    st.integers(0, 6),
    st.tuples(st.sampled_from(("gt", "lt")), st.sampled_from((0.0, 0.5, 1.0, 2.0))),
    st.tuples(st.sampled_from(("gt", "lt")), st.sampled_from((0.0, 0.5, 1.0, 2.0))),
    st.dictionaries(
        st.tuples(st.integers(0, 24), st.sampled_from("ab")),
        st.sampled_from((-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, None)),
        min_size=1,
    ),
)
def test_a_window_is_what_a_plain_rolling_computation_says(function, width, enter, leave, readings):
    signs = {"gt": ">", "lt": "<"}
    it = machine(f"""
        topic T (value float)
        state Window
          A = {function} T over {width} s each location
          enter A.value {signs[enter[0]]} {enter[1]}
          exit A.value {signs[leave[0]]} {leave[1]}
    """)
    rows = [(time * SECOND // 2, place, value) for (time, place), value in sorted(readings.items())]
    state = it.initial()
    for time, place, value in rows:
        state, _ = it.react(state, Event("T", time, "s", {"value": value}, place=place))
    _, out = it.advance(state, NEVER)
    expected = rolling(
        rows,
        function,
        width * SECOND,
        lambda found: getattr(operator, enter[0])(found, enter[1]),
        lambda found: getattr(operator, leave[0])(found, leave[1]),
    )
    assert [(t.scope, t.status, t.event.time) for t in out] == expected
