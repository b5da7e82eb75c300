"""Components that build on one another."""

from __future__ import annotations

import pytest

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.errors import UsageError
from holdfast.kinds.component.compile import smc
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.component.detector.smc import Input, Rule, Smc
from holdfast.kinds.component.detector.topic_levels import levels
from holdfast.kinds.component.group import Component, link_components
from holdfast.model.instant import NEVER
from holdfast.model.query import Closest, Index, Query
from support.fused import SECOND, batches, machine, reading, run_components

T = "topic T (value float)\n"


def smc_of(topic, *inputs):
    queries = {name: Input(Query(Closest(Index(name)))) for name in inputs}
    return Smc(topic, queries, Rule(lambda context: True, ()), None)


def test_levels_count_how_far_a_topic_is_above_the_readings():
    explosion = smc_of("explosion", "heat", "bang", "light")
    heat, bang = smc_of("heat", "temperature"), smc_of("bang", "sound")
    assert levels([explosion, heat, bang]) == {"heat": 1, "bang": 1, "explosion": 2}


def test_a_circle_is_refused_and_printed_in_the_direction_of_data_flow():
    with pytest.raises(UsageError, match=r"in a circle: (a → c → b → a|c → b → a → c|b → a → c → b)$"):
        levels([smc_of("a", "b"), smc_of("b", "c"), smc_of("c", "a", "x")])


def test_a_component_consumes_another_at_the_same_instant_in_any_order_of_definition():
    text = (
        T
        + """
        state Third  A = Second enter A.valid exit true
        state Second A = First enter A.valid && A.status == ingress exit A.valid && A.status == egress
        state First  A = T enter A.value > 5 exit A.value < 5
    """
    )
    assert run_components(text, [reading(1, "T", 1, 9.0), reading(4, "T", 1, 0.0)]) == [
        ("Third", None, "atomic", 1),
        ("Second", None, "ingress", 1),
        ("First", None, "ingress", 1),
        ("Third", None, "atomic", 4),
        ("Second", None, "egress", 4),
        ("First", None, "egress", 4),
    ]


def test_a_downstream_component_waits_at_least_as_long_as_its_upstream():
    text = (
        T + "state A_ X = T enter X.value > 1 exit true ordered 5 s\nstate B_ X = A_ enter X.valid exit true"
    )
    assert machine(text).waits == (5 * SECOND, 5 * SECOND)


def test_a_component_that_is_inserted_later_knows_the_latest_events():
    """A condition began before anybody looked: its start is still known.  [F75]"""
    first = "state First A = T enter A.value > 5 exit A.value < 5\n"
    old = machine(T + first)
    state, _ = old.react(old.initial(), reading(1, "T", 1, 9.0))
    state, _ = old.advance(state, 2 * SECOND)
    new = machine(
        T
        + first
        + "state Second A = First B = T enter A.valid && A.status == ingress && B.value > 5 exit true"
    )
    state = new.load(old.dump(state), [0, None])
    state = new.learn_latest(state, 1, [reading(1, "T", 1, 9.0)])
    state, _ = new.react(state, reading(3, "T", 1, 8.0))
    state, out = new.advance(state, NEVER)
    assert [(t.condition, t.status) for t in out] == [(1, "atomic")]
    assert new.active(state) == [(0, None, SECOND)]


def test_a_component_is_in_its_initial_state_until_its_first_reading():
    it = machine(T + "state S A = T enter A.value > 5 exit A.value < 5")
    state = it.initial()
    assert it.is_initial(state, 0)
    state, _ = it.react(state, reading(1, "T", 1, 9.0))
    assert not it.is_initial(state, 0)


def test_a_selected_state_continues_in_a_machine_with_fewer_components():
    both = machine(
        T
        + "state A_ X = T enter X.value > 1 exit X.value < 1\n"
        + "state B_ X = T enter X.value > 2 exit X.value < 2"
    )
    state, _ = both.react(both.initial(), reading(1, "T", 1, 9.0))
    state, _ = both.advance(state, 2 * SECOND)
    one = machine(T + "state B_ X = T enter X.value > 2 exit X.value < 2")
    stored = one.load(both.dump(state), [1])
    assert one.active(stored) == [(0, None, SECOND)]


def test_events_in_no_scope_are_counted_and_irrelevant():
    it = machine(T + "state S A = T each location within [0, 5] enter A.value > 1 exit true")
    some = batches(it, [reading(0, "T", 1, 1.0), reading(1, "T", 9, 1.0), reading(2, "T", None, 1.0)])
    found = it.relevance("T", some["T"])
    relevant, outside = found.satisfies, found.outside
    assert list(outside) == [2]
    assert list(it.relevance("T", some["T"]).satisfies) == list(relevant) == [True, False, False]


def test_an_event_relevant_to_an_upstream_component_lies_in_scope():
    """The second looks at readings of few places by itself, and at all by the first."""
    it = machine(
        T
        + "state First A = T each location within [0, 9] enter A.value > 1 exit false\n"
        + "state Second D = ingress First each location E = T each location within [0, 1] "
        + "enter D.status == ingress exit E.value > 1"
    )
    some = batches(it, [reading(0, "T", 1, 2.0), reading(1, "T", 7, 2.0), reading(2, "T", 99, 2.0)])
    found = it.relevance("T", some["T"])
    relevant, outside = found.satisfies, found.outside
    assert list(outside) == [1, 1]
    assert list(relevant) == [True, True, False]


def test_linked_parts_of_one_topic_do_not_depend_on_each_other():
    (component,) = check(parse(T + "state S A = T enter A.value > 1 exit true")).of(ComponentCondition)
    part = Component(smc(component), component.topic)
    assert list(link_components([part, part], {}).graph.operators) == [0, 1]
