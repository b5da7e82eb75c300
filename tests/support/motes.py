"""Nodes of the DDS family without radios: messages are delayed, lost, duplicated and overtake each other.

The host is as simple as possible and shares no code with the simulator. All randomness has one seed.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from holdfast.model.instant import MILLISECOND, SECOND, Instant
from holdfast.model.protocol import (
    EVERYBODY,
    Asked,
    CancelTimer,
    Deliver,
    Fired,
    Peer,
    Received,
    Send,
    SetTimer,
    Started,
)
from holdfast.network.protocols.dds import request
from holdfast.network.protocols.dds.deployment import DdsDeployment
from holdfast.network.protocols.dds.interest import Interest
from holdfast.network.protocols.dds.level import BEST_EFFORT, Level
from holdfast.network.protocols.dds.participant import DdsParticipant
from holdfast.network.protocols.dds.topic import DdsTopic, TopicSet

HEAT = "heat"


def deployment(
    level: Level = BEST_EFFORT,
    *,
    publishers: Iterable[Peer] = ("p",),
    table: tuple[Peer, ...] = ("r",),
    topics: Iterable[DdsTopic] | None = None,
    **more: Any,
) -> DdsDeployment:
    """A deployment with a topic named ``heat``, written by ``p``, with its rendezvous at ``r``."""
    found = TopicSet(tuple(topics) if topics is not None else (DdsTopic(0, HEAT, level=level),))
    return DdsDeployment(
        topics=found, table=table, publishers={topic.id: tuple(publishers) for topic in found}, **more
    )


@dataclass
class MoteRadio:
    """How badly messages travel."""

    seed: int = 0
    loss: float = 0.0
    twice: float = 0.0
    longest: int = 0
    """Milliseconds that a message may take more than the first one: so much they overtake each other."""


@dataclass
class Motes:
    """Nodes, and everything that came of them."""

    deployment: DdsDeployment
    nodes: tuple[Peer, ...]
    air: MoteRadio = field(default_factory=MoteRadio)
    loses: Callable[[Peer, Peer, Any], bool] = lambda sender, to, message: False

    def __post_init__(self) -> None:
        self.now: Instant = 0
        self.random = Random(self.air.seed)
        self.machines = {node: DdsParticipant(self.deployment, node) for node in self.nodes}
        self.states: dict[Peer, Any] = {}
        self.outputs: list[tuple[Instant, Peer, Peer, Any]] = []
        self.emissions: list[tuple[Instant, Peer, Any]] = []
        self.lost: Counter[str] = Counter()
        self._heap: list[tuple[Instant, int, Callable[[], None]]] = []
        self._count = 0
        self._timers: dict[tuple[Peer, str], int] = {}
        for node in self.nodes:
            self.start(node)

    # What happens to nodes.

    def start(self, node: Peer) -> None:
        """A node is switched on, and knows nothing."""
        self.states[node] = self.machines[node].initial()
        self._timers = {key: n for key, n in self._timers.items() if key[0] != node}
        self._tell(node, Started(self.now, 0))

    def kill(self, node: Peer) -> None:
        del self.states[node]

    def ask(self, node: Peer, asked: Any) -> None:
        if node in self.states:
            self._tell(node, Asked(self.now, asked))

    def at(self, time: Instant, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._heap, (time, self._count, action))

    def run(self, until: Instant) -> None:
        while self._heap and self._heap[0][0] <= until:
            self.now, _, action = heapq.heappop(self._heap)
            action()
        self.now = max(until, self.now)

    # What is read.

    def notified(self, node: Peer, subscription: str | None = None) -> list[request.DdsNotify]:
        """The deliveries to the application of a node, in order."""
        return [
            what
            for _, who, what in self.emissions
            if who == node
            and isinstance(what, request.DdsNotify)
            and subscription in (None, what.subscription)
        ]

    def readings(self, node: Peer, subscription: str | None = None) -> list[Any]:
        return [what.values["value"] for what in self.notified(node, subscription)]

    def of(self, kind: type) -> list[tuple[Peer, Any]]:
        """The deliveries of that type to all applications."""
        return [(who, what) for _, who, what in self.emissions if isinstance(what, kind)]

    def sent(self, kind: type, sender: Peer | None = None) -> list[tuple[Instant, Peer, Peer, Any]]:
        """The messages of a kind, whether they arrived or not."""
        return [each for each in self.outputs if isinstance(each[3], kind) and sender in (None, each[1])]

    # The host.

    def _tell(self, node: Peer, given: Any) -> None:
        self.states[node], effects = self.machines[node].handle(self.states[node], given)
        for effect in effects:
            self._do(node, effect)

    def _do(self, node: Peer, effect: Any) -> None:
        match effect:
            case Send(to, message):
                for peer in self.nodes if to == EVERYBODY else (to,):
                    if peer != node:
                        self._carry(node, peer, message)
            case SetTimer(timer, at):
                self._count += 1
                self._timers[node, timer] = number = self._count
                self.at(at, lambda: self._fire(node, timer, number))
            case CancelTimer(timer):
                self._timers.pop((node, timer), None)
            case Deliver(what):
                self.emissions.append((self.now, node, what))

    def _fire(self, node: Peer, timer: str, number: int) -> None:
        if node in self.states and self._timers.get((node, timer)) == number:
            del self._timers[node, timer]
            self._tell(node, Fired(self.now, timer))

    def _carry(self, sender: Peer, to: Peer, message: Any) -> None:
        self.outputs.append((self.now, sender, to, message))
        for _ in range(2 if self.random.random() < self.air.twice else 1):
            if self.random.random() < self.air.loss or self.loses(sender, to, message):
                self.lost[type(message).__name__] += 1
                continue
            late = MILLISECOND * (1 + self.random.randint(0, self.air.longest))
            self.at(self.now + late, lambda: self._bring(sender, to, message))

    def _bring(self, sender: Peer, to: Peer, message: Any) -> None:
        if to in self.states:
            self._tell(to, Received(self.now, sender, message))


def publishing(
    motes: Motes, values: Iterable[Any], every: Instant = SECOND, start: Instant = 20 * SECOND
) -> int:
    """Publish readings of heat by node ``p``, one each period; return the time of the last one."""
    motes.ask("p", request.DdsAdvertiseRequest(HEAT))
    at = start
    for i, value in enumerate(values):
        at = start + i * every
        motes.at(at, lambda value=value: motes.ask("p", request.DdsPublishRequest(HEAT, {"value": value})))
    return at


def subscribe(motes: Motes, node: Peer, name: str = "all", topic: str = HEAT, **interest: Any) -> None:
    motes.ask(node, request.DdsSubscribeRequest(name, Interest(topic=topic, **interest)))
