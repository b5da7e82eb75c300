"""The interface of a condition that a broker watches for one of its connections.

`hosted_watch` and `replica_watch` implement it for the two kinds of conditions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ....model.instant import Instant
from ....model.protocol import Effect, Peer
from .condition import NetworkCondition
from .content import Content, Filter
from .message import CbpsSubscription, ConditionMessage, SubscriptionRef
from .routing import StoredBundle


class Emitter(NamedTuple):
    """The time of the current input, and the function that collects its effects."""

    now: Instant
    emit: Callable[[Effect], None]


class ConditionWatch(Protocol):
    """A condition that a broker watches for the connection that has stored a subscription to it.

    *Below* is that connection, on the subscriber's side; *above* are the connections to which the
    subscription was forwarded.
    """

    part: SubscriptionRef
    stored: StoredBundle
    condition: NetworkCondition

    @property
    def peer(self) -> Peer:
        """The connection below, which has stored the subscription."""
        return self.stored.source

    @property
    def subscription(self) -> CbpsSubscription:
        """The subscription whose condition is watched."""
        return self.stored.bundle.subscriptions[self.part.place]

    def is_flooded_to(self, peer: Peer) -> bool:
        """Whether the subscription was flooded to a connection."""
        return self.subscription.flood_forward and peer in self.stored.sent

    # --- advertisements ---

    def add_advertisement(self, peer: Peer, advertised: Filter) -> None:
        """Add a relevant advertisement of a connection that became active."""

    def remove_advertisement(self, peer: Peer, advertised: Filter) -> None:
        """Remove a relevant advertisement of a connection that became inactive."""

    def notify_peers(self, emitter: Emitter) -> None:
        """Send changed placements, offers or requests to the connections above and below."""

    def must_stay_at(self, peer: Peer) -> bool:
        """Whether the subscription must stay at a connection above although no publisher is there."""

    def on_withdrawn(self, peer: Peer) -> None:
        """Handle the withdrawal of the subscription from a connection above."""

    def on_left(self, peer: Peer, emitter: Emitter) -> None:
        """Handle the loss of a connection, which may be above."""

    # --- events ---

    def view_of(self, content: Content) -> Any:
        """Convert a notification to the input of this condition and all equal ones; ``None`` if it is not
        relevant.
        """

    def should_forward(self, view: Any, sender: Peer, emitter: Emitter) -> bool:
        """Process an event from a connection; return whether it must be forwarded below."""

    def on_forwarded(self, view: Any, emitter: Emitter) -> None:
        """Handle the forwarding of an event below, for this condition or for another one."""

    def on_undelivered(self, view: Any, emitter: Emitter) -> None:
        """Handle the loss of an event that was forwarded below."""

    # --- messages about it ---

    def on_subscriber_message(self, message: ConditionMessage, emitter: Emitter) -> None:
        """Handle a message about the condition from the connection below."""

    def on_publisher_message(self, sender: Peer, message: ConditionMessage, emitter: Emitter) -> None:
        """Handle a message about the condition from a connection above."""
