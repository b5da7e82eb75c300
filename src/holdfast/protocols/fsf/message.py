"""What nodes tell one another, what users ask of their node, and what it tells them."""

from __future__ import annotations

from dataclasses import dataclass

from ...model.correlation import Correlation, Filter, Simple
from ...model.space import Point
from .operator import Operator

Event = Simple
"""What a sensor measures, and nodes pass on."""
Subscription = Correlation
"""What a user asks for."""

# --- between nodes -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Advertise:
    """``DSA_d = (a_d, p_d)``: there is a sensor."""

    sensor: str
    attribute: str
    at: Point | None = None


@dataclass(frozen=True, slots=True)
class Withdraw:
    """The sensor is there no more."""

    sensor: str


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Send me what this operator asks for."""

    operator: Operator


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Send it no more."""

    operator: Operator


@dataclass(frozen=True, slots=True)
class Readings:
    """Simple events, for whoever needs them."""

    events: tuple[Event, ...]


Members = tuple[tuple[Event, tuple[str, ...]], ...]
"""Simple events, each with the subscriptions in whose result sets it is."""


@dataclass(frozen=True, slots=True)
class Results:
    """Members of result sets; an event that is in several is sent as often."""

    members: Members


Message = Advertise | Withdraw | Subscribe | Unsubscribe | Readings | Results

# --- from users ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Want:
    """A user subscribes; ``pending``: a subscription without a source waits for one."""

    name: str
    subscription: Subscription
    pending: bool = False


@dataclass(frozen=True, slots=True)
class Cancel:
    """A user wants it no more."""

    name: str


Request = Advertise | Withdraw | Want | Cancel | Readings
"""Own sensors come and go and measure with the words that nodes use."""

# --- to users ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Accepted:
    """Every filter of the subscription has a source."""

    name: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The subscription is dropped, since some filters have no source.  [J7]"""

    name: str
    missing: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """The subscription is kept until these filters have a source."""

    name: str
    missing: tuple[Filter, ...]


Answer = Accepted | Refused | Waiting


@dataclass(frozen=True, slots=True)
class Found:
    """Simple events that take part in complex events of the users' subscriptions; told once for each."""

    members: Members
