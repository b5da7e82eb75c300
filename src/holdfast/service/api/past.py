"""Routes for the past: notifications of a scope, the timeline, charts of stored readings, and the map."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel

from ...definition.parse import parse
from ...errors import UsageError
from ...files.interval import Interval
from ...lang.scopes import gazetteer
from ...model.instant import DAY, Instant
from ..chart import PixelGrid, chart, scope_mask
from ..history import readings_of
from ..timeline import Row, TimelineView
from ..trial import intervals
from . import answers
from .site import MOST, CurrentSite, Site, period_of

router = APIRouter()


class ReadingsQuery(BaseModel):
    """Query parameters of ``/api/readings``: the readings to return, and the largest number of them."""

    topic: str
    source: str | None = None
    place: str | None = None
    start: str | None = None
    end: str | None = None
    most: int = 5_000


class TimelineQuery(BaseModel):
    """Query parameters of ``/api/timeline``: the period, the rows, and the width of the chart in pixels."""

    start: str | None = None
    end: str | None = None
    width: int = 1_000
    subscription: str | None = None
    find: str = ""
    skip: int = 0
    most: int = 200


class ChartQuery(BaseModel):
    """Query parameters of ``/api/chart``: the readings to draw, and the condition that consumes them."""

    subscription: str
    topic: str
    attribute: str
    scope: str | None = None
    start: str | None = None
    end: str | None = None
    width: int = 800


@router.get("/api/history")
async def history(
    site: CurrentSite,
    subscription: str,
    scope: str | None = None,
    start: str | None = None,
    end: str | None = None,
) -> list[dict[str, Any]]:
    """Return the notifications of one scope in a period, by default the last 30 days."""
    period = period_of(site, start, end, 30 * DAY)
    rows = await asyncio.to_thread(site.service.store.history, subscription, scope, period, MOST)
    return [answers.notification(one) for one in rows]


@router.get("/api/timeline")
async def timeline(site: CurrentSite, wanted: Annotated[TimelineQuery, Query()]) -> dict[str, Any]:
    """Return the rows of the timeline with bars for a chart of the given width.

    The default period is the last day.
    """
    start, end = period_of(site, wanted.start, wanted.end, DAY)
    width, most = min(max(10, wanted.width), 4_000), min(max(1, wanted.most), 1_000)
    view = TimelineView(start, end, width, wanted.subscription, wanted.find, max(0, wanted.skip), most)
    service = site.service
    position = service.hub.last
    active = [(Row(*one[:2]), one.since) for one in await service.holding()]
    await service.timeline.has(position)
    rows, total = await asyncio.to_thread(service.timeline.rows, view, service.clock(), active)
    return {"start": start, "end": end, "total": total, "rows": rows}


@router.get("/api/chart")
async def lines(site: CurrentSite, wanted: Annotated[ChartQuery, Query()]) -> dict[str, Any]:
    """Return the readings that a condition consumes in a scope, as lines of a chart."""
    core = site.service.core
    topic = core.topics.get(wanted.topic)
    if topic is None:
        raise UsageError(f"topic '{wanted.topic}' is not declared")
    width = min(max(10, wanted.width), 4_000)
    grid = PixelGrid(*period_of(site, wanted.start, wanted.end, DAY), width)
    mask = scope_mask(core.checked, wanted.subscription, wanted.topic, wanted.scope)
    return await asyncio.to_thread(chart, site.service.folder, topic, wanted.attribute, grid, mask)


@router.get("/api/readings")
async def readings(site: CurrentSite, wanted: Annotated[ReadingsQuery, Query()]) -> dict[str, Any]:
    """Return stored readings of a topic, thinned to at most ``most``."""
    period = period_of(site, wanted.start, wanted.end, DAY)
    where = {"source": wanted.source, "place": wanted.place}
    filters = {name: value for name, value in where.items() if value is not None}
    most = min(max(1, wanted.most), 50_000)
    return await asyncio.to_thread(readings_of, site.service.folder, wanted.topic, filters, period, most)


@router.get("/api/regions")
async def regions(site: CurrentSite) -> list[dict[str, Any]]:
    """Return the regions of the definition with their outlines, for a map."""
    return await asyncio.to_thread(_regions, site)


def _regions(site: Site) -> list[dict[str, Any]]:
    known = gazetteer(parse(site.service.core.definition).statements, site.base)
    return [answers.region(region) for region in known.regions]


async def sent_intervals(site: Site, period: tuple[Instant, Instant]) -> list[Interval]:
    """Return the intervals of a period that sinks were notified of.

    Active conditions have intervals without an end.
    """
    rows = await asyncio.to_thread(site.service.store.notifications_between, *period, 1_000_000)
    found = await asyncio.to_thread(intervals, rows, site.service.core.corrected)
    open_intervals = {(one.subscription, one.scope) for one in found if one.open}
    active = [
        one for one in await site.service.holding() if (one.subscription, one.scope) not in open_intervals
    ]
    return found + [answers.interval(one) for one in active if one.since < period[1]]
