"""The laws of DESIGN §1 for state filters, and their equality with the naive twin."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from holdfast.compilers.filters.machine import delivered, filters
from holdfast.machines.machine import transitions
from holdfast.model.batch import from_events, reached, stood_for, to_events
from holdfast.model.instant import BEGINNING, NEVER
from holdfast.model.qos import TIMELY
from support import naive
from support.histories import TOPIC, chain, conditions, histories, label, ordered, subscriptions


def machine(conditions):
    return delivered(filters(conditions), conditions[0].delivery)


def at_once(conditions):
    """An ordered machine that is told up to when events are to be processed: it need not wait."""
    return replace(machine(conditions), wait=0)


def folded(it, events, state=None):
    """Every transition of events taken one by one."""
    state = it.initial() if state is None else state
    out = []
    for event in events:
        state, passed = it.react(state, event)
        out += passed
    return state, seen(out)


def stepped(it, batch, state=None, until=0):
    state, told = it.step(it.initial() if state is None else state, {TOPIC.name: batch}, until)
    return state, seen(transitions(it.topics, told))


def reduced(it, batch, **how):
    return it.reduce({TOPIC.name: batch}, **how)[TOPIC.name]


def seen(said):
    """What can be seen of transitions, condition by condition."""
    return sorted(
        ((t.condition, t.status, t.scope, t.since, t.event.order) for t in said),
        key=lambda t: t[0],
    )


def batch_of(events):
    return from_events(TOPIC, events)


def orders(batch):
    """Which events a batch has."""
    return [event.order for event in to_events(TOPIC, batch)]


def same_state(it, a, b):
    return sorted(it.holding(a), key=repr) == sorted(it.holding(b), key=repr)


@given(subscriptions(), histories())
def test_one_event_at_a_time_is_what_the_papers_say(subs, events):
    it = machine(conditions(subs))
    _, out = folded(it, events)
    expected = []
    for i, sub in enumerate(subs):
        for status, outermost, since, event in naive.run(sub, chain(sub.per, sub.scope), events):
            expected.append((i, status, label(sub.per, sub.scope, outermost), since, event.order))
    assert out == expected


@given(subscriptions(most=10), histories())
def test_law_0_a_step_is_a_fold(subs, events):
    it = machine(conditions(subs))
    one, out = folded(it, events)
    other, out_of_batch = stepped(it, batch_of(events))
    assert out == out_of_batch
    assert same_state(it, one, other)


@given(subscriptions(most=10), histories(), histories())
def test_law_1_a_history_can_be_cut_anywhere(subs, first, second):
    it = machine(conditions(subs))
    middle, a = stepped(it, batch_of(first))
    end, b = stepped(it, batch_of(second), middle)
    whole, out = stepped(it, batch_of(first + second))
    assert sorted(a + b, key=lambda t: t[0]) == out
    assert same_state(it, end, whole)


@given(subscriptions(most=10), histories(), histories(), histories())
def test_law_2_a_closed_part_can_be_reduced_whatever_came_before(subs, before, part, after):
    it = machine(conditions(subs))
    thin = reduced(it, batch_of(part))
    again = reduced(it, reduced(it, thin))
    assert orders(again) == orders(thin)
    assert (stood_for(again), reached(again)) == (len(part), max((e.time for e in part), default=None))
    state, a = stepped(it, batch_of(before))
    state, b = stepped(it, thin, state)
    state, c = stepped(it, batch_of(after), state)
    assert sorted(a + b + c, key=lambda t: t[0]) == stepped(it, batch_of(before + part + after))[1]


@given(subscriptions(), histories(), st.lists(st.booleans(), min_size=12, max_size=12))
def test_law_2_a_part_that_is_not_closed_keeps_all_that_satisfies_a_predicate(subs, events, here):
    it = machine(conditions(subs))
    part = batch_of([e for e, mine in zip(events, here, strict=False) if mine])
    kept = {e.order for e in to_events(TOPIC, reduced(it, part, closed=False))}
    thinned = [e for e, mine in zip(events, here, strict=False) if not mine or e.order in kept]
    assert folded(it, thinned)[1] == folded(it, events)[1]


@given(subscriptions(), histories())
def test_law_3_outermost_scopes_are_independent(subs, events):
    it = machine(conditions(subs))
    find = chain(subs[0].per, subs[0].scope)
    parts: dict[object, list] = {}
    for event in events:
        scopes = find(event)
        parts.setdefault(repr(scopes[-1]) if scopes else None, []).append(event)
    apart = [t for part in parts.values() for t in folded(it, part)[1]]
    assert sorted(apart, key=repr) == sorted(folded(it, events)[1], key=repr)


@given(subscriptions(most=1), histories(), st.integers(1, 4))
def test_replicas_in_series_are_one_filter(subs, events, count):
    it = machine(conditions(subs))
    passed = events
    for _ in range(count):
        state = it.initial()
        through = []
        for event in passed:
            state, out = it.react(state, event)
            through += [t.event for t in out]
        passed = through
    assert passed == [t.event for t in _transitions(it, events)]


def _transitions(it, events):
    state, out = it.initial(), []
    for event in events:
        state, passed = it.react(state, event)
        out += passed
    return out


@given(subscriptions(most=10), histories(), histories())
def test_a_kept_state_goes_on_as_if_nothing_had_happened(subs, first, second):
    it = machine(conditions(subs))
    state, _ = stepped(it, batch_of(first))
    restored = it.from_bytes(it.to_bytes(state))
    assert same_state(it, state, restored)
    assert stepped(it, batch_of(second), restored)[1] == stepped(it, batch_of(second), state)[1]


# --- ordered delivery ---


@given(ordered.flatmap(lambda d: subscriptions(delivery=d)), histories(), st.integers(0, 8))
def test_law_0_an_ordered_step_is_a_fold_and_then_time(subs, events, until):
    it = at_once(conditions(subs))
    one, early = folded(it, events)
    one, passed = it.advance(one, until)
    other, out = stepped(it, batch_of(events), until=until)
    assert sorted(early + seen(passed), key=lambda t: t[0]) == out
    assert same_state(it, one, other)
    rest, rest_too = it.advance(one, NEVER)[1], it.advance(other, NEVER)[1]
    assert seen(rest) == seen(rest_too)


@given(ordered.flatmap(lambda d: subscriptions(delivery=d)), histories(most=16), st.data())
def test_disorder_within_the_wait_changes_nothing(subs, events, data):
    """Events that come at most ``wait`` behind the latest give what replay in order gives."""
    it = machine(conditions(subs))
    wait = subs[0].delivery.wait
    taken = list(arrivals(events, wait))
    arriving, state, out, latest = taken, it.initial(), [], 0
    while arriving:
        size = data.draw(st.integers(1, len(arriving)))
        part, arriving = arriving[:size], arriving[size:]
        latest = max([latest, *(e.time for e in part)])
        state, passed = stepped(it, batch_of(part), state, latest)
        out += passed
    state, passed = stepped(it, batch_of([]), state, NEVER)
    out += passed
    timely = machine(conditions([replace(sub, delivery=TIMELY) for sub in subs]))
    assert sorted(out, key=lambda t: t[0]) == folded(timely, naive.in_order(taken))[1]


def arrivals(events, wait):
    """The events without those that come more than ``wait`` behind the latest."""
    latest = 0
    for event in events:
        latest = max(latest, event.time)
        if event.time >= latest - wait:
            yield event


@given(ordered.flatmap(lambda d: subscriptions(delivery=d)), histories(), histories(), histories())
def test_law_2_reducing_what_arrives_changes_nothing_not_even_what_is_late(subs, first, second, third):
    it = at_once(conditions(subs))
    ways = (
        lambda batch, before: batch,
        lambda batch, before: reduced(it, reduced(it, batch)),
        lambda batch, before: reduced(it, batch, latest=before),  # what is not older cannot be late
        lambda batch, before: reduced(it, reduced(it, batch, latest=before + 1), latest=before),
    )
    told = []
    for way in ways:
        state, out = it.initial(), []
        for part, before, until in ((first, BEGINNING, 2), (second, 2, 4), (third, 4, NEVER)):
            state, passed = stepped(it, way(batch_of(part), before), state, until)
            out += passed
        told.append(out)
    assert all(out == told[0] for out in told)


@given(ordered.flatmap(lambda d: subscriptions(delivery=d)), histories(), histories())
def test_law_1_between_two_times_arrivals_can_be_cut_anywhere(subs, first, second):
    it = at_once(conditions(subs))
    start, _ = stepped(it, batch_of([]), until=2)
    again, _ = stepped(it, batch_of([]), until=2)
    middle, a = stepped(it, batch_of(first), start, until=2)
    end, b = stepped(it, batch_of(second), middle, until=NEVER)
    whole, out = stepped(it, batch_of(first + second), again, until=NEVER)
    assert sorted(a + b, key=lambda t: t[0]) == out
    assert same_state(it, end, whole)


@given(ordered.flatmap(lambda d: subscriptions(delivery=d)), histories(), histories())
def test_an_ordered_state_can_be_kept_with_what_it_holds_back(subs, first, second):
    it = at_once(conditions(subs))
    state, _ = stepped(it, batch_of(first), until=3)
    restored = it.from_bytes(it.to_bytes(state))
    a = stepped(it, batch_of(second), restored, until=9)[1]
    assert a == stepped(it, batch_of(second), state, until=9)[1]


@given(ordered.flatmap(lambda d: subscriptions(delivery=d, most=1)), histories(), histories())
def test_nothing_is_dropped_silently(subs, first, second):
    """Every event is processed or late: late ones are those older than an earlier until."""
    subs = [replace(sub, delivery=replace(sub.delivery, late="drop")) for sub in subs]
    it = at_once(conditions(subs))
    state, a = stepped(it, batch_of(first), until=3)
    state, b = stepped(it, batch_of(second), state, until=5)
    state, c = stepped(it, batch_of([]), state, until=NEVER)
    late = [e for e in second if e.time < 3]
    assert [t[4] for t in a + b + c if t[1] == "late"] == [e.order for e in late]
    timely = machine(conditions([replace(sub, delivery=TIMELY) for sub in subs]))
    rest = naive.in_order([*first, *(e for e in second if e.time >= 3)])
    assert [t for t in a + b + c if t[1] != "late"] == folded(timely, rest)[1]
