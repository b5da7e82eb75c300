"""The command ``publish``: sends events from lines to a broker."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

from ....errors import InputError, counted
from ....model.event import Event
from ....model.instant import Instant
from ...protocols.cbps.client import BundleUnsent, SubmissionRefused
from ...protocols.cbps.event import location_fields
from ..client import Connector, Publisher
from .lines import LineReader

SHOWN = 5
"""The number of bad lines that warnings show. All bad lines are counted."""
TURN = 100
"""The number of events after which other tasks of the event loop run."""
PIECE, AHEAD, LONGEST = 1 << 16, 4, 1 << 24
"""The number of bytes per read, the number of pieces to read ahead, and the longest line in bytes."""


@dataclass
class LinePublisher:
    """Sends the events of lines. ``complain`` receives warnings about bad lines.

    After a topic is advertised, subscriptions have ``settle`` seconds to arrive.
    """

    connect: Connector
    lines: LineReader
    settle: float
    strict: bool
    complain: Callable[[str], None]
    sent: int = field(default=0, init=False)
    rejected: int = field(default=0, init=False)
    unsent: list[str] = field(default_factory=list, init=False)
    """The reason for each event that could not be sent."""

    @property
    def has_failed(self) -> bool:
        """Whether there was input but no event was sent."""
        return self.sent == len(self.unsent) and bool(self.rejected or self.unsent)

    async def publish(self, given: Iterable[str] | None) -> str:
        """Send the events of the given lines, or of standard input; return a summary."""
        async with self.connect(deliver=self._on_delivery) as node:
            publisher = Publisher(node)
            async for number, line in _numbered_lines(given):
                if (event := self._event(number, line, node.now)) is None:
                    continue
                topic = self.lines.topics[event.topic]
                if publisher.advertise(topic, event.source, location_fields(event)):
                    await asyncio.sleep(self.settle)
                await publisher.publish(event)
                self.sent += 1
                if self.sent % TURN == 0:
                    await asyncio.sleep(0)
        return ", ".join(
            [f"{counted(self.sent - len(self.unsent), 'event')} sent"]
            + [f"{counted(self.rejected, 'line')} rejected"] * bool(self.rejected)
            + [f"{counted(self.unsent, 'event')} not sent: {why}" for why in self.unsent[-1:]]
        )

    def _on_delivery(self, delivery: object) -> None:
        """Record deliveries of the client that report failures."""
        match delivery:
            case BundleUnsent(_, why):
                self.unsent.append(why)
            case SubmissionRefused(name, why):
                self.complain(f"warning: the broker refuses '{name}': {why}")

    def _event(self, number: int, line: str | bytes, now: Instant) -> Event | None:
        """Return the event of a line; ``None`` and a warning for a bad line."""
        try:
            return self.lines.event(line, now)
        except InputError as error:
            if self.strict:
                raise InputError(f"line {number}: {error}") from None
            self.rejected += 1
            if self.rejected <= SHOWN:
                self.complain(f"warning: line {number}: {error}")
            return None


async def _numbered_lines(given: Iterable[str] | None) -> AsyncIterator[tuple[int, str | bytes]]:
    """Yield the lines that are not blank, with their numbers."""
    numbers = count(1)
    if given is not None:
        for text in given:
            yield next(numbers), text
        return
    async for some in _chunks(sys.stdin.fileno()):
        for line in some:
            number = next(numbers)
            if line.strip():
                yield number, line


async def _chunks(file: int) -> AsyncIterator[list[bytes]]:
    """Yield lines of a file as they arrive.

    A daemon thread reads from the operating system, because Python's own reader would hold a lock when the
    process ends.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Queue[list[bytes] | None] = asyncio.Queue()
    room = threading.Semaphore(AHEAD)

    def read() -> None:
        with suppress(RuntimeError):  # the loop has ended before the input
            for lines in _split(file):
                room.acquire()
                loop.call_soon_threadsafe(found.put_nowait, lines)
            loop.call_soon_threadsafe(found.put_nowait, None)

    threading.Thread(target=read, daemon=True, name="standard input").start()
    while (some := await found.get()) is not None:
        yield some
        room.release()


def _split(file: int) -> Iterator[list[bytes]]:
    """Yield the lines that each piece of a file completes. An overlong line is cut, so that it is not a valid
    event.
    """
    rest = b""
    while piece := os.read(file, PIECE):
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > LONGEST:
            lines, rest = [*lines, rest], b""
        if lines:
            yield lines
    if rest:
        yield [rest]
