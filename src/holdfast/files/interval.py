"""Pairing of the starts and ends of conditions to intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..errors import UsageError
from ..model.event import TAKES_BACK, Notification, Value
from ..model.instant import SECOND, Instant


class Interval(NamedTuple):
    """The interval of a condition. ``end`` is ``None`` while the condition is active.

    ``source`` and ``attributes`` are those of the event that started it, and missing if that event is
    unknown.
    """

    subscription: str
    scope: str | None
    start: Instant
    end: Instant | None
    topic: str
    source: str | None
    attributes: Mapping[str, Value] | None
    known: bool = True
    """Whether the condition is known to be active still."""

    @property
    def duration(self) -> float | None:
        """The duration in seconds; ``None`` while the interval is open.

        It is 0 if the end is before the start, which the order of live arrivals can cause.
        """
        return None if self.end is None else max(0, self.end - self.start) / SECOND

    @property
    def open(self) -> bool:
        return self.end is None


class Pairing:
    """Pairs each start of a condition with its end, in each scope."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str | None], Interval] = {}

    def pair(self, notifications: Iterable[Notification]) -> list[Interval]:
        """Return the intervals that these notifications end, in the order of their ends."""
        found: list[Interval] = []
        for notification in map(_final, notifications):
            key = notification.subscription, notification.scope
            match notification.status:
                case "ingress":
                    self._open[key] = _interval(notification, None)
                case "atomic":
                    found.append(_interval(notification, notification.event.time))
                case "egress":
                    found.append(_close(self._open.pop(key, None), notification))
                case "unknown" if key in self._open:
                    self._open[key] = self._open[key]._replace(known=False)
                case "known" if key in self._open:
                    self._open[key] = self._open[key]._replace(known=True)
                case "revised" if notification.since is None:
                    found.append(_close(self._open.pop(key, None), notification))
                case "revised":
                    start = notification.since or notification.event.time
                    self._open[key] = _interval(notification, None)._replace(start=start)
                case "late" | "unknown" | "known":
                    pass  # reaches no subscriber, or ends nothing
        return found

    def still_open(self) -> list[Interval]:
        """Return the intervals without an end, sorted by start, subscription and scope."""
        return sorted(self._open.values(), key=lambda i: (i.start, i.subscription, i.scope or ""))


def _final(notification: Notification) -> Notification:
    """Return the notification. Refuse a retraction, because its interval may have been returned already."""
    if notification.status in TAKES_BACK.values():
        raise UsageError(
            f"'{notification.subscription}' has corrected what it told: take what stands of it, "
            "holdfast.standing(notifications)"
        )
    return notification


def _interval(notification: Notification, end: Instant | None) -> Interval:
    event = notification.event
    return Interval(
        notification.subscription,
        notification.scope,
        event.time,
        end,
        event.topic,
        event.source,
        event.attributes,
    )


def _close(open_interval: Interval | None, notification: Notification) -> Interval:
    event = notification.event
    if open_interval is not None:
        return open_interval._replace(end=event.time, known=True)
    start = event.time if notification.since is None else notification.since
    return Interval(notification.subscription, notification.scope, start, event.time, event.topic, None, None)
