"""A group and its mediator report the results of the relation machine."""

from __future__ import annotations

import pytest

from holdfast.network.protocols.agents.centre import group
from holdfast.network.protocols.agents.room import AgentRoom
from holdfast.network.protocols.agents.talk import AgentReading
from support.agents import oracle, relationship_of, run, walks

TEAM = relationship_of("""topic User ()
group Team of User ("ann", "bob", "eve", "joe")
relate Together all of Team within 15 m until 25 m""")
THREE = relationship_of("""topic User ()
group Three of User ("a", "b", "c")
relate Near all of Three within 10 m until 20 m""")


def made(relation, tie, **how):
    return group(relation, tuple(member.source for member in tie.members), **how)


@pytest.mark.parametrize("seed", range(12))
def test_a_group_reports_the_results_of_the_machine(seed):
    events = walks(("ann", "bob", "eve", "joe"), 120, seed, size=50.0, step=6.0)
    emitted, _ = run(TEAM, made, events, seed=seed)
    assert emitted == oracle(TEAM, events)


def test_distant_members_send_few_messages():
    events = walks(("ann", "bob", "eve", "joe"), 300, 3, size=2000.0, step=2.0, jump=0.0)
    emitted, counted = run(TEAM, made, events)
    assert emitted == oracle(TEAM, events)
    assert counted["messages"] < 0.3 * counted["readings"]


def test_the_printed_algorithm_misses_a_gathering():
    """-5, -5 and 10.5 with R = 10 move to -0.2, -0.2 and 10.2."""
    for printed, expected in ((False, ["ingress"]), (True, [])):
        (tie,) = THREE.relation.ties
        room = AgentRoom({agent.name: agent for agent in made(THREE.relation, tie, printed=printed)})

        def line(time, *places, room=room):
            readings = [
                (name, AgentReading(time, 0, (x, 0.0))) for name, x in zip("abc", places, strict=True)
            ]
            return [report.status for report in room.process(readings)]

        assert line(0, -5.0, -5.0, 10.5) == []
        assert line(1, -0.2, -0.2, 10.2) == expected
