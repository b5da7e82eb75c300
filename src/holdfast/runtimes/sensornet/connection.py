"""A connection between two motes: messages of any length, in order, each once, over routing that loses some.

Machines that were made for connections run above it.  A message is cut into segments that fit into a frame;
each is sent again until it is acknowledged.  Each end has a session, new after a restart and after the other
end was given up, so that no end takes an old segment for a new one.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...model.instant import Duration, Instant
from ...model.protocol import (
    CancelTimer,
    Effect,
    Input,
    Joined,
    Left,
    Peer,
    Received,
    Send,
    SetTimer,
    Undelivered,
)

HEADER = 7
"""Bytes before the piece of a message in a segment: what it is, two sessions, a number."""
LONGEST_PAUSE = 5
"""So often the time between two tries is doubled."""


class Hello(NamedTuple):
    """Here I am, in this session; and this is yours, as far as I know."""

    mine: Instant
    yours: Instant | None
    reply: bool


class Segment(NamedTuple):
    """So many bytes of a message; with the last of them it is there."""

    mine: Instant
    yours: Instant
    number: int
    message: Any
    size: int
    last: bool


class Ack(NamedTuple):
    """This segment of a message has come."""

    mine: Instant
    yours: Instant
    number: int
    message: Any
    """For accounts; an acknowledgement is as long as a header."""


Frame = Hello | Segment | Ack


def bytes_of(frame: Frame) -> int:
    """How long a frame is on a mote."""
    return HEADER + frame.size if isinstance(frame, Segment) else HEADER


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How patient an end is, how much it holds, and how messages become segments."""

    rto: Duration
    """After so long without an acknowledgement a segment is sent again; later ones after twice as long, …"""
    tries: int
    """After so many the other end is taken for gone."""
    queue: int
    """So many messages wait at most; beyond that one that may be lost is given up."""
    segment: int
    """Bytes of a message in a segment."""
    size: Callable[[Any], int]
    losable: Callable[[Any], bool]


@dataclass(slots=True)
class End:
    """One end of a connection; what it yields is for routing, or for the machine above."""

    peer: Peer
    terms: Terms
    session: Instant
    theirs: Instant | None = None
    up: bool = False
    tries: int = 0
    waiting: deque[tuple[Any, int]] = field(default_factory=deque)
    """Messages, and how many bytes of each are still to be sent."""
    sent: Segment | None = None
    """What is not acknowledged."""
    number: int = 0
    expected: int = 0
    counted: Counter[str] = field(default_factory=Counter)

    @property
    def timer(self) -> str:
        return f"connection {self.peer}"

    def open(self, now: Instant) -> Iterator[Effect]:
        """Say hello until somebody answers."""
        yield Send(self.peer, Hello(self.session, self.theirs, False))
        yield self._patience(now)

    def send(self, now: Instant, message: Any) -> Iterator[Effect | Input]:
        """Bring a message to the other end, if it is there."""
        if not self.up:
            return
        self.waiting.append((message, self.terms.size(message)))
        if len(self.waiting) > self.terms.queue:
            losable = (each for each in list(self.waiting)[1:] if self.terms.losable(each[0]))
            if (given_up := next(losable, None)) is not None:
                self.waiting.remove(given_up)
                yield Undelivered(now, self.peer, given_up[0])
        if self.sent is None:
            yield from self._next(now)

    def fired(self, now: Instant) -> Iterator[Effect | Input]:
        """Nobody has answered."""
        if not self.up:
            yield from self.open(now)
        elif self.sent is not None and self.tries < self.terms.tries:
            self.counted["sent again"] += 1
            yield Send(self.peer, self.sent)
            yield self._patience(now)
        elif self.sent is not None:
            yield from self._down(now, f"{self.peer} does not answer")
            yield from self.open(now)

    def received(self, now: Instant, frame: Frame) -> Iterator[Effect | Input]:
        """Something has come from the other end; what is of an earlier session is too late."""
        if self.theirs is not None and frame.mine < self.theirs:
            return
        if isinstance(frame, Hello) and frame.mine != self.theirs:
            self.theirs, self.expected = frame.mine, 0
            if self.up:
                yield from self._down(now, f"{self.peer} has begun anew")
                yield from self.open(now)
        if frame.mine == self.theirs and frame.yours == self.session:
            yield from self._understood(now, frame)
        if isinstance(frame, Hello) and not frame.reply:
            yield Send(self.peer, Hello(self.session, self.theirs, True))

    def _understood(self, now: Instant, frame: Frame) -> Iterator[Effect | Input]:
        """The other end knows of this session, and this end of its."""
        assert self.theirs is not None
        if not self.up:
            self.up, self.tries = True, 0
            yield CancelTimer(self.timer)
            yield Joined(now, self.peer)
        match frame:
            case Segment(number=number, message=message) if number <= self.expected:
                yield Send(self.peer, Ack(self.session, self.theirs, number, message))
                if number == self.expected:
                    self.expected += 1
                    if frame.last:
                        yield Received(now, self.peer, message)
            case Ack(number=number) if self.sent is not None and number == self.sent.number:
                self.sent, self.tries = None, 0
                yield CancelTimer(self.timer)
                yield from self._next(now)

    def _next(self, now: Instant) -> Iterator[Effect]:
        """Send the next segment, if there is one."""
        if not self.waiting:
            return
        assert self.theirs is not None
        message, left = self.waiting.popleft()
        size = min(left, self.terms.segment)
        if left > size:
            self.waiting.appendleft((message, left - size))
        self.sent = Segment(self.session, self.theirs, self.number, message, size, left == size)
        self.number += 1
        yield Send(self.peer, self.sent)
        yield self._patience(now)

    def _patience(self, now: Instant) -> Effect:
        pause = self.terms.rto << min(self.tries, LONGEST_PAUSE)
        self.tries += 1
        return SetTimer(self.timer, now + pause)

    def _down(self, now: Instant, why: str) -> Iterator[Input]:
        """Give the other end up, with all that was for it."""
        self.session = max(now, self.session + 1)
        self.up, self.tries, self.number, self.sent = False, 0, 0, None
        self.waiting.clear()
        self.counted["connections lost"] += 1
        yield Left(now, self.peer, why)
