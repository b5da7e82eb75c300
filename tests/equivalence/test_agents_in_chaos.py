"""Agents while connections, brokers, publishers and the subscriber fail and come back.

The subscriber receives `unknown` and never a wrong status. Once all nodes are back and have reported, it
receives every status that is certain.
"""

from __future__ import annotations

from types import MappingProxyType

import pytest

from holdfast.model.event import Event
from holdfast.model.instant import SECOND
from holdfast.model.relation import apart, radius, spread
from holdfast.network.protocols.agents.follower import ReportFollower
from holdfast.network.protocols.agents.host import AgentHost
from holdfast.network.protocols.agents.library import active_bundle
from holdfast.network.protocols.cbps.client import (
    AgentsInterrupted,
    ReceivedNotification,
    Submit,
    WithdrawSubmission,
    advertise,
    publish,
)
from holdfast.network.protocols.cbps.event import advertisement_for, to_content
from support.agents import relationship_of
from support.storm import Storm

PAIRS = relationship_of("""topic User ()
relate Meet (a User, b User) pairs ("ann", "bob"), ("ann", "zoe"), ("bob", "eve")
  when distance(a, b) <= 10 m until distance(a, b) >= 30 m""")
TEAM = relationship_of("""topic User ()
group Team of User ("ann", "bob", "eve")
relate Together all of Team within 15 m until 25 m""")
SOME = relationship_of("""topic User ()
group Team of User ("ann", "bob", "eve", "zoe")
relate Some at least 3 of Team within 15 m until 25 m""")
SUM = relationship_of("""topic User (mood float)
relate Merry (a User, b User) pairs ("ann", "bob"), ("eve", "zoe")
  when a.mood + b.mood > 60 until a.mood + b.mood < 40""")
LINKS = [("b2", "b1"), ("b3", "b1"), ("b4", "b2"), ("b5", "b3")]
HOMES = {"ann": "b4", "zoe": "b4", "bob": "b5", "eve": "b1"}
GATEWAYS = {"north": "b4", "south": "b5", "middle": "b3"}
"""They advertise the topic alone, and everybody may publish by them."""


class AgentsInChaos(Storm):
    """Five brokers with agents, four publishers, a subscriber, and perhaps gateways."""

    def __init__(self, one, using, seed, gateways=MappingProxyType({})):
        super().__init__(LINKS, {**HOMES, **gateways, "subscriber": "b1"}, seed)
        self.one, self.gateways = one, gateways
        (self.topic,) = one.listens
        for name in HOMES:
            self.net.ask(name, advertise("mine", advertisement_for(self.topic, source=name)))
        self.promised = set()
        for name in gateways:
            self.promise(name)
        self.net.ask("subscriber", Submit(active_bundle(one.name, one.relation, using), "relation"))
        self.net.settle()
        self.following = ReportFollower(one.name, one.relation)
        self.latest, self.bits = {}, {tie.scope: 0 for tie in one.relation.ties}
        self.time = 0

    def machine(self, name):
        return AgentHost(super().machine(name))

    def promise(self, gateway):
        """A gateway advertises the topic, or does so no more."""
        if gateway in self.promised:
            self.net.ask(gateway, WithdrawSubmission("all"))
        else:
            self.net.ask(gateway, advertise("all", advertisement_for(self.topic)))
        self.promised ^= {gateway}

    def trouble(self):
        if self.gateways and self.chance.random() < 0.4:
            self.promise(self.chance.choice(list(self.gateways)))
        else:
            super().trouble()

    def is_received(self, name):
        """Whether a connection leads to the broker of the subscriber."""
        found, new = set(), {name}
        while new:
            found |= new
            new = {other for one in new for other in self.net._links.get(one, ())} - found
        return "b1" in found

    def say(self, name):
        """A publisher moves a little, or far; what comes by a gateway is not lost on its way."""
        by = self.chance.choice([name, *sorted(self.promised)])
        if self.gateways and not self.is_received(by):
            return
        far = 40.0 if self.chance.random() < 0.2 else 6.0
        where = self.latest.get(name) or (self.chance.uniform(0, 50), self.chance.uniform(0, 50))
        self.latest[name] = at = tuple(min(max(x + self.chance.uniform(-far, far), 0.0), 50.0) for x in where)
        self.time += SECOND
        self.net.advance(SECOND)
        event = Event("User", self.time, name, {"mood": at[0]} if self.one is SUM else {}, self.time, at)
        self.net.ask(by, publish(to_content(event)))
        if self.gateways:
            self.net.settle()
        for tie in self.one.relation.ties:
            if (value := self.measured(tie)) is not None:
                test = self.one.relation.exit if self.bits[tie.scope] else self.one.relation.enter
                self.bits[tie.scope] ^= test.within.holds(value)

    def measured(self, tie):
        points = [self.latest.get(member.source) for member in tie.members]
        if None in points:
            return None
        kind = self.one.relation.kind
        if kind == "distance":
            return apart(*points)
        if kind == "spread":
            return spread(points)
        if kind == "radius":
            return radius(points, self.one.relation.quorum)
        return sum(point[0] for point in points)

    def settled(self):
        self.net.settle()
        for what in self.net.take("subscriber"):
            if isinstance(what, ReceivedNotification | AgentsInterrupted):
                self.following.process(what, self.time)
        for scope, bit in self.bits.items():
            emitted = self.following.last_status.get(scope, "egress")
            assert emitted == "unknown" or (emitted == "ingress") == bool(bit), (self.time, scope, emitted)


SOAK = [pytest.param(seed, marks=pytest.mark.soak) for seed in range(6, 206)]


@pytest.mark.parametrize("gateways", [{}, GATEWAYS], ids=["publishers", "gateways"])
@pytest.mark.parametrize("seed", [*range(6), *SOAK])
@pytest.mark.parametrize(
    ("one", "using"),
    [
        (PAIRS, "range_ring"),
        (PAIRS, "parallel_line"),
        (TEAM, "centre_of_mass"),
        (SOME, "counting"),
        (SUM, "hierarchy"),
    ],
    ids=["rings", "lines", "centre", "counting", "hierarchy"],
)
def test_reports_are_never_wrong_and_complete_in_the_end(one, using, seed, gateways):
    world = AgentsInChaos(one, using, seed, gateways)
    for round in range(3):
        for _ in range(25):
            world.say(world.chance.choice(list(HOMES)))
            if world.chance.random() < 0.3:
                world.trouble()
            world.settled()
        world.heal()
        world.settled()
        for name in HOMES:
            world.say(name)
            world.settled()
        for tie in one.relation.ties:
            value, emitted = world.measured(tie), world.following.last_status.get(tie.scope, "egress")
            is_certain = one.relation.enter.within.holds(value) or one.relation.exit.within.holds(value)
            assert emitted != "unknown" or not is_certain, (round, tie.scope)
