"""Brokers with agents, publishers and a subscriber in memory; workers of shipped code are this process."""

from __future__ import annotations

import json
from itertools import cycle

from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.overlay.shipped.worker import Program
from holdfast.network.protocols.agents.code_store import digest_of
from holdfast.network.protocols.agents.host import AgentHost
from holdfast.network.protocols.agents.library import RELATIONSHIP, active_bundle
from holdfast.network.protocols.agents.shipped import WorkerCall, WorkerResult
from holdfast.network.protocols.cbps.broker import CbpsBroker
from holdfast.network.protocols.cbps.client import ReceivedNotification, Submit, advertise, publish
from holdfast.network.protocols.cbps.event import advertisement_for, to_content

BROKERS = ("hub", "east", "west")


class AgentsInMemory:
    """A hub, two edges with publishers on both, and a subscriber on the hub.  With a seed, messages of
    different connections overtake one another."""

    def __init__(self, one, names, using, *, code="", allowed=None, seed=None):
        self.one, self.using, self.sent, self.programs = one, using, [], {}
        self.net = Overlay(seed=seed, tap=lambda a, b, message: self.sent.append((a, b, message)))
        allowed = frozenset((digest_of(code),) if allowed is None else allowed)
        for name in BROKERS:
            machine = AgentHost(CbpsBroker(compile_condition, name=name), allowed=allowed)
            self.net.broker(name, to=() if name == "hub" else ("hub",), machine=machine)
        self.net.client("subscriber", "hub")
        (topic,) = one.listens
        for name, home in zip(names, cycle(("east", "west")), strict=False):
            self.net.client(name, home)
            self.net.ask(name, advertise("mine", advertisement_for(topic, source=name)))
        self.watch("relation", code)

    def watch(self, name, code):
        bundle = active_bundle(name, self.one.relation, self.using, code=code)
        self.net.ask("subscriber", Submit(bundle, name, code))
        self.settle()

    def say(self, event):
        self.net.ask(event.source, publish(to_content(event)))
        self.settle()

    def settle(self):
        while True:
            self.net.settle()
            works = [(home, work) for home in BROKERS for work in self.net.take(home)]
            if not works:
                return
            for home, work in works:
                if isinstance(work, WorkerCall):
                    program = self.programs.setdefault((home, work.worker), Program(work.code))
                    arguments = json.loads(json.dumps(work.arguments))
                    wants = program.call(work.agent, work.call, arguments)
                    self.net.ask(home, WorkerResult(work.agent, tuple(wants)))

    def agents(self):
        return [hosted for home in BROKERS for hosted in self.net.nodes[home].state.agents.values()]

    def deliveries(self):
        return self.net.take("subscriber")

    def rows(self):
        """The reports in the form of the oracle."""
        emitted = [what.content for what in self.deliveries() if isinstance(what, ReceivedNotification)]
        return sorted(
            (c["time"], c.get("scope"), c["status"], c["source"], c["sequence"])
            for c in emitted
            if RELATIONSHIP in c and c["status"] != "unknown"
        )
