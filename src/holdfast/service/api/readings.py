"""Routes by which clients send readings over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from fastapi import APIRouter
from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from ...errors import UsageError
from ..feeds.arrow import read_stream
from ..feeds.lines import parse_lines
from ..feeds.submission import Rejected, table
from ..intake import Submission
from ..origins import RepeatedRequest, Request
from .site import CurrentSite, Site, user_of

router = APIRouter()

ARROW = "application/vnd.apache.arrow.stream"


@router.post("/api/readings")
async def post(site: CurrentSite, request: HttpRequest, topic: str | None = None) -> Response:
    """Submit readings: JSON lines as ``holdfast publish`` sends them, or an Arrow stream (with ``?topic=``).

    The answer is sent when the readings are on disk. With an ``Idempotency-Key``, a repetition within a day
    has no effect. Another body with the key of the same user is refused.
    """
    service, body = site.service, await request.body()
    if not service.takes_readings:
        return JSONResponse({"error": service.troubles["log"]}, 503, {"retry-after": "5"})
    is_arrow = request.headers.get("content-type", "").startswith(ARROW)
    found = await asyncio.to_thread(_tables if is_arrow else _lines, site, body, topic)
    bad = [{"where": one.channel, "reason": one.reason} for one in found.rejected[:100]]
    is_empty = not (found.submission.incoming or found.submission.entries)
    submission = found.submission._replace(request=_request_of(request, topic, body))
    try:
        count = 0 if is_empty and submission.request is None else await service.submit(submission)
    except RepeatedRequest as repeated:
        if not repeated.is_same:
            raise
        count = 0
    else:
        service.counts.corrected += found.corrected
        await service.reject(found.rejected)
    return JSONResponse({"taken": count, "rejected": bad}, 422 if bad and is_empty else 200)


class _ParsedBody(NamedTuple):
    """The parsed body of a request: readings, rejected lines, and the number of corrected times."""

    submission: Submission
    rejected: Sequence[Rejected] = ()
    corrected: int = 0


def _request_of(request: HttpRequest, topic: str | None, body: bytes) -> Request | None:
    """Return the identity of a request with an idempotency key, or ``None`` for a request without a key."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    kind = request.headers.get("content-type", "")
    who = user_of(request).name.encode()
    return Request.of((who, key.encode("latin-1")), (kind.encode("latin-1"), (topic or "").encode(), body))


def _lines(site: Site, body: bytes, _topic: str | None) -> _ParsedBody:
    found = parse_lines(site.service.topics, body, site.service.clock())
    return _ParsedBody(Submission(found.incoming), found.rejected, found.corrected)


def _tables(site: Site, body: bytes, topic: str | None) -> _ParsedBody:
    service = site.service
    known = service.topics.get(topic or "")
    if known is None:
        names = ", ".join(service.topics) or "none"
        raise UsageError(f"say which topic an Arrow stream is of: ?topic=NAME. There is {names}.")
    stream = read_stream(known, body, service.clock(), site.limits.decoded)
    entries = [table(known, batch) for batch in stream.batches if len(batch)]
    return _ParsedBody(Submission(entries=entries), corrected=stream.corrected)
