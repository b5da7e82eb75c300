"""Who acts for a logical broker: the hooks by which nodes compare themselves, and when they look.  [F44]"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...errors import UsageError
from ...model.instant import SECOND, Duration


@dataclass(frozen=True, slots=True)
class Resources:
    """What a node has left, each as a share of what it had; its host tells the broker now and then."""

    energy: float = 1.0
    memory: float = 1.0


Suit = Callable[[Resources, float], float]
"""``suit(u, v)``: how well a node with these resources would do that far from a broker's point; more is
better."""
Compare = Callable[[float, float], bool]
"""``compare(original, present)``: whether a node that suits no better than this gives its role away."""


def by_position(_: Resources, away: float) -> float:
    """Whoever is nearest: hashing alone."""
    return 1 / (1 + away)


@dataclass(frozen=True, slots=True)
class by_resources:  # noqa: N801 - a function with a parameter
    """What is scarcest, and how near: half of it at that distance."""

    half: float

    def __call__(self, left: Resources, away: float) -> float:
        return min(left.energy, left.memory) / (1 + away / self.half)


@dataclass(frozen=True, slots=True)
class fallen:  # noqa: N801 - a function with a parameter
    """Give away what one suits less than such a share of what it was."""

    to: float = 0.5

    def __call__(self, original: float, present: float) -> bool:
        return present < self.to * original


def never(_original: float, _present: float) -> bool:
    """Keep every role."""
    return False


@dataclass(frozen=True, kw_only=True)
class Mapping:
    """How roles find nodes, and leave them."""

    suit: Suit = by_position
    compare: Compare = never
    check: Duration = 30 * SECOND
    """How often a node compares, says that it acts for a broker, and gives its tables to those near by; who
    says so for three of them no more is forgotten."""
    patience: Duration = 5 * SECOND
    """How long to wait for an answer: of a successor, of a node that an event is for."""
    tries: int = 3
    """How often an event is brought to a node that does not answer, before that is said to be gone."""
    room: int | None = None
    """How many bytes of tables go into one message; None: all."""

    @property
    def nearest(self) -> bool:
        """Whether a role belongs to the node nearest to the broker's point, whatever other roles that has."""
        return self.suit is by_position

    def __post_init__(self) -> None:
        for name in ("check", "patience"):
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} is {getattr(self, name)} µs; it must be above 0")
