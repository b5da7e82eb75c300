"""Replicas of a state filter: any number in a row gives what one gives.  [F14, S7]"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast import Event
from holdfast.protocols.cbps.event import to_content
from holdfast.protocols.cbps.replica import LONGEST_RECORD, Replica, Sight, sighted
from holdfast.protocols.cbps.scopes import NOWHERE
from holdfast.runtimes.overlay.conditions import condition

DEFINITIONS = [
    "topic T (v int)\nstate S on T [v >= 2; v <= 1] per source",
    "topic T (v int)\nstate S on T [v >= 1; v <= 2]",
    "topic T (v int)\nregion floor\nregion room in floor\n"
    "state S on T [v >= 2; v <= 1] per source scope room within floor",
    "topic T (v int)\nfilter S on T where v > 1",
]
conditions = st.sampled_from(DEFINITIONS).map(condition)
values = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b"])), max_size=20)


def events(rows):
    return [Event("T", i, source, {"v": v}, i, None, "room") for i, (v, source) in enumerate(rows)]


def known(condition):
    """A replica that knows the bits of every scope."""
    return Replica(condition, shared=NOWHERE, wanted=NOWHERE)


def seen(condition, events):
    """The events that may matter, with how the condition sees them."""
    sights = [(event, sighted(condition, to_content(event))) for event in events]
    return [(event, sight) for event, sight in sights if sight is not None]


def through(replica, events):
    return [event for event, sight in seen(replica.condition, events) if replica.passes(sight)]


def transitions(condition, events):
    state, out = condition.machine.initial(), []
    for event in events:
        state, passed = condition.machine.react(state, event)
        out += [(moved.event, moved.status) for moved in passed]
    return out


@given(condition=conditions, rows=values)
def test_a_subscriber_behind_a_replica_says_what_it_would_say_alone(condition, rows):
    history = events(rows)
    assert transitions(condition, through(known(condition), history)) == transitions(condition, history)


@given(condition=conditions, rows=values, extra=st.sets(st.integers(0, 19)), raw=st.booleans())
def test_replicas_in_a_row_give_what_one_gives_whatever_else_passes_between_them(condition, rows, extra, raw):
    """Other filters on the same path let other events pass; a replica that knows nothing lets pass
    what matters: extra data, not wrong data."""
    history = events(rows)
    first = Replica(condition) if raw else known(condition)
    kept = through(first, history)
    between = [event for event in history if event in kept or event.sequence in extra]
    second = known(condition)
    passed = through(second, between)
    assert transitions(condition, passed) == transitions(condition, history)
    assert second.bits == bits_after(condition, history)


def bits_after(condition, history):
    alone = known(condition)
    through(alone, history)
    return alone.bits


@given(condition=conditions, before=values, on_the_way=values, after=values)
def test_an_answer_and_what_was_said_since_the_question_give_the_bits(condition, before, on_the_way, after):
    history = events(before + on_the_way + after)
    asked, answered = len(before), len(before) + len(on_the_way)
    near, far = known(condition), Replica(condition)  # the subscriber's side, the publisher's side
    through(near, through(far, history[:asked]))
    if not far.place(NOWHERE):
        return
    number, bits = far.ask(), tuple(near.bits)
    for event in through(far, history[asked:answered]):
        far.note(Sight(condition, event))
        through(near, [event])
    assert far.learn(number, bits)
    assert far.bits == near.bits
    through(near, through(far, history[answered:]))
    assert far.bits == near.bits


def test_only_the_answer_to_the_last_question_counts():
    replica = Replica(condition(DEFINITIONS[0]))
    replica.place(NOWHERE)
    first, second = replica.ask(), replica.ask()
    assert not replica.learn(first, ("a",))
    assert replica.learn(second, ("b",))
    assert replica.bits == {"b"}
    assert not replica.learn(second, ())


def test_scopes_that_become_shared_are_let_pass_at_once_and_those_that_are_no_longer_when_known():
    replica = known(condition(DEFINITIONS[0]))
    through(replica, events([(2, "a"), (2, "b")]))
    assert not replica.place(frozenset("a"))
    assert replica.bits == {"b"}
    assert len(through(replica, events([(2, "a"), (2, "a"), (2, "b")]))) == 2
    assert replica.place(NOWHERE)
    assert len(through(replica, events([(2, "a"), (2, "a")]))) == 2
    replica.learn(replica.ask(), ("a", "b"))
    assert through(replica, events([(2, "a"), (2, "b")])) == []


def test_a_record_that_grows_too_long_makes_it_ask_again():
    replica = Replica(condition(DEFINITIONS[0]))
    replica.place(NOWHERE)
    replica.ask()
    (event,) = events([(2, "a")])
    overflow = [replica.note(Sight(replica.condition, event)) for _ in range(LONGEST_RECORD + 1)]
    assert overflow == [False] * LONGEST_RECORD + [True]


def test_a_condition_that_waits_for_order_gets_every_event():
    waiting = condition("topic T (v int)\nstate S on T [v >= 2; v <= 1] per source ordered 5 s")
    replica = Replica(waiting)
    assert not replica.place(NOWHERE)
    history = events([(0, "a"), (1, "b"), (2, "a")])
    assert through(replica, history) == history
