"""Parsing of request bodies with JSON lines, in the format of ``holdfast publish``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...model.event import UNNUMBERED
from ...model.instant import Instant
from ...model.topic import Topic
from ...network.overlay.commands.lines import LineReader
from .arrival import check_arrival
from .submission import IncomingEvent, Rejected, rejection


class ParsedLines(NamedTuple):
    """The parsed body: readings, rejected lines, and the number of corrected times."""

    incoming: list[IncomingEvent]
    rejected: list[Rejected]
    corrected: int = 0


def parse_lines(topics: Mapping[str, Topic], body: bytes, now: Instant) -> ParsedLines:
    """Parse a body of JSON lines. An invalid line becomes a rejection and does not affect the others."""
    found = ParsedLines([], [])
    corrected = 0
    lines = LineReader(dict(topics))
    for number, line in enumerate(body.splitlines()):
        if not line.strip():
            continue
        lines.sequence = UNNUMBERED
        try:
            event, wrong = check_arrival(lines.event(line, now), now)
        except Exception as error:  # a bad line must not affect the others
            found.rejected.append(rejection("http", f"line {number + 1}", error, line, now))
            continue
        corrected += wrong
        found.incoming.append(IncomingEvent(event))
    return found._replace(corrected=corrected)
