"""Resource limits for one peer of a broker."""

from __future__ import annotations

from dataclasses import dataclass

from ....errors import UsageError
from ....model.instant import SECOND, Duration
from .handshake import SMALLEST_FRAME
from .outbox import WhenFull


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Bounds for one connection, so that no peer can exhaust a broker."""

    max_frame: int = 1 << 20
    """Bytes of one message."""
    queue: int = 10_000
    """Messages that wait for a slow consumer."""
    queue_bytes: int = 64 << 20
    """Bytes that wait for a slow consumer."""
    when_full: WhenFull = "drop-oldest"
    peers: int = 1_000
    """Simultaneous connections that have completed the handshake."""
    strangers: int = 200
    """Simultaneous connections in the handshake; if there are more, the oldest is closed."""
    greeting: Duration = 10 * SECOND
    """The time limit of the handshake."""
    heartbeat: Duration = 10 * SECOND
    """A peer that is silent for this long is pinged; after three such periods it counts as gone."""

    def __post_init__(self) -> None:
        if self.max_frame < SMALLEST_FRAME:
            raise UsageError(f"--max-frame {self.max_frame}: at least {SMALLEST_FRAME} bytes")
        if self.queue < 1:
            raise UsageError(f"--queue {self.queue}: at least one message must be able to wait")
