"""What every node of a network knows before it is deployed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Literal

from ...errors import UsageError, did_you_mean
from ...model.instant import MINUTE, SECOND, Duration, Instant
from ...model.space import Point, Rectangle, Shape
from .area import Area, minus, of, said
from .mapping import Mapping
from .tree import ROOT, Tree

Compliance = Literal["best-effort", "guaranteed"]


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """The tree, the topics, and the policies that are one for all."""

    tree: Tree
    topics: tuple[str, ...]
    compliance: Compliance = "best-effort"
    """Whether ε holds only until a way is reached that others use already, or on it too.  [F26]"""
    wide_adverts: bool = False
    """Whether also brokers above the leaves are told of advertisements, if they are near.  [F35]"""
    patience: Duration = 5 * SECOND
    """How long a leaf waits for publishers to say what they cover, and how often it looks again.  [F42]"""
    renewal: Duration | None = None
    """How often what was asked for is said again; what is not said for three of them is forgotten."""
    spread: float = 0.0
    """Over what share of a period nodes spread what they do periodically, each by its own chance: those that
    began together would all speak at once."""
    memory: Duration = 10 * MINUTE
    """How long it is remembered that something is over, in case an older word comes late."""
    keeps_latest: bool = False
    """Whether new subscribers get the latest event of each publisher.  [F75]"""
    attendance: Duration | None = None
    """How often clients say that they are there; who does not for three of them has left.  [F48]"""
    mapping: Mapping | None = None
    """Which nodes act for the logical brokers; without it those that are nearest to their points.  [F44]"""

    def __post_init__(self) -> None:
        if not self.topics:
            raise UsageError("a deployment needs a topic")
        for name in ("patience", "memory"):
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} is {getattr(self, name)} µs; it must be above 0")
        for name in ("renewal", "attendance"):
            if (every := getattr(self, name)) is not None and every <= 0:
                raise UsageError(f"{name} every {every} µs; it must be above 0, or None for never")
        if not 0 <= self.spread <= 1:
            raise UsageError(f"a spread of {self.spread}; it is a share of a period, from 0 to 1")

    @property
    def lease(self) -> Duration | None:
        """How long a word counts that is not said again."""
        return None if self.renewal is None else 3 * self.renewal

    def after(self, now: Instant, period: Duration, chance: Random) -> Instant:
        """About a period from now."""
        return now + (round(period * (1 + self.spread * (chance.random() - 0.5))) if self.spread else period)

    def topic(self, name: str) -> str:
        """The topic of that name, which must be one of those."""
        if name not in self.topics:
            hint = did_you_mean(name, self.topics) or f"There is {', '.join(self.topics)}."
            raise UsageError(f"there is no topic '{name}'. {hint}")
        return name

    def region(self, shape: Shape) -> Area:
        """A client's region, which must lie in space."""
        area = of(shape)
        if minus(area, self.tree.area):
            space = said(Rectangle(*self.tree.corners(ROOT)))
            raise UsageError(f"the region {said(shape)} is not all in space, which is {space}")
        return area

    def location(self, point: Point) -> tuple[float, float]:
        """An event's location, which must lie in space."""
        x, y = self.tree.inside(point)
        return (x, y)


def checked_epsilon(epsilon: float) -> float:
    """ε of a client: no way is shorter than the straight one."""
    if not 1 <= epsilon < math.inf:
        raise UsageError(f"ε is {epsilon}; it is 1 (the straight way) or more, such as 1.5")
    return epsilon
