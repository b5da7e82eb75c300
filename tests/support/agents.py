"""Random walks, the results of the relation machine for them, and the reports of agents."""

from __future__ import annotations

import random
from itertools import groupby

from holdfast import check, parse
from holdfast.kinds.relation.condition import RelationCondition
from holdfast.model.event import Event
from holdfast.model.instant import NEVER, SECOND
from holdfast.network.protocols.agents.room import AgentRoom
from holdfast.network.protocols.agents.talk import AgentReading
from holdfast.plan.compile import operators


def relationship_of(text):
    """The relationship that a definition has."""
    (one,) = check(parse(text)).of(RelationCondition)
    return one


def walks(names, steps, seed, *, size=60.0, step=12.0, together=0.7, idle=0.3, jump=0.05):
    """Events of sources that wander, jump now and then, and are often read at one instant."""
    chance = random.Random(seed)
    at = {name: [chance.uniform(0, size) for _ in range(2)] for name in names}
    events, time = [], 0
    for _ in range(steps):
        time += SECOND
        for name in names:
            if chance.random() > together:
                time += 1
            if chance.random() < idle:
                continue
            far = size if chance.random() < jump else step
            at[name] = [min(max(x + chance.uniform(-far, far), 0.0), size) for x in at[name]]
            events.append(Event("User", time, name, {}, len(events), tuple(at[name])))
    return events


def oracle(one, events):
    """The results of the relation machine: (time, scope, status, source, sequence)."""
    from holdfast.lang.condition import Checked

    (operator,) = operators(Checked(one.listens, (one,)))
    machine = operator.machine
    state = machine.initial()
    for event in events:
        state, _ = machine.react(state, event)
    _, output = machine.advance(state, NEVER)
    return sorted((t.event.time, t.scope, t.status, t.event.source, t.event.sequence) for t in output)


def run(one, made, events, *, seed=None):
    """The reports of agents of each tie for the same events, and the number of their messages."""
    emitted, counted = [], {"messages": 0, "readings": 0, "reports": 0}
    for tie in one.relation.ties:
        room = AgentRoom({agent.name: agent for agent in made(one.relation, tie)}, seed=seed)
        mine = [event for event in events if event.source in room.agents]
        for _, some in groupby(mine, key=lambda event: event.time):
            readings = [
                (name, AgentReading(e.time, e.sequence, e.location))
                for e in some
                for name in room.agents
                if name.partition("#")[0] == e.source
            ]
            for report in room.process(readings):
                scope = tie.scope if report.alternative is None else report.alternative
                emitted.append(
                    (report.reading.time, scope, report.status, report.by, report.reading.sequence)
                )
        for name in counted:
            counted[name] += room.counted[name]
    return sorted(emitted), counted
