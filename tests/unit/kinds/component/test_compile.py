"""Predicates and keys of components."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.definition.show import show
from holdfast.kinds.component.compile import assume_last, component_group, encode, key, value
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.component.detector.knowledge import Knowledge, of_event
from holdfast.kinds.component.detector.rows import ReadingRows
from holdfast.kinds.component.detector.smc import EvaluationContext
from holdfast.lang.expressions.evaluate import value as plainly
from holdfast.lang.ops import Expression, MemberAttribute, Name
from holdfast.lang.rewrite import parts
from holdfast.lang.typed import NameScope
from holdfast.lang.types import predicate
from holdfast.model.batch import from_events
from holdfast.model.event import Event
from support.columnar import TOPICS, definitions, histories
from support.definitions import TOPIC, predicates, readings

# --- values ------------------------------------------------------------------------------------


def of_a_query(op):
    """The core expression with every attribute taken from query A."""
    if isinstance(op, Name):
        return MemberAttribute("A", op.name)
    changes = {f.name: of_a_query(p) for f in fields(op) if isinstance(p := getattr(op, f.name), Expression)}
    return replace(op, **changes) if parts(op) else op


@given(predicates, readings)
def test_a_predicate_over_a_query_has_the_same_meaning_as_over_a_reading(op, reading):
    core = predicate(op, NameScope(TOPIC, {}))
    attributes = {name: None if v != v else v for name, v in reading.items()}
    known = Knowledge("Reading", 0, "s", attributes)
    assert value(of_a_query(core))(EvaluationContext({"A": known}, None, 0, None)) == plainly(core, reading)


@given(st.booleans())
def test_last_before_and_after_the_first_event(exists):
    text = "topic T (value float) state S A = T enter (last.valid || last.value > 3) && A.value > 1 exit true"
    core = check(parse(text)).of(ComponentCondition)[0].enter.when
    assert show(assume_last(core, exists=exists)) == "A.value > 1.0"
    without = "topic T (value float) state S A = T enter !last.valid && A.value > last.value exit true"
    core = check(parse(without)).of(ComponentCondition)[0].enter.when
    assert show(assume_last(core, exists=exists)) == ("false" if exists else "true")


@pytest.mark.parametrize(
    ("a", "b", "far"),
    [
        ((0.0,), (3.0,), 3.0),
        ((0.0, 0.0), (3.0, 4.0), 5.0),
        ((0.0,), (3.0, 4.0), None),
        ("A5", "A5", 0.0),
        ("A5", "A7", None),
    ],
)
def test_distances(a, b, far):
    text = "topic T (value float) state S A = T B = T enter |A.location - B.location| >= 0 exit true"
    distance = check(parse(text)).of(ComponentCondition)[0].enter.when.left
    points = [
        Knowledge("T", 0, "s", {}, at if isinstance(at, tuple) else None, at if isinstance(at, str) else None)
        for at in (a, b)
    ]
    assert value(distance)(EvaluationContext(dict(zip("AB", points, strict=True)), None, 0, None)) == far


# --- keys --------------------------------------------------------------------------------------


def test_a_key_is_the_text_of_a_value_and_a_missing_value_has_no_key():
    known = Knowledge("T", 0, "s4", {"road": 7, "lane": None}, (1.0, 2.5))
    assert key(()) is None
    assert [key(names)(known) for names in (["source"], ["road"], ["lane"], ["place"])] == [
        "s4",
        "7",
        None,
        None,
    ]
    assert key(["location"])(known) == "1.0\x1f2.5"
    assert key(["location"])(Knowledge("T", 0, "s", {}, None, "A5")) == "A5"


@given(definitions(), histories)
@settings(max_examples=30)
def test_the_keys_of_a_batch_equal_those_of_its_readings(text, events):
    for query in (
        query for _, query in check(parse(text)).of(ComponentCondition)[0].inputs if query.separate
    ):
        for topic in check(parse(TOPICS)).topics:
            mine = [event for event in events if event.topic == topic.name]
            codes, keys = encode(query.separate)(ReadingRows(topic, from_events(topic, mine)))
            expected = [key(query.separate)(of_event(event)) for event in mine]
            assert [keys[code] if code >= 0 else None for code in codes] == expected
            assert len(set(keys)) == len(keys)


def test_an_attribute_that_is_int_in_one_input_and_float_in_another_is_a_float():
    checked = check(
        parse(
            "topic T (n int)\ntopic U (n float)\n"
            "state S\n  A = T\n  B = U\n  enter A.n > 1 && B.n > 1\n  exit A.n < 1\n"
        )
    )
    (component,) = checked.of(ComponentCondition)
    assert component.topic.by_name["n"].kind == "float"
    machine = component_group([component], checked.topics)
    state = machine.initial()
    for event in (Event("U", 0, "u", {"n": 2.0}), Event("T", 1, "t", {"n": 3})):
        state, _ = machine.react(state, event)
    _, emitted = machine.advance(state, 2)
    assert [repr(one.event.attributes["n"]) for one in emitted] == ["3.0"]
