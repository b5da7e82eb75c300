"""What waits to be sent over one connection: in order, and never more than a bound."""

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
class _Waiting:
    data: bytes | None
    """Nothing once it has been given up."""
    message: Any
    since: Instant


@dataclass
class Outbox:
    """A queue for one consumer.

    When it is full, ``drop-oldest`` gives up the oldest that may be lost; where nothing may be lost,
    and with ``disconnect`` always, the consumer is too slow to be kept.
    """

    most: int
    most_bytes: int
    when_full: WhenFull
    aged: Callable[[Any, Duration], bytes | None] = lambda _message, _waited: None
    """What is to be sent of a message that has waited, if it says how long it took."""
    size: int = 0
    length: int = 0
    _all: deque[_Waiting] = field(default_factory=deque)
    _losable: deque[_Waiting] = field(default_factory=deque)

    def __len__(self) -> int:
        return self.length

    def put(self, data: bytes, message: Any = None, *, losable: bool = False, now: Instant = 0) -> list[Any]:
        """Add something, with the message that it is; which messages were given up."""
        waiting = _Waiting(data, message, now)
        self._all.append(waiting)
        if losable:
            self._losable.append(waiting)
        self.length += 1
        self.size += len(data)
        given_up = []
        while self.is_full:
            given_up.append(self._give_up())
        return given_up

    @property
    def is_full(self) -> bool:
        """Whether more waits than may."""
        return self.length > self.most or (self.size > self.most_bytes and self.length > 1)

    def take(self, most: int, now: Instant = 0) -> bytes:
        """The oldest, together about so many bytes, at least one if there is one."""
        taken: list[bytes] = []
        size = 0
        while self._all and (size < most):
            waiting = self._all.popleft()
            if waiting.data is None:
                continue
            if self._losable and self._losable[0] is waiting:
                self._losable.popleft()
            taken.append(self.aged(waiting.message, now - waiting.since) or waiting.data)
            size += len(waiting.data)
        self.length -= len(taken)
        self.size -= size
        return b"".join(taken)

    def _give_up(self) -> Any:
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
        if len(self._all) > 2 * self.most + 2:
            self._all = deque(kept for kept in self._all if kept.data is not None)
        return message
