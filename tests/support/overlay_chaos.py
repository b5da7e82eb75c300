"""Brokers as processes with wires between them; processes and wires can fail."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from holdfast.definition.parse import parse
from holdfast.model.event import Event
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.connection.address import Address
from holdfast.network.overlay.connection.backoff import Backoff
from holdfast.network.overlay.connection.identity import Identity
from holdfast.network.overlay.tcp import TcpHost
from holdfast.network.overlay.wire.codec import codec
from holdfast.network.overlay.wire.control import Bye, HelloControl
from holdfast.network.overlay.wire.frame import PREAMBLE
from holdfast.network.protocols.cbps.bundle import is_droppable
from holdfast.network.protocols.cbps.client import (
    BundleUnsent,
    CbpsClient,
    ConditionChange,
    ConditionUnknown,
    ReceivedNotification,
    advertise,
    publish,
    subscribe,
    watch,
)
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.event import advertisement_for, to_content
from holdfast.network.protocols.cbps.message import (
    KINDS,
    Bundle,
    BundleKey,
    PublishedNotification,
    Registration,
)
from support.patience import PATIENCE

QUICK = Backoff(first=10_000, most=200_000)

ANYWHERE = Address("127.0.0.1", 0)


class ClientWire:
    """A TCP proxy whose connections can be cut, or silenced, and restored. Each piece takes ``wait``
    seconds; ``carrying`` counts the pieces on their way."""

    def __init__(self, target: Address, wait: Callable[[], float] = lambda: 0.0) -> None:
        self.target, self.wait, self.carrying = target, wait, 0
        self.address = ANYWHERE
        self.is_cut = False
        self._running = asyncio.Event()
        self._running.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> ClientWire:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.address = Address(*self._server.sockets[0].getsockname())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """End every connection without a word; new ones end at once."""
        self.is_cut = True
        for writer in self._writers:
            writer.transport.abort()
        self._running.set()

    def hold(self) -> None:
        """Let nothing through, but keep connections open."""
        self._running.clear()

    def heal(self) -> None:
        self.is_cut = False
        self._running.set()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            if not self.is_cut:
                await self._connect(reader, writer)
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            there, back = await asyncio.open_connection(*self.target)
            self._writers.add(back)
            try:
                await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
            finally:
                self._writers.discard(back)
                back.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while piece := await source.read(1 << 16):
            self.carrying += 1
            try:
                if (seconds := self.wait()) > 0:
                    await asyncio.sleep(seconds)
                await self._running.wait()
                if self.is_cut:
                    return
                sink.write(piece)
                await sink.drain()
            finally:
                self.carrying -= 1
        with suppress(OSError):
            sink.write_eof()


@dataclass
class BrokerProcess:
    """``holdfast broker``, which can be killed and started again at the same address."""

    name: str
    log: Path
    connect: list[Address] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    address: Address = ANYWHERE
    process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        calls = [part for address in self.connect for part in ("--connect", str(address))]
        with open(self.log, "ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "holdfast", "broker", "--name", self.name),
                *("--listen", str(self.address), *calls, *self.options),
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            line = (await self.process.stdout.readline()).decode()
        assert line.startswith("listening on "), self.log.read_text()
        self.address = Address("127.0.0.1", int(line.rsplit(":", 1)[1]))

    async def kill(self) -> None:
        """End it without warning."""
        assert self.process is not None
        self.process.kill()
        await self.process.wait()

    async def terminate(self) -> int:
        """Ask it to end; its exit status."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()


async def flood(address: Address, number: int) -> None:
    """Send so many tiny messages as fast as they are accepted, read nothing, and leave in order."""
    speaker = codec("msgpack", 1 << 20)
    reader, writer = await asyncio.open_connection(*address)
    writer.write(PREAMBLE + speaker.encode(HelloControl("flood")) + speaker.encode(Registration(KINDS)))
    tiny = [
        speaker.encode(Bundle(BundleKey("flood", n), notifications=(PublishedNotification({}),)))
        for n in range(100)
    ]
    for _ in range(number // 100):
        writer.writelines(tiny)
        await writer.drain()
    writer.write(speaker.encode(Bye("enough")))
    while await reader.read(1 << 16):
        pass
    writer.close()
    await writer.wait_closed()


async def nonsense(address: Address, seed: int) -> None:
    """Send a meaningless message and leave."""
    rng = random.Random(seed)
    reader, writer = await asyncio.open_connection(*address)
    start = rng.choice(
        [b"", PREAMBLE, PREAMBLE + codec("msgpack", 1 << 20).encode(HelloControl("nonsense")), b"<a"]
    )
    writer.write(start + rng.randbytes(rng.randrange(1, 3_000)))
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            await reader.read()
    writer.close()


@dataclass(frozen=True)
class Plan:
    """A tree of brokers, whose children each call their parent over a wire of its own, and clients at them.
    Parents stand before their children."""

    root: str
    parent: dict[str, str]
    publishers: dict[str, str]
    listeners: dict[str, str]
    watchers: dict[str, str]

    @property
    def brokers(self) -> list[str]:
        return [self.root, *self.parent]

    @property
    def breakable(self) -> list[str]:
        """Brokers, and wires, each by its lower end."""
        return [*self.brokers, *(f"wire {broker}" for broker in self.parent)]


EIGHT = Plan(
    "b1",
    {"b2": "b1", "b3": "b1", "b4": "b2", "b5": "b2", "b6": "b3", "b7": "b3", "b8": "b4"},
    publishers={"p1": "b8", "p2": "b5", "p3": "b7", "p4": "b1"},
    listeners={"l1": "b8", "l2": "b6", "l3": "b2"},
    watchers={"w1": "b4", "w2": "b7", "w3": "b1"},
)
FOUR = Plan(
    "b1",
    {"b2": "b1", "b3": "b1", "b4": "b2"},
    publishers={"p1": "b4", "p2": "b3", "p3": "b1"},
    listeners={"l1": "b4", "l2": "b3"},
    watchers={"w1": "b2", "w2": "b3"},
)
LINE = Plan(
    "middle",
    {"left": "middle", "right": "middle"},
    publishers={f"p{n}": ("left", "middle", "right")[n % 3] for n in range(18)},
    listeners={f"l{n}": ("left", "middle", "right")[n % 3] for n in range(16)},
    watchers={f"w{n}": ("left", "middle", "right")[n % 3] for n in range(16)},
)
"""A line of three brokers with fifty clients."""


def path(parent: dict[str, str], start: str, end: str) -> set[str]:
    """The brokers between two, both included, and the wires between them, each by its lower end."""

    def ancestors(broker: str) -> list[str]:
        found = [broker]
        while broker in parent:
            broker = parent[broker]
            found.append(broker)
        return found

    up, down = ancestors(start), ancestors(end)
    meeting = next(broker for broker in up if broker in down)
    legs = [*up[: up.index(meeting)], *down[: down.index(meeting)]]
    return {meeting, *legs, *(f"wire {broker}" for broker in legs)}


class Overlay:
    """Broker processes and the wires between them."""

    def __init__(self, folder: Path, plan: Plan = EIGHT) -> None:
        self.plan = plan
        self.brokers = {
            name: BrokerProcess(name, folder / f"{name}.log", options=["--retry", "0.1"])
            for name in plan.brokers
        }
        self.wires: dict[str, ClientWire] = {}

    async def __aenter__(self) -> Overlay:
        started, level = set[str](), [self.plan.root]
        while level:
            for child in level:
                if child in self.plan.parent:
                    above = self.brokers[self.plan.parent[child]].address
                    self.wires[child] = await ClientWire(above).__aenter__()
                    self.brokers[child].connect = [self.wires[child].address]
            await asyncio.gather(*(self.brokers[child].start() for child in level))
            started |= {*level}
            level = [c for c, above in self.plan.parent.items() if above in started and c not in started]
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(broker.terminate() for broker in self.brokers.values()))
        for wire in self.wires.values():
            await wire.__aexit__()

    async def fail(self, what: str) -> None:
        """Cut ``wire b4``, or kill ``b4`` without warning."""
        if what.startswith("wire "):
            self.wires[what.removeprefix("wire ")].cut()
        else:
            await self.brokers[what].kill()

    async def heal(self, what: str) -> None:
        if what.startswith("wire "):
            self.wires[what.removeprefix("wire ")].heal()
        else:
            await self.brokers[what].start()


TOPIC = "topic Reading (n int, value float)"
WARM = f"{TOPIC} state Warm on Reading [value > 25; value < 22] per source"
HIGH, LOW = 30.0, 20.0


class Party:
    """A client in this process."""

    def __init__(self, name: str, broker: BrokerProcess) -> None:
        self.name, self.at = name, broker.name
        self.node = TcpHost(
            Identity(name),
            CbpsClient(name, compile_condition),
            losable=is_droppable,
            deliver=self.receive,
            backoff=QUICK,
        )
        self.node.start()
        self.node.call(broker.address)

    def receive(self, what: object) -> None:
        raise AssertionError(what)


class ChaosPublisher(Party):
    """Counts its events; events that could not be sent are counted separately."""

    def __init__(self, name: str, broker: BrokerProcess) -> None:
        super().__init__(name, broker)
        self.sent_count = 0
        self.unsent = 0
        (topic,) = parse(TOPIC).check().topics
        self.node.ask(advertise("readings", advertisement_for(topic, source=name)))

    def say(self, value: float) -> int:
        self.sent_count += 1
        event = Event(
            "Reading", self.node.now, self.name, {"n": self.sent_count, "value": value}, self.sent_count
        )
        self.node.ask(publish(to_content(event)))
        return self.sent_count

    def receive(self, what: object) -> None:
        assert isinstance(what, BundleUnsent), what
        self.unsent += 1


class Listener(Party):
    """Wants everything, and counts it."""

    def __init__(self, name: str, broker: BrokerProcess) -> None:
        super().__init__(name, broker)
        self.deliveries: Counter[tuple[str, int]] = Counter()
        self.node.ask(subscribe("all", Filter((Constraint("topic", "text", "=", "Reading"),))))

    def receive(self, what: object) -> None:
        assert isinstance(what, ReceivedNotification), what
        self.deliveries[str(what.content["source"]), int(what.content["n"])] += 1


class Watcher(Party):
    """Wants to know when it is warm where."""

    def __init__(self, name: str, broker: BrokerProcess) -> None:
        super().__init__(name, broker)
        self.emissions: defaultdict[str, list[str]] = defaultdict(list)
        self.node.ask(watch("warm", WARM))

    def receive(self, what: object) -> None:
        match what:
            case ConditionChange(_, notification):
                self.emissions[str(notification.scope)].append(notification.status)
            case ConditionUnknown():
                self.emissions[str(what.scope)].append("unknown")
            case _:
                raise AssertionError(what)

    def last(self, source: str) -> str:
        return self.emissions[source][-1] if self.emissions[source] else ""


class Chaos:
    """Rounds of normal operation, a failure, and its repair.

    In normal operation every client receives everything and knows the active conditions. During a failure
    that still holds for clients on the same side of it; losses of the others are counted.
    """

    def __init__(self, overlay: Overlay) -> None:
        self.overlay = overlay
        at, plan = overlay.brokers, overlay.plan
        self.publishers = [ChaosPublisher(name, at[broker]) for name, broker in plan.publishers.items()]
        self.listeners = [Listener(name, at[broker]) for name, broker in plan.listeners.items()]
        self.watchers = [Watcher(name, at[broker]) for name, broker in plan.watchers.items()]
        self.failed_during: dict[tuple[str, int], frozenset[str]] = {}
        """What had failed when something was said, for all that was said in bad times."""

    async def stop(self) -> None:
        for party in (*self.publishers, *self.listeners, *self.watchers):
            await party.node.stop()

    def say(self, value: float, failed: Iterable[str] = ()) -> dict[str, int]:
        """Publish an event by every publisher."""
        published = {publisher.name: publisher.say(value) for publisher in self.publishers}
        if failed:
            self.failed_during |= dict.fromkeys(published.items(), frozenset(failed))
        return published

    async def settled(self) -> None:
        """Publish until every client receives events of every other and no condition is unknown, so that
        every failure is repaired. A watcher may return later than a listener, and a cold reading decides
        an unknown condition."""
        news: dict[str, int] = {p.name: p.sent_count for p in self.publishers}

        def is_connected() -> bool:
            return all(
                any(listener.deliveries[name, n] for n in range(first + 1, publisher.sent_count + 1))
                for listener in self.listeners
                for publisher, (name, first) in zip(self.publishers, news.items(), strict=True)
            ) and not any(watcher.last(name) == "unknown" for watcher in self.watchers for name in news)

        async with asyncio.timeout(PATIENCE):
            while not is_connected():
                self.say(LOW, self.overlay.plan.brokers)
                await asyncio.sleep(0.05)

    async def good_times(self, number: int = 5) -> None:
        """Require that every client receives every event, and that every watcher learns of the warm
        condition."""
        for _ in range(number):
            published = self.say(LOW)
        await self.await_deliveries(published)
        for watcher in self.watchers:
            for publisher in self.publishers:
                assert watcher.last(publisher.name) != "ingress", (
                    watcher.name,
                    publisher.name,
                    watcher.emissions,
                )
        await self.await_deliveries(self.say(HIGH))
        await self._until(lambda: self._have_all_reported("ingress", ()))

    async def bad_times(self, failed: list[str], number: int = 5) -> None:
        """Something fails; the others notice nothing, and go on."""
        for one in failed:
            await self.overlay.fail(one)
        await self._until(lambda: self._have_all_reported("unknown", failed, affected=True))
        for _ in range(number):
            published = self.say(LOW, failed)
        await self.await_deliveries(published, failed)
        await self._until(lambda: self._have_all_reported("egress", failed))
        for one in failed:
            await self.overlay.heal(one)
        await self.settled()

    async def the_end(self) -> None:
        """Cool everything down and require that every watcher receives the end."""
        await self.await_deliveries(self.say(LOW))
        await self._until(lambda: self._have_all_reported("egress", ()))

    async def await_deliveries(self, published: dict[str, int], failed: Collection[str] = ()) -> None:
        """Wait until the last events have arrived at every client that no failure cuts off."""
        await self._until(
            lambda: all(
                listener.deliveries[name, n]
                for publisher, (name, n) in zip(self.publishers, published.items(), strict=True)
                for listener in self.listeners
                if not self._between(publisher, listener, failed)
            )
        )

    def _have_all_reported(self, status: str, failed: Collection[str], *, affected: bool = False) -> bool:
        return all(
            watcher.last(publisher.name) == status
            for watcher in self.watchers
            for publisher in self.publishers
            if self._between(publisher, watcher, failed) == affected
        )

    def _between(self, one: Party, other: Party, failed: Collection[str]) -> bool:
        return not path(self.overlay.plan.parent, one.at, other.at).isdisjoint(failed)

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.01)

    # --- accounts afterwards -------------------

    def account(self) -> dict[str, int]:
        """The numbers of published, received and lost events. Every loss has a reason, so none happens in
        normal operation."""
        wanted = received = lost = good = 0
        for publisher in self.publishers:
            for n in range(1, publisher.sent_count + 1):
                failed = self.failed_during.get((publisher.name, n), frozenset())
                for listener in self.listeners:
                    times = listener.deliveries[publisher.name, n]
                    assert times < 2, f"{listener.name} heard {publisher.name}, {n} {times} times"
                    wanted += 1
                    good += not failed
                    received += times
                    if not times:
                        assert self._between(publisher, listener, failed), (
                            f"{listener.name} missed {publisher.name}, {n}; only {set(failed)} had failed"
                        )
                        lost += 1
        assert wanted == received + lost
        return {
            "wanted": wanted,
            "wanted in good times": good,
            "heard": received,
            "lost": lost,
            "unsent": sum(p.unsent for p in self.publishers),
        }

    def require_paired(self) -> None:
        """Every start was followed by an end or by ``unknown`` before anything else; that, by what holds."""
        for watcher in self.watchers:
            for source, emitted in watcher.emissions.items():
                for first, second in pairwise(["egress", *emitted]):
                    allowed = {"egress": {"ingress"}, "unknown": {"known", "egress"}}
                    assert second in allowed.get(first, {"egress", "unknown"}), (
                        watcher.name,
                        source,
                        emitted,
                    )
                assert emitted[-1] != "ingress", (watcher.name, source, emitted)
