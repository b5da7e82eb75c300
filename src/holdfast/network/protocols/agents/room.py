"""Agents in one process, with queues between them, to count the messages of a strategy.

All agents receive their readings of one time before any message is delivered, because the hop from a
publisher to its agent is shorter than the hop to another agent.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .talk import Agent, AgentOutputs, AgentReading, AgentReport, SendToAgent


@dataclass
class AgentRoom:
    """Agents by name, with the reports to subscribers and the number of messages.

    With a seed, the next connection is chosen at random. Messages of one connection stay in order.
    """

    agents: Mapping[str, Agent]
    seed: int | None = None
    reports: list[AgentReport] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    _lines: dict[tuple[str, str], deque[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._chance = None if self.seed is None else random.Random(self.seed)

    def process(self, readings: Iterable[tuple[str, AgentReading]]) -> list[AgentReport]:
        """Process all readings of one time and return the reports."""
        for name, reading in readings:
            self.counted["readings"] += 1
            self._want(name, self.agents[name].on_reading(reading))
        return self.deliver_all()

    def deliver_all(self) -> list[AgentReport]:
        """Deliver all messages; return the reports since the last call."""
        while self.deliver_one():
            pass
        reports, self.reports = self.reports, []
        return reports

    def deliver_one(self) -> bool:
        """Deliver one message; return whether there was one."""
        links = [link for link, line in self._lines.items() if line]
        if not links:
            return False
        sender, to = links[0] if self._chance is None else self._chance.choice(links)
        queue = self._lines.pop((sender, to)) if self._chance is None else self._lines[sender, to]
        message_ = queue.popleft()
        if self._chance is None and queue:
            self._lines[sender, to] = queue
        self._want(to, self.agents[to].on_message(sender, message_))
        return True

    def disconnect(self, a: str, b: str) -> int:
        """Cut the connection between two agents; return the number of messages that were lost."""
        lost_count = sum(len(self._lines.pop(link, ())) for link in ((a, b), (b, a)))
        for agent, partner in ((a, b), (b, a)):
            self._want(agent, self.agents[agent].on_lost(partner))
        return lost_count

    def connect(self, a: str, b: str) -> None:
        """Restore the connection between two agents, and inform both."""
        for agent, partner in ((a, b), (b, a)):
            self._want(agent, self.agents[agent].on_found(partner))

    def _want(self, name: str, wants: AgentOutputs) -> None:
        for want in wants:
            if isinstance(want, SendToAgent):
                self.counted["messages"] += 1
                self._lines.setdefault((name, want.to), deque()).append(want.message)
            elif isinstance(want, AgentReport):
                self.counted["reports"] += 1
                self.reports.append(want)
