"""A checked overlap: the result of `check.py`, from which plans and machines are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...lang.condition import Condition
from ...model.allen import Allen
from ...model.instant import Duration
from ...model.qos import TIMELY, Delivery
from ...model.topic import Topic


@dataclass(frozen=True)
class OverlapCondition(Condition):
    """A checked overlap, which is a correlation of conditions.

    ``over`` are the topics of the conditions' derived events; ``topic`` is the topic of its own events.
    Intervals are related if they agree in the attributes ``per``; ``settled`` is true if the keys of all
    conditions determine these attributes. ``near`` is in metres, ``within`` in microseconds.
    """

    kind: ClassVar[str] = "overlap"
    name: str
    over: tuple[Topic, ...]
    relation: Allen
    within: Duration | None
    near: float
    per: tuple[str, ...]
    settled: bool
    topic: Topic
    delivery: Delivery = TIMELY

    @property
    def listens(self) -> tuple[Topic, ...]:
        """The derived topics of the related conditions."""
        return self.over

    @property
    def momentary(self) -> bool:
        """Whether the overlap ends as it starts. Only ``overlapping`` has a duration."""
        return self.relation != "overlapping"

    @property
    def spans_scopes(self) -> bool:
        return True

    @property
    def api_kind(self) -> str:
        return "filter" if self.momentary else "intervals"

    @property
    def summary(self) -> str:
        return f"correlate {self.name} over {', '.join(topic.name for topic in self.listens)}"
