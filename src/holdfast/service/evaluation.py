"""Evaluate what the log has.  A reading that makes the evaluation fail is set aside, and the rest goes on."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .core import Core
from .log.frame import Entry, Readings, Unreadable, span
from .log.log import Appended
from .store import Snapshot, Told

log = logging.getLogger("holdfast.service")

_MOST = 100
"""Readings of one entry that are set aside one by one; each costs copies of the state.  The rest of an entry
that has more goes with them."""


@dataclass
class Evaluation:
    """A core that goes on whatever an entry raises."""

    core: Core
    rewind: Callable[[int], None]
    """Gives the core the state that it had before a position."""
    report: Callable[[Appended, str], None]
    """Called with each entry, or part of one, that is set aside, and why."""
    aside: dict[int, int] = field(default_factory=dict)
    """Positions that are set aside, each with how many."""

    def take(self, appended: Appended) -> list[Told]:
        """Process an entry; what it starts or ends, by time."""
        return [told for part in parts(appended, self.aside) for told in self._tried(part)]

    def _tried(self, part: Appended) -> list[Told]:
        if (
            isinstance(part.entry, Unreadable)
            and not part.entry.is_damage
            and part.position not in self.aside
        ):
            self._set_aside(part, part.entry.reason)
        try:
            return self.core.take(part)
        except Exception:
            log.exception("the evaluation of the log at %d fails: it is tried again", part.position)
            self.rewind(part.position)
            return self._divided(part, self.core.snapshot(), len(self.aside) + _MOST)

    def _divided(self, part: Appended, before: Snapshot, most: int) -> list[Told]:
        """Process what can be of an entry, from the state before it."""
        try:
            return self.core.take(part)
        except Exception as error:
            self.core.restore(before)
            if part.after - part.position == 1 or len(self.aside) >= most:
                self._set_aside(part, f"its evaluation fails: {type(error).__name__}: {error}")
                return self.core.take(_passed_over(part))
        middle = (part.position + part.after) // 2
        found = self._divided(_between(part, part.position, middle), before, most)
        return found + self._divided(_between(part, middle, part.after), self.core.snapshot(), most)

    def _set_aside(self, part: Appended, reason: str) -> None:
        self.aside[part.position] = part.after - part.position
        self.report(part, reason)


def parts(appended: Appended, aside: Mapping[int, int], until: int | None = None) -> Iterator[Appended]:
    """The parts of an entry before a position; those that are set aside are passed over."""
    end = appended.after if until is None else min(until, appended.after)
    reached = appended.position
    for position in sorted(one for one in aside if appended.position <= one < end):
        if reached < position:
            yield _between(appended, reached, position)
        reached = min(end, position + aside[position])
        yield _passed_over(_between(appended, position, reached))
    if reached < end:
        yield (
            appended
            if (reached, end) == (appended.position, appended.after)
            else _between(appended, reached, end)
        )


def _between(appended: Appended, first: int, after: int) -> Appended:
    """A part of an entry."""
    entry: Entry = appended.entry
    if isinstance(entry, Readings):
        entry = entry._replace(batch=entry.batch.slice(first - appended.position, after - first))
    elif isinstance(entry, Unreadable):
        entry = entry._replace(span=after - first)
    return Appended(first, entry)


def _passed_over(part: Appended) -> Appended:
    return Appended(part.position, Unreadable(span(part.entry), "it is set aside"))


def shown(entry: Entry) -> bytes:
    """An entry for people to look at, as far as that is possible."""
    try:
        found: Any = entry.batch.to_pylist() if isinstance(entry, Readings) else entry
        return json.dumps(found, default=str).encode()
    except Exception as error:  # it is set aside because something is wrong with it
        return f"it cannot be shown: {error}".encode()
