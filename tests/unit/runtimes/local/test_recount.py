"""A count that begins while states hold knows who holds already."""

from __future__ import annotations

import pytest

from holdfast import Engine, Event
from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.model.batch import from_events
from holdfast.plan.compile import operators

STATES = """topic T (v float, room text)
state Warm on T [v > 25; v < 22] per source
state Room on T [v > 25; v < 22] per room unknown after 1 h
"""
MINUTE = 60_000_000
ROWS = [("a", "r", 26.0), ("b", "r", 27.0), ("c", "s", 28.0), ("b", "r", 20.0), ("d", "r", 30.0)]


def push_all(engine, rows=ROWS, start=0):
    output = []
    for at, (source, room, value) in enumerate(rows, start):
        output += engine.push(Event("T", at * MINUTE, source, {"v": value, "room": room}, at))
    return [(n.subscription, n.scope, n.status, n.since) for n in output]


@pytest.mark.parametrize(
    ("count", "since"),
    [
        ("state Many = at least 2 of Warm", 2),  # a and c hold, then d joins
        ("state Many = at least 3 of Warm", 4),
        ("state Many = at least 4 of Warm", None),
        ("state Many = at least 1 of Room within room", 2),  # r has ended and started since
    ],
)
def test_a_new_count_is_active_if_enough_scopes_are_active_already(count, since):
    engine = Engine(STATES)
    push_all(engine)
    output = engine.revise(STATES + count)
    held = [one.since for one in engine.holding() if one.subscription == "Many"]
    assert min(held, default=None) == (None if since is None else since * MINUTE)
    assert [n.status for n in output] == ["revised"] * len(held)
    again = Engine.restore(STATES + count, engine.snapshot())
    assert engine.holding() == again.holding()


def test_a_new_count_ends_with_scopes_that_were_active_before_it():
    engine = Engine(STATES)
    push_all(engine)
    many = engine.subscribe("state Many = at least 3 of Warm")
    assert [(n.status, n.event.time) for n in many] == [("ingress", 4 * MINUTE)]
    assert push_all(engine, [("c", "s", 20.0)], 9)[-1] == ("Many", None, "egress", 4 * MINUTE)


def test_a_member_whose_group_is_unknown_is_counted_from_its_next_start_on():
    engine = Engine(STATES)
    push_all(engine)
    engine.revise(STATES + "state Many = at least 1 of Warm within room")
    assert [one for one in engine.holding() if one.subscription == "Many"] == []
    assert push_all(engine, [("e", "s", 30.0)], 9)[-1][:3] == ("Many", "s", "ingress")


def test_a_new_count_starts_with_a_revision_of_its_condition():
    engine = Engine(STATES)
    push_all(engine)
    edit = STATES.replace("v > 25; v < 22] per source", "v > 24; v < 22] per source")
    output = engine.revise(edit + "state Many = at least 3 of Warm")
    assert [(n.subscription, n.status, n.since) for n in output] == [("Many", "revised", 4 * MINUTE)]


def test_the_start_of_a_count_that_a_snapshot_lacks_is_reported_with_the_next_reading():
    engine = Engine(STATES)
    push_all(engine)
    again = Engine.restore(STATES + "state Many = at least 3 of Warm", engine.snapshot())
    again = Engine.restore(again.app, again.snapshot())  # though it goes on from another snapshot first
    many = again.subscribe("Many")
    emitted = push_all(again, [("c", "s", 27.0), ("c", "s", 20.0)], 9)
    assert [one for one in emitted if one[0] == "Many"] == [
        ("Many", None, "ingress", None),
        ("Many", None, "egress", 4 * MINUTE),
    ]
    assert [(n.status, n.event.time) for n in many] == [("ingress", 4 * MINUTE), ("egress", 10 * MINUTE)]


def test_a_new_correlation_of_states_starts_with_the_active_scopes():
    """The overlap is active since its last condition started, and ends with the first one."""
    engine = Engine(STATES)
    push_all(engine)
    both = engine.subscribe("correlate Both = Warm, Room overlapping")
    assert [(n.status, n.scope, n.event.time // MINUTE) for n in both] == [
        ("ingress", "a,s", 2),
        ("ingress", "c,s", 2),
    ]
    push_all(engine, [("e", "q", 20.0)], 9)  # the watermark passes the last timestamp by that
    assert sorted((n.scope, n.event.time // MINUTE) for n in both) == [
        ("a,r", 4), ("c,r", 4), ("d,r", 4), ("d,s", 4),
    ]  # fmt: skip
    assert push_all(engine, [("c", "s", 20.0)], 10)[0] == ("Warm", "c", "egress", 2 * MINUTE)
    push_all(engine, [("e", "q", 20.0)], 11)
    assert sorted((n.scope, n.status, n.since // MINUTE) for n in both) == [
        ("a,s", "egress", 2), ("c,r", "egress", 4), ("c,s", "egress", 2), ("d,s", "egress", 4),
    ]  # fmt: skip


def test_pairs_whose_names_have_commas_are_distinguished():
    """An id is made of the scope: two of one would be taken for one."""
    engine = Engine(f"{STATES}correlate Both = Warm, Room overlapping")
    push_all(engine, [("a,b", "c", 26.0), ("a", "b,c", 26.0)])
    assert {n.scope for n in engine.advance(9 * MINUTE)} == {'"a,b","b,c"', "a,c", 'a,"b,c"'}
    assert len({one.scope for one in engine.holding() if one.subscription == "Both"}) == 4


def test_active_scopes_are_consumed_in_order_of_time_whatever_the_order_of_topics():
    """A shard passes active scopes to a new correlation all at once, topic by topic."""
    app = """
    topic T (value float)
    state A on T [value > 5; value < 3] per source
    state B on T [value > 6; value < 3] per source
    correlate C = A, B overlapping
    """
    machine = next(one for one in operators(check(parse(app))) if "C" in one.subscriptions).machine
    state, _ = machine.step(machine.initial(), {}, 20)
    attributes = dict(zip(machine.columns, ("ingress", "s", None), strict=True))
    emitted = {
        name: from_events(topic, [Event(name, since, "s", attributes, 0)])
        for (name, topic), since in zip(machine.topics.items(), (10, 5), strict=True)
    }
    state, output = machine.step(state, emitted, 20)
    assert [(one.status, one.event.time) for one in output.single] == [("ingress", 10)]
