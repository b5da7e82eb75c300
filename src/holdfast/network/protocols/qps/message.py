"""The messages between brokers. [F30]

Every message is addressed to the point of a node or of a logical broker; in the second case ``to`` is its
scope. The nearest live node receives it. Subscriptions and their ends have versions: for each part of space,
the latest version of a subscriber counts, whatever the order of arrival. Tags and the order of fields are the
wire format.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ....model.event import Value
from ....model.instant import Instant
from ..wire_name import wire_name
from .area import Area, corner_count
from .tree import QuadScope

At = tuple[float, float]
"""The position of a node, which is its address."""


class QpsSource(msgspec.Struct, frozen=True, array_like=True):
    """A subscriber: a node for its clients or, with a scope, the logical broker of that scope.

    The scope replaces the thesis' quad bit, because a node may have the roles of several scopes.
    """

    at: At
    scope: QuadScope | None = None
    turn: Instant = 0
    """The time since which the node has had the role. Messages of a later holder take precedence."""


class SourcedMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message of ``source`` about a topic, to the logical broker of the scope ``to`` or to a node."""

    topic: str
    source: QpsSource
    to: QuadScope | None


class QpsAdvertise(SourcedMessage, frozen=True, array_like=True, tag="advertise"):
    """The area in which publishers of a node of another leaf publish. An empty area withdraws the
    advertisement.
    """

    area: Area
    version: Instant


class QpsSubscribe(SourcedMessage, frozen=True, array_like=True, tag="subscribe"):
    """Requests the events of an area. Without ``to``, a leaf requests them from publishers."""

    area: Area
    epsilon: float
    fulfil: bool
    """Whether the part of the area without a publisher must be reported."""
    version: Instant


class QpsUnsubscribe(SourcedMessage, frozen=True, array_like=True, tag="unsubscribe"):
    """Ends the request for events of an area."""

    area: Area
    version: Instant


class AreaCoverage(SourcedMessage, frozen=True, array_like=True, tag="coverage"):
    """Coverage fulfilment: the area that the source's publishers cover (``covered``), or the uncovered area.

    Each message replaces the previous message of the source.
    """

    area: Area
    covered: bool
    version: Instant


class SubscriberGone(SourcedMessage, frozen=True, array_like=True, tag="gone"):
    """Reports, in place of the source, that the source does not answer.  [F49]"""


class RoutedPublication(SourcedMessage, frozen=True, array_like=True, tag="publication"):
    """An event on its way to a logical broker (Q = 1) or, without a scope, to a subscribers' node (Q = 0).

    Its source is the last sender.
    """

    location: At
    home: At
    """The publisher's node, because names of clients are unique only within a node."""
    publisher: str
    time: Instant
    """The event time. It identifies the event together with the node: no two events of a node have the same
    time.
    """
    values: Mapping[str, Value]
    way: tuple[At, ...] = ()
    """The addresses of the forwarding brokers on the path, starting at the leaf."""
    repeated: bool = False
    """Whether it is an earlier event that is sent to a new subscriber."""


QpsMessage = QpsAdvertise | QpsSubscribe | QpsUnsubscribe | AreaCoverage | RoutedPublication | SubscriberGone
MESSAGES = (QpsAdvertise, QpsSubscribe, QpsUnsubscribe, AreaCoverage, RoutedPublication, SubscriberGone)

ADDRESS, _SCOPE, _TOPIC, _CORNER, _NUMBER, _TIME = 4, 3, 1, 4, 4, 4
HEAD = _TOPIC + ADDRESS + 2 * _SCOPE
_RECTANGLE = 4


def bytes_of(message: QpsMessage) -> int:
    """Return the size of a message on a mote, in bytes: coordinates take two bytes, numbers four."""
    match message:
        case QpsSubscribe(area=area):
            return HEAD + _area(area) + 3 + _TIME
        case QpsAdvertise(area=area) | QpsUnsubscribe(area=area) | AreaCoverage(area=area):
            return HEAD + _area(area) + 1 + _TIME
        case RoutedPublication(values=values):
            attributes = sum(len(v) if isinstance(v, str) else _NUMBER for v in values.values())
            return HEAD + ADDRESS + ADDRESS + _TIME + attributes
        case SubscriberGone():
            return HEAD


def _area(area: Area) -> int:
    """Return the size of an area in bytes. A rectangle is sent as two corners."""
    return 1 + _CORNER * (2 if corner_count(area) == _RECTANGLE else corner_count(area))


def cause_of(message: QpsMessage) -> str:
    """Return the name under which the simulator accounts for a message."""
    return wire_name(message).lower()
