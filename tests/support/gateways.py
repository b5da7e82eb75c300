"""Sources whose readings come through gateways, several for one source; agents and the relation machine."""

from __future__ import annotations

import random

from holdfast.lang.condition import Checked
from holdfast.model.event import Event
from holdfast.model.instant import SECOND
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.overlay.shipped.worker import Program
from holdfast.network.protocols.agents.follower import ReportFollower
from holdfast.network.protocols.agents.host import AgentHost
from holdfast.network.protocols.agents.library import active_bundle
from holdfast.network.protocols.agents.shipped import WorkerCall, WorkerResult
from holdfast.network.protocols.cbps.broker import CbpsBroker
from holdfast.network.protocols.cbps.client import (
    AgentsInterrupted,
    ConditionUnknown,
    ReceivedNotification,
    Submit,
    WithdrawSubmission,
    advertise,
    publish,
)
from holdfast.network.protocols.cbps.event import advertisement_for, to_content
from holdfast.plan.compile import operators
from support.agents import relationship_of

MEET = relationship_of("""topic User ()
relate Meet (a User, b User) pairs ("ann", "bob"), ("ann", "eve")
  when distance(a, b) <= 10 m until distance(a, b) >= 30 m""")
LINE = relationship_of("""topic User ()
relate Line (a User, b User) pairs ("ann", "bob"), ("ann", "eve")
  when distance(a, b) <= 10 m until distance(a, b) >= 30 m using parallel_line""")
TEAM = relationship_of("""topic User ()
group Team of User ("ann", "bob", "eve")
relate Together all of Team within 15 m until 25 m""")
SOME = relationship_of("""topic User ()
group Team of User ("ann", "bob", "eve")
relate Some at least 2 of Team within 10 m until 15 m""")
MERRY = relationship_of("""topic User (mood float)
relate Merry (a User, b User) pairs ("ann", "bob"), ("eve", "ann")
  when a.mood + b.mood > 45 until a.mood + b.mood < 40""")
BEST = relationship_of("""topic User (mood float m/s)
route North on User.mood ("ann" 600 m, "bob" 300 m)
route South on User.mood ("eve" 900 m)
relate Faster best of (North, South) by 5 s""")
SHIPPED = "shipped"
STRATEGIES = {
    "range_ring": (MEET, "range_ring"),
    "parallel_line": (LINE, "parallel_line"),
    "centre_of_mass": (TEAM, "centre_of_mass"),
    "counting": (SOME, "counting"),
    "hierarchy": (MERRY, "hierarchy"),
    "best": (BEST, "hierarchy"),
    SHIPPED: (MEET, "starlark"),
}
NAMES = ("ann", "bob", "eve")
LINKS = [(2, 1), (3, 1), (4, 2), (5, 2), (6, 2), (7, 3), (8, 3), (9, 3)]


class Machine:
    """The relation machine, which takes readings as they arrive."""

    def __init__(self, one) -> None:
        (operator,) = operators(Checked(one.listens, (one,)))
        self.machine = operator.machine
        self.state = self.machine.initial()

    def take(self, event):
        """The results of the machine for a reading: (time, scope, status, source, sequence)."""
        self.state, emitted = self.machine.react(self.state, event)
        self.state, more = self.machine.advance(self.state, self.state.latest + 1)
        return sorted(
            (t.event.time, t.scope, t.status, t.event.source, t.event.sequence) for t in (*emitted, *more)
        )

    def active(self):
        """The scopes in which the relationship holds."""
        return {scope for _, scope, _ in self.machine.active(self.state)}


class GatewayScenario:
    """The nine brokers of the thesis, gateways on its leaves, and a subscriber in the middle."""

    def __init__(self, one, using, *, seed=None, code="", allowed=frozenset()) -> None:
        self.one, self.using, self.code = one, using, code
        self.net, self.machine = Overlay(seed=seed), Machine(one)
        self.following, self.programs = ReportFollower(one.name, one.relation), {}
        self.homes, self.allowed = {}, allowed
        for i in range(1, 10):
            self.begin(f"b{i}")
        for child, parent in LINKS:
            self.net.connect(f"b{child}", f"b{parent}")
        self.net.client("subscriber", "b1")
        (self.topic,) = one.listens
        self.time = self.number = 0
        self.unknown = 0
        """How often the subscriber received that the relationship is unknown."""

    def begin(self, broker):
        self.net.broker(
            broker, machine=AgentHost(CbpsBroker(compile_condition, name=broker), allowed=self.allowed)
        )

    def subscribe(self):
        bundle = active_bundle(self.one.name, self.one.relation, self.using, code=self.code)
        self.net.ask("subscriber", Submit(bundle, "relation", self.code))
        self.settle()

    def gateway(self, name, home, *sources):
        """A client that advertises sources, or without any the topic alone."""
        if name not in self.homes:
            self.net.client(name, home)
            self.homes[name] = home
        for source in sources or ("",):
            pinned = {"source": source} if source else {}
            self.net.ask(name, advertise(source or "all", advertisement_for(self.topic, **pinned)))
        self.settle()

    def withdraw(self, name, source="all"):
        self.net.ask(name, WithdrawSubmission(source))
        self.settle()

    def reading(self, source, chance, time=None):
        """A reading of a source that moves a little, or far."""
        self.number += 1
        if time is None:
            self.time += SECOND
            time = self.time
        at = (chance.uniform(0, 60), chance.uniform(0, 10))
        attributes = {a.name: chance.uniform(1, 40) for a in self.topic.attributes}
        return Event("User", time, source, attributes, self.number, at)

    def send(self, gateway, event):
        """Publish a reading and let the overlay become quiet. Return what the subscriber received and what
        the machine emits."""
        self.net.ask(gateway, publish(to_content(event)))
        self.settle()
        return self.received(), self.machine.take(event)

    def received(self):
        """The new reports to the subscriber."""
        rows = []
        for what in self.net.take("subscriber"):
            assert isinstance(what, ReceivedNotification | AgentsInterrupted), what
            for news in self.following.process(what, self.time):
                if isinstance(news, ConditionUnknown):
                    self.unknown += 1
                else:
                    e = news.event
                    rows.append((e.time, news.scope, news.status, e.source, e.sequence))
        return in_order(rows)

    def settle(self):
        while True:
            self.net.settle()
            brokers = [name for name in self.net.nodes if name[0] == "b" and name[1:].isdigit()]
            works = [(home, work) for home in brokers for work in self.net.take(home)]
            if not works:
                return
            for home, work in works:
                if isinstance(work, WorkerCall):
                    program = self.programs.setdefault((home, work.worker), Program(work.code))
                    wants = program.call(work.agent, work.call, _as_json(work.arguments))
                    self.net.ask(home, WorkerResult(work.agent, tuple(wants)))

    def agents(self):
        """The instances of agents, by broker."""
        return {
            name: list(host.state.agents.values())
            for name, host in self.net.nodes.items()
            if name[0] == "b" and name[1:].isdigit() and host.state.agents
        }


def _as_json(arguments):
    import json

    return json.loads(json.dumps(arguments))


def in_order(rows):
    return sorted(rows, key=lambda row: (row[0], row[2], row[1] or ""))


def chance_of(*parts):
    return random.Random(repr(parts))
