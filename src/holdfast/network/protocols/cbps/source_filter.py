"""Filtering at the publisher: it drops events that no subscription needs and that change no bit. [S5]

The broker forwards subscriptions to the publisher as to another broker, and the publisher runs a replica of
each state filter. So irrelevant events do not even cross the first connection. Until the broker has confirmed
that it processed all advertisements, the publisher sends every event. An event that occurs while a new
subscription is on its way from the broker counts as earlier than the subscription.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ....model.protocol import Peer
from .bundle import has_stored_part, subscription_refs
from .condition import NetworkCondition, ReplicatedCondition
from .content import Filter, matches, satisfies
from .message import Bundle, BundleKey, ScopePlacement, StateAnswer, SubscriptionRef
from .replica_watch import ReplicaWatch
from .routing import StoredBundle
from .watch import Emitter

Conditions = Mapping[int, NetworkCondition]

SELF: Peer = ""
"""The connection name of the publisher's own events, for its replicas."""


@dataclass(slots=True)
class SourceFilter:
    """The subscriptions that the broker has forwarded, and the replicas of their state filters.

    ``requests`` counts the requests for confirmation; ``answered`` is the number of the last answered
    request.
    """

    subscriptions: dict[BundleKey, Bundle] = field(default_factory=dict)
    replicas: dict[SubscriptionRef, ReplicaWatch] = field(default_factory=dict)
    requests: int = 0
    answered: int = 0

    def reset(self) -> None:
        """Forget all subscriptions after the connection is lost. The next broker sends its own."""
        self.subscriptions.clear()
        self.replicas.clear()
        self.requests += 1

    def add_promises(self, filters: Iterable[Filter], emitter: Emitter) -> int:
        """Add advertised filters to the replicas that they concern; return the number of the
        confirmation request.
        """
        for filter_ in filters:
            for replica in self.replicas.values():
                if _concerns(filter_, replica):
                    replica.add_advertisement(SELF, filter_)
                    replica.notify_peers(emitter)
        self.requests += 1
        return self.requests

    def remove_promises(self, filters: Iterable[Filter]) -> None:
        """Remove advertised filters from the replicas that they concern."""
        for filter_ in filters:
            for replica in self.replicas.values():
                if _concerns(filter_, replica):
                    replica.remove_advertisement(SELF, filter_)

    def add_subscription(
        self, stored: StoredBundle, conditions: Conditions, promises: Iterable[Filter], emitter: Emitter
    ) -> None:
        """Add or replace a subscription that the broker forwards, with its compiled conditions by index."""
        bundle = stored.bundle
        self.remove_subscription(bundle.key)
        self.subscriptions[bundle.key] = bundle
        for i, condition in conditions.items():
            if isinstance(condition, ReplicatedCondition):
                part = SubscriptionRef(bundle.key, i)
                replica = self.replicas[part] = ReplicaWatch(part, stored, condition)
                for promise in promises:
                    if _concerns(promise, replica):
                        replica.add_advertisement(SELF, promise)
                replica.notify_peers(emitter)

    def remove_subscription(self, key: BundleKey) -> None:
        """Remove a subscription and its replicas."""
        if (bundle := self.subscriptions.pop(key, None)) is not None:
            for part in subscription_refs(bundle):
                self.replicas.pop(part, None)

    def on_condition_message(self, message: ScopePlacement | StateAnswer, emitter: Emitter) -> None:
        """Handle a message about the condition of a subscription."""
        if (replica := self.replicas.get(message.of)) is not None:
            replica.on_subscriber_message(message, emitter)

    def should_send(self, bundle: Bundle, emitter: Emitter) -> bool:
        """Whether a bundle must be sent, because it may match a subscription or has other parts than
        notifications.
        """
        notifications, views = bundle.notifications, []
        is_flooded = any(notification.flood_forward for notification in notifications)
        is_wanted = has_stored_part(bundle) or bool(bundle.slips) or is_flooded
        is_wanted |= self.requests != self.answered
        for content in (item.content for item in notifications):
            for key, item in self.subscriptions.items():
                for i, subscription in enumerate(item.subscriptions):
                    if not satisfies(subscription.filter, content):
                        continue
                    if (replica := self.replicas.get(SubscriptionRef(key, i))) is None:
                        is_wanted = True
                    elif (sight := replica.view_of(content)) is not None:
                        views.append((replica, sight))
                        is_wanted |= replica.should_forward(sight, SELF, emitter)
        for replica, sight in views if is_wanted else ():
            replica.on_forwarded(sight, emitter)
        return is_wanted


def _concerns(promise: Filter, replica: ReplicaWatch) -> bool:
    """Whether an advertised filter matches the subscription of a replica."""
    return matches("advertisement", promise, "subscription", replica.subscription.filter)
