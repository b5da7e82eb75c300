"""Supervision of tasks that must never end.

A task that ends is logged, counted and restarted after a growing delay.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

log = logging.getLogger("holdfast.service")

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds before a task is restarted. The wait doubles each time, unless the task ran for longer than
that."""


@dataclass
class Supervised:
    """A task that restarts whenever it ends. Cancelling ``run`` ends it."""

    name: str
    work: Callable[[], Awaitable[Any]]
    restarts: int = 0
    trouble: str | None = None
    """Why the task ended, until it has run again for a while."""

    async def run(self) -> None:
        """Run the task until cancelled, and restart it whenever it ends or raises an error."""
        wait = FIRST_WAIT
        while True:
            started = time.monotonic()
            try:
                await self.work()
                self.trouble = "it ended"
            except Exception as error:
                self.trouble = f"{type(error).__name__}: {error}"
                log.exception("%s ended and is started again", self.name)
            else:
                log.error("%s ended and is started again", self.name)
            self.restarts += 1
            if time.monotonic() - started > LONGEST_WAIT:
                wait = FIRST_WAIT
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)
            self._recover_later()

    def _recover_later(self) -> None:
        """Clear ``trouble`` when the task has run for a while without another restart."""
        known = self.restarts

        def forget() -> None:
            if self.restarts == known:
                self.trouble = None

        asyncio.get_running_loop().call_later(FIRST_WAIT, forget)

    def status(self) -> dict[str, Any]:
        """Return how often the task was restarted, and the reason of the last time."""
        return {"restarts": self.restarts, "ended": self.trouble}
