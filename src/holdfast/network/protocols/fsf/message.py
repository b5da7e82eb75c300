"""Messages between nodes, requests of users, and deliveries to users."""

from __future__ import annotations

import msgspec

from ....model.correlation import Correlation, RangeFilter, Simple
from ....model.space import Point
from .operator import FsfOperator

FsfEvent = Simple
"""A measurement of a sensor."""
FsfSubscription = Correlation
"""A user's subscription."""

# --- between nodes -------------------------------------------------------------------------------


class FsfAdvertise(msgspec.Struct, frozen=True):
    """``DSA_d = (a_d, p_d)``: announces a sensor."""

    sensor: str
    attribute: str
    at: Point | None = None


class FsfWithdraw(msgspec.Struct, frozen=True):
    """Announces that a sensor is gone."""

    sensor: str


class FsfSubscribe(msgspec.Struct, frozen=True):
    """Requests the events of an operator."""

    operator: FsfOperator


class FsfUnsubscribe(msgspec.Struct, frozen=True):
    """Ends the request for an operator."""

    operator: FsfOperator


class FsfReadings(msgspec.Struct, frozen=True):
    """Simple events, for all subscriptions."""

    events: tuple[FsfEvent, ...]


Members = tuple[tuple[FsfEvent, tuple[str, ...]], ...]
"""Simple events, each with the subscriptions whose result sets contain it."""


class FsfResults(msgspec.Struct, frozen=True):
    """Members of result sets; an event in several sets is sent once for each."""

    members: Members


FsfMessage = FsfAdvertise | FsfWithdraw | FsfSubscribe | FsfUnsubscribe | FsfReadings | FsfResults

# --- from users ----------------------------------------------------------------------------------


class FsfWant(msgspec.Struct, frozen=True):
    """A user subscribes; with ``pending`` the subscription may wait for a source."""

    name: str
    subscription: FsfSubscription
    pending: bool = False


class FsfCancel(msgspec.Struct, frozen=True):
    """A user ends a subscription."""

    name: str


FsfRequest = FsfAdvertise | FsfWithdraw | FsfWant | FsfCancel | FsfReadings
"""A node's own sensors use the same messages as nodes."""

# --- to users ------------------------------------------------------------------------------------


class SubscriptionAccepted(msgspec.Struct, frozen=True):
    """Every filter of the subscription has a source."""

    name: str


class SubscriptionRefused(msgspec.Struct, frozen=True):
    """The subscription is dropped because some filters have no source.  [J7]"""

    name: str
    missing: tuple[RangeFilter, ...]


class SubscriptionWaiting(msgspec.Struct, frozen=True):
    """The subscription waits until these filters have a source."""

    name: str
    missing: tuple[RangeFilter, ...]


FsfAnswer = SubscriptionAccepted | SubscriptionRefused | SubscriptionWaiting


class EventsFound(msgspec.Struct, frozen=True):
    """Simple events that take part in complex events of users' subscriptions; each is delivered once."""

    members: Members
