"""Pairs of starts and ends: a subscriber that received a start receives its end, even after a release.

A released subscription stays with the brokers, so that ends arrive the same way as starts. Starts that were
not delivered before the release are dropped, and so are their ends. When every delivered start has ended, the
subscription is over.

A condition that corrects its notifications continues to do so: every activity that begins before the time up
to which starts were delivered at the release is delivered, ended and retracted. The subscription is over when
all of these have ended and none can be corrected any more.

Unknown states are delivered. If the next event that decides will be delivered too, the pair waits for it;
otherwise the pair is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ....model.event import Notification
from ....model.instant import BEGINNING, NEVER, Instant
from .condition import CorrectionProgress
from .content import Content

Pair = tuple[str, str | None]
"""A condition and a scope."""


@dataclass(slots=True)
class PairTracker:
    """By subscription name: the pairs that were started and not ended, and the released names."""

    open_pairs: dict[str, set[Pair]] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)
    corrections_until: dict[str, Instant] = field(default_factory=dict)
    """Of released conditions that correct their notifications: activities that begin before this are
    delivered."""
    latest_delivered: dict[str, Instant] = field(default_factory=dict)
    """Of conditions that correct their notifications: the latest event time that was delivered."""

    def should_deliver(self, name: str, notification: Notification) -> bool:
        """Record a notification; return whether it is to be delivered."""
        if name in self.latest_delivered:
            is_delivered = _start_of(notification) < self.corrections_until.get(name, NEVER)
            if is_delivered:
                self.latest_delivered[name] = max(self.latest_delivered[name], notification.event.time)
            return is_delivered
        return self._record(name, (notification.subscription, notification.scope), notification.status)

    def _record(self, name: str, pair: Pair, status: object) -> bool:
        """Record the status of a pair; return whether it is to be delivered."""
        open_pairs = self.open_pairs.setdefault(name, set())
        is_delivered = name not in self.released or pair in open_pairs
        if status in ("egress", "unknown"):
            open_pairs.discard(pair)
        elif status == "ingress" and is_delivered:
            open_pairs.add(pair)
        return is_delivered

    def should_report(self, name: str, content: Content) -> bool:
        """Record a report of agents; return whether it is to be delivered. A report has a status and may have
        a scope."""
        scope = content.get("scope")
        return self._record(name, (name, scope if isinstance(scope, str) else None), content.get("status"))

    def on_interrupted(self, name: str) -> None:
        """Forget all open pairs of a subscription whose state became unknown."""
        self.open_pairs.pop(name, None)

    def should_deliver_unknown(
        self, name: str, pair: Pair, since: Instant, *, is_preserved: bool = False
    ) -> bool:
        """Record that a pair became unknown; return whether to deliver that. A preserved pair waits for its
        end."""
        if name in self.latest_delivered:
            return since < self.corrections_until.get(name, NEVER)
        return self._record(name, pair, None if is_preserved else "unknown")

    def mark_correcting(self, name: str) -> None:
        """Mark a subscription whose condition corrects its notifications."""
        self.latest_delivered.setdefault(name, BEGINNING)

    def release(self, name: str, progress: CorrectionProgress | None = None) -> None:
        """Deliver no further starts of a subscription."""
        self.released.add(name)
        if progress is not None and progress.notified_until > BEGINNING:
            self.corrections_until.setdefault(name, progress.notified_until)

    def finished(self, progress_of: Callable[[str], CorrectionProgress | None]) -> Iterator[str]:
        """Yield the released subscriptions of which everything has ended and nothing can be corrected."""
        for name in sorted(self.released):
            progress = progress_of(name) if name in self.corrections_until else None
            if progress is not None:
                is_open = any(since < self.corrections_until[name] for since in progress.active_since)
                if not is_open and progress.final_until > self.settled_after(name):
                    yield name
            elif not self.open_pairs.get(name):
                yield name

    def settled_after(self, name: str) -> Instant:
        """Return the time beyond which progress must be final so that no delivered notification can
        change."""
        return max(self.corrections_until[name], self.latest_delivered[name])

    def forget(self, name: str) -> None:
        """Forget a withdrawn subscription."""
        for table in (self.open_pairs, self.corrections_until, self.latest_delivered):
            table.pop(name, None)
        self.released.discard(name)


def _start_of(notification: Notification) -> Instant:
    """Return the start of the activity that a notification is about."""
    if notification.since is None or notification.status in ("ingress", "retracted"):
        return notification.event.time
    return notification.since
