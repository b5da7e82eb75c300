"""The requests of one subscriber to a broker, by part of space.

For each part, the latest message counts. Therefore messages may arrive late, twice or in another order, with
the same result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from ....model.instant import BEGINNING, Instant
from .area import NOTHING, Area, contains_point, difference, intersection, union, union_of
from .message import At, QpsSource

Kind = Literal["here", "below", "over"]
"""The state of a part: registered at this broker, passed to a broker below, or ended."""


@dataclass(frozen=True, slots=True)
class AreaPatch:
    """A part of space, with the content of the latest message about it."""

    area: Area
    version: Instant
    kind: Kind
    epsilon: float = 0.0
    """The ε of the message."""
    fulfil: bool = False
    last_renewal: Instant = BEGINNING
    """The time of the message or of its last repetition."""

    @property
    def terms(self) -> tuple[Area, float, bool, Instant]:
        """The area, ε, fulfil and version, in the order of a message."""
        return self.area, self.epsilon, self.fulfil, self.version


@dataclass(slots=True)
class RequestTable:
    """All patches of one subscriber; their areas are disjoint."""

    at: At
    """The address to which events are sent."""
    turn: Instant = 0
    newest: Instant = BEGINNING
    patches: list[AreaPatch] = field(default_factory=list)
    unfulfilled: Area = NOTHING
    """The area without a publisher that was reported to the subscriber."""

    def update_address(self, source: QpsSource, version: Instant) -> None:
        """Update the subscriber's address, unless a later message came from elsewhere."""
        if (source.turn, version) >= (self.turn, self.newest):
            self.at, self.turn, self.newest = source.at, source.turn, version

    def registered_area(self, fulfil: bool = False) -> Area:
        """Return ``cov^q(v)``, the registered area; with ``fulfil`` only the part whose coverage must be
        checked.
        """
        return union_of(p.area for p in self.patches if p.kind == "here" and p.fulfil >= fulfil)

    def is_wanted(self, location: At) -> bool:
        """Whether this broker sends events of a location to the subscriber."""
        return any(p.kind == "here" and contains_point(p.area, location) for p in self.patches)

    def newer_part(self, area: Area, version: Instant) -> Area:
        """Return the part of an area for which a message of ``version`` is the latest."""
        for patch in self.patches:
            if patch.version >= version:
                area = difference(area, patch.area)
        return area

    def patches_in(self, area: Area, kind: Kind) -> Iterator[tuple[Area, AreaPatch]]:
        """Yield the patches of a kind within an area, each with its part of the area."""
        for patch in self.patches:
            if patch.kind == kind and (part := intersection(patch.area, area)):
                yield part, patch

    def add(self, new: AreaPatch) -> None:
        """Add a patch in place of the known patches in its area."""
        self.remove(new.area)
        for i, patch in enumerate(self.patches):
            if patch == replace(new, area=patch.area):
                self.patches[i] = replace(patch, area=union(patch.area, new.area))
                return
        self.patches.append(new)

    def remove(self, area: Area) -> None:
        """Remove all patches within an area."""
        left = ((difference(patch.area, area), patch) for patch in self.patches)
        self.patches = [replace(patch, area=rest) for rest, patch in left if rest]

    def renew(self, area: Area, version: Instant, now: Instant) -> None:
        """Record the repetition of a message."""
        for i, patch in enumerate(self.patches):
            if patch.version == version and intersection(patch.area, area):
                self.patches[i] = replace(patch, last_renewal=now)

    def drop_old(self, over: Instant, stale: Instant) -> bool:
        """Drop ends older than ``over`` and patches not renewed since ``stale``; return whether a registered
        patch was dropped.
        """
        remaining = [
            p for p in self.patches if (p.version >= over if p.kind == "over" else p.last_renewal >= stale)
        ]
        is_gone = any(p.kind == "here" for p in self.patches if p not in remaining)
        self.patches = remaining
        return is_gone


@dataclass(frozen=True, slots=True)
class AreaRequest:
    """A request of a broker or a node to brokers or publishers, with its terms."""

    area: Area
    epsilon: float
    fulfil: bool
    version: Instant
