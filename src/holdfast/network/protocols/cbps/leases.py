"""Leases: a broker withdraws a bundle that its client does not renew in time. [F14]"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from ....model.instant import Instant
from ....model.protocol import Peer
from .message import BundleKey
from .routing import StoredBundle

LEASES = "leases"
"""The name of the timer for the next expiry of a lease."""


@dataclass(slots=True)
class Leases:
    """The expiry times of bundles; ``timer_at`` is the time for which a timer is set."""

    _due: list[tuple[Instant, Peer, BundleKey]] = field(default_factory=list)
    timer_at: Instant | None = None

    def begin(self, stored: StoredBundle, now: Instant) -> None:
        """Start or restart the lease of a bundle."""
        if stored.bundle.lease is None:
            return
        if stored.expires is None:
            heappush(self._due, (now + stored.bundle.lease, stored.source, stored.bundle.key))
        stored.expires = now + stored.bundle.lease

    def pop_expired(
        self, now: Instant, find_stored: Callable[[Peer, BundleKey], StoredBundle | None]
    ) -> Iterator[StoredBundle]:
        """Yield the bundles whose leases have expired. ``find_stored`` finds a stored bundle by connection
        and key.
        """
        self.timer_at = None
        while self._due and self._due[0][0] <= now:
            _, peer, key = heappop(self._due)
            stored = find_stored(peer, key)
            if stored is None or stored.expires is None:
                continue
            if stored.expires > now:
                heappush(self._due, (stored.expires, peer, key))
            else:
                yield stored

    def next_timer(self) -> Instant | None:
        """Return the time for which to set the timer; ``None`` if the timer is set already or not needed."""
        if not self._due or (self.timer_at is not None and self.timer_at <= self._due[0][0]):
            return None
        self.timer_at = self._due[0][0]
        return self.timer_at
