"""The stretches during which conditions held, out of their starts and ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..errors import UsageError
from ..model.event import TAKES_BACK, Notification, Value
from ..model.instant import SECOND, Instant


class Interval(NamedTuple):
    """From when to when a condition held; ``end`` is missing while it holds.

    ``source`` and ``attributes`` are those of the event that started it; they are missing when
    that event is not known.
    """

    subscription: str
    scope: str | None
    start: Instant
    end: Instant | None
    topic: str
    source: str | None
    attributes: Mapping[str, Value] | None
    known: bool = True
    """Whether it is known that it still holds."""

    @property
    def duration(self) -> float | None:
        """Seconds; none of an end that is older than its start, as live arrivals may have it."""
        return None if self.end is None else max(0, self.end - self.start) / SECOND

    @property
    def open(self) -> bool:
        return self.end is None


class Pairing:
    """Pairs each start with its end."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str | None], Interval] = {}

    def completed(self, notifications: Iterable[Notification]) -> list[Interval]:
        """The intervals that these notifications end, in the order in which they end."""
        found: list[Interval] = []
        for notification in map(_final, notifications):
            key = notification.subscription, notification.scope
            match notification.status:
                case "ingress":
                    self._open[key] = _interval(notification, None)
                case "atomic":
                    found.append(_interval(notification, notification.event.time))
                case "egress":
                    found.append(_ended(self._open.pop(key, None), notification))
                case "unknown" if key in self._open:
                    self._open[key] = self._open[key]._replace(known=False)
                case "known" if key in self._open:
                    self._open[key] = self._open[key]._replace(known=True)
                case "revised" if notification.since is None:
                    found.append(_ended(self._open.pop(key, None), notification))
                case "revised":
                    start = notification.since or notification.event.time
                    self._open[key] = _interval(notification, None)._replace(start=start)
                case "late" | "unknown" | "known":
                    pass  # reaches no subscriber, or ends nothing
        return found

    def still_open(self) -> list[Interval]:
        """The intervals that nothing has ended, by (start, subscription, scope)."""
        return sorted(self._open.values(), key=lambda i: (i.start, i.subscription, i.scope or ""))


def _final(notification: Notification) -> Notification:
    """Refuse what takes something back: an interval that was handed out is gone."""
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


def _ended(begun: Interval | None, notification: Notification) -> Interval:
    event = notification.event
    if begun is not None:
        return begun._replace(end=event.time, known=True)
    start = event.time if notification.since is None else notification.since
    return Interval(notification.subscription, notification.scope, start, event.time, event.topic, None, None)
