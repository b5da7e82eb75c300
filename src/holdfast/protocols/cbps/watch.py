"""A condition that a broker watches for one of its connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ...model.instant import Instant
from ...model.protocol import Effect, Peer
from .condition import Condition
from .content import Content, Filter
from .message import About, Part, Subscription
from .routing import Stored


class Moment(NamedTuple):
    """When something happens, and where to put what comes of it."""

    now: Instant
    say: Callable[[Effect], None]


class Watch(Protocol):
    """A condition for the connection that has stored a subscription to it.  *Below* is that connection, on
    the subscriber's side; *above* are those to which the subscription was passed on."""

    part: Part
    stored: Stored
    condition: Condition

    @property
    def peer(self) -> Peer:
        """For whom."""
        return self.stored.source

    @property
    def subscription(self) -> Subscription:
        """What the connection wants."""
        return self.stored.bundle.subscriptions[self.part.place]

    # --- who publishes where ---

    def advertised(self, peer: Peer, advertised: Filter) -> None:
        """An advertisement of a connection that concerns it has come in sight."""

    def unadvertised(self, peer: Peer, advertised: Filter) -> None:
        """One has gone out of sight."""

    def tell(self, moment: Moment) -> None:
        """Say to everybody above and below what is new to them, now that something has changed."""

    def keeps(self, peer: Peer) -> bool:
        """Whether the subscription must stay with a connection above, though nobody there publishes."""

    def retracted(self, peer: Peer) -> None:
        """The subscription was taken back from a connection above."""

    def left(self, peer: Peer, moment: Moment) -> None:
        """A connection is lost that may have been one above."""

    # --- events ---

    def sees(self, content: Content) -> Any:
        """A notification as the condition sees it, and all that are equal; nothing if it cannot matter."""

    def passes(self, seen: Any, sender: Peer, moment: Moment) -> bool:
        """Take an event that has come from a connection; whether it goes on below."""

    def went(self, seen: Any, moment: Moment) -> None:
        """The event went below, for this condition or for others."""

    def missed(self, seen: Any, moment: Moment) -> None:
        """An event that was to go below never arrived."""

    # --- what is said about it ---

    def from_below(self, message: About, moment: Moment) -> None:
        """The subscriber's side says something."""

    def from_above(self, sender: Peer, message: About, moment: Moment) -> None:
        """A publisher's side says something."""
