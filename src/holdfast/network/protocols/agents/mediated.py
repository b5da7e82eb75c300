"""Base classes of agents with a mediator: how both sides handle the loss of the other."""

from __future__ import annotations

import math
from typing import Any

from ....model.relation import Relation
from .talk import AgentKnowledge, AgentOutputs, AgentReading, AgentReport


class MediatedAgent:
    """An agent that reports to a mediator and then waits for its answer."""

    is_waiting: bool
    reports = False

    def _send_value(self, round: int) -> AgentOutputs:
        """Return the message with its current value, if it has one."""
        raise NotImplementedError

    def on_lost(self, _other: str) -> AgentOutputs:
        self.is_waiting = True
        return []

    def on_found(self, _other: str) -> AgentOutputs:
        self.is_waiting = False
        return self._send_value(0)

    def on_partner_changed(self, other: str) -> AgentOutputs:
        return self.on_found(other)

    def knowledge(self) -> AgentKnowledge:
        """Return an empty value: the mediator has the knowledge about reports."""
        return AgentKnowledge(0, 0)

    def adopt(self, _knowledge: AgentKnowledge) -> None:
        """Do nothing: the mediator has the knowledge about reports."""

    def mark_unknown(self) -> None:
        """Do nothing: the mediator decides what is reported."""

    def change_relation(self, _relation: Relation) -> AgentOutputs:
        return []


class MediatorAgent:
    """A mediator: stores the last value of each agent below; ``awaited`` are those that have yet to
    answer."""

    last_values: dict[str, Any]
    awaited: set[str]
    bit: int | None
    turns: int
    reports = True

    def on_reading(self, _reading: AgentReading) -> AgentOutputs:
        return []

    def on_partner_changed(self, other: str) -> AgentOutputs:
        self.last_values.pop(other, None)
        self.awaited.clear()
        return []

    def knowledge(self) -> AgentKnowledge:
        return AgentKnowledge(self.turns, self.bit)

    def adopt(self, knowledge: AgentKnowledge) -> None:
        self.turns, self.bit = knowledge.turns, knowledge.bit

    def on_lost(self, other: str) -> AgentOutputs:
        self.on_partner_changed(other)
        self.turns += 1
        was, self.bit = self.bit, None
        return [] if was is None else [AgentReport("unknown", other, None, math.nan)]

    def on_found(self, _other: str) -> AgentOutputs:
        return []

    def mark_unknown(self) -> None:
        self.bit, self.turns = None, self.turns + 1
