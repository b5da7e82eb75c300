"""What agents are given, and what they want: the words that all strategies share."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec

from ...model.instant import Instant
from ...model.relation import Interval, Point, Relation, Test


class Reading(NamedTuple):
    """What a publisher said last: a point, or a number as a point on a line; ``error`` is how far it may be
    off."""

    time: Instant
    sequence: int
    at: Point
    error: float = 0.0


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

    def read(self, reading: Reading, /) -> Wants:
        """Its publisher has said something."""

    def hear(self, sender: str, message: Any, /) -> Wants:
        """Another agent has said something."""

    def lost(self, other: str, /) -> Wants:
        """Another agent cannot be reached: what is known of the relationship is not known any more."""

    def found(self, other: str, /) -> Wants:
        """Another agent can be reached again: begin anew.  [B69]"""

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
