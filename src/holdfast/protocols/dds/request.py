"""What an application asks of its node, and what it is told: publish, advertise, subscribe, …  [D1]

No call waits: what comes of it is delivered later, or never.  [D2]
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ...model.event import Status, Value
from ...model.instant import Instant
from ...model.protocol import Peer
from .interest import Interest
from .message import Name, Stream


class Advertise(msgspec.Struct, frozen=True):
    """A writer is wanted for a topic."""

    topic: str


class Publish(msgspec.Struct, frozen=True):
    """A sample for the writer of a topic."""

    topic: str
    values: Mapping[str, Value]


class Subscribe(msgspec.Struct, frozen=True):
    """Readers are wanted, for all topics that the interest concerns; ``name`` is the application's."""

    name: str
    interest: Interest


class Unsubscribe(msgspec.Struct, frozen=True):
    """The readers of that name are wanted no more."""

    name: str


class Assure(msgspec.Struct, frozen=True):
    """ARQoS: of this topic so many percent are wanted, from now on.  [D55, D61]"""

    topic: str
    percent: float


class Residual(msgspec.Struct, frozen=True):
    """The joules that the node has left, as its own meter says.  [D47]"""

    joules: float


Request = Advertise | Publish | Subscribe | Unsubscribe | Assure | Residual


class Notify(msgspec.Struct, frozen=True):
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


class Accepted(msgspec.Struct, frozen=True):
    """A writer has taken a sample: it is sent, or waits in the ring."""

    name: Name
    values: Mapping[str, Value]
    time: Instant
    reliable: bool


class Refused(msgspec.Struct, frozen=True):
    """A writer has not taken a sample: its ring is full.  [D19]"""

    stream: Stream
    values: Mapping[str, Value]
    time: Instant


class GivenUp(msgspec.Struct, frozen=True):
    """A writer does not try any more to bring a sample to all."""

    name: Name


class Registered(msgspec.Struct, frozen=True):
    """A subscription is in the table of this node: the RN, or a publisher.  [D44]"""

    topic: str
    subscriber: Peer
    version: Instant


class Lapsed(msgspec.Struct, frozen=True):
    """A subscriber gave no sign for a lease: nobody waits for it any more.

    Its next subscription admits it again.
    """

    topic: str
    subscriber: Peer


class Unread(msgspec.Struct, frozen=True):
    """The RN knew nobody who wanted a sample, and said so."""

    name: Name


class Repeated(msgspec.Struct, frozen=True):
    """A sample has come again, and was not delivered again."""

    name: Name


Told = Notify | Accepted | Refused | GivenUp | Registered | Lapsed | Unread | Repeated
