"""A real broker among hostile peers: it drops them, and continues for all others."""

from __future__ import annotations

import asyncio
import random
import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import HoldfastError
from holdfast.model.protocol import Joined, Left, Received, Started
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.connection.limits import ConnectionLimits
from holdfast.network.overlay.wire.codec import codec
from holdfast.network.overlay.wire.control import HelloControl
from holdfast.network.overlay.wire.frame import PREAMBLE, to_frame
from holdfast.network.protocols.cbps.broker import CbpsBroker
from holdfast.network.protocols.cbps.bundle import is_droppable
from holdfast.network.protocols.cbps.client import (
    CbpsClient,
    ReceivedNotification,
    advertise,
    publish,
    subscribe,
)
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.message import (
    KINDS,
    Bundle,
    BundleKey,
    PublishedNotification,
    Registration,
)
from support.bundles import messages
from support.overlay_chaos import flood
from support.patience import PATIENCE
from support.relay import broker, node

X = Filter((Constraint("X", "long", "any"),))


def run(story):
    asyncio.run(asyncio.wait_for(story(), 3 * PATIENCE))


def hub(**limits):
    return broker(
        machine=CbpsBroker(compile_condition, most=1_000),
        losable=is_droppable,
        limits=ConnectionLimits(**limits),
    )


def client(name):
    return node(name, machine=CbpsClient(name, compile_condition))


async def await_service(publisher, subscriber, number):
    """Wait until a notification comes through."""
    async with asyncio.timeout(PATIENCE):
        while not any(
            isinstance(one, ReceivedNotification) and one.content["X"] == number
            for one in subscriber.deliveries
        ):
            publisher.ask(publish({"X": number}))
            await asyncio.sleep(0.01)


async def attack(address, data):
    """Send bytes and read until the other end closes or falls silent."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(data)
        writer.write_eof()
        async with asyncio.timeout(PATIENCE):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def pack(*messages):
    speaker = codec("msgpack", 1 << 20)
    return PREAMBLE + b"".join(speaker.encode(one) for one in messages)


def attacks(seed, number):
    """Random bytes, true messages cut off or with bits turned, and floods of nonsense in both languages."""
    rng = random.Random(seed)
    whole = pack(
        HelloControl("attacker"),
        Registration(KINDS, request=True),
        Bundle(BundleKey("a", 1), notifications=(PublishedNotification({"X": 1, "text": "some text"}),)),
    )
    for _ in range(number):
        match rng.randrange(7):
            case 0:
                yield rng.randbytes(rng.randrange(1, 2000))
            case 1:
                yield PREAMBLE + rng.randbytes(rng.randrange(1, 2000))
            case 2:
                yield whole[: rng.randrange(1, len(whole))]
            case 3:
                turned = bytearray(whole)
                for _ in range(rng.randrange(1, 5)):
                    turned[rng.randrange(len(turned))] ^= 1 << rng.randrange(8)
                yield bytes(turned)
            case 4:
                yield pack(HelloControl("attacker")) + to_frame(b"\x01" + rng.randbytes(rng.randrange(200)))
            case 5:
                yield b"<ISCAMsg>" * rng.randrange(1, 3000)
            case 6:
                yield b'<!DOCTYPE x [<!ENTITY a "b">]><ISCAMsg>&a;</ISCAMsg>'


def test_a_broker_under_attack_serves_its_clients():
    async def story():
        async with hub(max_frame=4096) as it, client("p") as p, client("s") as s:
            for each in (p, s):
                each.call(it.address)
                await each.ready()
            p.ask(advertise("x", X))
            s.ask(subscribe("x", X))
            await await_service(p, s, 0)
            for number, data in enumerate(attacks(1, 100), 1):
                await attack(it.address, data)
                if number % 10 == 0:
                    await await_service(p, s, number)
            assert it.account()["internal errors"] == 0
            assert set(it.links) <= {"p", "s", "attacker"}

    run(story)


@given(st.lists(st.tuples(st.sampled_from("abc"), messages | st.just("gone")), max_size=12))
@settings(max_examples=50)
def test_a_broker_handles_or_refuses_every_message(messages):
    """Every decodable message is handled without an internal error of the broker."""
    machine = CbpsBroker(compile_condition, most=100)
    state = machine.initial()
    state, _ = machine.handle(state, Started(0, 1))
    for peer in "abc":
        state, _ = machine.handle(state, Joined(0, peer))
        state, _ = machine.handle(state, Received(0, peer, Registration(KINDS)))
    for now, (peer, message) in enumerate(messages):
        if message == "gone":
            state, _ = machine.handle(state, Left(now, peer))
            state, _ = machine.handle(state, Joined(now, peer))
            continue
        try:
            state, effects = machine.handle(state, Received(now, peer, message))
        except HoldfastError:
            continue
        for effect in effects:
            if hasattr(effect, "message"):
                assert codec("msgpack", 1 << 20).encode(effect.message)


def test_many_tiny_messages_take_little_memory():
    """The long form, a million of them, is in tests/system/test_overlay.py."""

    async def story():
        async with hub(queue=100) as it:
            await flood(it.address, 500)
            tracemalloc.start()
            try:
                before, _ = tracemalloc.get_traced_memory()
                await flood(it.address, 5_000)
                _, most = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert it.account()["received"] == 5_502
            assert most - before < 4 << 20

    run(story)
