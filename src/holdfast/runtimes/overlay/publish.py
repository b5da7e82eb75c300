"""Events from lines to a broker."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from itertools import count

from ...errors import InputError
from ...protocols.cbps.client import Refused, Unsent
from .address import Address
from .client import Publisher, connected
from .identity import Identity
from .limits import Limits
from .reading import Lines

SHOWN = 5
"""How many bad lines are shown; all are counted."""
TURN = 100
"""After so many events others have their turn."""
PIECE, AHEAD, LONGEST = 1 << 16, 4, 1 << 24
"""How much is read at a time, how many pieces ahead, and how long a line may be."""


async def publish(
    address: Address,
    identity: Identity,
    lines: Lines,
    given: Iterable[str] | None,
    *,
    limits: Limits,
    settle: float,
    strict: bool,
    patient: bool,
    complain: Callable[[str], None],
) -> str:
    """Send what lines say, the given ones or those of standard input; a summary."""
    sent = rejected = 0
    unsent: list[str] = []

    def deliver(what: object) -> None:
        match what:
            case Unsent(_, why):
                unsent.append(why)
            case Refused(name, why):
                complain(f"warning: the broker refuses '{name}': {why}")

    async with connected(address, identity, deliver=deliver, limits=limits, patient=patient) as node:
        publisher, topics = Publisher(node), set[str]()
        async for number, line in _numbered(given):
            try:
                event = lines.event(line, node.now)
            except InputError as error:
                rejected += 1
                if strict:
                    raise InputError(f"line {number}: {error}") from None
                if rejected <= SHOWN:
                    complain(f"warning: line {number}: {error}")
                continue
            if publisher.advertise(lines.topics[event.topic], event.source) and event.topic not in topics:
                topics.add(event.topic)
                await asyncio.sleep(settle)
            await publisher.publish(event)
            sent += 1
            if sent % TURN == 0:
                await asyncio.sleep(0)
    return ", ".join(
        [f"{sent - len(unsent):,} events sent"]
        + [f"{rejected:,} lines rejected"] * bool(rejected)
        + [f"{len(unsent):,} events not sent: {why}" for why in unsent[-1:]]
    )


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
