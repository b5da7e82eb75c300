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
    """The part of a condition machine's interface that a publisher's node calls."""

    def initial(self) -> Any: ...
    def react(self, state: Any, event: Event) -> tuple[Any, list[Transition]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliableSettings:
    """Parameters of RTDDS: ring size, timeout and retries of a writer."""

    ring: int = 20
    """The greatest number of messages that wait or are unacknowledged. [D18]"""
    rto: Duration = 400 * MILLISECOND
    """The retransmission timeout in µs. [D21]"""
    retries: int | None = None
    """The number of repetitions after which a writer gives up a message, but not its reader; ``None`` for no
    limit. [D22]
    """
    acknowledged: Literal["aggregated", "end-to-end"] = "aggregated"
    """The sender of ACKs: the RN when all readers have the message (chapter 6), or each reader directly
    (chapter 4, which has one reader). [D25]
    """

    def __post_init__(self) -> None:
        if self.ring < 1:
            raise UsageError(f"a ring of {self.ring} messages; it must hold one at least")
        if self.rto <= 0:
            raise UsageError(f"a retransmission timeout of {self.rto} µs; it must be above 0")
        if self.retries is not None and self.retries < 0:
            raise UsageError(f"{self.retries} retries; it must be 0 at least, or None for no limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverySettings:
    """The period and number of repetitions of a subscription [D14], and the duration of its validity."""

    repeats: int = 10
    every: Duration = SECOND
    lease: Duration | None = None
    """The time in µs for which a subscription is valid without a sign of life. Readers send three signs in
    this time.

    With ``None``, a subscription is valid until it is withdrawn, as in the thesis (and in DDS by default).
    """
    spread: float = 0.5
    """The largest random delay of a repetition, as a share of ``every``.

    Without a delay, subscribers that start together would repeat at the same times, and their frames would
    collide.
    """

    def after(self, now: Instant, period: Duration, chance: Random) -> Instant:
        """Return the time one period after ``now``, with a random delay."""
        return now + round(period * (1 + self.spread * chance.random()))

    @property
    def renewal(self) -> Duration | None:
        """The period in µs of signs of life; ``None`` without a lease."""
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
    """Parameters of EATDDS, which control how the role of rendezvous node moves."""

    round: Duration = 350 * SECOND
    """The time in µs for which a node has the role. [D48]"""
    reports: Duration = 350 * SECOND
    """The period in µs in which nodes report their energy. [D47]"""
    reporters: Literal["all", "cluster"] = "all"
    """The nodes that report: all, as in the thesis, or only those that can be elected."""
    slack: float = 0.0
    """The share below the maximum energy up to which a node is a candidate. The nearest candidate is elected.
    [D51]
    """
    sign: Duration = 70 * SECOND
    """The period in µs of an RN's signs of life. After three missing signs another node replaces it."""
    settle: Duration = 5 * SECOND
    """The time in µs for which an RN sends no ACKs after a restart, or after it replaced a dead RN.
    Subscribers need this time to find it.
    """

    def __post_init__(self) -> None:
        if min(self.round, self.reports, self.sign, self.settle) <= 0 or not 0 <= self.slack < 1:
            raise UsageError("Rotation: durations are above 0, slack is from 0 to below 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveSettings:
    """Parameters of ARQoS: rounds and thresholds; the thesis gives no values.  [D56–D59]"""

    round: Duration = 30 * SECOND
    """T: the time in µs for which a receiver counts."""
    assurance: Duration = 2 * SECOND
    """ATI: the time in µs for which the receiver then waits for late packets. [D58]"""
    pause: Duration = 8 * SECOND
    """TI: the pause in µs between two rounds."""
    margin: float = 5.0
    """The distance of the two thresholds from the requested level, in percent. [D59]"""

    def __post_init__(self) -> None:
        if self.round <= 0 or min(self.assurance, self.pause) < 0 or self.margin < 0:
            raise UsageError("Adaptive: a round is above 0, the other times and the margin not negative")


@dataclass(frozen=True, kw_only=True)
class DdsDeployment:
    """The topics, nodes and parameters that are common to all nodes."""

    topics: TopicSet
    table: tuple[Peer, ...]
    """The rendezvous nodes by hash, as many as MaxTopics. [D10]"""
    publishers: Mapping[TopicId, tuple[Peer, ...]]
    """The publishers of each topic, which are known before deployment. [D15]"""
    mode: ModeName = "DefTDDS"
    reliable: ReliableSettings = ReliableSettings()
    discovery: DiscoverySettings = DiscoverySettings()
    rotation: RotationSettings = RotationSettings()
    adaptive: AdaptiveSettings = AdaptiveSettings()
    schedule: SlotSchedule | None = None
    """The schedule of interference-free scheduling, if used.  [D32]"""
    conditions: Mapping[str, PublisherMachine] = field(default_factory=dict)
    """The conditions that publishers' nodes can evaluate, by name."""
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
        """Return the RN of a topic by the rule RN_address = Topic_id modulus MaxTopics, looked up in the
        table. [D10]
        """
        return self.table[topic % len(self.table)]

    def publishers_of(self, topic: TopicId) -> tuple[Peer, ...]:
        """Return the publishers of a topic."""
        return self.publishers.get(topic, ())

    def successors(self, topic: TopicId) -> tuple[Peer, ...]:
        """Return the nodes that may take the role, in order: the main RN, then the publishers."""
        return tuple(dict.fromkeys((self.rendezvous(topic), *self.publishers_of(topic))))
