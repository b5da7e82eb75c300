"""The device of a mobile subscriber: its ticket, and the events that it has received."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from ....errors import UsageError
from ....model.instant import Instant
from ....model.space import Polygon, Rectangle, Shape
from ..qps.message import At
from ..qps.request import QpsNotify

Sign = tuple[str, str, Instant, tuple[float, ...]]
"""Identifies an event, so that a repetition from another proxy is recognised."""
REMEMBERED = 1000
_RECTANGLE = 2


class TravellerWish(msgspec.Struct, frozen=True, array_like=True):
    """A subscription: the events of a topic in a region.

    ``outline`` contains two corners of a rectangle, or all corners of a polygon.
    """

    topic: str
    outline: tuple[At, ...]
    epsilon: float = 1.5

    @property
    def region(self) -> Shape:
        """The region as a shape, built from ``outline``."""
        return Rectangle(*self.outline) if len(self.outline) == _RECTANGLE else Polygon(self.outline)


def wish(topic: str, region: Shape, epsilon: float = 1.5) -> TravellerWish:
    """Build a subscription to a topic in a rectangle or polygon."""
    match region:
        case Rectangle(low, high):
            corners: Iterable[tuple[float, ...]] = (low, high)
        case Polygon(corners):
            pass
        case _:
            raise UsageError("a region is a rectangle or a polygon; draw a polygon round the circle")
    return TravellerWish(topic, tuple((float(x), float(y)) for x, y in corners), epsilon)


class Ticket(msgspec.Struct, frozen=True, array_like=True):
    """The data that a subscriber presents to every node that it meets."""

    client: str
    """The name of the subscriber, unique in the network."""
    proxy: At
    """A point; the node nearest to it is the subscriber's proxy."""
    wishes: tuple[TravellerWish, ...] = ()
    components: tuple[str, ...] = ()
    """The names of the components that its proxy hosts."""
    turn: int = 0
    """The number of this ticket. Only the ticket with the highest number counts."""


class BroughtEvent(msgspec.Struct, frozen=True):
    """An event that a node delivers to the device of a subscriber."""

    client: str
    since: Instant
    """The time at which the sending node became the proxy, which identifies that proxy."""
    number: int
    event: QpsNotify
    first: int = 0
    """Missing events with lower numbers will not arrive any more."""


@dataclass(slots=True)
class Traveller:
    """The device of a mobile subscriber. It delivers each event once."""

    ticket: Ticket
    since: Instant = 0
    """The time at which the latest proxy became the proxy."""
    numbers: set[int] = field(default_factory=set)
    """The numbers, from ``least`` on, of the latest proxy's events that have arrived. All earlier events have
    arrived.
    """
    least: int = 0
    lost: int = 0
    """The number of events that its proxies dropped for lack of room."""
    delivered: dict[Sign, Instant] = field(default_factory=dict)
    """The last delivered events, each with the proxy from which it came."""

    def next_ticket(self, **changes: object) -> Ticket:
        """Return the ticket for the next node. ``changes`` replaces fields of the previous ticket."""
        self.ticket = msgspec.structs.replace(self.ticket, turn=self.ticket.turn + 1, **changes)
        return self.ticket

    def accept(self, given: BroughtEvent) -> QpsNotify | None:
        """Return the event if it is new, and ``None`` for a repetition."""
        event = given.event
        sign = (event.topic, event.publisher, event.time, tuple(event.location))
        by = self.delivered.get(sign)
        if given.since > self.since:
            self.since, self.numbers, self.least = given.since, set(), 0
        if given.since == self.since:
            self._on_given_up(given.first)
            if not self._is_new_number(given.number):
                return None
        if by is not None and (by != given.since or given.since < self.since):
            return None
        if len(self.delivered) >= REMEMBERED:
            del self.delivered[next(iter(self.delivered))]
        self.delivered[sign] = given.since
        return event

    def _on_given_up(self, first: int) -> None:
        """Record that the latest proxy no longer stores events with numbers below ``first``."""
        self.lost += sum(number not in self.numbers for number in range(self.least, first))
        self.numbers = {number for number in self.numbers if number >= first}
        self.least = max(self.least, first)
        self._close_up()

    def _is_new_number(self, number: int) -> bool:
        """Record a number; return whether it is new from the latest proxy."""
        if number < self.least or number in self.numbers:
            return False
        self.numbers.add(number)
        self._close_up()
        return True

    def _close_up(self) -> None:
        while self.least in self.numbers:
            self.numbers.remove(self.least)
            self.least += 1
