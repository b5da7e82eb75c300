"""Checked mutes: one condition for each muted condition, with all its causes.

A new cause needs a class here, and a case in each of `check.py`, `plan.py` and `machine.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...lang.condition import Condition
from ...lang.ops import Levels
from ...model.instant import Duration
from ...model.qos import TIMELY, Delivery
from ...model.schedule import Schedule
from ...model.space import Forest
from ...model.topic import Topic


@dataclass(frozen=True)
class ClockCause:
    """A cause of a mute: the notifications are withheld during a schedule."""

    schedule: Schedule


@dataclass(frozen=True)
class ParentCause:
    """A mute while another condition, the parent, is active.

    ``topic`` is the topic of the parent's derived events. ``keys`` or ``forest`` determine the scope that
    both conditions share.
    """

    topic: Topic
    keys: Levels
    forest: Forest | None


@dataclass(frozen=True)
class StormCause:
    """A mute while more than ``most`` scopes that agree in the attributes ``within`` are active."""

    most: int
    within: tuple[str, ...]


Cause = ClockCause | ParentCause | StormCause


@dataclass(frozen=True)
class MuteCondition(Condition):
    """A checked mute of a condition, with all causes.

    ``over`` is the topic of the muted condition's derived events, ``output_topic`` the topic of notifications
    that pass. ``topic`` is the topic of summaries.
    """

    kind: ClassVar[str] = "mute"
    name: str
    target: str
    over: Topic
    output_topic: str
    topic: Topic
    causes: tuple[Cause, ...]
    wait: Duration
    delivery: Delivery = TIMELY

    @property
    def listens(self) -> tuple[Topic, ...]:
        """The derived topics of the muted condition and of its parents."""
        return (self.over, *(cause.topic for cause in self.causes if isinstance(cause, ParentCause)))

    @property
    def mutes(self) -> str:
        return self.target

    @property
    def summary(self) -> str:
        return f"mute {self.target}"
