"""Base classes of agents with a mediator, with the behaviour that all such strategies share."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec

from ....model.relation import Relation
from .talk import Agent, AgentOutputs, AgentReport, ReportingAgent, SendToAgent


class MediatedAgent(Agent):
    """An agent that reports to a mediator and then waits for its answer."""

    is_waiting: bool

    def _send_value(self, round: int) -> AgentOutputs:
        """Return the message with the agent's current value; empty if it has no value."""
        raise NotImplementedError

    def on_lost(self, _other: str) -> AgentOutputs:
        self.is_waiting = True
        return []

    def on_found(self, _other: str) -> AgentOutputs:
        self.is_waiting = False
        return self._send_value(0)


@dataclass
class MediatorAgent(ReportingAgent):
    """A mediator, which stores the last value of each member. ``awaited`` are the members whose answer is
    missing.

    ``round`` is the number of its last question, a message of type ``question``. With ``printed`` it follows
    the rules as printed in the thesis.
    """

    name: str
    members: tuple[str, ...]
    relation: Relation
    printed: bool = False
    last_values: dict[str, Any] = field(default_factory=dict)
    awaited: set[str] = field(default_factory=set)
    round: int = 0
    bit: int | None = 0
    turns: int = 0
    question: ClassVar[type[msgspec.Struct]]

    @property
    def knows_all(self) -> bool:
        """Whether every member has sent a value."""
        return len(self.last_values) >= len(self.members)

    def _ask_all(self, known: str | None = None) -> AgentOutputs:
        """Ask all members for their values, except the member ``known``."""
        self.awaited = {name for name in self.members if name != known}
        self.round += 1
        asked = [name for name in self.members if name in self.awaited]
        return [SendToAgent(name, self.question(self.round)) for name in asked] or self._evaluate()

    def _evaluate(self) -> AgentOutputs:
        """Evaluate the condition on all values, report a change, and answer the members."""
        raise NotImplementedError

    def on_partner_changed(self, other: str) -> AgentOutputs:
        self.last_values.pop(other, None)
        self.awaited.clear()
        return []

    def on_lost(self, other: str) -> AgentOutputs:
        self.on_partner_changed(other)
        self.turns += 1
        was, self.bit = self.bit, None
        return [] if was is None else [AgentReport("unknown", other, None, math.nan)]

    def change_relation(self, relation: Relation) -> AgentOutputs:
        self.relation = relation
        return self._ask_all() if self.knows_all else []
