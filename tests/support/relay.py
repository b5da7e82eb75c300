"""The smallest machine that can be hosted: it forwards bundles to all other peers, and delivers them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from holdfast.model.protocol import (
    Asked,
    Deliver,
    Drop,
    Fired,
    Joined,
    Left,
    Received,
    Send,
    SetTimer,
    Started,
    Undelivered,
)
from holdfast.network.overlay.connection.address import Address
from holdfast.network.overlay.connection.backoff import Backoff
from holdfast.network.overlay.connection.identity import Identity
from holdfast.network.overlay.connection.limits import ConnectionLimits
from holdfast.network.overlay.tcp import TcpHost
from holdfast.network.protocols.cbps.message import Bundle, BundleKey, PublishedNotification
from support.patience import PATIENCE

ANYWHERE = Address("127.0.0.1", 0)
QUICK = Backoff(first=1_000, most=20_000)


class Relay:
    """Peers by name, in order of arrival.  Asked to, it sends; ``trouble`` makes it fail."""

    def initial(self):
        return {}

    def handle(self, state, given):
        match given:
            case Started():
                return state, [Deliver(given)]
            case Joined(_, peer):
                state[peer] = True
                return state, [Deliver(given)]
            case Left(_, peer):
                state.pop(peer, None)
                return state, [Deliver(given)]
            case Received(_, sender, message):
                return state, self._received(state, sender, message)
            case Asked(_, ("timer", name, wait)):
                return state, [SetTimer(name, given.now + wait)]
            case Asked(_, ("drop", peer, why)):
                return state, [Drop(peer, why)]
            case Asked(_, message):
                return state, [Send(peer, message) for peer in state]
            case Fired() | Undelivered():
                return state, [Deliver(given)]
        raise AssertionError(given)

    def _received(self, state, sender, message):
        if isinstance(message, Bundle) and "trouble" in message.payloads:
            raise ZeroDivisionError("trouble")
        return [Deliver((sender, message)), *(Send(peer, message) for peer in state if peer != sender)]


def bundle(number=1, origin="test", **content):
    return Bundle(BundleKey(origin, number), notifications=(PublishedNotification(content),))


class Deliveries(list):
    """The deliveries of a node, which can be awaited."""

    def __init__(self):
        super().__init__()
        self._more = asyncio.Event()

    def append(self, what):
        super().append(what)
        self._more.set()

    async def until(self, condition):
        async with asyncio.timeout(PATIENCE):
            while not condition(self):
                self._more.clear()
                await self._more.wait()

    async def of(self, kind, number=1):
        """Wait for so many inputs of a kind."""
        await self.until(lambda output: sum(isinstance(one, kind) for one in output) >= number)
        return [one for one in self if isinstance(one, kind)]

    async def bundles(self, number=1):
        """Wait for so many bundles."""
        await self.until(lambda output: sum(isinstance(one, tuple) for one in output) >= number)
        return [one[1] for one in self if isinstance(one, tuple)]


async def eventually(condition):
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def node(name, *, role="client", machine=None, limits=None, losable=lambda message: True, **identity):
    received = Deliveries()
    it = TcpHost(
        Identity(name, role, **identity),
        machine or Relay(),
        limits=limits or ConnectionLimits(),
        backoff=QUICK,
        losable=losable,
        deliver=received.append,
    )
    it.deliveries = received
    it.start()
    try:
        yield it
    finally:
        await it.stop()
        if it.failed.done():
            it.failed.exception()


@asynccontextmanager
async def broker(name="hub", **options):
    async with node(name, role="broker", **options) as it:
        it.address = await it.listen(ANYWHERE)
        yield it
