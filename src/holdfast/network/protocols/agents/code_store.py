"""The store of shipped code: each broker requests missing code once, from the peer that sent the bundle.
[B33]

Bundles name code by its digest. A connection carries the text only to a broker that lacks it, and only if an
agent must start at that broker or beyond it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

from ....model.protocol import Peer
from .place_index import AgentPlace

LONGEST = 64 << 10
"""The greatest length of a text in characters."""
MOST = 4 << 20
"""The number of characters that are stored. The least recently used texts are dropped."""


def digest_of(text: str) -> str:
    """Return the digest that identifies a text. Operators allow code by its digest."""
    return sha256(text.encode()).hexdigest()


@dataclass(slots=True)
class CodeStore:
    """Texts by digest, open requests to peers, and the peers that wait for an answer."""

    texts: dict[str, str] = field(default_factory=dict)
    requested_from: dict[str, Peer] = field(default_factory=dict)
    waiting: dict[str, dict[Peer, None]] = field(default_factory=dict)
    places: dict[str, dict[AgentPlace, None]] = field(default_factory=dict)
    """The places of agents that wait for a text."""

    def get(self, digest: str) -> str | None:
        """Return a text and mark it as used; ``None`` if it is not stored."""
        text = self.texts.pop(digest, None)
        if text is not None:
            self.texts[digest] = text  # the last that was needed
        return text

    def store(self, digest: str, text: str, sender: Peer) -> list[Peer] | None:
        """Store a text that was requested from ``sender``; return the peers that wait for it.

        Return ``None`` if the text was not requested, is too long, or has another digest.
        """
        if self.requested_from.get(digest) != sender:
            return None
        del self.requested_from[digest]
        if len(text) > LONGEST or digest_of(text) != digest:
            return None
        self.texts[digest] = text
        while sum(map(len, self.texts.values())) > MOST:
            del self.texts[next(iter(self.texts))]
        return list(self.waiting.pop(digest, ()))

    def on_left(self, peer: Peer) -> None:
        """Forget the requests to and from a peer whose connection is lost."""
        self.requested_from = {digest: to for digest, to in self.requested_from.items() if to != peer}
        for waiting in self.waiting.values():
            waiting.pop(peer, None)
