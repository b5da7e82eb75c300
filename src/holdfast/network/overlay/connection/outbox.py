"""The bounded queue of messages for one connection."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from ....model.instant import Duration, Instant
from ..wire.fault import WireFault

WhenFull = Literal["drop-oldest", "disconnect"]
POLICIES: tuple[WhenFull, ...] = get_args(WhenFull)


@dataclass(slots=True)
class _QueuedMessage:
    """An encoded message with the time at which it was queued."""

    data: bytes | None
    """The encoded message; ``None`` after it was dropped."""
    message: Any
    since: Instant


@dataclass
class Outbox:
    """A queue for one consumer.

    When it is full, ``drop-oldest`` drops the oldest message that may be lost. If none may be lost, or with
    ``disconnect``, the consumer is disconnected.
    """

    most: int
    most_bytes: int
    when_full: WhenFull
    with_waiting_time: Callable[[Any, Duration], bytes | None] = lambda _message, _waited: None
    """A function that encodes a message again with its waiting time; ``None`` if the message does not contain
    it.
    """
    size: int = 0
    length: int = 0
    _queue: deque[_QueuedMessage] = field(default_factory=deque)
    _losable: deque[_QueuedMessage] = field(default_factory=deque)

    def __len__(self) -> int:
        return self.length

    def put(self, data: bytes, message: Any = None, *, losable: bool = False, now: Instant = 0) -> list[Any]:
        """Append an encoded message; return the dropped messages. Raise a `WireFault` to disconnect the
        consumer.
        """
        queued = _QueuedMessage(data, message, now)
        self._queue.append(queued)
        if losable:
            self._losable.append(queued)
        self.length += 1
        self.size += len(data)
        dropped = []
        while self.is_full:
            dropped.append(self._drop_oldest())
        return dropped

    @property
    def is_full(self) -> bool:
        """Whether the queue exceeds its bound of messages or of bytes."""
        return self.length > self.most or (self.size > self.most_bytes and self.length > 1)

    def take(self, most: int, now: Instant = 0) -> bytes:
        """Remove the oldest messages, about ``most`` bytes together; at least one message if there is one."""
        chunks: list[bytes] = []
        size = 0
        while self._queue and (size < most):
            queued = self._queue.popleft()
            if queued.data is None:
                continue
            if self._losable and self._losable[0] is queued:
                self._losable.popleft()
            chunks.append(self.with_waiting_time(queued.message, now - queued.since) or queued.data)
            size += len(queued.data)
        self.length -= len(chunks)
        self.size -= size
        return b"".join(chunks)

    def _drop_oldest(self) -> Any:
        """Drop and return the oldest message that may be lost."""
        if self.when_full == "disconnect" or not self._losable:
            raise WireFault(
                f"too slow: {self.length:,} messages ({self.size:,} bytes) wait, "
                f"and at most {self.most:,} ({self.most_bytes:,} bytes) may (--queue)"
            )
        waiting = self._losable.popleft()
        assert waiting.data is not None
        self.length -= 1
        self.size -= len(waiting.data)
        message, waiting.data, waiting.message = waiting.message, None, None
        if len(self._queue) > 2 * self.most + 2:
            self._queue = deque(queued for queued in self._queue if queued.data is not None)
        return message
