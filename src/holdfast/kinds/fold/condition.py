"""A checked fold: the result of `check.py`, from which plans, machines and explanations are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...lang.condition import Condition
from ...model.qos import TIMELY, Delivery
from ...model.space import Forest
from ...model.topic import Topic


@dataclass(frozen=True)
class FoldCondition(Condition):
    """A checked fold.

    ``over`` is the topic of the folded condition's derived events, ``topic`` the topic of the fold's own
    events. A cell is active while more than ``most`` of its direct children are active, until fewer than
    ``fewer`` are. Cells are regions, or squares with ``sides`` in metres, the smallest first.
    """

    kind: ClassVar[str] = "fold"
    name: str
    over: Topic
    topic: Topic
    most: int
    fewer: int
    forest: Forest | None
    sides: tuple[float, ...]
    waits: bool = False
    delivery: Delivery = TIMELY

    @property
    def listens(self) -> tuple[Topic, ...]:
        """The derived topic of the folded condition."""
        return (self.over,)

    @property
    def spans_scopes(self) -> bool:
        return True

    @property
    def emits_by_time(self) -> bool:
        return self.waits

    @property
    def summary(self) -> str:
        return f"fold {self.name} over {', '.join(topic.name for topic in self.listens)}"
