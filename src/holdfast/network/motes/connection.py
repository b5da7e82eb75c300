"""A connection between two motes: messages of any length, in order and without duplicates, over lossy
routing.

Machines that need connections run above it. A message is cut into segments that fit into a frame. Each
segment is sent again until it is acknowledged. Each end has a session number, which is new after a restart
and after a lost connection. So no end accepts an old segment as a new one.
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
"""The bytes of a segment before its part of the message: type, two sessions, a number."""
LONGEST_PAUSE = 5
"""The number of times that the pause between two tries is doubled."""


class ConnectionHello(NamedTuple):
    """Announces the sender's session, and the receiver's session if the sender knows it."""

    session: Instant
    peer_session: Instant | None
    reply: bool


class ConnectionSegment(NamedTuple):
    """A part of a message with ``size`` bytes. The last segment completes the message."""

    session: Instant
    peer_session: Instant
    number: int
    message: Any
    size: int
    last: bool


class ConnectionAck(NamedTuple):
    """Acknowledges the segment with the same number in the sender's present session."""

    session: Instant
    peer_session: Instant
    number: int
    message: Any
    """The acknowledged message, only for accounts. An acknowledgement is as long as a header."""


Frame = ConnectionHello | ConnectionSegment | ConnectionAck


def bytes_of(frame: Frame) -> int:
    """Return the size of a frame on a mote, in bytes."""
    return HEADER + frame.size if isinstance(frame, ConnectionSegment) else HEADER


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The parameters of a connection between motes."""

    rto: Duration
    """The time in µs without acknowledgement after which a segment is sent again. It doubles with
    each try.
    """
    tries: int
    """The number of tries after which the connection counts as lost."""
    queue: int
    """The number of messages that may wait. Beyond it, a ``losable`` message is dropped."""
    segment: int
    """The number of bytes of a message in one segment."""
    size: Callable[[Any], int]
    losable: Callable[[Any], bool]


@dataclass(slots=True)
class End:
    """One end of a connection. Its methods yield effects for routing and inputs for the machine above."""

    peer: Peer
    terms: Terms
    session: Instant
    peer_session: Instant | None = None
    up: bool = False
    tries: int = 0
    waiting: deque[tuple[Any, int]] = field(default_factory=deque)
    """Messages with the number of bytes still to be sent."""
    sent: ConnectionSegment | None = None
    """The segment whose acknowledgement is missing; ``None`` if there is none."""
    number: int = 0
    expected: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def timer(self) -> str:
        return f"connection {self.peer}"

    def open(self, now: Instant) -> Iterator[Effect]:
        """Send hello frames until the other end answers."""
        yield Send(self.peer, ConnectionHello(self.session, self.peer_session, False))
        yield self._set_retry_timer(now)

    def send(self, now: Instant, message: Any) -> Iterator[Effect | Input]:
        """Queue a message. It is discarded if the connection is down."""
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

    def on_timer(self, now: Instant) -> Iterator[Effect | Input]:
        """Handle the retry timer: send the hello or the segment again, or close the connection after the last
        try.
        """
        if not self.up:
            yield from self.open(now)
        elif self.sent is not None and self.tries < self.terms.tries:
            self.counts["sent again"] += 1
            yield Send(self.peer, self.sent)
            yield self._set_retry_timer(now)
        elif self.sent is not None:
            yield from self._close(now, f"{self.peer} does not answer")
            yield from self.open(now)

    def on_frame(self, now: Instant, frame: Frame) -> Iterator[Effect | Input]:
        """Handle a frame from the other end. Frames of an earlier session are ignored."""
        if self.peer_session is not None and frame.session < self.peer_session:
            return
        if isinstance(frame, ConnectionHello) and frame.session != self.peer_session:
            self.peer_session, self.expected = frame.session, 0
            if self.up:
                yield from self._close(now, f"{self.peer} has begun anew")
                yield from self.open(now)
        if frame.session == self.peer_session and frame.peer_session == self.session:
            yield from self._on_current_session(now, frame)
        if isinstance(frame, ConnectionHello) and not frame.reply:
            yield Send(self.peer, ConnectionHello(self.session, self.peer_session, True))

    def _on_current_session(self, now: Instant, frame: Frame) -> Iterator[Effect | Input]:
        """Handle a frame that belongs to the present session of both ends."""
        assert self.peer_session is not None
        if not self.up:
            self.up, self.tries = True, 0
            yield CancelTimer(self.timer)
            yield Joined(now, self.peer)
        match frame:
            case ConnectionSegment(number=number, message=message) if number <= self.expected:
                yield Send(self.peer, ConnectionAck(self.session, self.peer_session, number, message))
                if number == self.expected:
                    self.expected += 1
                    if frame.last:
                        yield Received(now, self.peer, message)
            case ConnectionAck(number=number) if self.sent is not None and number == self.sent.number:
                self.sent, self.tries = None, 0
                yield CancelTimer(self.timer)
                yield from self._next(now)

    def _next(self, now: Instant) -> Iterator[Effect]:
        """Send the next segment, if a message is waiting."""
        if not self.waiting:
            return
        assert self.peer_session is not None
        message, left = self.waiting.popleft()
        size = min(left, self.terms.segment)
        if left > size:
            self.waiting.appendleft((message, left - size))
        sessions = self.session, self.peer_session
        self.sent = ConnectionSegment(*sessions, self.number, message, size, left == size)
        self.number += 1
        yield Send(self.peer, self.sent)
        yield self._set_retry_timer(now)

    def _set_retry_timer(self, now: Instant) -> Effect:
        pause = self.terms.rto << min(self.tries, LONGEST_PAUSE)
        self.tries += 1
        return SetTimer(self.timer, now + pause)

    def _close(self, now: Instant, why: str) -> Iterator[Input]:
        """Close the session and drop all queued messages."""
        self.session = max(now, self.session + 1)
        self.up, self.tries, self.number, self.sent = False, 0, 0, None
        self.waiting.clear()
        self.counts["connections lost"] += 1
        yield Left(now, self.peer, why)
