"""The clock of machines that run in an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from ...model.instant import SECOND, Instant


class LoopClock:
    """The clock of an event loop: the time of day at the start plus the elapsed monotonic time, in µs.

    Changes of the system clock have no effect. Timers are those of the loop.
    """

    def __init__(self) -> None:
        self._offset = time.time_ns() // 1_000 - time.monotonic_ns() // 1_000

    @property
    def now(self) -> Instant:
        """The current time in µs since 1970-01-01 UTC."""
        return time.monotonic_ns() // 1_000 + self._offset

    def at(self, when: Instant, action: Callable[[Any], None], argument: Any) -> asyncio.TimerHandle:
        """Call an action at a time; return the handle for `cancel`."""
        wait = max(0, when - self.now) / SECOND
        return asyncio.get_running_loop().call_later(wait, action, argument)

    @staticmethod
    def cancel(timer: asyncio.TimerHandle) -> None:
        """Cancel a timer that `at` has returned."""
        timer.cancel()
