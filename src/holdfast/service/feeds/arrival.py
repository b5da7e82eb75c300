"""Checks of a single event on its arrival, before it enters the log."""

from __future__ import annotations

from dataclasses import replace

from ...errors import InputError
from ...model.event import Event
from ...model.instant import EARLIEST, LATEST, MINUTE, Instant

AHEAD = MINUTE
"""How far a device's clock may be ahead of ours."""


def check_arrival(event: Event, now: Instant) -> tuple[Event, bool]:
    """Check an event; return it and whether its time was corrected.

    A time too far in the future is replaced by ``now``. Raises an error for text that is not valid Unicode.
    """
    for text in (event.source, event.place, *event.attributes.values()):
        if isinstance(text, str) and not text.isascii():
            _require_text(text)
    if event.time > now + AHEAD:
        return replace(event, time=now), True
    if not EARLIEST <= event.time <= LATEST:
        raise InputError("its time is not in the years 1 to 9999")
    return event, False


def _require_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError("it has text that is not Unicode: half of a surrogate pair") from None
