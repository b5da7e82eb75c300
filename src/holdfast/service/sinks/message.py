"""Conversion of notifications to the formats of other systems: MQTT, webhooks, Alertmanager.

Pure functions.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...model.instant import Instant, show_instant
from ...runtimes.local.engine import Holding
from ..store import Key, NotificationRow, ends_condition, starts_condition

EVERYTHING = "all"
"""The scope in channels and labels of a condition without a scope."""
_UNSAFE = {ord(c): f"%{ord(c):02X}" for c in "%/+#\0"}

_HOLDS = {
    "ingress": True, "egress": False, "unknown": None, "withdrawn": None, "known": None, "revised": None,
    "retracted": False, "reopened": True, "raised": True, "lowered": True,
}  # fmt: skip
"""Statuses that tell whether the condition is active from then on; ``None`` is unknown."""


class MqttPublication(NamedTuple):
    """A message to publish to an MQTT broker, with its channel."""

    channel: str
    payload: str
    retain: bool


def channel(pattern: str, subscription: str, scope: str | None) -> str:
    """Return a channel for a scope from a pattern. Characters that would change its levels are escaped.

    >>> channel("state/{subscription}/{scope}", "Warm", "a/b#")
    'state/Warm/a%2Fb%23'
    """
    levels = {"{subscription}": subscription, "{scope}": EVERYTHING if scope is None else scope}
    return "/".join(
        levels[level].translate(_UNSAFE) if level in levels else level for level in pattern.split("/")
    )


def publications(
    rows: Iterable[NotificationRow], events: str | None, state: str | None
) -> list[MqttPublication]:
    """Return the MQTT messages of notifications.

    Each notification is a message on the channel ``events``. The current state of its scope is a retained
    message on the channel ``state``. ``None`` disables a channel.
    """
    found = []
    for row in rows:
        if events:
            found.append(MqttPublication(channel(events, row.subscription, row.scope), row.line, False))
        if state and row.status in _HOLDS:
            at = channel(state, row.subscription, row.scope)
            found.append(MqttPublication(at, json.dumps(_state(row)), True))
    return found


def _state(row: NotificationRow) -> dict[str, Any]:
    """Return the state of a condition as JSON data: active, inactive, or null when it is unknown."""
    holds = row.since is not None if row.status == "known" else _HOLDS[row.status]
    if row.status == "revised":
        holds = starts_condition(row)
    began = row.since if row.status in ("known", "reopened") and row.since is not None else row.time
    level = {"level": row.level} if holds and row.level is not None else {}
    return {"holds": holds, **level, "since": show_instant(began), "id": row.id}


def body(rows: Sequence[NotificationRow]) -> bytes:
    """Return the JSON body that webhooks receive."""
    return f'{{"notifications": [{", ".join(row.line for row in rows)}]}}'.encode()


def signature(secret: bytes, timestamp: str, content: bytes) -> str:
    """Return an HMAC-SHA256 of ``TIMESTAMP.BODY``, by which a receiver can verify the sender and the time."""
    return "sha256=" + hmac.digest(secret, timestamp.encode() + b"." + content, "sha256").hex()


Alert = dict[str, Any]
"""An alert in the format of Alertmanager's API (v2)."""


def alert(key: Key, level: str | None, start: Instant, end: Instant, labels: Mapping[str, str]) -> Alert:
    """Return an alert in the format of Alertmanager.

    It never ends before it starts, because Alertmanager would refuse the whole request.
    """
    name, scope = key
    own = {"alertname": name, "scope": EVERYTHING if scope is None else scope}
    return {
        "labels": {**labels, **own, **({} if level is None else {"level": level})},
        "annotations": {"summary": name + ("" if scope is None else f" in {scope}")},
        "startsAt": show_instant(min(start, end)),
        "endsAt": show_instant(end),
    }


def standing_alert(row: Holding, until: Instant, labels: Mapping[str, str]) -> Alert:
    """Return the alert of an active condition, valid until ``until``."""
    return alert(row[:2], row.level, row.since, until, labels)


def alerts(rows: Iterable[NotificationRow], until: Instant, labels: Mapping[str, str]) -> list[Alert]:
    """Convert notifications to alerts. Starts are valid until ``until``; ends end their alert.

    Each level of a condition is an alert of its own.
    """
    found = []
    for row in rows:
        since = row.time if row.since is None else row.since
        if ends_condition(row) or row.status == "retracted" or (row.status == "known" and row.since is None):
            found.append(alert(row.key, row.was, since, row.time, labels))
        elif row.was is not None and row.was != row.level:
            found.append(alert(row.key, row.was, since, row.time, labels))
            found.append(alert(row.key, row.level, row.time, until, labels))
        elif starts_condition(row) or row.status in ("reopened", "known"):
            found.append(alert(row.key, row.level, since, until, labels))
        elif row.status == "atomic":
            found.append(alert(row.key, None, row.time, until, labels))
    return found
