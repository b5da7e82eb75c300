"""Brokers on real sockets: circles, names, sizes and time, as they are promised in docs/howto/overlay.md."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from holdfast.errors import HoldfastError
from holdfast.network.overlay.broker import run_broker
from holdfast.network.overlay.client import connect_client
from holdfast.network.overlay.connection.identity import Identity
from holdfast.network.overlay.connection.limits import ConnectionLimits
from holdfast.network.overlay.wire.codec import codec
from holdfast.network.overlay.wire.control import HelloControl
from holdfast.network.overlay.wire.frame import PREAMBLE
from holdfast.network.protocols.cbps.client import (
    ReceivedNotification,
    SubmissionRefused,
    advertise,
    publish,
    subscribe,
)
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.message import (
    KINDS,
    Bundle,
    BundleContext,
    BundleKey,
    PublishedNotification,
    Registration,
)
from support.patience import PATIENCE
from support.relay import ANYWHERE, QUICK, eventually

X = Filter((Constraint("x", "double", "any"),))


def run(story):
    asyncio.run(asyncio.wait_for(story(), 3 * PATIENCE))


def broker(name, connect=(), **limits):
    return run_broker(
        Identity(name, "broker"), ANYWHERE, connect, limits=ConnectionLimits(**limits), backoff=QUICK
    )


@asynccontextmanager
async def client(name, address, **options):
    """A client, and its deliveries."""
    received = []
    async with connect_client(address, Identity(name), deliver=received.append, **options) as node:
        node.deliveries = received
        yield node


def numbers(node):
    return [one.content["x"] for one in node.deliveries if isinstance(one, ReceivedNotification)]


def spares(brokers):
    return sum(node.account().get("routing: spare", 0) for node in brokers) // 2


def known(node):
    """The subscriptions and advertisements that a broker knows of."""
    return node._host.state.routing.in_force.values()


class TcpMesh(AsyncExitStack):
    """Brokers, each joined to all before it, with a subscriber each, and a publisher at the first."""

    async def start(self, number):
        self.brokers, self.subscribers, at = [], [], []
        for n in range(number):
            node, address = await self.enter_async_context(broker(f"b{n}", at))
            self.brokers.append(node)
            at.append(address)
            subscriber = await self.enter_async_context(client(f"s{n}", address))
            subscriber.ask(subscribe("x", X))
            self.subscribers.append(subscriber)
        links = number * (number - 1) // 2
        await eventually(lambda: spares(self.brokers) == links - (number - 1))
        self.publisher = await self.enter_async_context(client("p", at[0]))
        self.publisher.ask(advertise("x", X))
        await eventually(
            lambda: sum(len(one.bundle.subscriptions) for one in known(self.brokers[0])) == number
        )

    def sent(self):
        return sum(node.counters["sent"] for node in (*self.brokers, *self.subscribers, self.publisher))


def test_four_brokers_all_joined_and_one_event_give_each_subscriber_one_line_and_fewer_than_500_messages():
    async def story():
        async with TcpMesh() as mesh:
            await mesh.start(4)
            mesh.publisher.ask(publish({"x": 1.0}))
            await eventually(lambda: all(numbers(s) for s in mesh.subscribers))
            for subscriber in mesh.subscribers:
                await subscriber.inquire()
            assert [numbers(s) for s in mesh.subscribers] == [[1.0]] * 4
            assert mesh.sent() < 500

    run(story)


def test_a_spare_connection_is_used_when_another_is_lost():
    async def story():
        async with TcpMesh() as mesh:
            await mesh.start(3)
            first, second, _ = mesh.brokers
            used = next(peer for peer in first._host.state.connections.turns)
            first.links[used].drop("a test cuts it", final=True)
            number = 0
            while not all(numbers(s) for s in mesh.subscribers):
                number += 1
                mesh.publisher.ask(publish({"x": float(number)}))
                await asyncio.sleep(0.02)
            assert all(len(set(numbers(s))) == len(numbers(s)) for s in mesh.subscribers)
            assert second.counters["internal errors"] == 0

    run(story)


def test_duplicate_calls_and_names_cause_no_reconnection_loop():
    async def story():
        async with broker("hub") as (hub, address):
            async with broker("attic", [address, address]) as (attic, _):
                await eventually(lambda: "attic" in hub.links)
                async with broker("attic", [address]) as (twin, _):
                    await eventually(lambda: hub.counters["faults"] >= 5)
                    assert (hub.counters["joined"], hub.counters["left"]) == (1, 0)
                    assert (attic.counters["joined"], twin.counters["left"]) == (1, twin.counters["joined"])
            await eventually(lambda: "attic" not in hub.links)

    run(story)


def test_brokers_that_call_each_other_reconnect_only_after_a_loss():
    async def story():
        async with broker("a") as (a, at_a), broker("b", [at_a]) as (b, at_b):
            await eventually(lambda: "a" in b.links)
            a.call(at_b)
            await eventually(lambda: a.counters["faults"] + b.counters["faults"] > 0)
            refused = a.counters["faults"] + b.counters["faults"]
            await asyncio.sleep(0.2)  # ten waits of those who call: had they called, they would be refused
            assert a.counters["faults"] + b.counters["faults"] <= refused + 1
            joined = a.counters["joined"]
            a.links["b"].drop("a test cuts it")
            await eventually(lambda: a.counters["joined"] > joined and "b" in a.links and "a" in b.links)

    run(story)


def test_events_of_two_publishers_with_one_name_at_two_brokers_are_delivered():
    async def story():
        async with TcpMesh() as mesh:
            await mesh.start(2)
            second = next(iter(mesh.brokers[1]._servers)).sockets[0].getsockname()
            async with client("p", type(ANYWHERE)(*second)) as twin:
                twin.ask(advertise("x", X))
                await eventually(
                    lambda: sum(len(one.bundle.subscriptions) for one in known(mesh.brokers[1])) == 2
                )
                for n in range(10):
                    (mesh.publisher, twin)[n % 2].ask(publish({"x": float(n)}))
                await eventually(lambda: all(len(numbers(s)) >= 10 for s in mesh.subscribers))
                assert [sorted(numbers(s)) for s in mesh.subscribers] == [[float(n) for n in range(10)]] * 2

    run(story)


@asynccontextmanager
async def raw(address, *messages, name="raw"):
    """A peer that writes raw messages, and reads nothing until it is asked to."""
    speaker = codec("msgpack", 1 << 20)
    reader, writer = await asyncio.open_connection(*address, limit=1 << 12)
    writer.write(PREAMBLE + b"".join(map(speaker.encode, (HelloControl(name), *messages))))
    try:
        yield reader, writer
    finally:
        writer.close()


def test_forged_names_and_keys_change_nothing_for_others():
    async def story():
        async with (
            broker("hub") as (_, address),
            client("s", address) as s,
            client("victim", address) as victim,
        ):
            s.ask(subscribe("x", X))
            victim.ask(advertise("x", X))
            await victim.inquire()
            forged = Bundle(
                BundleKey("victim", 9 * 10**18), notifications=(PublishedNotification({"x": -1.0}),)
            )
            async with raw(address, Registration(KINDS), forged):
                await eventually(lambda: numbers(s) == [-1.0])
            async with raw(address, name="victim") as (reader, _):
                assert b"a name is used once at a time" in await reader.read()
            for n in range(5):
                victim.ask(publish({"x": float(n)}))
            await eventually(lambda: numbers(s) == [-1.0, 0.0, 1.0, 2.0, 3.0, 4.0])

    run(story)


def test_a_subscription_refused_by_a_neighbour_affects_no_other_client():
    async def story():
        async with (
            broker("hub") as (hub, address),
            broker("attic", [address], max_frame=4_096) as (attic, above),
            client("p", above) as p,
            client("large", address) as large,
            client("small", address) as small,
        ):
            await eventually(lambda: hub._host.state.connections.turns)
            p.ask(advertise("x", X))
            small.ask(subscribe("x", X))
            many = Filter((*X.constraints, Constraint("k", "text", "!=", "a" * 100_000)))
            large.ask(subscribe("much", many))
            await eventually(lambda: large.deliveries)
            (refused,) = large.deliveries
            assert isinstance(refused, SubmissionRefused)
            assert "on the way at most 3,072 are taken" in refused.why
            await eventually(lambda: any(one.bundle.subscriptions for one in known(attic)))
            for n in range(40):
                p.ask(publish({"x": float(n)}))
            await eventually(lambda: len(numbers(small)) == 40)
            assert (attic.counters["joined"], attic.counters["left"]) == (2, 0)

    run(story)


def test_a_client_announces_its_message_limit_in_the_greeting():
    async def story():
        async with (
            broker("hub") as (hub, address),
            client("s", address, limits=ConnectionLimits(max_frame=2_048)) as s,
            client("p", address) as p,
        ):
            s.ask(subscribe("x", X))
            await s.inquire()
            p.ask(advertise("x", X))
            p.ask(publish({"x": 1.0, "text": "long" * 1_000}))
            p.ask(publish({"x": 2.0}))
            await eventually(lambda: numbers(s) == [2.0])
            assert (hub.counters["dropped"], hub.counters["left"]) == (1, 0)

    run(story)


def test_silent_strangers_do_not_block_other_clients():
    async def story():
        async with AsyncExitStack() as stack:
            hub, address = await stack.enter_async_context(broker("hub", peers=20, strangers=20))
            for _ in range(25):
                _, writer = await asyncio.open_connection(*address)
                stack.callback(writer.close)
            s = await stack.enter_async_context(client("s", address))
            s.ask(subscribe("x", X))
            p = await stack.enter_async_context(client("p", address))
            p.ask(publish({"x": 1.0}))
            await eventually(lambda: numbers(s) == [1.0])
            assert len(hub._strangers) <= 20

    run(story)


def test_bundles_are_stamped_on_arrival_and_the_clients_context_is_overwritten():
    async def story():
        async with broker("hub") as (hub, address), client("s", address) as s:
            s.ask(subscribe("x", X))
            await s.inquire()
            before = hub.now
            lie = BundleContext("somebody", "else", 40, 1, 10**15)
            bundle = Bundle(BundleKey("a", 1), lie, notifications=(PublishedNotification({"x": 1.0}),))
            async with raw(address, Registration(KINDS), bundle):
                await eventually(lambda: numbers(s))
            (received,) = s.deliveries
            assert (received.context.origin, received.context.sender, received.context.hop_count) == (
                "raw",
                "raw",
                1,
            )
            assert 0 < received.context.travel_time <= hub.now - before

    run(story)


def test_time_in_the_queue_of_a_slow_consumer_counts_as_time_on_the_way():
    """The consumer reads nothing; what waits for it has travelled all that time when it reads at last."""

    async def story():
        wait = 0.3
        async with broker("hub", queue=100_000) as (hub, address), client("p", address) as p:
            p.ask(advertise("x", X))
            subscription = subscribe("x", X).bundle
            slow = Bundle(BundleKey("slow", 1), subscriptions=subscription.subscriptions)
            async with raw(address, Registration(KINDS), slow, name="slow") as (reader, _):
                await eventually(lambda: len(known(hub)) == 2)
                link, sent, before = hub.links["slow"], 0, hub.counters["received"]
                link._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
                while not len(link.outbox):
                    sent += 1
                    p.ask(publish({"x": float(sent), "k": "a" * 10_000}))
                    await asyncio.sleep(0)
                await eventually(lambda: hub.counters["received"] == before + sent)
                await asyncio.sleep(wait)
                listener, bundles = codec("msgpack", 1 << 20), []
                async with asyncio.timeout(PATIENCE):
                    while len(bundles) < sent:
                        more = listener.receive(await reader.read(1 << 16))
                        bundles += [one for one in more if isinstance(one, Bundle) and one.notifications]
        assert [one.notifications[0].content["x"] for one in bundles] == [float(n + 1) for n in range(sent)]
        assert bundles[0].context.travel_time < bundles[-1].context.travel_time
        assert bundles[-1].context.travel_time >= wait * 1_000_000

    run(story)


@pytest.mark.parametrize("size", [-1, 10, 1_023])
def test_a_peer_must_accept_short_messages(size):
    async def story():
        async with broker("hub") as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(PREAMBLE + codec("msgpack", 1 << 20).encode(HelloControl("tiny", max_frame=size)))
            assert b"messages of 1024 bytes must be taken" in await reader.read()
            writer.close()

    run(story)


def test_a_client_whose_name_is_taken_fails_with_the_reason():
    async def story():
        async with broker("hub") as (_, address), client("me", address):
            with pytest.raises(HoldfastError, match="'me' is connected already"):
                async with client("me", address):
                    raise AssertionError("nobody comes in")

    run(story)
