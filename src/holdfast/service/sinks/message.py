"""Notifications as other systems want them.  Pure."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...model.instant import Instant, show_instant
from ...runtimes.local.engine import Holding
from ..store import Key, Told, begins, ends

EVERYTHING = "all"
"""What stands for the scope of a condition that has none."""
_UNSAFE = {ord(c): f"%{ord(c):02X}" for c in "%/+#\0"}

_HOLDS = {
    "ingress": True, "egress": False, "unknown": None, "withdrawn": None, "known": None, "revised": None,
    "retracted": False, "reopened": True, "raised": True, "lowered": True,
}  # fmt: skip
"""The statuses that say what holds from then on."""


class Publication(NamedTuple):
    """A message for an MQTT broker."""

    channel: str
    payload: str
    retain: bool


def channel(pattern: str, subscription: str, scope: str | None) -> str:
    """A channel of a pattern; what would change its levels is escaped.

    >>> channel("state/{subscription}/{scope}", "Warm", "a/b#")
    'state/Warm/a%2Fb%23'
    """
    levels = {"{subscription}": subscription, "{scope}": EVERYTHING if scope is None else scope}
    return "/".join(
        levels[level].translate(_UNSAFE) if level in levels else level for level in pattern.split("/")
    )


def publications(told: Iterable[Told], events: str | None, state: str | None) -> list[Publication]:
    """Each notification on the channel of events; what holds now, retained, on that of states."""
    found = []
    for one in told:
        if events:
            found.append(Publication(channel(events, one.subscription, one.scope), one.line, False))
        if state and one.status in _HOLDS:
            at = channel(state, one.subscription, one.scope)
            found.append(Publication(at, json.dumps(_state(one)), True))
    return found


def _state(one: Told) -> dict[str, Any]:
    """What holds: true, false, or null when nobody knows any more; ``known`` says since when, if it does."""
    holds = one.since is not None if one.status == "known" else _HOLDS[one.status]
    if one.status == "revised":
        holds = begins(one)
    began = one.since if one.status in ("known", "reopened") and one.since is not None else one.time
    level = {"level": one.level} if holds and one.level is not None else {}
    return {"holds": holds, **level, "since": show_instant(began), "id": one.id}


def body(told: Sequence[Told]) -> bytes:
    """What a webhook is sent."""
    return f'{{"notifications": [{", ".join(one.line for one in told)}]}}'.encode()


def signature(secret: bytes, timestamp: str, content: bytes) -> str:
    """By which a receiver knows that it is we who sent it, and when: HMAC-SHA256 of ``TIMESTAMP.BODY``."""
    return "sha256=" + hmac.digest(secret, timestamp.encode() + b"." + content, "sha256").hex()


Alert = dict[str, Any]
"""A condition as Alertmanager's API (v2) takes it."""


def alert(key: Key, level: str | None, start: Instant, end: Instant, labels: Mapping[str, str]) -> Alert:
    """An alert, which never ends before it starts: Alertmanager would refuse all that is posted with it."""
    name, scope = key
    own = {"alertname": name, "scope": EVERYTHING if scope is None else scope}
    return {
        "labels": {**labels, **own, **({} if level is None else {"level": level})},
        "annotations": {"summary": name + ("" if scope is None else f" in {scope}")},
        "startsAt": show_instant(min(start, end)),
        "endsAt": show_instant(end),
    }


def standing_alert(one: Holding, until: Instant, labels: Mapping[str, str]) -> Alert:
    """What is active, for as long as until."""
    return alert(one[:2], one.level, one.since, until, labels)


def alerts(told: Iterable[Told], until: Instant, labels: Mapping[str, str]) -> list[Alert]:
    """What starts, for as long as until, and what ends.  Each level is an alert of its own: one that becomes
    another ends where that starts."""
    found = []
    for one in told:
        since = one.time if one.since is None else one.since
        if ends(one) or one.status == "retracted" or (one.status == "known" and one.since is None):
            found.append(alert(one.key, one.was, since, one.time, labels))
        elif one.was is not None and one.was != one.level:
            found.append(alert(one.key, one.was, since, one.time, labels))
            found.append(alert(one.key, one.level, one.time, until, labels))
        elif begins(one) or one.status in ("reopened", "known"):
            found.append(alert(one.key, one.level, since, until, labels))
        elif one.status == "atomic":
            found.append(alert(one.key, None, one.time, until, labels))
    return found
