"""Events go in; transitions come out; a notification is a transition that somebody asked for."""

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
"""``unknown`` says that nobody knows any more whether a condition holds, ``known`` that it is as it was
before; ``raised`` and ``lowered`` lead from one level to another; ``joined`` tells of a further member of
what holds already, ``summary`` of what was not told; ``revised`` that a condition holds, or no longer does,
because its definition is another; ``retracted`` takes back a start that was told, and ``reopened`` an end.
``late`` marks an event that came too late for an ordered condition; it reaches no subscriber."""

TAKES_BACK: dict[str, Status] = {"ingress": "retracted", "egress": "reopened"}
"""By which status something is taken back that was told."""

_compact = msgspec.json.Encoder().encode  # the bytes of json.dumps, ten times as fast

UNNUMBERED = -1
"""The sequence number of an event that a host has yet to number."""

STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class Event:
    """One reading: a flat set of uniquely named values of basic types.  [F1]"""

    topic: str
    time: Instant
    source: str
    attributes: Mapping[str, Value] = field(default_factory=dict)
    sequence: int = UNNUMBERED
    location: tuple[float, ...] | None = None
    place: str | None = None

    @property
    def order(self) -> tuple[Instant, str, int]:
        """Where the event stands in processing order."""
        return (self.time, self.source, self.sequence)


def lacking(event: Event, names: Collection[str]) -> Event:
    """An event without some of its attributes."""
    return replace(event, attributes={k: v for k, v in event.attributes.items() if k not in names})


class Transition(NamedTuple):
    """An event that a condition let pass, unchanged [F5], and what it means there."""

    event: Event
    status: Status
    scope: str | None
    since: Instant | None = None
    condition: int = 0
    """Which of the machine's conditions; -1 for a late event, which concerns them all."""


class Notification(NamedTuple):
    """A transition, delivered to a subscription."""

    subscription: str
    event: Event
    status: Status
    scope: str | None
    since: Instant | None

    @property
    def id(self) -> str:
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
        """Where the notification stands in an output: null scope first."""
        event = self.event
        return (event.time, self.subscription, self.scope or "", event.source, event.sequence, self.status)

    @property
    def what(self) -> tuple[object, ...]:
        """What is told; or what is taken back."""
        return (self.subscription, self.scope, meant(self.status), self.since, self.event.order)

    def to_json(self) -> dict[str, Any]:
        """The notification as the JSON object that the command line prints."""
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
    """A transition for a subscription.  Nothing ends before it starts: a late reading that ends what began
    later counts as if it had come with that."""
    if since is not None and since > event.time:
        event = replace(event, time=since)
    return Notification(subscription, event, status, scope, since)


class _Said(Protocol):
    @property
    def status(self) -> str: ...
    @property
    def what(self) -> tuple[object, ...]: ...


S = TypeVar("S", bound=_Said)


def standing(told: Iterable[Notification]) -> list[Notification]:
    """What was told, less what was taken back later, in order: what stands of a condition with ``late
    correct``."""
    return sorted(left(told), key=lambda one: one.order)


def left(told: Iterable[S]) -> list[S]:
    """What was told, less what was taken back later."""
    found: dict[object, list[tuple[int, S]]] = {}
    for i, one in enumerate(told):
        some = found.setdefault(one.what, [])
        if one.status not in TAKES_BACK.values():
            some.append((i, one))
        elif some:
            some.pop()
    rest = sorted((row for some in found.values() for row in some), key=lambda row: row[0])
    return [one for _, one in rest]


def meant(status: str) -> str:
    """The status of what is told, or taken back."""
    return next((told for told, back in TAKES_BACK.items() if back == status), status)


def _plain(value: Value) -> Value:
    """The value as JSON can write it: NaN is null, infinity is text."""
    if isinstance(value, float) and value - value != 0:
        return None if value != value else repr(value)
    return value


def notification_id(
    subscription: str, scope: str | None, status: str, time: Instant, source: str, sequence: int
) -> str:
    """Equal for equal notifications on every runtime, so that a sink can recognise a repetition.

    BLAKE2b, ten bytes in hex, of the compact JSON array [subscription, scope, status, time in µs,
    source, sequence] in UTF-8.
    """
    parts = [subscription, scope, status, time, source, sequence]
    try:
        text = _compact(parts)
    except (UnicodeEncodeError, OverflowError):  # half of a surrogate pair; an int beyond 64 bits
        text = json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=10).hexdigest()
