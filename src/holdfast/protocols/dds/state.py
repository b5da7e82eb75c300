"""What a node of the DDS family remembers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from ...model.event import Value
from ...model.instant import Instant
from ...model.protocol import Peer
from .arqos import Agreement, Assembly, History
from .cluster import Cluster, Incoming, Known, Transfer
from .message import Demand, Stream, Subscribe, Unsubscribe
from .placement import Placed
from .registry import Registry
from .rendezvous import Rendezvous
from .rtdds import Heard, Writer
from .topic import TopicId


@dataclass(slots=True)
class Reader:
    """A data reader: a subscription's wish for one topic, and how often it was said.  [D7, D14]"""

    subscription: str
    wish: Subscribe
    said: int = 0


@dataclass(slots=True)
class Assured:
    """A receiver that asked this publisher for a level, and the mode that it ordered."""

    percent: float
    version: Instant
    reliable: bool = False


@dataclass(slots=True)
class State:
    """All of it; ``counted`` says what the node has done."""

    session: Instant = 0
    version: Instant = 0
    """The latest that was given to a wish."""
    counted: Counter[str] = field(default_factory=Counter)

    # As a publisher.
    writers: dict[Stream, Writer] = field(default_factory=dict)
    slotted: deque[tuple[TopicId, Mapping[str, Value], Instant]] = field(default_factory=deque)
    """Samples that wait for the node's slot.  [D32]"""
    demands: dict[TopicId, Demand] = field(default_factory=dict)
    placed: Placed = field(default_factory=Placed)
    subscribers: dict[TopicId, Registry] = field(default_factory=dict)
    """BLTDDS and HyTDDS: a publisher's own table.  [D40, D43]"""
    assured: dict[TopicId, dict[Peer, Assured]] = field(default_factory=dict)
    histories: dict[TopicId, History] = field(default_factory=dict)

    # As a subscriber.
    chance: Random = field(default_factory=lambda: Random(0))
    """This node's own, by its name and the seed that it was started with."""
    readers: dict[int, Reader] = field(default_factory=dict)
    numbered: int = 0
    heard: Heard = field(default_factory=dict)
    boots: dict[TopicId, int] = field(default_factory=dict)
    """When the RN of each topic was started, as far as this reader has heard."""
    agreements: dict[TopicId, Agreement] = field(default_factory=dict)
    assemblies: dict[tuple[Peer, Stream], Assembly] = field(default_factory=dict)

    # As a rendezvous node.
    rendezvous: dict[TopicId, Rendezvous] = field(default_factory=dict)
    untold: dict[TopicId, dict[tuple[Peer, Peer, int], Subscribe | Unsubscribe]] = field(default_factory=dict)
    """HyTDDS: what publishers are to be told, by publisher, subscriber and reader."""
    notices: dict[TopicId, dict[tuple[Peer, Peer, int], Subscribe]] = field(default_factory=dict)
    """HyTDDS: what publishers have not recognised yet, by publisher, subscriber and reader."""
    noticed: dict[TopicId, int] = field(default_factory=dict)
    """How often that was repeated."""
    recognised: dict[TopicId, dict[tuple[Peer, Peer, int], Instant]] = field(default_factory=dict)
    """The versions that they have."""
    clusters: dict[TopicId, Cluster] = field(default_factory=dict)
    """EATDDS: the round of each topic whose role this node has."""
    transfers: dict[TopicId, Transfer] = field(default_factory=dict)
    incoming: dict[TopicId, Incoming] = field(default_factory=dict)
    roles: dict[TopicId, Known] = field(default_factory=dict)
    """EATDDS: who has which role, as far as this node has heard."""
    predecessors: dict[TopicId, tuple[Peer, ...]] = field(default_factory=dict)
    """EATDDS: the readers that RNs knew, for who takes their place."""
    suspected: dict[TopicId, int] = field(default_factory=dict)
    """EATDDS: how often RNs were asked whether they live."""
    lonely: set[TopicId] = field(default_factory=set)
    """EATDDS: topics whose RN does not seem to know this subscriber."""
    joules: float = 0.0

    def of_topic(self, topic: TopicId) -> Iterator[Reader]:
        """The readers that are bound to a topic."""
        return (reader for reader in self.readers.values() if reader.wish.topic == topic)

    def newer(self, now: Instant) -> Instant:
        """A version that is later than all before it."""
        self.version = max(now, self.version + 1)
        return self.version
