"""Knowledge points: events, and whether what they say is still so.  [F54, F55]"""

from __future__ import annotations

from itertools import takewhile

import msgspec

from ...model.event import Event, Status, Value
from ...model.instant import Instant
from ...model.space import Point

Where = Point | str | None
"""Coordinates, or the name of a place, or unknown."""


class Knowledge(msgspec.Struct, frozen=True, gc=False):
    """A knowledge point: an event with its validity, or several events as one.  Nothing in it leads back to
    it, so nobody need look for that.

    ``signature`` tells the events of one component from another's of the same topic; a reading has
    none.  ``latest`` is the latest of the events that it stands for, where they are several.
    """

    topic: str
    time: Instant
    source: str
    attributes: dict[str, Value]
    at: Point | None = None
    place: str | None = None
    status: Status = "atomic"
    signature: str | None = None
    valid: bool = True
    count: int = 1
    latest: Knowledge | None = None

    @property
    def location(self) -> Where:
        """Where it was: at a point, else at a place."""
        return self.place if self.at is None else self.at

    @property
    def newest(self) -> Knowledge:
        """The event that contributed last."""
        return self if self.latest is None else self.latest


def of_event(event: Event) -> Knowledge:
    """What a reading says: atomic, true at its moment."""
    attributes = {name: None if v is None or v != v else v for name, v in event.attributes.items()}
    return Knowledge(
        event.topic, event.time, event.source, attributes, known_part(event.location), event.place
    )


def known_part(at: Point | None) -> Point | None:
    """A location as far as its coordinates are known: NaN is missing, and there is no y without x."""
    if at is None or all(c == c for c in at):
        return at
    return tuple(takewhile(lambda c: c == c, at)) or None


def to_event(known: Knowledge) -> Event:
    """The event that a component publishes."""
    return Event(known.topic, known.time, known.source, known.attributes, 0, known.at, known.place)


Standing = tuple[int, Point, str]


def standing(known: Knowledge) -> Standing:
    """Where in the cube it stands, in lexicographic order: at a point, else at a place; without a
    location, at a place of its publisher's own."""
    if known.at is not None:
        return (0, known.at, "")
    if known.place is not None:
        return (1, (), known.place)
    return (2, (), known.source if known.signature is None else known.signature)


def rank(where: Where) -> Standing:
    """Where a location stands among others: points, then places, then none."""
    return (0, where, "") if isinstance(where, tuple) else (2, (), "") if where is None else (1, (), where)


Order = tuple[Instant, Standing, str, str, str, str]


def order(known: Knowledge) -> Order:
    """A total order of knowledge, by time first; the least is taken where the thesis leaves a tie."""
    return (
        known.time,
        standing(known),
        known.topic,
        known.status,
        known.signature or "",
        known.source,
    )
