"""Distribution of notifications to sinks and pages, each at its own pace and from its own position."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from itertools import islice, takewhile

from .store import NotificationRow, ServiceStore

RECENT = 10_000
_LONGEST_WAIT = 15.0
"""Seconds until an idle stream yields an empty list."""


class Hub:
    """Holds the latest notifications in memory and reads earlier ones from the store.

    Use it in the event loop.
    """

    def __init__(self, store: ServiceStore) -> None:
        self._store = store
        self._recent: deque[NotificationRow] = deque(maxlen=RECENT)
        self._changed = asyncio.Event()
        self.last = store.last
        self._from = self.last
        """Everything after this position is in memory."""

    def publish(self, rows: Sequence[NotificationRow]) -> None:
        """Publish new notifications to all streams. They must be in the store already."""
        if not rows:
            return
        if len(self._recent) + len(rows) > RECENT:
            removed = islice(self._recent, min(len(self._recent), len(self._recent) + len(rows) - RECENT))
            self._from = max([self._from, *(row.position for row in removed)])
            if len(rows) > RECENT:
                self._from = rows[-RECENT - 1].position
        self._recent.extend(rows)
        self.last = rows[-1].position
        self.wake()

    async def after(self, position: int, most: int = 500) -> list[NotificationRow]:
        """Return at most ``most`` notifications after a position."""
        if position >= self.last:
            return []
        if position < self._from:
            return await asyncio.to_thread(self._store.notifications, position, most)
        found = list(takewhile(lambda row: row.position > position, reversed(self._recent)))
        return found[: -most - 1 : -1]

    def wake(self) -> None:
        """Wake all streams, which then yield a list even without new notifications."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def stream(
        self, position: int, most: int = 500, longest: Callable[[], float] = lambda: _LONGEST_WAIT
    ) -> AsyncIterator[list[NotificationRow]]:
        """Yield notifications after a position as they are published, at most ``most`` at a time.

        Yields an empty list when there are none for ``longest`` seconds, or when streams are woken.
        """
        while True:
            changed = self._changed
            if rows := await self.after(position, most):
                position = rows[-1].position
                yield rows
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(longest()):  # wait_for of Python 3.11 may swallow a cancellation
                    await changed.wait()
            if position >= self.last:
                yield []
