"""A checked relation: the result of `check.py`, from which plans, machines and explanations are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...lang.condition import Condition
from ...model.qos import Delivery
from ...model.relation import Relation, Setting
from ...model.topic import Topic


@dataclass(frozen=True)
class RelationCondition(Condition):
    """A checked relation.

    ``topic`` is the topic of its events. ``using`` is the strategy with which an overlay evaluates it.
    """

    kind: ClassVar[str] = "relation"
    name: str
    relation: Relation
    listens: tuple[Topic, ...]
    using: str | None
    delivery: Delivery
    topic: Topic
    settings: tuple[Setting, ...] = ()

    @property
    def spans_scopes(self) -> bool:
        return True

    @property
    def summary(self) -> str:
        return f"relate {self.name} from {', '.join(topic.name for topic in self.listens)}"
