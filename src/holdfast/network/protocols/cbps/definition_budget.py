"""A budget, in characters, that limits the definitions that a broker compiles for a client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

from ....errors import UsageError
from ....model.instant import SECOND, Instant
from ....model.protocol import Peer

BURST, RATE = 1 << 18, 1 << 12
"""The number of characters that a client may have compiled at once, and the number per second after that."""
INVALID_FACTOR = 4
"""The factor by which an invalid definition costs more."""
MOST = 4_096
"""The greatest number of definitions, and of clients, that are stored."""


@dataclass(slots=True)
class DefinitionBudget:
    """The results of compiled definitions, by digest, and the remaining budget of each client.

    A result is ``None`` for a valid definition, and otherwise the reason for its refusal.
    """

    results: dict[bytes, str | None] = field(default_factory=dict)
    remaining: dict[Peer, tuple[int, Instant]] = field(default_factory=dict)

    def refusal_reason(
        self, text: str, compile_definition: Callable[[str], object], client: Peer | None, now: Instant
    ) -> str | None:
        """Return the reason why a definition is refused; ``None`` if it is valid. Known definitions are not
        compiled again.
        """
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if key in self.results:
            return self.results[key]
        if client is not None and not self._spend(client, len(text), now):
            return (
                f"more than {BURST:,} characters of definitions have come from '{client}' at once; "
                f"{RATE:,} are read each second"
            )
        why = None
        try:
            compile_definition(text)
        except UsageError as error:
            why = str(error)
            if client is not None:
                self._spend(client, (INVALID_FACTOR - 1) * len(text), now)
        self.results[key] = why
        _drop_oldest(self.results)
        return why

    def _spend(self, client: Peer, cost: int, now: Instant) -> bool:
        """Charge a client for a definition; return whether its budget was sufficient."""
        remaining, since = self.remaining.pop(client, (BURST, now))
        remaining = min(BURST, remaining + (now - since) * RATE // SECOND)
        self.remaining[client] = max(remaining - cost, 0), now
        _drop_oldest(self.remaining)
        return remaining >= cost


def _drop_oldest(table: dict[bytes, str | None] | dict[Peer, tuple[int, Instant]]) -> None:
    """Drop the oldest entry of a full table."""
    if len(table) > MOST:
        del table[next(iter(table))]  # type: ignore[arg-type]
