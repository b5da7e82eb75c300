"""The state of a node: its clients by topic, and the logical brokers whose roles it has."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from ....model.instant import BEGINNING, Instant
from .area import NOTHING, Area, intersection, union_of
from .message import At, RoutedPublication
from .request_table import AreaRequest, RequestTable
from .tree import QuadScope

Key = QuadScope | At
"""A subscriber: a logical broker, by its scope, or a node, by its address."""
Publisher = tuple[At, str]
"""A publisher: the address of its node, and its name at that node."""


@dataclass(frozen=True, slots=True)
class AdvertArea:
    """The area of a node's last advertisement or report."""

    area: Area
    version: Instant
    last_renewal: Instant


@dataclass(slots=True)
class LogicalBroker:
    """A logical broker: its subscription table, its advertisement table, and its own requests."""

    topic: str
    scope: QuadScope
    links: dict[Key, RequestTable] = field(default_factory=dict)
    adverts: dict[At, AdvertArea] = field(default_factory=dict)
    requests: list[AreaRequest] = field(default_factory=list)
    version: Instant = BEGINNING
    """The version of the role's latest own message."""
    turn: Instant = 0
    """The time since which the node has had the role, if roles can move."""
    covering: dict[At, AdvertArea] = field(default_factory=dict)
    """At a leaf: the coverage reported by publishers."""
    missing: Area = NOTHING
    """The part of the required area that is not covered."""
    reports: dict[QuadScope, AdvertArea] = field(default_factory=dict)
    """The uncovered areas reported by brokers below."""
    latest: dict[Publisher, RoutedPublication] = field(default_factory=dict)
    """The latest event of each publisher, if new subscribers receive it."""

    @property
    def registered_area(self) -> Area:
        """``cov(u)``: the area that is registered at this broker."""
        return union_of(wishes.registered_area() for wishes in self.links.values())

    @property
    def is_watched(self) -> bool:
        """Whether a subscriber must know which part of its area has no publisher."""
        return any(wishes.registered_area(True) for wishes in self.links.values())

    @property
    def is_empty(self) -> bool:
        """Whether the broker has neither subscribers nor advertisers nor requests."""
        return not (self.links or self.adverts or self.requests)


@dataclass(frozen=True, slots=True)
class ClientSubscription:
    """A subscription of a client."""

    area: Area
    epsilon: float
    guaranteed: bool


@dataclass(frozen=True, slots=True)
class SentRequest(AreaRequest):
    """A node's request for its clients, with the logical broker to which it was sent."""

    target: QuadScope


@dataclass(slots=True)
class HostedTopic:
    """The state of a topic at a node with publishers and subscribers."""

    adverts: dict[str, list[Area]] = field(default_factory=dict)
    informed: dict[QuadScope, AdvertArea] = field(default_factory=dict)
    """The brokers that received the advertisements."""
    leaf_requests: dict[QuadScope, RequestTable] = field(default_factory=dict)
    """The requests of leaves to publishers of this node."""
    subscriptions: dict[str, list[ClientSubscription]] = field(default_factory=dict)
    requests: list[SentRequest] = field(default_factory=list)
    reports: dict[QuadScope, AdvertArea] = field(default_factory=dict)
    """The areas without a publisher, as reported by brokers."""
    delivered: dict[tuple[At, Instant], Instant] = field(default_factory=dict)
    """The delivered events, each with the time of delivery."""
    latest: dict[Publisher, RoutedPublication] = field(default_factory=dict)
    """The latest delivered event of each publisher, if new subscribers receive it."""
    own: dict[str, RoutedPublication] = field(default_factory=dict)
    """The latest event of each publisher of this node."""

    @property
    def advertised_area(self) -> Area:
        """The area that publishers of this node have advertised."""
        return union_of(area for areas in self.adverts.values() for area in areas)

    @property
    def subscribed_area(self) -> Area:
        """The area that subscribers of this node have requested."""
        return union_of(each.area for some in self.subscriptions.values() for each in some)

    @property
    def missing_area(self) -> Area:
        """The part of the requested area without a publisher."""
        return intersection(union_of(report.area for report in self.reports.values()), self.subscribed_area)


@dataclass(slots=True)
class QpsState:
    """The state of a node. Machines change it in place."""

    topics: dict[str, HostedTopic] = field(default_factory=dict)
    logical: dict[tuple[str, QuadScope], LogicalBroker] = field(default_factory=dict)
    latest: Instant = BEGINNING
    """The latest version or event time that this node has assigned."""
    clients: dict[str, Instant] = field(default_factory=dict)
    """The time of each client's last sign of life, if signs are required."""
    repeated: int = 0
    """The number of duplicate events that were not delivered."""
    chance: Random = field(default_factory=lambda: Random(0))
    """The node's own random numbers, from its seed."""

    def version(self, now: Instant) -> Instant:
        """Return a version above all earlier ones, close to the current time."""
        self.latest = max(now, self.latest + 1)
        return self.latest

    @property
    def links(self) -> int:
        """The number of publish-subscribe links at this node: at brokers, for publishers, and to
        subscribers.
        """
        tables = (wishes for role in self.logical.values() for wishes in role.links.values())
        brokers = sum(bool(wishes.registered_area()) for wishes in tables)
        return brokers + sum(_links(hosted) for hosted in self.topics.values())


def _links(hosted: HostedTopic) -> int:
    area = hosted.advertised_area
    leaves = sum(any(wishes.patches_in(area, "here")) for wishes in hosted.leaf_requests.values())
    return leaves + sum(map(len, hosted.subscriptions.values()))
