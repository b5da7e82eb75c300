"""Evaluation of log entries that survives faulty readings.

A reading on which the evaluation fails is skipped and reported. All other readings are evaluated.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .core import Core
from .log.frame import Entry, Readings, Unreadable, span
from .log.log import Appended
from .store import NotificationRow, ServiceSnapshot

log = logging.getLogger("holdfast.service")

_MOST = 100
"""How many readings of an entry are skipped individually. Each costs copies of the state; beyond that, the
rest of the entry is skipped."""


@dataclass
class Evaluation:
    """A core that continues after any exception: it restores its state and skips what failed."""

    core: Core
    rewind: Callable[[int], None]
    """Restores the state that the core had before a position."""
    report: Callable[[Appended, str], None]
    """Called with each entry, or part of one, that is skipped, and the reason."""
    skips: dict[int, int] = field(default_factory=dict)
    """Skipped positions, each with how many."""

    def take(self, appended: Appended) -> list[NotificationRow]:
        """Evaluate an entry and return the notifications, ordered by time."""
        return [row for part in parts(appended, self.skips) for row in self._take_part(part)]

    def _take_part(self, part: Appended) -> list[NotificationRow]:
        if (
            isinstance(part.entry, Unreadable)
            and not part.entry.is_damage
            and part.position not in self.skips
        ):
            self._skip(part, part.entry.reason)
        try:
            return self.core.take(part)
        except Exception:
            log.exception("the evaluation of the log at %d fails: it is tried again", part.position)
            self.rewind(part.position)
            return self._take_halves(part, self.core.snapshot(), len(self.skips) + _MOST)

    def _take_halves(self, part: Appended, before: ServiceSnapshot, most: int) -> list[NotificationRow]:
        """Evaluate an entry in halves, recursively, and skip single readings that fail.

        ``before`` is the state before the entry.
        """
        try:
            return self.core.take(part)
        except Exception as error:
            self.core.restore(before)
            if part.after - part.position == 1 or len(self.skips) >= most:
                self._skip(part, f"its evaluation fails: {type(error).__name__}: {error}")
                return self.core.take(_skip_part(part))
        middle = (part.position + part.after) // 2
        found = self._take_halves(_slice(part, part.position, middle), before, most)
        return found + self._take_halves(_slice(part, middle, part.after), self.core.snapshot(), most)

    def _skip(self, part: Appended, reason: str) -> None:
        self.skips[part.position] = part.after - part.position
        self.report(part, reason)


def parts(appended: Appended, skips: Mapping[int, int], until: int | None = None) -> Iterator[Appended]:
    """Yield the parts of an entry before ``until``. Positions in ``skips`` become ``Unreadable`` parts."""
    end = appended.after if until is None else min(until, appended.after)
    end_of_part = appended.position
    for position in sorted(one for one in skips if appended.position <= one < end):
        if end_of_part < position:
            yield _slice(appended, end_of_part, position)
        end_of_part = min(end, position + skips[position])
        yield _skip_part(_slice(appended, position, end_of_part))
    if end_of_part < end:
        yield (
            appended
            if (end_of_part, end) == (appended.position, appended.after)
            else _slice(appended, end_of_part, end)
        )


def _slice(appended: Appended, first: int, after: int) -> Appended:
    """Return the part of an entry from one position to another."""
    entry: Entry = appended.entry
    if isinstance(entry, Readings):
        entry = entry._replace(batch=entry.batch.slice(first - appended.position, after - first))
    elif isinstance(entry, Unreadable):
        entry = entry._replace(span=after - first)
    return Appended(first, entry)


def _skip_part(part: Appended) -> Appended:
    return Appended(part.position, Unreadable(span(part.entry), "it is set aside"))


def printable(entry: Entry) -> bytes:
    """Return an entry as JSON for the list of rejects.

    If JSON cannot represent it, return the reason as text.
    """
    try:
        found: Any = entry.batch.to_pylist() if isinstance(entry, Readings) else entry
        return json.dumps(found, default=str).encode()
    except Exception as error:  # the entry is malformed, or it would not be skipped
        return f"it cannot be shown: {error}".encode()
