"""Brackets and ``enter`` statements are equivalent where ``check`` and ``explain`` report that they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Engine, Event, check, parse
from holdfast.definition.show import show
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.component.explain import to_brackets

TOPIC = "topic T (value float, n int, road text)\n"
PREDICATES = (
    "value > 1",
    "value < 1",
    'n >= value && road != "a"',
    "!(n == 2) || value > 2",
    "false",
    "true",
)
KEYS = ("", "source", "road", "road, source")

readings = st.lists(
    st.tuples(
        st.sampled_from(("s1", "s2")),
        st.fixed_dictionaries(
            {
                "value": st.sampled_from((0.0, 1.0, 2.0, 3.0, None)),
                "n": st.integers(0, 3) | st.none(),
                "road": st.sampled_from(("a", "b", None)),
            }
        ),
        st.sampled_from(("hall", "yard", None)),
    ),
    max_size=20,
)


def transitions_of(text, rows):
    engine = Engine(text)
    events = [Event("T", i, source, values, i, None, place) for i, (source, values, place) in enumerate(rows)]
    emitted = [n for event in events for n in engine.push(event)] + engine.advance(len(rows) + 1)
    return sorted((n.scope or "", n.event.time, n.status, n.since or 0) for n in emitted)


@given(st.sampled_from(PREDICATES), st.sampled_from(PREDICATES), st.sampled_from(KEYS), readings)
def test_brackets_and_enter_statements_start_and_end_at_the_same_readings(enter, leave, keys, rows):
    each, per = (f"{word} {keys}" if keys else "" for word in ("each", "per"))
    component = f"{TOPIC}state S on T {each} enter {enter} exit {leave}"
    brackets = to_brackets(check(parse(component)).of(ComponentCondition)[0])
    assert brackets is not None
    received = transitions_of(component, rows)
    assert received == transitions_of(TOPIC + show(brackets), rows)
    assert received == transitions_of(f"{TOPIC}state S on T [{enter}; {leave}] {per}", rows)


@pytest.mark.parametrize(
    "component",
    [
        "A = max T over 5 s each source enter A.value > 1 exit A.value < 1",
        "A = T each location enter A.value > 1 exit A.value < 1",
        "A = T each source B = T each source enter A.value > 1 exit B.value < 1",
        "on T each source enter value > 1 for 5 s exit value < 1",
        "on T each source enter value > 1 set level = value exit value < 1",
        "A = T each source enter A.value > 1 && last.value < 3 exit A.value < 1",
        "A = T each source enter A.value > 1 && A.time < now exit A.value < 1",
        "A = T each source enter A.value else 3 > 1 exit A.value < 1",
        "on T each source enter value > 1 exit value < 1 tick 1 s",
        "A = all of (T, U) each source enter A.value > 1 exit A.value < 1",
        "A = any of (T, U) each source enter A.value > 1 exit A.value < 1",
        "A = one of (U, T) each source enter A.value > 1 exit A.value < 1",
        "A = max of (T, U) each source enter A.value > 1 exit A.value < 1",
        "A = T any location each source enter A.value > 1 exit A.value < 1",
    ],
)
def test_components_that_brackets_cannot_express_have_no_bracket_form(component):
    other = "topic U (value float, n int, road text)\n"
    assert to_brackets(check(parse(f"{TOPIC}{other}state S {component}")).of(ComponentCondition)[0]) is None
