"""Starts and ends belong together: whoever was told a start is told its end, also after asking for no more.

A subscription that is released stays with the brokers, so ends come the way that starts came; starts that
were not told are not told any more, nor are their ends.  When all that was told to start has ended, it is
over.
What nobody knows any more is told so.  Where the next event that decides will be told, the pair waits for
that; anything else cannot be waited for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...model.event import Notification
from .content import Content

Pair = tuple[str, str | None]
"""A condition and a scope."""


@dataclass(slots=True)
class Pairing:
    """By the names of subscriptions: what was told to start, and not yet to end; and which are released."""

    begun: dict[str, set[Pair]] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)

    def tells(self, name: str, said: Notification) -> bool:
        """Whether something is to be told; what starts and ends is noted."""
        begun, pair = self.begun.setdefault(name, set()), (said.subscription, said.scope)
        is_told = name not in self.released or pair in begun
        if said.status in ("egress", "unknown"):
            begun.discard(pair)
        elif said.status == "ingress" and is_told:
            begun.add(pair)
        return is_told

    def reports(self, name: str, content: Content) -> bool:
        """Whether a report of agents is to be told: it has a status, and may have a scope."""
        begun, scope = self.begun.setdefault(name, set()), content.get("scope")
        pair = (name, scope if isinstance(scope, str) else None)
        is_told = name not in self.released or pair in begun
        if content.get("status") == "ingress" and is_told:
            begun.add(pair)
        elif content.get("status") in ("egress", "unknown"):
            begun.discard(pair)
        return is_told

    def interrupted(self, name: str) -> None:
        """Nobody knows any more of anything."""
        self.begun.pop(name, None)

    def loses(self, name: str, pair: Pair, *, kept: bool = False) -> bool:
        """Whether it is to be told that nobody knows any more of something; the end of what is kept comes."""
        begun = self.begun.setdefault(name, set())
        is_told = name not in self.released or pair in begun
        if not kept:
            begun.discard(pair)
        return is_told

    def over(self) -> Iterator[str]:
        """Subscriptions that are released, and of which all has ended."""
        return (name for name in sorted(self.released) if not self.begun.get(name))

    def forget(self, name: str) -> None:
        """A subscription is withdrawn."""
        self.begun.pop(name, None)
        self.released.discard(name)
