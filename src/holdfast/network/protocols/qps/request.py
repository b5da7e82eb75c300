"""The API of a node: five operations of clients, and two callbacks.  [F21]

No call waits. A client is known to its node by a name.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ....model.event import Value
from ....model.instant import Instant
from ....model.space import Point, Shape


class RegionRequest(msgspec.Struct, frozen=True):
    """A request of a client about a topic in a region."""

    client: str
    topic: str
    region: Shape


class QpsAdvertiseRequest(RegionRequest, frozen=True):
    """A publisher announces that it will publish events of a topic in a region."""


class QpsUnadvertiseRequest(RegionRequest, frozen=True):
    """A publisher withdraws such an announcement."""


class QpsPublishRequest(msgspec.Struct, frozen=True):
    """A publisher publishes an event; ``location`` is that of the data, not of the publisher.  [F16]"""

    client: str
    topic: str
    location: Point
    values: Mapping[str, Value]


class QpsSubscribeRequest(RegionRequest, frozen=True):
    """A subscriber requests the events of a topic in a region.  [F18]"""

    epsilon: float = 1.5
    """The largest ratio of the path of an event to the straight line."""
    guaranteed: bool = False
    """Whether the part of the region without a publisher must be reported.  [F27]"""


class QpsUnsubscribeRequest(RegionRequest, frozen=True):
    """A subscriber ends such a request."""


class PresenceSign(msgspec.Struct, frozen=True):
    """A sign of life of a client; every other request counts as one, too.  [F48]"""

    client: str


QpsRequest = RegionRequest | QpsPublishRequest | PresenceSign


class QpsNotify(msgspec.Struct, frozen=True):
    """Callback ``notify``: an event for a subscriber."""

    client: str
    topic: str
    location: Point
    publisher: str
    time: Instant
    values: Mapping[str, Value]
    way: tuple[Point, ...] = ()
    """The addresses of the brokers that forwarded it."""
    repeated: bool = False
    """Whether it is the latest of its publisher from before the subscription.  [F75]"""


class FailedCoverage(msgspec.Struct, frozen=True):
    """Callback ``failed_coverage_fulfillment``: this part of a subscriber's region has no publisher."""

    client: str
    topic: str
    corners: tuple[tuple[tuple[tuple[float, float], ...], ...], ...]
    """The part, as polygons of rings."""


QpsDelivery = QpsNotify | FailedCoverage
