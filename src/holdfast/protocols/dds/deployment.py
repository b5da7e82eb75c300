"""What is compiled into every node before it is deployed.  [D10, D15]"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, Protocol, get_args

from ...errors import UsageError, did_you_mean
from ...model.event import Event, Transition
from ...model.instant import MILLISECOND, SECOND, Duration, Instant
from ...model.protocol import Peer
from ...model.space import Point
from .ifs import Schedule
from .topic import Topic, TopicId, Topics

ModeName = Literal["DefTDDS", "BLTDDS", "HyTDDS", "EATDDS"]
MODES: tuple[ModeName, ...] = get_args(ModeName)


class Condition(Protocol):
    """A condition machine, as far as a publisher's node runs it."""

    def initial(self) -> Any: ...
    def react(self, state: Any, event: Event) -> tuple[Any, list[Transition]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliable:
    """RTDDS: ring, timer and patience of a writer."""

    ring: int = 20
    """Messages that wait or are unacknowledged.  [D18]"""
    rto: Duration = 400 * MILLISECOND
    """The retransmission timeout.  [D21]"""
    retries: int | None = None
    """After so many repetitions a message is given up, and not its readers; none: never.  [D22]"""
    acknowledged: Literal["aggregated", "end-to-end"] = "aggregated"
    """By whom: the RN when all have it (chapter 6), or straight by the reader (chapter 4 has one).  [D25]"""

    def __post_init__(self) -> None:
        if self.ring < 1:
            raise UsageError(f"a ring of {self.ring} messages; it must hold one at least")
        if self.rto <= 0:
            raise UsageError(f"a retransmission timeout of {self.rto} µs; it must be above 0")
        if self.retries is not None and self.retries < 0:
            raise UsageError(f"{self.retries} retries; it must be 0 at least, or None for no limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """How often a subscription is said [D14], and for how long it counts."""

    repeats: int = 10
    every: Duration = SECOND
    lease: Duration | None = None
    """Three times in it readers say that they are there; who has not for so long is forgotten.
    None: a subscription counts until it is withdrawn, as in the thesis (and in DDS, unless asked for)."""
    spread: float = 0.5
    """By what share of ``every`` a repetition comes later at most, by chance: subscribers that begin together
    would else repeat at the same instants, and their frames collide every time."""

    def after(self, now: Instant, period: Duration, chance: Random) -> Instant:
        """A period from now, or somewhat later."""
        return now + round(period * (1 + self.spread * chance.random()))

    @property
    def renewal(self) -> Duration | None:
        return None if self.lease is None else self.lease * 3 // 10

    def __post_init__(self) -> None:
        if self.lease is not None and self.lease < 4 * self.every:
            raise UsageError(
                f"a lease of {self.lease} µs, with subscriptions {self.every} µs apart; it is four times as "
                "long at least, or None for no end"
            )
        if self.repeats < 1 or self.every <= 0:
            raise UsageError(
                f"a subscription that is said {self.repeats} times, {self.every} µs apart; "
                "it is said once at least, and some time apart"
            )
        if not 0 <= self.spread <= 1:
            raise UsageError(f"a spread of {self.spread}; it is a share of a period, from 0 to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """EATDDS: how the role of rendezvous node moves."""

    round: Duration = 350 * SECOND
    """How long a node has the role.  [D48]"""
    reports: Duration = 350 * SECOND
    """How often nodes report their energy.  [D47]"""
    reporters: Literal["all", "cluster"] = "all"
    """Who does: every node, as the thesis has it, or those that can be elected."""
    slack: float = 0.0
    """Nodes with this share less than the most energy are as good; of them the nearest is taken.  [D51]"""
    sign: Duration = 70 * SECOND
    """How often an RN shows that it is there; after three that are missing another takes its place."""
    settle: Duration = 5 * SECOND
    """How long who takes the place of a dead RN, or was restarted, acknowledges nothing: first subscribers
    must find it."""

    def __post_init__(self) -> None:
        if min(self.round, self.reports, self.sign, self.settle) <= 0 or not 0 <= self.slack < 1:
            raise UsageError("Rotation: durations are above 0, slack is from 0 to below 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive:
    """ARQoS: its rounds and thresholds; the thesis gives no values.  [D56–D59]"""

    round: Duration = 30 * SECOND
    """T: how long a receiver counts."""
    assurance: Duration = 2 * SECOND
    """ATI: how long it then waits for what is late.  [D58]"""
    pause: Duration = 8 * SECOND
    """TI: between two rounds."""
    margin: float = 5.0
    """Percent below and above the level that was asked for: the two thresholds.  [D59]"""

    def __post_init__(self) -> None:
        if self.round <= 0 or min(self.assurance, self.pause) < 0 or self.margin < 0:
            raise UsageError("Adaptive: a round is above 0, the other times and the margin not negative")


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """Topics, nodes and parameters that all nodes know."""

    topics: Topics
    table: tuple[Peer, ...]
    """Rendezvous nodes by hash: as many as MaxTopics.  [D10]"""
    publishers: Mapping[TopicId, tuple[Peer, ...]]
    """Known before deployment.  [D15]"""
    mode: ModeName = "DefTDDS"
    reliable: Reliable = Reliable()
    discovery: Discovery = Discovery()
    rotation: Rotation = Rotation()
    adaptive: Adaptive = Adaptive()
    schedule: Schedule | None = None
    """Interference-free scheduling, if there is to be.  [D32]"""
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    """Conditions that publishers' nodes can run, by name."""
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
        """RN_address = Topic_id Modulus MaxTopics, looked up in the table.  [D10, AT10]"""
        return self.table[topic % len(self.table)]

    def publishers_of(self, topic: TopicId) -> tuple[Peer, ...]:
        return self.publishers.get(topic, ())

    def topic(self, id: TopicId) -> Topic | None:
        return self.topics.by_id.get(id)

    def successors(self, topic: TopicId) -> tuple[Peer, ...]:
        """Who has the role when nobody else has: the main RN, then publishers, in order."""
        return tuple(dict.fromkeys((self.rendezvous(topic), *self.publishers_of(topic))))
