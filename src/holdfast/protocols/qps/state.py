"""What a node remembers: for each topic what its clients do, and the logical brokers that it acts for."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from ...model.instant import BEGINNING, Instant
from .area import NOTHING, Area, joined, meet
from .message import At, Publication
from .tree import Scope
from .wishes import Asked, Wishes

Key = Scope | At
"""A subscriber: a logical broker by its scope, wherever it is; a node by its address."""
Publisher = tuple[At, str]
"""A publisher: its node, and its name there."""


@dataclass(frozen=True, slots=True)
class Advert:
    """What a node publishes, as it said last."""

    area: Area
    version: Instant
    renewed: Instant


@dataclass(slots=True)
class Logical:
    """A logical broker: its subscription table, its advertisement table, and what it asks for itself."""

    topic: str
    scope: Scope
    links: dict[Key, Wishes] = field(default_factory=dict)
    adverts: dict[At, Advert] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    version: Instant = BEGINNING
    """Of its latest own word."""
    turn: Instant = 0
    """Since when this node is it, where that changes."""
    covering: dict[At, Advert] = field(default_factory=dict)
    """A leaf: what publishers said that they cover."""
    missing: Area = NOTHING
    """What nobody covers, of what has to be."""
    reports: dict[Scope, Advert] = field(default_factory=dict)
    """What brokers below said that nobody covers."""
    latest: dict[Publisher, Publication] = field(default_factory=dict)
    """Of each publisher, where new subscribers are to have it."""

    @property
    def covered(self) -> Area:
        """``cov(u)``: all that is registered here."""
        return joined(wishes.registered() for wishes in self.links.values())

    @property
    def empty(self) -> bool:
        return not (self.links or self.adverts or self.asked)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A subscription of a client."""

    area: Area
    epsilon: float
    guaranteed: bool


@dataclass(frozen=True, slots=True)
class Sent(Asked):
    """What a node asked for its clients, and of which logical broker: there it ends, too."""

    target: Scope


@dataclass(slots=True)
class Hosted:
    """A topic at a node that hosts publishers and subscribers."""

    adverts: dict[str, list[Area]] = field(default_factory=dict)
    told: dict[Scope, Advert] = field(default_factory=dict)
    """Which brokers were told of them."""
    heard: dict[Scope, Wishes] = field(default_factory=dict)
    """What leaves want of publishers here."""
    wanted: dict[str, list[Wanted]] = field(default_factory=dict)
    asked: list[Sent] = field(default_factory=list)
    reports: dict[Scope, Advert] = field(default_factory=dict)
    """What brokers said that nobody publishes."""
    notified: dict[tuple[At, Instant], Instant] = field(default_factory=dict)
    """Events that subscribers here were told of, and when."""
    latest: dict[Publisher, Publication] = field(default_factory=dict)
    """Of each publisher, as subscribers here were told, where new ones are to have it."""
    own: dict[str, Publication] = field(default_factory=dict)
    """The latest of each publisher here."""

    @property
    def published(self) -> Area:
        return joined(area for areas in self.adverts.values() for area in areas)

    @property
    def subscribed(self) -> Area:
        return joined(each.area for some in self.wanted.values() for each in some)

    @property
    def missing(self) -> Area:
        """What nobody publishes, of what is wanted here."""
        return meet(joined(report.area for report in self.reports.values()), self.subscribed)


@dataclass(slots=True)
class State:
    """All of it."""

    hosted: dict[str, Hosted] = field(default_factory=dict)
    logical: dict[tuple[str, Scope], Logical] = field(default_factory=dict)
    latest: Instant = BEGINNING
    """The latest version, or time of an event, that this node gave out."""
    clients: dict[str, Instant] = field(default_factory=dict)
    """When each was last heard of, where they have to say that they are there."""
    repeated: int = 0
    """How many events came again."""
    chance: Random = field(default_factory=lambda: Random(0))
    """This node's own, by the seed that it was started with."""

    def version(self, now: Instant) -> Instant:
        """A number above all that this node gave out, and about what the time is."""
        self.latest = max(now, self.latest + 1)
        return self.latest

    @property
    def links(self) -> int:
        """How many publish-subscribe links are registered here: at brokers, for the publishers, and those to
        the subscribers themselves."""
        brokers = sum(bool(w.registered()) for role in self.logical.values() for w in role.links.values())
        return brokers + sum(_links(hosted) for hosted in self.hosted.values())


def _links(hosted: Hosted) -> int:
    area = hosted.published
    leaves = sum(any(wishes.said(area, "here")) for wishes in hosted.heard.values())
    return leaves + sum(map(len, hosted.wanted.values()))
