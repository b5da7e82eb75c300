"""Events, transitions and notifications.

Events are the input of a condition and transitions its output. A notification is a transition that is
addressed to a subscription.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, get_args

import msgspec

from .instant import Instant, show_instant

Value = float | int | str | bool | None
Status = Literal[
    "ingress", "egress", "atomic", "late", "unknown", "known", "raised", "lowered", "joined", "summary",
    "revised", "retracted", "reopened",
]  # fmt: skip
"""The meaning of a transition.

``ingress`` and ``egress`` start and end a condition, ``atomic`` is momentary. ``unknown`` says that its state
is no longer known, ``known`` that it is the same as before. ``raised`` and ``lowered`` change the level.
``joined`` adds a member to an active condition, and ``summary`` counts what was not sent. ``revised`` is a
start or an end caused by a changed definition. ``retracted`` takes back a start, ``reopened`` an end.
``late`` marks an event that came too late for an ordered condition; subscribers do not receive it.
"""

TAKES_BACK: dict[str, Status] = {"ingress": "retracted", "egress": "reopened"}
"""The status that takes back a transition, by the status of that transition."""

_compact = msgspec.json.Encoder().encode  # the bytes of json.dumps, ten times as fast

UNNUMBERED = -1
"""The sequence number of an event before a host numbers it."""

STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class Event:
    """One message of a publisher: a flat set of uniquely named values of basic types. [F1]"""

    topic: str
    time: Instant
    source: str
    attributes: Mapping[str, Value] = field(default_factory=dict)
    sequence: int = UNNUMBERED
    location: tuple[float, ...] | None = None
    place: str | None = None

    @property
    def order(self) -> tuple[Instant, str, int]:
        """The key by which events are sorted for processing."""
        return (self.time, self.source, self.sequence)


def lacking(event: Event, names: Collection[str]) -> Event:
    """Return the event without the attributes ``names``."""
    return replace(event, attributes={k: v for k, v in event.attributes.items() if k not in names})


class Transition(NamedTuple):
    """One output of a condition: the unchanged event [F5], with its status, scope and start."""

    event: Event
    status: Status
    scope: str | None
    since: Instant | None = None
    condition: int = 0
    """The number of the condition in its machine; -1 for a late event, which concerns all of them."""


class Notification(NamedTuple):
    """A transition that is addressed to a subscription."""

    subscription: str
    event: Event
    status: Status
    scope: str | None
    since: Instant | None

    @property
    def id(self) -> str:
        """The id of the notification, which is equal for equal notifications on every runtime."""
        return notification_id(
            self.subscription,
            self.scope,
            self.status,
            self.event.time,
            self.event.source,
            self.event.sequence,
        )

    @property
    def order(self) -> tuple[Instant, str, str, str, int, str]:
        """The key by which notifications are sorted in an output. A missing scope comes first."""
        event = self.event
        return (event.time, self.subscription, self.scope or "", event.source, event.sequence, self.status)

    @property
    def what(self) -> tuple[object, ...]:
        """The key under which a transition and a later one that takes it back are equal."""
        return (self.subscription, self.scope, meant(self.status), self.since, self.event.order)

    def to_json(self) -> dict[str, Any]:
        """Return the notification as the JSON object that the command line prints."""
        event = self.event
        return {
            "id": self.id,
            "subscription": self.subscription,
            "scope": self.scope,
            "status": self.status,
            "time": show_instant(event.time),
            "since": None if self.since is None else show_instant(self.since),
            "topic": event.topic,
            "source": event.source,
            "location": event.place if event.location is None else [_plain(c) for c in event.location],
            "attributes": {name: _plain(value) for name, value in event.attributes.items()},
        }


def notify(
    subscription: str, event: Event, status: Status, scope: str | None, since: Instant | None
) -> Notification:
    """Return a transition as a notification of a subscription.

    Nothing ends before it starts: if a late reading ends an interval that began later, the end gets the time
    of the start.
    """
    if since is not None and since > event.time:
        event = replace(event, time=since)
    return Notification(subscription, event, status, scope, since)


class _Retractable(Protocol):
    @property
    def status(self) -> str: ...
    @property
    def what(self) -> tuple[object, ...]: ...


S = TypeVar("S", bound=_Retractable)


def standing(notifications: Iterable[Notification]) -> list[Notification]:
    """Return the notifications that were not taken back later, in order.

    Use it for conditions with ``late correct``.
    """
    return sorted(left(notifications), key=lambda one: one.order)


def left(notifications: Iterable[S]) -> list[S]:
    """Return notifications without those that were taken back later, and without the retractions."""
    found: dict[object, list[tuple[int, S]]] = {}
    for i, one in enumerate(notifications):
        some = found.setdefault(one.what, [])
        if one.status not in TAKES_BACK.values():
            some.append((i, one))
        elif some:
            some.pop()
    rest = sorted((row for some in found.values() for row in some), key=lambda row: row[0])
    return [one for _, one in rest]


def meant(status: str) -> str:
    """Return the status that a retraction takes back. Any other status is returned unchanged."""
    return next((notifications for notifications, back in TAKES_BACK.items() if back == status), status)


def _plain(value: Value) -> Value:
    """Return a value that JSON can represent: NaN as null, infinity as text."""
    if isinstance(value, float) and value - value != 0:
        return None if value != value else repr(value)
    return value


def notification_id(
    subscription: str, scope: str | None, status: str, time: Instant, source: str, sequence: int
) -> str:
    """Return the id of a notification. Equal notifications have equal ids on every runtime.

    A sink can recognise repetitions by it. It is BLAKE2b, ten bytes in hex, of the compact JSON array
    [subscription, scope, status, time in µs, source, sequence] in UTF-8.
    """
    parts = [subscription, scope, status, time, source, sequence]
    try:
        text = _compact(parts)
    except (UnicodeEncodeError, OverflowError):  # half of a surrogate pair; an int beyond 64 bits
        text = json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=10).hexdigest()
