"""What an approach is measured by, and how it is asked for that."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from holdfast.network.sim.frame import NodeId


class QpsOutcome(NamedTuple):
    """Of one layout with so many subscribers."""

    links: int
    """Publish-subscribe links, those to the subscribers themselves included: the fewer, the more free."""
    load: int
    """The most links at a node."""
    messages: float
    """Transmissions for an event and subscriber."""
    hops: float
    """From publisher to subscriber: what delivery takes, if nothing else is under way."""
    subscribing: int
    """Transmissions until all subscriptions were resolved."""


class Approach(Protocol):
    """A way to bring events to subscribers, on one layout."""

    def subscribe(self, node: NodeId) -> None:
        """A node wants the events of the region."""

    def outcome(self) -> QpsOutcome:
        """What the scene's events make of it now."""
