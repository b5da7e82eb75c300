"""Brokers with agents, publishers and a subscriber, over TCP in one loop; messages may take their time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from itertools import cycle
from unittest.mock import patch

from holdfast.model.instant import SECOND
from holdfast.network.overlay import broker
from holdfast.network.overlay.client import connect_client
from holdfast.network.overlay.connection.address import Address
from holdfast.network.overlay.connection.identity import Identity
from holdfast.network.overlay.shipped.pool import WorkerBounds, WorkerPool
from holdfast.network.protocols.agents.follower import ReportFollower
from holdfast.network.protocols.agents.library import RELATIONSHIP, active_bundle
from holdfast.network.protocols.agents.shipped import WorkerCall
from holdfast.network.protocols.cbps.client import (
    AgentsInterrupted,
    ReceivedNotification,
    Submit,
    advertise,
    publish,
)
from holdfast.network.protocols.cbps.event import advertisement_for, to_content
from support.overlay_chaos import ClientWire
from support.patience import PATIENCE
from support.relay import ANYWHERE, QUICK

PATIENT = WorkerBounds(wall=PATIENCE * SECOND)
"""A loaded machine may be slow to start a worker."""


class AgentsOnTcp(AsyncExitStack):
    """A hub, two edge brokers, publishers on both, and a subscriber on the hub. An edge can be stopped and
    restarted at its address. If ``wait`` is given, each piece between brokers takes that many seconds."""

    def __init__(
        self,
        one,
        names: Sequence[str] = ("ann", "bob"),
        using: str = "range_ring",
        *,
        code: str = "",
        allowed: Collection[str] = (),
        bounds: WorkerBounds = PATIENT,
        wait: Callable[[], float] | None = None,
    ) -> None:
        super().__init__()
        self.one, self.names, self.using, self.code = one, names, using, code
        self.allowed, self.bounds, self.wait = allowed, bounds, wait
        self.nodes, self.deliveries, self.wires, self.publishers = [], [], [], {}
        self.at_work = 0
        """Calls of its own shipped code that have not been answered."""

    async def begin(self):
        if self.code:
            self.enter_context(patch.object(broker, "WorkerPool", self.pool))
        _, self.hub = await self.broker("hub")
        self.edge = await self.enter_async_context(AsyncExitStack())
        east = await self.broker("east", (await self.way(),))
        west = await self.broker("west", (await self.way(),), stack=self.edge)
        (topic,) = self.one.listens
        for name, (_, where) in zip(self.names, cycle((east, west)), strict=False):
            node = await self.enter_async_context(
                connect_client(where, Identity(name), deliver=lambda _: None)
            )
            node.ask(advertise("mine", advertisement_for(topic, source=name)))
            self.publishers[name] = node
        subscriber = await self.enter_async_context(
            connect_client(self.hub, Identity("subscriber"), deliver=self.deliveries.append)
        )
        bundle = active_bundle(self.one.name, self.one.relation, self.using, code=self.code)
        subscriber.ask(Submit(bundle, "relation", self.code))
        count = len(bundle.active[0].strategies)
        await self.until(lambda: len(self.agents()) == count)
        await self.until(lambda: all(len(a.ways_to_partners) == len(a.partners) for a in self.agents()))

    async def way(self):
        """How an edge comes to the hub."""
        if self.wait is None:
            return self.hub
        wire = await self.enter_async_context(ClientWire(self.hub, self.wait))
        self.wires.append(wire)
        return wire.address

    def pool(self, answer, bounds):
        def answer_late(worked):
            self.at_work -= 1
            answer(worked)

        pool = WorkerPool(answer_late, bounds)
        take = pool.carry_out

        def take_late(what):
            self.at_work += isinstance(what, WorkerCall)
            take(what)

        pool.carry_out = take_late
        return pool

    async def broker(self, name, connect=(), *, at=ANYWHERE, stack=None):
        identity, emitted = Identity(name, "broker"), {"allowed": self.allowed, "bounds": self.bounds}
        found = await (stack or self).enter_async_context(
            broker.run_broker(identity, at, connect, backoff=QUICK, **emitted)
        )
        self.nodes.append(found[0])
        return found

    async def restart(self):
        """The broker in the west ends without a goodbye to its agents, and another takes its place."""
        west = self.nodes.pop()
        (server,) = west._servers
        at = Address(*server.sockets[0].getsockname())
        for link in list(west.links.values()):
            link._transport.abort()
        await self.edge.aclose()
        await self.broker("west", (self.hub,), at=at, stack=self.edge)

    async def subscriber(self, name):
        """Another subscriber and the list of its deliveries."""
        received = []
        node = await self.enter_async_context(
            connect_client(self.hub, Identity(name), deliver=received.append)
        )
        return node, received

    def agents(self):
        return [hosted for node in self.nodes for hosted in node._host.state.agents.values()]

    async def until(self, is_so):
        async with asyncio.timeout(PATIENCE):
            while not is_so():
                await asyncio.sleep(0.01)

    async def quiet(self):
        """Wait until the overlay is quiet. Everything runs in one event loop, so a message on its way
        arrives in one of the next rounds, or its holder is known."""
        seen, rounds = None, 0
        while rounds < 12:
            await asyncio.sleep(0.001)
            now = [sum(node.counters.values()) for node in (*self.nodes, *self.publishers.values())]
            is_still = now == seen and not self.at_work and not any(wire.carrying for wire in self.wires)
            seen, rounds = now, rounds + 1 if is_still else 0

    def emissions(self, since=0):
        found = [what.content for what in self.deliveries[since:] if isinstance(what, ReceivedNotification)]
        return [c for c in found if RELATIONSHIP in c]

    def rows(self):
        """The reports in the form of the oracle."""
        return sorted(
            (c["time"], c.get("scope"), c["status"], c["source"], c["sequence"])
            for c in self.emissions()
            if c["status"] != "unknown"
        )

    def statuses(self):
        """The new reports to the subscriber."""
        following = ReportFollower(self.one.name, self.one.relation)
        received = [
            what for what in self.deliveries if isinstance(what, ReceivedNotification | AgentsInterrupted)
        ]
        return [getattr(one, "status", "unknown") for what in received for one in following.process(what, 0)]

    async def say(self, event):
        self.publishers[event.source].ask(publish(to_content(event)))
        await self.quiet()


def run(world, story, patience=3 * PATIENCE):
    """Let something happen in a world."""

    async def whole():
        async with world:
            await world.begin()
            await story(world)

    asyncio.run(asyncio.wait_for(whole(), patience))
