"""What is: conditions, notifications as they come, how the service stands."""

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
from ..store import Mark, Told
from . import shown
from .site import MOST, Asked, Site, object_of, user_of

router = APIRouter()

_HOUR = 3600.0
_POSITIONS = 1 << 63
"""Positions are below that: the database counts no further."""
Position = Annotated[int, Query(ge=0, lt=_POSITIONS)]
_LONGEST = 10**8


@router.get("/health")
async def health(site: Asked) -> Response:
    """Whether the service takes and passes on readings; 503 when it does not, with the reason: also where a
    feed is not connected, and where a feed or sink ended and is started again.  What else is in trouble, or
    damaged in the log, is said in any case, as are sinks that cannot deliver or have refused something."""
    service = site.service
    parts = shown.part_troubles(site.feed_status(), site.sink_status())
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
async def conditions(site: Asked) -> list[dict[str, Any]]:
    """What holds now, and what nobody knows now."""
    service = site.service
    held = await service.holding()
    marks, unsure, storms = await asyncio.to_thread(_said, service, held)
    return shown.conditions(held, unsure, marks, storms)


def _said(service: Service, held: list[Holding]) -> tuple[list[Mark], list[Told], list[Told]]:
    folds = {one.name for one in service.core.checked.folded}
    store = service.store
    last = (store.last_of(one.subscription, one.scope) for one in held if one.subscription in folds)
    return store.marks(service.clock()), store.unsure(), [one for one in last if one is not None]


@router.get("/api/sources")
async def sources(site: Asked, find: str = "", most: int = 200) -> dict[str, Any]:
    """Who has spoken since the service started: those that have been silent for long first."""
    return await site.service.on_engine(
        site.service.core.sources.quiet, site.service.clock(), find, min(max(1, most), MOST)
    )


@router.get("/api/notifications")
async def notifications(
    site: Asked, after: Position = 0, most: int = 1_000, subscription: str | None = None
) -> dict[str, Any]:
    """What was told after a position, in that order; ``next`` is what to ask for then."""
    wanted = min(max(1, most), MOST)
    store = site.service.store
    some = await asyncio.to_thread(store.notifications, after, wanted, subscription=subscription)
    return {
        "notifications": [shown.notification(one) for one in some],
        "next": some[-1].position if some else after,
    }


@router.get("/api/events")
async def events(site: Asked, request: Request, after: Position | None = None) -> Response:
    """Server-Sent Events: each notification as it comes, after ``Last-Event-ID`` if that is given."""
    last = request.headers.get("last-event-id", "")
    start = site.service.hub.last if after is None else after
    position = int(last) if last.isdecimal() and len(last) < 19 else start
    return StreamingResponse(_sse(site.service, position), media_type="text/event-stream")


async def _sse(service: Service, position: int) -> AsyncIterator[bytes]:
    yield b"retry: 2000\n\n"
    async for some in service.hub.stream(position):
        yield b"".join(map(_said_to_pages, some)) or b": \n\n"


@lru_cache(1_000)  # a thousand pages are told the same
def _said_to_pages(one: Told) -> bytes:
    return f"id: {one.position}\ndata: {one.line}\n\n".encode()


# --- what people say of it ---------------------------------------------------------------------------------


@router.post("/api/acknowledge")
async def acknowledge(site: Asked, request: Request) -> dict[str, Any]:
    """Say that somebody has seen what holds."""
    return await _mark(site, request, "acknowledge", None)


@router.delete("/api/acknowledge")
async def forget(site: Asked, request: Request) -> dict[str, Any]:
    """Take an acknowledgement back."""
    return await _unmark(site, request, "acknowledge")


@router.post("/api/mute")
async def mute(site: Asked, request: Request) -> dict[str, Any]:
    """Tell sinks no start of a condition for so many seconds; the page shows it all the same."""
    return await _mark(site, request, "mute", _HOUR)


@router.delete("/api/mute")
async def unmute(site: Asked, request: Request) -> dict[str, Any]:
    """Let sinks hear of a condition again."""
    return await _unmark(site, request, "mute")


async def _mark(site: Site, request: Request, kind: str, seconds: float | None) -> dict[str, Any]:
    said = await object_of(request)
    name, scope = _key(said)
    _require_known(site, name)
    now = site.service.clock()
    wanted = said.get("seconds", seconds)
    if wanted is not None and (type(wanted) not in (int, float) or not 0 < wanted <= _LONGEST):
        raise UsageError(f"'seconds' must be a number between 0 and {_LONGEST:,}")
    until = NEVER if wanted is None else now + int(wanted * SECOND)
    told = Mark(kind, name, scope, until, user_of(request).name, str(said.get("note", ""))[:1_000], now)
    await asyncio.to_thread(site.service.store.mark, told)
    site.service.hub.wake()
    return {"done": True}


def _require_known(site: Site, name: str) -> None:
    """Refuse a name that no condition has: a mark on it would do nothing."""
    known = site.service.core.names
    if name not in known:
        raise UsageError(
            f"there is no condition '{name}'. {did_you_mean(name, known) or 'There is ' + ', '.join(known)}"
        )


async def _unmark(site: Site, request: Request, kind: str) -> dict[str, Any]:
    name, scope = _key(await object_of(request))
    await asyncio.to_thread(site.service.store.unmark, kind, name, scope)
    site.service.hub.wake()  # sinks are sent what was withheld
    return {"done": True}


def _key(said: dict[str, Any]) -> tuple[str, str | None]:
    name, scope = said.get("subscription"), said.get("scope")
    if not isinstance(name, str) or not (scope is None or isinstance(scope, str)):
        raise UsageError('say which: {"subscription": NAME, "scope": SCOPE or null}')
    return name, scope


# --- how it stands -----------------------------------------------------------------------------------------


@router.get("/api/status")
async def status(site: Asked, request: Request) -> dict[str, Any]:
    """Rates, lag, what was rejected and why, how far each sink is, and who asks."""
    user = user_of(request)
    return _status(site) | {"user": {"name": user.name, "role": user.role}}


@router.get("/api/rejects")
async def rejects(site: Asked, most: int = 100) -> list[dict[str, Any]]:
    """What came and is no reading, the latest first."""
    return await asyncio.to_thread(site.service.store.rejects, min(max(1, most), MOST))


@router.get("/api/dead-letters")
async def dead_letters(site: Asked, most: int = 100) -> list[dict[str, Any]]:
    """What sinks refused, the latest first, with the receiver's answer."""
    return await asyncio.to_thread(site.service.store.dead_letters, min(max(1, most), MOST))


@router.post("/api/dead-letters/resend")
async def resend(site: Asked, request: Request) -> dict[str, Any]:
    """Send again what a sink refused: one notification by its position, or all of them."""
    said = await object_of(request)
    name, position = said.get("sink"), said.get("position")
    if name not in [sink.sink.name for sink in site.sinks]:
        raise UsageError(f"there is no sink '{name}'; there is {', '.join(s.sink.name for s in site.sinks)}")
    if position is not None and not (type(position) is int and 0 <= position < _POSITIONS):
        raise UsageError("'position' must be the number of a notification, or null for all")
    count = await asyncio.to_thread(site.service.store.resend, name, position)
    site.service.hub.wake()
    return {"resending": count}


@router.get("/metrics")
async def metrics(site: Asked) -> Response:
    """Numbers for Prometheus."""
    return PlainTextResponse(shown.metrics(_metrics(site)), media_type="text/plain; version=0.0.4")


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
        "part_troubles": shown.part_troubles(feeds, sinks),
        "editable": site.save is not None,
    }


def _metrics(site: Site) -> dict[str, tuple[str, dict[str, float]]]:
    status = _status(site)
    feeds, sinks = status["feeds"], status["sinks"]

    def by(name: str, numbers: dict[str, float]) -> dict[str, float]:
        return {shown.label(name, key): value for key, value in numbers.items()}

    return {
        "holdfast_readings_total": ("counter", {"": status["readings"]}),
        "holdfast_readings_repeated_total": ("counter", {"": status["repeated"]}),
        "holdfast_readings_corrected_total": ("counter", {"": status["corrected"]}),
        "holdfast_rejected_total": ("counter", by("reason", status["rejected"])),
        "holdfast_without_key_total": ("counter", by("reason", status["without_key"])),
        "holdfast_late_total": ("counter", by("subscription", status["late"])),
        "holdfast_notifications_total": ("counter", by("subscription", dict(site.service.counts.told))),
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
