"""The set-up: brokers that measure their own time, and scripted clients."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from msgspec.structs import replace

from holdfast.model.protocol import Asked, Effect, Input, Joined, Received, Send
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.connection.address import Address
from holdfast.network.overlay.connection.identity import Identity
from holdfast.network.overlay.tcp import TcpHost
from holdfast.network.protocols.cbps.broker import CbpsBroker, CbpsBrokerState
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.message import (
    KINDS,
    Advertisement,
    Bundle,
    BundleKey,
    CbpsSubscription,
    ExpressSlip,
    PublishedNotification,
    Registration,
)
from holdfast.network.protocols.cbps.ranges import Value

Sort = Literal["advertisement", "subscription", "notification"]
SORTS: tuple[Sort, ...] = get_args(Sort)
PING, PONG = "ping", "pong"


def sort_of(bundle: Bundle) -> Sort:
    """Return the sort of a bundle."""
    if bundle.notifications:
        return "notification"
    return "subscription" if bundle.subscriptions else "advertisement"


def describe(source: str, number: int) -> Filter:
    """Return the filter ``Id = A, Source = …, Count = #``; the filters of a client differ only in the
    count.
    """
    identity = Constraint("Id", "text", "=", "A"), Constraint("Source", "text", "=", source)
    return Filter((*identity, Constraint("Count", "long", "=", number)))


def advertisements(source: str, number: int) -> list[Bundle]:
    """The advertisements of a client."""
    filters = [Advertisement(describe(source, i)) for i in range(number)]
    return [Bundle(BundleKey(source, i), advertisements=(it,)) for i, it in enumerate(filters)]


def subscriptions(of: str, to: str, number: int) -> list[Bundle]:
    """The subscriptions of a client to the notifications of the other one."""
    wishes = [CbpsSubscription(describe(to, i)) for i in range(number)]
    return [Bundle(BundleKey(of, number + i), subscriptions=(it,)) for i, it in enumerate(wishes)]


def notifications(source: str, number: int, sent: int) -> list[Bundle]:
    """The notifications of a client, each of which matches one subscription."""
    contents: list[dict[str, Value]] = [
        {"Id": "A", "Source": source, "Count": i % number} for i in range(sent)
    ]
    published = [(PublishedNotification(content),) for content in contents]
    return [Bundle(BundleKey(source, 2 * number + i), notifications=it) for i, it in enumerate(published)]


@dataclass
class Timed:
    """A broker that measures its CPU time for each bundle, by sort and by whether a broker sent it.

    When it is ``over`` it ignores all inputs.
    """

    machine: CbpsBroker
    seconds: defaultdict[tuple[Sort, bool], list[float]] = field(default_factory=lambda: defaultdict(list))
    over: bool = False

    def initial(self) -> CbpsBrokerState:
        return self.machine.initial()

    def handle(self, state: CbpsBrokerState, given: Input) -> tuple[CbpsBrokerState, list[Effect]]:
        if self.over:
            return state, []
        if not (isinstance(given, Received) and isinstance(given.message, Bundle)):
            return self.machine.handle(state, given)
        start = time.thread_time()
        state, effects = self.machine.handle(state, given)
        took = time.thread_time() - start
        self.seconds[sort_of(given.message), given.sender.startswith("EB")].append(took)
        return state, effects

    def count_of(self, sort: Sort) -> int:
        """Return how many bundles of a sort arrived."""
        return len(self.seconds[sort, True]) + len(self.seconds[sort, False])


class Scripted:
    """A client that accepts notifications, sends what it is asked to, and counts received bundles."""

    def __init__(self) -> None:
        self.heard = 0

    def initial(self) -> None:
        return None

    def handle(self, _: None, given: Input) -> tuple[None, list[Effect]]:
        match given:
            case Joined(_, peer):
                return None, [Send(peer, Registration(("notification",)))]
            case Received(_, _, Bundle()):
                self.heard += 1
            case Asked(_, (peer, bundle)):
                return None, [Send(peer, bundle)]
        return None, []


@dataclass
class Chain:
    """Three brokers on the loopback interface, and a client at each end."""

    brokers: list[Timed]
    clients: dict[str, tuple[TcpHost, Scripted]]

    async def say(self, bundles: dict[str, list[Bundle]]) -> None:
        """Send the bundles of both clients in turn."""
        at = {PING: "EB1", PONG: "EB3"}
        for one in zip(*bundles.values(), strict=True):
            for name, bundle in zip(bundles, one, strict=True):
                node, _ = self.clients[name]
                await node.ready()
                node.ask((at[name], bundle))
            await asyncio.sleep(0)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition is true."""
        while not condition():
            await asyncio.sleep(0.001)

    def count_of(self, sort: Sort) -> list[int]:
        return [broker.count_of(sort) for broker in self.brokers]


async def measure(number: int, sent: int, *, memoize: bool) -> dict[Sort, list[float]]:
    """Return the CPU times of brokers for bundles from other brokers, in seconds, by sort."""
    async with AsyncExitStack() as stack:
        chain = await _chain(stack, memoize)
        await chain.say({name: advertisements(name, number) for name in (PING, PONG)})
        await chain.until(lambda: chain.count_of("advertisement") == [2 * number] * 3)
        wishes = {PING: subscriptions(PING, PONG, number), PONG: subscriptions(PONG, PING, number)}
        await chain.say(wishes)
        await chain.until(lambda: chain.count_of("subscription") == [2 * number] * 3)
        await chain.say({name: notifications(name, number, sent) for name in (PING, PONG)})
        await chain.until(lambda: all(client.heard == sent for _, client in chain.clients.values()))
        for broker in chain.brokers:
            broker.over = True
    return {sort: [took for b in chain.brokers for took in b.seconds[sort, True]] for sort in SORTS}


async def _chain(stack: AsyncExitStack, memoize: bool) -> Chain:
    """Start brokers, then clients; return when all are connected."""
    brokers: list[Timed] = []
    addresses: list[Address] = []
    for i in range(3):
        timed = Timed(CbpsBroker(compile_condition, memoize=memoize))
        node = _node(stack, Identity(f"EB{i + 1}", "broker"), timed)
        brokers.append(timed)
        addresses.append(await node.listen(Address("127.0.0.1", 0)))
        if i:
            node.call(addresses[i - 1])
            await node.linked.wait()
    clients: dict[str, tuple[TcpHost, Scripted]] = {}
    for name, address in ((PING, addresses[0]), (PONG, addresses[2])):
        script = Scripted()
        node = _node(stack, Identity(name), script)
        node.call(address)
        await node.linked.wait()
        clients[name] = (node, script)
    return Chain(brokers, clients)


def _node(stack: AsyncExitStack, identity: Identity, machine: Any) -> TcpHost:
    node = TcpHost(identity, machine)
    node.start()
    stack.push_async_callback(node.stop)
    return node


# --- a broker with many connections ---


def hub(branches: int, number: int, *, memoize: bool, attentive: bool = True) -> list[float]:
    """Return the CPU times of one broker with many connections, in seconds for each notification.

    Notifications come from the first of ``branches`` connections, with the matches of the previous broker.
    Each other connection has ``number`` subscriptions, and one of them matches. Unless ``attentive``, the
    other connections accept no notifications.
    """
    timed = Timed(CbpsBroker(compile_condition, memoize=memoize))
    state = timed.initial()
    source, *names = [f"EB{i}" for i in range(branches)]
    for name in (source, *names):
        state, _ = timed.handle(state, Joined(0, name))
        kinds = KINDS if attentive or name in (source, names[0]) else ("subscription", "advertisement")
        state, _ = timed.handle(state, Received(0, name, Registration(kinds)))
    for place, name in enumerate(names):
        for i in range(number):
            wish = CbpsSubscription(describe(PING, place * number + i))
            bundle = Bundle(BundleKey(name, i), subscriptions=(wish,))
            state, _ = timed.handle(state, Received(0, name, bundle))
    for bundle in notifications(PING, number, number):
        state, _ = timed.handle(state, Received(0, source, _with_slip(bundle)))
    return timed.seconds["notification", True]


def _with_slip(bundle: Bundle) -> Bundle:
    """Return a bundle with the express slip of the previous broker."""
    count = bundle.notifications[0].content["Count"]
    return replace(bundle, express=ExpressSlip("notification", describe(PING, int(count)).digest))


def middle(seconds: Iterable[float]) -> float:
    """Return the median of times in seconds, in µs."""
    ordered = sorted(seconds)
    return ordered[len(ordered) // 2] * 1e6
