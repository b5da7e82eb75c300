"""A checked component: the result of `check.py`, from which plans, machines and explanations are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...lang.condition import Condition
from ...lang.ops import Expression, Levels, Truth
from ...model.instant import Duration
from ...model.qos import Delivery
from ...model.query import Function, Query
from ...model.space import Forest, Point
from ...model.topic import Topic


@dataclass(frozen=True)
class CheckedRule:
    """The predicate that starts or ends a condition, its minimum duration, and the computations of its event.

    `hold` is in microseconds.
    """

    when: Expression
    hold: Duration = 0
    sets: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True)
class ComponentCondition(Condition):
    """A checked component.

    `topic` is the topic of its events. `listens` are the topics that it consumes, of readings and of other
    components. `keys` separate its scopes. `level` is 1 for a component of readings, and otherwise one more
    than the highest component that it consumes. `collide` merges readings of equal topic, time, location and
    status.
    """

    kind: ClassVar[str] = "component"
    name: str
    topic: Topic
    inputs: tuple[tuple[str, Query], ...]
    listens: tuple[Topic, ...]
    enter: CheckedRule
    exit: CheckedRule
    keys: tuple[str, ...]
    here: Point | str | None
    tick: Duration | None
    delivery: Delivery
    level: int
    collide: Function = "avg"

    @property
    def momentary(self) -> bool:
        """Whether the exit is always true. Each detection is then an event of its own, and no condition has a
        duration. [F68]"""
        return self.exit.when == Truth(True)

    @property
    def outer_scopes(self) -> tuple[Levels, Forest | None]:
        return ((self.keys,) if self.keys else (), None)

    @property
    def summary(self) -> str:
        return f"state {self.name} from {', '.join(topic.name for topic in self.listens)}"


Components = Sequence[ComponentCondition]
