"""A checked count: the result of `check.py`, from which plans, machines and explanations are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...lang.condition import Condition
from ...lang.ops import Levels
from ...model.count import Quota, Unknown
from ...model.qos import TIMELY, Delivery
from ...model.space import Forest
from ...model.topic import Topic


@dataclass(frozen=True)
class CountCondition(Condition):
    """A checked count over the scopes of a condition.

    ``over`` is the topic of the counted condition's derived events; ``topic`` is the topic of the count's own
    events. Members are grouped by ``within`` or ``forest``; without both they are one group. ``settled`` is
    true if the key of a member determines its group. ``roster`` lists the expected members, each with its
    group.
    """

    kind: ClassVar[str] = "count"
    name: str
    over: Topic
    topic: Topic
    quota: Quota
    within: tuple[str, ...]
    forest: Forest | None
    settled: bool
    joined: bool
    roster: tuple[tuple[str, tuple[str, ...] | str | None], ...] | None
    unknown: Unknown
    stage: int
    waits: bool = False
    """Whether the counted condition emits by timers. Its events are then not in order of time."""
    delivery: Delivery = TIMELY

    @property
    def listens(self) -> tuple[Topic, ...]:
        """The derived topic of the counted condition."""
        return (self.over,)

    @property
    def scope_keys(self) -> tuple[str, ...]:
        return self.within

    @property
    def routing_keys(self) -> tuple[str, ...]:
        """The keys of the groups; empty if the event that ends a count may have other keys than the event
        that started it."""
        return self.within if self.settled else ()

    @property
    def outer_scopes(self) -> tuple[Levels, Forest | None]:
        return ((self.within,) if self.within else (), self.forest)

    @property
    def emits_by_time(self) -> bool:
        return self.waits

    @property
    def summary(self) -> str:
        return f"state {self.name} over {', '.join(topic.name for topic in self.listens)}"
