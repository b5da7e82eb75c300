"""The role of rendezvous node (RN): it handles subscriptions, samples and ACKs. [D11–D13, D31, D42]

Subscriptions are soft state: a subscriber that sends no message for the duration of a lease is forgotten.
When an RN of DefTDDS starts, it calls for subscriptions, with its start time as a boot number. It sends no
ACKs until the subscriptions had time to arrive. EATDDS does the same with its terms.
"""

from __future__ import annotations

from itertools import islice

from ....model.instant import SECOND
from ....model.protocol import EVERYBODY, Peer
from . import rendezvous
from .eatdds import RotationStep
from .message import (
    DataMessage,
    DdsNotification,
    DdsSubscribe,
    DdsUnsubscribe,
    Recognition,
    Role,
    SampleAck,
)
from .registry import SubscriptionTable, digest, must_confirm
from .rendezvous import Rendezvous
from .topic import TopicId

NOTIFY_BURST, NOTIFY_PAUSE = 16, SECOND // 4
"""The number of publishers to notify at once (the queue of a mote's radio), and the pause after that
in µs.
"""
MOST_DOUBLED = 6
"""The number of times that the pause between repetitions of a notification doubles, up to 64 times the first
pause.
"""


class BrokerStep(RotationStep):
    """Handles inputs of the RN in DefTDDS, HyTDDS and EATDDS. In BLTDDS no node has this role. [D41]"""

    def start(self) -> None:
        """Take the role for the topics whose hash is this node.  [D10]"""
        if self.mode.rotates:
            self.start_rotation()
            return
        for topic in self.deployment.topics if self.mode.brokered else ():
            if self.deployment.rendezvous(topic.id) == self.me:
                rn = self.state.rendezvous[topic.id] = Rendezvous(SubscriptionTable(topic))
                if self.deployment.discovery.lease is not None:
                    rn.silent_until = self.now + self.deployment.rotation.settle
                    self.call(topic.id)

    def call(self, topic: TopicId) -> None:
        """Ask all nodes that do not know of this RN's start to subscribe again."""
        if self.now < self.state.rendezvous[topic].silent_until:
            self.send(EVERYBODY, Role(topic, self.state.session, self.me, fresh=True))
            self.set_timer(f"call/{topic}", SECOND)

    def on_rn_subscription(self, wish: DdsSubscribe | DdsUnsubscribe) -> None:
        """Handle a subscription or its end.

        In HyTDDS each publisher receives a NOTIFICATION; in DefTDDS and EATDDS the RN updates its table.
        """
        if not self.mode.brokered:
            self._notify(wish)
            return
        if (rn := self.state.rendezvous.get(wish.topic)) is None:
            self._forward_to_rn(wish, wish.subscriber)
            return
        before = rn.registry.demand()
        self.register(rn.registry, wish)
        if isinstance(wish, DdsUnsubscribe):
            self.effects += rendezvous.on_subscriber_left(rn, wish.subscriber)
        if self.mode.rotates:
            self.on_table_changed(wish)
            self.send(wish.subscriber, Role(wish.topic, *self.holder(wish.topic)))
        if (demand := rn.registry.demand()) != before:
            self.send_to_all(self.deployment.publishers_of(wish.topic), demand)

    def on_rn_data(self, data: DataMessage) -> None:
        """Forward a sample. Send its publisher the demand if the publisher does not know it."""
        if (rn := self.state.rendezvous.get(data.name.stream.topic)) is None:
            self._forward_to_rn(data, data.name.origin)
            return
        for subscriber in self.remove_lapsed(rn.registry):
            self.effects += rendezvous.on_subscriber_left(rn, subscriber)
        self.effects += rendezvous.forward(rn, data, self.now, self.deployment.reliable)
        if data.demand != digest(demand := rn.registry.demand()):
            self.send(data.name.origin, demand)

    def on_rn_ack(self, subscriber: Peer, ack: SampleAck) -> None:
        """Handle an ACK of a subscriber."""
        if (rn := self.state.rendezvous.get(ack.name.stream.topic)) is not None:
            rn.registry.record_sign(subscriber, self.now)
            self.effects += rendezvous.on_ack(rn, ack.name, subscriber)

    # HyTDDS: the RN only passes subscriptions on.

    def _notify(self, wish: DdsSubscribe | DdsUnsubscribe) -> None:
        """Notify the publishers of a topic. For a reliable reader, repeat this until they confirm."""
        state, topic = self.state, wish.topic
        publishers = self.deployment.publishers_of(topic)
        keys = [(publisher, wish.subscriber, wish.reader) for publisher in publishers]
        unsent = state.unsent_notices.setdefault(topic, {})
        is_busy = bool(unsent)
        unsent.update(dict.fromkeys(keys, wish))
        if not is_busy:
            self.notify_next(topic)
        if isinstance(wish, DdsUnsubscribe) or not must_confirm(wish):
            return
        waiting = state.unconfirmed_notices.setdefault(topic, {})
        confirmed = {key: each.version for key, each in waiting.items()}
        confirmed |= state.confirmed_versions.get(topic, {})
        unconfirmed = {key: wish for key in keys if confirmed.get(key, 0) < wish.version}
        if unconfirmed:
            waiting.update(unconfirmed)
            state.repetition_counts[topic] = 0
            self._set_repeat_timer(topic)

    def notify_next(self, topic: TopicId) -> None:
        """Notify the publishers that have waited longest, as many as the queue of a radio can contain.

        A longer burst would overflow the queue and drop the same notifications each time.
        """
        unsent = self.state.unsent_notices.get(topic, {})
        for key in list(islice(unsent, NOTIFY_BURST)):
            self.send(key[0], DdsNotification(unsent.pop(key)))
        if unsent:
            self.set_timer(f"tell/{topic}", NOTIFY_PAUSE)

    def _set_repeat_timer(self, topic: TopicId) -> None:
        """Set the timer for the next repetition of unconfirmed notifications."""
        doublings = min(self.state.repetition_counts[topic], MOST_DOUBLED)
        self.set_timer(f"notify/{topic}", self.deployment.discovery.every << doublings)

    def notify_again(self, topic: TopicId) -> None:
        """Repeat the notifications that publishers have not confirmed."""
        waiting = self.state.unconfirmed_notices.get(topic)
        if waiting:
            self.state.repetition_counts[topic] += 1
            for (publisher, _, _), wish in waiting.items():
                self.send(publisher, DdsNotification(wish, asks=True))
            self._set_repeat_timer(topic)

    def on_recognised(self, publisher: Peer, recognised: Recognition) -> None:
        """Record that a publisher has a subscription in its table."""
        topic, version = recognised.topic, recognised.version
        waiting = self.state.unconfirmed_notices.get(topic, {})
        key = publisher, recognised.subscriber, recognised.reader
        self.state.confirmed_versions.setdefault(topic, {})[key] = version
        if key in waiting and waiting[key].version <= version:
            del waiting[key]

    def _forward_to_rn(self, message: DataMessage | DdsSubscribe | DdsUnsubscribe, asker: Peer) -> None:
        """Forward a message for an RN, because this node is not the RN of the topic."""
        if self.mode.rotates:
            self.forward_to_holder(message, asker)
        else:
            self.state.counted["not for this node"] += 1
