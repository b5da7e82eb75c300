"""A subscriber that moves, as its own device knows it: the ticket that it carries, and what it has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from ...errors import UsageError
from ...model.instant import Instant
from ...model.space import Polygon, Rectangle, Shape
from ..qps.message import At
from ..qps.request import Notify

Sign = tuple[str, str, Instant, tuple[float, ...]]
"""By which an event is known that comes again from another proxy."""
REMEMBERED = 1000
_RECTANGLE = 2


class Wish(msgspec.Struct, frozen=True, array_like=True):
    """What it wants: the events of a topic in a region, which is two corners of a rectangle or all of a
    polygon."""

    topic: str
    outline: tuple[At, ...]
    epsilon: float = 1.5

    @property
    def region(self) -> Shape:
        return Rectangle(*self.outline) if len(self.outline) == _RECTANGLE else Polygon(self.outline)


def wish(topic: str, region: Shape, epsilon: float = 1.5) -> Wish:
    """A wish, by a region."""
    match region:
        case Rectangle(low, high):
            corners: Iterable[tuple[float, ...]] = (low, high)
        case Polygon(corners):
            pass
        case _:
            raise UsageError("a region is a rectangle or a polygon; draw a polygon round the circle")
    return Wish(topic, tuple((float(x), float(y)) for x, y in corners), epsilon)


class Ticket(msgspec.Struct, frozen=True, array_like=True):
    """What it shows to every node that it meets."""

    client: str
    """Its name, which nobody else has."""
    proxy: At
    """Where its proxy is: whoever is nearest to this point."""
    wishes: tuple[Wish, ...] = ()
    components: tuple[str, ...] = ()
    """Those that live with its proxy."""
    turn: int = 0
    """Of its words the latest counts."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What a node has for a subscriber that is there, or was."""

    client: str
    since: Instant
    """Which proxy it is from."""
    number: int
    event: Notify
    first: int = 0
    """What has a lower number and has not come will not come."""


@dataclass(slots=True)
class Traveller:
    """The subscriber; each event is told it once."""

    ticket: Ticket
    since: Instant = 0
    """Of its latest proxy."""
    numbers: set[int] = field(default_factory=set)
    """Of events that this one brought, from ``least`` on; all before have come."""
    least: int = 0
    lost: int = 0
    """How many events its proxies had no room for while it was away."""
    told: dict[Sign, Instant] = field(default_factory=dict)
    """The last events, and by which proxy they came."""

    def arrives(self, **changes: object) -> Ticket:
        """Its ticket at the next node, or with other wishes."""
        self.ticket = msgspec.structs.replace(self.ticket, turn=self.ticket.turn + 1, **changes)
        return self.ticket

    def takes(self, given: Brought) -> Notify | None:
        """The event, if it is new to it."""
        event = given.event
        sign = (event.topic, event.publisher, event.time, tuple(event.location))
        by = self.told.get(sign)
        if given.since > self.since:
            self.since, self.numbers, self.least = given.since, set(), 0
        if given.since == self.since:
            self._gave_up(given.first)
            if not self._numbered(given.number):
                return None
        if by is not None and (by != given.since or given.since < self.since):
            return None
        if len(self.told) >= REMEMBERED:
            del self.told[next(iter(self.told))]
        self.told[sign] = given.since
        return event

    def _gave_up(self, first: int) -> None:
        """The latest proxy keeps nothing below that number."""
        self.lost += sum(number not in self.numbers for number in range(self.least, first))
        self.numbers = {number for number in self.numbers if number >= first}
        self.least = max(self.least, first)
        self._close_up()

    def _numbered(self, number: int) -> bool:
        """Whether the latest proxy has not brought that one before."""
        if number < self.least or number in self.numbers:
            return False
        self.numbers.add(number)
        self._close_up()
        return True

    def _close_up(self) -> None:
        while self.least in self.numbers:
            self.numbers.remove(self.least)
            self.least += 1
