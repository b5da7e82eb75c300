"""Readings over HTTP."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from ...errors import UsageError
from ..feeds.arrow import read_stream
from ..feeds.lines import taken
from ..feeds.submission import NOWHERE, origin, table
from ..log.frame import Readings
from ..service import Submission
from .site import Asked, Site

router = APIRouter()

ARROW = "application/vnd.apache.arrow.stream"


@router.post("/api/readings")
async def post(site: Asked, request: Request, topic: str | None = None) -> Response:
    """Readings: JSON lines as ``holdfast publish`` takes them, or an Arrow stream (with ``?topic=``).

    The answer comes when they are on disk.  With an ``Idempotency-Key`` a repetition changes nothing.
    """
    service, body = site.service, await request.body()
    if not service.takes_readings:
        return JSONResponse({"error": service.troubles["log"]}, 503, {"retry-after": "5"})
    key = request.headers.get("idempotency-key")
    identity = NOWHERE if key is None else origin(b"http", key.encode("latin-1"))
    if request.headers.get("content-type", "").startswith(ARROW):
        entries = await asyncio.to_thread(_tables, site, body, topic, identity)
        count = await service.submit(Submission(entries=entries, again=key is not None))
        return JSONResponse({"taken": count, "rejected": []})
    found = await asyncio.to_thread(taken, service.topics, body, service.clock(), identity)
    service.counts.corrected += found.corrected
    await service.reject(found.rejected)
    count = await service.submit(Submission(found.given, again=key is not None)) if found.given else 0
    bad = [{"where": one.channel, "reason": one.reason} for one in found.rejected[:100]]
    return JSONResponse({"taken": count, "rejected": bad}, 422 if bad and not found.given else 200)


def _tables(site: Site, body: bytes, topic: str | None, identity: int) -> list[Readings]:
    service = site.service
    known = service.topics.get(topic or "")
    if known is None:
        names = ", ".join(service.topics) or "none"
        raise UsageError(f"say which topic an Arrow stream is of: ?topic=NAME. There is {names}.")
    stream = read_stream(known, body, service.clock(), site.limits.decoded)
    service.counts.corrected += stream.corrected
    found, first = [], identity
    for batch in stream.batches:
        found.append(table(known, batch, first))
        first += len(batch) if identity != NOWHERE else 0
    return found
