"""The configuration that is compiled into every node before deployment.  [D10, D15]"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, Protocol, get_args

from ....errors import UsageError, did_you_mean
from ....model.event import Event, Transition
from ....model.instant import MILLISECOND, SECOND, Duration, Instant
from ....model.protocol import Peer
from ....model.space import Point
from .ifs import SlotSchedule
from .topic import TopicId, TopicSet

ModeName = Literal["DefTDDS", "BLTDDS", "HyTDDS", "EATDDS"]
MODES: tuple[ModeName, ...] = get_args(ModeName)


class PublisherMachine(Protocol):
    """The members of a condition machine that a publisher's node calls."""

    def initial(self) -> Any: ...
    def react(self, state: Any, event: Event) -> tuple[Any, list[Transition]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliableSettings:
    """Parameters of RTDDS: ring size, timeout and retries of a writer."""

    ring: int = 20
    """Messages that wait or are unacknowledged.  [D18]"""
    rto: Duration = 400 * MILLISECOND
    """The retransmission timeout, in microseconds.  [D21]"""
    retries: int | None = None
    """After this many repetitions a message, but not its reader, is given up; ``None``: never.  [D22]"""
    acknowledged: Literal["aggregated", "end-to-end"] = "aggregated"
    """The sender of ACKs: the RN when all have it (chapter 6), or directly the reader (chapter 4 has one).
    [D25]"""

    def __post_init__(self) -> None:
        if self.ring < 1:
            raise UsageError(f"a ring of {self.ring} messages; it must hold one at least")
        if self.rto <= 0:
            raise UsageError(f"a retransmission timeout of {self.rto} µs; it must be above 0")
        if self.retries is not None and self.retries < 0:
            raise UsageError(f"{self.retries} retries; it must be 0 at least, or None for no limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverySettings:
    """How often a subscription is repeated [D14], and how long it is valid."""

    repeats: int = 10
    every: Duration = SECOND
    lease: Duration | None = None
    """How long a subscription is valid without a sign of life; readers send three in this time.

    ``None``: until it is withdrawn, as in the thesis (and in DDS by default).
    """
    spread: float = 0.5
    """The largest random delay of a repetition, as a share of ``every``.

    Without it, subscribers that start together would repeat at the same times, and their frames would
    collide.
    """

    def after(self, now: Instant, period: Duration, chance: Random) -> Instant:
        """Return the time a period from now, with a random delay."""
        return now + round(period * (1 + self.spread * chance.random()))

    @property
    def renewal(self) -> Duration | None:
        """The period of signs of life, or ``None`` without a lease."""
        return None if self.lease is None else self.lease * 3 // 10

    def __post_init__(self) -> None:
        if self.lease is not None and self.lease < 4 * self.every:
            raise UsageError(
                f"a lease of {self.lease} µs, with subscriptions {self.every} µs apart; it is four times as "
                "long at least, or None for no end"
            )
        if self.repeats < 1 or self.every <= 0:
            raise UsageError(
                f"a subscription sent {self.repeats} times, {self.every} µs apart; "
                "it must be sent at least once, with a positive interval"
            )
        if not 0 <= self.spread <= 1:
            raise UsageError(f"a spread of {self.spread}; it is a share of a period, from 0 to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationSettings:
    """Parameters of EATDDS: how the role of rendezvous node moves."""

    round: Duration = 350 * SECOND
    """How long a node has the role.  [D48]"""
    reports: Duration = 350 * SECOND
    """How often nodes report their energy.  [D47]"""
    reporters: Literal["all", "cluster"] = "all"
    """The nodes that report: all, as in the thesis, or those that can be elected."""
    slack: float = 0.0
    """Nodes whose energy is less than the maximum by at most this share are candidates; the nearest is
    elected.  [D51]"""
    sign: Duration = 70 * SECOND
    """How often an RN sends a sign of life; after three missing ones another node replaces it."""
    settle: Duration = 5 * SECOND
    """How long an RN that was restarted or replaces a dead one sends no ACKs, so that subscribers can find
    it."""

    def __post_init__(self) -> None:
        if min(self.round, self.reports, self.sign, self.settle) <= 0 or not 0 <= self.slack < 1:
            raise UsageError("Rotation: durations are above 0, slack is from 0 to below 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveSettings:
    """Parameters of ARQoS: rounds and thresholds; the thesis gives no values.  [D56–D59]"""

    round: Duration = 30 * SECOND
    """T: how long a receiver counts."""
    assurance: Duration = 2 * SECOND
    """ATI: how long it then waits for late packets.  [D58]"""
    pause: Duration = 8 * SECOND
    """TI: between two rounds."""
    margin: float = 5.0
    """Percent below and above the requested level: the two thresholds.  [D59]"""

    def __post_init__(self) -> None:
        if self.round <= 0 or min(self.assurance, self.pause) < 0 or self.margin < 0:
            raise UsageError("Adaptive: a round is above 0, the other times and the margin not negative")


@dataclass(frozen=True, kw_only=True)
class DdsDeployment:
    """Topics, nodes and parameters that all nodes know."""

    topics: TopicSet
    table: tuple[Peer, ...]
    """Rendezvous nodes by hash: as many as MaxTopics.  [D10]"""
    publishers: Mapping[TopicId, tuple[Peer, ...]]
    """Known before deployment.  [D15]"""
    mode: ModeName = "DefTDDS"
    reliable: ReliableSettings = ReliableSettings()
    discovery: DiscoverySettings = DiscoverySettings()
    rotation: RotationSettings = RotationSettings()
    adaptive: AdaptiveSettings = AdaptiveSettings()
    schedule: SlotSchedule | None = None
    """The schedule of interference-free scheduling, if used.  [D32]"""
    conditions: Mapping[str, PublisherMachine] = field(default_factory=dict)
    """The conditions that publishers' nodes can run, by name."""
    positions: Mapping[Peer, Point] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            hint = did_you_mean(self.mode, MODES) or f"There is {', '.join(MODES)}."
            raise UsageError(f"no mode named '{self.mode}'. {hint}")
        if not self.table:
            raise UsageError("a deployment needs a table of rendezvous nodes; one at least")
        for topic in self.publishers:
            if topic not in self.topics.by_id:
                raise UsageError(f"publishers of topic {topic}, which there is not")
        if "" in self.conditions:
            raise UsageError("a condition needs a name")

    def rendezvous(self, topic: TopicId) -> Peer:
        """Return the RN of a topic: RN_address = Topic_id modulus MaxTopics, looked up in the table.
        [D10]"""
        return self.table[topic % len(self.table)]

    def publishers_of(self, topic: TopicId) -> tuple[Peer, ...]:
        """Return the publishers of a topic."""
        return self.publishers.get(topic, ())

    def successors(self, topic: TopicId) -> tuple[Peer, ...]:
        """Return the nodes that may take the role, in order: the main RN, then the publishers."""
        return tuple(dict.fromkeys((self.rendezvous(topic), *self.publishers_of(topic))))
