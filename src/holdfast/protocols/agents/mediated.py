"""Agents below and the one above them that reports: what becomes of both when one cannot be reached."""

from __future__ import annotations

import math
from typing import Any

from ...model.relation import Relation
from .talk import Knowledge, Reading, Report, Wants


class Below:
    """Tells the one above what its publisher says, and then waits for a word."""

    has_told: bool
    reports = False

    def _tell(self, round: int) -> Wants:
        """What it knows now, if it knows anything."""
        raise NotImplementedError

    def lost(self, _other: str) -> Wants:
        self.has_told = True
        return []

    def found(self, _other: str) -> Wants:
        self.has_told = False
        return self._tell(0)

    def renew(self, other: str) -> Wants:
        return self.found(other)

    def knowledge(self) -> Knowledge:
        """What is reported is known to the one above."""
        return Knowledge(0, 0)

    def adopt(self, _knowledge: Knowledge) -> None:
        """What is reported is known to the one above."""

    def doubt(self) -> None:
        """What is reported is the business of the one above."""

    def reset(self, _relation: Relation) -> Wants:
        return []


class Above:
    """Knows what was told by all below it; whom it has ``asked`` has yet to answer."""

    known: dict[str, Any]
    asked: set[str]
    bit: int | None
    turns: int
    reports = True

    def read(self, _reading: Reading) -> Wants:
        return []

    def renew(self, other: str) -> Wants:
        self.known.pop(other, None)
        self.asked.clear()
        return []

    def knowledge(self) -> Knowledge:
        return Knowledge(self.turns, self.bit)

    def adopt(self, knowledge: Knowledge) -> None:
        self.turns, self.bit = knowledge.turns, knowledge.bit

    def lost(self, other: str) -> Wants:
        self.renew(other)
        self.turns += 1
        was, self.bit = self.bit, None
        return [] if was is None else [Report("unknown", other, None, math.nan)]

    def found(self, _other: str) -> Wants:
        return []

    def doubt(self) -> None:
        self.bit, self.turns = None, self.turns + 1
