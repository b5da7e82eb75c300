"""One broker on loopback, beside Mosquitto: messages per second, and how long one takes.

The load comes from sockets that write bytes which were prepared before, and count what arrives, so
that brokers are measured and not clients.  Then the same with the clients that people use.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from statistics import quantiles
from typing import Any

from holdfast.model.event import Event
from holdfast.model.protocol import Asked, Input, Joined, Received, Started
from holdfast.model.topic import Attribute, Topic
from holdfast.network.overlay.client import connect_client
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.connection.address import Address
from holdfast.network.overlay.connection.identity import Identity
from holdfast.network.overlay.wire.control import AccountControl, HelloControl, Inquiry
from holdfast.network.overlay.wire.frame import HEADER, PREAMBLE
from holdfast.network.overlay.wire.packed import PackedCodec
from holdfast.network.protocols.cbps.broker import CbpsBroker
from holdfast.network.protocols.cbps.client import (
    CbpsClient,
    CbpsClientState,
    ReceivedNotification,
    Submit,
    advertise,
    publish,
    subscribe,
)
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.event import advertisement_for, to_content
from holdfast.network.protocols.cbps.message import (
    Advertisement,
    Bundle,
    BundleKey,
    CbpsSubscription,
    PublishedNotification,
    Registration,
)

from . import Row, measure_time
from .peers import mosquitto

MESSAGES = 20_000
THROUGH_CLIENTS = 5_000
ROUND_TRIPS = 2_000
SUBSCRIBERS = 5
SOURCES = (1, 100, 10_000)
START = 1_700_000_000_000_000
READINGS = Topic("Temperature", (Attribute("value", "float"),))
WANTED = Filter((Constraint("topic", "text", "=", "Temperature"), Constraint("value", "double", ">", 20.0)))

Count = Callable[[bytes, int], tuple[int, int]]


@dataclass(frozen=True)
class Target:
    """A broker under load: how to publish to it, how to listen, and how to count what comes."""

    name: str
    publisher: Callable[[], socket.socket]
    subscriber: Callable[[str], socket.socket]
    messages: Callable[[int], list[bytes]]
    count: Count


def run(progress: Callable[[str], None]) -> list[Row]:
    """Throughput, latency, the same through clients, and where the time goes."""
    with ExitStack() as stack:
        progress("starting a broker")
        targets = [_ours(stack.enter_context(_broker()))]
        if mosquitto.program() is not None:
            targets.append(_theirs(stack.enter_context(mosquitto.running())))
        else:
            progress("Mosquitto is not installed (Debian: apt-get install mosquitto); it is left out")
        rows = [
            *_compare(targets, f"messages/s, one publisher, {_subscribers(1)}", 1, progress),
            *_compare(
                targets, f"messages/s out, one publisher, {_subscribers(SUBSCRIBERS)}", SUBSCRIBERS, progress
            ),
            *_latencies(targets, progress),
        ]
    rows += _through_clients(progress)
    rows += _of_many_sources(progress)
    rate = rows[0].value
    assert rate is not None, "of our own broker"
    return [*rows, *_shares(rate, progress)]


def _subscribers(number: int) -> str:
    return f"{number} subscriber{'s' * (number != 1)}"


# --- the two brokers ---


@contextmanager
def _broker() -> Iterator[Address]:
    """``holdfast broker`` as a process of its own."""
    command = [sys.executable, "-m", "holdfast", "broker", "--name", "hub", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*command, "--queue", "1000000"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield Address("127.0.0.1", int(process.stdout.readline().rsplit(":", 1)[1]))
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


def reading(number: int, source: str = "sensor-1") -> Event:
    return Event("Temperature", START + number, source, {"value": 24.5}, number)


def _ours(address: Address) -> Target:
    codec = PackedCodec(1 << 20)

    def peer(name: str, *packets: Any) -> socket.socket:
        found = socket.create_connection(address)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found.sendall(PREAMBLE + b"".join(map(codec.encode, (HelloControl(name), *packets, Inquiry()))))
        counts = PackedCodec(1 << 20)
        while not any(isinstance(one, AccountControl) for one in counts.receive(found.recv(1 << 16))):
            pass
        return found

    promise = Bundle(
        BundleKey("p", 1), advertisements=(Advertisement(advertisement_for(READINGS, source="sensor-1")),)
    )
    return Target(
        "holdfast",
        lambda: peer("p", Registration(()), promise),
        lambda name: peer(
            name,
            Registration(("notification",)),
            Bundle(BundleKey(name, 1), subscriptions=(CbpsSubscription(WANTED),)),
        ),
        lambda number: [codec.encode(_bundle(n)) for n in range(number)],
        count,
    )


def _bundle(number: int) -> Bundle:
    return Bundle(
        BundleKey("p", START + number), notifications=(PublishedNotification(to_content(reading(number))),)
    )


def count(data: bytes, at: int = 0) -> tuple[int, int]:
    """How many frames there are in a stream, and where what is not complete begins."""
    found, end = 0, len(data)
    while at + HEADER <= end and (behind := at + HEADER + int.from_bytes(data[at : at + HEADER])) <= end:
        found, at = found + 1, behind
    return found, at


def _theirs(address: tuple[str, int]) -> Target:
    def messages(number: int) -> list[bytes]:
        packets = ({"time": e.time, "source": e.source, **e.attributes} for e in map(reading, range(number)))
        return [mosquitto.publish_packet(json.dumps(one).encode()) for one in packets]

    return Target(
        "Mosquitto",
        lambda: mosquitto.connect(address, "p"),
        lambda name: mosquitto.subscribe(address, name),
        messages,
        mosquitto.count,
    )


# --- load ---


def _receive(peer: socket.socket, number: int, counted: Count) -> None:
    """Wait for so many messages."""
    rest = b""
    while number > 0:
        piece = peer.recv(1 << 18)
        if not piece:
            raise ConnectionError(f"the broker closed the connection; {number} messages had not come")
        found, at = counted(rest + piece, 0)
        rest = (rest + piece)[at:]
        number -= found


def _throughput(target: Target, subscribers: int) -> float:
    """Seconds from the first byte to the last message at the last subscriber."""
    data = b"".join(target.messages(MESSAGES))
    with ExitStack() as stack:
        publisher = stack.enter_context(target.publisher())
        peers = [stack.enter_context(target.subscriber(f"s{i}")) for i in range(subscribers)]
        threads = [threading.Thread(target=_receive, args=(p, MESSAGES, target.count)) for p in peers]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        publisher.sendall(data)
        for thread in threads:
            thread.join()
        return time.perf_counter() - start


def _compare(
    targets: Sequence[Target], what: str, subscribers: int, progress: Callable[[str], None]
) -> Iterator[Row]:
    ours = 0.0
    for target in targets:
        progress(f"{target.name}: {MESSAGES:,} messages to {_subscribers(subscribers)}")
        seconds = sorted(_throughput(target, subscribers) for _ in range(3))
        rate = MESSAGES * subscribers / seconds[0]
        detail = {"in_per_s": MESSAGES / seconds[0], "out_per_s": rate, "worst_s": seconds[-1]}
        detail |= {"bytes_of_a_message": len(target.messages(1)[0])}
        if target is targets[0]:
            ours = rate
            yield Row(what, rate, "messages/s", detail=detail)
        else:
            detail["holdfast_is_times_faster"] = ours / rate
            yield Row(f"the same by {target.name}", rate, "messages/s", detail=detail)


def _latencies(targets: Sequence[Target], progress: Callable[[str], None]) -> Iterator[Row]:
    ours: list[float] = []
    for target in targets:
        progress(f"{target.name}: {ROUND_TRIPS:,} messages, one at a time")
        cuts = quantiles(_round_trips(target), n=100)
        found = [cuts[49] * 1e6, cuts[98] * 1e6]
        ours = ours or found
        for name, value, mine in zip(("p50", "p99"), found, ours, strict=True):
            first = target is targets[0]
            what = f"{name} of one message, publisher to subscriber"
            detail = {} if first else {"holdfast_is_times_faster": value / mine}
            yield Row(what if first else f"{name}, the same by {target.name}", value, "µs", detail=detail)


def _round_trips(target: Target) -> list[float]:
    """How long each message took, one after the other."""
    seconds = []
    with target.publisher() as publisher, target.subscriber("s0") as subscriber:
        for message in target.messages(ROUND_TRIPS):
            start = time.perf_counter()
            publisher.sendall(message)
            _receive(subscriber, 1, target.count)
            seconds.append(time.perf_counter() - start)
    return seconds[ROUND_TRIPS // 10 :]


# --- the same through clients ---


def _through_clients(progress: Callable[[str], None]) -> Iterator[Row]:
    progress(f"holdfast: {THROUGH_CLIENTS:,} messages through its own clients")
    with _broker() as address:
        rate = THROUGH_CLIENTS / min(asyncio.run(_with_our_clients(address)) for _ in range(3))
    what = "messages/s, publisher and subscriber in one Python process"
    yield Row(what, rate, "messages/s", detail={"messages": THROUGH_CLIENTS})
    if mosquitto.program() is None or find_spec("paho") is None:
        progress("Mosquitto or paho-mqtt (pip install paho-mqtt) is not installed; the pair is left out")
        return
    progress(f"Mosquitto: {THROUGH_CLIENTS:,} messages through paho-mqtt")
    with mosquitto.running() as address:
        theirs = THROUGH_CLIENTS / min(_with_paho(address) for _ in range(3))
    detail = {"messages": THROUGH_CLIENTS, "holdfast_is_times_faster": rate / theirs}
    yield Row("the same by Mosquitto with paho-mqtt", theirs, "messages/s", detail=detail)


async def _with_our_clients(address: Address) -> float:
    counts, all_came = 0, asyncio.Event()

    def deliver(what: Any) -> None:
        nonlocal counts
        counts += isinstance(what, ReceivedNotification)
        if counts == THROUGH_CLIENTS:
            all_came.set()

    contents = [to_content(reading(n)) for n in range(THROUGH_CLIENTS)]
    async with (
        connect_client(address, Identity("s"), deliver=deliver) as subscriber,
        connect_client(address, Identity("p"), deliver=lambda _: None) as publisher,
    ):
        subscriber.ask(subscribe("wanted", WANTED))
        await subscriber.inquire()
        publisher.ask(advertise("readings", advertisement_for(READINGS, source="sensor-1")))
        start = time.perf_counter()
        for i, content in enumerate(contents):
            publisher.ask(publish(content))
            if i % 100 == 0:
                await asyncio.sleep(0)
                await publisher.ready()
        await all_came.wait()
        return time.perf_counter() - start


def _with_paho(address: tuple[str, int]) -> float:
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    counts, all_came, ready = 0, threading.Event(), threading.Event()

    def on_message(*_: Any) -> None:
        nonlocal counts
        counts += 1
        if counts == THROUGH_CLIENTS:
            all_came.set()

    packets = [
        json.dumps({"time": e.time, "source": e.source, **e.attributes})
        for e in map(reading, range(THROUGH_CLIENTS))
    ]
    subscriber, publisher = (Client(CallbackAPIVersion.VERSION2, client_id=name) for name in "sp")
    subscriber.on_message = on_message
    subscriber.on_subscribe = lambda *_: ready.set()
    for client in (subscriber, publisher):
        client.connect(*address)
        client.loop_start()
    try:
        subscriber.subscribe("Temperature")
        ready.wait()
        start = time.perf_counter()
        for one in packets:
            publisher.publish("Temperature", one)
        all_came.wait()
        return time.perf_counter() - start
    finally:
        for client in (subscriber, publisher):
            client.disconnect()
            client.loop_stop()


# --- publishers of many sources ---


def _of_many_sources(progress: Callable[[str], None]) -> Iterator[Row]:
    """What the machine of a publisher does of itself, that advertises each of its sources."""
    for size in SOURCES:
        progress(f"holdfast: a publisher of {size:,} sources")
        one = _publisher(size)
        requests = [publish(to_content(reading(n, f"sensor-{n % size + 1}"))) for n in range(THROUGH_CLIENTS)]
        seconds = measure_time(partial(_publish, *one, requests), 3).best
        what = f"events/s, one publisher that advertises {size:,} source{'s' * (size != 1)}"
        yield Row(what, len(requests) / seconds, "events/s", detail={"events": len(requests)})


def _publisher(size: int) -> tuple[CbpsClient, CbpsClientState]:
    machine = CbpsClient("p", compile_condition)
    state = machine.initial()
    promises = [advertisement_for(READINGS, source=f"sensor-{n + 1}") for n in range(size)]
    asked = [Asked(START, advertise(f"promise {n}", promise)) for n, promise in enumerate(promises)]
    begin: list[Input] = [Started(START, 1), Joined(START, "hub"), *asked]
    for given in begin:
        state, _ = machine.handle(state, given)
    return machine, state


def _publish(machine: CbpsClient, state: CbpsClientState, requests: Sequence[Submit]) -> None:
    for request in requests:
        state, effects = machine.handle(state, Asked(START, request))
        assert len(effects) == 1, effects


# --- where the time goes ---


def _shares(rate: float, progress: Callable[[str], None]) -> Iterator[Row]:
    """The parts of a message's time in our broker, each measured alone."""
    progress("where the time goes")
    codec, number = PackedCodec(1 << 20), 5_000
    bundles = [_bundle(n) for n in range(number)]
    stream = PREAMBLE + b"".join(map(codec.encode, bundles))
    parts = {
        "reading (MessagePack, frames, types)": measure_time(
            lambda: sum(1 for _ in PackedCodec(1 << 20).receive(stream)), 3
        ).best,
        "routing (content matching, context, memoization)": measure_time(lambda: _route(bundles), 3).best,
        "writing (MessagePack)": measure_time(lambda: [codec.encode(bundle) for bundle in bundles], 3).best,
    }
    whole = 1e6 / rate
    rest = whole - sum(parts.values()) / number * 1e6
    for name, seconds in parts.items():
        yield Row(f"of a message's {whole:.0f} µs: {name}", seconds / number * 1e6, "µs")
    yield Row(
        f"of a message's {whole:.0f} µs: sockets, asyncio, and the load itself", rest, "µs", detail=REASON
    )


REASON = {
    "reason": "Mosquitto is C and looks up the name of a topic; it does not look into a message. This broker "
    "is Python; it decodes every message, compares its values with every subscription's ranges, and keeps "
    "context and memoized matches, so that what nobody wants goes nowhere. The parts above say where the "
    "time goes."
}


def _route(bundles: Sequence[Bundle]) -> int:
    machine = CbpsBroker(compile_condition)
    state = machine.initial()
    promise = Bundle(
        BundleKey("p", 1), advertisements=(Advertisement(advertisement_for(READINGS, source="sensor-1")),)
    )
    wish = Bundle(BundleKey("s", 1), subscriptions=(CbpsSubscription(WANTED),))
    for given in (
        Started(START, 1),
        Joined(START, "p"),
        Joined(START, "s"),
        Received(START, "p", Registration(())),
        Received(START, "s", Registration(("notification",))),
        Received(START, "p", promise),
        Received(START, "s", wish),
    ):
        state, _ = machine.handle(state, given)
    sent = 0
    for bundle in bundles:
        state, effects = machine.handle(state, Received(START, "p", bundle))
        sent += len(effects)
    assert sent == len(bundles), sent
    return sent
