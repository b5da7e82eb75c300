"""Filtering at the publisher: it drops events that no subscription needs and that change no bit.  [S5]

The broker passes subscriptions on to the publisher as to another broker, and the publisher runs a replica of
each state filter, so irrelevant events do not even cross the first connection. Until the broker has confirmed
that it processed all advertisements, every event is sent. An event that happens while a new subscription is
on its way from the broker counts as earlier.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ....model.protocol import Peer
from .bundle import has_stored_part
from .condition import CompileCondition, ReplicatedCondition
from .content import Filter, matches, satisfies
from .message import Bundle, BundleKey, ScopePlacement, StateAnswer, SubscriptionRef
from .replica_watch import ReplicaWatch
from .routing import StoredBundle
from .watch import Emitter

SELF: Peer = ""
"""The connection name of the publisher's own events, for its replicas."""


@dataclass(slots=True)
class SourceFilter:
    """The subscriptions that the broker has passed on, and the replicas of those with a state filter.

    ``requests`` counts the requests for confirmation, ``answered`` is the last one that the broker answered.
    """

    subscriptions: dict[BundleKey, Bundle] = field(default_factory=dict)
    replicas: dict[SubscriptionRef, ReplicaWatch] = field(default_factory=dict)
    requests: int = 0
    answered: int = 0

    def reset(self) -> None:
        """Forget all subscriptions after the connection is lost; the next broker sends its own."""
        self.subscriptions.clear()
        self.replicas.clear()
        self.requests += 1

    def add_promises(self, filters: Iterable[Filter], emitter: Emitter) -> int:
        """Add advertised filters; return the number of the confirmation request to send."""
        for filter_ in filters:
            for replica in self.replicas.values():
                if matches("advertisement", filter_, "subscription", replica.subscription.filter):
                    replica.add_advertisement(SELF, filter_)
                    replica.notify_peers(emitter)
        self.requests += 1
        return self.requests

    def remove_promises(self, filters: Iterable[Filter]) -> None:
        """Remove advertised filters."""
        for filter_ in filters:
            for replica in self.replicas.values():
                if matches("advertisement", filter_, "subscription", replica.subscription.filter):
                    replica.remove_advertisement(SELF, filter_)

    def add_subscription(
        self,
        broker: Peer,
        bundle: Bundle,
        conditions: CompileCondition,
        promises: Iterable[Filter],
        emitter: Emitter,
    ) -> None:
        """Add or replace a subscription that the broker passes on."""
        self.remove_subscription(bundle.key)
        self.subscriptions[bundle.key] = bundle
        stored = StoredBundle(bundle, broker)
        for i, subscription in enumerate(bundle.subscriptions):
            if subscription.state is None:
                continue
            condition = conditions(subscription.state.definition)
            if isinstance(condition, ReplicatedCondition):
                replica = self.replicas[SubscriptionRef(bundle.key, i)] = ReplicaWatch(
                    SubscriptionRef(bundle.key, i), stored, condition
                )
                for promise in promises:
                    if matches("advertisement", promise, "subscription", subscription.filter):
                        replica.add_advertisement(SELF, promise)
                replica.notify_peers(emitter)

    def remove_subscription(self, key: BundleKey) -> None:
        """Remove a subscription."""
        if (bundle := self.subscriptions.pop(key, None)) is not None:
            for i in range(len(bundle.subscriptions)):
                self.replicas.pop(SubscriptionRef(key, i), None)

    def on_condition_message(self, message: ScopePlacement | StateAnswer, emitter: Emitter) -> None:
        """Handle a message about the condition of a subscription."""
        if (replica := self.replicas.get(message.of)) is not None:
            replica.on_subscriber_message(message, emitter)

    def should_send(self, bundle: Bundle, emitter: Emitter) -> bool:
        """Whether a bundle must be sent, because it may match a subscription or is more than
        notifications."""
        notifications = bundle.notifications
        is_addressed = (
            has_stored_part(bundle) or bundle.slips or any(item.flood_forward for item in notifications)
        )
        is_wanted, views = bool(is_addressed) or self.requests != self.answered, []
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
