"""What was: notifications of a scope, bars of a stretch of time, stored readings, and the map."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel

from ...errors import UsageError
from ...files.interval import Interval
from ...lang.parse import parse
from ...lang.scopes import gazetteer
from ...model.instant import DAY, Instant
from ..chart import Grid, chart, of_scope
from ..history import readings_of
from ..timeline import Row, View
from ..trial import intervals
from . import shown
from .site import MOST, Asked, Site, stretch_of

router = APIRouter()


class Wanted(BaseModel):
    """Which readings, and how many at most."""

    topic: str
    source: str | None = None
    place: str | None = None
    start: str | None = None
    end: str | None = None
    most: int = 5_000


class Picture(BaseModel):
    """Which rows of the timeline, and how many pixels wide."""

    start: str | None = None
    end: str | None = None
    width: int = 1_000
    subscription: str | None = None
    find: str = ""
    skip: int = 0
    most: int = 200


class Drawn(BaseModel):
    """Whose readings of what."""

    subscription: str
    topic: str
    attribute: str
    scope: str | None = None
    start: str | None = None
    end: str | None = None
    width: int = 800


@router.get("/api/history")
async def history(
    site: Asked, subscription: str, scope: str | None = None, start: str | None = None, end: str | None = None
) -> list[dict[str, Any]]:
    """What was told of one scope."""
    stretch = stretch_of(site, start, end, 30 * DAY)
    told = await asyncio.to_thread(site.service.store.history, subscription, scope, stretch, MOST)
    return [shown.notification(one) for one in told]


@router.get("/api/timeline")
async def timeline(site: Asked, wanted: Annotated[Picture, Query()]) -> dict[str, Any]:
    """Bars of conditions for a picture so many pixels wide."""
    start, end = stretch_of(site, wanted.start, wanted.end, DAY)
    width, most = min(max(10, wanted.width), 4_000), min(max(1, wanted.most), 1_000)
    view = View(start, end, width, wanted.subscription, wanted.find, max(0, wanted.skip), most)
    service = site.service
    told = service.hub.last
    held = [(Row(*one[:2]), one.since) for one in await service.holding()]
    await service.timeline.has(told)
    rows, total = await asyncio.to_thread(service.timeline.rows, view, service.clock(), held)
    return {"start": start, "end": end, "total": total, "rows": rows}


@router.get("/api/chart")
async def lines(site: Asked, wanted: Annotated[Drawn, Query()]) -> dict[str, Any]:
    """Readings that a condition hears in a scope, as lines for a picture."""
    core = site.service.core
    topic = core.topics.get(wanted.topic)
    if topic is None:
        raise UsageError(f"topic '{wanted.topic}' is not declared")
    width = min(max(10, wanted.width), 4_000)
    grid = Grid(*stretch_of(site, wanted.start, wanted.end, DAY), width)
    mask = of_scope(core.checked, wanted.subscription, wanted.topic, wanted.scope)
    return await asyncio.to_thread(chart, site.service.folder, topic, wanted.attribute, grid, mask)


@router.get("/api/readings")
async def readings(site: Asked, wanted: Annotated[Wanted, Query()]) -> dict[str, Any]:
    """Stored readings of a topic, thinned to so many."""
    stretch = stretch_of(site, wanted.start, wanted.end, DAY)
    where = {"source": wanted.source, "place": wanted.place}
    known = {name: value for name, value in where.items() if value is not None}
    most = min(max(1, wanted.most), 50_000)
    return await asyncio.to_thread(readings_of, site.service.folder, wanted.topic, known, stretch, most)


@router.get("/api/regions")
async def regions(site: Asked) -> list[dict[str, Any]]:
    """The regions of the definition, for a map."""
    return await asyncio.to_thread(_regions, site)


def _regions(site: Site) -> list[dict[str, Any]]:
    known = gazetteer(parse(site.service.core.definition).statements, site.base)
    return [shown.region(region) for region in known.regions]


async def really(site: Site, stretch: tuple[Instant, Instant]) -> list[Interval]:
    """The intervals that were told, with those that hold now."""
    told = await asyncio.to_thread(site.service.store.between, *stretch, 1_000_000)
    found = await asyncio.to_thread(intervals, told, site.service.core.corrected)
    known = {(one.subscription, one.scope) for one in found if one.open}
    held = [one for one in await site.service.holding() if (one.subscription, one.scope) not in known]
    return found + [shown.interval(one) for one in held if one.since < stretch[1]]
