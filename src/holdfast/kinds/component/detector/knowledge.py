"""Knowledge points: events with their validity, and the total order of their processing. [F54, F55]"""

from __future__ import annotations

from itertools import takewhile

import msgspec

from ....model.event import Event, Status, Value
from ....model.instant import Instant
from ....model.space import Point

Where = Point | str | None
"""Coordinates, or the name of a place, or unknown."""


class Knowledge(msgspec.Struct, frozen=True, gc=False):
    """A knowledge point: an event with its validity, or several events merged.

    `signature` identifies the scope of a component's event; readings have none. `latest` is the latest of
    merged events. The class opts out of garbage collection, as it never refers to itself.
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
        """Its point, else its place."""
        return self.place if self.at is None else self.at

    @property
    def newest(self) -> Knowledge:
        """The event that contributed last."""
        return self if self.latest is None else self.latest


def of_event(event: Event) -> Knowledge:
    """Convert a reading: its status is atomic, and it is valid at its own time."""
    attributes = {name: None if v is None or v != v else v for name, v in event.attributes.items()}
    at = known_part(event.location)
    return Knowledge(event.topic, event.time, event.source, attributes, at, event.place)


def known_part(at: Point | None) -> Point | None:
    """A point up to its first missing coordinate."""
    if at is None or all(c == c for c in at):
        return at
    return tuple(takewhile(lambda c: c == c, at)) or None


def to_event(known: Knowledge) -> Event:
    """Convert an event of a component."""
    return Event(known.topic, known.time, known.source, known.attributes, 0, known.at, known.place)


Standing = tuple[int, Point, str]


def standing(known: Knowledge) -> Standing:
    """The location as a sort key: point, else place; without one, a location of its own for each
    publisher."""
    if known.at is not None:
        return (0, known.at, "")
    if known.place is not None:
        return (1, (), known.place)
    return (2, (), known.source if known.signature is None else known.signature)


def rank(where: Where) -> Standing:
    """A sort key of locations: points, then places, then unknown."""
    return (0, where, "") if isinstance(where, tuple) else (2, (), "") if where is None else (1, (), where)


Order = tuple[Instant, Standing, str, str, str, str]


def order(known: Knowledge) -> Order:
    """A total order of knowledge, by time first. Where the thesis leaves a tie, the least is taken."""
    scope = known.signature or ""
    return (known.time, standing(known), known.topic, known.status, scope, known.source)
