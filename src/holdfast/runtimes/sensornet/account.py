"""What became of every sample for everybody who wanted it, and when subscriptions were known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...model.event import Value
from ...model.instant import Instant
from ...protocols.dds.interest import holds
from ...protocols.dds.message import PLAIN, Name, Stream
from ...protocols.dds.topic import Topics
from ...sim.frame import NodeId
from .scenario import Subscription

DELIVERED, OVERFLOWED, GIVEN_UP = "delivered", "overflowed", "given up"
WAITING, ON_THE_WAY = "waiting at its writer", "on the way"
LOST, LOST_WITH_ITS_NODE = "lost on the way", "lost with its node"
IN_FLIGHT = (WAITING, ON_THE_WAY)


@dataclass(slots=True)
class Sample:
    """One sample, and who got it when."""

    time: Instant
    wanted: tuple[NodeId, ...]
    came: dict[NodeId, Instant] = field(default_factory=dict)


@dataclass(slots=True)
class Account:
    """Samples that writers took or refused, and their arrivals.

    Everybody who subscribed before a sample was published and wants it counts as one expected delivery.
    """

    topics: Topics
    subscriptions: tuple[Subscription, ...]
    samples: dict[Name, Sample] = field(default_factory=dict)
    issued: int = 0
    """Samples that applications published."""
    overflowed: int = 0
    """Of those, dropped at a full ring."""
    slotted: int = 0
    """Of those, still waiting for a slot, or lost with the node that waited."""
    beforehand: Counter[str] = field(default_factory=Counter)
    """The fates of deliveries that no writer was ever asked for: refused, or waiting for a slot."""
    repeated: int = 0
    given_up: set[Name] = field(default_factory=set)
    subscribed: dict[tuple[NodeId, str], Instant] = field(default_factory=dict)
    registered: dict[tuple[NodeId, str], dict[NodeId, Instant]] = field(default_factory=dict)
    """By subscriber and topic: when which node had it in its table."""

    def wanted(self, stream: Stream, values: Mapping[str, Value], now: Instant) -> tuple[NodeId, ...]:
        """Who wants a sample."""
        return tuple(
            dict.fromkeys(
                each.node
                for each in self.subscriptions
                if each.start <= now
                and (each.stop is None or now < each.stop)
                and (each.interest.condition or PLAIN) == stream.condition
                and any(topic.id == stream.topic for topic in each.interest.concerned(self.topics))
                and holds(each.interest.where, values)
            )
        )

    def take(self, name: Name, values: Mapping[str, Value], time: Instant) -> None:
        """A writer has taken a sample."""
        self.samples[name] = Sample(time, self.wanted(name.stream, values, time))

    def refuse(self, stream: Stream, values: Mapping[str, Value], time: Instant) -> None:
        """A writer has refused a sample."""
        self.overflowed += 1
        self.beforehand[OVERFLOWED] += len(self.wanted(stream, values, time))

    def slot(self, stream: Stream, values: Mapping[str, Value], time: Instant, fate: str) -> None:
        """A sample has waited for a slot that did not come."""
        self.slotted += 1
        self.beforehand[fate] += len(self.wanted(stream, values, time))

    def arrive(self, name: Name, node: NodeId, now: Instant) -> None:
        """A sample was delivered to a node's application."""
        self.samples[name].came.setdefault(node, now)

    def delays(self) -> list[int]:
        """From publication to first delivery, µs."""
        return [at - each.time for each in self.samples.values() for at in each.came.values()]

    def fates(
        self, ringed: Iterable[Name], carried: Iterable[Name], buried: Iterable[Name] = ()
    ) -> Counter[str]:
        """Expected deliveries by what became of them.

        ``ringed`` samples are in the ring of a node that lives, ``carried`` ones in the hands of routing,
        ``buried`` ones were in the ring of a node when it died.
        """
        waiting, on_the_way, lost = set(ringed), set(carried), set(buried)
        found = self.beforehand.copy()
        for name, sample in self.samples.items():
            delivered = sum(node in sample.came for node in sample.wanted)
            found[DELIVERED] += delivered
            found[
                GIVEN_UP if name in self.given_up
                else WAITING if name in waiting
                else ON_THE_WAY if name in on_the_way
                else LOST_WITH_ITS_NODE if name in lost
                else LOST
            ] += len(sample.wanted) - delivered  # fmt: skip
        return +found

    def expected(self) -> int:
        """How many deliveries there should be."""
        return self.beforehand.total() + sum(len(sample.wanted) for sample in self.samples.values())
