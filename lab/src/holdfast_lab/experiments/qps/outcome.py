"""The measures of an approach, and the interface of approaches."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from holdfast.network.sim.frame import NodeId


class QpsOutcome(NamedTuple):
    """The measures of one layout with its subscribers."""

    links: int
    """Publish/subscribe links, including those to the subscribers."""
    load: int
    """The largest number of links of a node."""
    messages: float
    """Transmissions per event and subscriber."""
    hops: float
    """Mean hops from publisher to subscriber, which determine the delay without other traffic."""
    subscribing: int
    """Transmissions until all subscriptions are resolved."""


class Approach(Protocol):
    """A way to bring events to subscribers, on one layout."""

    def subscribe(self, node: NodeId) -> None:
        """Subscribe a node to the region."""

    def outcome(self) -> QpsOutcome:
        """Return the measures with the subscriptions so far."""
