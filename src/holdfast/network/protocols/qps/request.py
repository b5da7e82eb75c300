"""The API of a node: five operations of clients, and two callbacks. [F21]

No call blocks. A node knows each of its clients by a name.
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
    """Announces that a publisher will publish events of a topic in a region."""


class QpsUnadvertiseRequest(RegionRequest, frozen=True):
    """Withdraws the announcement of a publisher."""


class QpsPublishRequest(msgspec.Struct, frozen=True):
    """Publishes an event. ``location`` is that of the data, not of the publisher. [F16]"""

    client: str
    topic: str
    location: Point
    values: Mapping[str, Value]


class QpsSubscribeRequest(RegionRequest, frozen=True):
    """Requests the events of a topic in a region for a subscriber. [F18]"""

    epsilon: float = 1.5
    """The greatest permitted ratio of the path of an event to the straight line."""
    guaranteed: bool = False
    """Whether the part of the region without a publisher must be reported.  [F27]"""


class QpsUnsubscribeRequest(RegionRequest, frozen=True):
    """Ends the request of a subscriber."""


class PresenceSign(msgspec.Struct, frozen=True):
    """A sign of life of a client. Every other request also counts as a sign of life. [F48]"""

    client: str


QpsRequest = RegionRequest | QpsPublishRequest | PresenceSign


class QpsNotify(msgspec.Struct, frozen=True):
    """The callback ``notify``: delivers an event to a subscriber."""

    client: str
    topic: str
    location: Point
    publisher: str
    time: Instant
    values: Mapping[str, Value]
    way: tuple[Point, ...] = ()
    """The addresses of the brokers that forwarded the event."""
    repeated: bool = False
    """Whether it is a publisher's latest event from before the subscription. [F75]"""


class FailedCoverage(msgspec.Struct, frozen=True):
    """The callback ``failed_coverage_fulfillment``: reports the part of a subscriber's region without a
    publisher.
    """

    client: str
    topic: str
    corners: tuple[tuple[tuple[tuple[float, float], ...], ...], ...]
    """The part without a publisher, as polygons of rings."""


QpsDelivery = QpsNotify | FailedCoverage
