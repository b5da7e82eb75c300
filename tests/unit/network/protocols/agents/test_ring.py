"""Two agents and the distance between their publishers report the results of the relation machine."""

from __future__ import annotations

import math

import pytest

from holdfast.network.protocols.agents.ring import RingMove, ring_pair
from holdfast.network.protocols.agents.room import AgentRoom
from holdfast.network.protocols.agents.talk import AgentReading
from support.agents import oracle, relationship_of, run, walks

MEET = relationship_of("""topic User ()
relate Meet (a User, b User) pairs ("ann", "bob"), ("bob", "eve")
  when distance(a, b) <= 10 m until distance(a, b) >= 30 m""")

STRATEGIES = {
    "rings": {},
    "lines": {"is_line": True},
    "uneven rings": {"share": 0.9},
    "enlarged rings": {"enlarged": 1.5},
}


def made(**how):
    return lambda relation, tie: ring_pair(relation, *tie.pair, **how)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("how", STRATEGIES)
def test_every_strategy_reports_the_results_of_the_machine(how, seed):
    events = walks(("ann", "bob", "eve"), 120, seed)
    expected = oracle(MEET, events)
    emitted, counted = run(MEET, made(**STRATEGIES[how]), events, seed=seed)
    assert emitted == expected
    assert counted["messages"] < 2 * counted["readings"]


def test_walkers_with_small_steps_send_few_messages():
    once = walks(("ann", "bob", "eve"), 400, 7, size=900.0, step=2.0, jump=0.0)
    emitted, counted = run(MEET, made(), once)
    assert emitted == oracle(MEET, once)
    assert counted["messages"] < 0.1 * counted["readings"]


def at(x, time=0, sequence=0):
    return AgentReading(time, sequence, (float(x), 0.0))


def test_rings_have_the_sizes_of_the_thesis():
    """110 apart, goal 10: rings of 50; after a move of 51, of 24.5."""
    a, b = ring_pair(MEET.relation, "ann", "bob")
    room = AgentRoom({"ann": a, "bob": b})
    room.process([("ann", at(0)), ("bob", at(110))])
    assert a.radius == pytest.approx(50)
    assert b.radius == pytest.approx(50)
    assert not room.process([("bob", at(61, 1))])
    before = room.counted["messages"]
    room.process([("bob", at(59, 2))])
    assert room.counted["messages"] == before + 1
    assert a.radius == pytest.approx(24.5)
    assert b.radius == pytest.approx(24.5)


def test_two_members_that_leave_at_once_use_both_new_positions():
    """0 and 110 jump to 51 and 59: as printed both keep rings of 24.5, and are 8 apart unnoticed."""
    for printed, expected in ((False, ["ingress"]), (True, [])):
        room = AgentRoom({one.name: one for one in ring_pair(MEET.relation, "ann", "bob", printed=printed)})
        room.process([("ann", at(0)), ("bob", at(110))])
        emitted = room.process([("ann", at(51, 1)), ("bob", at(59, 1))])
        assert [report.status for report in emitted] == expected


def test_the_printed_algorithm_reports_a_meeting_that_never_was():
    """The leaving member decides by the last position of the other, which has moved meanwhile, inside its
    ring."""
    for printed, expected in ((False, []), (True, ["ingress"])):
        room = AgentRoom({one.name: one for one in ring_pair(MEET.relation, "ann", "bob", printed=printed)})
        room.process([("ann", at(0)), ("bob", at(50))])
        assert not room.process([("bob", at(65, 1))])
        emitted = room.process([("ann", at(41, 2))])
        assert [report.status for report in emitted] == expected


def test_members_leave_at_the_edge_of_the_ring():
    a, b = ring_pair(MEET.relation, "ann", "bob")
    room = AgentRoom({"ann": a, "bob": b})
    room.process([("ann", at(0)), ("bob", at(110))])
    before = room.counted["messages"]
    room.process([("ann", at(50, 1))])
    assert room.counted["messages"] > before


@pytest.mark.parametrize("seed", range(6))
def test_a_lost_connection_is_reported_as_unknown_and_the_state_is_restored(seed):
    events = walks(("ann", "bob"), 60, seed)
    room = AgentRoom({one.name: one for one in ring_pair(MEET.relation, "ann", "bob")}, seed=seed)
    emitted = []
    for i, event in enumerate(events):
        emitted += room.process([(event.source, AgentReading(event.time, event.sequence, event.location))])
        if i % 20 == 10:
            room.disconnect("ann", "bob")
            emitted += room.deliver_all()
        if i % 20 == 13:
            room.connect("ann", "bob")
            emitted += room.deliver_all()
            a, b = (agent for agent in room.agents.values())
            distance = math.dist(a.current.at, b.current.at)
            assert a.bit == b.bit == (1 if distance <= 10 else 0 if distance >= 30 else None)
    assert "unknown" in [report.status for report in emitted]


def test_messages_of_agents_survive_the_wire():
    import msgspec

    output = RingMove(1, 0, at(3), None, math.inf, 0, None)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(output), type=RingMove) == output
