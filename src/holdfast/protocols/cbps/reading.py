"""How much of what clients define a broker reads: what costs it time is counted in characters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

from ...errors import UsageError
from ...model.instant import SECOND, Instant
from ...model.protocol import Peer

BURST, RATE = 1 << 18, 1 << 12
"""So many characters are read for a client at once, and so many more each second."""
IN_VAIN = 4
"""What means nothing costs so many times as much."""
MOST = 4_096
"""Of how many definitions, and of how many clients, it is known what was read."""


@dataclass(slots=True)
class Reading:
    """What is known of definitions, by digest: nothing against them, or why they were refused; and how much
    each client has left, and since when."""

    known: dict[bytes, str | None] = field(default_factory=dict)
    left: dict[Peer, tuple[int, Instant]] = field(default_factory=dict)

    def objection(
        self, text: str, understand: Callable[[str], object], client: Peer | None, now: Instant
    ) -> str | None:
        """What there is against a definition, if anything; what is known is not read again."""
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if key in self.known:
            return self.known[key]
        if client is not None and not self._spend(client, len(text), now):
            return (
                f"more than {BURST:,} characters of definitions have come from '{client}' at once; "
                f"{RATE:,} are read each second"
            )
        why = None
        try:
            understand(text)
        except UsageError as error:
            why = str(error)
            if client is not None:
                self._spend(client, (IN_VAIN - 1) * len(text), now)
        self.known[key] = why
        _bound(self.known)
        return why

    def _spend(self, client: Peer, cost: int, now: Instant) -> bool:
        """Take so much from what a client has left; whether there was enough."""
        left, since = self.left.pop(client, (BURST, now))
        left = min(BURST, left + (now - since) * RATE // SECOND)
        self.left[client] = max(left - cost, 0), now
        _bound(self.left)
        return left >= cost


def _bound(known: dict[bytes, str | None] | dict[Peer, tuple[int, Instant]]) -> None:
    if len(known) > MOST:
        del known[next(iter(known))]  # type: ignore[arg-type]
