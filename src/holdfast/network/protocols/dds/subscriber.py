"""The role of subscriber: its readers, the messages for their subscriptions, and deliveries."""

from __future__ import annotations

from msgspec.structs import replace

from ....errors import UsageError, did_you_mean
from ....model.protocol import EVERYBODY, CancelTimer, Deliver, SetTimer
from . import rtdds
from .eatdds import RotationStep
from .interest import satisfies_all
from .level import TRANSITION
from .message import EVERY_READER, PLAIN, DataMessage, DdsSubscribe, DdsUnsubscribe
from .request import DdsNotify, DdsSubscribeRequest, SampleRepeated
from .state import DataReader
from .topic import TopicId


class SubscriberStep(RotationStep):
    """Handles inputs of a subscriber: ``subscribe()``, ``unsubscribe()``, and the resulting ``notify()``.
    [D1]
    """

    def subscribe(self, asked: DdsSubscribeRequest) -> None:
        """Create a reader for each topic of the interest.  [D7]"""
        interest, condition, state = asked.interest, asked.interest.condition, self.state
        if any(reader.subscription == asked.name for reader in state.readers.values()):
            raise UsageError(f"node {self.me} has a subscription '{asked.name}'; unsubscribe it first")
        if condition is not None and condition not in self.deployment.conditions:
            known = self.deployment.conditions
            hint = did_you_mean(condition, known) or f"There is {', '.join(known) or 'none'}."
            raise UsageError(f"no condition named '{condition}' was deployed. {hint}")
        for topic in interest.matching_topics(self.deployment.topics):
            state.last_reader_number += 1
            number = state.last_reader_number
            level = topic.level if interest.level is None else interest.level
            if level == TRANSITION and not topic.transition_conditions and condition is None:
                raise UsageError(f"nothing turns with samples of '{topic.name}': deploy a condition on it")
            version = state.newer(self.now)
            wish = DdsSubscribe(topic.id, self.me, number, version, level, interest.where, condition or PLAIN)
            state.readers[number] = DataReader(asked.name, wish)
            self.send_subscription(number)
            if self.mode.rotates:
                self.on_sign(topic.id)

    def send_subscription(self, number: int) -> None:
        """Send SUBSCRIBE ten times [D14], and then as often as the lease requires."""
        reader, terms = self.state.readers.get(number), self.deployment.discovery
        if reader is None:
            return
        reader.times_sent += 1
        self._send_wish(reader.wish, reader.times_sent)
        if reader.times_sent < terms.repeats:
            later = terms.after(self.now, terms.every, self.state.chance)
            self.emit(SetTimer(f"subscribe/{number}", later))
        elif terms.renewal is not None:
            self.set_timer(f"subscribe/{number}", terms.renewal)

    def on_call(self, topic: TopicId, boot: int) -> None:
        """Handle the start time of an RN. If it is new, the RN has lost earlier subscriptions."""
        state, repeats = self.state, self.deployment.discovery.repeats
        known, state.start_times[topic] = state.start_times.get(topic), boot
        is_early = known is None and all(r.times_sent < repeats for r in state.of_topic(topic))
        if boot != known and not is_early:
            self.subscribe_again(topic)

    def _send_wish(self, wish: DdsSubscribe | DdsUnsubscribe, time: int = 1) -> None:
        """Send a subscription to the node with the table: the RN, or all nodes.

        In EATDDS the RN may be dead. The main RN and its successors are also asked in turn, if the first half
        of the repetitions had no answer or signs of life were missing for too long.
        """
        topic = wish.topic
        if self.mode.asks == "everybody":
            self.send_to_all((EVERYBODY, self.me), wish)
            return
        to = [self.holder(topic).node]
        if self.mode.rotates:
            unanswered = topic not in self.state.roles and time > self.deployment.discovery.repeats // 2
            if unanswered or topic in self.state.without_table:
                to += self.deployment.successors(topic)
        self.send(to[time % len(to)], wish)

    def remove_readers(self, name: str) -> None:
        """Remove the readers of a subscription, and send this once.

        A node that receives unwanted samples sends it again (see `restate`).
        """
        over = [number for number, reader in self.state.readers.items() if reader.subscription == name]
        if not over:
            raise UsageError(f"node {self.me} has no subscription '{name}'")
        for number in over:
            topic = self.state.readers.pop(number).wish.topic
            self.emit(CancelTimer(f"subscribe/{number}"))
            self._send_wish(DdsUnsubscribe(topic, self.me, number, self.state.newer(self.now)))

    def is_bound(self, data: DataMessage) -> bool:
        """Whether this node has a reader that is bound to the sample's stream."""
        stream = data.name.stream
        return any(reader.wish.condition == stream.condition for reader in self.state.of_topic(stream.topic))

    def deliver(self, data: DataMessage) -> None:
        """Deliver a sample once and in order to each reader whose constraints it satisfies."""
        name, state = data.name, self.state
        if not rtdds.is_new(state.last_delivered, name):
            state.counted["redundant"] += 1
            self.emit(Deliver(SampleRepeated(name)))
            return
        state.last_delivered[name.origin, name.stream] = name.place
        topic = self.deployment.topics.by_id[name.stream.topic]
        found = [
            reader.subscription
            for reader in state.of_topic(topic.id)
            if reader.wish.condition == name.stream.condition
            and satisfies_all(reader.wish.where, data.values)
        ]
        state.counted["delivered"] += bool(found)
        values, instance = data.values, topic.instance(data.values)
        for each in found:
            event = each, topic.name, name.origin, name, values, data.time, instance, data.status, data.since
            self.emit(Deliver(DdsNotify(*event)))

    def restate(self, topic: TopicId) -> None:
        """Repeat the subscriptions to a topic, because an unwanted sample arrived."""
        state = self.state
        state.counted["unwanted"] += 1
        self._send_wish(DdsUnsubscribe(topic, self.me, EVERY_READER, state.newer(self.now)))
        for reader in state.of_topic(topic):
            reader.wish = replace(reader.wish, version=state.newer(self.now))
            self._send_wish(reader.wish)
