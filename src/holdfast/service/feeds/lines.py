"""JSON lines, as ``holdfast publish`` takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...model.event import UNNUMBERED
from ...model.instant import Instant
from ...model.topic import Topic
from ...runtimes.overlay.commands.lines import Lines
from .arrival import arrived
from .submission import Given, Rejected, rejection


class Taken(NamedTuple):
    """What a message brought: readings, what is none, and how many clocks were wrong."""

    given: list[Given]
    rejected: list[Rejected]
    corrected: int = 0


def taken(topics: Mapping[str, Topic], body: bytes, now: Instant) -> Taken:
    """The readings of a body of JSON lines; lines that are none are put aside."""
    found = Taken([], [])
    corrected = 0
    lines = Lines(dict(topics))
    for number, line in enumerate(body.splitlines()):
        if not line.strip():
            continue
        lines.sequence = UNNUMBERED
        try:
            event, wrong = arrived(lines.event(line, now), now)
        except Exception as error:  # one line never costs the others
            found.rejected.append(rejection("http", f"line {number + 1}", error, line, now))
            continue
        corrected += wrong
        found.given.append(Given(event))
    return found._replace(corrected=corrected)
