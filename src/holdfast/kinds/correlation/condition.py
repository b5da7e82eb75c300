"""A checked correlation: the result of `check.py`, from which plans and explanations are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...lang.condition import Condition
from ...model.correlation import Correlation, Tell
from ...model.qos import Delivery
from ...model.space import Forest
from ...model.topic import Topic


@dataclass(frozen=True)
class CorrelationCondition(Condition):
    """A checked correlation.

    Filter ``i`` of ``correlation`` compares attribute ``measured[i]`` of a topic. ``forest`` is the region
    with its places and sources, or `None`. ``topic`` is the topic of complex events.
    """

    kind: ClassVar[str] = "correlation"
    name: str
    correlation: Correlation
    measured: tuple[tuple[Topic, str], ...]
    forest: Forest | None
    tell: Tell
    delivery: Delivery
    topic: Topic

    @property
    def listens(self) -> tuple[Topic, ...]:
        """The topics of the correlation's filters."""
        return tuple(dict.fromkeys(topic for topic, _ in self.measured))

    @property
    def momentary(self) -> bool:
        return True

    @property
    def publishes(self) -> bool:
        return self.tell != "events"

    @property
    def output_topics(self) -> tuple[Topic, ...]:
        return (self.topic,) if self.publishes else self.listens

    @property
    def api_kind(self) -> str:
        return "correlations"

    @property
    def summary(self) -> str:
        return f"correlate {self.name} from {', '.join(topic.name for topic in self.listens)}"
