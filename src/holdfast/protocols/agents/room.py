"""Agents in one process: messages in line, so that what a strategy costs can be counted.

Readings of one instant are given to all agents before any message is let through, as the hop from a publisher
to the agent beside it is shorter than that to another agent.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .talk import Agent, Reading, Report, Say, Wants


@dataclass
class Room:
    """Agents by name.  ``reports`` are what subscribers hear; ``counted`` says how much was said.  With a
    seed, chance says which link is next; messages of one link stay in order."""

    agents: Mapping[str, Agent]
    seed: int | None = None
    reports: list[Report] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    _lines: dict[tuple[str, str], deque[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._chance = None if self.seed is None else random.Random(self.seed)

    def instant(self, readings: Iterable[tuple[str, Reading]]) -> list[Report]:
        """All readings of an instant, and what comes of them."""
        for name, reading in readings:
            self.counted["readings"] += 1
            self._want(name, self.agents[name].read(reading))
        return self.settle()

    def settle(self) -> list[Report]:
        """Let every message through; what was reported since the last time."""
        while self.step():
            pass
        said, self.reports = self.reports, []
        return said

    def step(self) -> bool:
        """Let one message through; whether there was one."""
        links = [link for link, line in self._lines.items() if line]
        if not links:
            return False
        sender, to = links[0] if self._chance is None else self._chance.choice(links)
        message = self._lines.pop((sender, to)) if self._chance is None else self._lines[sender, to]
        first = message.popleft()
        if self._chance is None and message:
            self._lines[sender, to] = message
        self._want(to, self.agents[to].hear(sender, first))
        return True

    def cut(self, a: str, b: str) -> int:
        """Part two agents; how many messages were lost between them."""
        lost = sum(len(self._lines.pop(link, ())) for link in ((a, b), (b, a)))
        for one, other in ((a, b), (b, a)):
            self._want(one, self.agents[one].lost(other))
        return lost

    def join(self, a: str, b: str) -> None:
        """Let two agents reach one another again."""
        for one, other in ((a, b), (b, a)):
            self._want(one, self.agents[one].found(other))

    def _want(self, name: str, wants: Wants) -> None:
        for want in wants:
            if isinstance(want, Say):
                self.counted["messages"] += 1
                self._lines.setdefault((name, want.to), deque()).append(want.message)
            elif isinstance(want, Report):
                self.counted["reports"] += 1
                self.reports.append(want)
