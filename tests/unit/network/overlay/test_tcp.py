"""A machine on TCP: connections, greetings, timers, slow and hostile peers.  Nothing here waits for a
time to pass, only for something to happen."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.errors import UsageError
from holdfast.model.protocol import Fired, Joined, Left, Started, Undelivered
from holdfast.network.overlay.connection.address import Address
from holdfast.network.overlay.connection.limits import ConnectionLimits
from holdfast.network.overlay.wire.codec import LANGUAGES, codec
from holdfast.network.overlay.wire.control import (
    AccountControl,
    Bye,
    HelloControl,
    Inquiry,
    Ping,
    Pong,
    Welcome,
)
from holdfast.network.overlay.wire.fault import ConnectionRefused
from holdfast.network.overlay.wire.frame import PREAMBLE, to_frame
from holdfast.network.protocols.cbps.message import Bundle, BundleKey
from support.patience import PATIENCE
from support.relay import broker, bundle, eventually, node


def run(story):
    asyncio.run(asyncio.wait_for(story(), 3 * PATIENCE))


class Raw:
    """A peer that sends arbitrary messages."""

    def __init__(self, reader, writer, language="msgpack"):
        self.reader, self.writer = reader, writer
        self.codec = codec(language, 1 << 20)

    @classmethod
    async def to(cls, address, language="msgpack"):
        return cls(*await asyncio.open_connection(*address), language)

    def say(self, *messages):
        for one in messages:
            self.writer.write(one if isinstance(one, bytes) else self.codec.encode(one))

    def greet(self, name="raw"):
        self.say(self.codec.opening(), HelloControl(name))

    async def read_all(self):
        """Read all messages until the other end closes."""
        async with asyncio.timeout(PATIENCE):
            received = []
            while piece := await self.reader.read(1 << 16):
                received += self.codec.receive(piece)
            return received

    async def next(self, kind):
        """The next of a kind."""
        async with asyncio.timeout(PATIENCE):
            while piece := await self.reader.read(1 << 16):
                for message in self.codec.receive(piece):
                    if isinstance(message, kind):
                        return message
            raise AssertionError("the connection was closed")

    async def close(self):
        self.writer.close()
        await self.writer.wait_closed()


@pytest.mark.parametrize("language", LANGUAGES)
def test_messages_of_one_client_reach_another(language):
    async def story():
        async with broker() as hub, node("a", language=language) as a, node("b") as b:
            a.call(hub.address)
            b.call(hub.address)
            await a.deliveries.of(Joined)
            await b.deliveries.of(Joined)
            a.ask(bundle(1, x=1.5))
            assert await b.deliveries.bundles() == [bundle(1, x=1.5)]
            b.ask(bundle(2, y="<&>"))
            assert await a.deliveries.bundles() == [bundle(2, y="<&>")]

    run(story)


def test_the_machine_receives_start_joins_and_leaves():
    async def story():
        async with broker() as hub:
            async with node("a") as a:
                a.call(hub.address)
                await a.deliveries.of(Joined)
            (left,) = await hub.deliveries.of(Left)
            assert [type(one) for one in hub.deliveries] == [Started, Joined, Left]
            assert (left.peer, left.why) == ("a", "it stops")
            assert hub.deliveries[0].now <= hub.deliveries[1].now <= left.now

    run(story)


def test_everything_sent_before_leaving_is_delivered():
    async def story():
        async with broker() as hub:
            async with node("a") as a:
                a.call(hub.address)
                await a.deliveries.of(Joined)
                for number in range(5_000):
                    a.ask(bundle(number, filler="x" * 100))
            received = await hub.deliveries.bundles(5_000)
            assert [one.key.sequence for one in received] == list(range(5_000))
            assert (await hub.deliveries.of(Left))[0].why == "it stops"

    run(story)


def test_timers_fire_and_can_be_replaced():
    async def story():
        async with broker() as hub:
            hub.ask(("timer", "never", 3_600_000_000))
            hub.ask(("timer", "soon", 3_600_000_000))
            hub.ask(("timer", "soon", 0))
            (fired,) = await hub.deliveries.of(Fired)
            assert fired.timer == "soon"

    run(story)


def test_a_dropped_peer_receives_the_reason_and_reconnects():
    async def story():
        async with broker() as hub, node("a") as a:
            a.call(hub.address)
            await hub.deliveries.of(Joined)
            hub.ask(("drop", "a", "not today"))
            (left,) = await a.deliveries.of(Left)
            assert left.why == "not today"
            await hub.deliveries.of(Joined, 2)

    run(story)


def test_a_client_waits_for_a_broker_that_comes_back():
    async def story():
        async with node("a") as a:
            async with broker() as hub:
                address = hub.address
                a.call(address)
                await a.deliveries.of(Joined)
            await a.deliveries.of(Left)
            async with node("hub", role="broker") as again:
                await again.listen(address)
                await a.deliveries.of(Joined, 2)

    run(story)


def test_an_impatient_client_fails_at_once_without_a_listener():
    async def story():
        async with broker() as hub:
            address = hub.address
        async with node("a") as a:
            a.call(address, patient=False)
            with pytest.raises(ConnectionRefused, match=str(address)):
                await a.failed

    run(story)


def test_a_second_holder_of_a_name_is_refused_with_the_reason():
    async def story():
        async with broker() as hub, node("twin") as first, node("twin") as second:
            first.call(hub.address)
            await first.deliveries.of(Joined)
            second.call(hub.address)
            with pytest.raises(
                ConnectionRefused, match=r"'twin' is connected already, .* a name is used once at a time"
            ):
                await second.failed
            assert list(hub.links) == ["twin"]
            first.ask(bundle(1))
            await hub.deliveries.bundles()

    run(story)


def test_a_new_call_replaces_the_callers_lost_connection():
    """The broker does not know yet that the first connection is dead; the caller proves that it is the
    same."""

    async def story():
        async with broker() as hub:
            first, second = [await asyncio.open_connection(*hub.address) for _ in range(2)]
            hello = HelloControl("roamer", instance=b"one of a kind")
            for _, writer in (first, second):
                writer.write(PREAMBLE + codec("msgpack", 1 << 20).encode(hello))
            await hub.deliveries.of(Joined, 2)
            await hub.deliveries.of(Left)
            assert list(hub.links) == ["roamer"]
            for _, writer in (first, second):
                writer.close()

    run(story)


def test_one_connection_remains_of_two_brokers_that_call_each_other():
    async def story():
        async with broker("a") as a, broker("b") as b:
            a.call(b.address)
            b.call(a.address)
            await eventually(
                lambda: [link.caller for node in (a, b) for link in node.links.values()] == ["a", "a"]
            )
            a.ask(bundle(1))
            b.ask(bundle(2))
            assert await b.deliveries.bundles() == [bundle(1)]
            assert await a.deliveries.bundles() == [bundle(2)]

    run(story)


def test_a_broker_stops_though_a_consumer_reads_nothing():
    async def story():
        async with broker() as hub:
            slow = await stuck(hub)
            while hub.links["stuck"].writable.is_set():
                hub.ask(bundle(1, filler="x" * 10_000))
                await asyncio.sleep(0)
            await hub.stop(patience=1_000)
            assert hub.links == {}
            await slow.close()

    run(story)


def test_a_message_that_grew_too_large_is_dropped_without_closing_a_connection(caplog):
    async def story():
        async with broker(limits=ConnectionLimits(max_frame=2048)) as hub, node("a") as a:
            a.call(hub.address)
            await a.ready()
            await hub.deliveries.of(Joined)
            hub.ask(bundle(1, filler="x" * 3_000))
            hub.ask(bundle(2))
            (lost,) = await hub.deliveries.of(Undelivered)
            assert (lost.peer, lost.message.key.sequence) == ("a", 1)
            assert await a.deliveries.bundles() == [bundle(2)]

    run(story)
    assert "'a' cannot be sent a message of" in caplog.text


def test_a_peer_with_the_name_of_the_broker_is_refused():
    async def story():
        async with broker("hub") as hub, node("hub") as a:
            a.call(hub.address)
            with pytest.raises(ConnectionRefused, match="'hub' is the name of this broker"):
                await a.failed

    run(story)


TOKEN = b"a token that is long enough"


def test_peers_with_the_same_token_connect():
    async def story():
        async with broker(token=TOKEN) as hub, node("a", token=TOKEN) as a:
            a.call(hub.address)
            await a.deliveries.of(Joined)

    run(story)


@pytest.mark.parametrize(
    ("theirs", "ours", "reason"),
    [
        (TOKEN, b"another long enough token", "the token is wrong"),
        (TOKEN, None, "asks for a token: give --token-file"),
        (None, TOKEN, "asks for no token"),
    ],
)
def test_a_client_with_a_different_token_gets_the_reason_and_does_not_retry(theirs, ours, reason):
    async def story():
        async with broker(token=theirs) as hub, node("a", token=ours) as a:
            a.call(hub.address)
            with pytest.raises(ConnectionRefused, match=reason):
                await a.failed
            assert not any(isinstance(one, Joined) for one in a.deliveries)

    run(story)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_token_is_never_sent_and_a_proof_cannot_be_reused(language):
    async def story():
        async with broker(token=TOKEN) as hub:
            seen = []

            async def record_traffic(reader, writer):
                there, back = await asyncio.open_connection(*hub.address)

                async def pump(source, sink, stored):
                    while piece := await source.read(1 << 16):
                        stored.append(piece)
                        sink.write(piece)
                    sink.close()

                traffic = []
                seen.append(traffic)
                await asyncio.gather(pump(reader, back, traffic), pump(there, writer, []))

            server = await asyncio.start_server(record_traffic, "127.0.0.1", 0)
            async with server, node("a", token=TOKEN, language=language) as a:
                a.call(Address(*server.sockets[0].getsockname()))
                await a.deliveries.of(Joined)
            (traffic,) = seen
            assert TOKEN not in b"".join(traffic)
            again = await Raw.to(hub.address, language)
            again.say(b"".join(traffic))
            received = await again.read_all()
            assert received[-1] == Bye("the token is wrong", final=True)
            await again.close()
            assert len(await hub.deliveries.of(Joined)) == 1

    run(story)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "does not speak the wire of Holdfast"),
        (b"HFW\x07", "version 7 of the wire; this is version 1"),
        (PREAMBLE + to_frame(b""), "an empty frame"),
        (PREAMBLE + to_frame(b"\x07abc"), "unknown kind 7"),
        (PREAMBLE + to_frame(b"\x00\xc1"), "malformed"),
        (PREAMBLE + b"\x7f\xff\xff\xff", "2,147,483,647 bytes"),
        (PREAMBLE + codec("msgpack", 1 << 20).encode(Pong()), "Pong is not allowed in a greeting"),
        (PREAMBLE + codec("msgpack", 1 << 20).encode(bundle()), "a message before the greeting"),
        (PREAMBLE + codec("msgpack", 1 << 20).encode(HelloControl("")), "a name has 1 to 200"),
        (b"<!DOCTYPE x><ISCAMsg/>", "document type"),
        (b"<ISCAMsg></Oops>", "mismatched tag"),
    ],
)
def test_an_unknown_protocol_closes_only_its_connection_with_a_reason(message, reason):
    async def story():
        async with broker() as hub, node("a") as a:
            a.call(hub.address)
            await a.deliveries.of(Joined)
            stranger = await Raw.to(hub.address, "xml" if message.startswith(b"<") else "msgpack")
            stranger.say(message)
            bye = (await stranger.read_all())[-1]
            assert isinstance(bye, Bye)
            assert reason in bye.why
            await stranger.close()
            a.ask(bundle(1))
            assert await hub.deliveries.bundles() == [bundle(1)]

    run(story)


def test_a_peer_that_sends_garbage_after_the_greeting_is_dropped():
    async def story():
        async with broker() as hub:
            peer = await Raw.to(hub.address)
            peer.greet()
            await peer.next(Welcome)
            peer.say(bundle(1), to_frame(b"\x01\xff"), bundle(2))
            assert "malformed" in (await peer.read_all())[-1].why
            await peer.close()
            assert await hub.deliveries.bundles() == [bundle(1)]
            assert "malformed" in (await hub.deliveries.of(Left))[0].why

    run(story)


def test_an_error_of_the_machine_closes_only_the_connection_of_the_peer(caplog):
    async def story():
        async with broker() as hub, node("a") as a:
            a.call(hub.address)
            await a.deliveries.of(Joined)
            peer = await Raw.to(hub.address)
            peer.greet()
            peer.say(Bundle(BundleKey("p", 1), payloads=("trouble",)))
            assert (await peer.read_all())[-1] == Bye("an internal error")
            await peer.close()
            a.ask(bundle(1))
            assert await hub.deliveries.bundles() == [bundle(1)]
            assert hub.account()["internal errors"] == 1

    run(story)
    assert "trouble" in caplog.text


def test_a_silent_stranger_is_disconnected():
    async def story():
        async with broker(limits=ConnectionLimits(greeting=20_000)) as hub:
            stranger = await Raw.to(hub.address)
            assert await stranger.read_all() == []
            await stranger.close()
            slow = await Raw.to(hub.address)
            slow.say(PREAMBLE[:2])
            assert (await slow.read_all())[-1:] in ([], [Bye("no greeting in time")])
            await slow.close()
            assert list(hub.deliveries) == hub.deliveries[:1]

    run(story)


def test_connections_above_the_limit_are_refused():
    async def story():
        async with broker(limits=ConnectionLimits(peers=2)) as hub, node("a") as a, node("b") as b:
            a.call(hub.address)
            b.call(hub.address)
            await hub.deliveries.of(Joined, 2)
            third = await Raw.to(hub.address)
            third.greet("third")
            received = await third.read_all()
            assert received[-1] == Bye("no more than 2 connections are taken here (--peers)")
            await third.close()
            assert set(hub.links) == {"a", "b"}

    run(story)


def test_a_silent_peer_is_pinged_and_then_dropped():
    async def story():
        async with broker(limits=ConnectionLimits(heartbeat=20_000)) as hub:
            dead = await Raw.to(hub.address)
            dead.greet("dead")
            assert await dead.next(Ping) == Ping()
            (left,) = await hub.deliveries.of(Left)
            assert left.why == "silent for 60 ms"
            await dead.close()

    run(story)


def test_a_peer_that_answers_stays_connected():
    async def story():
        async with broker(limits=ConnectionLimits(heartbeat=300_000)) as hub, node("quiet") as quiet:
            quiet.call(hub.address)
            pings = []
            link = (await hub.deliveries.of(Joined)) and hub.links["quiet"]
            send = link.send
            link.send = lambda message, **more: (pings.append(message), send(message, **more))
            await eventually(lambda: pings.count(Ping()) >= 5)  # three would be the end
            assert not any(isinstance(one, Left) for one in hub.deliveries)

    run(story)


async def stuck(hub, name="stuck"):
    """A peer that joins and then reads nothing."""
    peer = await Raw.to(hub.address)
    peer.writer.transport.pause_reading()
    peer.greet(name)
    await hub.deliveries.until(
        lambda inputs: any(isinstance(one, Joined) and one.peer == name for one in inputs)
    )
    return peer


def test_a_slow_consumer_loses_the_oldest_readings_and_the_loss_is_counted():
    async def story():
        limits = ConnectionLimits(queue=50, when_full="drop-oldest")
        async with broker(limits=limits) as hub, node("fast") as fast:
            fast.call(hub.address)
            await hub.deliveries.of(Joined)
            slow = await stuck(hub)
            sent = 0
            while hub.account()["dropped"] < 500:
                hub.ask(bundle(sent, filler="x" * 10_000))
                sent += 1
                if sent % 50 == 0:
                    await asyncio.sleep(0)
                    await fast.deliveries.bundles(sent)
            dropped = hub.account()["dropped"]
            emitted = await hub.deliveries.of(Undelivered, dropped)
            assert [one.message.key.sequence for one in emitted] == sorted(
                {one.message.key.sequence for one in emitted}
            )
            assert hub.account()["waiting"] <= 50
            slow.writer.transport.resume_reading()
            numbers = []
            while not numbers or numbers[-1] != sent - 1:
                piece = await slow.reader.read(1 << 20)
                numbers += [one.key.sequence for one in slow.codec.receive(piece) if isinstance(one, Bundle)]
            assert len(numbers) == sent - dropped
            assert numbers == sorted(numbers)
            assert len(await fast.deliveries.bundles(sent)) == sent
            await slow.close()

    run(story)


@pytest.mark.parametrize(("when_full", "losable"), [("disconnect", True), ("drop-oldest", False)])
def test_a_slow_consumer_is_disconnected_where_nothing_may_be_lost(when_full, losable):
    async def story():
        limits = ConnectionLimits(queue=50, when_full=when_full)
        async with broker(limits=limits, losable=lambda message: losable) as hub:
            slow = await stuck(hub)
            sent = 0
            while "stuck" in hub.links:
                hub.ask(bundle(sent, filler="x" * 10_000))
                sent += 1
            (left,) = await hub.deliveries.of(Left)
            assert left.why.startswith("too slow: 51 messages")
            assert hub.account()["dropped"] >= 50
            await slow.close()

    run(story)


def test_a_broker_that_does_not_read_slows_its_publisher_down():
    async def story():
        async def deaf(reader, writer):
            writer.transport.pause_reading()
            await over.wait()
            writer.close()

        over = asyncio.Event()
        server = await asyncio.start_server(deaf, "127.0.0.1", 0)
        async with server, node("a") as a:
            a.call(Address(*server.sockets[0].getsockname()))
            await eventually(lambda: a._strangers)
            (link,) = a._strangers
            while link.writable.is_set():
                link.put(b"x" * 10_000)
                link.flush()
            assert not link.writable.is_set()
            over.set()

    run(story)


def test_a_broker_reports_its_statistics():
    async def story():
        async with broker() as hub:
            peer = await Raw.to(hub.address)
            peer.greet()
            peer.say(bundle(1), bundle(2), Inquiry())
            emitted = (await peer.next(AccountControl)).counters
            assert emitted["name"] == "hub"
            assert (emitted["received"], emitted["joined"], emitted["peers"]) == (2, 1, 1)
            await peer.close()

    run(story)


def test_a_client_of_the_thesis_needs_no_greeting():
    async def story():
        async with broker() as hub:
            peer = await Raw.to(hub.address, "xml")
            peer.say(b'<ISCAMsg><Notification><av name="X" type="long" value="1"/></Notification></ISCAMsg>')
            (received,) = await hub.deliveries.bundles()
            assert received.notifications[0].content == {"X": 1}
            (joined,) = await hub.deliveries.of(Joined)
            assert joined.peer == "peer-1"
            hub.ask(bundle(1, y=2))
            assert (await peer.next(Bundle)) == bundle(1, y=2)
            await peer.close()
            await hub.deliveries.of(Left)

    run(story)


def test_a_broker_with_a_token_requires_a_greeting():
    async def story():
        async with broker(token=TOKEN) as hub:
            peer = await Raw.to(hub.address, "xml")
            peer.say(b"<ISCAMsg/>")
            assert "a token is needed here" in (await peer.read_all())[-1].why
            await peer.close()

    run(story)


def test_an_error_in_a_callback_of_the_user_ends_the_node():
    async def story():
        async with broker() as hub, node("a") as a:
            a.deliver = lambda what: 1 / 0
            a.call(hub.address)
            with pytest.raises(ZeroDivisionError):
                await a.failed

    run(story)


def test_impossible_limits_are_refused():
    with pytest.raises(UsageError, match="--max-frame 10: at least 1024"):
        ConnectionLimits(max_frame=10)
    with pytest.raises(UsageError, match="--queue 0: at least one"):
        ConnectionLimits(queue=0)
