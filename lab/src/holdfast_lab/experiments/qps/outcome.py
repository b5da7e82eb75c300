"""The measures of an approach, and its interface."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from holdfast.network.sim.frame import NodeId


class QpsOutcome(NamedTuple):
    """The measures of one layout with a number of subscribers."""

    links: int
    """Publish-subscribe links, including those to the subscribers; fewer links mean less state."""
    load: int
    """The largest number of links at a node."""
    messages: float
    """Transmissions for each event and subscriber."""
    hops: float
    """The hops from publisher to subscriber: the delay of a delivery without other traffic."""
    subscribing: int
    """Transmissions until all subscriptions were resolved."""


class Approach(Protocol):
    """A way to bring events to subscribers, on one layout."""

    def subscribe(self, node: NodeId) -> None:
        """Subscribe a node to the events of the region."""

    def outcome(self) -> QpsOutcome:
        """Publish the scene's events and return the measures."""
