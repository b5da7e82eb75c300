"""Definitions: look, check, try over the past, change."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request

from ...compilers.explain import explain
from ...errors import HoldfastError, UsageError
from ...lang.parse import keywords
from ...model.instant import DAY
from ...model.unit import UNITS
from ..core import statements
from ..log.frame import Definition
from ..trial import bars, differences, summary, trial
from . import shown
from .access import User
from .past import really
from .site import Asked, Site, checked_by, object_of, stretch_of, text_of, user_of

router = APIRouter()


@router.get("/api/definition")
async def look(site: Asked) -> dict[str, Any]:
    """The definition that runs."""
    core = site.service.core
    return {"text": core.definition, **shown.checked(core.checked)}


@router.get("/api/subscriptions")
async def subscriptions(site: Asked) -> list[dict[str, Any]]:
    """The subscriptions that run, each with its text."""
    core = site.service.core
    lines = core.definition.splitlines()
    texts = {name: "\n".join(lines[first:end]) for name, first, end in statements(core.definition)}
    return [one | {"text": texts.get(one["name"])} for one in shown.checked(core.checked)["subscriptions"]]


@router.get("/api/words")
async def known_words() -> dict[str, list[str]]:
    """The words and units of the language, for an editor."""
    return {"keywords": keywords(), "units": sorted(UNITS, key=lambda unit: (len(unit), unit))}


@router.post("/api/check")
async def check(site: Asked, request: Request) -> dict[str, Any]:
    """Whether a definition is right, and what it would change; errors have their place.  With ``count`` also
    how many scopes would start, end or become unknown."""
    said = await object_of(request)
    text = text_of(said)
    try:
        found = await asyncio.to_thread(checked_by, site, text, user_of(request))
    except HoldfastError as error:
        return {"ok": False, "errors": [shown.fault(error)]}
    service = site.service
    change = shown.change(await service.on_engine(service.core.change, Definition(text)))
    if said.get("count"):
        change["scopes"] = await service.forecast(Definition(text, tuple(change["afresh"])))
    return {"ok": True, "errors": [], **shown.checked(found), "change": change}


@router.post("/api/explain")
async def plan(site: Asked, request: Request) -> dict[str, Any]:
    """The plan of a definition."""
    found = await asyncio.to_thread(checked_by, site, text_of(await object_of(request)), user_of(request))
    return {"plan": explain(found)}


@router.post("/api/dry-run")
async def dry_run(site: Asked, request: Request) -> dict[str, Any]:
    """When would this have fired?  Over the stored readings, beside what was really told."""
    said = await object_of(request)
    found = await asyncio.to_thread(checked_by, site, text_of(said), user_of(request))
    stretch = stretch_of(site, said.get("start"), said.get("end"), 7 * DAY)
    then = await asyncio.to_thread(trial, found, site.service.folder, stretch)
    told = await really(site, stretch)
    return {
        "then": summary(then),
        "really": summary(told),
        **differences(then, told),
        "timeline": {
            "start": stretch[0],
            "end": stretch[1],
            "rows": bars(then, stretch, 1_000),
            "really": bars(told, stretch, 1_000),
        },
    }


@router.put("/api/definition")
async def put(site: Asked, request: Request) -> dict[str, Any]:
    """Run another definition; ``restart`` names subscriptions that begin afresh."""
    said = await object_of(request)
    return await _run(site, user_of(request), text_of(said), said)


@router.post("/api/subscriptions")
async def add(site: Asked, request: Request) -> dict[str, Any]:
    """Run one more statement, or several."""
    said = await object_of(request)
    return await _run(
        site, user_of(request), f"{site.service.core.definition.rstrip()}\n\n{text_of(said).strip()}\n", said
    )


@router.put("/api/subscriptions/{name}")
async def edit(site: Asked, name: str, request: Request) -> dict[str, Any]:
    """Put another text in the place of a subscription."""
    said = await object_of(request)
    text = _replaced(site.service.core.definition, name, text_of(said).strip())
    return await _run(site, user_of(request), text, said)


@router.delete("/api/subscriptions/{name}")
async def remove(site: Asked, name: str, request: Request) -> dict[str, Any]:
    """End a subscription; what holds of it is withdrawn."""
    return await _run(site, user_of(request), _replaced(site.service.core.definition, name, None), {})


async def _run(site: Site, user: User, text: str, said: dict[str, Any]) -> dict[str, Any]:
    if site.save is None:
        raise UsageError("the definition of this service cannot be changed over HTTP")
    restart = said.get("restart", [])
    if not isinstance(restart, list) or not all(isinstance(name, str) for name in restart):
        raise UsageError("'restart' must be a list of names")
    await asyncio.to_thread(checked_by, site, text, user)
    return shown.change(await site.service.define(text, restart, site.save))


def _replaced(text: str, name: str, other: str | None) -> str:
    """The definition with another text in the place of a subscription, or with none."""
    for found, first, end in statements(text):
        if found == name:
            lines = text.splitlines()
            return "\n".join([*lines[:first], *([] if other is None else [other]), *lines[end:]]) + "\n"
    raise UsageError(f"no subscription named '{name}' runs")
