"""Events from lines to a broker."""

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
from ....protocols.cbps.client import Refused, Unsent
from ....protocols.cbps.event import whereabouts
from ..client import Connector, Publisher
from .lines import Lines

SHOWN = 5
"""How many bad lines are shown; all are counted."""
TURN = 100
"""After so many events others have their turn."""
PIECE, AHEAD, LONGEST = 1 << 16, 4, 1 << 24
"""How much is read at a time, how many pieces ahead, and how long a line may be."""


@dataclass
class Publishing:
    """What lines say, on its way to a broker; ``complain`` is told what is wrong with some of them.

    Subscriptions have ``settle`` seconds to come once a topic is advertised.
    """

    connect: Connector
    lines: Lines
    settle: float
    strict: bool
    complain: Callable[[str], None]
    sent: int = field(default=0, init=False)
    rejected: int = field(default=0, init=False)
    unsent: list[str] = field(default_factory=list, init=False)
    """Why, for each event."""

    @property
    def in_vain(self) -> bool:
        """Whether something was to be sent, and nothing was."""
        return self.sent == len(self.unsent) and bool(self.rejected or self.unsent)

    async def publish(self, given: Iterable[str] | None) -> str:
        """Send what lines say, the given ones or those of standard input; a summary."""
        async with self.connect(deliver=self._told) as node:
            publisher = Publisher(node)
            async for number, line in _numbered(given):
                if (event := self._event(number, line, node.now)) is None:
                    continue
                news = publisher.advertise(self.lines.topics[event.topic], event.source, whereabouts(event))
                if news:
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

    def _told(self, what: object) -> None:
        match what:
            case Unsent(_, why):
                self.unsent.append(why)
            case Refused(name, why):
                self.complain(f"warning: the broker refuses '{name}': {why}")

    def _event(self, number: int, line: str | bytes, now: Instant) -> Event | None:
        """The event of a line, if it has one."""
        try:
            return self.lines.event(line, now)
        except InputError as error:
            if self.strict:
                raise InputError(f"line {number}: {error}") from None
            self.rejected += 1
            if self.rejected <= SHOWN:
                self.complain(f"warning: line {number}: {error}")
            return None


async def _numbered(given: Iterable[str] | None) -> AsyncIterator[tuple[int, str | bytes]]:
    """Lines that are not blank, with their numbers."""
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
    """Lines as they come.  A thread waits for them, which does not keep the process from ending: it
    reads from the operating system, for Python's own reader would be locked."""
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
    """The lines that each piece of a file completes; one that is too long is cut, and so no event."""
    rest = b""
    while piece := os.read(file, PIECE):
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > LONGEST:
            lines, rest = [*lines, rest], b""
        if lines:
            yield lines
    if rest:
        yield [rest]
