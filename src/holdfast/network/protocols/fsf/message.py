"""Messages between nodes, requests of users, and deliveries to users.

Requests of a node's own sensors and users arrive on the link `HERE` of `sources`.
"""

from __future__ import annotations

import msgspec

from ....model.correlation import Correlation, RangeFilter, Simple
from ....model.space import Point
from .operator import FsfOperator

FsfEvent = Simple
"""A measurement of a sensor."""
FsfSubscription = Correlation
"""A subscription of a user."""

# --- between nodes -------------------------------------------------------------------------------


class FsfAdvertise(msgspec.Struct, frozen=True):
    """``DSA_d = (a_d, p_d)``: announces a sensor."""

    sensor: str
    attribute: str
    at: Point | None = None


class FsfWithdraw(msgspec.Struct, frozen=True):
    """Announces that a sensor no longer exists."""

    sensor: str


class FsfSubscribe(msgspec.Struct, frozen=True):
    """Requests the events of an operator."""

    operator: FsfOperator


class FsfUnsubscribe(msgspec.Struct, frozen=True):
    """Ends the request for an operator."""

    operator: FsfOperator


class FsfReadings(msgspec.Struct, frozen=True):
    """Events that are sent once, for all subscriptions."""

    events: tuple[FsfEvent, ...]


Members = tuple[tuple[FsfEvent, tuple[str, ...]], ...]
"""Events, each with the subscriptions whose result sets contain it."""


class FsfResults(msgspec.Struct, frozen=True):
    """Members of result sets. An event in several sets is sent once for each set."""

    members: Members


FsfMessage = FsfAdvertise | FsfWithdraw | FsfSubscribe | FsfUnsubscribe | FsfReadings | FsfResults

# --- from users ----------------------------------------------------------------------------------


class FsfWant(msgspec.Struct, frozen=True):
    """Requests a subscription for a user. With ``pending``, the subscription may wait for a source."""

    name: str
    subscription: FsfSubscription
    pending: bool = False


class FsfCancel(msgspec.Struct, frozen=True):
    """Ends a subscription of a user."""

    name: str


FsfRequest = FsfAdvertise | FsfWithdraw | FsfWant | FsfCancel | FsfReadings
"""A request of a node's own sensors or users. Sensors use the same messages as nodes."""

# --- to users ------------------------------------------------------------------------------------


class SubscriptionAccepted(msgspec.Struct, frozen=True):
    """Informs a user that every filter of the subscription has a source."""

    name: str


class SubscriptionRefused(msgspec.Struct, frozen=True):
    """Informs a user that the subscription is dropped, because the filters ``missing`` have no
    source. [J7]
    """

    name: str
    missing: tuple[RangeFilter, ...]


class SubscriptionWaiting(msgspec.Struct, frozen=True):
    """Informs a user that the subscription waits until the filters ``missing`` have a source."""

    name: str
    missing: tuple[RangeFilter, ...]


FsfAnswer = SubscriptionAccepted | SubscriptionRefused | SubscriptionWaiting


class EventsFound(msgspec.Struct, frozen=True):
    """Delivers events that are part of complex events of users' subscriptions; each event is
    delivered once.
    """

    members: Members
