"""What agents are given, and what they want: the words that all strategies share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec

from ...model.instant import Instant
from ...model.relation import Interval, Member, Point, Relation, Test


class Reading(NamedTuple):
    """What a publisher said last: a point, or a number as a point on a line; ``error`` is how far it may be
    off."""

    time: Instant
    sequence: int
    at: Point
    error: float = 0.0


def reading_of(
    member: Member,
    accuracy: str | None,
    stamp: tuple[Instant, int],
    attributes: Mapping[str, Any],
    location: Point | None,
) -> Reading | None:
    """What an agent beside a member makes of an event of time and number ``stamp``, as the relation machine
    does: nothing of one that has not what is looked at."""
    if member.attribute is not None:
        value = _number(attributes.get(member.attribute))
        return None if value is None else Reading(*stamp, (value,))
    error = 0.0 if accuracy is None else _number(attributes.get(accuracy))
    if not location or not all(map(math.isfinite, location)) or error is None or not 0 <= error < math.inf:
        return None
    return Reading(*stamp, location, error)


def _number(value: Any) -> float | None:
    """A value as a number, if it is one."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    return float(value) if is_number else None


class Successor(msgspec.Struct, frozen=True, tag=True):
    """Another instance continues for this agent, with what it knows."""

    name: str


class Claim(msgspec.Struct, frozen=True, tag=True):
    """With this number I claim the lead."""

    number: int


class Relayed(msgspec.Struct, frozen=True, tag=True):
    """A reading of our publisher came here."""

    reading: Reading


class Lead(msgspec.Struct, frozen=True, tag=True):
    """Lead from now on, by the latest reading and what is known of the relationship."""

    reading: Reading | None
    knowledge: Knowledge | None


class Leave(msgspec.Struct, frozen=True, tag=True):
    """Our publisher sends nothing here any more."""


Word = Claim | Relayed | Lead | Leave | Successor


class Doubt(msgspec.Struct, frozen=True, tag=True):
    """What another instance knew for this agent is lost."""


class Say(NamedTuple):
    """Tell another agent something."""

    to: str
    message: msgspec.Struct


class Report(NamedTuple):
    """Tell the subscriber that a relationship starts, ends, or is not known any more.

    ``by`` is the member whose reading made the difference.
    """

    status: str
    by: str
    reading: Reading | None
    value: float
    also: str | None = None
    """Of the best, which it is."""


class Knowledge(msgspec.Struct, frozen=True):
    """What an agent has to know of a relationship to continue from another one: how often it has started or
    ended, and what holds (of the best, which it is), ``None`` where nobody knows; ``doubted`` are the
    alternatives that may have been reported."""

    turns: int
    bit: int | None
    doubted: tuple[int, ...] = ()


class Run(NamedTuple):
    """Have shipped code called; what it wants comes later."""

    call: str
    arguments: tuple[Any, ...] = ()


Wants = list[Say | Report | Run]


class Agent(Protocol):
    """One end of a strategy; what it is given changes it, so a host must not share it."""

    name: str
    hears: ClassVar[tuple[type, ...]]
    """What others may say to it."""

    @property
    def reports(self) -> bool:
        """Whether it is the one that reports starts and ends."""

    def read(self, reading: Reading, /) -> Wants:
        """Its publisher has said something."""

    def hear(self, sender: str, message: Any, /) -> Wants:
        """Another agent has said something."""

    def lost(self, other: str, /) -> Wants:
        """Another agent cannot be reached: what is known of the relationship is not known any more."""

    def found(self, other: str, /) -> Wants:
        """Another agent can be reached again: begin anew.  [B69]"""

    def renew(self, other: str, /) -> Wants:
        """Another instance continues for another agent: begin the conversation anew; what holds is known."""

    def knowledge(self) -> Knowledge | None:
        """What a successor has to know; nothing if only this agent can make sense of it."""

    def adopt(self, knowledge: Knowledge, /) -> None:
        """Continue from what another instance knew."""

    def doubt(self) -> None:
        """There were agents before it: whether the relationship holds is not known."""

    def reset(self, relation: Relation, /) -> Wants:
        """The relationship is another from now on; what was reported of it holds.  [B64]"""


def tests(relation: Relation, bit: int | None) -> list[tuple[int, Test]]:
    """What may come next: bits, and the tests that lead there; both where nobody knows."""
    ways = {0: (1, relation.enter), 1: (0, relation.exit)}
    return list(ways.values()) if bit is None else [ways[bit]]


def room(value: float, relation: Relation, bit: int | None) -> float:
    """How far a measure is from where it matters; none where it is not known."""
    return min(gap(value, test.within) for _, test in tests(relation, bit)) if value == value else 0.0


def gap(value: float, within: Interval) -> float:
    """How far a number is from a range; a little less, so that rounding never hides that it came there."""
    far = max(within.low - value, value - within.high, 0.0)
    return max(0.0, far - 1e-12 * (abs(value) + far))


def latest(readings: dict[str, Reading]) -> tuple[str, Reading]:
    """The member whose reading is the latest; of one moment, the last that is listed."""
    name = max(readings, key=lambda one: (readings[one].time, list(readings).index(one)))
    return name, readings[name]
