"""Objects and functions that all routes share: the site, the user, and parsing of requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request

from ...definition.check import check
from ...definition.parse import parse
from ...errors import DefinitionError, HoldfastError, UsageError
from ...lang.condition import Checked
from ...model.folder import Within
from ...model.instant import MINUTE, Duration, Instant, instant
from ..feeds.feed import Feed
from ..service import Service
from ..sinks.delivery import SinkDelivery
from ..supervision import Supervised
from .access import User, may
from .guard import RequestLimits

MOST = 10_000
"""How many elements an answer lists at most."""


@dataclass
class Site:
    """A running service with its feeds, its sinks and its configuration for HTTP."""

    service: Service
    base: Path
    """The folder of the definition."""
    save: Callable[[str], None] | None = None
    """Writes a changed definition to its file; without it the definition cannot be changed."""
    files: Path | None = None
    """The folder of files that definitions sent over HTTP may name."""
    users: tuple[User, ...] = ()
    hosts: tuple[str, ...] = ()
    limits: RequestLimits = field(default_factory=RequestLimits)
    sinks: list[SinkDelivery] = field(default_factory=list)
    feeds: list[Feed] = field(default_factory=list)
    tasks: dict[int, Supervised] = field(default_factory=dict)
    """The tasks of feeds and sinks, by their ``id()``."""

    def feed_status(self) -> list[dict[str, Any]]:
        """Return the status of each feed with the restarts of its task."""
        return [feed.status() | self._task_status(feed) for feed in self.feeds]

    def sink_status(self) -> list[dict[str, Any]]:
        """Return the status of each sink with the restarts of its task."""
        last = self.service.hub.last
        return [sink.status(last) | self._task_status(sink) for sink in self.sinks]

    def _task_status(self, one: Any) -> dict[str, Any]:
        task = self.tasks.get(id(one))
        return {"restarts": 0, "ended": None} if task is None else task.status()


async def site_of(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


CurrentSite = Annotated[Site, Depends(site_of)]


def user_of(request: Request) -> User:
    user: User = request.state.user
    return user


async def object_of(request: Request) -> dict[str, Any]:
    """Return the body of a request as a JSON object. Raises ``UsageError`` if it is something else."""
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise UsageError("the body must be a JSON object") from None
    if not isinstance(body, dict):
        raise UsageError("the body must be a JSON object")
    return body


def text_of(body: dict[str, Any]) -> str:
    """Return the definition in the body of a request. Raises ``UsageError`` if there is none."""
    text = body.get("text")
    if not isinstance(text, str):
        raise UsageError('the body must be {"text": DEFINITION}')
    return text


def check_for_user(site: Site, text: str, user: User) -> Checked:
    """Check a definition that a user sent.

    The definition can read only the files that the running definition names and those of the configured
    folder. Errors about the content of files are shown only to users that may change definitions.
    """
    folder = Within(site.base, site.files, site.service.core.files)
    try:
        return check(parse(text), folder)
    except HoldfastError as error:
        if not folder.opened or may(user, "edit"):
            raise
        names = ", ".join(dict.fromkeys(folder.opened))
        message = (
            f"this does not fit what the definition reads from {names}; users with the role 'edit' see why"
        )
        raise DefinitionError(message, error.place if isinstance(error, DefinitionError) else None) from None


def period_of(site: Site, start: Any, end: Any, length: Duration) -> tuple[Instant, Instant]:
    """Parse the start and end of a period; ``end`` is exclusive.

    The default end is a minute from now. The default start is ``length`` before the end.
    """
    last = site.service.clock() + MINUTE if end is None else instant(end)
    first = last - length if start is None else instant(start)
    if first >= last:
        raise UsageError("'start' must lie before 'end'")
    return first, last
