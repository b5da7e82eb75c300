"""Rules of a condition beside its predicates: minimum durations, no data, and expected sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from .instant import Duration

Initially = Literal["off", "on", "unknown"]
INITIALLY: tuple[Initially, ...] = get_args(Initially)


@dataclass(frozen=True, slots=True)
class Hold:
    """A minimum duration: ``for 5 min``, ``for 3 readings`` or ``for Limits.wait``.

    The default requires nothing.
    """

    length: Duration = 0
    readings: int = 0
    column: str | None = None
    """The table column that contains the duration."""

    def __bool__(self) -> bool:
        return bool(self.length or self.readings or self.column)


AT_ONCE = Hold()


@dataclass(frozen=True, slots=True)
class Roster:
    """Expected sources: scopes that exist before their first event, from a file, a table or the gazetteer."""

    path: str | None = None
    """The file. Without a file and a table, the gazetteer lists the scopes."""
    table: str | None = None


@dataclass(frozen=True, slots=True)
class Care:
    """The rules of a state beside its predicates.

    ``unknown`` and ``forget`` are durations after the last reading of a scope: then it becomes unknown, or
    its state is removed. With ``quietly`` a condition that is active at the first reading emits no start.
    """

    enter: Hold = AT_ONCE
    exit: Hold = AT_ONCE
    unknown: Duration | None = None
    forget: Duration | None = None
    initially: Initially = "off"
    quietly: bool = False
    roster: Roster | None = None


PLAIN = Care()
"""No minimum duration."""
