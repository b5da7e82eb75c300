"""Code of strategies on its way: asked for where it is needed, from where its bundle came, once.  [B33]

Bundles name code by its digest, so a link carries a text only to a broker that lacks it, and only if an agent
is to be started there or beyond.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

from ...model.protocol import Peer
from .placing import Place

LONGEST = 64 << 10
"""How many characters a text may have."""
MOST = 4 << 20
"""How many characters are kept; those that were needed longest ago are forgotten first."""


def digest_of(text: str) -> str:
    """The name of a text: who has allowed it has read it."""
    return sha256(text.encode()).hexdigest()


@dataclass(slots=True)
class Codes:
    """Texts by digest, whom we have asked for others, and who has asked us."""

    texts: dict[str, str] = field(default_factory=dict)
    asked: dict[str, Peer] = field(default_factory=dict)
    waiting: dict[str, dict[Peer, None]] = field(default_factory=dict)
    places: dict[str, dict[Place, None]] = field(default_factory=dict)
    """Where agents are to be started once it is here."""

    def get(self, digest: str) -> str | None:
        """A text, if it is here."""
        text = self.texts.pop(digest, None)
        if text is not None:
            self.texts[digest] = text  # the last that was needed
        return text

    def take(self, digest: str, text: str, sender: Peer) -> list[Peer] | None:
        """Keep a text that we have asked for; who waits for it.  Nothing if it is not what we asked for."""
        if self.asked.get(digest) != sender:
            return None
        del self.asked[digest]
        if len(text) > LONGEST or digest_of(text) != digest:
            return None
        self.texts[digest] = text
        while sum(map(len, self.texts.values())) > MOST:
            del self.texts[next(iter(self.texts))]
        return list(self.waiting.pop(digest, ()))

    def left(self, peer: Peer) -> None:
        """A connection is gone."""
        self.asked = {digest: whom for digest, whom in self.asked.items() if whom != peer}
        for waiting in self.waiting.values():
            waiting.pop(peer, None)
