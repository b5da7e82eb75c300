"""What clients ask of their node, and what they are told: five operations, two callbacks.  [F21]

No call waits.  A client is known to its node by a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...model.event import Value
from ...model.instant import Instant
from ...model.space import Point, Shape


@dataclass(frozen=True, slots=True)
class Advertise:
    """A publisher will publish events of a topic that lie in a region."""

    client: str
    topic: str
    region: Shape


@dataclass(frozen=True, slots=True)
class Unadvertise:
    """It will not, any more."""

    client: str
    topic: str
    region: Shape


@dataclass(frozen=True, slots=True)
class Publish:
    """A publisher has an event; ``location`` is that of the data, not its own.  [F16]"""

    client: str
    topic: str
    location: Point
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A subscriber wants the events of a topic that lie in a region.  [F18]"""

    client: str
    topic: str
    region: Shape
    epsilon: float = 1.5
    """How much longer than the straight way theirs may be."""
    guaranteed: bool = False
    """Whether it wants to be told which part of the region nobody publishes.  [F27]"""


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """It does not want them, any more."""

    client: str
    topic: str
    region: Shape


@dataclass(frozen=True, slots=True)
class Present:
    """A client is there still; every other request says so, too.  [F48]"""

    client: str


Request = Advertise | Unadvertise | Publish | Subscribe | Unsubscribe | Present


@dataclass(frozen=True, slots=True)
class Notify:
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


@dataclass(frozen=True, slots=True)
class FailedCoverage:
    """Callback ``failed_coverage_fulfillment``: nobody publishes this part of a subscriber's region."""

    client: str
    topic: str
    corners: tuple[tuple[tuple[tuple[float, float], ...], ...], ...]
    """The part, as polygons of rings."""


Told = Notify | FailedCoverage
