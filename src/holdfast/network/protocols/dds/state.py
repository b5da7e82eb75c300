"""The state of a node of the DDS family: one class with the data of all its roles."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from ....model.event import Value
from ....model.instant import Instant
from ....model.protocol import Peer
from .arqos import LevelAgreement, SampleAssembly, SentHistory
from .cluster import EnergyCluster, IncomingTransfer, RoleHolder, TableTransfer
from .message import DdsSubscribe, DdsUnsubscribe, Demand, SampleStream
from .placement import PlacedConditions
from .registry import SubscriptionTable
from .rendezvous import Rendezvous
from .rtdds import LastDelivered, ReliableWriter
from .topic import TopicId

NoticeContent = TypeVar("NoticeContent")
Notices = dict[tuple[Peer, Peer, int], NoticeContent]
"""For HyTDDS: contents of the RN's notifications to publishers, by publisher, subscriber and reader."""


@dataclass(slots=True)
class DataReader:
    """A data reader: the subscription to one topic, and the number of times that it was sent. [D7, D14]"""

    subscription: str
    wish: DdsSubscribe
    times_sent: int = 0


@dataclass(slots=True)
class AssuredReceiver:
    """A receiver that requested a level from this publisher, with the mode that it ordered."""

    percent: float
    version: Instant
    reliable: bool = False


@dataclass(slots=True)
class DdsState:
    """The state of a node. ``counted`` contains counters for statistics."""

    session: Instant = 0
    version: Instant = 0
    """The latest version that this node has assigned to a subscription."""
    counted: Counter[str] = field(default_factory=Counter)

    # As a publisher.
    writers: dict[SampleStream, ReliableWriter] = field(default_factory=dict)
    waiting_for_slot: deque[tuple[TopicId, Mapping[str, Value], Instant]] = field(default_factory=deque)
    """Samples that wait for the node's slot.  [D32]"""
    demands: dict[TopicId, Demand] = field(default_factory=dict)
    placed_conditions: PlacedConditions = field(default_factory=PlacedConditions)
    subscribers: dict[TopicId, SubscriptionTable] = field(default_factory=dict)
    """For BLTDDS and HyTDDS: a publisher's own tables. [D40, D43]"""
    assured_receivers: dict[TopicId, dict[Peer, AssuredReceiver]] = field(default_factory=dict)
    histories: dict[TopicId, SentHistory] = field(default_factory=dict)

    # As a subscriber.
    chance: Random = field(default_factory=lambda: Random(0))
    """The node's own random numbers, from its name and its seed."""
    readers: dict[int, DataReader] = field(default_factory=dict)
    last_reader_number: int = 0
    last_delivered: LastDelivered = field(default_factory=dict)
    start_times: dict[TopicId, int] = field(default_factory=dict)
    """For each topic, the latest start time of its RN that this reader knows."""
    agreements: dict[TopicId, LevelAgreement] = field(default_factory=dict)
    assemblies: dict[tuple[Peer, SampleStream], SampleAssembly] = field(default_factory=dict)

    # As a rendezvous node.
    rendezvous: dict[TopicId, Rendezvous] = field(default_factory=dict)
    unsent_notices: dict[TopicId, Notices[DdsSubscribe | DdsUnsubscribe]] = field(default_factory=dict)
    """Notifications that are still to be sent."""
    unconfirmed_notices: dict[TopicId, Notices[DdsSubscribe]] = field(default_factory=dict)
    """Notifications that publishers have not confirmed."""
    repetition_counts: dict[TopicId, int] = field(default_factory=dict)
    """The number of times that the unconfirmed notifications of a topic were repeated."""
    confirmed_versions: dict[TopicId, Notices[Instant]] = field(default_factory=dict)
    """The versions that publishers have confirmed."""
    clusters: dict[TopicId, EnergyCluster] = field(default_factory=dict)
    """For EATDDS: the round of each topic whose role this node has."""
    transfers: dict[TopicId, TableTransfer] = field(default_factory=dict)
    incoming: dict[TopicId, IncomingTransfer] = field(default_factory=dict)
    roles: dict[TopicId, RoleHolder] = field(default_factory=dict)
    """For EATDDS: the known holder of each role."""
    predecessors: dict[TopicId, tuple[Peer, ...]] = field(default_factory=dict)
    """For EATDDS: the readers that RNs reported for their successors."""
    suspected: dict[TopicId, int] = field(default_factory=dict)
    """For EATDDS: the number of times that each RN was asked whether it is alive."""
    without_table: set[TopicId] = field(default_factory=set)
    """For EATDDS: topics whose RN does not seem to have this subscriber in its table."""
    joules: float = 0.0

    def of_topic(self, topic: TopicId) -> Iterator[DataReader]:
        """Iterate over the readers of a topic."""
        return (reader for reader in self.readers.values() if reader.wish.topic == topic)

    def reads(self, topic: TopicId) -> bool:
        """Whether this node has a reader of a topic."""
        return any(True for _ in self.of_topic(topic))

    def newer(self, now: Instant) -> Instant:
        """Return a version above all earlier ones, close to ``now``."""
        self.version = max(now, self.version + 1)
        return self.version
