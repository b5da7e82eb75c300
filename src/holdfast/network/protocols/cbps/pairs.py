"""Pairs of starts and ends: a subscriber that received a start receives its end, even after a release.

Brokers keep a released subscription, so that ends arrive in the same way as starts. Starts that were not
delivered before the release are dropped, and so are their ends. When every delivered start has ended, the
subscription is closed.

A condition that corrects its notifications continues to do so after the release. Let T be the time up to
which starts were delivered at the release. Every activity that begins before T is delivered, ended and
retracted. The subscription is closed when all of these have ended and none can be corrected any more.

Unknown states are delivered. If the next event that decides will be delivered too, the pair stays open until
then; otherwise the pair is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ....model.event import Notification
from ....model.instant import BEGINNING, NEVER, Instant
from .condition import CorrectionProgress
from .content import Content

Pair = tuple[str, str | None]
"""The name of a condition, and the key of a scope or ``None``."""


@dataclass(slots=True)
class PairTracker:
    """The open pairs and the released names of a client, by the name of the subscription."""

    open_pairs: dict[str, set[Pair]] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)
    corrections_until: dict[str, Instant] = field(default_factory=dict)
    """For released conditions that correct their notifications: activities that begin before this time are
    delivered.
    """
    latest_delivered: dict[str, Instant] = field(default_factory=dict)
    """For conditions that correct their notifications: the latest event time that was delivered."""

    def should_deliver(self, name: str, notification: Notification) -> bool:
        """Record a notification; return whether to deliver it."""
        if name in self.latest_delivered:
            is_delivered = _start_of(notification) < self.corrections_until.get(name, NEVER)
            if is_delivered:
                self.latest_delivered[name] = max(self.latest_delivered[name], notification.event.time)
            return is_delivered
        return self._record(name, (notification.subscription, notification.scope), notification.status)

    def _record(self, name: str, pair: Pair, status: object) -> bool:
        """Record the status of a pair; return whether to deliver it."""
        open_pairs = self.open_pairs.setdefault(name, set())
        is_delivered = name not in self.released or pair in open_pairs
        if status in ("egress", "unknown"):
            open_pairs.discard(pair)
        elif status == "ingress" and is_delivered:
            open_pairs.add(pair)
        return is_delivered

    def should_report(self, name: str, content: Content) -> bool:
        """Record a report of agents; return whether to deliver it. A report has a status and may have a
        scope.
        """
        scope = content.get("scope")
        return self._record(name, (name, scope if isinstance(scope, str) else None), content.get("status"))

    def on_interrupted(self, name: str) -> None:
        """Forget all open pairs of a subscription whose state became unknown."""
        self.open_pairs.pop(name, None)

    def should_deliver_unknown(
        self, name: str, pair: Pair, since: Instant, *, is_preserved: bool = False
    ) -> bool:
        """Record that a pair became unknown; return whether to deliver this. A preserved pair stays open
        until its end.
        """
        if name in self.latest_delivered:
            return since < self.corrections_until.get(name, NEVER)
        return self._record(name, pair, None if is_preserved else "unknown")

    def mark_correcting(self, name: str) -> None:
        """Mark a subscription whose condition corrects its notifications."""
        self.latest_delivered.setdefault(name, BEGINNING)

    def release(self, name: str, progress: CorrectionProgress | None = None) -> None:
        """Stop the delivery of further starts of a subscription.

        ``progress`` is the progress of its condition if the condition corrects its notifications.
        """
        self.released.add(name)
        if progress is not None and progress.notified_until > BEGINNING:
            self.corrections_until.setdefault(name, progress.notified_until)

    def finished(self, progress_of: Callable[[str], CorrectionProgress | None]) -> Iterator[str]:
        """Yield the released subscriptions whose delivered starts have ended and can no longer be
        corrected.
        """
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
        change.
        """
        return max(self.corrections_until[name], self.latest_delivered[name])

    def forget(self, name: str) -> None:
        """Forget the data of a withdrawn subscription."""
        for table in (self.open_pairs, self.corrections_until, self.latest_delivered):
            table.pop(name, None)
        self.released.discard(name)


def _start_of(notification: Notification) -> Instant:
    """Return the start of the activity that a notification is about."""
    if notification.since is None or notification.status in ("ingress", "retracted"):
        return notification.event.time
    return notification.since
