"""What makes a condition one that people can rely on: how long a predicate must hold, what becomes of scopes
that fall silent, and how a scope begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from .instant import Duration

Initially = Literal["off", "on", "unknown"]
INITIALLY: tuple[Initially, ...] = get_args(Initially)


@dataclass(frozen=True, slots=True)
class Hold:
    """``for 5 min``, ``for 3 readings`` or ``for Limits.wait``: how long a predicate must hold; by default it
    need not."""

    length: Duration = 0
    readings: int = 0
    column: str | None = None
    """The column of a table that has the length."""

    def __bool__(self) -> bool:
        return bool(self.length or self.readings or self.column)


AT_ONCE = Hold()


@dataclass(frozen=True, slots=True)
class Roster:
    """Scopes that are expected before they speak: those of a file, of a table, or of the gazetteer."""

    path: str | None = None
    """The file; without it and without a table, the gazetteer."""
    table: str | None = None


@dataclass(frozen=True, slots=True)
class Care:
    """What a state says beside its predicates.

    ``unknown`` and ``forget`` are how long after its last reading a scope is unknown, or forgotten;
    ``quietly`` leaves unsaid what already holds at the first reading.
    """

    enter: Hold = AT_ONCE
    exit: Hold = AT_ONCE
    unknown: Duration | None = None
    forget: Duration | None = None
    initially: Initially = "off"
    quietly: bool = False
    roster: Roster | None = None


PLAIN = Care()
"""Nothing of it."""
