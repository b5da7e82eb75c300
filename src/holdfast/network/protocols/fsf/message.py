"""Messages between nodes, requests of users, and deliveries to users."""

from __future__ import annotations

from dataclasses import dataclass

from ....model.correlation import Correlation, RangeFilter, Simple
from ....model.space import Point
from .operator import FsfOperator

FsfEvent = Simple
"""A measurement of a sensor."""
FsfSubscription = Correlation
"""A user's subscription."""

# --- between nodes -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FsfAdvertise:
    """``DSA_d = (a_d, p_d)``: announces a sensor."""

    sensor: str
    attribute: str
    at: Point | None = None


@dataclass(frozen=True, slots=True)
class FsfWithdraw:
    """Announces that a sensor is gone."""

    sensor: str


@dataclass(frozen=True, slots=True)
class FsfSubscribe:
    """Requests the events of an operator."""

    operator: FsfOperator


@dataclass(frozen=True, slots=True)
class FsfUnsubscribe:
    """Ends the request for an operator."""

    operator: FsfOperator


@dataclass(frozen=True, slots=True)
class FsfReadings:
    """Simple events, for all subscriptions."""

    events: tuple[FsfEvent, ...]


Members = tuple[tuple[FsfEvent, tuple[str, ...]], ...]
"""Simple events, each with the subscriptions whose result sets contain it."""


@dataclass(frozen=True, slots=True)
class FsfResults:
    """Members of result sets; an event in several sets is sent once for each."""

    members: Members


FsfMessage = FsfAdvertise | FsfWithdraw | FsfSubscribe | FsfUnsubscribe | FsfReadings | FsfResults

# --- from users ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FsfWant:
    """A user subscribes; with ``pending`` the subscription may wait for a source."""

    name: str
    subscription: FsfSubscription
    pending: bool = False


@dataclass(frozen=True, slots=True)
class FsfCancel:
    """A user ends a subscription."""

    name: str


FsfRequest = FsfAdvertise | FsfWithdraw | FsfWant | FsfCancel | FsfReadings
"""A node's own sensors use the same messages as nodes."""

# --- to users ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SubscriptionAccepted:
    """Every filter of the subscription has a source."""

    name: str


@dataclass(frozen=True, slots=True)
class SubscriptionRefused:
    """The subscription is dropped because some filters have no source.  [J7]"""

    name: str
    missing: tuple[RangeFilter, ...]


@dataclass(frozen=True, slots=True)
class SubscriptionWaiting:
    """The subscription waits until these filters have a source."""

    name: str
    missing: tuple[RangeFilter, ...]


FsfAnswer = SubscriptionAccepted | SubscriptionRefused | SubscriptionWaiting


@dataclass(frozen=True, slots=True)
class EventsFound:
    """Simple events that take part in complex events of users' subscriptions; each is delivered once."""

    members: Members
