"""Routes for the present: active conditions, live notifications, acknowledgements, and the service's
status.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from ...errors import UsageError, did_you_mean
from ...model.instant import NEVER, SECOND
from ...runtimes.local.engine import Holding
from ..service import Service
from ..store import Mark, NotificationRow
from . import answers
from .site import MOST, CurrentSite, Site, object_of, user_of

router = APIRouter()

_HOUR = 3600.0
_POSITIONS = 1 << 63
"""The limit of positions in the database."""
Position = Annotated[int, Query(ge=0, lt=_POSITIONS)]
_LONGEST = 10**8


@router.get("/health")
async def health(site: CurrentSite) -> Response:
    """Return 200 if the service works, else 503 with the reasons.

    The status is 503 if the log cannot take readings, a feed is not connected, or a feed or sink was
    restarted. Other troubles are reported with any status: damage of the log, and sinks that cannot deliver
    or have dead letters.
    """
    service = site.service
    parts = answers.part_troubles(site.feed_status(), site.sink_status())
    is_well = not (service.troubles or parts or service.integrity.damage)
    body = {
        "status": "ok" if is_well else "trouble",
        "troubles": service.troubles | parts,
        "damage": service.integrity.damage,
        "sinks": {
            one["name"]: {name: one[name] for name in ("trouble", "behind", "dead_letters")}
            for one in site.sink_status()
            if one["trouble"] or one["dead_letters"]
        },
    }
    return JSONResponse(body, 200 if service.takes_readings and not parts else 503)


@router.get("/api/conditions")
async def conditions(site: CurrentSite) -> list[dict[str, Any]]:
    """Return the active and the unknown scopes with their marks."""
    service = site.service
    active = await service.holding()
    marks, unknown_scopes, storms = await asyncio.to_thread(_marks_and_unknowns, service, active)
    return answers.conditions(active, unknown_scopes, marks, storms)


def _marks_and_unknowns(
    service: Service, active: list[Holding]
) -> tuple[list[Mark], list[NotificationRow], list[NotificationRow]]:
    storms = {one.name for one in service.core.checked.conditions if one.spans_scopes}
    store = service.store
    last = (store.last_of(one.subscription, one.scope) for one in active if one.subscription in storms)
    return store.marks(service.clock()), store.unknown_scopes(), [one for one in last if one is not None]


@router.get("/api/sources")
async def sources(site: CurrentSite, find: str = "", most: int = 200) -> dict[str, Any]:
    """Return the sources that have published since the service started, longest silent first."""
    return await site.service.on_engine(
        site.service.core.sources.quiet, site.service.clock(), find, min(max(1, most), MOST)
    )


@router.get("/api/notifications")
async def notifications(
    site: CurrentSite, after: Position = 0, most: int = 1_000, subscription: str | None = None
) -> dict[str, Any]:
    """Return the notifications after a position, in order. ``next`` is the position for the next request."""
    wanted = min(max(1, most), MOST)
    store = site.service.store
    some = await asyncio.to_thread(store.notifications, after, wanted, subscription=subscription)
    return {
        "notifications": [answers.notification(one) for one in some],
        "next": some[-1].position if some else after,
    }


@router.get("/api/events")
async def events(site: CurrentSite, request: Request, after: Position | None = None) -> Response:
    """Stream notifications as Server-Sent Events as they are published.

    The stream starts after ``Last-Event-ID``, else after the position ``after``, else with the next
    notification.
    """
    last = request.headers.get("last-event-id", "")
    start = site.service.hub.last if after is None else after
    position = int(last) if last.isdecimal() and len(last) < 19 else start
    return StreamingResponse(_sse(site.service, position), media_type="text/event-stream")


async def _sse(service: Service, position: int) -> AsyncIterator[bytes]:
    yield b"retry: 2000\n\n"
    async for some in service.hub.stream(position):
        yield b"".join(map(_to_sse, some)) or b": \n\n"


@lru_cache(1_000)  # a thousand pages receive the same bytes
def _to_sse(one: NotificationRow) -> bytes:
    return f"id: {one.position}\ndata: {one.line}\n\n".encode()


# --- what people say of it ---------------------------------------------------------------------------------


@router.post("/api/acknowledge")
async def acknowledge(site: CurrentSite, request: Request) -> dict[str, Any]:
    """Acknowledge an active condition on behalf of the user."""
    return await _mark(site, request, "acknowledge", None)


@router.delete("/api/acknowledge")
async def forget(site: CurrentSite, request: Request) -> dict[str, Any]:
    """Remove the acknowledgement of an active condition."""
    return await _unmark(site, request, "acknowledge")


@router.post("/api/mute")
async def mute(site: CurrentSite, request: Request) -> dict[str, Any]:
    """Withhold the starts of a condition from sinks for a number of seconds.

    The status page still shows them.
    """
    return await _mark(site, request, "mute", _HOUR)


@router.delete("/api/mute")
async def unmute(site: CurrentSite, request: Request) -> dict[str, Any]:
    """End a mute before its time."""
    return await _unmark(site, request, "mute")


async def _mark(site: Site, request: Request, kind: str, seconds: float | None) -> dict[str, Any]:
    body = await object_of(request)
    name, scope = _key(body)
    _require_known(site, name)
    now = site.service.clock()
    wanted = body.get("seconds", seconds)
    if wanted is not None and (type(wanted) not in (int, float) or not 0 < wanted <= _LONGEST):
        raise UsageError(f"'seconds' must be a number between 0 and {_LONGEST:,}")
    until = NEVER if wanted is None else now + int(wanted * SECOND)
    rows = Mark(kind, name, scope, until, user_of(request).name, str(body.get("note", ""))[:1_000], now)
    await asyncio.to_thread(site.service.store.mark, rows)
    site.service.hub.wake()
    return {"done": True}


def _require_known(site: Site, name: str) -> None:
    """Refuse a name that is not the name of a running condition."""
    names = site.service.core.names
    if name not in names:
        raise UsageError(
            f"there is no condition '{name}'. {did_you_mean(name, names) or 'There is ' + ', '.join(names)}"
        )


async def _unmark(site: Site, request: Request, kind: str) -> dict[str, Any]:
    name, scope = _key(await object_of(request))
    await asyncio.to_thread(site.service.store.unmark, kind, name, scope)
    site.service.hub.wake()  # sinks receive what was withheld
    return {"done": True}


def _key(body: dict[str, Any]) -> tuple[str, str | None]:
    name, scope = body.get("subscription"), body.get("scope")
    if not isinstance(name, str) or not (scope is None or isinstance(scope, str)):
        raise UsageError('say which: {"subscription": NAME, "scope": SCOPE or null}')
    return name, scope


# --- how it stands -----------------------------------------------------------------------------------------


@router.get("/api/status")
async def status(site: CurrentSite, request: Request) -> dict[str, Any]:
    """Return the status of the service.

    It has rates, lags, rejections with reasons, the positions of sinks, and the user.
    """
    user = user_of(request)
    return _status(site) | {"user": {"name": user.name, "role": user.role}}


@router.get("/api/rejects")
async def rejects(site: CurrentSite, most: int = 100) -> list[dict[str, Any]]:
    """Return the rejected messages, the latest first."""
    return await asyncio.to_thread(site.service.store.rejects, min(max(1, most), MOST))


@router.get("/api/dead-letters")
async def dead_letters(site: CurrentSite, most: int = 100) -> list[dict[str, Any]]:
    """Return the notifications that sinks refused, each with the target's reason, the latest first."""
    return await asyncio.to_thread(site.service.store.dead_letters, min(max(1, most), MOST))


@router.post("/api/dead-letters/resend")
async def resend(site: CurrentSite, request: Request) -> dict[str, Any]:
    """Send dead letters of a sink again: the one at ``position``, or all of them."""
    body = await object_of(request)
    name, position = body.get("sink"), body.get("position")
    if name not in [sink.sink.name for sink in site.sinks]:
        raise UsageError(f"there is no sink '{name}'; there is {', '.join(s.sink.name for s in site.sinks)}")
    if position is not None and not (type(position) is int and 0 <= position < _POSITIONS):
        raise UsageError("'position' must be the number of a notification, or null for all")
    count = await asyncio.to_thread(site.service.store.resend, name, position)
    site.service.hub.wake()
    return {"resending": count}


@router.get("/metrics")
async def metrics(site: CurrentSite) -> Response:
    """Return the metrics of the service in the text format of Prometheus."""
    return PlainTextResponse(answers.metrics(_metrics(site)), media_type="text/plain; version=0.0.4")


def _status(site: Site) -> dict[str, Any]:
    service, counts = site.service, site.service.counts
    return {
        "started": service.started,
        "now": service.clock(),
        "troubles": service.troubles,
        "takes_readings": service.takes_readings,
        "damage": service.integrity.damage,
        "readings": counts.logged,
        "repeated": counts.repeated,
        "corrected": counts.corrected,
        "rejected": service.store.counts(),
        "unread": dict(service.core.unread),
        "without_key": dict(service.core.without_key),
        "late": service.core.engine.late_counts,
        "notifications": service.hub.last,
        "waiting": service.waiting,
        "behind": service.log.next - service.evaluated,
        "topics": dict(service.core.readings),
        "sinks": (sinks := site.sink_status()),
        "feeds": (feeds := site.feed_status()),
        "part_troubles": answers.part_troubles(feeds, sinks),
        "editable": site.save is not None,
    }


def _metrics(site: Site) -> dict[str, tuple[str, dict[str, float]]]:
    status = _status(site)
    feeds, sinks = status["feeds"], status["sinks"]

    def by(name: str, numbers: dict[str, float]) -> dict[str, float]:
        return {answers.label(name, key): value for key, value in numbers.items()}

    return {
        "holdfast_readings_total": ("counter", {"": status["readings"]}),
        "holdfast_readings_repeated_total": ("counter", {"": status["repeated"]}),
        "holdfast_readings_corrected_total": ("counter", {"": status["corrected"]}),
        "holdfast_rejected_total": ("counter", by("reason", status["rejected"])),
        "holdfast_without_key_total": ("counter", by("reason", status["without_key"])),
        "holdfast_late_total": ("counter", by("subscription", status["late"])),
        "holdfast_notifications_total": (
            "counter",
            by("subscription", dict(site.service.counts.notifications)),
        ),
        "holdfast_waiting": ("gauge", {"": status["waiting"]}),
        "holdfast_behind": ("gauge", {"": status["behind"]}),
        "holdfast_up": ("gauge", {"": float(status["takes_readings"])}),
        "holdfast_damage": ("gauge", {"": len(status["damage"])}),
        "holdfast_feed_connected": ("gauge", by("feed", {f["name"]: f["connected"] for f in feeds})),
        "holdfast_feed_caught_up": ("gauge", by("feed", {f["name"]: f["caught_up"] for f in feeds})),
        "holdfast_feed_lag_seconds": (
            "gauge",
            by("feed", {f["name"]: f["lag"] for f in feeds if f["lag"] is not None}),
        ),
        "holdfast_restarts_total": (
            "counter",
            by("part", {one["name"]: one["restarts"] for one in (*feeds, *sinks)}),
        ),
        "holdfast_sink_behind": ("gauge", by("sink", {s["name"]: s["behind"] for s in sinks})),
        "holdfast_sink_refused": ("gauge", by("sink", {s["name"]: s["dead_letters"] for s in sinks})),
    }
