"""How much of everything a broker gives to one peer."""

from __future__ import annotations

from dataclasses import dataclass

from ....errors import UsageError
from ....model.instant import SECOND, Duration
from .handshake import SMALLEST_FRAME
from .outbox import WhenFull


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds for one connection, so that no peer can use up a broker."""

    max_frame: int = 1 << 20
    """Bytes of one message."""
    queue: int = 10_000
    """Messages that wait for a slow consumer."""
    queue_bytes: int = 64 << 20
    """Bytes that wait for a slow consumer."""
    when_full: WhenFull = "drop-oldest"
    peers: int = 1_000
    """Connections at one time, of those that have said who they are."""
    strangers: int = 200
    """Connections of those that have not; if there are more, the one that has waited longest must go."""
    greeting: Duration = 10 * SECOND
    """How long a peer may take to say who it is."""
    heartbeat: Duration = 10 * SECOND
    """After so long a silence a peer is asked whether it is there; after three, it is not."""

    def __post_init__(self) -> None:
        if self.max_frame < SMALLEST_FRAME:
            raise UsageError(f"--max-frame {self.max_frame}: at least {SMALLEST_FRAME} bytes")
        if self.queue < 1:
            raise UsageError(f"--queue {self.queue}: at least one message must be able to wait")
