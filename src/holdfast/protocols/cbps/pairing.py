"""Starts and ends belong together: whoever was told a start is told its end, also after asking for no more.

A subscription that is released stays with the brokers, so ends come the way that starts came; starts that
were not told are not told any more, nor are their ends.  When all that was told to start has ended, it is
over.
A condition that corrects what it has told goes on to do so: whatever begins before the instant up to which
starts were told when it was released is told, and ended, and taken back.  It is over when all of that has
ended, and nothing can correct it any more.
What nobody knows any more is told so.  Where the next event that decides will be told, the pair waits for
that; anything else cannot be waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ...model.event import Notification
from ...model.instant import BEGINNING, NEVER, Instant
from .condition import Outlook
from .content import Content

Pair = tuple[str, str | None]
"""A condition and a scope."""


@dataclass(slots=True)
class Pairing:
    """By the names of subscriptions: what was told to start, and not yet to end; and which are released."""

    begun: dict[str, set[Pair]] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)
    until: dict[str, Instant] = field(default_factory=dict)
    """Of those released that correct what they tell: what begins before is told."""
    latest: dict[str, Instant] = field(default_factory=dict)
    """Of those that correct what they tell: the latest moment of which something was told."""

    def tells(self, name: str, said: Notification) -> bool:
        """Whether something is to be told; what starts and ends is noted."""
        if name in self.latest:
            is_told = _beginning(said) < self.until.get(name, NEVER)
            if is_told:
                self.latest[name] = max(self.latest[name], said.event.time)
            return is_told
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

    def loses(self, name: str, pair: Pair, since: Instant, *, kept: bool = False) -> bool:
        """Whether it is to be told that nobody knows any more of something; the end of what is kept comes."""
        if name in self.latest:
            return since < self.until.get(name, NEVER)
        begun = self.begun.setdefault(name, set())
        is_told = name not in self.released or pair in begun
        if not kept:
            begun.discard(pair)
        return is_told

    def corrects(self, name: str) -> None:
        """A subscription's condition corrects what it tells."""
        self.latest.setdefault(name, BEGINNING)

    def release(self, name: str, outlook: Outlook | None = None) -> None:
        """Tell no more starts."""
        self.released.add(name)
        if outlook is not None and outlook.until > BEGINNING:
            self.until.setdefault(name, outlook.until)

    def over(self, outlook: Callable[[str], Outlook | None]) -> Iterator[str]:
        """Subscriptions that are released, and of which all has ended, given how far those have come that
        correct what they tell."""
        for name in sorted(self.released):
            seen = outlook(name) if name in self.until else None
            if seen is not None:
                is_open = any(since < self.until[name] for since in seen.begun)
                if not is_open and seen.final > self.settles(name):
                    yield name
            elif not self.begun.get(name):
                yield name

    def settles(self, name: str) -> Instant:
        """When nothing that was told can be corrected any more, time must be final beyond this instant."""
        return max(self.until[name], self.latest[name])

    def forget(self, name: str) -> None:
        """A subscription is withdrawn."""
        for known in (self.begun, self.until, self.latest):
            known.pop(name, None)
        self.released.discard(name)


def _beginning(said: Notification) -> Instant:
    """When that began of which something is said."""
    if said.since is None or said.status in ("ingress", "retracted"):
        return said.event.time
    return said.since
