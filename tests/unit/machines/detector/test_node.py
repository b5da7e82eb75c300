"""A node: publish, subscribe, insert components, and an InfoS time for each level."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.compilers.components.machine import smc
from holdfast.errors import UsageError
from holdfast.lang.check import check
from holdfast.lang.parse import parse
from holdfast.machines.detector.knowledge import of_event
from holdfast.machines.detector.node import (
    Node,
    advance,
    advertise,
    insert_smc,
    publish,
    subscribe,
    unsubscribe,
)
from holdfast.machines.detector.stability import Stability, info_time, observed
from holdfast.model.instant import NEVER
from holdfast.model.query import Index, Range
from support.fused import SECOND, machine, reading

TEXT = """
    topic T (value float)
    state First  A = T each location enter A.value > 5 exit A.value < 5
    state Second A = First any location
      enter A.valid && A.status == ingress
      exit A.valid && A.status == egress
"""


def smcs(text=TEXT):
    return [smc(component) for component in check(parse(text)).components]


def node(text=TEXT, interval=2 * SECOND):
    made = Node(Stability(interval))
    for one in smcs(text):
        insert_smc(made, one)
    advertise(made, "s", "T")
    return made


def heard(deliveries):
    return [(d.subscriber, d.event.topic, d.event.status, d.event.time // SECOND) for d in deliveries]


def say(made, seconds, value, *, clock=None, where=1):
    event = of_event(reading(seconds, "T", where, value))
    return heard(publish(made, "s", event, round((clock if clock is not None else seconds) * SECOND)))


def test_a_level_is_evaluated_one_stabilization_interval_after_the_one_below():
    made = node(interval=2 * SECOND)
    made.stability = Stability(2 * SECOND)
    for topic in ("T", "First", "Second"):
        subscribe(made, "app", topic)
    assert say(made, 10, 9.0, clock=12) == [("app", "T", "atomic", 10), ("app", "First", "ingress", 10)]
    assert heard(advance(made, 13 * SECOND)) == []
    assert heard(advance(made, 14 * SECOND)) == [("app", "Second", "ingress", 10)]


def test_who_subscribes_in_the_middle_of_a_condition_is_told_of_its_start():
    """Figure 5.13: the second application would know only the end.  [F75]"""
    made = node()
    subscribe(made, "early", "First")
    assert say(made, 10, 9.0, clock=12) == [("early", "First", "ingress", 10)]
    assert heard(subscribe(made, "late", "First")) == [("late", "First", "ingress", 10)]
    assert say(made, 20, 1.0, clock=22) == [("early", "First", "egress", 20), ("late", "First", "egress", 20)]


def test_a_subscription_may_be_of_a_region_and_end():
    made = node()
    subscribe(made, "app", "T", Range(Index((0.0,)), Index((5.0,))))
    assert say(made, 1, 1.0, where=3) == [("app", "T", "atomic", 1)]
    assert say(made, 2, 1.0, where=9) == []
    unsubscribe(made, "app", "T")
    assert say(made, 3, 1.0, where=3) == []


def test_publishing_without_an_advertisement_is_refused():
    with pytest.raises(UsageError, match="'x' publishes T where it has not advertised it"):
        publish(node(), "x", of_event(reading(1, "T", 1, 1.0)), SECOND)


def test_a_component_of_the_same_name_replaces_the_old_one_and_knows_the_latest_events():
    made = node("topic T (value float)\nstate First A = T enter A.value > 5 exit A.value < 5")
    say(made, 10, 9.0, clock=12)
    (lower,) = smcs("topic T (value float)\nstate First A = T enter A.value > 1 exit A.value < 1")
    insert_smc(made, lower)
    subscribe(made, "app", "First")
    assert say(made, 20, 3.0, clock=22) == [("app", "First", "ingress", 20)]
    assert len(made.components) == 1


def test_a_component_that_would_close_a_circle_is_refused_before_anything_changes():
    made = node("topic T (value float)\nstate First A = T enter A.value > 5 exit true")
    (circle,) = smcs("topic First (value float)\nstate T A = First enter A.value > 1 exit true")
    with pytest.raises(UsageError, match="in a circle"):
        insert_smc(made, circle)
    assert list(made.components) == [("First", "")]


# --- stabilization -----------------------------------------------------------------------------


def test_the_interval_grows_at_once_and_shrinks_slowly():
    first = Stability()
    assert first.interval == 3 * SECOND
    longer = observed(first, 5 * SECOND)
    assert longer.interval == 5 * SECOND
    shorter = observed(longer, SECOND)
    assert SECOND < shorter.interval < 5 * SECOND
    for _ in range(1000):
        shorter = observed(shorter, SECOND)
    assert SECOND <= shorter.interval < 1.001 * SECOND
    assert info_time(Stability(2 * SECOND), 10 * SECOND, 3) == 4 * SECOND


delays = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from((1, 2)), st.sampled_from((0.0, 9.0)), st.integers(0, 20)),
    max_size=12,
)


@given(delays, st.integers(21, 40))  # longer than every delay
def test_the_interval_changes_when_something_is_said_never_what(arrivals, interval):
    """With an interval that covers every delay, a node says what the machine says of the whole."""
    made = node(interval=interval * SECOND)
    subscribe(made, "app", "First")
    subscribe(made, "app", "Second")
    events = sorted(
        ((time + delay, reading(time, "T", where, value)) for time, where, value, delay in arrivals),
        key=lambda pair: pair[0],
    )
    out = []
    for clock, event in events:
        made.stability = Stability(interval * SECOND)  # as if nothing had been learnt
        out += publish(made, "s", of_event(event), clock * SECOND)
    out += advance(made, 1000 * SECOND)
    it = machine(TEXT)
    state = it.initial()
    for _, event in events:
        state, _ = it.react(state, event)
    _, expected = it.advance(state, NEVER)
    assert sorted((d.event.topic, d.event.status, d.event.time, repr(d.event.at)) for d in out) == sorted(
        (t.event.topic, t.status, t.event.time, repr(t.event.location)) for t in expected
    )
