"""The configuration that every node of a network has before its deployment."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Literal

from ....errors import UsageError, did_you_mean
from ....model.instant import MINUTE, SECOND, Duration, Instant
from ....model.space import Point, Rectangle, Shape
from .area import Area, difference, of, region_text
from .mapping import RoleMapping
from .tree import ROOT, ScopeTree

Compliance = Literal["best-effort", "guaranteed"]


@dataclass(frozen=True, kw_only=True)
class QpsDeployment:
    """The tree, the topics, and the policies that are common to all nodes."""

    tree: ScopeTree
    topics: tuple[str, ...]
    compliance: Compliance = "best-effort"
    """Whether ε is also guaranteed on shared paths, or only up to the first shared broker. [F26]"""
    wide_adverts: bool = False
    """Whether nearby brokers above the leaves also receive advertisements. [F35]"""
    patience: Duration = 5 * SECOND
    """The time in µs that a leaf waits for the coverage of publishers. It is also the period of its checks.
    [F42]
    """
    renewal: Duration | None = None
    """The period in µs of repeated requests; ``None`` for no repetition. A request that is not repeated for
    three periods is dropped.
    """
    spread: float = 0.0
    """The random spread of periodic messages, as a share of their period.

    Without it, nodes that start together would all send at the same times.
    """
    memory: Duration = 10 * MINUTE
    """The time in µs for which an ended request is stored, in case an older message arrives late."""
    keeps_latest: bool = False
    """Whether new subscribers receive the latest event of each publisher.  [F75]"""
    attendance: Duration | None = None
    """The period in µs of clients' signs of life; ``None`` if none are required. A client without a sign for
    three periods is removed. [F48]
    """
    mapping: RoleMapping | None = None
    """The rule by which nodes are chosen for logical brokers; ``None`` for the node nearest to the broker's
    point. [F44]
    """

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
        """The time in µs for which a request is valid without repetition; ``None`` without limit."""
        return None if self.renewal is None else 3 * self.renewal

    def after(self, now: Instant, period: Duration, chance: Random) -> Instant:
        """Return the time one period after ``now``, with the random spread."""
        return now + (round(period * (1 + self.spread * (chance.random() - 0.5))) if self.spread else period)

    def topic(self, name: str) -> str:
        """Return the name of a known topic; raise a `UsageError` for any other."""
        if name not in self.topics:
            hint = did_you_mean(name, self.topics) or f"There is {', '.join(self.topics)}."
            raise UsageError(f"there is no topic '{name}'. {hint}")
        return name

    def region(self, shape: Shape) -> Area:
        """Return a client's region as an area; raise a `UsageError` if it is not within space."""
        area = of(shape)
        if difference(area, self.tree.area):
            space = region_text(Rectangle(*self.tree.corners(ROOT)))
            raise UsageError(f"the region {region_text(shape)} is not all in space, which is {space}")
        return area

    def location(self, point: Point) -> tuple[float, float]:
        """Return an event's location; raise a `UsageError` if it is outside of space."""
        x, y = self.tree.inside(point)
        return (x, y)


def check_epsilon(epsilon: float) -> float:
    """Return a valid ε; raise a `UsageError` for any other. No path is shorter than the straight line."""
    if not 1 <= epsilon < math.inf:
        raise UsageError(f"ε is {epsilon}; it is 1 (the straight way) or more, such as 1.5")
    return epsilon
