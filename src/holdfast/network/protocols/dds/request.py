"""The API of a node: requests of an application, and deliveries to it. [D1]

No call blocks: results are delivered later, or never. [D2]
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ....model.event import Status, Value
from ....model.instant import Instant
from ....model.protocol import Peer
from .interest import Interest
from .message import SampleName, SampleStream


class DdsAdvertiseRequest(msgspec.Struct, frozen=True):
    """Request a writer for a topic."""

    topic: str


class DdsPublishRequest(msgspec.Struct, frozen=True):
    """Publish a sample of a topic."""

    topic: str
    values: Mapping[str, Value]


class DdsSubscribeRequest(msgspec.Struct, frozen=True):
    """Request readers for all topics of an interest; ``name`` is chosen by the application."""

    name: str
    interest: Interest


class DdsUnsubscribeRequest(msgspec.Struct, frozen=True):
    """Remove the readers of a subscription."""

    name: str


class AssureRequest(msgspec.Struct, frozen=True):
    """ARQoS: request a share of the topic's samples, in percent.  [D55, D61]"""

    topic: str
    percent: float


class ResidualEnergy(msgspec.Struct, frozen=True):
    """Reports the remaining energy of the node in joules, as its meter measures it. [D47]"""

    joules: float


class DdsDelivery(msgspec.Struct, frozen=True):
    """A delivery to the application or to the host, which may use it for statistics."""


class DdsNotify(DdsDelivery, frozen=True):
    """Delivers a sample to a subscription."""

    subscription: str
    topic: str
    origin: Peer
    name: SampleName
    values: Mapping[str, Value]
    time: Instant
    instance: tuple[Value, ...] = ()
    """For a keyed topic: the values of its key. [D5]"""
    status: Status = "atomic"
    since: Instant | None = None


# Deliveries to the host, for accounts.


class SampleAccepted(DdsDelivery, frozen=True):
    """Reports that a writer has accepted a sample, which is sent or waits in the ring."""

    name: SampleName
    values: Mapping[str, Value]
    time: Instant
    reliable: bool


class SampleRefused(DdsDelivery, frozen=True):
    """Reports that a writer has dropped a sample because its ring is full. [D19]"""

    stream: SampleStream
    values: Mapping[str, Value]
    time: Instant


class SampleGivenUp(DdsDelivery, frozen=True):
    """Reports that a writer has stopped trying to deliver a sample to all subscribers."""

    name: SampleName


class SubscriptionRegistered(DdsDelivery, frozen=True):
    """Reports that a subscription is in the table of this node, which is the RN or a publisher. [D44]"""

    topic: str
    subscriber: Peer
    version: Instant


class SubscriberLapsed(DdsDelivery, frozen=True):
    """Reports that a subscriber was removed because it gave no sign of life for a lease.

    Its next subscription adds it again.
    """

    topic: str
    subscriber: Peer


class SampleUnread(DdsDelivery, frozen=True):
    """Reports that, according to the RN, a sample has no subscriber."""

    name: SampleName


class SampleRepeated(DdsDelivery, frozen=True):
    """Reports that a duplicate of a sample arrived and was not delivered."""

    name: SampleName
