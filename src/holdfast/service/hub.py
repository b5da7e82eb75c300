"""Notifications for whoever listens: each at its own pace, from a position of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from itertools import islice, takewhile

from .store import Store, Told

RECENT = 10_000
_LONGEST_WAIT = 15.0
"""Seconds."""


class Hub:
    """The latest notifications in memory; earlier ones are read from the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._recent: deque[Told] = deque(maxlen=RECENT)
        self._changed = asyncio.Event()
        self.last = store.last
        self._from = self.last
        """Everything after this position is in memory."""

    def publish(self, told: Sequence[Told]) -> None:
        """New notifications, which are in the store already."""
        if not told:
            return
        if len(self._recent) + len(told) > RECENT:
            gone = islice(self._recent, min(len(self._recent), len(self._recent) + len(told) - RECENT))
            self._from = max([self._from, *(one.position for one in gone)])
            if len(told) > RECENT:
                self._from = told[-RECENT - 1].position
        self._recent.extend(told)
        self.last = told[-1].position
        self.wake()

    async def after(self, position: int, most: int = 500) -> list[Told]:
        """Notifications after a position; none if there are none yet."""
        if position >= self.last:
            return []
        if position < self._from:
            return await asyncio.to_thread(self._store.notifications, position, most)
        found = list(takewhile(lambda one: one.position > position, reversed(self._recent)))
        return found[: -most - 1 : -1]

    def wake(self) -> None:
        """Let all streams yield, also where there is nothing new."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def stream(
        self, position: int, most: int = 500, longest: Callable[[], float] = lambda: _LONGEST_WAIT
    ) -> AsyncIterator[list[Told]]:
        """Notifications after a position, as they come; an empty list when none do for ``longest`` seconds,
        or when streams are woken."""
        while True:
            changed = self._changed
            if some := await self.after(position, most):
                position = some[-1].position
                yield some
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(longest()):  # wait_for of Python 3.11 may swallow a cancellation
                    await changed.wait()
            if position >= self.last:
                yield []
