"""Routes for definitions: read, check, explain, dry run, change."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request

from ...errors import HoldfastError, UsageError
from ...lang.grammar import keywords
from ...model.instant import DAY
from ...model.unit import UNITS
from ...plan.explain import explain
from ..core import statements
from ..log.frame import DefinitionEntry
from ..trial import bars, differences, summary, trial
from . import answers
from .access import User
from .past import sent_intervals
from .site import CurrentSite, Site, check_for_user, object_of, period_of, text_of, user_of

router = APIRouter()


@router.get("/api/definition")
async def look(site: CurrentSite) -> dict[str, Any]:
    """Return the text of the running definition with its topics, subscriptions and warnings."""
    core = site.service.core
    return {"text": core.definition, **answers.definition(core.checked)}


@router.get("/api/subscriptions")
async def subscriptions(site: CurrentSite) -> list[dict[str, Any]]:
    """Return the running subscriptions, each with its text in the definition."""
    core = site.service.core
    lines = core.definition.splitlines()
    texts = {name: "\n".join(lines[first:end]) for name, first, end in statements(core.definition)}
    return [
        one | {"text": texts.get(one["name"])} for one in answers.definition(core.checked)["subscriptions"]
    ]


@router.get("/api/words")
async def known_words() -> dict[str, list[str]]:
    """Return the keywords and units of the language, for completion in an editor."""
    return {"keywords": keywords(), "units": sorted(UNITS, key=lambda unit: (len(unit), unit))}


@router.post("/api/check")
async def check(site: CurrentSite, request: Request) -> dict[str, Any]:
    """Check a definition and list what it would change. Errors have their place in the text.

    With ``count``, the answer also has how many scopes would start, end or become unknown.
    """
    body = await object_of(request)
    text = text_of(body)
    try:
        found = await asyncio.to_thread(check_for_user, site, text, user_of(request))
    except HoldfastError as error:
        return {"ok": False, "errors": [answers.fault(error)]}
    service = site.service
    change = answers.change(await service.on_engine(service.core.change, DefinitionEntry(text)))
    if body.get("count"):
        change["scopes"] = await service.forecast(DefinitionEntry(text, tuple(change["afresh"])))
    return {"ok": True, "errors": [], **answers.definition(found), "change": change}


@router.post("/api/explain")
async def plan(site: CurrentSite, request: Request) -> dict[str, Any]:
    """Return the plan of a definition as text."""
    found = await asyncio.to_thread(check_for_user, site, text_of(await object_of(request)), user_of(request))
    return {"plan": explain(found)}


@router.post("/api/dry-run")
async def dry_run(site: CurrentSite, request: Request) -> dict[str, Any]:
    """Run a definition over the stored readings, and compare the result with the sent notifications."""
    body = await object_of(request)
    found = await asyncio.to_thread(check_for_user, site, text_of(body), user_of(request))
    period = period_of(site, body.get("start"), body.get("end"), 7 * DAY)
    then = await asyncio.to_thread(trial, found, site.service.folder, period)
    rows = await sent_intervals(site, period)
    return {
        "then": summary(then),
        "really": summary(rows),
        **differences(then, rows),
        "timeline": {
            "start": period[0],
            "end": period[1],
            "rows": bars(then, period, 1_000),
            "really": bars(rows, period, 1_000),
        },
    }


@router.put("/api/definition")
async def put(site: CurrentSite, request: Request) -> dict[str, Any]:
    """Replace the running definition. ``restart`` names the subscriptions that start without state."""
    body = await object_of(request)
    return await _run(site, user_of(request), text_of(body), body)


@router.post("/api/subscriptions")
async def add(site: CurrentSite, request: Request) -> dict[str, Any]:
    """Add the statements in the request's body to the running definition."""
    body = await object_of(request)
    return await _run(
        site, user_of(request), f"{site.service.core.definition.rstrip()}\n\n{text_of(body).strip()}\n", body
    )


@router.put("/api/subscriptions/{name}")
async def edit(site: CurrentSite, name: str, request: Request) -> dict[str, Any]:
    """Replace the text of a subscription in the running definition."""
    body = await object_of(request)
    text = _replace(site.service.core.definition, name, text_of(body).strip())
    return await _run(site, user_of(request), text, body)


@router.delete("/api/subscriptions/{name}")
async def remove(site: CurrentSite, name: str, request: Request) -> dict[str, Any]:
    """Remove a subscription from the running definition and withdraw its active scopes."""
    return await _run(site, user_of(request), _replace(site.service.core.definition, name, None), {})


async def _run(site: Site, user: User, text: str, body: dict[str, Any]) -> dict[str, Any]:
    if site.save is None:
        raise UsageError("the definition of this service cannot be changed over HTTP")
    restart = body.get("restart", [])
    if not isinstance(restart, list) or not all(isinstance(name, str) for name in restart):
        raise UsageError("'restart' must be a list of names")
    await asyncio.to_thread(check_for_user, site, text, user)
    return answers.change(await site.service.define(text, restart, site.save))


def _replace(text: str, name: str, other: str | None) -> str:
    """Return a definition with the text of one subscription replaced by ``other``.

    If ``other`` is ``None``, the subscription is removed.
    """
    for found, first, end in statements(text):
        if found == name:
            lines = text.splitlines()
            return "\n".join([*lines[:first], *([] if other is None else [other]), *lines[end:]]) + "\n"
    raise UsageError(f"no subscription named '{name}' runs")
