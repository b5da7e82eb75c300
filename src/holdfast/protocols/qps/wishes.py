"""What one subscriber wants of a broker, part by part of space.

Of each part the latest word counts.  So words may come late, twice or in another order, and the broker ends
up with what was said last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from ...model.instant import BEGINNING, Instant
from .area import NOTHING, Area, has, join, joined, meet, minus
from .message import At, Source

Kind = Literal["here", "below", "over"]
"""A part is registered at this broker, was passed to one below it, or is wanted no more."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A part of space of which the latest word is this."""

    area: Area
    version: Instant
    kind: Kind
    epsilon: float = 0.0
    """As it was received."""
    fulfil: bool = False
    renewed: Instant = BEGINNING
    """When it was said, or said again."""


@dataclass(slots=True)
class Wishes:
    """All words of one subscriber; their areas share nothing."""

    at: At
    """Where events are sent to."""
    turn: Instant = 0
    newest: Instant = BEGINNING
    patches: list[Patch] = field(default_factory=list)
    unfulfilled: Area = NOTHING
    """What the subscriber was told that nobody publishes."""

    def moved(self, source: Source, version: Instant) -> None:
        """The subscriber speaks from there, unless it has spoken since from elsewhere."""
        if (source.turn, version) >= (self.turn, self.newest):
            self.at, self.turn, self.newest = source.at, source.turn, version

    def registered(self, fulfil: bool = False) -> Area:
        """``cov^q(v)``; with ``fulfil`` the part that has to be covered."""
        return joined(p.area for p in self.patches if p.kind == "here" and p.fulfil >= fulfil)

    def wants(self, location: At) -> bool:
        """Whether events from there are for this subscriber, from here."""
        return any(p.kind == "here" and has(p.area, location) for p in self.patches)

    def news(self, area: Area, version: Instant) -> Area:
        """The part of an area of which a word of that version is the latest."""
        for patch in self.patches:
            if patch.version >= version:
                area = minus(area, patch.area)
        return area

    def said(self, area: Area, kind: Kind) -> Iterator[tuple[Area, Patch]]:
        """What is known of an area, if it is of that kind."""
        for patch in self.patches:
            if patch.kind == kind and (part := meet(patch.area, area)):
                yield part, patch

    def put(self, new: Patch) -> None:
        """Take a word in place of what was known of its area."""
        self.cut(new.area)
        for i, patch in enumerate(self.patches):
            if patch == replace(new, area=patch.area):
                self.patches[i] = replace(patch, area=join(patch.area, new.area))
                return
        self.patches.append(new)

    def cut(self, area: Area) -> None:
        """Know nothing of an area."""
        left = ((minus(patch.area, area), patch) for patch in self.patches)
        self.patches = [replace(patch, area=rest) for rest, patch in left if rest]

    def renew(self, area: Area, version: Instant, now: Instant) -> None:
        """The same word again."""
        self.patches = [
            replace(patch, renewed=now) if patch.version == version and meet(patch.area, area) else patch
            for patch in self.patches
        ]

    def forget(self, over: Instant, stale: Instant) -> bool:
        """Forget ends from before ``over``, and words that were not renewed since ``stale``; whether
        something that was wanted is gone."""
        kept = [p for p in self.patches if (p.version >= over if p.kind == "over" else p.renewed >= stale)]
        gone = any(p.kind == "here" for p in self.patches if p not in kept)
        self.patches = kept
        return gone


@dataclass(frozen=True, slots=True)
class Asked:
    """What a broker or a host asks of others, and on what terms."""

    area: Area
    epsilon: float
    fulfil: bool
    version: Instant
