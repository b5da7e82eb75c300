"""What brokers say to one another.  [F30]

Every message has the point that it is for: that of a node, or that of a logical broker (then ``to`` names
its scope).  The nearest node that lives takes it.  A subscription, and its end, has a version: for each
part of space the latest word of a subscriber counts, in whatever order they come.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ...model.event import Value
from ...model.instant import Instant
from .area import Area, corners
from .tree import Scope

At = tuple[float, float]
"""Where a node stands: its address."""


class Source(msgspec.Struct, frozen=True, array_like=True):
    """Who subscribes: a node for its clients or, with a scope, as the logical broker of that scope.

    The scope is the thesis' quad bit, and says more: a node may act for several scopes of a tree.
    """

    at: At
    scope: Scope | None = None
    turn: Instant = 0
    """Since when this node acts for the scope: the word of a successor counts more."""


class Advertise(msgspec.Struct, frozen=True, array_like=True, tag="advertise"):
    """Publishers of a node, other than those of this leaf, publish here; ``area`` is all of it that is left.
    Nothing is left: the un-advertisement."""

    topic: str
    source: Source
    to: Scope
    area: Area
    version: Instant


class Subscribe(msgspec.Struct, frozen=True, array_like=True, tag="subscribe"):
    """Events of this area are wanted; without ``to``, by a leaf of publishers."""

    topic: str
    source: Source
    to: Scope | None
    area: Area
    epsilon: float
    fulfil: bool
    """Whether it must be said which part of the area nobody publishes."""
    version: Instant


class Unsubscribe(msgspec.Struct, frozen=True, array_like=True, tag="unsubscribe"):
    """They are wanted no more."""

    topic: str
    source: Source
    to: Scope | None
    area: Area
    version: Instant


class Coverage(msgspec.Struct, frozen=True, array_like=True, tag="coverage"):
    """Coverage fulfilment: publishers of the source have this part of a leaf (``covered``); or of all that
    is wanted of the source, nobody has this.  The latest counts, and says all of it."""

    topic: str
    source: Source
    to: Scope | None
    area: Area
    covered: bool
    version: Instant


class Gone(msgspec.Struct, frozen=True, array_like=True, tag="gone"):
    """Somebody found that the source does not answer, and says so in its place.  [F49]"""

    topic: str
    source: Source
    to: Scope


class Publication(msgspec.Struct, frozen=True, array_like=True, tag="publication"):
    """An event on its way: to a logical broker (Q = 1), or without a scope to a subscribers' node (Q = 0)."""

    topic: str
    source: Source
    """Who sends it."""
    to: Scope | None
    location: At
    home: At
    """The publisher's node, which alone knows its clients by name."""
    publisher: str
    time: Instant
    """With the node, what tells events apart: no two of a node have the same."""
    values: Mapping[str, Value]
    way: tuple[At, ...] = ()
    """The addresses of the forwarding brokers that it has passed, the leaf's first."""
    repeated: bool = False
    """Whether it is an old one, for somebody new."""


Message = Advertise | Subscribe | Unsubscribe | Coverage | Publication | Gone
MESSAGES = (Advertise, Subscribe, Unsubscribe, Coverage, Publication, Gone)

ADDRESS, _SCOPE, _TOPIC, _CORNER, _NUMBER, _TIME = 4, 3, 1, 4, 4, 4
HEAD = _TOPIC + ADDRESS + 2 * _SCOPE
_RECTANGLE = 4


def bytes_of(message: Message) -> int:
    """How long a message is on a mote: coordinates in two bytes, numbers in four."""
    match message:
        case Subscribe(area=area):
            return HEAD + _area(area) + 3 + _TIME
        case Advertise(area=area) | Unsubscribe(area=area) | Coverage(area=area):
            return HEAD + _area(area) + 1 + _TIME
        case Publication(values=values):
            attributes = sum(len(v) if isinstance(v, str) else _NUMBER for v in values.values())
            return HEAD + ADDRESS + ADDRESS + _TIME + attributes
        case Gone():
            return HEAD


def _area(area: Area) -> int:
    """A rectangle is two corners."""
    return 1 + _CORNER * (2 if corners(area) == _RECTANGLE else corners(area))


def cause_of(message: Message) -> str:
    """Under which name the simulator accounts for a message."""
    return type(message).__name__.lower()
