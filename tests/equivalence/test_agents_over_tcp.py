"""Agents on brokers that talk over TCP, with a connection that is lost and comes back."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from holdfast.protocols.agents.library import RELATIONSHIP, active
from holdfast.protocols.cbps.client import Heard, Submit, advertise, publish
from holdfast.protocols.cbps.event import advertised, to_content
from holdfast.runtimes.overlay.broker import listening
from holdfast.runtimes.overlay.client import connected
from holdfast.runtimes.overlay.connection.identity import Identity
from support.agents import oracle, related, walks
from support.relay import ANYWHERE, PATIENCE, QUICK

MEET = related("""topic User ()
relate Meet (a User, b User) pairs ("ann", "bob")
  when distance(a, b) <= 10 m until distance(a, b) >= 30 m""")


class World(AsyncExitStack):
    """A hub, two edge brokers, a publisher on each, and a subscriber on the hub."""

    async def begin(self):
        self.nodes, self.heard = [], []
        _, at = await self.broker("hub")
        edges = [await self.broker(name, (at,)) for name in ("east", "west")]
        (topic,) = MEET.listens
        self.publishers = {}
        for name, (_, where) in zip(("ann", "bob"), edges, strict=True):
            node = await self.enter_async_context(connected(where, Identity(name), deliver=lambda _: None))
            node.ask(advertise("mine", advertised(topic, source=name)))
            self.publishers[name] = node
        subscriber = await self.enter_async_context(
            connected(at, Identity("subscriber"), deliver=self.heard.append)
        )
        subscriber.ask(Submit(active("Meet", MEET.relation, "range_ring"), "relation"))
        await self.until(lambda: all(agent.reached for agent in self.agents()) and len(self.agents()) == 2)

    async def broker(self, name, connect=()):
        found = await self.enter_async_context(
            listening(Identity(name, "broker"), ANYWHERE, connect, backoff=QUICK)
        )
        self.nodes.append(found[0])
        return found

    def agents(self):
        return [hosted for node in self.nodes for hosted in node._host.state.agents.values()]

    async def until(self, is_so):
        async with asyncio.timeout(PATIENCE):
            while not is_so():
                await asyncio.sleep(0.01)

    async def quiet(self):
        """Everything here runs in one loop: what is on its way comes with one of the next rounds."""
        seen, rounds = None, 0
        while rounds < 12:
            await asyncio.sleep(0.002)
            now = [sum(node.counters.values()) for node in (*self.nodes, *self.publishers.values())]
            seen, rounds = now, rounds + 1 if now == seen else 0

    def told(self, since=0):
        found = [what.content for what in self.heard[since:] if isinstance(what, Heard)]
        return [c for c in found if RELATIONSHIP in c]

    async def say(self, event):
        self.publishers[event.source].ask(publish(to_content(event)))
        await self.quiet()


def run(story):
    async def whole():
        async with World() as world:
            await world.begin()
            await story(world)

    asyncio.run(asyncio.wait_for(whole(), 3 * PATIENCE))


def rows(told):
    return sorted((c["time"], c.get("scope"), c["status"], c["source"], c["sequence"]) for c in told)


def test_what_agents_report_is_what_the_machine_says():
    events = walks(("ann", "bob"), 30, 3, size=40.0, together=0.0, step=8.0)

    async def story(world):
        for event in events:
            await world.say(event)
        assert rows(world.told()) == oracle(MEET, events)

    run(story)


def test_a_connection_that_is_lost_is_told_and_what_is_certain_is_found_again():
    async def story(world):
        together = walks(("ann", "bob"), 3, 1, size=4.0, together=0.0, idle=0.0)
        for event in together:
            await world.say(event)
        assert [c["status"] for c in world.told()] == ["ingress"]
        hub = world.nodes[0]
        before = len(world.heard)
        next(link for name, link in hub.links.items() if name == "west")._transport.abort()
        await world.until(lambda: [c["status"] for c in world.told(before)] == ["unknown"])
        await world.until(lambda: len(world.agents()) == 2 and all(one.reached for one in world.agents()))
        for event in walks(("ann", "bob"), 5, 2, size=4.0, together=0.0, idle=0.0)[6:]:
            await world.say(event)
        assert [c["status"] for c in world.told(before)] == ["unknown", "ingress"]

    run(story)
