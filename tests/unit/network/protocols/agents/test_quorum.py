"""A group that counts reports the results of the relation machine."""

from __future__ import annotations

import pytest

from holdfast.network.protocols.agents.quorum import QuorumChair, QuorumMember, quorum_agents
from holdfast.network.protocols.agents.room import AgentRoom
from holdfast.network.protocols.agents.talk import AgentReading
from support.agents import oracle, relationship_of, run, walks

NAMES = ("ann", "bob", "eve", "joe", "zoe")
TOPIC = """topic User (off float m)
group Team of User ("ann", "bob", "eve", "joe", "zoe")
"""
FORMS = {
    "three around any": "at least 3 of Team within 12 m until 20 m",
    "three around eve": 'at least 3 of Team within 20 m of "eve" until 30 m',
    "all around bob": 'all of Team within 30 m of "bob" until 40 m',
    "two, neither too near": "when radius(Team, 2) in [3 m, 9 m] until radius(Team, 2) > 12 m",
}


def made(relation, tie):
    participants, chair = quorum_agents(relation, tuple(member.source for member in tie.members))
    return [*participants, chair]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(4))
def test_a_group_reports_the_results_of_the_machine(form, seed):
    one = relationship_of(f"{TOPIC}relate Some {FORMS[form]}")
    events = walks(NAMES, 100, seed, size=50.0, step=6.0)
    statuses_at, _ = run(one, made, events, seed=seed)
    assert statuses_at == oracle(one, events)
    assert statuses_at


def test_a_distant_member_sends_few_messages():
    one = relationship_of(f"{TOPIC}relate Some at least 3 of Team within 10 m until 20 m")
    events = walks(NAMES, 300, 3, size=4000.0, step=2.0, jump=0.0)
    statuses_at, counted = run(one, made, events)
    assert statuses_at == oracle(one, events)
    assert counted["messages"] < 0.3 * counted["readings"]


def test_a_group_continues_when_its_members_change():
    """Bob leaves ann for eve at one time: two are together all the time, whichever pair is processed
    first."""
    for seed in range(20):
        room = scene("at least 2 of Team within 5 m until 10 m", seed=seed)
        assert statuses_at(room, 0, ann=0, bob=3, eve=100, joe=500, zoe=900) == ["ingress"]
        assert statuses_at(room, 1, bob=98) == []
        assert statuses_at(room, 2, bob=50) == ["egress"]


def test_uncertain_positions_count_once_they_are_certain():
    """Each arriving position is examined while errors leave the result open, although no member has moved."""
    room = scene("at least 2 of Team within 5 m until 10 m accuracy off")
    assert statuses_at(room, 0, off=3.0, ann=0, bob=3, eve=100, joe=500, zoe=900) == []
    assert statuses_at(room, 1, off=3.0, bob=3) == []
    assert statuses_at(room, 2, off=0.5, **dict(zip(NAMES, (0, 3, 100, 500, 900), strict=True))) == [
        "ingress"
    ]
    room.counted.clear()
    assert statuses_at(room, 3, off=0.5, ann=0) == []
    assert not room.counted["messages"]


def test_a_lost_member_makes_the_state_unknown_until_all_have_reported():
    room = scene("at least 2 of Team within 5 m until 10 m")
    assert statuses_at(room, 0, ann=0, bob=3, eve=100, joe=500, zoe=900) == ["ingress"]
    others = [name for name in room.agents if name != "bob"]
    for other in others:
        room.disconnect("bob", other)
    assert [report.status for report in room.deliver_all()] == ["unknown"]
    assert statuses_at(room, 1, bob=200) == []
    for other in others:
        room.connect("bob", other)
    assert [report.status for report in room.deliver_all()] == ["egress"]


def scene(form, seed=None):
    one = relationship_of(f"{TOPIC}relate Some {form}")
    (tie,) = one.relation.ties
    room = AgentRoom({agent.name: agent for agent in made(one.relation, tie)}, seed=seed)
    assert {type(agent) for agent in room.agents.values()} == {QuorumMember, QuorumChair}
    return room


def statuses_at(room, time, *, off=0.0, **places):
    readings = [(name, AgentReading(time, 0, (float(x), 0.0), off)) for name, x in places.items()]
    return [report.status for report in room.process(readings)]
