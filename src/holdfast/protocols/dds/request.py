"""What an application asks of its node, and what it is told: publish, advertise, subscribe, …  [D1]

No call waits: what comes of it is delivered later, or never.  [D2]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...model.event import Status, Value
from ...model.instant import Instant
from ...model.protocol import Peer
from .interest import Interest
from .message import Name, Stream


@dataclass(frozen=True, slots=True)
class Advertise:
    """A writer is wanted for a topic."""

    topic: str


@dataclass(frozen=True, slots=True)
class Publish:
    """A sample for the writer of a topic."""

    topic: str
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Readers are wanted, for all topics that the interest concerns; ``name`` is the application's."""

    name: str
    interest: Interest


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """The readers of that name are wanted no more."""

    name: str


@dataclass(frozen=True, slots=True)
class Assure:
    """ARQoS: of this topic so many percent are wanted, from now on.  [D55, D61]"""

    topic: str
    percent: float


@dataclass(frozen=True, slots=True)
class Residual:
    """The joules that the node has left, as its own meter says.  [D47]"""

    joules: float


Request = Advertise | Publish | Subscribe | Unsubscribe | Assure | Residual


@dataclass(frozen=True, slots=True)
class Notify:
    """A sample for a subscription."""

    subscription: str
    topic: str
    origin: Peer
    name: Name
    values: Mapping[str, Value]
    time: Instant
    instance: tuple[Value, ...] = ()
    """Of a keyed topic: the values of its key.  [D5]"""
    status: Status = "atomic"
    since: Instant | None = None


# What a host may want to know besides, for accounts.


@dataclass(frozen=True, slots=True)
class Accepted:
    """A writer has taken a sample: it is sent, or waits in the ring."""

    name: Name
    values: Mapping[str, Value]
    time: Instant
    reliable: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """A writer has not taken a sample: its ring is full.  [D19]"""

    stream: Stream
    values: Mapping[str, Value]
    time: Instant


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A writer does not try any more to bring a sample to all."""

    name: Name


@dataclass(frozen=True, slots=True)
class Registered:
    """A subscription is in the table of this node: the RN, or a publisher.  [D44]"""

    topic: str
    subscriber: Peer
    version: Instant


@dataclass(frozen=True, slots=True)
class Lapsed:
    """A subscriber gave no sign for a lease, or did not answer often enough: nobody waits for it any more.

    Its next subscription admits it again.
    """

    topic: str
    subscriber: Peer


@dataclass(frozen=True, slots=True)
class Unread:
    """The RN knew nobody who wanted a sample, and said so."""

    name: Name


@dataclass(frozen=True, slots=True)
class Repeated:
    """A sample has come again, and was not delivered again."""

    name: Name


Told = Notify | Accepted | Refused | GivenUp | Registered | Lapsed | Unread | Repeated
