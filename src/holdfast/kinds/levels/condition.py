"""Checked levels: the result of `check.py`, from which plans, machines and explanations are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...lang.condition import Condition
from ...lang.ops import Levels
from ...model.qos import Delivery
from ...model.space import Forest
from ...model.table import Table
from ...model.topic import Topic
from ..state.condition import AnyState


@dataclass(frozen=True)
class LevelsCondition(Condition):
    """Checked levels, the lowest first. ``topic`` is the topic of their events."""

    kind: ClassVar[str] = "levels"
    name: str
    rungs: tuple[AnyState, ...]
    topic: Topic
    delivery: Delivery

    @property
    def listens(self) -> tuple[Topic, ...]:
        """The only topic of readings, which all levels share."""
        return (self.rungs[0].topic,)

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(table for rung in self.rungs for table in rung.tables)

    @property
    def scope_keys(self) -> tuple[str, ...]:
        return self.rungs[0].scope_keys

    @property
    def outer_scopes(self) -> tuple[Levels, Forest | None]:
        return self.rungs[0].outer_scopes

    @property
    def has_levels(self) -> bool:
        return True

    @property
    def emits_by_time(self) -> bool:
        return any(rung.emits_by_time for rung in self.rungs)

    @property
    def api_kind(self) -> str:
        return "levels"

    @property
    def summary(self) -> str:
        rungs = " < ".join(rung.name for rung in self.rungs)
        return f"levels {self.name} on {self.listens[0].name}: {rungs}"
