"""Resource limits for one peer of a broker."""

from __future__ import annotations

from dataclasses import dataclass

from ....errors import UsageError
from ....model.instant import SECOND, Duration
from .handshake import SMALLEST_FRAME
from .outbox import WhenFull


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits for one connection, so that no peer can exhaust a broker."""

    max_frame: int = 1 << 20
    """The greatest length of a message in bytes."""
    queue: int = 10_000
    """The greatest number of messages that wait for a slow consumer."""
    queue_bytes: int = 64 << 20
    """The greatest number of bytes that wait for a slow consumer."""
    when_full: WhenFull = "drop-oldest"
    peers: int = 1_000
    """The greatest number of simultaneous connections that have completed the handshake."""
    strangers: int = 200
    """The greatest number of simultaneous connections in the handshake. Beyond it, the oldest is closed."""
    greeting: Duration = 10 * SECOND
    """The time limit of the handshake in µs."""
    heartbeat: Duration = 10 * SECOND
    """The time in µs after which a silent peer is pinged. After three such periods the peer counts as
    lost.
    """

    def __post_init__(self) -> None:
        if self.max_frame < SMALLEST_FRAME:
            raise UsageError(f"--max-frame {self.max_frame}: at least {SMALLEST_FRAME} bytes")
        if self.queue < 1:
            raise UsageError(f"--queue {self.queue}: at least one message must be able to wait")
