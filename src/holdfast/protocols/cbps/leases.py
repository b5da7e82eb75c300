"""Leases: what is not renewed in time is forgotten.  [F14]"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from ...model.instant import Instant
from ...model.protocol import Peer
from .message import Key
from .routing import Stored

LEASES = "leases"
"""The timer that runs out when the next lease does."""


@dataclass(slots=True)
class Leases:
    """When to look at which bundle again; ``wakes`` is for when a timer is set."""

    _due: list[tuple[Instant, Peer, Key]] = field(default_factory=list)
    wakes: Instant | None = None

    def begin(self, stored: Stored, now: Instant) -> None:
        """Let a bundle's lease begin, or begin anew."""
        if stored.bundle.lease is None:
            return
        if stored.expires is None:
            heappush(self._due, (now + stored.bundle.lease, stored.source, stored.bundle.key))
        stored.expires = now + stored.bundle.lease

    def expired(self, now: Instant, kept: Callable[[Peer, Key], Stored | None]) -> Iterator[Stored]:
        """The bundles whose leases have run out."""
        self.wakes = None
        while self._due and self._due[0][0] <= now:
            _, peer, key = heappop(self._due)
            stored = kept(peer, key)
            if stored is None or stored.expires is None:
                continue
            if stored.expires > now:
                heappush(self._due, (stored.expires, peer, key))
            else:
                yield stored

    def wake(self) -> Instant | None:
        """When to set the timer for, if it must be set anew."""
        if not self._due or (self.wakes is not None and self.wakes <= self._due[0][0]):
            return None
        self.wakes = self._due[0][0]
        return self.wakes
