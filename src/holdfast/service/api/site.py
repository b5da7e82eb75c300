"""What every route knows, and how it reads what it was sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request

from ...errors import DefinitionError, HoldfastError, UsageError
from ...lang.check import check
from ...lang.condition import Checked
from ...lang.parse import parse
from ...model.folder import Within
from ...model.instant import MINUTE, Duration, Instant, instant
from ..service import Service
from ..sinks.delivery import Delivery
from ..supervision import Supervised
from .access import User, may
from .guard import Limits

MOST = 10_000
"""Things that one answer lists at most."""


@dataclass
class Site:
    """A service that is asked over HTTP."""

    service: Service
    base: Path
    """The folder of the definition."""
    save: Callable[[str], None] | None = None
    """Writes a changed definition where it came from; without it the definition cannot be changed."""
    files: Path | None = None
    """The folder whose files a definition may name that is sent over HTTP."""
    users: tuple[User, ...] = ()
    hosts: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    sinks: list[Delivery] = field(default_factory=list)
    feeds: list[Any] = field(default_factory=list)
    tasks: dict[int, Supervised] = field(default_factory=dict)
    """The tasks of feeds and sinks, by the identity of these."""

    def feed_status(self) -> list[dict[str, Any]]:
        """How the feeds stand."""
        return [feed.status() | self._task_status(feed) for feed in self.feeds]

    def sink_status(self) -> list[dict[str, Any]]:
        """How the sinks stand."""
        last = self.service.hub.last
        return [sink.status(last) | self._task_status(sink) for sink in self.sinks]

    def _task_status(self, one: Any) -> dict[str, Any]:
        task = self.tasks.get(id(one))
        return {"restarts": 0, "ended": None} if task is None else task.status()


async def site_of(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


Asked = Annotated[Site, Depends(site_of)]


def user_of(request: Request) -> User:
    user: User = request.state.user
    return user


async def object_of(request: Request) -> dict[str, Any]:
    """The JSON object that a body is."""
    try:
        said = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise UsageError("the body must be a JSON object") from None
    if not isinstance(said, dict):
        raise UsageError("the body must be a JSON object")
    return said


def text_of(said: dict[str, Any]) -> str:
    text = said.get("text")
    if not isinstance(text, str):
        raise UsageError('the body must be {"text": DEFINITION}')
    return text


def checked_by(site: Site, text: str, user: User) -> Checked:
    """A definition that a user sent.  It reads the files that the running definition names and those of the
    declared folder, and no others.  Only who may change definitions sees what is wrong in them."""
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


def stretch_of(site: Site, start: Any, end: Any, length: Duration) -> tuple[Instant, Instant]:
    """A stretch of time; without an end up to now, without a start so long."""
    last = site.service.clock() + MINUTE if end is None else instant(end)
    first = last - length if start is None else instant(start)
    if first >= last:
        raise UsageError("'start' must lie before 'end'")
    return first, last
