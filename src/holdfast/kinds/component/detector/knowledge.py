"""Knowledge points: events with their validity, and the total order in which they are processed. [F54,
F55]"""

from __future__ import annotations

from itertools import takewhile

import msgspec

from ....model.event import Event, Status, Value
from ....model.instant import Instant
from ....model.space import Point

Where = Point | str | None
"""A location: coordinates, the name of a place, or `None` if unknown."""


class Knowledge(msgspec.Struct, frozen=True, gc=False):
    """A knowledge point: an event with its validity, or several events merged into one.

    `signature` identifies the scope of a component's event; readings have no signature. `latest` is the
    latest of merged events, `count` is their number. The class opts out of garbage collection, because a
    knowledge point never refers to itself.
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
        """The coordinates if there are any, otherwise the place."""
        return self.place if self.at is None else self.at

    @property
    def newest(self) -> Knowledge:
        """The latest of merged events; for a single event, the event itself."""
        return self if self.latest is None else self.latest


def of_event(event: Event) -> Knowledge:
    """Convert a reading to knowledge. Its status is atomic, and it is valid at its own time."""
    attributes = {name: None if v is None or v != v else v for name, v in event.attributes.items()}
    at = known_part(event.location)
    return Knowledge(event.topic, event.time, event.source, attributes, at, event.place)


def known_part(at: Point | None) -> Point | None:
    """Return a point up to its first missing coordinate, or `None` if no coordinate is left."""
    if at is None or all(c == c for c in at):
        return at
    return tuple(takewhile(lambda c: c == c, at)) or None


def to_event(known: Knowledge) -> Event:
    """Convert knowledge to an event without status, signature and validity."""
    return Event(known.topic, known.time, known.source, known.attributes, 0, known.at, known.place)


Standing = tuple[int, Point, str]
"""A location as a sort key: 0 for points, 1 for places, 2 for unknown locations; then the point and the
text."""


def standing(known: Knowledge) -> Standing:
    """Return the location of knowledge as a sort key.

    A point is preferred to a place. Knowledge with neither gets a location of its own for each publisher or
    scope.
    """
    if known.at is not None:
        return (0, known.at, "")
    if known.place is not None:
        return (1, (), known.place)
    return (2, (), known.source if known.signature is None else known.signature)


def rank(where: Where) -> Standing:
    """Return a sort key of locations: points first, then places, then unknown locations."""
    return (0, where, "") if isinstance(where, tuple) else (2, (), "") if where is None else (1, (), where)


Order = tuple[Instant, Standing, str, str, str, str]
"""The sort key that `order` returns."""


def order(known: Knowledge) -> Order:
    """Return the sort key of knowledge, by time first. It is a total order: where the thesis leaves a tie,
    the least point is taken."""
    scope = known.signature or ""
    return (known.time, standing(known), known.topic, known.status, scope, known.source)
