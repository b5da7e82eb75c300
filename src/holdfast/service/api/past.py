"""What was: notifications of a scope, bars of a stretch of time, stored readings, and the map."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel

from ...files.interval import Interval
from ...lang.parse import parse
from ...lang.scopes import gazetteer
from ...model.instant import DAY, Instant
from ..history import readings_of
from ..trial import bars, intervals
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


@router.get("/api/history")
async def history(
    site: Asked, subscription: str, scope: str | None = None, start: str | None = None, end: str | None = None
) -> list[dict[str, Any]]:
    """What was told of one scope."""
    stretch = stretch_of(site, start, end, 30 * DAY)
    told = await asyncio.to_thread(site.service.store.history, subscription, scope, stretch, MOST)
    return [shown.notification(one) for one in told]


@router.get("/api/timeline")
async def timeline(
    site: Asked, start: str | None = None, end: str | None = None, width: int = 1_000
) -> dict[str, Any]:
    """Bars of conditions for a picture so many pixels wide."""
    stretch = stretch_of(site, start, end, DAY)
    rows = bars(await really(site, stretch), stretch, min(max(10, width), 4_000))
    return {"start": stretch[0], "end": stretch[1], "rows": rows}


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
    found = await asyncio.to_thread(intervals, told)
    known = {(one.subscription, one.scope) for one in found if one.open}
    held = [one for one in await site.service.holding() if (one.subscription, one.scope) not in known]
    return found + [shown.interval(one) for one in held if one.since < stretch[1]]
