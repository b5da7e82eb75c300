"""State filters equal the definition of the papers for every predicate and value. Laws: ``test_machines``."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from holdfast.kinds.state.plan_toggle import filter_machine, with_delivery
from holdfast.model.batch import from_events
from holdfast.model.instant import NEVER
from holdfast.model.qos import TIMELY
from support import naive
from support.histories import TOPIC, chain, conditions, histories, label, ordered, subscriptions
from support.running import fold, step_batch


def machine(statements):
    some = conditions(statements)
    return with_delivery(filter_machine(some), some[0].topic, some[0].delivery)


@given(subscriptions(), histories())
def test_single_events_give_the_output_of_the_papers_filter(subs, events):
    it = machine(subs)
    _, out = fold(it, events)
    expected = []
    for i, sub in enumerate(subs):
        for status, outermost, since, event in naive.run(sub, chain(sub.per, sub.scope), events):
            expected.append((i, status, label(sub.per, sub.scope, outermost), since, event.order))
    assert out == expected


@given(subscriptions(most=10), histories())
def test_law_0_a_step_is_a_fold_of_reactions(subs, events):
    it = machine(subs)
    one, out = fold(it, events)
    other, out_of_batch = step_batch(it, from_events(TOPIC, events))
    assert out == out_of_batch
    assert sorted(it.active(one), key=repr) == sorted(it.active(other), key=repr)


@given(subscriptions(most=1), histories(), st.integers(1, 4))
def test_replicas_in_series_are_one_filter(subs, events, count):
    it = machine(subs)
    passed = events
    for _ in range(count):
        passed = through_one(it, passed)
    assert passed == through_one(it, events)


def through_one(it, events):
    """The events that pass a filter."""
    state, passed = it.initial(), []
    for event in events:
        state, out = it.react(state, event)
        passed += [t.event for t in out]
    return passed


# --- ordered delivery ---


@given(ordered.flatmap(lambda d: subscriptions(delivery=d, most=1)), histories(), histories())
def test_every_dropped_event_is_reported_as_late(subs, first, second):
    """Every event is processed or late: late ones are those older than an earlier until."""
    subs = [replace(sub, delivery=replace(sub.delivery, late="drop")) for sub in subs]
    it = replace(machine(subs), wait=0)  # so that until is up to when events are processed
    state, a = step_batch(it, from_events(TOPIC, first), until=3)
    state, b = step_batch(it, from_events(TOPIC, second), state, until=5)
    state, c = step_batch(it, from_events(TOPIC, []), state, until=NEVER)
    late = [e for e in second if e.time < 3]
    assert [t[4] for t in a + b + c if t[1] == "late"] == [e.order for e in late]
    timely = machine([replace(sub, delivery=TIMELY) for sub in subs])
    rest = naive.in_order([*first, *(e for e in second if e.time >= 3)])
    assert [t for t in a + b + c if t[1] != "late"] == fold(timely, rest)[1]
