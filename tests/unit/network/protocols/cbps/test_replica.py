"""Replicas of a state filter: any number in a row gives what one gives.  [F14, S7]"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast import Event
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.protocols.cbps.event import to_content
from holdfast.network.protocols.cbps.replica import (
    LONGEST_RECORD,
    ConditionInput,
    FilterReplica,
    condition_input,
)
from holdfast.network.protocols.cbps.scopes import NO_SCOPES

DEFINITIONS = [
    "topic T (v int)\nstate S on T [v >= 2; v <= 1] per source",
    "topic T (v int)\nstate S on T [v >= 1; v <= 2]",
    "topic T (v int)\nregion floor\nregion room in floor\n"
    "state S on T [v >= 2; v <= 1] per source scope room within floor",
    "topic T (v int)\nfilter S on T where v > 1",
]
conditions = st.sampled_from(DEFINITIONS).map(compile_condition)
values = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b"])), max_size=20)


def events(rows):
    return [Event("T", i, source, {"v": v}, i, None, "room") for i, (v, source) in enumerate(rows)]


def known(condition):
    """A replica that knows the bits of every scope."""
    return FilterReplica(condition, shared=NO_SCOPES, target_shared=NO_SCOPES)


def relevant_inputs(condition, events):
    """The relevant events, with the input of the condition for each."""
    sights = [(event, condition_input(condition, to_content(event))) for event in events]
    return [(event, sight) for event, sight in sights if sight is not None]


def through(replica, events):
    return [event for event, sight in relevant_inputs(replica.condition, events) if replica.passes(sight)]


def transitions(condition, events):
    state, out = condition.machine.initial(), []
    for event in events:
        state, passed = condition.machine.react(state, event)
        out += [(moved.event, moved.status) for moved in passed]
    return out


@given(condition=conditions, rows=values)
def test_a_subscriber_behind_a_replica_gives_the_result_of_one_without(condition, rows):
    history = events(rows)
    assert transitions(condition, through(known(condition), history)) == transitions(condition, history)


@given(condition=conditions, rows=values, extra=st.sets(st.integers(0, 19)), raw=st.booleans())
def test_replicas_in_series_give_the_result_of_one(condition, rows, extra, raw):
    """Other filters on the same path let other events pass; a replica without knowledge lets all relevant
    events pass: extra data, not wrong data."""
    history = events(rows)
    first = FilterReplica(condition) if raw else known(condition)
    stored = through(first, history)
    between = [event for event in history if event in stored or event.sequence in extra]
    second = known(condition)
    passed = through(second, between)
    assert transitions(condition, passed) == transitions(condition, history)
    assert second.bits == bits_after(condition, history)


def bits_after(condition, history):
    alone = known(condition)
    through(alone, history)
    return alone.bits


@given(condition=conditions, before=values, on_the_way=values, after=values)
def test_an_answer_and_the_record_since_the_request_give_the_bits(condition, before, on_the_way, after):
    history = events(before + on_the_way + after)
    asked, answered = len(before), len(before) + len(on_the_way)
    near, far = known(condition), FilterReplica(condition)  # the subscriber's side, the publisher's side
    through(near, through(far, history[:asked]))
    if not far.set_shared(NO_SCOPES):
        return
    number, bits = far.ask(), tuple(near.bits)
    for event in through(far, history[asked:answered]):
        far.record_output(ConditionInput(condition, event))
        through(near, [event])
    assert far.on_answer(number, bits)
    assert far.bits == near.bits
    through(near, through(far, history[answered:]))
    assert far.bits == near.bits


def test_only_the_answer_to_the_last_request_counts():
    replica = FilterReplica(compile_condition(DEFINITIONS[0]))
    replica.set_shared(NO_SCOPES)
    first, second = replica.ask(), replica.ask()
    assert not replica.on_answer(first, ("a",))
    assert replica.on_answer(second, ("b",))
    assert replica.bits == {"b"}
    assert not replica.on_answer(second, ())


def test_events_of_newly_shared_scopes_pass_at_once_and_others_when_their_bits_are_known():
    replica = known(compile_condition(DEFINITIONS[0]))
    through(replica, events([(2, "a"), (2, "b")]))
    assert not replica.set_shared(frozenset("a"))
    assert replica.bits == {"b"}
    assert len(through(replica, events([(2, "a"), (2, "a"), (2, "b")]))) == 2
    assert replica.set_shared(NO_SCOPES)
    assert len(through(replica, events([(2, "a"), (2, "a")]))) == 2
    replica.on_answer(replica.ask(), ("a", "b"))
    assert through(replica, events([(2, "a"), (2, "b")])) == []


def test_a_replica_requests_its_bits_again_when_its_record_grows_too_long():
    replica = FilterReplica(compile_condition(DEFINITIONS[0]))
    replica.set_shared(NO_SCOPES)
    replica.ask()
    (event,) = events([(2, "a")])
    overflow = [
        replica.record_output(ConditionInput(replica.condition, event)) for _ in range(LONGEST_RECORD + 1)
    ]
    assert overflow == [False] * LONGEST_RECORD + [True]


def test_a_condition_that_waits_for_order_gets_every_event():
    waiting = compile_condition("topic T (v int)\nstate S on T [v >= 2; v <= 1] per source ordered 5 s")
    replica = FilterReplica(waiting)
    assert not replica.set_shared(NO_SCOPES)
    history = events([(0, "a"), (1, "b"), (2, "a")])
    assert through(replica, history) == history
