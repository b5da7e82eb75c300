"""The protocol of sinks: the methods that the service requires of a target of notifications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...errors import HoldfastError
from ...runtimes.local.engine import Holding
from ..store import NotificationRow


class Unavailable(HoldfastError):
    """Raised when the target cannot accept anything now. The batch is delivered again later."""


class Refusal(HoldfastError):
    """Raised when the target rejects a notification permanently. The notification becomes a dead letter."""


class Sink(Protocol):
    """The protocol of sinks, which are targets of notifications.

    One `SinkDelivery` for each sink calls its members in the event loop, never two at a time. It calls
    ``deliver`` with each batch in the order of positions, ``refresh`` between batches, and ``close`` once at
    the end. A member that waits for a disk or a library must do so in a thread.

    ``deliver`` and ``refresh`` may raise only ``Unavailable`` and ``Refusal``. After ``Unavailable`` the same
    batch is delivered again later. After ``Refusal`` it is delivered in halves, until each refused
    notification is alone and becomes a dead letter. Any other exception restarts the delivery. After a crash
    or an error the sink receives some notifications again; their ids are the same.
    """

    name: str
    """Identifies the sink; its position is stored under this name."""
    kind: str
    heeds_mutes: bool
    """Whether notifications of muted conditions are withheld from this sink."""

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which ``refresh`` is called again, or ``None`` if the target needs no refresh."""

    async def deliver(self, rows: Sequence[NotificationRow]) -> None:
        """Send notifications in order. Returns when the target has accepted all of them."""

    async def refresh(self, active: Sequence[Holding]) -> None:
        """Send all active conditions to a target that forgets them after a while."""

    async def close(self) -> None:
        """Close the connection to the target. Called once, as the last member."""
