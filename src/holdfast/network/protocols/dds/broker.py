"""A node as rendezvous node: it handles subscriptions, samples and ACKs.  [D11–D13, D31, D42]

Subscriptions are soft state: a subscriber that sends nothing for a lease is forgotten. An RN of DefTDDS that
starts calls for subscriptions, with its start time as a boot number, and sends no ACKs until they had time to
arrive; EATDDS does the same with its terms.
"""

from __future__ import annotations

from itertools import islice

from ....model.instant import SECOND, Instant
from ....model.protocol import EVERYBODY, Deliver, Effect, Peer, Send, SetTimer
from . import rendezvous
from .member import DdsRole
from .message import (
    DataMessage,
    DdsNotification,
    DdsSubscribe,
    DdsUnsubscribe,
    Recognition,
    Role,
    SampleAck,
    cause_of,
)
from .publisher import add_to_registry
from .registry import SubscriptionTable, digest, must_confirm
from .rendezvous import Rendezvous
from .request import SubscriberLapsed
from .state import DdsState
from .topic import TopicId

NOTIFY_BURST, NOTIFY_PAUSE = 16, SECOND // 4
"""The number of publishers that are notified at once (the queue of a mote's radio), and the pause
after that."""
MOST_DOUBLED = 6
"""An unconfirmed notification is repeated after pauses that grow up to 64 times the first."""


class DdsBroker(DdsRole, frozen=True):
    """The RN's role in DefTDDS, HyTDDS and EATDDS; in BLTDDS no node has it.  [D41]"""

    def start(self, state: DdsState, now: Instant) -> list[Effect]:
        """Take the role for the topics whose hash is this node.  [D10]"""
        if self.mode.rotates:
            return self.rotation.start(state, now)
        effects: list[Effect] = []
        for topic in self.deployment.topics if self.mode.brokered else ():
            if self.deployment.rendezvous(topic.id) == self.me:
                rn = state.rendezvous[topic.id] = Rendezvous(SubscriptionTable(topic))
                if self.deployment.discovery.lease is not None:
                    rn.silent_until = now + self.deployment.rotation.settle
                    effects += self.call(state, now, topic.id)
        return effects

    def call(self, state: DdsState, now: Instant, topic: TopicId) -> list[Effect]:
        """Ask all nodes that do not know of this RN's start to subscribe again."""
        if now >= state.rendezvous[topic].silent_until:
            return []
        role = Role(topic, state.session, self.me, fresh=True)
        return [Send(EVERYBODY, role, cause_of(role)), SetTimer(f"call/{topic}", now + SECOND)]

    def on_subscription(
        self, state: DdsState, now: Instant, wish: DdsSubscribe | DdsUnsubscribe
    ) -> list[Effect]:
        """Handle a subscription or its end.

        In HyTDDS each publisher receives a NOTIFICATION; in DefTDDS and EATDDS the RN updates its table.
        """
        publishers = self.deployment.publishers_of(wish.topic)
        if not self.mode.brokered:
            return self._notify(state, now, wish)
        if (rn := state.rendezvous.get(wish.topic)) is None:
            return self._forward_to_rn(state, wish, wish.subscriber)
        before = rn.registry.demand()
        effects: list[Effect] = []
        if isinstance(wish, DdsSubscribe):
            effects += add_to_registry(rn.registry, wish, now)
        else:
            rn.registry.remove(wish)
            effects += rendezvous.on_subscriber_left(rn, wish.subscriber)
        if self.mode.rotates:
            self.rotation.on_table_changed(state, wish)
            role = Role(wish.topic, *self.rotation.holder(state, wish.topic))
            effects.append(Send(wish.subscriber, role, cause_of(role)))
        if (demand := rn.registry.demand()) != before:
            effects += [Send(publisher, demand, cause_of(demand)) for publisher in publishers]
        return effects

    def on_data(self, state: DdsState, now: Instant, data: DataMessage) -> list[Effect]:
        """Forward a sample, and send its publisher the demand if that has changed."""
        if (rn := state.rendezvous.get(data.name.stream.topic)) is None:
            return self._forward_to_rn(state, data, data.name.origin)
        effects = [
            *self._remove_lapsed(state, rn, now),
            *rendezvous.forward(rn, data, now, self.deployment.reliable),
        ]
        if data.demand != digest(demand := rn.registry.demand()):
            effects.append(Send(data.name.origin, demand, cause_of(demand)))
        return effects

    def on_ack(self, state: DdsState, now: Instant, subscriber: Peer, ack: SampleAck) -> list[Effect]:
        """Handle an ACK of a subscriber."""
        if (rn := state.rendezvous.get(ack.name.stream.topic)) is None:
            return []
        rn.registry.record_sign(subscriber, now)
        return rendezvous.on_ack(rn, ack.name, subscriber)

    def _remove_lapsed(self, state: DdsState, rn: Rendezvous, now: Instant) -> list[Effect]:
        """Remove readers whose lease is over, so that no sample waits for them."""
        if (lease := self.deployment.discovery.lease) is None:
            return []
        gone = rn.registry.remove_lapsed(now, lease)
        state.counted["lapsed"] += len(gone)
        effects: list[Effect] = []
        for subscriber in gone:
            effects += [
                Deliver(SubscriberLapsed(rn.registry.topic.name, subscriber)),
                *rendezvous.on_subscriber_left(rn, subscriber),
            ]
        return effects

    # HyTDDS: the RN only passes subscriptions on.

    def _notify(self, state: DdsState, now: Instant, wish: DdsSubscribe | DdsUnsubscribe) -> list[Effect]:
        """Notify publishers; for a reliable reader until they confirm."""
        publishers = self.deployment.publishers_of(wish.topic)
        keys = [(publisher, wish.subscriber, wish.reader) for publisher in publishers]
        unsent = state.unsent_notices.setdefault(wish.topic, {})
        is_busy = bool(unsent)
        unsent.update(dict.fromkeys(keys, wish))
        effects = [] if is_busy else self.notify_next(state, now, wish.topic)
        if isinstance(wish, DdsUnsubscribe) or not must_confirm(wish):
            return effects
        waiting = state.unconfirmed_notices.setdefault(wish.topic, {})
        confirmed = {key: each.version for key, each in waiting.items()} | state.confirmed_versions.get(
            wish.topic, {}
        )
        unconfirmed = {key: wish for key in keys if confirmed.get(key, 0) < wish.version}
        if not unconfirmed:
            return effects
        waiting.update(unconfirmed)
        state.repetition_counts[wish.topic] = 0
        return [*effects, self._repeat_timer(state, now, wish.topic)]

    def notify_next(self, state: DdsState, now: Instant, topic: TopicId) -> list[Effect]:
        """Notify the publishers that have waited longest, as many as a radio queue holds.

        A longer burst would overflow the queue and drop the same ones each time.
        """
        unsent = state.unsent_notices.get(topic, {})
        effects: list[Effect] = []
        for key in list(islice(unsent, NOTIFY_BURST)):
            notification = DdsNotification(unsent.pop(key))
            effects.append(Send(key[0], notification, cause_of(notification)))
        return [*effects, SetTimer(f"tell/{topic}", now + NOTIFY_PAUSE)] if unsent else effects

    def _repeat_timer(self, state: DdsState, now: Instant, topic: TopicId) -> SetTimer:
        """Return the timer for the next repetition of unconfirmed notifications."""
        pause = self.deployment.discovery.every << min(state.repetition_counts[topic], MOST_DOUBLED)
        return SetTimer(f"notify/{topic}", now + pause)

    def notify_again(self, state: DdsState, now: Instant, topic: TopicId) -> list[Effect]:
        """Repeat the notifications that publishers have not confirmed."""
        waiting = state.unconfirmed_notices.get(topic)
        if not waiting:
            return []
        state.repetition_counts[topic] += 1
        notes = [(to, DdsNotification(wish, asks=True)) for (to, _, _), wish in waiting.items()]
        return [
            *(Send(to, note, cause_of(note)) for to, note in notes),
            self._repeat_timer(state, now, topic),
        ]

    def on_recognised(self, state: DdsState, publisher: Peer, recognised: Recognition) -> list[Effect]:
        """Record that a publisher has a subscription in its table."""
        waiting, key = (
            state.unconfirmed_notices.get(recognised.topic, {}),
            (publisher, recognised.subscriber, recognised.reader),
        )
        state.confirmed_versions.setdefault(recognised.topic, {})[key] = recognised.version
        if key in waiting and waiting[key].version <= recognised.version:
            del waiting[key]
        return []

    def _forward_to_rn(
        self, state: DdsState, what: DataMessage | DdsSubscribe | DdsUnsubscribe, asker: Peer
    ) -> list[Effect]:
        """Pass a message for an RN on, because this node is none."""
        if self.mode.rotates:
            return self.rotation.forward_to_holder(state, what, asker)
        state.counted["not for this node"] += 1
        return []
