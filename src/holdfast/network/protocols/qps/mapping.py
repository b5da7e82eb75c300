"""The choice of nodes for logical brokers: comparison functions and their parameters.  [F44]"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....errors import UsageError
from ....model.instant import SECOND, Duration


@dataclass(frozen=True, slots=True)
class Resources:
    """The remaining resources of a node, each as a share of its initial value. The node's host
    updates them.
    """

    energy: float = 1.0
    memory: float = 1.0


Suit = Callable[[Resources, float], float]
"""``suit(u, v)`` returns how well a node with resources ``u`` fits at distance ``v`` from a broker's point.

A higher value is better.
"""
Compare = Callable[[float, float], bool]
"""``compare(original, present)`` returns whether a node whose fit fell to ``present`` hands its role over."""


def by_position(_: Resources, away: float) -> float:
    """Return a fit by distance alone, so that the nearest node fits best."""
    return 1 / (1 + away)


@dataclass(frozen=True, slots=True)
class by_resources:  # noqa: N801 - a function with a parameter
    """A fit by the scarcest resource and by distance; ``half`` is the distance that halves it."""

    half: float

    def __call__(self, remaining: Resources, away: float) -> float:
        return min(remaining.energy, remaining.memory) / (1 + away / self.half)


@dataclass(frozen=True, slots=True)
class fallen_below:  # noqa: N801 - a function with a parameter
    """Hand over a role when the fit falls below a share of its original value."""

    to: float = 0.5

    def __call__(self, original: float, present: float) -> bool:
        return present < self.to * original


def never(_original: float, _present: float) -> bool:
    """Return false, so that no role is ever handed over."""
    return False


@dataclass(frozen=True, kw_only=True)
class RoleMapping:
    """The rules by which nodes get roles and hand them over."""

    suit: Suit = by_position
    compare: Compare = never
    check: Duration = 30 * SECOND
    """The period in µs of comparisons, heartbeats and copies of tables.

    A holder without a heartbeat for three periods is forgotten.
    """
    patience: Duration = 5 * SECOND
    """The time in µs to wait for the answer of a successor or of an event's destination."""
    tries: int = 3
    """The number of times that an event is sent to a node that does not answer, before the node is reported
    as gone.
    """
    room: int | None = None
    """The greatest number of bytes of tables in one message; ``None`` for no limit."""

    @property
    def nearest(self) -> bool:
        """Whether a role belongs to the node nearest to the broker's point, regardless of its other roles."""
        return self.suit is by_position

    def __post_init__(self) -> None:
        for name in ("check", "patience"):
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} is {getattr(self, name)} µs; it must be above 0")
