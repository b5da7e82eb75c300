"""Tasks that go on for ever: one that ends is logged, counted and started again, later each time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

log = logging.getLogger("holdfast.service")

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds before a task is started again; it waits twice as long each time, unless it ran for longer."""


@dataclass
class Supervised:
    """A task that should not end; cancelling ``run`` ends it."""

    name: str
    work: Callable[[], Awaitable[Any]]
    restarts: int = 0
    trouble: str | None = None
    """Why it ended last, while it waits to be started again or has not worked for long since."""

    async def run(self) -> None:
        """Run the task, and start it again whenever it ends."""
        wait = FIRST_WAIT
        while True:
            begun = time.monotonic()
            try:
                await self.work()
                self.trouble = "it ended"
            except Exception as error:
                self.trouble = f"{type(error).__name__}: {error}"
                log.exception("%s ended and is started again", self.name)
            else:
                log.error("%s ended and is started again", self.name)
            self.restarts += 1
            if time.monotonic() - begun > LONGEST_WAIT:
                wait = FIRST_WAIT
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)
            self._recover_later()

    def _recover_later(self) -> None:
        """Forget the trouble when the task has run for a while."""
        known = self.restarts

        def forget() -> None:
            if self.restarts == known:
                self.trouble = None

        asyncio.get_running_loop().call_later(FIRST_WAIT, forget)

    def status(self) -> dict[str, Any]:
        """How often it was started again, and why."""
        return {"restarts": self.restarts, "ended": self.trouble}
